//! Following a platform: one watch on its Applications, and a look now and then at the rest.

use std::collections::BTreeSet;
use std::pin::{Pin, pin};
use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use tiphys_assess::status::Situation;
use tiphys_model::{Plan, Platform};
use tiphys_run::Signal;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::{Around, Found, StatusError, ask, in_time};
use tiphys_argocd::Applications;
use tiphys_argocd::watch::{self, WatchEvent};
use tiphys_cluster::Cause;
use tiphys_engine::Signals;
use tiphys_evidence::criteria::Prober;

/// How often Lease and hold are looked at.
const LOOK: Duration = Duration::from_secs(2);
/// How often criteria are asked.
const ASK: Duration = Duration::from_secs(5);
/// How long the cluster may be unreachable before watching fails.
const AWAY: Duration = Duration::from_secs(60);
/// How long changes are gathered before they are shown: who reads wants one picture of them.
const GATHER: Duration = Duration::from_millis(300);

/// Shows each situation, from the first complete one on, until a signal comes.
pub async fn follow(
    client: &Client,
    prober: &Prober,
    platform: &Platform,
    plan: &Plan,
    show: &mut dyn FnMut(Situation) -> bool,
) -> Result<Option<Signal>, StatusError> {
    let mut signals = Signals::listen()?;
    let mut found = Found::new(platform, plan);
    let has_criteria = plan.apps.iter().any(|app| !app.app.health.is_empty());
    let mut names: BTreeSet<String> = found.positions.keys().cloned().collect();
    names.insert(found.root_name.clone());
    let applications = Applications::of(client, &platform.argocd);
    let news = watch::applications(&applications, names.clone());
    let mut news = pin!(news);
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut asks = interval(ASK);
    asks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut asking: Option<Pin<Box<dyn Future<Output = _>>>> = None;
    let mut around = None;
    let (mut installed, mut listed) = (true, false);
    let mut due: Option<Instant> = None;
    let mut answered = Instant::now();
    loop {
        let shown = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        let answers = async {
            match &mut asking {
                Some(asking) => asking.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            signal = signals.next() => return Ok(Some(signal)),
            answers = answers => {
                asking = None;
                if found.answer(answers) {
                    due.get_or_insert_with(|| Instant::now() + GATHER);
                }
            }
            _ = asks.tick(), if listed && has_criteria => {
                asking.get_or_insert_with(|| Box::pin(ask(prober, plan, found.questions())));
            }
            _ = looks.tick(), if installed => {
                let look = tokio::select! {
                    look = in_time(Around::read(client, platform)) => look,
                    signal = signals.next() => return Ok(Some(signal)),
                };
                match look {
                    Ok(now) if around.as_ref() == Some(&now) => answered = Instant::now(),
                    Ok(now) => {
                        (around, answered) = (Some(now), Instant::now());
                        due.get_or_insert_with(|| Instant::now() + GATHER);
                    }
                    Err(error) if error.may_pass() && answered.elapsed() < AWAY => {}
                    Err(error) => return Err(error),
                }
            }
            () = shown => {
                due = None;
                let situation = match &around {
                    _ if !installed => Some(Found::new(platform, plan).without_argocd()),
                    Some(around) if listed => Some(found.situation(around)),
                    _ => None,
                };
                if situation.is_some_and(|situation| !show(situation)) {
                    return Ok(None);
                }
            }
            told = news.next() => {
                match told {
                    Some(WatchEvent::Applied(application)) => found.take(&application)?,
                    Some(WatchEvent::Gone { name, .. }) => found.lose(&name),
                    Some(WatchEvent::Listed(there)) => {
                        names.difference(&there).for_each(|name| found.lose(name));
                        (installed, listed) = (true, true);
                    }
                    Some(WatchEvent::Failed(error)) => match error.cause() {
                        // The watch goes on by itself, and sees them once they are there.
                        Cause::NotFound => installed = false,
                        Cause::Denied => return Err(error.into()),
                        _ => continue,
                    },
                    None => return Ok(None),
                }
                due.get_or_insert_with(|| Instant::now() + GATHER);
            }
        }
    }
}
