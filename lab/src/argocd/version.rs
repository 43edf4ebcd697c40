//! The versions of Argo CD that the lab can run.

use std::fmt;

/// An Argo CD by its minor version. The module of the lab pins the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArgoCdVersion {
    #[default]
    V3_2,
    V3_5,
}

impl ArgoCdVersion {
    pub const ALL: [ArgoCdVersion; 2] = [ArgoCdVersion::V3_2, ArgoCdVersion::V3_5];

    /// The module that it is built from, and the binary that comes of it.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            ArgoCdVersion::V3_2 => "argocd",
            ArgoCdVersion::V3_5 => "argocd-3.5",
        }
    }
}

impl fmt::Display for ArgoCdVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArgoCdVersion::V3_2 => "3.2",
            ArgoCdVersion::V3_5 => "3.5",
        })
    }
}
