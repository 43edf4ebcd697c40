//! Requests to the API server that failed.

use std::time::Duration;

use tiphys_model::{Exit, Explain, Explanation, chain};

use crate::unreachable::Unreachable;

/// A request that failed. What failed is said by who asked; why, by who answered.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub struct RequestError {
    what: String,
    source: Box<kube::Error>,
}

/// Why a request failed, as far as one can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Credentials were rejected, or lack a right.
    Denied,
    NotFound,
    /// Somebody else changed it at the same time.
    Conflict,
    /// There was no answer, or one that asks to come back later.
    Unreachable,
    Other,
}

/// What a request that was given up ends with.
#[must_use]
pub fn no_answer(within: Duration) -> kube::Error {
    kube::Error::Service(format!("no answer within {} s", within.as_secs()).into())
}

impl RequestError {
    /// For `map_err`. `what` says what cannot be done: "cannot take the Lease `a`".
    pub fn because(what: impl Into<String>) -> impl FnOnce(kube::Error) -> RequestError {
        let what = what.into();
        move |error| RequestError { what, source: Box::new(error) }
    }

    #[must_use]
    pub fn cause(&self) -> Cause {
        match &*self.source {
            kube::Error::Api(status) => match status.code {
                401 | 403 => Cause::Denied,
                404 => Cause::NotFound,
                409 => Cause::Conflict,
                429 | 502..=504 => Cause::Unreachable,
                _ => Cause::Other,
            },
            kube::Error::Auth(_) => Cause::Denied,
            kube::Error::SerdeError(_) => Cause::Other,
            _ => Cause::Unreachable,
        }
    }

    /// Which cluster did not answer, if that is known.
    fn unreachable(&self) -> Option<&Unreachable> {
        match &*self.source {
            kube::Error::Service(source) => source.downcast_ref(),
            _ => None,
        }
    }

    /// What the API server answered, or what came between.
    #[must_use]
    pub fn why(&self) -> String {
        match &*self.source {
            kube::Error::Api(status) if status.code == 401 => {
                "the API server does not accept the credentials".to_owned()
            }
            kube::Error::Api(status) => status.message.clone(),
            kube::Error::Auth(error) => chain(error),
            kube::Error::SerdeError(error) => chain(error),
            other => chain(other),
        }
    }
}

impl Explain for RequestError {
    fn explain(&self) -> Explanation {
        let say = |exit| Explanation::new(exit, self.what.clone(), self.why());
        match self.cause() {
            Cause::Denied => say(Exit::Credentials)
                .hint("check the credentials in the kubeconfig and their rights"),
            Cause::NotFound => say(Exit::NotFound),
            Cause::Conflict => say(Exit::Held),
            // What was asked for does not matter then.
            Cause::Unreachable => match self.unreachable() {
                Some(error) => {
                    let what = format!("cannot reach the cluster {}", error.server());
                    Explanation::new(Exit::Unreachable, what, error.to_string())
                        .hint(error.reason.hint())
                }
                None => Explanation::new(Exit::Unreachable, "cannot reach the cluster", self.why())
                    .hint("check that the cluster is up and that the kubeconfig has the right address"),
            },
            Cause::Other => say(Exit::Failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use kube::core::Status;

    use super::*;

    fn refused(code: u16) -> RequestError {
        let status = Status::failure("because", "Reason").with_code(code).boxed();
        RequestError::because("it cannot be read")(kube::Error::Api(status))
    }

    #[test]
    fn an_answer_decides_what_is_said_and_how_it_ends() {
        let credentials = "the API server does not accept the credentials";
        let unreachable = "cannot reach the cluster";
        for (code, cause, exit, what, why, hint) in [
            (401, Cause::Denied, Exit::Credentials, "it cannot be read", credentials, true),
            (403, Cause::Denied, Exit::Credentials, "it cannot be read", "because", true),
            (404, Cause::NotFound, Exit::NotFound, "it cannot be read", "because", false),
            (409, Cause::Conflict, Exit::Held, "it cannot be read", "because", false),
            (410, Cause::Other, Exit::Failed, "it cannot be read", "because", false),
            (429, Cause::Unreachable, Exit::Unreachable, unreachable, "because", true),
            (500, Cause::Other, Exit::Failed, "it cannot be read", "because", false),
            (503, Cause::Unreachable, Exit::Unreachable, unreachable, "because", true),
        ] {
            let error = refused(code);
            let told = error.explain();
            assert_eq!(error.cause(), cause, "{code}");
            assert_eq!((told.exit, &*told.what, &*told.why), (exit, what, why), "{code}");
            assert_eq!(told.next.is_some(), hint, "{code}");
            assert_eq!(error.to_string(), format!("{what}: {why}"));
        }
    }

    #[test]
    fn the_cause_is_kept() {
        let error = refused(403);
        let source = error.source().expect("a cause");
        let source = source.downcast_ref::<Box<kube::Error>>().expect("of the client");
        assert!(matches!(&**source, kube::Error::Api(status) if status.code == 403));
    }

    #[test]
    fn no_answer_at_all_is_an_unreachable_cluster() {
        let cut = std::io::Error::other("cut");
        let error = RequestError::because("x")(kube::Error::ReadEvents(cut));
        assert_eq!(error.cause(), Cause::Unreachable);
        assert!(error.why().contains("cut"), "{error}");
    }
}
