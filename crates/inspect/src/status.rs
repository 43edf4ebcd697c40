//! What the status of a platform is derived from, read from a cluster. Nothing is written.

mod error;
mod follow;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use serde_json::Value;
use tiphys_assess::status::{Installed, LeaseSeen, Seen, Situation};
use tiphys_model::{Plan, Platform};

use tiphys_argocd::app_project;
use tiphys_argocd::application::{Application, Unreadable};
use tiphys_argocd::{Applications, Destination};
use tiphys_cluster::names;
use tiphys_cluster::{Cause, RequestError};
use tiphys_engine::teardown::{self, Leftover};
use tiphys_evidence::criteria::{self, Prober};
use tiphys_state::graph::GraphStore;
use tiphys_state::hold::windows;
use tiphys_state::lease;

pub use error::StatusError;
pub use follow::follow;

/// How long a look at everything may take.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Looks at everything once. `plan` is that of the whole platform.
pub async fn read(
    client: &Client,
    prober: &Prober,
    platform: &Platform,
    plan: &Plan,
) -> Result<Situation, StatusError> {
    in_time(read_all(client, prober, platform, plan)).await
}

/// What the removed apps of a platform have left.
pub async fn leftovers(client: &Client, platform: &Platform) -> Result<Vec<Leftover>, StatusError> {
    in_time(async {
        let store = GraphStore::new(client, &platform.argocd.namespace, &platform.name);
        match store.read().await? {
            Some(graph) => Ok(teardown::leftovers(client, platform, &graph).await?),
            None => Ok(Vec::new()),
        }
    })
    .await
}

/// A connection that died silently would be waited for for ever.
async fn in_time<T>(look: impl Future<Output = Result<T, StatusError>>) -> Result<T, StatusError> {
    let late = |_| StatusError::NoAnswer { within: READ_TIMEOUT };
    tokio::time::timeout(READ_TIMEOUT, look).await.map_err(late)?
}

async fn read_all(
    client: &Client,
    prober: &Prober,
    platform: &Platform,
    plan: &Plan,
) -> Result<Situation, StatusError> {
    let mut found = Found::new(platform, plan);
    let applications = Applications::of(client, &platform.argocd);
    let listed = match applications.list(|one| found.has(one.name())).await {
        Ok(listed) => listed,
        Err(error) if error.cause() == Cause::NotFound => return Ok(found.without_argocd()),
        Err(error) => return Err(error.into()),
    };
    for application in &listed {
        found.take(application)?;
    }
    let (around, answers) =
        futures::join!(Around::read(client, platform), ask(prober, plan, found.questions()));
    found.answer(answers);
    Ok(found.situation(&around?))
}

/// Applications of the platform, as they come in.
struct Found {
    positions: BTreeMap<String, usize>,
    seen: Vec<Option<Seen>>,
    destinations: Vec<Destination>,
    /// Of each app, the criteria that do not hold.
    unmet: Vec<Vec<Arc<str>>>,
    has_root_app: bool,
    root_name: String,
    root: Option<Seen>,
}

impl Found {
    fn new(platform: &Platform, plan: &Plan) -> Self {
        let names = plan.apps.iter().map(|app| app.app.name.to_string());
        Found {
            positions: names.enumerate().map(|(at, name)| (name, at)).collect(),
            seen: vec![None; plan.apps.len()],
            destinations: vec![Destination::default(); plan.apps.len()],
            unmet: plan.apps.iter().map(|app| criteria::unprobed(&app.app.health)).collect(),
            has_root_app: platform.argocd.has_root_app,
            root_name: names::root_application(platform),
            root: None,
        }
    }

    /// Whether an Application of this name is the platform's.
    fn has(&self, name: &str) -> bool {
        name == self.root_name || self.positions.contains_key(name)
    }

    fn take(&mut self, application: &Application) -> Result<(), Unreadable> {
        let slot = if application.name() == self.root_name {
            &mut self.root
        } else {
            match self.positions.get(application.name()) {
                Some(at) => {
                    self.destinations[*at] = application.destination();
                    &mut self.seen[*at]
                }
                None => return Ok(()),
            }
        };
        *slot = Some(seen(application)?);
        Ok(())
    }

