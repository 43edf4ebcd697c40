//! Where a lab keeps its things.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// The folder of a lab, and the cache that outlives it.
#[derive(Debug, Clone)]
pub struct Home {
    folder: PathBuf,
    cache: PathBuf,
}

impl Home {
    /// `TIPHYS_LAB_HOME`, or a short path: sockets lie in it, and their paths have 108 bytes.
    #[must_use]
    pub fn from_environment() -> Self {
        let folder = env::var_os("TIPHYS_LAB_HOME")
            .map_or_else(|| PathBuf::from("/var/lib/tiphys-lab"), PathBuf::from);
        let cache = env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
            .unwrap_or_else(|| PathBuf::from("/var/cache"))
            .join("tiphys-lab");
        Home { folder, cache }
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    #[must_use]
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A folder inside, made if it is not there.
    pub(crate) fn make(&self, name: &str) -> Result<PathBuf, LabError> {
        let path = self.path(name);
        fs::create_dir_all(&path).map_err(LabError::file("could not make the folder", &path))?;
        Ok(path)
    }

    /// Writes a file inside, together with the folders above it.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<PathBuf, LabError> {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .map_err(LabError::file("could not make the folder", parent))?;
        }
        fs::write(&path, text).map_err(LabError::file("could not write", &path))?;
        Ok(path)
    }

    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.path("admin.kubeconfig")
    }

    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.path("audit/audit.log")
    }

    /// Manifests to be installed, as upstream publishes them.
    #[must_use]
    pub fn manifests(&self) -> PathBuf {
        self.path("manifests")
    }

    #[must_use]
    pub fn log(&self, process: &str) -> PathBuf {
        self.path("logs").join(format!("{process}.log"))
    }
}
