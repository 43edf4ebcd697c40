//! What is there beside the apps that have gone: other Applications, of this Argo CD or another.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use tiphys_argocd::Applications;
use tiphys_argocd::application::{self, Application};
use tiphys_assess::ownership::{self, Others};
use tiphys_cluster::{Cause, Kinds, RequestError, names};
use tiphys_model::Platform;
use tiphys_model::platform::ArgoCd;
use tiphys_state::graph::{self, DeployedGraph, Names};

use super::inventory::{Division, Inventory};
use super::namespaces_and_crds::removable;

/// All Applications that are there, as far as they concern what came with a platform.
#[derive(Default)]
pub(super) struct Beside {
    used: Names,
    /// What their Argo CD may call them in tracking ids.
    pub(super) tracked_as: BTreeSet<String>,
    /// An Application for each project that has one.
    in_project: BTreeMap<String, String>,
}

impl Beside {
    /// Those in all namespaces, or in those of the platform if nobody may list more. Of these, `ours`
    /// are left out.
    pub(super) async fn read(
        client: &Client,
        argocd: &ArgoCd,
        ours: impl Fn(&Application) -> bool,
    ) -> Result<Self, RequestError> {
        let mut beside = Beside::default();
        // None is kept: there may be thousands.
        let mut note = |application: &Application| {
            let may_be_ours = argocd.all_namespaces().any(|one| one == application.namespace());
            if !(may_be_ours && ours(application)) {
                beside.note(application, &argocd.namespace);
            }
            false
        };
        let listed = application::list(&Api::all(client.clone()), &mut note).await;
        let listed = match listed {
            Err(error) if error.cause() == Cause::Denied => {
                Applications::of(client, argocd).list(&mut note).await
            }
            listed => listed,
        };
        match listed {
            // Without Argo CD there are none.
            Err(error) if error.cause() != Cause::NotFound => Err(error),
            Ok(_) | Err(_) => Ok(beside),
        }
    }

    fn note(&mut self, application: &Application, own: &str) {
        self.used.extend(graph::used(std::iter::once(application)));
        let name = application.name().to_owned();
        self.in_project.insert(application.spec.project.clone(), name.clone());
        // One in another namespace may be of this Argo CD, which then names the namespace too, or
        // of another one.
        if let Some(namespace) = application.metadata.namespace.as_deref().filter(|n| *n != own) {
            self.tracked_as.insert(format!("{namespace}_{name}"));
        }
        self.tracked_as.insert(name);
    }

    /// An Application that is in this project.
    pub(super) fn user_of(&self, project: &str) -> Option<&str> {
        self.in_project.get(project).map(String::as_str)
    }

    /// What of that which came with the platform goes, and what stays.
    pub(super) async fn divide(
        &self,
        client: &Client,
        kinds: &Kinds,
        platform: &Platform,
        graph: &DeployedGraph,
        including: &[Others],
    ) -> Result<Division, RequestError> {
        let came = removable(graph.came_with_it(), &platform.argocd.namespace, &self.used);
        self.divide_in(client, kinds, platform, graph, &came, including).await
    }

    /// The same for these namespaces and CRDs, whoever uses them.
    pub(super) async fn divide_in(
        &self,
        client: &Client,
        kinds: &Kinds,
        platform: &Platform,
        graph: &DeployedGraph,
        found: &Names,
        including: &[Others],
    ) -> Result<Division, RequestError> {
        let apps = graph.apps.keys().chain(&graph.gone).cloned();
        // In which of its namespaces an app was that is gone, nobody knows.
        let argocd = &platform.argocd;
        let instances = |app: String| -> Vec<String> {
            argocd.all_namespaces().map(|one| argocd.instance_name(one, &app)).collect()
        };
        let judged_by = ownership::Platform {
            name: platform.name.to_string(),
            apps: apps.chain([names::root_application(platform)]).flat_map(instances).collect(),
            keeping: graph.keeping.iter().cloned().flat_map(instances).collect(),
            installation: installation(client, &platform.argocd.namespace).await?,
            others: self.tracked_as.clone(),
            namespaces: &graph.came_with_it().namespaces & &found.namespaces,
            including: including.to_vec(),
            disposable: platform.teardown.disposable.clone(),
        };
        let noted = graph.came.clone().unwrap_or_default();
        Ok(Inventory::read(kinds, found, &noted, judged_by).await?.divide(found))
    }
}

/// The name that Argo CD puts on what it applies, if it was given one.
async fn installation(client: &Client, namespace: &str) -> Result<Option<String>, RequestError> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let what = format!("cannot read the ConfigMap argocd-cm in {namespace}");
    let settings = maps.get_opt("argocd-cm").await.map_err(RequestError::because(what))?;
    let data = settings.and_then(|settings| settings.data).unwrap_or_default();
    Ok(data.get("installationID").filter(|id| !id.is_empty()).cloned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_application_is_known_by_all_names_that_an_argo_cd_may_give_it() {
        let application = |namespace: &str| -> Application {
            let metadata = json!({ "name": "shop", "namespace": namespace });
            let spec = json!({ "project": "blog", "destination": { "namespace": "web" } });
            serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
        };
        let mut beside = Beside::default();
        beside.note(&application("argocd"), "argocd");
        assert_eq!(beside.tracked_as, ["shop".to_owned()].into());
        beside.note(&application("team"), "argocd");
        assert_eq!(beside.tracked_as, ["shop", "team_shop"].map(str::to_owned).into());
        assert_eq!(beside.user_of("blog"), Some("shop"));
        assert_eq!(beside.user_of("other"), None);
        assert!(beside.used.namespaces.contains("web"));
    }
}
