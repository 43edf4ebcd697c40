//! The kinds of objects that a cluster has, found out once.

use std::collections::BTreeMap;
use std::fmt;

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, ObjectMeta};
use kube::discovery::verbs;
use kube::{Api, Client, Discovery};
use serde::Deserialize;

use crate::request::RequestError;

/// All kinds, each in the version that the cluster recommends.
pub struct Kinds {
    client: Client,
    /// By group and kind.
    known: BTreeMap<(String, String), Known>,
}

struct Known {
    resource: ApiResource,
    namespaced: bool,
    listable: bool,
}

/// An object, by name. Who is cluster-wide has no namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct ObjectName {
    pub group: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{}/{}", self.kind, self.name),
            namespace => write!(f, "{}/{namespace}/{}", self.kind, self.name),
        }
    }
}

/// How reading all objects of a kind ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    All,
    /// The caller may not list them.
    Denied,
    /// The kind has gone with its CRD, or cannot be listed in all namespaces at once.
    Absent,
}

/// Objects in one answer.
const PAGE: u32 = 500;

impl Kinds {
    pub async fn discover(client: &Client) -> Result<Self, RequestError> {
        let found = discover(client).await?;
        let all = found.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
        let known = all.map(|(resource, capabilities)| {
            let listable = capabilities.supports_operation(verbs::LIST)
                && capabilities.supports_operation(verbs::DELETE);
            let namespaced = capabilities.scope == kube::discovery::Scope::Namespaced;
            let name = (resource.group.clone(), resource.kind.clone());
            (name, Known { resource, namespaced, listable })
        });
        Ok(Kinds { client: client.clone(), known: known.collect() })
    }

    /// Every kind in every version that the cluster serves.
    pub async fn served(client: &Client) -> Result<Vec<GroupVersionKind>, RequestError> {
        let found = discover(client).await?;
        let versions = found.groups().flat_map(|group| {
            group.versions().flat_map(|version| group.versioned_resources(version))
        });
        let kind = |resource: ApiResource| {
            GroupVersionKind::gvk(&resource.group, &resource.version, &resource.kind)
        };
        Ok(versions.map(|(resource, _)| kind(resource)).collect())
    }

    /// Where to ask for an object; nowhere, if there is no such kind.
    #[must_use]
    pub fn api(&self, object: &ObjectName) -> Option<Api<DynamicObject>> {
        let known = self.known_of(object)?;
        Some(self.at(object, known, &known.resource))
    }

    /// Where to write an object that is in this version of its kind.
    #[must_use]
    pub fn api_in(&self, object: &ObjectName, version: &str) -> Option<Api<DynamicObject>> {
        let known = self.known_of(object)?;
        let mut resource = known.resource.clone();
        resource.api_version = match &*object.group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        version.clone_into(&mut resource.version);
        Some(self.at(object, known, &resource))
    }

    fn known_of(&self, object: &ObjectName) -> Option<&Known> {
        self.known.get(&(object.group.clone(), object.kind.clone()))
    }

    fn at(&self, object: &ObjectName, known: &Known, of: &ApiResource) -> Api<DynamicObject> {
        let client = self.client.clone();
        if known.namespaced {
            Api::namespaced_with(client, &object.namespace, of)
        } else {
            Api::all_with(client, of)
        }
    }

    /// The object as it is now; `None` if it is not there, or there is no such kind.
    pub async fn get(&self, object: &ObjectName) -> Result<Option<DynamicObject>, kube::Error> {
        match self.api(object) {
            Some(api) => api.get_opt(&object.name).await,
            None => Ok(None),
        }
    }

    /// The groups that have a kind of this name.
    #[must_use]
    pub fn groups_of(&self, kind: &str) -> Vec<&str> {
        let same = self.known.keys().filter(|(_, known)| known == kind);
        same.map(|(group, _)| group.as_str()).collect()
    }

    /// Reads the metadata of all objects of a kind, page by page.
    pub async fn each_object(
        resource: &ApiResource,
        api: &Api<DynamicObject>,
        mut each: impl FnMut(ObjectMeta),
    ) -> Result<Listed, RequestError> {
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let list = match api.list_metadata(&page).await {
                Ok(list) => list,
                Err(kube::Error::Api(status)) if [404, 405].contains(&status.code) => {
                    return Ok(Listed::Absent);
                }
                Err(kube::Error::Api(status)) if status.code == 403 => return Ok(Listed::Denied),
                Err(error) => {
                    let what = format!("cannot list objects of kind {}", resource.kind);
                    return Err(RequestError::because(what)(error));
                }
            };
            list.items.into_iter().for_each(|item| each(item.metadata));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(Listed::All),
            }
        }
    }

    /// All kinds of which objects can be listed and deleted.
    pub fn listable(&self) -> impl Iterator<Item = (&ApiResource, Api<DynamicObject>)> {
        let listable = self.known.values().filter(|known| known.listable);
        listable.map(|known| (&known.resource, Api::all_with(self.client.clone(), &known.resource)))
    }

    /// The same for what is in one namespace.
    pub fn listable_in(
        &self,
        namespace: &str,
    ) -> impl Iterator<Item = (&ApiResource, Api<DynamicObject>)> {
        let listable = self.known.values().filter(|known| known.listable && known.namespaced);
        listable.map(move |known| {
            let client = self.client.clone();
            (&known.resource, Api::namespaced_with(client, namespace, &known.resource))
        })
    }
}

/// In one go: an API that is registered and does not answer is left out, where asking each of them
/// would fail.
async fn discover(client: &Client) -> Result<Discovery, RequestError> {
    let found = Discovery::new(client.clone()).run_aggregated().await;
    found.map_err(RequestError::because("cannot discover the kinds of the cluster"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::scripted::Server;

    #[tokio::test]
    async fn a_kind_is_served_in_all_its_versions() {
        let group = |group: &str, versions: &[&str], kind: &str| {
            let version = |version: &&str| {
                let kind = json!({ "group": group, "version": version, "kind": kind });
                let resource = json!({
                    "resource": "any", "scope": "Cluster", "verbs": ["list"], "responseKind": kind,
                });
                json!({ "version": version, "resources": [resource] })
            };
            let versions: Vec<Value> = versions.iter().map(version).collect();
            let item = json!({ "metadata": { "name": group }, "versions": versions });
            json!({ "kind": "APIGroupDiscoveryList", "items": [item] })
        };
        let server = Server::default();
        server.put("/api", group("", &["v1"], "Pod"));
        server.put("/apis", group("autoscaling", &["v2", "v1"], "HorizontalPodAutoscaler"));
        let mut served = Kinds::served(&server.client()).await.unwrap();
        served.sort_by_key(GroupVersionKind::api_version);
        let scaler =
            |version| GroupVersionKind::gvk("autoscaling", version, "HorizontalPodAutoscaler");
        assert_eq!(served, [scaler("v1"), scaler("v2"), GroupVersionKind::gvk("", "v1", "Pod")]);
    }
}