    fn lose(&mut self, name: &str) {
        if name == self.root_name {
            self.root = None;
        } else if let Some(at) = self.positions.get(name) {
            self.seen[*at] = None;
        }
    }

    /// The apps whose criteria can be asked, and where.
    fn questions(&self) -> Vec<(usize, Destination)> {
        let there = |at: &usize| self.seen[*at].is_some();
        (0..self.seen.len()).filter(there).map(|at| (at, self.destinations[at].clone())).collect()
    }

    /// Takes in what was found of criteria; whether that is news.
    fn answer(&mut self, answers: Vec<(usize, Vec<Arc<str>>)>) -> bool {
        let mut news = false;
        for (at, unmet) in answers {
            news |= self.unmet[at] != unmet;
            self.unmet[at] = unmet;
        }
        news
    }

    fn without_argocd(self) -> Situation {
        Situation { installed: Installed::Nothing, seen: self.seen, ..Situation::default() }
    }

    fn situation(&self, around: &Around) -> Situation {
        let ready = around.projects && (self.root.is_some() || !self.has_root_app);
        Situation {
            installed: if ready { Installed::Platform } else { Installed::ArgoCd },
            seen: self.seen.iter().zip(&self.unmet).map(with_criteria).collect(),
            root: self.root.clone(),
            held: windows::held(&around.windows),
            held_by: windows::held_by(&around.windows),
            lease: around.lease.clone(),
        }
    }
}

/// Asks the criteria of these apps.
async fn ask(
    prober: &Prober,
    plan: &Plan,
    questions: Vec<(usize, Destination)>,
) -> Vec<(usize, Vec<Arc<str>>)> {
    let asked = questions.into_iter().map(|(at, destination)| async move {
        (at, prober.probe(&plan.apps[at].app.health, &destination).await)
    });
    futures::future::join_all(asked).await
}

fn with_criteria((seen, unmet): (&Option<Seen>, &Vec<Arc<str>>)) -> Option<Seen> {
    let mut seen = seen.clone()?;
    if !unmet.is_empty() {
        Arc::make_mut(&mut seen.observation).unmet.clone_from(unmet);
    }
    Some(seen)
}

/// What is to be known of an Application, without that which only a run asks about.
pub(crate) fn seen(application: &Application) -> Result<Seen, Unreadable> {
    let observation = application.observe()?;
    let health_since = application.health_since()?;
    let project = application.spec.project.as_str().into();
    let namespace = application.namespace().into();
    Ok(Seen { observation: observation.into(), health_since, project, namespace })
}

/// What stands around the Applications.
#[derive(Debug, Clone, PartialEq, Default)]
struct Around {
    /// The projects of the apps are there.
    projects: bool,
    /// Of all of them.
    windows: Vec<Value>,
    lease: Option<LeaseSeen>,
}

impl Around {
    async fn read(client: &Client, platform: &Platform) -> Result<Around, StatusError> {
        let namespace = &platform.argocd.namespace;
        let api = app_project::api(client, namespace);
        let (mut projects, mut windows) = (true, Vec::new());
        for name in &platform.argocd.projects {
            let what = format!("cannot read the AppProject `{name}`");
            let found = api.get_opt(name).await.map_err(RequestError::because(what))?;
            projects &= found.is_some();
            let of_project = found.as_ref().and_then(|found| {
                found.data.pointer("/spec/syncWindows").and_then(Value::as_array)
            });
            windows.extend(of_project.into_iter().flatten().cloned());
        }
        let lease = lease::seen(client, namespace, &platform.name).await?;
        Ok(Around { projects, windows, lease })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_known_since_when_an_app_is_as_healthy_as_it_is() {
        let since = |health: Value| {
            let application: Application = serde_json::from_value(json!({
                "metadata": { "name": "a", "resourceVersion": "7" },
                "spec": {},
                "status": { "health": health },
            }))
            .unwrap();
            seen(&application).map(|seen| seen.health_since)
        };
        let at = |time: &str| since(json!({ "status": "Healthy", "lastTransitionTime": time }));
        assert_eq!(at("2026-11-15T12:00:40Z").unwrap().map(|stamp| stamp.0), Some(1_794_744_040));
        assert_eq!(since(json!({ "status": "Healthy" })).unwrap(), None);
        assert!(at("yesterday").unwrap_err().to_string().contains("lastTransitionTime"));
    }
}
