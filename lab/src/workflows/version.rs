//! The versions of Argo Workflows that the lab can run.

use std::fmt;

/// An Argo Workflows by its minor version. The module of the lab pins the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkflowsVersion {
    #[default]
    V3_7,
    V4_0,
}

impl WorkflowsVersion {
    pub const ALL: [WorkflowsVersion; 2] = [WorkflowsVersion::V3_7, WorkflowsVersion::V4_0];

    /// The module of the lab that it is built from.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            WorkflowsVersion::V3_7 => "workflows",
            WorkflowsVersion::V4_0 => "workflows-4.0",
        }
    }

    /// Upstream's module.
    pub(crate) fn module(self) -> &'static str {
        match self {
            WorkflowsVersion::V3_7 => "github.com/argoproj/argo-workflows/v3",
            WorkflowsVersion::V4_0 => "github.com/argoproj/argo-workflows/v4",
        }
    }

    /// What the binary of one of its programs is called among those of the lab.
    pub(crate) fn binary(self, program: &str) -> String {
        match self {
            WorkflowsVersion::V3_7 => program.to_owned(),
            WorkflowsVersion::V4_0 => format!("{program}-4.0"),
        }
    }
}

impl fmt::Display for WorkflowsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WorkflowsVersion::V3_7 => "3.7",
            WorkflowsVersion::V4_0 => "4.0",
        })
    }
}
