//! Keeping a workflow with nodes beside a run: submitting it, telling it how the apps stand, and
//! replacing one that has broken.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use futures::StreamExt;
use kube::api::{DynamicObject, ListParams, Patch};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tiphys_cluster::names::{ARGOCD_LABEL, NAMESPACE, PLATFORM_LABEL};
use tiphys_cluster::{Cause, RequestError};
use tiphys_run::Time;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until};

use super::board::{Board, NodeReport};
use super::compile::{NODES_LABEL, NodesRun};
use super::ended::{Beginnings, Ended};
use super::error::NodesError;
use super::watched::{ended, open_nodes, task_sets};
use crate::workflow::{COMPLETED, api, creating, patching};

/// After a request that failed, and before a workflow that has broken is replaced.
const PAUSE: Duration = Duration::from_secs(2);
/// How long the nodes may take to show the end of a run. By default, Argo Workflows looks at them every
/// ten seconds, and needs two looks for an end.
const LAST_WAIT: Duration = Duration::from_secs(45);
/// How long Argo Workflows may take to open the first node before somebody should know.
const SILENCE: Duration = Duration::from_secs(120);

/// What a run hears from its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromNodes {
    /// Argo Workflows has opened the node of this app.
    Admitted(String),
    /// Somebody has stopped the workflow.
    Stopped,
    Warning(String),
}

/// How the apps stand, one after the other, until the run is over.
pub type NodeReports = UnboundedReceiver<(String, NodeReport)>;

/// Serves the nodes of a run until no more reports come. An error means that the run cannot go on with
/// nodes.
pub async fn serve_nodes(
    client: &Client,
    run: &NodesRun<'_>,
    mut reports: NodeReports,
    tell: &dyn Fn(FromNodes),
) -> Result<(), NodesError> {
    let workflows = api(client, NAMESPACE);
    let mut server = Server {
        client,
        workflows,
        run,
        tell,
        board: Board::default(),
        over: BTreeSet::new(),
        began: Instant::now(),
    };
    server.end_others().await?;
    let mut beginnings = Beginnings::default();
    loop {
        let name = server.submit().await?;
        if server.serve(&name, Some(&mut reports)).await? == Served::RunIsOver {
            server.finish(&name).await;
            return Ok(());
        }
        let found = server.read(&name).await?;
        let found = found.as_ref().map(|workflow| &workflow.data);
        match beginnings.judge(found, server.over.len(), run.plan.apps.len()) {
            Ended::Well => return run_is_over(&mut reports).await,
            Ended::Stopped => {
                tell(FromNodes::Stopped);
                return run_is_over(&mut reports).await;
            }
            Ended::GiveUp { message } => {
                return Err(NodesError::EndsAgainAndAgain { name, message });
            }
            Ended::BeginAgain { message } => {
                let what = format!("the workflow {name} ended before the run: {message}");
                tell(FromNodes::Warning(format!("{what}; submitting another")));
                tokio::time::sleep(PAUSE).await;
                server.board.begin_again();
            }
        }
    }
}

async fn run_is_over(reports: &mut NodeReports) -> Result<(), NodesError> {
    while reports.recv().await.is_some() {}
    Ok(())
}

/// How serving a workflow ended.
#[derive(Debug, PartialEq, Eq)]
enum Served {
    RunIsOver,
    WorkflowEnded,
}

struct Server<'a> {
    client: &'a Client,
    workflows: Api<DynamicObject>,
    run: &'a NodesRun<'a>,
    tell: &'a dyn Fn(FromNodes),
    board: Board,
    /// The apps that have come to an end.
    over: BTreeSet<String>,
    began: Instant,
}

