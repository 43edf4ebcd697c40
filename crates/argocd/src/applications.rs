//! The Applications of a platform, in all namespaces where they may be. Which one an Application is
//! in is found by looking.

use std::collections::{BTreeMap, BTreeSet};

use kube::{Api, Client};
use tiphys_cluster::RequestError;
use tiphys_model::platform::ArgoCd;

use crate::address::AppAddress;
use crate::application::{self, Application};

/// Names of Applications that are in several namespaces, and those namespaces.
pub type Namesakes = BTreeMap<String, BTreeSet<String>>;

#[derive(Clone)]
pub struct Applications {
    /// In Argo CD's own namespace.
    own: Api<Application>,
    others: BTreeMap<String, Api<Application>>,
    /// Of the platform.
    projects: BTreeSet<String>,
}

impl Applications {
    #[must_use]
    pub fn of(client: &Client, argocd: &ArgoCd) -> Self {
        let api = |namespace: &str| Api::namespaced(client.clone(), namespace);
        let others = argocd.application_namespaces.iter();
        Applications {
            own: api(&argocd.namespace),
            others: others.map(|other| (other.to_string(), api(other.as_str()))).collect(),
            projects: argocd.all_projects().map(str::to_owned).collect(),
        }
    }

    /// The Applications that somebody wants. Of those with the same name, the platform's.
    pub async fn list(
        &self,
        wanted: impl FnMut(&Application) -> bool,
    ) -> Result<Vec<Application>, RequestError> {
        let mut chosen: Vec<Application> = Vec::new();
        let mut positions: BTreeMap<String, usize> = BTreeMap::new();
        for found in self.list_all(wanted).await? {
            match positions.get(found.name()) {
                None => {
                    positions.insert(found.name().to_owned(), chosen.len());
                    chosen.push(found);
                }
                Some(at) if !self.is_ours(&chosen[*at]) && self.is_ours(&found) => {
                    chosen[*at] = found;
                }
                Some(_) => {}
            }
        }
        Ok(chosen)
    }

    /// Which of these names more than one Application has, in projects of the platform. Without a
    /// request, if there is only one namespace.
    pub async fn namesakes(&self, names: &BTreeSet<String>) -> Result<Namesakes, RequestError> {
        if self.others.is_empty() {
            return Ok(Namesakes::new());
        }
        let found = self.list_all(|one| names.contains(one.name()) && self.is_ours(one)).await?;
        let mut namespaces = Namesakes::new();
        for one in found {
            let of = namespaces.entry(one.name().to_owned()).or_default();
            of.insert(one.namespace().to_owned());
        }
        namespaces.retain(|_, namespaces| namespaces.len() > 1);
        Ok(namespaces)
    }

    /// The Application of this name. Of several, the platform's.
    pub async fn get_opt(&self, name: &str) -> kube::Result<Option<Application>> {
        let mut of_others = None;
        for api in self.all() {
            let Some(found) = api.get_opt(name).await? else { continue };
            if self.is_ours(&found) {
                return Ok(Some(found));
            }
            of_others.get_or_insert(found);
        }
        Ok(of_others)
    }

    /// The same, where it has to be there.
    pub async fn get(&self, name: &str) -> kube::Result<Application> {
        if !self.others.is_empty()
            && let Some(found) = self.get_opt(name).await?
        {
            return Ok(found);
        }
        self.own.get(name).await
    }

    /// Those in the namespace of this one.
    #[must_use]
    pub fn beside(&self, app: &AppAddress) -> &Api<Application> {
        self.others.get(&*app.namespace).unwrap_or(&self.own)
    }

    /// Whether it is in a project of the platform.
    pub(crate) fn is_ours(&self, application: &Application) -> bool {
        self.projects.contains(&application.spec.project)
    }

