//! Whose the projects and Applications of a platform are. A copy of a platform file under another name
//! would deploy and remove what belongs to the first platform, and the hold cannot tell Applications
//! of the same name apart.

use std::collections::BTreeSet;

use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use serde_json::Value;
use tiphys_argocd::{Applications, Namesakes, app_project};
use tiphys_cluster::names::{self, HOLD, PLATFORM_LABEL};
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::{Exit, Explain, Explanation, Platform};

use crate::hold::windows;

#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum ClaimError {
    /// The label of the project names another platform.
    AnotherPlatform {
        project: String,
        platform: String,
        owner: String,
    },
    /// Another platform shares the project, and a run of it is under way or was interrupted.
    HeldByAnother {
        project: String,
        run: String,
        apps: BTreeSet<String>,
    },
    /// Several Applications have the name of one app.
    Namesakes(Namesakes),
    Request(#[from] RequestError),
}

impl Explain for ClaimError {
    fn explain(&self) -> Explanation {
        match self {
            ClaimError::AnotherPlatform { project, platform, owner } => Explanation::new(
                Exit::Configuration,
                format!(
                    "the AppProject `{project}` belongs to another platform, not to `{platform}`"
                ),
                format!("its label {PLATFORM_LABEL} is `{owner}`"),
            )
            .hint(format!(
                "use the platform file of `{owner}`, or set another project in \
                 `spec.argocd.projects`"
            )),
            ClaimError::HeldByAnother { project, run, apps } => {
                let apps: Vec<&str> = apps.iter().map(String::as_str).collect();
                Explanation::new(
                    Exit::Held,
                    format!("another platform holds apps in the AppProject `{project}`"),
                    format!("its sync window `{HOLD} {run}` lists {}", apps.join(", ")),
                )
                .hint(
                    "wait until that run ends, or run it again if it was interrupted; platforms \
                     that are deployed at the same time need separate projects",
                )
            }
            ClaimError::Namesakes(apps) => Explanation::new(
                Exit::Configuration,
                match apps.len() {
                    1 => "an app has Applications in more than one namespace".to_owned(),
                    apps => format!("{apps} apps have Applications in more than one namespace"),
                },
                format!(
                    "{}; a sync window names Applications without their namespace, so the hold \
                     would apply to both",
                    in_namespaces(apps)
                ),
            )
            .hint(
                "rename or delete one of them, or move it to a project that is not in \
                 `spec.argocd.projects`",
            ),
            ClaimError::Request(error) => error.explain(),
        }
    }
}

fn in_namespaces(apps: &Namesakes) -> String {
    let app = |(app, namespaces): (&String, &BTreeSet<String>)| {
        let namespaces: Vec<&str> = namespaces.iter().map(String::as_str).collect();
        format!("`{app}` is in `{}`", namespaces.join("` and `"))
    };
    apps.iter().map(app).collect::<Vec<_>>().join(", ")
}

/// Refuses apps, and a root app, that have Applications in two namespaces of the platform.
pub async fn refuse_namesakes(client: &Client, platform: &Platform) -> Result<(), ClaimError> {
    let names = platform.apps.iter().map(|app| app.name.to_string());
    let names = names.chain([names::root_application(platform)]).collect();
    match Applications::of(client, &platform.argocd).namesakes(&names).await {
        // The CRD is gone with Argo CD.
        Err(error) if error.cause() == Cause::NotFound => Ok(()),
        Err(error) => Err(error.into()),
        Ok(apps) if apps.is_empty() => Ok(()),
        Ok(apps) => Err(ClaimError::Namesakes(apps)),
    }
}

