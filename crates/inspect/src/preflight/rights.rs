//! Which rights bootstrap needs, and which of them are missing.

use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::Client;
use tiphys_assess::preflight::Problem;
use tiphys_cluster::access_review;

use super::within;

/// How many questions are under way at the same time.
const AT_ONCE: usize = 16;

/// Server-side apply is a `patch`, and of what is not there yet a `create`.
const APPLY: &[&str] = &["get", "create", "patch"];
/// Who has not all the rights that a role gives may only write it with `escalate`, and only bind
/// it with `bind`: Argo CD's may do everything.
const APPLY_ROLES: &[&str] = &["get", "create", "patch", "escalate", "bind"];

/// What the installer applies, by group and resource, and what it looks at when pods do not start.
const NEEDED: [(&str, &str, &[&str]); 19] = [
    ("", "namespaces", APPLY),
    ("", "configmaps", APPLY),
    ("", "events", &["list"]),
    ("", "pods", &["list"]),
    ("", "secrets", APPLY),
    ("", "serviceaccounts", APPLY),
    ("", "services", APPLY),
    ("apiextensions.k8s.io", "customresourcedefinitions", APPLY),
    ("apps", "deployments", APPLY),
    ("apps", "statefulsets", APPLY),
    ("argoproj.io", "applications", APPLY),
    ("argoproj.io", "appprojects", APPLY),
    ("argoproj.io", "clusterworkflowtemplates", APPLY),
    ("networking.k8s.io", "networkpolicies", APPLY),
    ("rbac.authorization.k8s.io", "clusterrolebindings", APPLY),
    ("rbac.authorization.k8s.io", "clusterroles", APPLY_ROLES),
    ("rbac.authorization.k8s.io", "rolebindings", APPLY),
    ("rbac.authorization.k8s.io", "roles", APPLY_ROLES),
    ("scheduling.k8s.io", "priorityclasses", APPLY),
];

/// Verb, group and resource.
type Right = (&'static str, &'static str, &'static str);

fn all() -> impl Iterator<Item = Right> {
    NEEDED
        .into_iter()
        .flat_map(|(group, resource, verbs)| verbs.iter().map(move |verb| (*verb, group, resource)))
}

/// How many rights are asked for.
pub(super) fn count() -> usize {
    all().count()
}

/// `VERB RESOURCE` of each right that the caller does not have.
pub(super) async fn missing(client: &Client) -> Result<Vec<String>, Problem> {
    let asked: Vec<_> = all().map(|right| lacks(client, right)).collect();
    let answers: Vec<Option<String>> = stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
    Ok(answers.into_iter().flatten().collect())
}

async fn lacks(client: &Client, right: Right) -> Result<Option<String>, Problem> {
    let (verb, group, resource) = right;
    let may = may(client, verb, group, resource).await?;
    Ok((!may).then(|| format!("{verb} {resource}")))
}

/// Whether the caller may do this everywhere. The answer is all that comes of asking.
pub(super) async fn may(
    client: &Client,
    verb: &str,
    group: &str,
    resource: &str,
) -> Result<bool, Problem> {
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        ..ResourceAttributes::default()
    };
    within("cannot check the rights", access_review::may(client, attributes)).await
}
