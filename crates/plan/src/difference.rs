//! What changes from one plan to another: apps, edges, order, timing, settings.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tiphys_model::duration::format as human;
use tiphys_model::{AppIx, Plan, PlatformName};

use crate::document::API_VERSION;

/// `plan --diff -o json` prints it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanDifference {
    api_version: &'static str,
    kind: &'static str,
    pub platform: PlatformName,
    pub digest: Change<String>,
    pub apps: Change<usize>,
    pub added: Vec<NewApp>,
    pub removed: Vec<String>,
    /// Apps of both plans that are not described alike.
    pub changed: Vec<ChangedApp>,
    /// Apps of both plans that would start at another time.
    pub starts: Vec<Start>,
    /// Settings of the platform as a whole.
    pub settings: Vec<Setting>,
    pub estimate_seconds: Change<u64>,
    pub critical_path: Change<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change<T> {
    pub old: T,
    pub new: T,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewApp {
    pub name: String,
    pub stack: String,
    pub layer: u32,
    pub depends_on: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedApp {
    pub name: String,
    pub fields: Vec<Setting>,
    pub new_dependencies: Vec<String>,
    pub old_dependencies: Vec<String>,
}

/// A value, in the words of the platform file.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    pub field: &'static str,
    #[serde(flatten)]
    pub value: Change<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Start {
    pub name: String,
    #[serde(flatten)]
    pub seconds: Change<u64>,
}

impl PlanDifference {
    #[must_use]
    pub fn new(old: &Plan, new: &Plan) -> Self {
        let (before, after) = (by_name(old), by_name(new));
        let both = || after.iter().filter_map(|(name, at)| Some((*name, *before.get(name)?, *at)));
        let start = |(name, old_at, new_at): (&str, AppIx, AppIx)| Start {
            name: name.to_owned(),
            seconds: Change {
                old: old.app(old_at).start.as_secs(),
                new: new.app(new_at).start.as_secs(),
            },
        };
        PlanDifference {
            api_version: API_VERSION,
            kind: "PlanDifference",
            platform: new.platform.clone(),
            digest: Change {
                old: old.digest.as_str().to_owned(),
                new: new.digest.as_str().to_owned(),
            },
            apps: Change { old: before.len(), new: after.len() },
            added: new
                .graph
                .apps()
                .filter(|at| !before.contains_key(name(new, *at)))
                .map(|at| NewApp {
                    name: name(new, at).to_owned(),
                    stack: new.app(at).app.stack.to_string(),
                    layer: new.app(at).layer,
                    depends_on: dependencies(new, at).into_iter().collect(),
                })
                .collect(),
            removed: (before.keys().filter(|name| !after.contains_key(*name)))
                .map(|name| (*name).to_owned())
                .collect(),
            changed: both().filter_map(|(_, from, to)| changed((old, from), (new, to))).collect(),
            starts: both().map(start).filter(|start| start.seconds.is_one()).collect(),
            settings: settings(&of_platform(old), &of_platform(new)),
            estimate_seconds: Change { old: old.estimate.as_secs(), new: new.estimate.as_secs() },
            critical_path: Change { old: critical_path(old), new: critical_path(new) },
        }
    }

    /// Whether both are the same plan.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.digest.is_one()
    }
}

impl<T: PartialEq> Change<T> {
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.old != self.new
    }
}

fn by_name(plan: &Plan) -> BTreeMap<&str, AppIx> {
    plan.graph.apps().map(|at| (name(plan, at), at)).collect()
}

fn name(plan: &Plan, at: AppIx) -> &str {
    plan.app(at).app.name.as_str()
}

fn critical_path(plan: &Plan) -> Vec<String> {
    plan.critical_path.iter().map(|at| name(plan, *at).to_owned()).collect()
}

/// As annotations write them: `?` means optional.
fn dependencies(plan: &Plan, at: AppIx) -> BTreeSet<String> {
    let dependencies = plan.app(at).app.dependencies.iter();
    dependencies
        .map(|one| format!("{}{}", name(plan, one.app), if one.optional { "?" } else { "" }))
        .collect()
}

fn changed((old, from): (&Plan, AppIx), (new, to): (&Plan, AppIx)) -> Option<ChangedApp> {
    let (before, after) = (dependencies(old, from), dependencies(new, to));
    let app = ChangedApp {
        name: name(new, to).to_owned(),
        fields: settings(&of_app(old, from), &of_app(new, to)),
        new_dependencies: after.difference(&before).cloned().collect(),
        old_dependencies: before.difference(&after).cloned().collect(),
    };
    let same =
        app.fields.is_empty() && app.new_dependencies.is_empty() && app.old_dependencies.is_empty();
    (!same).then_some(app)
}

type Values = Vec<(&'static str, String)>;

fn settings(old: &Values, new: &Values) -> Vec<Setting> {
    let pairs = old.iter().zip(new).filter(|((_, old), (_, new))| old != new);
    pairs
        .map(|((field, old), (_, new))| Setting {
            field,
            value: Change { old: old.clone(), new: new.clone() },
        })
        .collect()
}

/// Everything that the plan says of an app but its dependencies, always in the same order.
fn of_app(plan: &Plan, at: AppIx) -> Values {
    let planned = plan.app(at);
    let app = &planned.app;
    let backoff = app.retry.backoff;
    vec![
        ("stack", app.stack.to_string()),
        ("type", app.app_type.as_str().to_owned()),
        ("layer", planned.layer.to_string()),
        ("typical", human(app.typical)),
        (
            "group",
            app.group.map_or("none".to_owned(), |at| plan.policies.groups[at].name.to_string()),
        ),
        ("timeouts.sync", human(app.timeouts.sync)),
        ("timeouts.health", human(app.timeouts.health)),
        ("retry.limit", app.retry.limit.to_string()),
        ("retry.backoff.duration", human(backoff.duration)),
        ("retry.backoff.factor", backoff.factor.to_string()),
        ("retry.backoff.max", human(backoff.max)),
        ("tolerateDrift", list(&app.tolerate_drift)),
        ("health", list(&app.health.iter().map(json).collect::<Vec<_>>())),
    ]
}

fn of_platform(plan: &Plan) -> Values {
    let policies = &plan.policies;
    let groups = policies.groups.iter();
    let groups: Vec<String> = groups.map(|g| format!("{} {}", g.name, g.concurrency)).collect();
    vec![
        ("name", plan.platform.to_string()),
        ("concurrency", policies.concurrency.to_string()),
        ("groups", list(&groups)),
        ("hold", policies.hold.as_str().to_owned()),
        ("timeout", human(policies.timeout)),
    ]
}

fn list(of: &[String]) -> String {
    if of.is_empty() { "none".to_owned() } else { of.join(", ") }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a criterion is plain JSON")
}
