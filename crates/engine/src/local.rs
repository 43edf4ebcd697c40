//! The local engine: the driver in this process, one watch, and requests to Argo CD.

mod drive;
mod effects;
mod frozen;
mod gatekeeper;
mod gone;
mod probe_schedule;
#[cfg(test)]
mod tests;
mod windows;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tiphys_model::AppIx;
use tiphys_run::{Driver, Event, Machine, Time, Verdict};
use tiphys_state::lease::Lease;
use tiphys_state::tolerance::Tolerance;
use tokio::sync::mpsc::unbounded_channel;

use crate::engine::{RunError, Setup};
use crate::kubernetes_events::EventPublisher;
use crate::run_update::RunUpdate;
use crate::signals::Signals;
use drive::Local;
use effects::Effects;
pub(crate) use gatekeeper::{Admission, Gatekeeper, Reports};
use probe_schedule::{ProbeSchedule, Probes};
use tiphys_argocd::watch;
use tiphys_evidence::EvidenceCollector;

/// Runs to the end, or until the Lease ends.
pub(crate) async fn run(
    setup: Setup,
    gatekeeper: Option<Gatekeeper>,
    lease: &Lease,
    signals: &mut Signals,
    events: &dyn Fn(Time, Event),
    updates: &dyn Fn(RunUpdate),
) -> Result<Verdict, RunError> {
    let names: BTreeMap<String, AppIx> = setup
        .plan
        .graph
        .apps()
        .map(|app| (setup.plan.app(app).app.name.as_str().to_owned(), app))
        .collect();
    let watched: BTreeSet<String> = names.keys().cloned().collect();
    let seen = watch::applications(&setup.applications, watched);
    let (incoming, inbox) = unbounded_channel();
    let publisher = EventPublisher::start(setup.client.clone(), setup.run);
    let probes = Probes::new(setup.prober, EvidenceCollector::with(&setup.client, &setup.argocd));
    let schedule = ProbeSchedule::new(setup.plan.clone(), setup.action, probes.scope());
    let hold = setup.hold.clone();
    let effects = Effects {
        probes,
        applications: setup.applications,
        argocd: setup.argocd,
        hold: setup.hold,
        fence: lease.fence(),
        thaws: frozen::Thaws::default(),
        known: std::sync::Mutex::default(),
        app_resources: setup.app_resources,
    };
    let machine = Machine::new(setup.plan.clone(), setup.action, lease.epoch());
    let (machine, reports, admissions) = match gatekeeper {
        Some(Gatekeeper { reports, admissions }) => {
            (machine.with_admission(), Some(reports), Some(admissions))
        }
        None => (machine, None, None),
    };
    let local = Local {
        reports,
        driver: Driver::new(machine),
        began: drive::now(),
        first: Some(vec![None; names.len()]),
        first_probes: None,
        schedule,
        names,
        effects: Arc::new(effects),
        incoming,
        publisher,
        events,
        updates,
        held: setup.held,
        clock: setup.clock,
        going: BTreeSet::new(),
        watch: Tolerance::new(watch::LONGEST_GAP),
        requests: BTreeMap::new(),
        denied: BTreeMap::new(),
    };
    let warn = |warning| updates(RunUpdate::Warning(warning));
    let ended = tokio::select! {
        ended = local.drive(seen, inbox, admissions, lease, signals) => ended,
        error = hold.watch(&warn) => Err(error.into()),
    };
    hold.warnings().into_iter().for_each(warn);
    ended
}
