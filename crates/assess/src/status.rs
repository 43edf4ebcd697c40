//! The status of a platform: one document, derived from what the cluster shows at one moment.
//! Nothing of it is stored anywhere.

mod checklist;
mod judge;
mod phase;
mod roots;
#[cfg(test)]
mod tests;
mod webhook;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tiphys_model::platform::Hold as HoldPolicy;
use tiphys_model::{AppIx, AppName, Health, Plan, PlatformName, Role, Scope, SyncStatus};
use tiphys_run::{Action, Initiator, Observation, Operation, Stamp};

use crate::deploy_loop::commit::Told;
use crate::deploy_loop::validation::Validated;
use crate::deploy_loop::{Pause, SeenByLoop};
pub use checklist::{Answer, Check, Known, checklist};
pub use judge::{Judgement, State};
pub use phase::{Authority, PlatformPhase};
pub use webhook::WebhookStatus;

/// What was read of a cluster, all of it at about the same time.
#[derive(Debug, Clone, Default)]
pub struct Situation {
    pub installed: Installed,
    /// The newest look at each app, by its position in the plan of the whole platform.
    pub seen: Vec<Option<Seen>>,
    pub root: Option<Seen>,
    /// The apps to which automated sync is denied, and by which run.
    pub held: BTreeSet<String>,
    pub held_by: Option<String>,
    pub lease: Option<LeaseSeen>,
}

/// How much of what every platform needs is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Installed {
    /// The cluster does not know Applications.
    #[default]
    Nothing,
    /// It does, but the platform's projects or its root app are not there.
    ArgoCd,
    /// All of it.
    Platform,
}

/// An Application, and what an observation leaves out.
#[derive(Debug, Clone)]
pub struct Seen {
    pub observation: Arc<Observation>,
    /// When its health became what it is.
    pub health_since: Option<Stamp>,
    /// The AppProject that it is in.
    pub project: Arc<str>,
    /// The namespace that it is in itself.
    pub namespace: Arc<str>,
}

/// Who holds the platform's Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSeen {
    pub holder: String,
    pub action: String,
    /// Its holder has not renewed it in time, so it is dead.
    pub expired: bool,
}

/// The contract of `status -o json` and `validate -o json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub platform: PlatformName,
    pub phase: PlatformPhase,
    /// Who decides what is applied.
    pub authority: Authority,
    pub hold: HoldStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunStatus>,
    /// The newest run that is over; `None`: none is recorded, or nobody has looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// Only of a platform that is deployed automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploy_loop: Option<LoopStatus>,
    /// What starts runs at certain times, by name; nothing if nobody has looked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<ScheduleStatus>,
    /// What Git servers call, by name; nothing if nobody has looked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookStatus>,
    /// In start order.
    pub apps: Vec<AppStatus>,
    pub bypasses: Vec<Bypass>,
    /// What is not well although all that it depends on is; the worst first.
    pub root_causes: Vec<RootCause>,
    /// What removed apps have left in the cluster; `None`: nobody has looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leftovers: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HoldStatus {
    pub policy: HoldPolicy,
    /// The run that set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub apps: Vec<AppName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunStatus {
    pub action: String,
    pub holder: String,
    /// It ended without giving the Lease back.
    pub expired: bool,
}

/// A run that is over, as its record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    pub run: String,
    pub action: Action,
    pub scope: Scope,
    pub started: Timestamp,
    /// Its verdict, or `lost` if it has not said how it ended.
    pub state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

/// How automatic deployments stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoopStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenByLoop>,
    /// Nobody has looked for so long that the loop is not there.
    pub asleep: bool,
    /// What the Git server was told of the last commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
    /// The last validation of each trigger that watches objects.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub validated: BTreeMap<String, Validated>,
}

impl LoopStatus {
    /// The loop notes every minute what it sees.
    const SILENCE: SignedDuration = SignedDuration::from_secs(180);

    #[must_use]
    pub fn new(pause: Option<Pause>, seen: Option<SeenByLoop>, now: Timestamp) -> Self {
        let since = seen.as_ref().map(|seen| now.duration_since(seen.at));
        let asleep = since.is_none_or(|since| since > Self::SILENCE);
        LoopStatus { pause, seen, asleep, told: None, validated: BTreeMap::new() }
    }
}

/// What a trigger has started at a certain time, and when it does so next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScheduleStatus {
    pub name: String,
    pub action: &'static str,
    pub scope: Scope,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppStatus {
    pub name: AppName,
    pub state: State,
    /// None of the three is known of an Application that is not there.
    pub health: Option<Health>,
    pub sync: Option<SyncStatus>,
    pub revision: Option<String>,
    /// When its health became what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What it depends on and is not well, as long as it is not well itself.
    pub waiting_for: Vec<AppName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// From what it depends on to the root cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<AppName>,
    /// Resources that may be out of sync, and are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerated: Vec<Arc<str>>,
}

