//! Following a workflow: what its pods print, in order, until it ends. A pod that was lost is replaced
//! by Argo Workflows; what the next one prints follows.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{AsyncBufReadExt, StreamExt};
use k8s_openapi::api::core::v1::{ContainerState, Pod};
use kube::api::{ListParams, LogParams};
use kube::{Api, Client, ResourceExt};
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::Exit;

use crate::error::WorkflowsError;
use crate::output::{Level, Said};
use crate::workflow::{OF_WORKFLOW, Phase, Place, State, api};

const POLL: Duration = Duration::from_millis(500);
/// Of a step's pod, the container that is ours.
const CONTAINER: &str = "main";

/// Tells all that is said until the workflow ends; how its run exited.
pub async fn follow(
    client: &Client,
    at: &Place,
    tell: &dyn Fn(Said),
) -> Result<Exit, WorkflowsError> {
    let mut follower = Follower {
        pods: Api::namespaced(client.clone(), &at.namespace),
        tell,
        heard: BTreeMap::new(),
        code: None,
        waiting: String::new(),
    };
    let workflows = api(client, &at.namespace);
    loop {
        let what = format!("cannot read the workflow {}", at.name);
        let found = workflows.get_opt(&at.name).await.map_err(RequestError::because(what));
        let state = match found {
            Ok(Some(found)) => State::of(&found),
            Ok(None) => return Err(WorkflowsError::Gone { name: at.name.clone() }),
            // It goes on without us.
            Err(error) if error.cause() == Cause::Unreachable => {
                tokio::time::sleep(POLL).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let all_heard = follower.listen(&at.name).await?;
        if state.phase.has_ended() && all_heard {
            return follower.exit(&at.name, state);
        }
        follower.tell_waiting(&state);
        tokio::time::sleep(POLL).await;
    }
}

struct Follower<'a> {
    pods: Api<Pod>,
    tell: &'a dyn Fn(Said),
    /// By pod: how many lines were told, and whether those were all.
    heard: BTreeMap<String, (usize, bool)>,
    /// With which the newest pod that has ended did so.
    code: Option<i32>,
    /// What was told last of what it waits for.
    waiting: String,
}

impl Follower<'_> {
    /// Tells what the pods have printed and print; whether that was all of those that are there.
    async fn listen(&mut self, workflow: &str) -> Result<bool, WorkflowsError> {
        let params = ListParams::default().labels(&format!("{OF_WORKFLOW}={workflow}"));
        let listed = self.pods.list(&params).await;
        let mut pods = match listed.map_err(RequestError::because("cannot list the pods")) {
            Ok(pods) => pods.items,
            Err(error) if error.cause() == Cause::Unreachable => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        pods.sort_by_key(ResourceExt::creation_timestamp);
        let mut all = true;
        for pod in &pods {
            all &= self.listen_to(pod).await;
        }
        Ok(all)
    }

    async fn listen_to(&mut self, pod: &Pod) -> bool {
        let name = pod.name_any();
        let (told, complete) = self.heard.get(&name).copied().unwrap_or_default();
        if complete {
            return true;
        }
        match state(pod) {
            // It has not printed anything yet, and may never.
            None => return has_ended(pod),
            Some(state) if state.waiting.is_some() => return has_ended(pod),
            Some(_) => {}
        }
        let lines = self.read(&name, told).await;
        let Ok(now) = self.pods.get_opt(&name).await else {
            self.heard.insert(name, (lines, false));
            return false;
        };
        let ended = now.as_ref().and_then(state).and_then(|state| state.terminated);
        let complete = ended.is_some() || now.is_none();
        self.code = ended.map(|ended| ended.exit_code).or(self.code);
        self.heard.insert(name, (lines, complete));
        complete
    }

    /// Tells the lines after those that were told, while they come; how many there were.
    async fn read(&self, pod: &str, told: usize) -> usize {
        let params = LogParams {
            follow: true,
            container: Some(CONTAINER.to_owned()),
            ..LogParams::default()
        };
        let mut read = 0;
        match self.pods.log_stream(pod, &params).await {
            Ok(stream) => {
                let mut lines = stream.lines();
                while let Some(Ok(line)) = lines.next().await {
                    read += 1;
                    if read > told {
                        Said::read(&line).into_iter().for_each(self.tell);
                    }
                }
            }
            Err(error) => tracing::debug!("no log of the pod {pod} yet: {error}"),
        }
        read.max(told)
    }

    fn tell_waiting(&mut self, state: &State) {
        if !state.message.is_empty() && state.message != self.waiting && self.heard.is_empty() {
            let text = format!("the workflow waits: {}", state.message);
            (self.tell)(Said::Log { level: Level::Note, text });
            self.waiting.clone_from(&state.message);
        }
    }

    fn exit(self, name: &str, state: State) -> Result<Exit, WorkflowsError> {
        let known = |code: i32| Exit::ALL.into_iter().find(|exit| i32::from(exit.code()) == code);
        match (state.phase, self.code) {
            (Phase::Succeeded, _) => Ok(Exit::Done),
            (_, Some(code)) => Ok(known(code).unwrap_or(Exit::Failed)),
            (_, None) => {
                Err(WorkflowsError::Broken { name: name.to_owned(), message: state.message })
            }
        }
    }
}

fn state(pod: &Pod) -> Option<ContainerState> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == CONTAINER)?.state.clone()
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}
