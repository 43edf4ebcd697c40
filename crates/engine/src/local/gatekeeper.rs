//! Somebody outside the run who has a say in when apps start, and shows how each of them stands.

use std::collections::BTreeMap;

use tiphys_cluster::excerpt;
use tiphys_model::{AppIx, AppName};
use tiphys_run::{Because, Driver, Event, Pending, Phase};
use tiphys_workflows::{NodePhase, NodeReport};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// What the gatekeeper says, and where it hears how the apps stand.
pub(crate) struct Gatekeeper {
    pub(crate) admissions: UnboundedReceiver<Admission>,
    pub(crate) reports: Reports,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It may start.
    App(AppIx),
    /// Nothing more may start.
    Stopped,
}

/// The next admission; without a gatekeeper it never comes.
pub(super) async fn next(admissions: &mut Option<UnboundedReceiver<Admission>>) -> Admission {
    let next = match admissions {
        Some(admissions) => admissions.recv().await,
        None => None,
    };
    match next {
        Some(next) => next,
        None => std::future::pending().await,
    }
}

/// Tells what is new about the apps.
pub(crate) struct Reports {
    to: UnboundedSender<(String, NodeReport)>,
    told: BTreeMap<AppIx, NodeReport>,
}

impl Reports {
    pub(crate) fn new(to: UnboundedSender<(String, NodeReport)>) -> Self {
        Reports { to, told: BTreeMap::new() }
    }

    /// `looked_at` is the app of which something is new even if nothing happened to it.
    pub(super) fn tell(&mut self, driver: &Driver, looked_at: Option<AppIx>, events: &[Event]) {
        let mut news: BTreeMap<AppIx, Option<NodeReport>> = BTreeMap::new();
        news.extend(looked_at.map(|app| (app, None)));
        for event in events {
            let Some(app) = event.app() else { continue };
            let report = ended(driver, event);
            let known = news.entry(app).or_default();
            *known = report.or(known.take());
        }
        for (app, report) in news {
            let Some(report) = report.or_else(|| standing(driver, app)) else { continue };
            if self.told.get(&app) != Some(&report) {
                self.told.insert(app, report.clone());
                let name = name(driver, app).to_string();
                // Whoever listens is there for as long as the run is.
                self.to.send((name, report)).unwrap_or_default();
            }
        }
    }
}

fn name(driver: &Driver, app: AppIx) -> &AppName {
    &driver.machine().plan().app(app).app.name
}

/// What an event that ends a step badly says about it.
fn ended(driver: &Driver, event: &Event) -> Option<NodeReport> {
    let message = match event {
        Event::Failed { cause, .. } => cause.to_string(),
        Event::Skipped { because, .. } => match because {
            Because::App(other) => format!("skipped because of {}", name(driver, *other)),
            Because::Unhealthy(other) => format!("skipped: {} is unhealthy", name(driver, *other)),
            Because::Outside(other) => {
                format!("skipped: {} is outside the scope and unhealthy", name(driver, *other))
            }
            Because::Deadline => "skipped: the deadline of the run has passed".to_owned(),
        },
        _ => return None,
    };
    Some(report(NodePhase::Failed, &message))
}

/// How an app stands that has not failed.
fn standing(driver: &Driver, app: AppIx) -> Option<NodeReport> {
    let machine = driver.machine();
    let message = match &machine.step(app).phase {
        Phase::Done { how, .. } => return Some(report(NodePhase::Succeeded, how.as_str())),
        Phase::Failed(_) | Phase::Skipped(_) | Phase::Removing { .. } | Phase::Removed { .. } => {
            return None;
        }
        phase => match (machine.pending(app, driver.seen(app)), phase) {
            (Pending::ForeignOperation { by }, _) => format!("waiting for an operation of {by}"),
            (Pending::Attempt, Phase::Waiting) => "waiting for its turn".to_owned(),
            (Pending::Attempt, _) => "waiting for the next attempt".to_owned(),
            (Pending::Answer { message }, _) => format!("syncing: {message}"),
            (Pending::Gate { missing: Some(missing) }, _) => format!("converging: {missing}"),
            (Pending::Gate { missing: None }, _) => "converging".to_owned(),
            (Pending::Sync | Pending::Removal { .. }, _) => "syncing".to_owned(),
        },
    };
    Some(report(NodePhase::Pending, &message))
}

