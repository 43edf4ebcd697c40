//! Apps that a run does not deploy. The root app creates and changes them all the same, and Argo
//! CD would sync them at once, in no order. So they are held with the others, and let go in the
//! end if there is nothing that Argo CD would do then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tiphys_model::platform::{self, App};
use tiphys_model::{Plan, Platform, Role};
use tiphys_state::hold::Hold;

use super::DeployError;
use tiphys_argocd::Applications;
use tiphys_argocd::application::Application;
use tiphys_cluster::RequestError;

/// How often what Argo CD has not compared yet is looked at, and the pause between.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_secs(1);

/// What was free before the run, and lies outside its scope.
pub(super) struct Outside {
    pub(super) hold: Arc<Hold>,
    platform: Arc<Platform>,
    applications: Applications,
    /// As they were before the root app was synced.
    before: BTreeMap<String, Option<Application>>,
}

/// What becomes of an app when the run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The run has changed nothing, or Argo CD finds nothing to do.
    LetGo,
    /// It has been created or changed, and its turn has not come.
    StayHeld,
    /// Argo CD has not compared it with its new spec.
    NotKnown,
}

impl Outside {
    /// Without a request, if all is inside.
    pub(super) async fn of(
        plan: &Plan,
        platform: &Arc<Platform>,
        hold: Arc<Hold>,
        applications: Applications,
    ) -> Result<Self, DeployError> {
        let inside = plan.apps.iter().filter(|app| app.role == Role::Act);
        let inside: BTreeSet<&str> = inside.map(|app| app.app.name.as_str()).collect();
        let names = platform.apps.iter().map(|app| app.name.as_str());
        let mut outside: BTreeSet<&str> = names.filter(|name| !inside.contains(name)).collect();
        let mut before = BTreeMap::new();
        if !outside.is_empty() {
            // What an earlier run has not finished is not this one's to let go.
            let held = hold.held().await?;
            outside.retain(|name| !held.contains(*name));
            before = outside.into_iter().map(|name| (name.to_owned(), None)).collect();
            for application in list(&applications, &before).await? {
                before.insert(application.name().to_owned(), Some(application));
            }
        }
        Ok(Outside { hold, platform: platform.clone(), applications, before })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.before.keys().cloned()
    }

    /// Lets go of what Argo CD would leave as it is; returns what stays held. Generators go last.
    pub(super) async fn let_go(&self, succeeded: bool) -> Result<Vec<String>, DeployError> {
        if self.platform.policies.hold == platform::Hold::Always {
            return Ok(Vec::new());
        }
        let stay = self.let_go_of_apps().await?;
        if succeeded && stay.is_empty() {
            let apps = self.platform.apps.iter().map(|app| app.name.to_string()).collect();
            self.hold.release_generators(&apps).await?;
        }
        Ok(stay)
    }

    async fn let_go_of_apps(&self) -> Result<Vec<String>, DeployError> {
        if self.before.is_empty() {
            return Ok(Vec::new());
        }
        for look in 1.. {
            let now = list(&self.applications, &self.before).await?;
            let now: BTreeMap<&str, &Application> =
                now.iter().map(|application| (application.name(), application)).collect();
            let of = |app: &App| {
                let before = self.before.get(app.name.as_str())?;
                let fate = fate(before.as_ref(), now.get(app.name.as_str()).copied(), app);
                Some((app.name.to_string(), fate))
            };
            let fates: Vec<(String, Fate)> = self.platform.apps.iter().filter_map(of).collect();
            if look < LOOKS && fates.iter().any(|(_, fate)| *fate == Fate::NotKnown) {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            let (go, stay): (Vec<_>, Vec<_>) =
                fates.into_iter().partition(|(_, fate)| *fate == Fate::LetGo);
            let names = |of: Vec<(String, Fate)>| of.into_iter().map(|(name, _)| name);
            self.hold.release_all(&names(go).collect()).await?;
            return Ok(names(stay).collect());
        }
        unreachable!("the loop ends by returning")
    }
}

pub(super) fn stays_held(apps: &[String]) -> String {
    let (names, stay) = (apps.join(", "), if apps.len() == 1 { "stays" } else { "stay" });
    format!(
        "{names} {stay} held: outside the scope, and changed by the root app; deploy the whole \
         platform to let Argo CD sync again"
    )
}

async fn list<T>(
    applications: &Applications,
    names: &BTreeMap<String, T>,
) -> Result<Vec<Application>, RequestError> {
    applications.list(|application| names.contains_key(application.name())).await
}

fn fate(before: Option<&Application>, now: Option<&Application>, app: &App) -> Fate {
    // Nobody syncs what is not there.
    let Some(now) = now else { return Fate::LetGo };
    let spec = |of: &Application| serde_json::to_value(&of.spec).ok();
    if before.is_some_and(|before| spec(before) == spec(now)) {
        return Fate::LetGo;
    }
    match now.observe() {
        Ok(seen) if !seen.compared_to_spec => Fate::NotKnown,
        Ok(seen) if seen.is_synced(&app.tolerate_drift) => Fate::LetGo,
        Ok(_) | Err(_) => Fate::StayHeld,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testkit;

    fn application(revision: &str, compared: &str, sync: &str) -> Application {
        let source = |revision: &str| json!({ "path": "b", "targetRevision": revision });
        let value: Value = json!({
            "metadata": { "name": "b", "resourceVersion": "1" },
            "spec": { "project": "apps", "source": source(revision) },
            "status": {
                "sync": { "status": sync, "comparedTo": { "source": source(compared) } },
                "health": { "status": "Healthy" },
            },
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_what_argo_cd_would_leave_as_it_is_is_let_go() {
        let platform = testkit::platform();
        let app = &platform.apps[1];
        let old = application("r1", "r1", "Synced");
        let drifted = application("r1", "r1", "OutOfSync");
        let rows = [
            ("unchanged", Some(&old), Some(old.clone()), Fate::LetGo),
            ("drifted, by itself", Some(&drifted), Some(drifted.clone()), Fate::LetGo),
            ("gone", Some(&old), None, Fate::LetGo),
            (
                "the same at the new revision",
                Some(&old),
                Some(application("r2", "r2", "Synced")),
                Fate::LetGo,
            ),
            (
                "not compared yet",
                Some(&old),
                Some(application("r2", "r1", "Synced")),
                Fate::NotKnown,
            ),
            ("changed", Some(&old), Some(application("r2", "r2", "OutOfSync")), Fate::StayHeld),
            ("new", None, Some(application("r2", "r2", "OutOfSync")), Fate::StayHeld),
        ];
        for (what, before, now, expected) in rows {
            assert_eq!(fate(before, now.as_ref(), app), expected, "{what}");
        }
    }
}
