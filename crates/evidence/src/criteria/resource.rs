//! Whether an expression holds of an object.

use std::time::Duration;

use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, oneshot};
use kube::{Api, Client};
use serde::Serialize;
use tiphys_expression::{Budget, Expression, Unmet};
use tiphys_model::criterion::ResourceCriterion;

use tiphys_cluster::RequestError;

/// How long an evaluation may take. The usual one takes microseconds.
const EVALUATION_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) async fn ask(
    client: &Client,
    wanted: &ResourceCriterion,
    namespace: &str,
) -> Result<(), String> {
    let ResourceCriterion { api_version, kind, name, expression, .. } = wanted;
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let wanted = GroupVersionKind::gvk(group, version, kind);
    let (resource, capabilities) = match oneshot::pinned_kind(client, &wanted).await {
        Ok(known) => known,
        Err(kube::Error::Discovery(_)) => return Err(unknown(api_version, kind)),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            return Err(unknown(api_version, kind));
        }
        Err(error) => return Err(unreadable(error)),
    };
    let objects: Api<DynamicObject> = match capabilities.scope {
        Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &resource),
        Scope::Cluster => Api::all_with(client.clone(), &resource),
    };
    match objects.get_opt(name).await.map_err(unreadable)? {
        Some(object) => evaluate(expression, object).await.map_err(|unmet| match unmet {
            // Whatever was found, a field or an error, may quote a value.
            Unmet::Found(_) if is_secret(&wanted) => format!("`{expression}` is not true"),
            unmet => unmet.to_string(),
        }),
        None => Err(match capabilities.scope {
            Scope::Namespaced => format!("not found yet in {namespace}"),
            Scope::Cluster => "not found yet".to_owned(),
        }),
    }
}

fn is_secret(kind: &GroupVersionKind) -> bool {
    kind.group.is_empty() && kind.kind == "Secret"
}

/// Beside the runtime, whose only thread also renews the Lease.
async fn evaluate(expression: &str, object: impl Serialize + Send + 'static) -> Result<(), Unmet> {
    let parsed = Expression::parse(expression)
        .map_err(|error| Unmet::Found(format!("cannot evaluate `{expression}`: {error}")))?;
    let budget = Budget::default();
    // A thread cannot be stopped, but runs out of budget when nobody waits for it any more.
    let _withdrawn = WithdrawOnDrop(budget.clone());
    let evaluation = tokio::task::spawn_blocking(move || parsed.holds(&object, &budget));
    match tokio::time::timeout(EVALUATION_TIMEOUT, evaluation).await {
        Ok(Ok(judged)) => judged,
        Ok(Err(error)) => Err(Unmet::Found(format!("cannot evaluate `{expression}`: {error}"))),
        Err(_) => Err(Unmet::TooLong),
    }
}

struct WithdrawOnDrop(Budget);

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}

/// An operator may bring its kinds later than it is asked.
fn unknown(api_version: &str, kind: &str) -> String {
    format!("the cluster does not have the kind {kind} of {api_version} yet")
}

fn unreadable(error: kube::Error) -> String {
    RequestError::because("cannot read it")(error).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::{Value, json};
    use tiphys_cluster::scripted::{self, Answer};

    use super::*;

    const VALUE: &str = "aHVudGVyMg";

    /// A cluster that knows Secrets and ConfigMaps, and answers with the same object for any name.
    fn cluster(kind: &str) -> Client {
        let data = json!({ "password": VALUE, VALUE: "x", "user": "root", "items": [VALUE] });
        let metadata = json!({ "name": "db", "namespace": "a" });
        let object =
            json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data });
        scripted::client(move |asked| {
            Answer::Object(match asked.path.as_str() {
                "/api/v1" => kinds(),
                _ => object.clone(),
            })
        })
    }

    fn kinds() -> Value {
        let kind = |kind: &str, name: &str| {
            let verbs = ["get", "list"];
            json!({ "kind": kind, "name": name, "singularName": "", "namespaced": true, "verbs": verbs })
        };
        let resources = [kind("Secret", "secrets"), kind("ConfigMap", "configmaps")];
        json!({ "kind": "APIResourceList", "groupVersion": "v1", "resources": resources })
    }

    async fn asked(kind: &str, expression: &str) -> Result<(), String> {
        let wanted = ResourceCriterion {
            api_version: "v1".into(),
            kind: kind.into(),
            name: "db".into(),
            namespace: None,
            expression: expression.into(),
        };
        ask(&cluster(kind), &wanted, "a").await
    }

    /// Each of these makes a message that quotes a value, unless it is of a Secret.
    const QUOTING: [&str; 8] = [
        "obj.data.password == 'x'",
        "obj.data.password",
        "obj.data.password > 3",
        "obj.data[obj.data.items[0] + obj.data.password] == 'x'",
        "obj.data[obj.data.password].absent",
        "{obj.data.password: 1}[obj.data.password + 'x'] == 1",
        "obj.data.items[obj.data.password]",
        "obj.data.password.matches(obj.data.password + '(')",
    ];

    #[tokio::test]
    async fn the_values_of_a_secret_are_not_told() {
        for expression in QUOTING {
            let told = asked("Secret", expression).await.unwrap_err();
            assert_eq!(told, format!("`{expression}` is not true"));
            let told = asked("ConfigMap", expression).await.unwrap_err();
            assert_ne!(told, format!("`{expression}` is not true"));
        }
        assert_eq!(asked("Secret", "obj.data.user == 'root'").await, Ok(()));
        let quoting = asked("ConfigMap", QUOTING[0]).await.unwrap_err();
        assert!(quoting.contains(VALUE), "{quoting}");
    }

    /// Regular expressions are made anew for each item, and this one is large: what the budget
    /// allows of it takes minutes. The runtime has one thread, as in a run.
    #[tokio::test]
    async fn a_slow_expression_holds_up_nothing_and_ends() {
        let items: Vec<u32> = (0..50_000).collect();
        let slow = r"obj.items.all(n, string(n).matches('^(\\pL{50}|\\d{1,100}){1,30}$'))";
        let began = Instant::now();
        let renewed = async {
            let mut times = 0_u32;
            while began.elapsed() < EVALUATION_TIMEOUT / 2 {
                tokio::time::sleep(Duration::from_millis(20)).await;
                times += 1;
            }
            times
        };
        let (judged, renewed) = tokio::join!(evaluate(slow, json!({ "items": items })), renewed);
        assert_eq!(judged, Err(Unmet::TooLong));
        let took = began.elapsed();
        assert!(took >= EVALUATION_TIMEOUT && took < 3 * EVALUATION_TIMEOUT, "{took:?}");
        assert!(renewed > 10, "{renewed}");
    }
}
