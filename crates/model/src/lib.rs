//! The words of Tiphys as types: names, platforms, the dependency graph, plans, exit codes.
//!
//! This crate knows no files, no cluster and no clock. Whatever enters it has been checked:
//! a [`Platform`] has no unknown names, no cycles and no impossible durations, so nothing
//! behind it has to ask again.

pub mod api_server;
pub mod bootstrap;
pub mod commit_status;
pub mod criterion;
pub mod cron;
pub mod deploy_policy;
pub mod duration;
pub mod exit;
pub mod explain;
pub mod glob;
pub mod graph;
pub mod health;
pub mod name;
pub mod namespaces;
pub mod operation;
pub mod plan;
pub mod platform;
mod schedule;
pub mod scope;
pub mod trigger;

pub use api_server::ApiServer;
pub use bootstrap::Bootstrap;
pub use commit_status::{CommitStatus, StatusProvider};
pub use criterion::Criterion;
pub use cron::{Cron, CronError};
pub use deploy_policy::{AllowWindow, DeployMode, DeployPolicy};
pub use exit::Exit;
pub use explain::{Explain, Explanation, chain};
pub use graph::{AppIx, Graph};
pub use health::{Health, SyncStatus};
pub use name::{
    AppName, GroupName, NameError, NamespaceName, PlatformName, SecretName, StackName, TriggerName,
};
pub use operation::OperationId;
pub use plan::{Plan, PlannedApp, Role};
pub use platform::{App, Platform};
pub use schedule::Schedule;
pub use scope::Scope;
pub use trigger::{
    Label, PushProvider, PushTrigger, ResourceTrigger, ScheduleTrigger, Trigger, TriggerAction,
    TriggerKind,
};
