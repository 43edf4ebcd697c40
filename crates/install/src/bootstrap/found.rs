//! What is in the cluster of what a platform stands on, and whose it is.

use std::fmt;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use tiphys_model::bootstrap::{Primitive, PrimitiveName};

use tiphys_cluster::names::{MANAGED_BY, PRIMITIVE_LABEL};
use tiphys_cluster::{Cause, RequestError};

use super::render::{NOTE, OLD_NOTE};

/// What is there of one primitive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Absent,
    /// Installed by us, or begun to be.
    Ours {
        /// What is there as a whole; nothing, if no installation has come to its end.
        version: Option<String>,
    },
    /// What was seen of somebody else's.
    Foreign {
        seen: Vec<String>,
    },
}

/// What only this primitive brings, and what it is called.
fn mark(primitive: PrimitiveName) -> (ApiResource, &'static str) {
    let crd = |name| (ApiResource::erase::<CustomResourceDefinition>(&()), name);
    match primitive {
        PrimitiveName::ArgoCd => crd("applications.argoproj.io"),
        PrimitiveName::Workflows => crd("workflows.argoproj.io"),
        PrimitiveName::Events => crd("eventbus.argoproj.io"),
        PrimitiveName::Tiphys => {
            let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "ClusterWorkflowTemplate");
            (ApiResource::from_gvk(&kind), "tiphys-deploy")
        }
    }
}

/// Looks at the namespace and at the most telling object of a primitive.
pub async fn found(client: &Client, primitive: &Primitive) -> Result<Found, RequestError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let name = &primitive.namespace;
    let what = format!("cannot read the namespace {name}");
    let namespace = namespaces.get_opt(name).await.map_err(RequestError::because(what))?;
    let (resource, mark) = mark(primitive.name);
    let kind = match &*resource.kind {
        "CustomResourceDefinition" => "CRD",
        kind => kind,
    };
    let marks: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let what = format!("cannot read the {kind} {mark}");
    let marked = match marks.get_metadata(mark).await.map_err(RequestError::because(what)) {
        Ok(marked) => Some(marked),
        // Also if the cluster does not have the kind.
        Err(error) if error.cause() == Cause::NotFound => None,
        Err(error) => return Err(error),
    };
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), name);
    let mut notes = Vec::new();
    for note in [NOTE, OLD_NOTE] {
        let what = format!("cannot read the ConfigMap {note} in {name}");
        notes.extend(maps.get_opt(note).await.map_err(RequestError::because(what))?);
    }
    Ok(judge(
        primitive.name,
        version(primitive.name, notes),
        &[
            Seen { kind: "namespace", name, metadata: namespace.as_ref().map(|n| &n.metadata) },
            Seen { kind, name: mark, metadata: marked.as_ref().map(|m| &m.metadata) },
        ],
    ))
}

/// What the first of these notes says. One under the old name may be the graph of a platform.
fn version(primitive: PrimitiveName, notes: Vec<ConfigMap>) -> Option<String> {
    let note = notes.into_iter().find(|note| is_ours(&note.metadata, primitive));
    note?.data?.remove("version")
}

struct Seen<'a> {
    kind: &'a str,
    name: &'a str,
    /// `None`: it is not there.
    metadata: Option<&'a ObjectMeta>,
}

impl fmt::Display for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} {}", self.kind, self.name)
    }
}

