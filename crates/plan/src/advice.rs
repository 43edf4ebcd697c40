//! What the reader of a plan should know before it is executed.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use tiphys_model::duration::format as human;
use tiphys_model::platform::Group;
use tiphys_model::{AppName, Plan, PlannedApp};

/// What a run cannot be quicker than, if every app takes its typical time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound<'a> {
    CriticalPath,
    /// The apps of this group wait for each other.
    Group(&'a Group),
    /// So many apps at once are too few.
    Concurrency(NonZeroU32),
}

/// Why a run of this plan is likely to fail, whatever the cluster does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warning<'a> {
    /// It typically takes longer than it may.
    Deadline { estimate: Duration, timeout: Duration },
    /// So does one of its apps.
    App { app: &'a AppName, typical: Duration, sync: Duration, health: Duration },
}

#[must_use]
pub fn bound(plan: &Plan) -> Bound<'_> {
    let critical = plan.critical_path.first().map(|app| plan.app(*app).rank).unwrap_or_default();
    if plan.estimate <= critical {
        return Bound::CriticalPath;
    }
    let work = |apps: &mut dyn Iterator<Item = &PlannedApp>| -> Duration {
        apps.map(PlannedApp::typical).sum()
    };
    let all = plan.policies.concurrency;
    let mut longest = (work(&mut plan.apps.iter()) / all.get(), Bound::Concurrency(all));
    for (at, group) in plan.policies.groups.iter().enumerate() {
        let mut apps = plan.apps.iter().filter(|planned| planned.app.group == Some(at));
        let takes = work(&mut apps) / group.concurrency.get();
        if takes > longest.0 {
            longest = (takes, Bound::Group(group));
        }
    }
    longest.1
}

#[must_use]
pub fn warnings(plan: &Plan) -> Vec<Warning<'_>> {
    let (estimate, timeout) = (plan.estimate, plan.policies.timeout);
    let deadline = (estimate > timeout).then_some(Warning::Deadline { estimate, timeout });
    let apps = plan.apps.iter().filter_map(|planned| {
        let (typical, timeouts) = (planned.typical(), planned.app.timeouts);
        let (sync, health) = (timeouts.sync, timeouts.health);
        let late = typical > sync.saturating_add(health);
        late.then_some(Warning::App { app: &planned.app.name, typical, sync, health })
    });
    deadline.into_iter().chain(apps).collect()
}

impl fmt::Display for Bound<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::CriticalPath => f.write_str("the critical path"),
            Bound::Group(group) => {
                write!(f, "the group `{}` ({} at once)", group.name, group.concurrency)
            }
            Bound::Concurrency(all) => write!(f, "spec.concurrency ({all} at once)"),
        }
    }
}

impl fmt::Display for Warning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Deadline { estimate, timeout } => write!(
                f,
                "the run is estimated to take {}, but it ends after {}: raise spec.timeout, or deploy \
                 a smaller scope",
                human(*estimate),
                human(*timeout)
            ),
            Warning::App { app, typical, sync, health } => write!(
                f,
                "`{app}` typically takes {}, but its timeouts allow {} for the sync and {} until it is \
                 Healthy: raise `timeouts`, or correct `typical`",
                human(*typical),
                human(*sync),
                human(*health)
            ),
        }
    }
}
