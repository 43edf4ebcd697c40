//! Objects of the kinds that we write ourselves, as plain data.

use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};

/// All of a kind: in one namespace, or beside them.
#[must_use]
pub fn dynamic(
    client: &Client,
    namespace: Option<&str>,
    api_version: &str,
    kind: &str,
) -> Api<DynamicObject> {
    let resource = resource(api_version, kind);
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// The plural follows from the kind, but for the one that does not follow the rule.
fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    if kind.kind == "EventBus" {
        return ApiResource::from_gvk_with_plural(&kind, "eventbus");
    }
    ApiResource::from_gvk(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_those_of_the_definitions() {
        let plural = |version: &str, kind: &str| resource(version, kind).plural;
        assert_eq!(plural("v1", "Secret"), "secrets");
        assert_eq!(plural("argoproj.io/v1alpha1", "Sensor"), "sensors");
        assert_eq!(plural("argoproj.io/v1alpha1", "EventBus"), "eventbus");
        let policy = plural("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy");
        assert_eq!(policy, "validatingadmissionpolicies");
    }
}