fn judge(primitive: PrimitiveName, version: Option<String>, seen: &[Seen<'_>]) -> Found {
    let there: Vec<(&Seen<'_>, &ObjectMeta)> =
        seen.iter().filter_map(|seen| Some((seen, seen.metadata?))).collect();
    if there.is_empty() {
        return Found::Absent;
    }
    let foreign = there.iter().filter(|(_, metadata)| !is_ours(metadata, primitive));
    let foreign: Vec<String> = foreign.map(|(seen, _)| seen.to_string()).collect();
    if !foreign.is_empty() {
        return Found::Foreign { seen: foreign };
    }
    Found::Ours { version }
}

pub(super) fn is_ours(metadata: &ObjectMeta, primitive: PrimitiveName) -> bool {
    let label = |name: &str| metadata.labels.as_ref()?.get(name).map(String::as_str);
    label(MANAGED_BY.0) == Some(MANAGED_BY.1) && label(PRIMITIVE_LABEL) == Some(primitive.as_str())
}

#[cfg(test)]
mod tests {
    use http::Method;
    use tiphys_cluster::names::PLATFORM_LABEL;
    use tiphys_cluster::scripted::{Answer, Server};
    use tiphys_model::bootstrap::{Checksum, Manifests};

    use super::*;

    fn metadata(labels: &[(&str, &str)]) -> ObjectMeta {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        ObjectMeta { labels: Some(labels.iter().map(own).collect()), ..ObjectMeta::default() }
    }

    #[test]
    fn a_note_under_the_old_name_is_read_and_the_graph_of_a_platform_is_not() {
        let note = |labels: &[(&str, &str)], version: &str| ConfigMap {
            metadata: metadata(labels),
            data: Some([("version".to_owned(), version.to_owned())].into()),
            ..ConfigMap::default()
        };
        let ours = [MANAGED_BY, (PRIMITIVE_LABEL, "argocd")];
        let said = |notes: &[ConfigMap]| version(PrimitiveName::ArgoCd, notes.to_vec());
        let (new, old) = (note(&ours, "3.2.6"), note(&ours, "3.2.5"));
        let graph = note(&[MANAGED_BY, (PLATFORM_LABEL, "primitive")], "1");
        assert_eq!(said(&[new.clone(), old.clone()]).as_deref(), Some("3.2.6"));
        assert_eq!(said(&[old]).as_deref(), Some("3.2.5"));
        assert_eq!(said(&[new, graph.clone()]).as_deref(), Some("3.2.6"));
        assert_eq!(said(&[graph]), None);
    }

    /// As an API server answers that does not have Argo Workflows' kinds.
    #[tokio::test]
    async fn a_primitive_whose_kind_the_cluster_does_not_have_is_absent() {
        let server = Server::default();
        let unknown = Answer::refused(404, "404 page not found");
        server.next(Method::GET, "clusterworkflowtemplates", unknown);
        let primitive = Primitive {
            name: PrimitiveName::Tiphys,
            version: "0.1.0".to_owned(),
            namespace: "tiphys-system".to_owned(),
            manifests: Manifests::Path("tiphys.yaml".to_owned()),
            checksum: Checksum::parse(&"0".repeat(64)).unwrap(),
            patches: None,
        };
        assert_eq!(found(&server.client(), &primitive).await.unwrap(), Found::Absent);
    }

    #[test]
    fn what_is_not_labelled_as_ours_is_somebody_elses() {
        let ours = metadata(&[MANAGED_BY, (PRIMITIVE_LABEL, "argocd")]);
        let others = metadata(&[("app.kubernetes.io/managed-by", "Helm")]);
        let of_another = metadata(&[MANAGED_BY, (PRIMITIVE_LABEL, "events")]);
        let look = |namespace: Option<&ObjectMeta>, crd: Option<&ObjectMeta>| {
            let seen = |kind, name, metadata| Seen { kind, name, metadata };
            let seen = [seen("namespace", "n", namespace), seen("CRD", "c", crd)];
            judge(PrimitiveName::ArgoCd, None, &seen)
        };
        let foreign = |names: &[&str]| Found::Foreign {
            seen: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(look(None, None), Found::Absent);
        assert_eq!(look(Some(&ours), Some(&ours)), Found::Ours { version: None });
        assert_eq!(look(Some(&ours), None), Found::Ours { version: None });
        assert_eq!(look(Some(&others), None), foreign(&["the namespace n"]));
        assert_eq!(look(Some(&ours), Some(&others)), foreign(&["the CRD c"]));
        assert_eq!(look(None, Some(&of_another)), foreign(&["the CRD c"]));
        assert_eq!(look(Some(&others), Some(&others)), foreign(&["the namespace n", "the CRD c"]));
    }
}
