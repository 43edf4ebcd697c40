//! `tiphys attach`: follows a run in the cluster, or shows what was recorded of one.

use std::time::Duration;

use tiphys_cluster::{Access, Client};
use tiphys_model::Exit;
use tiphys_report::RunState;
use tiphys_run::LogLine;
use tiphys_state::records::{Found, RecordStore, RunHead};
use tiphys_workflows::{Place, WorkflowsError, find, of_pod};

use crate::args::{AttachArgs, namespace_flag};
use crate::commands::runs::{holder, state};
use crate::display::Display;
use crate::failure::Failure;
use crate::record::Shown;
use crate::workflow_run::{self, Followed};
use crate::{identity, output, runtime};

/// How often a record that is being written is read again.
const POLL: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &AttachArgs) -> Result<Exit, Failure> {
    let access = args.run.cluster.access();
    let located = runtime::block_on(async {
        locate(&access.client().await?, &args.run.namespace, &args.run.name).await
    })?;
    match located {
        Located::Workflow(at) => {
            let argocd = args.run.namespace.clone();
            workflow_run::follow(&access, Followed { at, format: args.output, argocd })
        }
        Located::Record(found) => show(args, &access, *found),
    }
}

/// Where a run can be seen.
pub(crate) enum Located {
    Workflow(Place),
    /// Nowhere but in its record.
    Record(Box<Found>),
}

/// By the name of its workflow, or its own.
pub(crate) async fn locate(client: &Client, argocd: &str, name: &str) -> Result<Located, Failure> {
    if let Some(at) = find(client, name).await? {
        return Ok(Located::Workflow(at));
    }
    let found = RecordStore::new(client).list(argocd, None).await?;
    let Some(found) = found.into_iter().find(|found| found.head.run == name) else {
        return Err(WorkflowsError::NotFound { name: name.to_owned() }.into());
    };
    // In a pod, the host is the pod.
    if let Some(pod) = identity::host(&found.head.by)
        && let Some(at) = of_pod(client, pod).await?
    {
        return Ok(Located::Workflow(at));
    }
    Ok(Located::Record(Box::new(found)))
}

/// Shows a record, and what is added to it until its run ends.
fn show(args: &AttachArgs, access: &Access, found: Found) -> Result<Exit, Failure> {
    let mut display = Display::new(args.output);
    let argocd = args.run.namespace.clone();
    let ended = display
        .watch(access, async move |client, tell| read(&client, &argocd, found, tell).await)?;
    let exit = match ended {
        Some(RunState::Ended { .. }) => {
            display.close_followed(&namespace_flag(&args.run.namespace));
            display.exit()
        }
        Some(RunState::Lost | RunState::Running) => {
            output::note("the record ends here: the run has not said how it ended");
            Exit::Failed
        }
        None => Exit::Interrupted,
    };
    Ok(display.end(exit))
}

async fn read(
    client: &Client,
    argocd: &str,
    mut found: Found,
    tell: &dyn Fn(Shown),
) -> Result<RunState, Failure> {
    let store = RecordStore::new(client);
    let mut told = 0;
    loop {
        let lines = store.lines_after(&found, told).await?;
        told = found.head.segments;
        for line in lines.lines() {
            if let Ok(LogLine::Event(line)) = serde_json::from_str(line) {
                tell(Shown::Line(line));
            }
        }
        let RunHead { run, platform, .. } = &found.head;
        let state = state(&found.head, holder(client, argocd, platform).await?.as_deref());
        if state != RunState::Running {
            return Ok(state);
        }
        tokio::time::sleep(POLL).await;
        let listed = store.list(argocd, Some(platform)).await?;
        match listed.into_iter().find(|newer| newer.head.run == *run) {
            Some(newer) => found = newer,
            None => return Ok(RunState::Lost),
        }
    }
}
