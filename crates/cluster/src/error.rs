//! What can go wrong with a cluster: what, why, and what to do next.

use std::fmt;

use tiphys_model::Exit;

/// A failure for people. What failed is said by who asked; why, by who answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterError {
    pub kind: Kind,
    pub what: String,
    pub why: String,
    pub next: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What we were given is wrong, or something that must be there is not.
    Configuration,
    /// Credentials were rejected, or lack a right.
    Denied,
    NotFound,
    Unreachable,
    /// Somebody else changed it at the same time, or holds it.
    Conflict,
    Failed,
}

impl ClusterError {
    pub fn new(kind: Kind, what: impl Into<String>, why: impl Into<String>) -> Self {
        ClusterError { kind, what: what.into(), why: why.into(), next: None }
    }

    #[must_use]
    pub fn hint(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// For `map_err` on requests to the API server.
    pub fn kube(what: impl Into<String>) -> impl FnOnce(kube::Error) -> ClusterError {
        let what = what.into();
        move |error| from_kube(what, &error)
    }

    #[must_use]
    pub fn exit(&self) -> Exit {
        match self.kind {
            Kind::Configuration => Exit::Configuration,
            Kind::Denied => Exit::Credentials,
            Kind::NotFound => Exit::NotFound,
            Kind::Unreachable => Exit::Unreachable,
            Kind::Conflict => Exit::Held,
            Kind::Failed => Exit::Failed,
        }
    }
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

impl std::error::Error for ClusterError {}

fn from_kube(what: String, error: &kube::Error) -> ClusterError {
    let (kind, why) = match error {
        kube::Error::Api(status) => {
            let kind = match status.code {
                401 | 403 => Kind::Denied,
                404 => Kind::NotFound,
                409 => Kind::Conflict,
                429 | 502..=504 => Kind::Unreachable,
                _ => Kind::Failed,
            };
            let why = match status.code {
                401 => "the API server does not accept the credentials".to_owned(),
                _ => status.message.clone(),
            };
            (kind, why)
        }
        kube::Error::Auth(error) => (Kind::Denied, chain(error)),
        kube::Error::SerdeError(error) => (Kind::Failed, chain(error)),
        other => (Kind::Unreachable, chain(other)),
    };
    let error = match kind {
        // What was asked for does not matter then.
        Kind::Unreachable => ClusterError::new(kind, "the cluster cannot be reached", why),
        _ => ClusterError::new(kind, what, why),
    };
    match kind {
        Kind::Denied => error.hint("check the credentials in the kubeconfig and their rights"),
        Kind::Unreachable => {
            error.hint("check that the cluster is up and the kubeconfig's server is right")
        }
        Kind::Configuration | Kind::NotFound | Kind::Conflict | Kind::Failed => error,
    }
}

/// An error with everything it says it comes from, each thing once.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = inner.source();
    }
    text
}
