//! A platform that the loop looks after.

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tiphys_assess::deploy_loop::{Attempts, Git, Next, SeenByLoop};
use tiphys_cluster::RunWorkflow;
use tiphys_model::{Scope, TriggerAction};
use tiphys_state::changes::NotedChange;
use tiphys_state::deploy_loop::{LoopState, LoopStore};
use tiphys_workflows::{Submission, submit};
use tokio::time::Instant;

use crate::announce::announce;
use crate::commits::Commits;
use crate::leader::Said;
use crate::look::{LoopError, Root, next, refresh};
use crate::named::workflow_name;
use crate::validate::validate;

/// How long a platform that is up to date is believed to be so, as long as Git has the same.
const BELIEVED: Duration = Duration::from_secs(60);
/// What was seen is noted at least so often, so that others know that somebody looks.
const NOTED: Duration = Duration::from_secs(60);
/// Argo CD looks at Git every three minutes, if nobody has changed that. Where it does not, it is asked
/// to.
const COMPARED: Duration = Duration::from_secs(240);

/// What was said and noted of it, and when.
#[derive(Default)]
pub(crate) struct Watched {
    up_to_date: Option<(String, Instant)>,
    said: String,
    noted: Option<(Next, Instant)>,
    refreshed: Option<Instant>,
    commits: Commits,
}

impl Watched {
    /// Looks at it, deploys it if that is what comes next, and validates it if objects have changed.
    pub(crate) async fn attend(
        &mut self,
        client: &Client,
        identity: &str,
        (state, changes): (&LoopState, &[NotedChange]),
        tell: &dyn Fn(Said),
    ) {
        let platform = &state.platform;
        match self.act(client, identity, state, changes).await {
            Ok((told, validations)) => {
                let note = |text: &str| tell(Said::Note(format!("{platform}: {text}")));
                self.say(told, note);
                for text in &validations {
                    note(text);
                }
            }
            Err(error) => {
                let told = error.to_string();
                self.say(told, |text| tell(Said::Warning(format!("{platform}: {text}"))));
            }
        }
    }

    /// The same is not said twice in a row.
    fn say(&mut self, text: String, tell: impl Fn(&str)) {
        if self.said != text {
            tell(&text);
            self.said = text;
        }
    }

    async fn act(
        &mut self,
        client: &Client,
        identity: &str,
        state: &LoopState,
        changes: &[NotedChange],
    ) -> Result<(String, Vec<String>), LoopError> {
        let now = Timestamp::now();
        let root = Root::read(client, state).await?;
        self.refresh_if_due(client, state, &root, now).await?;
        let (next, shown) = match &root.git {
            Git::At(revision) if self.is_up_to_date(revision) => {
                (Next::UpToDate { revision: revision.clone() }, None)
            }
            git => next(client, state, git, now).await?,
        };
        let mut told = next.to_string();
        if let Next::Deploy { revision, attempt } = &next {
            let workflow = deploy(client, state, revision, *attempt, now).await?;
            told += &format!(": workflow {workflow}");
        }
        if let Next::UpToDate { revision } = &next {
            if !self.is_up_to_date(revision) {
                self.up_to_date = Some((revision.clone(), Instant::now()));
            }
        } else {
            self.up_to_date = None;
        }
        self.note(client, identity, state, next.clone(), now).await?;
        if let Some(shown) = &shown {
            self.commits.show(client, state, shown, &next).await?;
        }
        let validations = match next {
            // Nobody has deployed it, or somebody has taken it down.
            Next::NeverDeployed => Vec::new(),
            _ => validate(client, state, changes, now).await?,
        };
        // Last: where the platform was configured by an earlier version, it is refused.
        announce(client, state, &root, &next).await?;
        Ok((told, validations))
    }

    fn is_up_to_date(&self, revision: &str) -> bool {
        let known = self.up_to_date.as_ref();
        known.is_some_and(|(known, since)| known == revision && since.elapsed() < BELIEVED)
    }

    async fn refresh_if_due(
        &mut self,
        client: &Client,
        state: &LoopState,
        root: &Root,
        now: Timestamp,
    ) -> Result<(), LoopError> {
        let Some(compared) = root.compared else { return Ok(()) };
        let long_ago = now.duration_since(compared).unsigned_abs() >= COMPARED;
        let asked = self.refreshed.is_some_and(|since| since.elapsed() < COMPARED);
        if long_ago && !asked {
            refresh(client, state).await?;
            self.refreshed = Some(Instant::now());
        }
        Ok(())
    }

    async fn note(
        &mut self,
        client: &Client,
        identity: &str,
        state: &LoopState,
        next: Next,
        now: Timestamp,
    ) -> Result<(), LoopError> {
        let fresh = |(noted, since): &(Next, Instant)| *noted == next && since.elapsed() < NOTED;
        if self.noted.as_ref().is_some_and(fresh) {
            return Ok(());
        }
        let seen = SeenByLoop::new(now, identity, next.clone(), state.seen.as_ref());
        LoopStore::new(client).note_seen(&state.argocd, &state.platform, &seen).await?;
        self.noted = Some((next, Instant::now()));
        Ok(())
    }
}

/// Submits the workflow of an attempt, and notes that; its name.
async fn deploy(
    client: &Client,
    state: &LoopState,
    revision: &str,
    attempt: u32,
    now: Timestamp,
) -> Result<String, LoopError> {
    let run = RunWorkflow {
        action: TriggerAction::Deploy,
        platform: state.platform.clone(),
        argocd: state.argocd.clone(),
        scope: Scope::Platform,
        environment: None,
        unattended: true,
    };
    let submission = Submission { run, name: Some(name_of_attempt(state, revision, attempt)) };
    let workflow = submit(client, &submission).await?.name;
    let attempts = Attempts {
        revision: revision.to_owned(),
        count: attempt,
        workflow: workflow.clone(),
        at: now,
    };
    LoopStore::new(client).note_attempts(&state.argocd, &state.platform, &attempts).await?;
    Ok(workflow)
}

/// What was noted before tells a revision that comes back from its first time.
fn name_of_attempt(state: &LoopState, revision: &str, attempt: u32) -> String {
    let before = serde_json::to_string(&state.attempts).unwrap_or_default();
    let reason = [revision, &attempt.to_string(), &before];
    workflow_name(state, TriggerAction::Deploy, &reason)
}
