//! Namespaces that apps apply themselves: Argo CD deletes them with their app, and Kubernetes then
//! deletes all that is in them, whosever it is.

use std::collections::BTreeSet;

use tiphys_argocd::application::Application;
use tiphys_assess::ownership;
use tiphys_cluster::{Kinds, ObjectName, RequestError};

use super::inventory::Division;
use super::{Teardown, TeardownError};
use crate::graph::{DeployedGraph, Names};

impl Teardown {
    /// Refuses to delete apps whose namespaces hold what must not go.
    pub(super) async fn refuse_cascades(
        &self,
        kinds: &Kinds,
        graph: &DeployedGraph,
        removed: &[&Application],
    ) -> Result<(), TeardownError> {
        let applied: Vec<(&str, &str)> = removed
            .iter()
            .flat_map(|application| {
                let resources = application.status.resources.iter().flatten();
                let namespaces = resources.filter(|r| r.group.is_empty() && r.kind == "Namespace");
                namespaces.map(|namespace| (application.name(), namespace.name.as_str()))
            })
            .collect();
        if applied.is_empty() {
            return Ok(());
        }
        let beside = self.beside().await?;
        for (app, namespace) in applied {
            if is_protected(kinds, namespace).await? {
                continue;
            }
            let found = Names { namespaces: [namespace.to_owned()].into(), crds: BTreeSet::new() };
            let Division { kept, .. } =
                beside.divide_in(&self.client, kinds, &self.platform, graph, &found).await?;
            let held = kept.into_iter().filter(|kept| kept.object.namespace == namespace);
            let held: Vec<_> = held.collect();
            if !held.is_empty() {
                let (app, namespace) = (app.to_owned(), namespace.to_owned());
                return Err(TeardownError::NamespaceHolds { app, namespace, held });
            }
        }
        Ok(())
    }
}

/// Whether Argo CD leaves a namespace where it is, or it is not there.
async fn is_protected(kinds: &Kinds, name: &str) -> Result<bool, RequestError> {
    let object = ObjectName {
        group: String::new(),
        kind: "Namespace".to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    };
    let what = format!("{object} cannot be read");
    let found = kinds.get(&object).await.map_err(RequestError::because(what))?;
    Ok(found.is_none_or(|found| {
        let labels = found.metadata.labels.unwrap_or_default();
        let annotations = found.metadata.annotations.unwrap_or_default();
        ownership::keep(&labels, &annotations).is_some()
    }))
}
