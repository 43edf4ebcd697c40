//! Gitea: a Git server with an API and webhooks, for tests that start one as a process of their own.

use std::path::PathBuf;

use crate::artifacts::Artifacts;
use crate::error::LabError;
use crate::home::Home;
use crate::{go, packages};

const MODULE: &str = "code.gitea.io/gitea";

/// The program, and the folder of the files that it needs.
#[derive(Debug, Clone)]
pub struct Gitea {
    pub program: PathBuf,
    pub files: PathBuf,
}

impl Gitea {
    /// Builds it if it has not been built yet, which takes minutes.
    pub fn build(say: &dyn Fn(&str)) -> Result<Self, LabError> {
        let artifacts = Artifacts::new(&Home::from_environment());
        go::require(artifacts.modules())?;
        packages::ensure(&[("gcc", "/usr/bin/gcc")], &[])?;
        artifacts.build(&["gitea"], say)?;
        Ok(Gitea { program: artifacts.binary("gitea")?, files: artifacts.source("gitea", MODULE)? })
    }
}
