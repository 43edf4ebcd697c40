//! One look at a platform: what Git has, what is deployed, and who is busy.

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tiphys_argocd::Application;
use tiphys_argocd::application::{REFRESH, Unreadable};
use tiphys_assess::deploy_loop::outcome::Outcome;
use tiphys_assess::deploy_loop::{Git, Look, Next};
use tiphys_cluster::names::{self, FIELD_MANAGER, OUTCOME, OUTCOME_REVISION};
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::{CommitStatus, DeployPolicy, SyncStatus};
use tiphys_state::deploy_loop::LoopState;
use tiphys_state::graph::{GraphError, GraphStore};
use tiphys_state::lease;
use tiphys_workflows as workflows;

/// Why a platform cannot be looked at, or not deployed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum LoopError {
    Request(#[from] RequestError),
    Graph(#[from] GraphError),
    Workflows(#[from] workflows::WorkflowsError),
    Application(#[from] Unreadable),
}

/// What the root app shows.
pub(crate) struct Root {
    pub(crate) git: Git,
    /// When Argo CD compared it last.
    pub(crate) compared: Option<Timestamp>,
    /// What it shows of deployments, and of which revision.
    pub(crate) shows: Option<(Outcome, String)>,
}

impl Root {
    pub(crate) async fn read(client: &Client, state: &LoopState) -> Result<Self, LoopError> {
        let name = names::root_of(&state.platform);
        let applications: Api<Application> = Api::namespaced(client.clone(), &state.argocd);
        let what = format!("cannot read the root app `{name}`");
        let found = match applications.get_opt(&name).await.map_err(RequestError::because(what)) {
            // Nobody knows what an Application is.
            Err(error) if error.cause() == Cause::NotFound => None,
            found => found?,
        };
        let Some(found) = found else {
            let why = format!("the root app `{name}` does not exist");
            return Ok(Root { git: Git::Unknown(why), compared: None, shows: None });
        };
        let shows = shown(&found);
        let seen = found.observe()?;
        let compared = seen.reconciled_at.and_then(|at| Timestamp::from_second(at.0).ok());
        let revision = seen.revisions.to_string();
        let git = if seen.sync == SyncStatus::Unknown || revision.is_empty() {
            let condition = seen.conditions.first().map(|condition| condition.message.to_string());
            Git::Unknown(
                condition.unwrap_or_else(|| "Argo CD has not compared the root app".into()),
            )
        } else {
            Git::At(revision)
        };
        Ok(Root { git, compared, shows })
    }
}

fn shown(root: &Application) -> Option<(Outcome, String)> {
    let outcome = Outcome::parse(root.annotation(OUTCOME)?)?;
    Some((outcome, root.annotation(OUTCOME_REVISION)?.to_owned()))
}

/// Asks Argo CD to look at Git.
pub(crate) async fn refresh(client: &Client, state: &LoopState) -> Result<(), RequestError> {
    annotate_root(client, state, json!({ REFRESH: "normal" })).await
}

pub(crate) async fn annotate_root(
    client: &Client,
    state: &LoopState,
    annotations: Value,
) -> Result<(), RequestError> {
    let name = names::root_of(&state.platform);
    let applications: Api<Application> = Api::namespaced(client.clone(), &state.argocd);
    let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
    let params =
        PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patched = applications.patch_metadata(&name, &params, &patch).await;
    patched.map(|_| ()).map_err(RequestError::because(format!("cannot annotate `{name}`")))
}

/// What is to be done, as everything is now, and where commits show that.
pub(crate) async fn next(
    client: &Client,
    state: &LoopState,
    git: &Git,
    now: Timestamp,
) -> Result<(Next, Option<CommitStatus>), LoopError> {
    let store = GraphStore::new(client, &state.argocd, &state.platform);
    let graph = store.read().await?;
    let policy: Option<&DeployPolicy> = graph.as_ref().and_then(|graph| graph.deploy_policy());
    let look = Look {
        now,
        policy,
        git,
        deployed: graph.as_ref().and_then(|graph| graph.deployed.as_deref()),
        paused: state.pause.is_some(),
        busy: None,
        attempts: state.attempts.as_ref(),
        ended: None,
    };
    let shown = policy.and_then(|policy| policy.commit_status.clone());
    // The rest is asked only where it matters.
    if !matches!(Next::of(look), Next::Deploy { .. } | Next::BackOff { .. } | Next::Closed { .. }) {
        return Ok((Next::of(look), shown));
    }
    let busy = busy(client, state).await?;
    let ended = match &state.attempts {
        Some(attempts) => workflows::ended_at(client, &attempts.workflow).await?,
        None => None,
    };
    Ok((Next::of(Look { busy: busy.as_deref(), ended, ..look }), shown))
}

/// Who deploys or removes the platform, or waits to.
pub(crate) async fn busy(client: &Client, state: &LoopState) -> Result<Option<String>, LoopError> {
    let lease = lease::seen(client, &state.argocd, &state.platform).await?;
    if let Some(lease) = lease.filter(|lease| !lease.expired) {
        return Ok(Some(format!("{} by {}", lease.action, lease.holder)));
    }
    let workflow = workflows::unfinished(client, &state.argocd, &state.platform).await?;
    Ok(workflow.map(|name| format!("workflow {name}")))
}
