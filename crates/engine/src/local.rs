//! The local engine: the driver in this process, one watch, and requests to Argo CD.

mod announce;
mod closer;
mod drive;
mod effects;
mod pace;
mod thaw;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use kube::Api;
use tiphys_model::AppIx;
use tiphys_run::{Driver, Event, Machine, Time, Verdict};
use tokio::sync::mpsc::unbounded_channel;

use crate::engine::Setup;
use crate::lease::Lease;
use crate::news::News;
use crate::signals::Signals;
use announce::Announcer;
use closer::{Closer, Eyes};
use drive::Local;
use effects::Hands;
use tiphys_argocd::watch;
use tiphys_cluster::ClusterError;
use tiphys_evidence::Witness;

/// Runs to the end, and renews the Lease meanwhile.
pub(crate) async fn run(
    setup: Setup,
    lease: &mut Lease,
    signals: &mut Signals,
    events: &dyn Fn(Time, Event),
    news: &dyn Fn(News),
) -> Result<Verdict, ClusterError> {
    let names: BTreeMap<String, AppIx> = setup
        .plan
        .graph
        .apps()
        .map(|app| (setup.plan.app(app).app.name.as_str().to_owned(), app))
        .collect();
    let watched: BTreeSet<String> = names.keys().cloned().collect();
    let seen = watch::applications(setup.client.clone(), &setup.namespace, watched);
    let (returned, inbox) = unbounded_channel();
    let announcer = Announcer::start(setup.client.clone(), setup.run);
    let eyes = Eyes::new(setup.prober, Witness::with(&setup.client, &setup.argocd));
    let closer = Closer::new(setup.plan.clone(), setup.action, eyes.sees());
    let hands = Hands {
        eyes,
        applications: Api::namespaced(setup.client, &setup.namespace),
        argocd: setup.argocd,
        hold: setup.hold,
        fence: lease.fence(),
        pace: pace::Pace::new(),
        thaw: thaw::Thaw::default(),
        known: std::sync::Mutex::default(),
        belongings: setup.belongings,
    };
    let machine = Machine::new(setup.plan.clone(), setup.action, lease.epoch());
    let local = Local {
        driver: Driver::new(machine),
        began: Instant::now(),
        first: Some(vec![None; names.len()]),
        first_looks: None,
        closer,
        names,
        hands: Arc::new(hands),
        returned,
        announcer,
        events,
        news,
        held: setup.held,
    };
    local.drive(seen, inbox, lease, signals).await
}
