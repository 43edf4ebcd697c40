//! An app in the deployed graph: all that a platform file says of it, and the edges of its last
//! Done.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tiphys_model::platform::{App, AppType, Backoff, Dependency, Policies, Retry, Timeouts};
use tiphys_model::{AppIx, AppName, Criterion, Plan, StackName};

/// An app, as it was when a run last set out to deploy it. Fields that an older Tiphys did not
/// write are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeployedApp {
    pub stack: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub app_type: Option<AppType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub sync_seconds: u64,
    pub health_seconds: u64,
    pub typical_seconds: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<DeployedRetry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerate_drift: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Vec<Criterion>>,
    /// The edges of its last Done; none if it never was.
    pub done: Option<BTreeSet<String>>,
    /// The edges of the run that began last.
    pub planned: BTreeSet<String>,
    /// Those of them that the platform file calls optional.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub optional: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeployedRetry {
    limit: u32,
    backoff_seconds: u64,
    factor: u32,
    max_seconds: u64,
}

impl DeployedApp {
    /// As a plan says; `done` are the edges of its last Done.
    pub(super) fn planned(plan: &Plan, at: AppIx, done: Option<BTreeSet<String>>) -> Self {
        let app = &plan.app(at).app;
        let group = app.group.map(|group| plan.policies.groups[group].name.to_string());
        let name = |at: AppIx| plan.app(at).app.name.to_string();
        let optional = app.dependencies.iter().filter(|dependency| dependency.optional);
        DeployedApp {
            stack: app.stack.to_string(),
            app_type: Some(app.app_type),
            group,
            sync_seconds: app.timeouts.sync.as_secs(),
            health_seconds: app.timeouts.health.as_secs(),
            typical_seconds: app.typical.as_secs(),
            retry: Some(app.retry.into()),
            tolerate_drift: app.tolerate_drift.clone(),
            health: Some(app.health.clone()),
            done,
            planned: plan.graph.dependencies(at).iter().map(|at| name(*at)).collect(),
            optional: optional.map(|dependency| name(dependency.app)).collect(),
        }
    }

    /// What it was deployed after, and what a run that may have died would deploy it after: as far
    /// as that run came, both hold.
    pub(super) fn dependencies(&self) -> BTreeSet<&str> {
        let done = self.done.iter().flatten();
        done.chain(&self.planned).map(String::as_str).collect()
    }

    /// The app as a run needs it; nothing, if no app has such a name. `dependencies` are positions
    /// with their names.
    pub(super) fn restored<'a>(
        &self,
        name: &str,
        dependencies: impl Iterator<Item = (AppIx, &'a str)>,
        policies: &Policies,
    ) -> Option<App> {
        let position = |name: &String| policies.groups.iter().position(|g| g.name.as_str() == name);
        let dependency = |(app, name)| Dependency { app, optional: self.optional.contains(name) };
        Some(App {
            name: AppName::parse(name).ok()?,
            stack: StackName::parse(&self.stack).ok()?,
            app_type: self.app_type.unwrap_or_default(),
            // A group that is gone limits nothing.
            group: self.group.as_ref().and_then(position),
            typical: Duration::from_secs(self.typical_seconds),
            dependencies: dependencies.map(dependency).collect(),
            timeouts: Timeouts {
                sync: Duration::from_secs(self.sync_seconds),
                health: Duration::from_secs(self.health_seconds),
            },
            retry: self.retry.map(Retry::from).unwrap_or_default(),
            tolerate_drift: self.tolerate_drift.clone(),
            health: self.health.clone().unwrap_or_default(),
        })
    }
}

impl From<Retry> for DeployedRetry {
    fn from(Retry { limit, backoff }: Retry) -> Self {
        DeployedRetry {
            limit,
            backoff_seconds: backoff.duration.as_secs(),
            factor: backoff.factor,
            max_seconds: backoff.max.as_secs(),
        }
    }
}

impl From<DeployedRetry> for Retry {
    fn from(retry: DeployedRetry) -> Self {
        let backoff = Backoff {
            duration: Duration::from_secs(retry.backoff_seconds),
            factor: retry.factor,
            max: Duration::from_secs(retry.max_seconds),
        };
        Retry { limit: retry.limit, backoff }
    }
}
