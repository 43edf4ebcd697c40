//! Whether an expression holds of an object.

use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, oneshot};
use kube::{Api, Client};
use tiphys_expression::Expression;
use tiphys_model::criterion::ResourceCriterion;

use tiphys_cluster::RequestError;

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
        Some(object) => Expression::parse(expression)
            .map_err(|error| format!("`{expression}` cannot be evaluated: {error}"))?
            .holds(&object),
        None => Err(match capabilities.scope {
            Scope::Namespaced => format!("it is not there yet, in {namespace}"),
            Scope::Cluster => "it is not there yet".to_owned(),
        }),
    }
}

/// An operator may bring its kinds later than it is asked.
fn unknown(api_version: &str, kind: &str) -> String {
    format!("the cluster does not know {kind} of {api_version} yet")
}

fn unreadable(error: kube::Error) -> String {
    RequestError::because("it cannot be read")(error).to_string()
}