/// A project without a label was not made by `tiphys configure`, and is whoever's uses it.
pub async fn refuse_projects_of_others(
    client: &Client,
    platform: &Platform,
) -> Result<(), ClaimError> {
    let projects = app_project::api(client, &platform.argocd.namespace);
    for project in &platform.argocd.projects {
        let what = format!("cannot read the AppProject `{project}`");
        match projects.get_opt(project).await.map_err(RequestError::because(what)) {
            // The CRD is gone with Argo CD.
            Err(error) if error.cause() == Cause::NotFound => {}
            Err(error) => return Err(error.into()),
            Ok(Some(found)) => refuse_of_another(platform, project, &found)?,
            Ok(None) => {}
        }
    }
    Ok(())
}

fn refuse_of_another(
    platform: &Platform,
    project: &str,
    found: &DynamicObject,
) -> Result<(), ClaimError> {
    match found.labels().get(PLATFORM_LABEL) {
        Some(owner) if owner == platform.name.as_str() => return Ok(()),
        Some(owner) => {
            return Err(ClaimError::AnotherPlatform {
                project: project.to_owned(),
                platform: platform.name.to_string(),
                owner: owner.clone(),
            });
        }
        None => {}
    }
    let windows = found.data.pointer("/spec/syncWindows").and_then(Value::as_array);
    let windows = windows.map(Vec::as_slice).unwrap_or_default();
    let apps = windows::held(windows);
    let ours = platform.apps.iter().any(|app| apps.contains(app.name.as_str()));
    match windows::held_by(windows) {
        Some(run) if !ours && !apps.is_empty() => {
            Err(ClaimError::HeldByAnother { project: project.to_owned(), run, apps })
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tiphys_cluster::scripted::Server;
    use tiphys_model::NamespaceName;

    use super::*;
    use crate::graph::tests::platform;

    fn project(label: Option<&str>, held: &[&str]) -> DynamicObject {
        let window = json!({ "description": "tiphys hold 0123-4", "applications": held });
        let label = label.map(|platform| json!({ PLATFORM_LABEL: platform }));
        serde_json::from_value(json!({
            "metadata": { "name": "default", "labels": label },
            "spec": { "syncWindows": [window] },
        }))
        .unwrap()
    }

    #[test]
    fn a_project_is_shared_until_another_platform_marks_or_holds_it() {
        let platform = platform();
        let judged = |label, held: &[&str]| {
            let judged = refuse_of_another(&platform, "default", &project(label, held));
            judged.map_err(|error| error.explain().what)
        };
        assert_eq!(judged(None, &[]), Ok(()));
        assert_eq!(judged(None, &["b", "gone"]), Ok(()), "an earlier run of ours");
        assert_eq!(judged(Some("prod"), &["x"]), Ok(()), "no other platform is there");
        assert_eq!(
            judged(Some("other"), &[]).unwrap_err(),
            "the AppProject `default` belongs to another platform, not to `prod`"
        );
        assert_eq!(
            judged(None, &["x"]).unwrap_err(),
            "another platform holds apps in the AppProject `default`"
        );
    }

    #[tokio::test]
    async fn an_app_with_two_applications_is_refused_by_name() {
        let mut platform = platform();
        platform.argocd.application_namespaces = vec![NamespaceName::parse("team").unwrap()];
        let server = Server::default();
        let put = |namespace: &str, name: &str, project: &str| {
            let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications");
            server.put(&format!("{path}/{name}"), json!({ "spec": { "project": project } }));
        };
        let ours = platform.argocd.projects[0].clone();
        for (namespace, name, project) in [
            ("argocd", "a", &*ours),
            ("team", "b", &ours),
            // Not the platform's, or no app of it.
            ("argocd", "b", "theirs"),
            ("argocd", "other", &ours),
            ("team", "other", &ours),
        ] {
            put(namespace, name, project);
        }
        refuse_namesakes(&server.client(), &platform).await.unwrap();
        put("team", "a", &ours);
        let error = refuse_namesakes(&server.client(), &platform).await.unwrap_err();
        let Explanation { exit, why, .. } = error.explain();
        assert_eq!(exit, Exit::Configuration);
        assert!(why.starts_with("`a` is in `argocd` and `team`; "), "{why}");
    }
}
