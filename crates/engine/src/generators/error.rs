//! Why Applications are not all there at the run's revision.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tiphys_argocd::application::Unreadable;
use tiphys_argocd::rest::{CallError, Refusal};
use tiphys_argocd::sync_windows::Denied;
use tiphys_cluster::RequestError;
use tiphys_model::{Exit, Explain, Explanation, NameError};
use tiphys_state::hold::HoldError;

#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum GeneratorError {
    Name {
        generator: String,
        source: NameError,
    },
    /// Argo CD did not do what it was asked for.
    Call {
        generator: String,
        source: CallError,
    },
    /// Its source or its operation is in trouble.
    Failed {
        generator: String,
        message: String,
    },
    Replaced {
        generator: String,
        by: String,
    },
    /// It was synced to another commit than the one that was looked at.
    Moved {
        generator: String,
    },
    Unfinished {
        generator: String,
        after: Duration,
    },
    Unreadable {
        generator: String,
        source: Unreadable,
    },
    /// Argo CD would create the children in an order of its own.
    Waves {
        generator: String,
        /// The names of the Applications by wave.
        waves: BTreeMap<i64, BTreeSet<String>>,
    },
    /// The ApplicationSet would sync in an order of its own.
    RollingSync {
        set: String,
    },
    /// The ApplicationSet controller has not answered.
    SetUnanswered {
        set: String,
        after: Duration,
        /// The error that its last word was about, if it was.
        said: Option<String>,
    },
    Unsettled {
        set: String,
        after: Duration,
        /// What is not as its template says.
        lack: String,
    },
    /// Argo CD does not say what the set should make.
    Render {
        set: String,
        source: CallError,
    },
    OtherProject {
        projects: Vec<String>,
        /// Each with the project that it is in.
        apps: Vec<(String, String)>,
    },
    /// A generator is in a project where it cannot be held.
    Elsewhere {
        generator: String,
        project: String,
    },
    /// An app of the platform creates others of it.
    AppCreates {
        app: String,
        apps: Vec<String>,
    },
    /// A sync window of others.
    Denied {
        generator: String,
        denied: Denied,
    },
    Hold(#[from] HoldError),
    NoApplications {
        apps: BTreeSet<String>,
        after: Duration,
    },
    Request(#[from] RequestError),
}

impl Explain for GeneratorError {
    fn explain(&self) -> Explanation {
        let cannot_be_synced = |exit, generator: &str, why: String| {
            Explanation::new(exit, format!("cannot sync the generator `{generator}`"), why)
        };
        let broken = |generator: &str, why: String| {
            cannot_be_synced(Exit::Failed, generator, why)
                .hint("fix its source, then run the same command again")
        };
        match self {
            GeneratorError::Name { generator, source } => Explanation::new(
                Exit::Configuration,
                format!("the generator `{generator}` has an invalid name"),
                source.to_string(),
            ),
            GeneratorError::Call { generator, source } => {
                let (exit, hint) = advice(source);
                let told = cannot_be_synced(exit, generator, source.to_string());
                hint.into_iter().fold(told, Explanation::hint)
            }
            GeneratorError::Failed { generator, message } => broken(generator, message.clone()),
            GeneratorError::Replaced { generator, by } => {
                broken(generator, format!("{by} started another operation"))
            }
            GeneratorError::Moved { generator } => cannot_be_synced(
                Exit::Failed,
                generator,
                "a newer commit arrived and was synced instead".to_owned(),
            )
            .hint("run the same command again"),
            GeneratorError::Unfinished { generator, after } => {
                let why = format!("its operation did not finish within {} s", after.as_secs());
                broken(generator, why)
            }
            GeneratorError::Unreadable { generator, source } => {
                broken(generator, source.to_string())
            }
            GeneratorError::Waves { generator, waves } => different_waves(generator, waves),
            GeneratorError::RollingSync { set } => Explanation::new(
                Exit::Configuration,
                format!("the ApplicationSet `{set}` has the strategy RollingSync"),
                "RollingSync syncs the Applications in its own order, which the hold of a run \
                 prevents",
            )
            .hint("remove `spec.strategy` from it: the platform file defines the order"),
            GeneratorError::SetUnanswered { set, after, said } => {
                unanswered(set, *after, said.as_deref())
            }
            GeneratorError::Render { set, source } => {
                let (exit, hint) = advice(source);
                let what = format!("cannot render the Applications of the ApplicationSet `{set}`");
                let told = Explanation::new(exit, what, source.to_string());
                hint.into_iter().fold(told, Explanation::hint)
            }
            GeneratorError::Unsettled { set, after, lack } => Explanation::new(
                Exit::NotFound,
                format!("the ApplicationSet `{set}` has not created or updated its Applications"),
                format!("after {} s: {lack}", after.as_secs()),
            )
            .hint("check `kubectl describe applicationset` and the log of its controller"),
            GeneratorError::OtherProject { projects, apps } => other_project(projects, apps),
            GeneratorError::Elsewhere { generator, project } => Explanation::new(
                Exit::Configuration,
                format!("cannot hold the generator `{generator}`"),
                format!(
                    "it creates apps of the platform, but its project `{project}` is not in the \
                     platform file"
                ),
            )
            .hint("add the project to `spec.argocd.projects`, then run `tiphys configure`"),
            GeneratorError::AppCreates { app, apps } => app_creates(app, apps),
            GeneratorError::Denied { generator, denied } => Explanation::new(
                Exit::Failed,
                format!("cannot sync the generator `{generator}` now"),
                denied.to_string(),
            )
            .hint("run the same command again when the sync window allows it"),
            GeneratorError::Hold(error) => error.explain(),
            GeneratorError::NoApplications { apps, after } => {
                let apps: Vec<&str> = apps.iter().map(String::as_str).collect();
                Explanation::new(
                    Exit::NotFound,
                    format!("no Application found for {}", apps.join(", ")),
                    format!("no generator created them within {} s", after.as_secs()),
                )
                .hint(
                    "add them to the root app's source, or remove them from the platform file; if \
                     they are in another namespace than Argo CD's own, add it to \
                     `spec.argocd.applicationNamespaces`",
                )
            }
            GeneratorError::Request(error) => error.explain(),
        }
    }
}

fn other_project(projects: &[String], apps: &[(String, String)]) -> Explanation {
    let apps = apps.iter().map(|(app, project)| format!("{app} ({project})"));
    Explanation::new(
        Exit::Configuration,
        format!(
            "some Applications are not in a project of the platform (`{}`)",
            projects.join("`, `")
        ),
        apps.collect::<Vec<_>>().join(", "),
    )
    .hint(
        "add their project to `spec.argocd.projects` and run `tiphys configure`, or move them: a \
         hold covers only the projects of the platform",
    )
}

fn app_creates(app: &str, apps: &[String]) -> Explanation {
    Explanation::new(
        Exit::Configuration,
        format!("the app `{app}` creates other apps of the platform"),
        format!("these apps do not exist before it is synced: {}", apps.join(", ")),
    )
    .hint(format!(
        "remove `{app}` from the platform file: generators are synced before the run and need no \
         place in the order"
    ))
}

fn different_waves(generator: &str, waves: &BTreeMap<i64, BTreeSet<String>>) -> Explanation {
    let lists = waves.iter().map(|(wave, apps)| {
        let apps: Vec<&str> = apps.iter().map(String::as_str).collect();
        format!("wave {wave}: {}", apps.join(", "))
    });
    Explanation::new(
        Exit::Configuration,
        format!("the Applications that `{generator}` creates have different sync waves"),
        format!(
            "{}; a run holds the apps of the first wave, so Argo CD may wait forever for them to \
             become healthy",
            lists.collect::<Vec<_>>().join("; ")
        ),
    )
    .hint(
        "turn the waves into dependencies: `tiphys plan --from-applications DIR \
         --edges-from-waves` shows them, `tiphys init` with the same flags prints a platform file; \
         then remove the annotations argocd.argoproj.io/sync-wave",
    )
}

fn unanswered(set: &str, after: Duration, said: Option<&str>) -> Explanation {
    let (why, next) = match said {
        None => (
            "the ApplicationSet controller has not answered a refresh".to_owned(),
            "check that it is running (`kubectl get pods -A -l \
             app.kubernetes.io/name=argocd-applicationset-controller`), then run the same command \
             again",
        ),
        Some(said) => (
            format!("the ApplicationSet controller has not finished a refresh; it reports: {said}"),
            "fix the ApplicationSet, then run the same command again",
        ),
    };
    Explanation::new(
        Exit::Failed,
        format!("the ApplicationSet `{set}` is not up to date"),
        format!("after {} s: {why}", after.as_secs()),
    )
    .hint(next)
}

fn advice(error: &CallError) -> (Exit, Option<&'static str>) {
    let configure = Some("run `tiphys configure` to set it up");
    match error {
        CallError::Refused { refusal, .. } => match refusal {
            Refusal::Unauthenticated | Refusal::Forbidden => (Exit::Credentials, configure),
            Refusal::NotFound => (Exit::Configuration, configure),
            Refusal::Window | Refusal::Busy | Refusal::Broken | Refusal::Other => {
                (Exit::Failed, None)
            }
        },
        CallError::Unanswered { .. } => (Exit::Unreachable, None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tiphys_argocd::application::Application;

    use super::super::one::refuse_waves;
    use super::*;
    use crate::testkit::argocd::{ROOT, unsynced};

    /// The root app, with what Argo CD says of its resources.
    fn root(resources: &[Value]) -> Application {
        let mut object = unsynced("roots");
        object["metadata"] = json!({ "name": ROOT });
        object["status"]["resources"] = json!(resources);
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn different_waves_are_listed_with_the_way_out() {
        let resource = |kind: &str, name: &str, wave: i64| json!({ "group": "argoproj.io", "kind": kind, "name": name, "syncWave": wave });
        let resources = [
            resource("Application", "shop", 10),
            resource("Application", "ingress", -5),
            resource("AppProject", "team", 3),
            resource("Application", "crds", -5),
        ];
        let told = refuse_waves(&root(&resources)).unwrap_err().explain();
        let expected = Explanation::new(
            Exit::Configuration,
            "the Applications that `prod-root` creates have different sync waves",
            "wave -5: crds, ingress; wave 10: shop; a run holds the apps of the first wave, so \
             Argo CD may wait forever for them to become healthy",
        )
        .hint(
            "turn the waves into dependencies: `tiphys plan --from-applications DIR \
             --edges-from-waves` shows them, `tiphys init` with the same flags prints a platform \
             file; then remove the annotations argocd.argoproj.io/sync-wave",
        );
        assert_eq!(told, expected);
    }

    #[test]
    fn one_wave_is_no_order() {
        let resource = json!({ "group": "argoproj.io", "kind": "Application", "syncWave": 3 });
        assert!(refuse_waves(&root(&[])).is_ok());
        assert!(refuse_waves(&root(&[resource.clone(), resource])).is_ok());
    }
}
