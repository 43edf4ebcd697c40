//! ApplicationSets as generators. Their own controller makes Applications from a template, some
//! time after the template has changed: they are done when every one of them follows it.

use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::Value;

use super::{GeneratorError, Generators, POLL, SETS_TIMEOUT};
use tiphys_argocd::application::{self, Application, ResourceStatus};
use tiphys_cluster::RequestError;
use tokio::time::Instant;

pub(super) fn is_application_set(resource: &ResourceStatus) -> bool {
    resource.group == "argoproj.io" && resource.kind == "ApplicationSet"
}

pub(crate) fn api(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "ApplicationSet");
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

impl Generators<'_> {
    /// Waits until an ApplicationSet has brought its Applications to its template; those that are
    /// generators themselves.
    pub(super) async fn settle(&self, name: &str) -> Result<Vec<String>, GeneratorError> {
        let began = Instant::now();
        loop {
            let what = format!("the ApplicationSet `{name}` cannot be read");
            let set = self.sets.get(name).await.map_err(RequestError::because(what))?;
            refuse_rolling_sync(name, &set.data)?;
            let children = application::list(self.applications, |a| is_made_by(a, name)).await?;
            let Some(lack) = unsettled(&set.data, &children) else {
                let generators = children.iter().filter(|child| self.is_in_root_project(child));
                return Ok(generators.map(|child| child.name().to_owned()).collect());
            };
            if began.elapsed() > SETS_TIMEOUT {
                let (set, after) = (name.to_owned(), SETS_TIMEOUT);
                return Err(GeneratorError::Unsettled { set, after, lack });
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// With it, the controller syncs its Applications itself, in an order of its own and as automated
/// syncs, which a hold denies: the run and the set would wait for each other.
fn refuse_rolling_sync(name: &str, set: &Value) -> Result<(), GeneratorError> {
    let strategy = set.pointer("/spec/strategy/type").and_then(Value::as_str).unwrap_or_default();
    if strategy != "RollingSync" {
        return Ok(());
    }
    Err(GeneratorError::RollingSync { set: name.to_owned() })
}

fn is_made_by(application: &Application, set: &str) -> bool {
    let owners = application.metadata.owner_references.iter().flatten();
    owners.into_iter().any(|owner| owner.kind == "ApplicationSet" && owner.name == set)
}

/// What is not yet as the template says, if anything. Every commit gives the template another
/// revision, so an Application at that revision was made from it.
fn unsettled(set: &Value, children: &[Application]) -> Option<String> {
    let conditions = set.pointer("/status/conditions").and_then(Value::as_array);
    let condition = |kind: &str| {
        let mut all = conditions.into_iter().flatten();
        all.find(|condition| condition["type"] == kind && condition["status"] == "True")
    };
    if let Some(error) = condition("ErrorOccurred") {
        let message = error["message"].as_str().unwrap_or("no reason given");
        return Some(format!("its controller says: {message}"));
    }
    if condition("ResourcesUpToDate").is_none() {
        return Some("its controller has not looked at it".to_owned());
    }
    let template = set.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    let behind: Vec<&str> = children
        .iter()
        .filter(|child| !follows(&template["source"], &child.spec.source))
        .map(Application::name)
        .collect();
    (!behind.is_empty())
        .then(|| format!("another revision than the template has: {}", behind.join(", ")))
}

/// What the set fills in for each Application cannot be told from here.
fn follows(template: &Value, source: &Value) -> bool {
    match template["targetRevision"].as_str() {
        Some(revision) if !revision.contains("{{") => source["targetRevision"] == revision,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(revision: &str, conditions: &Value) -> Value {
        json!({
            "spec": { "template": { "spec": { "source": { "targetRevision": revision } } } },
            "status": { "conditions": conditions },
        })
    }

    fn child(revision: &str) -> Application {
        serde_json::from_value(json!({
            "metadata": {
                "name": "vault",
                "ownerReferences": [{
                    "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
                    "name": "apps", "uid": "u",
                }],
            },
            "spec": { "source": { "targetRevision": revision } },
        }))
        .unwrap()
    }

    #[test]
    fn it_is_settled_when_its_controller_says_so_and_every_child_follows() {
        let up_to_date = json!([
            { "type": "ErrorOccurred", "status": "False" },
            { "type": "ResourcesUpToDate", "status": "True" },
        ]);
        let children = [child("abc")];
        assert_eq!(unsettled(&set("abc", &up_to_date), &children), None);
        assert_eq!(
            unsettled(&set("def", &up_to_date), &children).unwrap(),
            "another revision than the template has: vault"
        );
        assert_eq!(unsettled(&set("{{.revision}}", &up_to_date), &children), None);
        assert_eq!(
            unsettled(&set("abc", &Value::Null), &children).unwrap(),
            "its controller has not looked at it"
        );
        let failed =
            json!([{ "type": "ErrorOccurred", "status": "True", "message": "no cluster" }]);
        assert_eq!(
            unsettled(&set("abc", &failed), &children).unwrap(),
            "its controller says: no cluster"
        );
    }

    #[test]
    fn children_are_known_by_their_owner() {
        assert!(is_made_by(&child("abc"), "apps"));
        assert!(!is_made_by(&child("abc"), "others"));
    }

    #[test]
    fn rolling_sync_is_refused_by_name() {
        let with = |strategy: Value| {
            refuse_rolling_sync("apps", &json!({ "spec": { "strategy": strategy } }))
        };
        let error = with(json!({ "type": "RollingSync" })).unwrap_err();
        assert!(matches!(error, GeneratorError::RollingSync { set } if set == "apps"));
        assert!(with(json!({ "type": "AllAtOnce" })).is_ok());
        assert!(with(Value::Null).is_ok());
    }
}