impl Server<'_> {
    /// Ends what an earlier run has left: nobody would tell those nodes anything.
    async fn end_others(&self) -> Result<(), RequestError> {
        let NodesRun { plan, argocd, .. } = self.run;
        let ours = format!("{NODES_LABEL}=true,{PLATFORM_LABEL}={},", plan.platform);
        let open = format!("{ours}{ARGOCD_LABEL}={argocd},{COMPLETED}!=true");
        let found = self.workflows.list_metadata(&ListParams::default().labels(&open)).await;
        let found = found.map_err(RequestError::because("cannot list the workflows of runs"))?;
        for workflow in found {
            self.terminate(&workflow.name_any()).await?;
        }
        Ok(())
    }

    async fn terminate(&self, name: &str) -> Result<(), RequestError> {
        let patch = Patch::Merge(json!({ "spec": { "shutdown": "Terminate" } }));
        let patched = self.workflows.patch(name, &patching(), &patch).await;
        match patched.map_err(RequestError::because(format!("cannot stop the workflow {name}"))) {
            Err(error) if error.cause() != Cause::NotFound => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Submits a workflow; how it is called.
    async fn submit(&self) -> Result<String, NodesError> {
        let what = "cannot submit a workflow with nodes";
        let workflow = serde_json::from_value(self.run.workflow()?)
            .map_err(|error| RequestError::because(what)(kube::Error::SerdeError(error)))?;
        let created = self.workflows.create(&creating(), &workflow).await;
        Ok(created.map_err(RequestError::because(what))?.name_any())
    }

    async fn read(&self, name: &str) -> Result<Option<DynamicObject>, RequestError> {
        let what = format!("cannot read the workflow {name}");
        self.workflows.get_opt(name).await.map_err(RequestError::because(what))
    }

    /// Serves a workflow until it ends, or until the run does if it still reports.
    async fn serve(
        &mut self,
        name: &str,
        mut reports: Option<&mut NodeReports>,
    ) -> Result<Served, NodesError> {
        let mut open = open_nodes(self.client, name);
        let mut ended = ended(self.client, name);
        let mut silent_until = Some(self.now() + SILENCE);
        let mut not_before = Time::START;
        loop {
            let send = self.board.wake_at().map(|at| at.max(not_before));
            let wake = send.into_iter().chain(silent_until).min();
            tokio::select! {
                biased;
                report = next_report(&mut reports) => match report {
                    Some((app, report)) => self.take(app, report),
                    None => return Ok(Served::RunIsOver),
                },
                Some(news) = ended.next() => if news? { return Ok(Served::WorkflowEnded) },
                Some(news) = open.next() => {
                    let news = news?;
                    silent_until = silent_until.filter(|_| news.is_empty());
                    self.board.open(news).into_iter().map(FromNodes::Admitted).for_each(self.tell);
                }
                () = self.until(wake) => {}
            }
            let now = self.now();
            if silent_until.is_some_and(|until| until <= now) {
                silent_until = None;
                (self.tell)(FromNodes::Warning(format!(
                    "Argo Workflows has not begun with the workflow {name}: check that its controller \
                     runs and watches the namespace {NAMESPACE}"
                )));
            }
            if now >= not_before && !self.send(name, now).await? {
                not_before = now + PAUSE;
            }
        }
    }

    fn take(&mut self, app: String, report: NodeReport) {
        if report.is_final() {
            self.over.insert(app.clone());
        }
        self.board.report(app, report);
    }

    /// Tells Argo Workflows what it does not know. Whether that arrived.
    async fn send(&mut self, name: &str, now: Time) -> Result<bool, NodesError> {
        let due = self.board.due(now);
        if due.is_empty() {
            return Ok(true);
        }
        let patch = Patch::Merge(json!({ "status": { "nodes": due } }));
        let sent = task_sets(self.client).patch_status(name, &patching(), &patch).await;
        match sent.map_err(RequestError::because(format!("cannot report to the workflow {name}"))) {
            Ok(_) => Ok(true),
            Err(error) if error.cause() == Cause::Denied => Err(error.into()),
            Err(error) => {
                tracing::debug!("{error}");
                self.board.lost(&due);
                Ok(false)
            }
        }
    }

    /// Lets the nodes show how the run ended. A workflow that does not end by that is stopped: nobody
    /// would tell its nodes anything more. How the run ended does not depend on it.
    async fn finish(&mut self, name: &str) {
        if self.over.len() == self.run.plan.apps.len() {
            match tokio::time::timeout(LAST_WAIT, self.serve(name, None)).await {
                Ok(Ok(_)) => return,
                Ok(Err(error)) => tracing::debug!("{error}"),
                Err(_) => tracing::debug!("the workflow {name} has not ended with its run"),
            }
        }
        if let Err(error) = self.terminate(name).await {
            tracing::debug!("{error}");
        }
    }

    fn now(&self) -> Time {
        Time::START + self.began.elapsed()
    }

    async fn until(&self, wake: Option<Time>) {
        match wake {
            Some(wake) => sleep_until(self.began + (wake - Time::START)).await,
            None => pending().await,
        }
    }
}

async fn next_report(reports: &mut Option<&mut NodeReports>) -> Option<(String, NodeReport)> {
    match reports {
        Some(reports) => reports.recv().await,
        None => pending().await,
    }
}
