//! AppProjects, of which only single fields are read.

use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Api, Client};

#[must_use]
pub fn api(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "AppProject");
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}
