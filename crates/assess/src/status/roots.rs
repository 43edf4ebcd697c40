//! Root causes: B is not well because A is not, by the graph and the times.

use std::collections::BTreeSet;

use tiphys_model::{AppIx, AppName, Graph, Plan};

use super::judge::{Judgement, State};
use super::{AppStatus, RootCause, Seen, Situation, timestamp};
use tiphys_run::Stamp;

/// So many seconds later is clearly later. Argo CD sees what happens to several apps one after
/// another, in any order.
const LATER: i64 = 30;

/// How an app stands to the causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Well,
    Root,
    /// That dependency leads to the nearest root cause.
    Because(AppIx),
}

pub(super) struct Roots {
    standing: Vec<Standing>,
    /// What is not well and is depended on, for each app that is not well.
    unwell: Vec<Vec<AppIx>>,
    /// Those of them that it may be unwell because of.
    suspects: Vec<Vec<AppIx>>,
}

impl Roots {
    /// An app that is not well, and depends on nothing that could be why, is a root cause.
    pub(super) fn find(
        graph: &Graph,
        judgements: &[Judgement],
        since: impl Fn(AppIx) -> Option<Stamp>,
    ) -> Self {
        let is_well = |app: AppIx| judgements[app.position()].is_well();
        // What came clearly later is no cause. Only of health the time is known.
        let came_later = |dependency: AppIx, app: AppIx| {
            let is_unhealthy = |app: AppIx| judgements[app.position()].state == State::Unhealthy;
            let times = since(dependency).zip(since(app));
            is_unhealthy(dependency)
                && is_unhealthy(app)
                && times.is_some_and(|(dependency, app)| dependency.0 - app.0 > LATER)
        };
        let mut unwell = vec![Vec::new(); graph.len()];
        let mut suspects = vec![Vec::new(); graph.len()];
        let mut standing = vec![Standing::Well; graph.len()];
        let mut distance = vec![0_u32; graph.len()];
        for app in graph.topological() {
            let at = app.position();
            if is_well(app) {
                continue;
            }
            unwell[at] = graph.dependencies(app).iter().copied().filter(|d| !is_well(*d)).collect();
            suspects[at] = unwell[at].iter().copied().filter(|d| !came_later(*d, app)).collect();
            // The nearest; among those the one in the worst state.
            let next = suspects[at].iter().copied().min_by_key(|dependency| {
                let at = dependency.position();
                (distance[at], judgements[at].state, *dependency)
            });
            distance[at] = next.map_or(0, |next| distance[next.position()] + 1);
            standing[at] = next.map_or(Standing::Root, Standing::Because);
        }
        Roots { standing, unwell, suspects }
    }

    /// From what `app` depends on to the root cause; empty if it is one, or is well.
    fn chain(&self, app: AppIx) -> Vec<AppIx> {
        let mut chain = Vec::new();
        let mut at = app;
        while let Standing::Because(next) = self.standing[at.position()] {
            chain.push(next);
            at = next;
        }
        chain
    }

    /// What is not well because of `root`, directly or not. An app that is well stops it, and so
    /// does one that was not well before.
    fn affected(&self, graph: &Graph, root: AppIx) -> BTreeSet<AppIx> {
        let mut affected = BTreeSet::new();
        let mut open = vec![root];
        while let Some(app) = open.pop() {
            for &dependant in graph.dependants(app) {
                let suspected = self.suspects[dependant.position()].contains(&app);
                if suspected && affected.insert(dependant) {
                    open.push(dependant);
                }
            }
        }
        affected
    }

    pub(super) fn apps(
        &self,
        plan: &Plan,
        judgements: &[Judgement],
        situation: &Situation,
        shown: impl Fn(&AppName) -> bool,
    ) -> Vec<AppStatus> {
        let apps = plan.graph.apps().filter(|app| shown(&plan.app(*app).app.name));
        apps.map(|app| {
            let seen = situation.seen.get(app.position()).and_then(Option::as_ref);
            self.app(plan, app, &judgements[app.position()], seen)
        })
        .collect()
    }

    fn app(
        &self,
        plan: &Plan,
        app: AppIx,
        judgement: &Judgement,
        seen: Option<&Seen>,
    ) -> AppStatus {
        let named = |app: &AppIx| plan.app(*app).app.name.clone();
        let planned = &plan.app(app).app;
        let since = seen.and_then(|seen| seen.health_since).and_then(timestamp);
        let seen = seen.map(|seen| &*seen.observation);
        let tolerated = |resource: &str| planned.tolerate_drift.iter().any(|t| t == resource);
        let drifted = seen.iter().flat_map(|seen| &seen.drifted);
        AppStatus {
            name: planned.name.clone(),
            state: judgement.state,
            health: seen.map(|seen| seen.health),
            sync: seen.map(|seen| seen.sync),
            revision: seen.map(|seen| seen.revisions.to_string()).filter(|text| !text.is_empty()),
            since,
            waiting_for: self.unwell[app.position()].iter().map(named).collect(),
            cause: judgement.cause.clone(),
            because: self.chain(app).iter().map(named).collect(),
            tolerated: drifted.map(|d| d.resource.clone()).filter(|r| tolerated(r)).collect(),
        }
    }

    /// The worst first, then the one that most others are not well because of.
    pub(super) fn causes(
        &self,
        plan: &Plan,
        judgements: &[Judgement],
        situation: &Situation,
        shown: impl Fn(&AppName) -> bool,
    ) -> Vec<RootCause> {
        let named = |app: AppIx| plan.app(app).app.name.clone();
        let is_root = |app: &AppIx| self.standing[app.position()] == Standing::Root;
        let mut causes: Vec<RootCause> = plan
            .graph
            .apps()
            .filter(is_root)
            .filter_map(|app| {
                let judgement = &judgements[app.position()];
                let affected = self.affected(&plan.graph, app);
                let affects: Vec<AppName> =
                    affected.into_iter().map(named).filter(|name| shown(name)).collect();
                let seen = situation.seen.get(app.position()).and_then(Option::as_ref);
                let root = self.app(plan, app, judgement, seen);
                (shown(&root.name) || !affects.is_empty()).then(|| RootCause {
                    since: root.ailing_since(),
                    app: root.name,
                    state: root.state,
                    cause: root.cause.unwrap_or_default(),
                    affects,
                })
            })
            .collect();
        causes.sort_by_key(|cause| (cause.state, std::cmp::Reverse(cause.affects.len())));
        causes
    }
}
