//! Phase 0: looks at everything that a platform needs before anything is touched, and changes
//! nothing. What it means is decided in `tiphys_assess::preflight`.

mod absence;
mod applications;
mod argocd;
mod cluster;
mod command;
mod git;
mod nodes;
mod registry;
mod rendered;
mod repositories;
mod rights;
mod ssh;
#[cfg(test)]
mod tests;
mod tools;

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt};
use http::StatusCode;
use tiphys_assess::preflight::connectivity::{self, Purpose};
use tiphys_assess::preflight::tools::Needs;
use tiphys_assess::preflight::{
    Findings, Problem, Report, Requirement, Section, Trouble, credentials,
};
use tiphys_model::{Bootstrap, Exit, Explain, Explanation, Platform};
use tokio::time::timeout;

use tiphys_cluster::{Access, RequestError};
use tiphys_install::https::{Answer, Unanswered};
use tiphys_install::mounted::{Mounted, MountedError};

/// How long one program, endpoint or request may take: what hangs has failed.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(5);
/// How much is looked at at the same time. Programs are what costs most.
const AT_ONCE: usize = 12;

/// What is to be looked at.
#[derive(Debug, Clone, Copy)]
pub struct Preflight<'a> {
    pub platform: &'a Platform,
    pub access: &'a Access,
    /// The folder of mounted credentials.
    pub credentials: &'a Path,
    /// The RFC's letter, whatever the installer.
    pub strict: bool,
    pub rendering: Rendering,
}

/// Whether Argo CD is asked what apps render.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rendering {
    Asked,
    /// Before a bootstrap: that depends on no app, and may be what Argo CD needs to render them.
    LeftOut,
}

impl Preflight<'_> {
    /// Everything is looked at, whatever is found on the way.
    pub async fn run(self) -> Report {
        let (mounted, unreadable) = match Mounted::read(self.credentials) {
            Ok(mounted) => (mounted, None),
            Err(error) => (Mounted::default(), Some(error)),
        };
        let places = connectivity::endpoints(self.platform);
        let named = Findings { checks: connectivity::unnamed(&places), ..Findings::default() };
        let git = places.iter().find(|place| place.purpose == Purpose::Git);
        let mut looks: Vec<BoxFuture<'_, Findings>> = tools::looks(self.needs());
        looks.push(cluster::look(&self).boxed());
        looks.push(git::look(&self, git, &mounted.git).boxed());
        looks.push(std::future::ready(named).boxed());
        let rest = places.iter().filter(|place| place.purpose != Purpose::Git);
        looks.extend(rest.map(|place| registry::reach(place, &mounted).boxed()));
        looks.push(repositories::look(&self, &places, &mounted).boxed());
        looks.push(registry::log_in(&self, &mounted).boxed());
        looks.push(std::future::ready(self.counted(&mounted, unreadable.as_ref())).boxed());
        if self.rendering == Rendering::Asked {
            looks.push(rendered::look(&self).boxed());
        }
        let findings: Vec<Findings> = stream::iter(looks).buffered(AT_ONCE).collect().await;
        Report::new(self.platform.name.clone(), findings)
    }

    fn bootstrap(&self) -> Option<&Bootstrap> {
        self.platform.bootstrap.as_ref()
    }

    fn needs(&self) -> Needs<'_> {
        Needs { bootstrap: self.bootstrap(), strict: self.strict }
    }

    fn folder(&self) -> String {
        self.credentials.display().to_string()
    }

    /// What only has to be there, and whether the folder can be read at all.
    fn counted(&self, mounted: &Mounted, unreadable: Option<&MountedError>) -> Findings {
        let mut findings = Findings::default();
        if let Some(error) = unreadable {
            let folder = Requirement::new(Section::Credentials, "folder", "readable");
            findings.checks.push(folder.unknown(&problem(error)));
        }
        let (checks, credential) = credentials::dns(mounted.dns, &self.folder(), self.strict);
        findings.checks.extend(checks);
        findings.credentials.push(credential);
        findings
    }
}

/// An answer of the API server within its time.
async fn within<T>(
    what: &str,
    asked: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Problem> {
    in_time(async { asked.await.map_err(RequestError::because(what)) }).await
}

async fn in_time<T, E: Explain>(asked: impl Future<Output = Result<T, E>>) -> Result<T, Problem> {
    match timeout(ENDPOINT_TIMEOUT, asked).await {
        Ok(answer) => answer.map_err(|error| problem(&error)),
        Err(_) => Err(Problem {
            trouble: Trouble::Unreachable,
            why: format!("cannot reach the cluster: {}", silence()),
            next: Some(
                "check that the cluster is up and that the kubeconfig has the right address"
                    .to_owned(),
            ),
        }),
    }
}

/// An answer of a server on the web within its time.
async fn answered(
    asked: impl Future<Output = Result<Answer, Unanswered>>,
) -> Result<Answer, Unanswered> {
    timeout(ENDPOINT_TIMEOUT, asked).await.unwrap_or_else(|_| Err(silence()))
}

/// How a server answers missing or wrong credentials.
fn is_refusal(answer: &Answer) -> bool {
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND]
        .contains(&answer.status)
}

/// What to do about a server that does not answer.
fn advice(why: &str) -> String {
    let next = if why.contains("certificate") {
        "put the CA certificate into `ca.crt` next to the credentials, or fix the server"
    } else {
        "check the address in the platform file, DNS, proxies and firewalls"
    };
    next.to_owned()
}

fn silence() -> String {
    format!("no answer within {} s", ENDPOINT_TIMEOUT.as_secs())
}

fn problem(error: &impl Explain) -> Problem {
    let Explanation { exit, next, .. } = error.explain();
    let trouble = match exit {
        Exit::Credentials => Trouble::Rejected,
        Exit::Unreachable => Trouble::Unreachable,
        _ => Trouble::Missing,
    };
    Problem { trouble, why: error.to_string(), next }
}
