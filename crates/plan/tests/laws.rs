//! What every plan keeps to, on random platforms and scopes, with petgraph as the oracle.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

mod common;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use petgraph::algo::{bellman_ford, has_path_connecting};
use petgraph::graph::{DiGraph, NodeIndex};
use proptest::prelude::*;
use tiphys_model::{App, AppIx, Plan, PlannedApp, Platform, Role, Scope};
use tiphys_plan::Reach;

use crate::common::{platforms, scoped_platforms};

fn plan(platform: &Platform, scope: &Scope) -> Plan {
    tiphys_plan::plan(platform, scope).unwrap()
}

/// The apps of a platform that a scope concerns, found the slow way, and what they wait for.
struct Oracle<'a> {
    platform: &'a Platform,
    roles: BTreeMap<AppIx, Role>,
}

impl<'a> Oracle<'a> {
    fn new(platform: &'a Platform, scope: &Scope) -> Self {
        let all = || (0..platform.apps.len()).map(AppIx::new);
        let mut graph: DiGraph<(), ()> = DiGraph::new();
        all().for_each(|_| {
            graph.add_node(());
        });
        for at in all() {
            for dependency in &platform.apps[at.position()].dependencies {
                graph.add_edge(node(dependency.app), node(at), ());
            }
        }
        let inside = |at: &AppIx| {
            let app = &platform.apps[at.position()];
            scope.covers(app)
        };
        let path = |from: AppIx, to: AppIx| has_path_connecting(&graph, node(from), node(to), None);
        let role = |at: AppIx| {
            let needed = all().filter(inside).any(|i| graph.contains_edge(node(at), node(i)));
            let after = all().filter(inside).any(|i| path(i, at));
            let before = all().filter(inside).any(|i| path(at, i));
            match (inside(&at), needed || after && before) {
                (true, _) => Some((at, Role::Act)),
                (false, true) => Some((at, Role::Verify)),
                (false, false) => None,
            }
        };
        Oracle { platform, roles: all().filter_map(role).collect() }
    }

    fn app(&self, at: AppIx) -> &'a App {
        &self.platform.apps[at.position()]
    }

    fn time(&self, at: AppIx) -> Duration {
        match self.roles[&at] {
            Role::Act => self.app(at).typical,
            Role::Verify => Duration::ZERO,
        }
    }

    fn dependencies(&self, at: AppIx) -> Vec<AppIx> {
        let all = self.app(at).dependencies.iter().map(|d| d.app);
        all.filter(|d| self.roles.contains_key(d)).collect()
    }

    /// Longest ways from a node before all others, as shortest ways of negated lengths.
    fn longest(&self, edges: impl Iterator<Item = (AppIx, AppIx, f64)>) -> BTreeMap<AppIx, f64> {
        let mut graph: DiGraph<(), f64> = DiGraph::new();
        self.platform.apps.iter().for_each(|_| {
            graph.add_node(());
        });
        let before_all = graph.add_node(());
        for at in self.roles.keys() {
            graph.add_edge(before_all, node(*at), 0.0);
        }
        for (from, to, length) in edges {
            graph.add_edge(node(from), node(to), -length);
        }
        let ways = bellman_ford(&graph, before_all).expect("a platform has no cycles");
        self.roles.keys().map(|at| (*at, -ways.distances[node(*at).index()])).collect()
    }

    fn layers(&self) -> BTreeMap<AppIx, f64> {
        let edges = self.roles.keys().flat_map(|at| {
            self.dependencies(*at).into_iter().map(|dependency| (dependency, *at, 1.0))
        });
        self.longest(edges)
    }

    fn ranks(&self) -> BTreeMap<AppIx, Duration> {
        let edges = self.roles.keys().flat_map(|at| {
            let time = self.time(*at).as_secs_f64();
            self.dependencies(*at).into_iter().map(move |dependency| (*at, dependency, time))
        });
        let behind = self.longest(edges);
        let whole = |(at, behind)| (at, self.time(at) + Duration::from_secs_f64(behind));
        behind.into_iter().map(whole).collect()
    }

    /// Plays the run through, looking at every app at every moment: the order of the starts, and
    /// their times.
    fn play(&self, priorities: &BTreeMap<AppIx, u32>) -> Vec<(AppIx, Duration)> {
        let policies = &self.platform.policies;
        let mut started: Vec<(AppIx, Duration)> = Vec::new();
        let mut ended: Vec<AppIx> = Vec::new();
        let mut now = Duration::ZERO;
        loop {
            let running = || started.iter().filter(|(at, _)| !ended.contains(at));
            let room = |at: AppIx| {
                let free = running().count() < policies.concurrency.get() as usize;
                let group_free = self.app(at).group.is_none_or(|group| {
                    let members = running().filter(|(r, _)| self.app(*r).group == Some(group));
                    members.count() < policies.groups[group].concurrency.get() as usize
                });
                free && group_free
            };
            let waiting = self.roles.keys().filter(|at| !started.iter().any(|(s, _)| s == *at));
            let ready = waiting.filter(|at| {
                room(**at) && self.dependencies(**at).iter().all(|d| ended.contains(d))
            });
            if let Some(next) = ready.min_by_key(|at| priorities[*at]) {
                started.push((*next, now));
                continue;
            }
            let ends: Vec<(Duration, AppIx)> =
                running().map(|(at, start)| (*start + self.time(*at), *at)).collect();
            let Some((soonest, _)) = ends.iter().min() else { return started };
            now = *soonest;
            ended.extend(ends.iter().filter(|(end, _)| *end == now).map(|(_, at)| *at));
        }
    }
}

