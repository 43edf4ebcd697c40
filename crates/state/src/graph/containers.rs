//! Reads from the cluster what holds and defines the objects of a platform: namespaces and CRDs,
//! and which of them apps have brought.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, ObjectList, PartialObjectMeta};
use kube::{Api, Client};
use tiphys_argocd::Applications;
use tiphys_argocd::application::Application;
use tiphys_cluster::{Cause, RequestError};

use super::{DeployedGraph, Names, Uids, names};

pub struct Containers {
    namespaces: Api<Namespace>,
    crds: Api<CustomResourceDefinition>,
    applications: Applications,
}

impl Containers {
    #[must_use]
    pub fn new(client: &Client, applications: Applications) -> Self {
        Containers {
            namespaces: Api::all(client.clone()),
            crds: Api::all(client.clone()),
            applications,
        }
    }

    /// What the cluster has now; nothing, if the caller may not list it. A teardown then leaves
    /// namespaces and CRDs where they are, so any other failure is an error: it would be the same.
    pub async fn list(&self) -> Result<Option<Uids>, RequestError> {
        let all = ListParams::default();
        let listed = async {
            Ok((self.namespaces.list_metadata(&all).await?, self.crds.list_metadata(&all).await?))
        };
        let what = "cannot list the namespaces and CRDs";
        match listed.await.map_err(RequestError::because(what)) {
            Ok((namespaces, crds)) => {
                Ok(Some(Uids { namespaces: uids(&namespaces), crds: uids(&crds) }))
            }
            Err(error) if error.cause() == Cause::Denied => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the apps of a graph have brought so far.
    pub async fn brought_before(&self, graph: &DeployedGraph) -> Result<Names, RequestError> {
        let known = |application: &Application| graph.apps.contains_key(application.name());
        let applications = self.applications.list(known).await?;
        let applications = applications.iter();
        // An older Tiphys took all for theirs that came after the first deployment.
        Ok(if graph.came.is_some() {
            names::synced(applications)
        } else {
            names::brought(applications)
        })
    }

    /// What these apps have brought.
    pub async fn brought_by(&self, apps: &BTreeSet<String>) -> Result<Names, RequestError> {
        let mut brought = Names::default();
        for app in apps {
            let what = format!("cannot read the Application `{app}`");
            let found = self.applications.get_opt(app).await;
            let found = found.map_err(RequestError::because(what))?;
            brought.extend(names::brought(found.iter()));
        }
        Ok(brought)
    }
}

fn uids<K: Clone>(listed: &ObjectList<PartialObjectMeta<K>>) -> BTreeMap<String, String> {
    let uid = |object: &PartialObjectMeta<K>| {
        Some((object.metadata.name.clone()?, object.metadata.uid.clone()?))
    };
    listed.items.iter().filter_map(uid).collect()
}

#[cfg(test)]
mod tests {
    use http::Method;
    use tiphys_cluster::scripted::Answer;
    use tiphys_model::{Exit, Explain};

    use super::*;
    use crate::hold::tests::argocd;
    use tiphys_cluster::scripted::{REFUSALS, Server};

    fn containers(server: &Server) -> Containers {
        Containers::new(&server.client(), Applications::of(&server.client(), &argocd(&["apps"])))
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_there_before_is_unknown_only_to_who_may_not_list_it() {
        for path in ["/api/v1/namespaces", "customresourcedefinitions"] {
            for (code, exit) in REFUSALS {
                let server = Server::default();
                server.next(Method::GET, path, Answer::refused(code, "no"));
                match containers(&server).list().await {
                    Ok(None) => assert_eq!(exit, Exit::Credentials, "{path} {code}"),
                    Err(error) => {
                        assert_eq!(error.explain().exit, exit, "{path} {code}");
                        assert_ne!(exit, Exit::Credentials);
                    }
                    Ok(Some(there)) => panic!("{there:?}"),
                }
            }
        }
        assert_eq!(containers(&Server::default()).list().await.unwrap(), Some(Uids::default()));
    }
}
