//! Command-line tools for people and tests, in a folder for the `PATH`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cluster::Cluster;
use crate::error::LabError;

const TOOLS: [&str; 5] = ["helm", "kubectl", "kubeseal", "kustomize", "yq"];

impl Cluster {
    /// A folder with the tools, built if they are missing. It needs no cluster.
    pub fn tools(&self) -> Result<PathBuf, LabError> {
        self.require_go()?;
        self.artifacts().build(&["kubernetes", "tools", "commands"], self.teller())?;
        let folder = self.artifacts().cached("tools");
        fs::create_dir_all(&folder)
            .map_err(LabError::file("could not make the folder", &folder))?;
        for tool in TOOLS {
            link(&self.artifacts().binary(tool)?, &folder.join(tool))?;
        }
        Ok(folder)
    }
}

/// Makes or renews a link. One that is right is left alone: somebody may be about to run it.
fn link(target: &Path, link: &Path) -> Result<(), LabError> {
    if fs::read_link(link).is_ok_and(|now| now == target) {
        return Ok(());
    }
    // Made beside its place and moved there: at no moment is there none.
    let half = link.with_extension(format!("half-{}", std::process::id()));
    std::os::unix::fs::symlink(target, &half)
        .and_then(|()| fs::rename(&half, link))
        .map_err(LabError::file("could not link", link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_follows_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let tool = folder.path().join("tool");
        for version in ["1", "2", "2"] {
            link(Path::new(version), &tool).unwrap();
            assert_eq!(fs::read_link(&tool).unwrap(), Path::new(version));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