/// An operation that no run has asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bypass {
    pub app: String,
    pub by: Arc<str>,
    pub running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RootCause {
    pub app: AppName,
    pub state: State,
    pub cause: String,
    /// Since when, where its health is what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What is not well because of it, directly or not.
    pub affects: Vec<AppName>,
}

impl Status {
    /// `plan` is that of the whole platform, because phase and causes are about all of it;
    /// `scoped` says which apps are shown.
    #[must_use]
    pub fn new(plan: &Plan, scoped: &Plan, situation: &Situation) -> Self {
        let roles: BTreeMap<&AppName, Role> =
            scoped.apps.iter().map(|app| (&app.app.name, app.role)).collect();
        let judgements: Vec<Judgement> = plan
            .graph
            .apps()
            .map(|app| {
                let planned = &plan.app(app).app;
                let seen = situation.seen.get(app.position()).and_then(Option::as_ref);
                let held = situation.held.contains(planned.name.as_str());
                let role = roles.get(&planned.name).copied().unwrap_or(Role::Act);
                judge::judge(planned, seen.map(|seen| &*seen.observation), held, role)
            })
            .collect();
        let since = |app: AppIx| situation.seen.get(app.position())?.as_ref()?.health_since;
        let roots = roots::Roots::find(&plan.graph, &judgements, since);
        let shown = |name: &AppName| roles.contains_key(name);
        let phase = phase::phase(plan, situation);
        Status {
            platform: plan.platform.clone(),
            phase,
            authority: phase::authority(phase, plan, situation),
            hold: HoldStatus {
                policy: plan.policies.hold,
                run: situation.held_by.clone(),
                apps: names(plan, |name| situation.held.contains(name.as_str())),
            },
            run: situation.lease.as_ref().map(|lease| RunStatus {
                action: lease.action.clone(),
                holder: lease.holder.clone(),
                expired: lease.expired,
            }),
            apps: roots.apps(plan, &judgements, situation, shown),
            bypasses: bypasses(plan, situation),
            root_causes: roots.causes(plan, &judgements, situation, shown),
            last_run: None,
            deploy_loop: None,
            schedules: Vec::new(),
            webhooks: Vec::new(),
            leftovers: None,
        }
    }

    /// Every app that is shown is as it should be.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.apps.iter().all(|app| app.state == State::Done)
    }

    /// Whether anything of the platform is there at all.
    #[must_use]
    pub fn is_deployed(&self) -> bool {
        self.phase != PlatformPhase::PreBootstrap
            && (self.phase != PlatformPhase::Bootstrap
                || self.apps.iter().any(|app| app.state != State::Absent))
    }

    #[must_use]
    pub fn app(&self, name: &AppName) -> Option<&AppStatus> {
        self.apps.iter().find(|app| app.name == *name)
    }
}

impl AppStatus {
    /// Since when it is not well, where its health is what is wrong with it.
    #[must_use]
    pub fn ailing_since(&self) -> Option<Timestamp> {
        let ails = match self.state {
            State::Unhealthy => true,
            State::Converging => self.health == Some(Health::Progressing),
            State::Failed
            | State::Drifted
            | State::Absent
            | State::Removing
            | State::Syncing
            | State::Waiting
            | State::Done => false,
        };
        self.since.filter(|_| ails)
    }
}

fn timestamp(stamp: Stamp) -> Option<Timestamp> {
    Timestamp::from_second(stamp.0).ok()
}

fn names(plan: &Plan, which: impl Fn(&AppName) -> bool) -> Vec<AppName> {
    plan.apps.iter().map(|app| &app.app.name).filter(|name| which(name)).cloned().collect()
}

/// Argo CD's own syncs are its business wherever they are not denied to it.
fn bypasses(plan: &Plan, situation: &Situation) -> Vec<Bypass> {
    let bypass = |app: &str, seen: &Seen, held: bool| {
        let observation = &seen.observation;
        let running: Option<&Operation> = observation.operation.as_ref();
        let last = observation.last.as_ref();
        let operation = running.or_else(|| last.map(|last| &last.operation))?;
        if operation.id.is_some() || (operation.by == Initiator::Automated && !held) {
            return None;
        }
        let under_way = running.is_some() || last.is_some_and(|last| !last.phase.is_over());
        let finished = last.filter(|_| !under_way).and_then(|last| last.finished_at);
        Some(Bypass {
            app: app.to_owned(),
            by: operation.by.clone().into(),
            running: under_way,
            finished_at: finished.and_then(timestamp),
        })
    };
    let root = situation.root.as_ref().and_then(|seen| {
        let name = format!("{}-root", plan.platform);
        bypass(&name, seen, false)
    });
    let apps = plan.apps.iter().zip(&situation.seen).filter_map(|(planned, seen)| {
        let name = planned.app.name.as_str();
        bypass(name, seen.as_ref()?, situation.held.contains(name))
    });
    root.into_iter().chain(apps).collect()
}
