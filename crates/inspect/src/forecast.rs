//! What a run would find to do now. Nothing is refreshed for it, so Argo CD may know more by the
//! time a run asks.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use tiphys_model::operation::PlanTag;
use tiphys_model::{Plan, PlannedApp, Platform, Role};
use tiphys_run::gate::{Start, start};

use tiphys_argocd::Applications;
use tiphys_argocd::application::Application;
use tiphys_cluster::{RequestError, names};

/// One line for the root app, if there is one, and one for each app in start order.
pub struct Forecast {
    pub root: Option<String>,
    pub apps: Vec<(String, String)>,
}

pub async fn forecast(
    client: &Client,
    platform: &Platform,
    plan: &Plan,
) -> Result<Forecast, RequestError> {
    let applications = Applications::of(client, &platform.argocd);
    let root = names::root_application(platform);
    let mut names: BTreeSet<&str> = plan.apps.iter().map(|app| app.app.name.as_str()).collect();
    names.insert(&root);
    let listed = applications.list(|a| names.contains(a.name())).await?;
    let known: BTreeMap<&str, &Application> =
        listed.iter().map(|application| (application.name(), application)).collect();
    let apps = plan.apps.iter().map(|planned| {
        let name = planned.app.name.as_str();
        (name.to_owned(), app(planned, known.get(name).copied(), PlanTag::of(&plan.digest)))
    });
    let has_root = platform.argocd.has_root_app;
    let line = || root_line(&root, known.get(root.as_str()).copied());
    Ok(Forecast { root: has_root.then(line), apps: apps.collect() })
}

fn root_line(name: &str, root: Option<&Application>) -> String {
    match root {
        None => format!("the root app `{name}` is missing: run `tiphys configure` to create it"),
        Some(root) if root.status.sync.status == "Synced" => {
            format!("the root app `{name}` is synced at {}", root.status.sync.revision)
        }
        Some(root) => format!(
            "the root app `{name}` would be synced to {}, which may change the apps below",
            root.status.sync.revision
        ),
    }
}

fn app(planned: &PlannedApp, application: Option<&Application>, tag: PlanTag) -> String {
    let Some(application) = application else {
        return "would be synced: its Application does not exist yet".to_owned();
    };
    let seen = match application.observe() {
        Ok(seen) => seen,
        Err(error) => return format!("cannot be assessed: {error}"),
    };
    if planned.role == Role::Verify {
        return format!("would only be checked: it is {}", seen.health);
    }
    match start(&seen, tag, &planned.app.name, &planned.app.tolerate_drift) {
        Start::AlreadyCurrent => "is current".to_owned(),
        Start::Sync { revisions } => {
            format!("would be synced to {revisions}: it is {} and {}", seen.sync, seen.health)
        }
        Start::Adopt { .. } => {
            "has an operation of this plan in progress; the run would wait for it".to_owned()
        }
        Start::Foreign { by } => {
            format!("has an operation of {by} in progress; the run would wait for it")
        }
        Start::NotYet => {
            "would be synced if it differs: Argo CD has to compare it first".to_owned()
        }
        Start::Suspect(suspicion) => format!("would fail if this stays: {}", suspicion.cause()),
        Start::Failed(cause) => format!("would fail: {cause}"),
    }
}
