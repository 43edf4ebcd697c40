//! The first line: which run it is, and the graph that it works through, so that a log explains
//! itself.

use serde::{Deserialize, Serialize};
use tiphys_model::plan::Digest;
use tiphys_model::{AppIx, AppName, Plan, PlatformName, Scope, StackName};

use crate::machine::Action;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStarted {
    pub run: String,
    pub action: Action,
    pub engine: EngineName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    pub platform: PlatformName,
    pub scope: Scope,
    pub plan: Digest,
    /// In plan order: every app after all that it depends on.
    pub graph: Vec<GraphApp>,
}

/// What executes a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineName {
    Simulated,
    Local,
    Workflows,
}

impl EngineName {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            EngineName::Simulated => "simulated",
            EngineName::Local => "local",
            EngineName::Workflows => "workflows",
        }
    }
}

/// An app of the graph, with what views need to know of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphApp {
    pub app: AppName,
    pub stack: StackName,
    pub layer: u32,
    pub depends_on: Vec<AppName>,
    /// How long a run typically spends on it: nothing on an app outside the scope.
    pub typical_seconds: u64,
}

impl GraphApp {
    pub(crate) fn new(plan: &Plan, at: AppIx) -> Self {
        let planned = plan.app(at);
        let dependencies = planned.app.dependencies.iter();
        GraphApp {
            app: planned.app.name.clone(),
            stack: planned.app.stack.clone(),
            layer: planned.layer,
            depends_on: dependencies.map(|d| plan.app(d.app).app.name.clone()).collect(),
            typical_seconds: planned.typical().as_secs(),
        }
    }
}
