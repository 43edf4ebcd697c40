//! Which Application a request to Argo CD is about.

use std::sync::Arc;

use crate::application::Application;

/// An Application by name, with what a request to Argo CD has to say besides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppAddress {
    pub name: Arc<str>,
    pub project: Arc<str>,
    /// Empty: Argo CD's own namespace.
    pub namespace: Arc<str>,
}

impl AppAddress {
    /// An Application in Argo CD's own namespace.
    #[must_use]
    pub fn own(name: &str, project: &str) -> Self {
        AppAddress { name: name.into(), project: project.into(), namespace: Arc::default() }
    }
}

impl Application {
    #[must_use]
    pub fn address(&self) -> AppAddress {
        AppAddress {
            name: self.name().into(),
            project: self.spec.project.as_str().into(),
            namespace: self.namespace().into(),
        }
    }
}
