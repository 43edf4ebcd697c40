//! Namespaces that apps apply themselves: Argo CD deletes them with their app, and Kubernetes then
//! deletes all that is in them, whosever it is.

use tiphys_argocd::application::Application;
use tiphys_assess::ownership;
use tiphys_cluster::{Kinds, ObjectName, RequestError};
use tiphys_state::graph::{DeployedGraph, Names};

use super::inventory::{Division, Kept};
use super::{Teardown, TeardownError};

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
        let mut found = Names::default();
        for (_, namespace) in &applied {
            if !is_protected(kinds, namespace).await? {
                found.namespaces.insert((*namespace).to_owned());
            }
        }
        let beside = self.beside().await?;
        let including = &self.options.including;
        let division =
            beside.divide_in(&self.client, kinds, &self.platform, graph, &found, including).await?;
        for (app, namespace) in applied {
            let held = held_in(&division, namespace);
            if found.namespaces.contains(namespace) && !held.is_empty() {
                let (app, namespace) = (app.to_owned(), namespace.to_owned());
                return Err(TeardownError::NamespaceHolds { app, namespace, held });
            }
        }
        Ok(())
    }
}

/// What keeps a namespace from going: the objects in it, or that they cannot be read.
fn held_in(division: &Division, namespace: &str) -> Vec<Kept> {
    let inside = |kept: &&Kept| kept.object.namespace == namespace;
    let itself = |kept: &&Kept| kept.object.kind == "Namespace" && kept.object.name == namespace;
    let held: Vec<Kept> = division.kept.iter().filter(inside).cloned().collect();
    if held.is_empty() { division.kept.iter().filter(itself).cloned().collect() } else { held }
}

/// Whether Argo CD leaves a namespace where it is, or it is not there.
async fn is_protected(kinds: &Kinds, name: &str) -> Result<bool, RequestError> {
    let object = ObjectName {
        group: String::new(),
        kind: "Namespace".to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    };
    let what = format!("cannot read {object}");
    let found = kinds.get(&object).await.map_err(RequestError::because(what))?;
    Ok(found.is_none_or(|found| {
        let labels = found.metadata.labels.unwrap_or_default();
        let annotations = found.metadata.annotations.unwrap_or_default();
        ownership::keep(&labels, &annotations).is_some()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(kind: &str, namespace: &str, name: &str) -> Kept {
        let [kind, namespace, name] = [kind, namespace, name].map(str::to_owned);
        let object = ObjectName { group: String::new(), kind, namespace, name };
        Kept { object, why: "it is theirs".to_owned() }
    }

    #[test]
    fn a_namespace_whose_objects_cannot_be_read_is_held_too() {
        let (theirs, unread) = (kept("Secret", "shop", "a"), kept("Namespace", "", "web"));
        let kept = vec![kept("Namespace", "", "shop"), theirs.clone(), unread.clone()];
        let division = Division { kept, ..Division::default() };
        assert_eq!(held_in(&division, "shop"), [theirs]);
        assert_eq!(held_in(&division, "web"), [unread]);
        assert_eq!(held_in(&division, "free"), []);
    }
}