    /// By namespace, Argo CD's own first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Api<Application>> {
        [&self.own].into_iter().chain(self.others.values())
    }

    async fn list_all(
        &self,
        mut wanted: impl FnMut(&Application) -> bool,
    ) -> Result<Vec<Application>, RequestError> {
        let mut found = Vec::new();
        for api in self.all() {
            found.extend(application::list(api, &mut wanted).await?);
        }
        Ok(found)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};
    use tiphys_cluster::scripted::Server;
    use tiphys_model::platform::{Allowed, ArgoCdAccess};
    use tiphys_model::{ApiServer, NamespaceName};

    use super::*;

    /// A platform in Argo CD's own namespace and in these.
    pub(crate) fn argocd(others: &[&str]) -> ArgoCd {
        ArgoCd {
            namespace: "argocd".to_owned(),
            application_namespaces: others
                .iter()
                .map(|other| NamespaceName::parse(other).unwrap())
                .collect(),
            projects: vec!["apps".to_owned()],
            root_project: "roots".to_owned(),
            has_root_app: true,
            access: ArgoCdAccess::default(),
            server: ApiServer::default(),
            allowed: Allowed::default(),
        }
    }

    fn application(project: &str) -> Value {
        json!({ "spec": { "project": project } })
    }

    fn path(namespace: &str, name: &str) -> String {
        format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications/{name}")
    }

    /// `a` is in Argo CD's namespace, `b` in another one. Others have namesakes of both.
    fn server() -> Server {
        let server = Server::default();
        for (namespace, name, project) in [
            ("argocd", "a", "apps"),
            ("argocd", "b", "theirs"),
            ("team", "a", "theirs"),
            ("team", "b", "apps"),
            ("web", "b", "theirs"),
            ("unknown", "c", "apps"),
        ] {
            server.put(&path(namespace, name), application(project));
        }
        server
    }

    fn places(found: &[Application]) -> Vec<String> {
        found.iter().map(|one| format!("{}/{}", one.namespace(), one.name())).collect()
    }

    #[tokio::test]
    async fn an_application_is_found_in_whichever_namespace_it_is() {
        let server = server();
        let applications = Applications::of(&server.client(), &argocd(&["web", "team"]));
        let listed = applications.list(|_| true).await.unwrap();
        assert_eq!(places(&listed), ["argocd/a", "team/b"]);
        for (name, expected) in [("a", "argocd/a"), ("b", "team/b")] {
            let found = applications.get_opt(name).await.unwrap().unwrap();
            assert_eq!(places(&[found]), [expected]);
            let found = applications.get(name).await.unwrap();
            assert_eq!(places(&[found]), [expected]);
        }
        assert!(applications.get_opt("c").await.unwrap().is_none());
        let missing = applications.get("c").await.unwrap_err();
        assert!(matches!(missing, kube::Error::Api(status) if status.code == 404));
    }

    #[tokio::test]
    async fn names_that_two_applications_of_the_platform_have_are_found() {
        let server = server();
        let names = ["a", "b", "c"].map(str::to_owned).into();
        let applications = Applications::of(&server.client(), &argocd(&["team", "web"]));
        assert_eq!(applications.namesakes(&names).await.unwrap(), Namesakes::new());
        server.put(&path("web", "b"), application("roots"));
        let twice = ["team", "web"].map(str::to_owned).into();
        let expected = Namesakes::from([("b".to_owned(), twice)]);
        assert_eq!(applications.namesakes(&names).await.unwrap(), expected);
    }

    #[tokio::test]
    async fn one_namespace_takes_one_request() {
        let server = server();
        let applications = Applications::of(&server.client(), &argocd(&[]));
        applications.list(|_| true).await.unwrap();
        applications.get_opt("c").await.unwrap();
        applications.get("a").await.unwrap();
        applications.get("c").await.unwrap_err();
        applications.namesakes(&["a".to_owned()].into()).await.unwrap();
        let asked = server.asked();
        assert_eq!(asked.len(), 4, "{asked:?}");
        assert!(asked.iter().all(|one| one.path.contains("/namespaces/argocd/")), "{asked:?}");
    }
}
