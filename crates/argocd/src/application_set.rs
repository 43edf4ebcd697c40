//! ApplicationSets: objects of a kind that only generators and a teardown look at.

use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Api, Client};

/// The annotation that asks the ApplicationSet controller to look at a set; it removes it when it
/// has brought the Applications to the template. A new value is a new request.
pub const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";

#[must_use]
pub fn api(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "ApplicationSet");
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}
