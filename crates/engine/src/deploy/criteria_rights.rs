//! Health criteria whose objects the run may not read. They would never hold, and the run would wait for
//! them until it has no time left.

use futures::future::try_join_all;
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::Client;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use kube::discovery::oneshot;
use tiphys_argocd::application::Application;
use tiphys_cluster::{RequestError, access_review};
use tiphys_model::criterion::ResourceCriterion;
use tiphys_model::{Criterion, Exit, Explain, Explanation, Plan, Role};

#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum CriteriaRightsError {
    /// Each app, with a right that is missing for it.
    Missing(Vec<(String, String)>),
    Request(#[from] RequestError),
}

impl Explain for CriteriaRightsError {
    fn explain(&self) -> Explanation {
        let missing = match self {
            CriteriaRightsError::Missing(missing) => missing,
            CriteriaRightsError::Request(error) => return error.explain(),
        };
        let mut apps: Vec<&str> = missing.iter().map(|(app, _)| app.as_str()).collect();
        apps.dedup();
        let rights: Vec<&str> = missing.iter().map(|(_, right)| right.as_str()).collect();
        Explanation::new(
            Exit::Credentials,
            format!("may not check the health criteria of {}", apps.join(", ")),
            format!("missing rights: {}", rights.join(", ")),
        )
        .hint(
            "run `tiphys configure` with this platform file, which gives them to the accounts of \
             runs, or add them to your own role",
        )
    }
}

/// Asks about the objects of all criteria that the run will wait for.
pub(super) async fn refuse_unreadable(
    client: &Client,
    plan: &Plan,
    applications: &[Application],
) -> Result<(), CriteriaRightsError> {
    let namespace = |name: &str| {
        let application = applications.iter().find(|application| application.name() == name);
        application.map_or_else(String::new, |one| one.destination().namespace.to_string())
    };
    let waited_for = plan.apps.iter().filter(|app| app.role == Role::Act);
    let asked = waited_for.flat_map(|app| {
        let name = app.app.name.as_str();
        app.app.health.iter().filter_map(move |criterion| match criterion {
            Criterion::Resource(wanted) => Some((name, wanted)),
            _ => None,
        })
    });
    let asked = asked.map(|(app, wanted)| {
        let namespace = wanted.namespace.clone().unwrap_or_else(|| namespace(app));
        async move { Ok::<_, RequestError>((app, missing(client, wanted, &namespace).await?)) }
    });
    let answers = try_join_all(asked).await?;
    let missing: Vec<(String, String)> =
        answers.into_iter().filter_map(|(app, missing)| Some((app.to_owned(), missing?))).collect();
    if missing.is_empty() { Ok(()) } else { Err(CriteriaRightsError::Missing(missing)) }
}

/// The right that is missing, if one is.
async fn missing(
    client: &Client,
    wanted: &ResourceCriterion,
    namespace: &str,
) -> Result<Option<String>, RequestError> {
    let ResourceCriterion { api_version, kind, name, .. } = wanted;
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    // An operator may bring its kinds later. Then it is called as in the roles that `configure` makes.
    let resource = match oneshot::pinned_kind(client, &kind).await {
        Ok((resource, _)) => resource,
        Err(_) => ApiResource::from_gvk(&kind),
    };
    let attributes = ResourceAttributes {
        verb: Some("get".to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.plural.clone()),
        name: Some(name.clone()),
        namespace: Some(namespace.to_owned()),
        ..ResourceAttributes::default()
    };
    let what = "cannot ask for the rights of the run";
    let may = access_review::may(client, attributes).await.map_err(RequestError::because(what))?;
    Ok((!may).then(|| format!("get {} {name} in {namespace}", resource.plural)))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tiphys_cluster::scripted::{self, Answer};
    use tiphys_model::Scope;

    use super::*;
    use crate::testkit;

    /// A plan whose first app has a criterion on a kind that the cluster does not have yet.
    fn plan() -> Plan {
        let mut platform = testkit::platform();
        platform.apps[0].health = vec![Criterion::Resource(ResourceCriterion {
            api_version: "example.org/v1".to_owned(),
            kind: "Database".to_owned(),
            name: "main".to_owned(),
            namespace: None,
            expression: "true".to_owned(),
        })];
        tiphys_plan::plan(&platform, &Scope::Platform).unwrap()
    }

    async fn refused(allowed: &Value) -> (Option<String>, Vec<Value>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (noted, allowed) = (asked.clone(), allowed.clone());
        let client = scripted::client(move |request| {
            if !request.path.contains("selfsubjectaccessreviews") {
                return Answer::refused(404, "not found");
            }
            let attributes = request.body["spec"]["resourceAttributes"].clone();
            noted.lock().unwrap().push(attributes);
            let mut answer = request.body.clone();
            answer["status"] = json!({ "allowed": allowed });
            Answer::Object(answer)
        });
        let application: Application = serde_json::from_value(json!({
            "metadata": { "name": "a", "namespace": "argocd" },
            "spec": { "destination": { "namespace": "data" } },
        }))
        .unwrap();
        let refusal = refuse_unreadable(&client, &plan(), &[application]).await.err();
        let asked = asked.lock().unwrap().clone();
        let text = refusal.map(|refusal| {
            assert_eq!(refusal.explain().exit, Exit::Credentials);
            refusal.explain().why
        });
        (text, asked)
    }

    #[tokio::test]
    async fn a_right_that_is_missing_is_named_before_the_run_begins() {
        let (why, asked) = refused(&json!(false)).await;
        assert_eq!(why.as_deref(), Some("missing rights: get databases main in data"));
        assert_eq!(asked.len(), 1, "only of what there are criteria for: {asked:?}");
        assert_eq!(refused(&json!(true)).await.0, None);
    }
}