fn report(phase: NodePhase, message: &str) -> NodeReport {
    NodeReport { phase, message: excerpt::cut(message) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tiphys_model::{Health, OperationId, Scope};
    use tiphys_run::testkit::{fresh, synced};
    use tiphys_run::{
        Action, Answer, Clock, Effect, Input, Machine, Observation, Operation, Output, SyncAnswer,
        Time,
    };
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::testkit;

    /// A run of the two apps of the test kit, and what its nodes were told.
    struct Shown {
        driver: Driver,
        reports: Reports,
        told: UnboundedReceiver<(String, NodeReport)>,
        version: u64,
    }

    impl Shown {
        fn new() -> Self {
            let plan = tiphys_plan::plan(&testkit::platform(), &Scope::Platform).unwrap();
            let apps = plan.apps.len();
            let machine = Machine::new(Arc::new(plan), Action::Deploy, 1).with_admission();
            let (to, told) = unbounded_channel();
            let (driver, reports) = (Driver::new(machine), Reports::new(to));
            let mut shown = Shown { driver, reports, told, version: 1 };
            let seen = (0..apps).map(|_| Some(Arc::new(fresh()))).collect();
            shown.step(Input::Listed { seen, held: false, clock: Clock::default() });
            shown
        }

        /// What the run wants done. Refreshes have ended at once.
        fn step(&mut self, input: Input) -> Vec<Effect> {
            let looked_at = input.app();
            let Output { events, effects } = self.driver.step(Time::START, input).unwrap();
            self.reports.tell(&self.driver, looked_at, &events);
            let mut wanted = Vec::new();
            for effect in effects {
                if let Effect::Refresh { app, number } = effect {
                    let answer = Answer::Refreshed { number };
                    wanted.extend(self.step(Input::Answered { app, answer }));
                } else {
                    wanted.push(effect);
                }
            }
            wanted
        }

        fn app(&self, at: usize) -> AppIx {
            self.driver.machine().plan().graph.apps().nth(at).unwrap()
        }

        /// Its sync is sent; the operation.
        fn admit(&mut self, app: AppIx) -> Option<OperationId> {
            let effects = self.step(Input::Admitted { app });
            effects.into_iter().find_map(|effect| match effect {
                Effect::Sync { operation, number, .. } => {
                    let answer = SyncAnswer::Accepted { version: 1 };
                    let answer = Answer::Sync { number, answer };
                    self.step(Input::Answered { app, answer });
                    Some(operation)
                }
                _ => None,
            })
        }

        fn see(&mut self, app: AppIx, seen: Observation) {
            self.version += 1;
            let seen = Arc::new(Observation { version: self.version, ..seen });
            self.step(Input::Observed { app, version: self.version, seen: Some(seen) });
        }

        /// All that is new.
        fn told(&mut self) -> Vec<String> {
            let mut told = Vec::new();
            while let Ok((app, NodeReport { phase, message })) = self.told.try_recv() {
                told.push(format!("{app} {phase:?}: {message}"));
            }
            told
        }
    }

    fn by_us(id: &OperationId) -> Operation {
        Operation { id: Some(id.clone()), by: tiphys_run::Initiator::Named("tiphys".into()) }
    }

    #[test]
    fn a_node_shows_what_its_app_waits_for_and_how_it_ended() {
        let mut shown = Shown::new();
        let first = shown.app(0);
        let name = name(&shown.driver, first).to_string();
        shown.told();
        let operation = shown.admit(first).expect("a sync");
        assert_eq!(shown.told(), [format!("{name} Pending: syncing")]);
        let progressing = synced(by_us(&operation));
        shown.see(first, Observation { health: Health::Progressing, ..progressing.clone() });
        assert_eq!(shown.told(), [format!("{name} Pending: converging: it is Progressing")]);
        shown.see(first, progressing);
        assert_eq!(shown.told(), [format!("{name} Succeeded: applied")]);
    }

    #[test]
    fn a_node_that_is_opened_too_early_waits_for_its_turn() {
        let mut shown = Shown::new();
        let second = shown.app(1);
        let name = name(&shown.driver, second).to_string();
        let waits = format!("{name} Pending: waiting for its turn");
        assert!(shown.told().contains(&waits));
        assert_eq!(shown.admit(second), None, "INV-1");
        assert!(shown.told().is_empty(), "it still does");
    }
}
