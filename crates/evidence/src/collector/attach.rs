//! Adding evidence to the events of a run on their way to who reads them: in order, and off the
//! run's own path.

use std::pin::pin;
use std::time::Duration;

use futures::future::join_all;
use futures::{Stream, StreamExt};
use tiphys_model::{AppIx, Plan};
use tiphys_run::{Event, Evidence, Time, Unhealthy};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How many failures are looked at at once.
const AT_ONCE: usize = 8;
/// How long a line may wait for a closer look: its own, or that of a failure before it.
const LOOK_TIMEOUT: Duration = Duration::from_secs(15);

/// Shows events in the order in which they come. One that failed, and the end of a run with apps that
/// turned unhealthy, is shown when these have been looked at closer, or when that has taken too long; those behind it wait meanwhile, and the run does
/// not.
///
/// It ends with the stream. Run it beside the engine, which sends its events into a channel that
/// takes any number of them.
pub async fn attach_evidence(
    events: impl Stream<Item = (Time, Event)>,
    plan: &Plan,
    look: impl AsyncFn(&str, Evidence) -> Evidence,
    show: impl Fn(Time, Event),
) {
    let look = async |app, evidence| look(plan.app(app).app.name.as_str(), evidence).await;
    in_order(events, look, show).await;
}

/// Every look begins when its failure is told, so that no line waits for more than one timeout,
/// however many fail.
async fn in_order(
    events: impl Stream<Item = (Time, Event)>,
    look: impl AsyncFn(AppIx, Evidence) -> Evidence,
    show: impl Fn(Time, Event),
) {
    let (look, free) = (&look, &Semaphore::new(AT_ONCE));
    let look_in_time = async |app, evidence: Evidence| {
        let looked = async {
            let _permit = free.acquire().await;
            look(app, evidence.clone()).await
        };
        match timeout(LOOK_TIMEOUT, looked).await {
            Ok(evidence) => evidence,
            Err(_) => unanswered(evidence),
        }
    };
    let look_in_time = &look_in_time;
    let closer = async |event: Event| match event {
        Event::Failed { app, state, cause, evidence } => {
            let evidence = look_in_time(app, evidence).await;
            Event::Failed { app, state, cause, evidence }
        }
        Event::Finished { verdict, unhealthy } => {
            let looked =
                unhealthy.into_iter().map(|Unhealthy { app, cause, evidence }| async move {
                    Unhealthy { app, cause, evidence: look_in_time(app, evidence).await }
                });
            Event::Finished { verdict, unhealthy: join_all(looked).await }
        }
        other => other,
    };
    let closer = &closer;
    let looked_at = events.map(|(time, event)| async move { (time, closer(event).await) });
    let mut ordered = pin!(looked_at.buffered(usize::MAX));
    while let Some((time, event)) = ordered.next().await {
        show(time, event);
    }
}

fn unanswered(evidence: Evidence) -> Evidence {
    let unseen = vec![format!("details: no answer within {} s", LOOK_TIMEOUT.as_secs())];
    Evidence { unseen, ..evidence }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures::stream;
    use tiphys_model::Health;
    use tiphys_run::{Cause, FailState, Verdict};
    use tokio::time::{Instant, sleep};

    use super::*;

    fn failed(app: usize) -> Event {
        Event::Failed {
            app: AppIx::new(app),
            state: FailState::Failed,
            cause: Cause::Degraded { message: None },
            evidence: Evidence::default(),
        }
    }

    /// When each event was shown, in seconds, and what its evidence says was not seen.
    async fn shown(events: Vec<Event>, look: Duration) -> Vec<(u64, u64, Vec<String>)> {
        let numbered =
            events.into_iter().zip(1..).map(|(event, at)| (Time::from_millis(at), event));
        let began = Instant::now();
        let shown = RefCell::new(Vec::new());
        let look = async |_, evidence| {
            sleep(look).await;
            evidence
        };
        let show = |time: Time, event| {
            let unseen = match event {
                Event::Failed { evidence, .. } => evidence.unseen,
                Event::Finished { unhealthy, .. } => {
                    unhealthy.into_iter().flat_map(|one| one.evidence.unseen).collect()
                }
                _ => Vec::new(),
            };
            shown.borrow_mut().push((time.as_millis(), began.elapsed().as_secs(), unseen));
        };
        in_order(stream::iter(numbered), look, show).await;
        shown.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn events_keep_their_order_and_only_what_is_behind_a_failure_waits() {
        let mut events = vec![Event::Held, failed(0)];
        events.extend(vec![Event::Begun; 2 * AT_ONCE]);
        events.push(failed(1));
        let last = events.len() as u64;
        let shown = shown(events, Duration::from_secs(5)).await;
        let order: Vec<u64> = shown.iter().map(|(seq, ..)| *seq).collect();
        assert_eq!(order, (1..=last).collect::<Vec<_>>());
        assert_eq!(shown[0].1, 0, "what comes before a failure is shown at once");
        assert!(shown[1..].iter().all(|(_, at, _)| *at == 5), "all looks begin at once: {shown:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn looks_that_never_end_cost_one_timeout_however_many_there_are() {
        let events: Vec<Event> = (0..40).map(failed).collect();
        for (_, at, unseen) in shown(events, Duration::from_secs(3600)).await {
            assert_eq!(
                (at, unseen.as_slice()),
                (15, &["details: no answer within 15 s".to_owned()][..])
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn apps_that_turned_unhealthy_are_looked_at_together_at_the_end() {
        let unhealthy = (0..3).map(|app| Unhealthy {
            app: AppIx::new(app),
            cause: Cause::TurnedUnhealthy { health: Health::Degraded, message: None },
            evidence: Evidence::default(),
        });
        let ended = Event::Finished { verdict: Verdict::Failed, unhealthy: unhealthy.collect() };
        let told = shown(vec![ended.clone()], Duration::from_secs(5)).await;
        assert_eq!(told, [(1, 5, vec![])]);
        let told = shown(vec![ended], Duration::from_secs(3600)).await;
        assert_eq!(told, [(1, 15, vec!["details: no answer within 15 s".to_owned(); 3])]);
    }
}