fn node(at: AppIx) -> NodeIndex {
    NodeIndex::new(at.position())
}

/// The platform's number for an app of a plan.
fn original(platform: &Platform, planned: &PlannedApp) -> AppIx {
    let position = platform.apps.iter().position(|app| app.name == planned.app.name);
    AppIx::new(position.expect("a plan has no apps of its own"))
}

fn by_original<T>(
    platform: &Platform,
    plan: &Plan,
    value: impl Fn(&PlannedApp) -> T,
) -> BTreeMap<AppIx, T> {
    plan.apps.iter().map(|planned| (original(platform, planned), value(planned))).collect()
}

/// What can be reached from some apps, they themselves included.
fn closure(
    platform: &Platform,
    from: impl Fn(&AppIx) -> bool,
    next: impl Fn(AppIx) -> Vec<AppIx>,
) -> BTreeSet<AppIx> {
    let mut open: Vec<AppIx> = (0..platform.apps.len()).map(AppIx::new).filter(from).collect();
    let mut found = BTreeSet::new();
    while let Some(app) = open.pop() {
        if found.insert(app) {
            open.extend(next(app));
        }
    }
    found
}

proptest! {
    #[test]
    fn scope_deploys_what_is_inside_and_verifies_what_is_needed_or_between(
        (platform, scope) in scoped_platforms(),
    ) {
        let roles = by_original(&platform, &plan(&platform, &scope), |planned| planned.role);
        prop_assert_eq!(roles, Oracle::new(&platform, &scope).roles);
    }

    #[test]
    fn with_dependencies_all_that_the_scope_needs_is_deployed_and_nothing_else(
        (platform, scope) in scoped_platforms(),
    ) {
        let plan = tiphys_plan::plan_reaching(&platform, &scope, Reach::WithDependencies).unwrap();
        let roles = by_original(&platform, &plan, |planned| planned.role);
        let deployment = Oracle::new(&platform, &scope).roles;
        let inside = |app: &AppIx| deployment.get(app) == Some(&Role::Act);
        let needed = closure(&platform, inside, |app| platform.graph.dependencies(app).to_vec());
        let deployed = roles.iter().filter(|(_, role)| **role == Role::Act);
        prop_assert_eq!(deployed.map(|(app, _)| *app).collect::<BTreeSet<_>>(), needed);
        prop_assert!(roles.values().all(|role| *role == Role::Act));
    }

    #[test]
    fn a_removal_looks_at_what_depends_on_the_scope_or_lies_between(
        (platform, scope) in scoped_platforms(),
    ) {
        let plan = tiphys_plan::plan_reaching(&platform, &scope, Reach::Removal).unwrap();
        let roles = by_original(&platform, &plan, |planned| planned.role);
        let deployment = Oracle::new(&platform, &scope).roles;
        let removed = |app: &AppIx| deployment.get(app) == Some(&Role::Act);
        let below = closure(&platform, removed, |app| platform.graph.dependencies(app).to_vec());
        let above = closure(&platform, removed, |app| platform.graph.dependants(app).to_vec());
        for app in (0..platform.apps.len()).map(AppIx::new) {
            let dependant = platform.graph.dependencies(app).iter().any(removed);
            let between = below.contains(&app) && above.contains(&app);
            let expected = match (removed(&app), dependant || between) {
                (true, _) => Some(Role::Act),
                (false, true) => Some(Role::Verify),
                (false, false) => None,
            };
            prop_assert_eq!(roles.get(&app).copied(), expected);
        }
    }

    #[test]
    fn with_dependents_nothing_that_depends_on_the_scope_is_left(
        (platform, scope) in scoped_platforms(),
    ) {
        let reach = Reach::RemovalWithDependents;
        let plan = tiphys_plan::plan_reaching(&platform, &scope, reach).unwrap();
        let roles = by_original(&platform, &plan, |planned| planned.role);
        let deployment = Oracle::new(&platform, &scope).roles;
        let inside = |app: &AppIx| deployment.get(app) == Some(&Role::Act);
        let above = closure(&platform, inside, |app| platform.graph.dependants(app).to_vec());
        prop_assert_eq!(roles.keys().copied().collect::<BTreeSet<_>>(), above);
        prop_assert!(roles.values().all(|role| *role == Role::Act));
    }

    #[test]
    fn chosen_apps_are_removed_like_those_of_a_scope(
        (platform, scope) in scoped_platforms(),
    ) {
        let scoped = tiphys_plan::plan_reaching(&platform, &scope, Reach::Removal).unwrap();
        let removed = scoped.apps.iter().filter(|app| app.role == Role::Act);
        let names = removed.map(|app| app.app.name.clone()).collect();
        let chosen = tiphys_plan::plan_removal(&platform, &names).unwrap();
        prop_assert_eq!(chosen.apps, scoped.apps);
        prop_assert_eq!(tiphys_plan::plan_removal(&platform, &BTreeSet::new()), None);
    }

    #[test]
    fn apps_are_the_platforms_with_the_edges_inside_the_plan((platform, scope) in scoped_platforms()) {
        let plan = plan(&platform, &scope);
        let selected = by_original(&platform, &plan, |_| ());
        for (at, planned) in plan.apps.iter().enumerate() {
            let mut renumbered = planned.app.clone();
            for dependency in &mut renumbered.dependencies {
                dependency.app = original(&platform, plan.app(dependency.app));
            }
            let mut expected = platform.apps[original(&platform, planned).position()].clone();
            expected.dependencies.retain(|dependency| selected.contains_key(&dependency.app));
            prop_assert_eq!(renumbered, expected);
            let mut edges: Vec<AppIx> = planned.app.dependencies.iter().map(|d| d.app).collect();
            edges.sort();
            prop_assert_eq!(plan.graph.dependencies(AppIx::new(at)), edges);
        }
    }

    #[test]
    fn start_order_is_topological((platform, scope) in scoped_platforms()) {
        let plan = plan(&platform, &scope);
        for app in plan.graph.apps() {
            for dependency in plan.graph.dependencies(app) {
                let dependency_ends = plan.app(*dependency).start + plan.app(*dependency).typical();
                prop_assert!(*dependency < app);
                prop_assert!(dependency_ends <= plan.app(app).start);
            }
        }
    }

    #[test]
    fn layer_is_the_longest_depth((platform, scope) in scoped_platforms()) {
        let layers =
            by_original(&platform, &plan(&platform, &scope), |planned| f64::from(planned.layer));
        prop_assert_eq!(layers, Oracle::new(&platform, &scope).layers());
    }

    #[test]
    fn rank_is_the_longest_remaining_path((platform, scope) in scoped_platforms()) {
        let ranks = by_original(&platform, &plan(&platform, &scope), |planned| planned.rank);
        prop_assert_eq!(ranks, Oracle::new(&platform, &scope).ranks());
    }

    #[test]
    fn priority_is_rank_then_name((platform, scope) in scoped_platforms()) {
        let priorities = by_original(&platform, &plan(&platform, &scope), |planned| planned.priority);
        let ranks = Oracle::new(&platform, &scope).ranks();
        let mut expected: Vec<AppIx> = ranks.keys().copied().collect();
        expected.sort_by_key(|at| (Reverse(ranks[at]), &platform.apps[at.position()].name));
        prop_assert_eq!(priorities, expected.into_iter().zip(0..).collect());
    }

    #[test]
    fn critical_path_is_a_path_as_long_as_the_longest((platform, scope) in scoped_platforms()) {
        let plan = plan(&platform, &scope);
        for step in plan.critical_path.windows(2) {
            prop_assert!(plan.graph.dependencies(step[1]).contains(&step[0]));
        }
        let length: Duration = plan.critical_path.iter().map(|at| plan.app(*at).typical()).sum();
        let longest = Oracle::new(&platform, &scope).ranks().into_values().max();
        prop_assert_eq!(Some(length), longest);
    }

    #[test]
    fn schedule_is_that_of_a_run_played_through_slowly((platform, scope) in scoped_platforms()) {
        let plan = plan(&platform, &scope);
        let priorities = by_original(&platform, &plan, |planned| planned.priority);
        let played = Oracle::new(&platform, &scope).play(&priorities);
        let starts: Vec<(AppIx, Duration)> = plan
            .apps
            .iter()
            .map(|planned| (original(&platform, planned), planned.start))
            .collect();
        prop_assert_eq!(starts, played);
    }

    #[test]
    fn limits_are_never_exceeded((platform, scope) in scoped_platforms()) {
        let plan = plan(&platform, &scope);
        for moment in plan.apps.iter().map(|planned| planned.start) {
            let running: Vec<&PlannedApp> = plan
                .apps
                .iter()
                .filter(|p| p.start <= moment && moment < p.start + p.typical())
                .collect();
            prop_assert!(running.len() <= plan.policies.concurrency.get() as usize);
            for (at, group) in plan.policies.groups.iter().enumerate() {
                let members = running.iter().filter(|p| p.app.group == Some(at)).count();
                prop_assert!(members <= group.concurrency.get() as usize, "{}", group.name);
            }
        }
    }

    #[test]
    fn estimate_is_when_the_last_app_ends_and_the_critical_path_bounds_it(
        (platform, scope) in scoped_platforms(),
    ) {
        let plan = plan(&platform, &scope);
        let last = plan.apps.iter().map(|planned| planned.start + planned.typical()).max();
        prop_assert_eq!(Some(plan.estimate), last);
        prop_assert!(plan.estimate >= plan.app(plan.critical_path[0]).rank);
    }

    #[test]
    fn without_limits_the_estimate_is_the_critical_path(mut platform in platforms()) {
        let apps = u32::try_from(platform.apps.len()).unwrap();
        platform.policies.concurrency = NonZeroU32::new(apps).unwrap();
        platform.policies.groups.clear();
        platform.apps.iter_mut().for_each(|app| app.group = None);
        let plan = plan(&platform, &Scope::Platform);
        prop_assert_eq!(plan.estimate, plan.app(plan.critical_path[0]).rank);
    }
}
