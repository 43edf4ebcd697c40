//! The AppProjects of a platform: what its apps may be made of, and what the root app may make.

use std::collections::BTreeSet;

use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tiphys_argocd::app_project;
use tiphys_cluster::RequestError;
use tiphys_cluster::names::PLATFORM_LABEL;
use tiphys_model::Platform;
use tiphys_model::platform::{Allowed, Destination, DestinationCluster, GroupKind, Source};

use super::objects::metadata;
use tiphys_argocd::destination::IN_CLUSTER_SERVER;

/// Projects of the apps that are there, and not by `configure`: whoever has made them decides what
/// is in them.
pub(super) async fn shared(
    client: &Client,
    platform: &Platform,
) -> Result<BTreeSet<String>, RequestError> {
    let api = app_project::api(client, &platform.argocd.namespace);
    let mut shared = BTreeSet::new();
    for project in &platform.argocd.projects {
        let what = format!("cannot read the AppProject `{project}`");
        let found = api.get_opt(project).await.map_err(RequestError::because(what))?;
        if found.is_some_and(|found| !found.labels().contains_key(PLATFORM_LABEL)) {
            shared.insert(project.clone());
        }
    }
    Ok(shared)
}

/// What the platform file does not limit is not limited: it names its apps, but not what they are
/// made of.
pub(super) fn of_apps(platform: &Platform, name: &str) -> Value {
    let destination = |destination: &Destination| {
        let (field, cluster) = match &destination.cluster {
            DestinationCluster::Server(server) => ("server", server),
            DestinationCluster::Name(name) => ("name", name),
        };
        json!({ field: cluster, "namespace": destination.namespace })
    };
    let kind = |allowed: &GroupKind| json!({ "group": allowed.group, "kind": allowed.kind });
    let any = |value: Value| json!([value]);
    let Allowed { sources, destinations, cluster_kinds } = &platform.argocd.allowed;
    let spec = json!({
        "description": "The apps of a platform that Tiphys deploys",
        "sourceRepos": sources.as_ref().map_or_else(|| any("*".into()), |all| json!(all)),
        "destinations": destinations.as_ref().map_or_else(
            || any(json!({ "server": "*", "namespace": "*" })),
            |all| all.iter().map(destination).collect(),
        ),
        "clusterResourceWhitelist": cluster_kinds.as_ref().map_or_else(
            || any(json!({ "group": "*", "kind": "*" })),
            |all| all.iter().map(kind).collect(),
        ),
    });
    project(platform, name, spec)
}

/// The root app makes Applications, from one repository, and nothing else.
pub(super) fn of_root(platform: &Platform, source: &Source) -> Value {
    let namespaces = platform.argocd.all_namespaces();
    let destinations: Vec<Value> = namespaces
        .map(|namespace| json!({ "server": IN_CLUSTER_SERVER, "namespace": namespace }))
        .collect();
    let spec = json!({
        "description": "The root app of a platform that Tiphys deploys",
        "sourceRepos": [source.repo_url],
        "destinations": destinations,
        "namespaceResourceWhitelist": [
            { "group": "argoproj.io", "kind": "Application" },
            { "group": "argoproj.io", "kind": "ApplicationSet" },
        ],
    });
    project(platform, &platform.argocd.root_project, spec)
}

/// `spec.syncWindows` is never here: a run's hold stands there.
fn project(platform: &Platform, name: &str, mut spec: Value) -> Value {
    let namespaces = &platform.argocd.application_namespaces;
    if !namespaces.is_empty() {
        spec["sourceNamespaces"] = json!(namespaces);
    }
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": metadata(platform, name),
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use tiphys_model::NamespaceName;

    use super::*;
    use crate::configure::objects::tests::platform;

    #[test]
    fn the_root_project_lets_one_repository_make_applications_here() {
        let platform = platform("prod");
        let project = of_root(&platform, platform.source.as_ref().unwrap());
        assert_eq!(project["metadata"]["name"], "roots");
        let spec = &project["spec"];
        assert_eq!(spec["sourceRepos"], json!(["https://git.example/platform.git"]));
        assert_eq!(
            spec["destinations"],
            json!([{ "server": IN_CLUSTER_SERVER, "namespace": "argocd" }])
        );
        assert_eq!(spec.get("clusterResourceWhitelist"), None);
        let kinds: Vec<&Value> = spec["namespaceResourceWhitelist"]
            .as_array()
            .unwrap()
            .iter()
            .map(|allowed| &allowed["kind"])
            .collect();
        assert_eq!(kinds, ["Application", "ApplicationSet"]);
    }

    #[test]
    fn the_project_of_the_apps_allows_what_the_platform_file_says() {
        let spec = |platform: &Platform| {
            let project = of_apps(platform, "apps");
            assert_eq!(project["metadata"]["name"], "apps");
            ["sourceRepos", "destinations", "clusterResourceWhitelist"]
                .map(|field| project["spec"][field].clone())
        };
        let mut platform = platform("prod");
        let anywhere = json!([{ "server": "*", "namespace": "*" }]);
        let any_kind = json!([{ "group": "*", "kind": "*" }]);
        assert_eq!(spec(&platform), [json!(["*"]), anywhere, any_kind]);

        let destination = |cluster, namespace: &str| {
            let namespace = namespace.to_owned();
            Destination { cluster, namespace }
        };
        platform.argocd.allowed = Allowed {
            sources: Some(vec!["https://git.example/*".to_owned()]),
            destinations: Some(vec![
                destination(DestinationCluster::Server(IN_CLUSTER_SERVER.to_owned()), "team-*"),
                destination(DestinationCluster::Name("edge".to_owned()), "edge"),
            ]),
            cluster_kinds: Some(Vec::new()),
        };
        let there = json!([
            { "server": IN_CLUSTER_SERVER, "namespace": "team-*" }, { "name": "edge", "namespace": "edge" },
        ]);
        assert_eq!(spec(&platform), [json!(["https://git.example/*"]), there, json!([])]);

        let [group, kind] = ["rbac.authorization.k8s.io", "ClusterRole"].map(str::to_owned);
        platform.argocd.allowed.cluster_kinds = Some(vec![GroupKind { group, kind }]);
        let roles = json!([{ "group": "rbac.authorization.k8s.io", "kind": "ClusterRole" }]);
        assert_eq!(spec(&platform)[2], roles);
    }

    #[test]
    fn applications_may_be_in_the_namespaces_that_the_platform_file_names() {
        let mut platform = platform("prod");
        let source = platform.source.clone().unwrap();
        let both = |platform: &Platform| [of_apps(platform, "apps"), of_root(platform, &source)];
        for project in both(&platform) {
            assert_eq!(project["spec"].get("sourceNamespaces"), None);
        }
        platform.argocd.application_namespaces = vec![NamespaceName::parse("team").unwrap()];
        for project in both(&platform) {
            assert_eq!(project["spec"]["sourceNamespaces"], json!(["team"]));
        }
        let here = |namespace: &str| json!({ "server": IN_CLUSTER_SERVER, "namespace": namespace });
        let destinations = &both(&platform)[1]["spec"]["destinations"];
        assert_eq!(*destinations, json!([here("argocd"), here("team")]));
    }
}
