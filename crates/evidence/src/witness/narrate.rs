//! Adding evidence to the events of a run on their way to who reads them: in order, and off the
//! run's own path.

use std::pin::pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use tiphys_model::Plan;
use tiphys_run::{Event, Evidence, Time};

use super::Witness;

/// How many failures are looked at at once.
const AT_ONCE: usize = 8;
/// How long who reads may be kept waiting for a closer look.
const PATIENCE: Duration = Duration::from_secs(15);

/// Shows events in the order in which they come. One that failed is shown when it has been looked
/// at closer; those behind it wait meanwhile, and the run does not.
///
/// It ends with the stream. Run it beside the engine, which sends its events into a channel that
/// takes any number of them; `look` is [`Witness::enrich`].
pub async fn narrate(
    events: impl Stream<Item = (Time, Event)>,
    plan: &Plan,
    look: impl AsyncFn(&str, Evidence) -> Evidence,
    show: impl Fn(Time, Event),
) {
    let closer = async |event: Event| match event {
        Event::Failed { app, state, cause, evidence } => {
            let evidence = look(plan.app(app).app.name.as_str(), evidence).await;
            Event::Failed { app, state, cause, evidence }
        }
        other => other,
    };
    in_order(events, closer, show).await;
}

/// Events are looked at a few at a time, and shown one after the other.
async fn in_order(
    events: impl Stream<Item = (Time, Event)>,
    closer: impl AsyncFn(Event) -> Event,
    show: impl Fn(Time, Event),
) {
    let closer = &closer;
    let looked_at = events.map(|(time, event)| async move { (time, closer(event).await) });
    let mut ordered = pin!(looked_at.buffered(AT_ONCE));
    while let Some((time, event)) = ordered.next().await {
        show(time, event);
    }
}

impl Witness {
    /// Evidence, and what a closer look adds to it in reasonable time.
    pub async fn enrich(&self, app: &str, project: &str, evidence: Evidence) -> Evidence {
        let look = self.gather(app, project, evidence.clone());
        if let Ok(found) = tokio::time::timeout(PATIENCE, look).await {
            return found.evidence;
        }
        let unseen = vec![format!("more: no answer within {} s", PATIENCE.as_secs())];
        Evidence { unseen, ..evidence }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures::stream;
    use tiphys_model::AppIx;
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn events_keep_their_order_and_wait_for_each_other_only_once() {
        let app = AppIx::new(0);
        let slow = || Event::Removing { app };
        let events = [slow(), Event::Held, slow(), Event::Begun, slow()];
        let numbered =
            events.into_iter().zip(1..).map(|(event, at)| (Time::from_millis(at), event));
        let began = Instant::now();
        let shown = RefCell::new(Vec::new());
        let closer = async |event: Event| {
            if matches!(event, Event::Removing { .. }) {
                sleep(Duration::from_secs(5)).await;
            }
            event
        };
        let show = |time: Time, _| shown.borrow_mut().push(time.as_millis());
        in_order(stream::iter(numbered), closer, show).await;
        assert_eq!(shown.into_inner(), [1, 2, 3, 4, 5]);
        assert_eq!(began.elapsed(), Duration::from_secs(5), "they are looked at at once");
    }
}
