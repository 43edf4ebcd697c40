//! The platform file of a platform whose root app cannot hand it out: because there is none, or because
//! Argo CD's API is not used. `configure` keeps it, so that the platform can be deployed by its name.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use serde_json::{Map, Value, json};
use tiphys_argocd::platform_file::{LABEL, PlatformFiles};
use tiphys_cluster::names::{self, NAMESPACE};
use tiphys_cluster::{Cause, RequestError};
use tiphys_model::platform::ArgoCdAccess;
use tiphys_model::{Platform, PlatformName};

use super::objects::cluster_metadata;

/// The ConfigMap as it should be. One that is there and not needed any more is emptied.
pub(super) async fn object(
    client: &Client,
    platform: &Platform,
    files: &PlatformFiles,
) -> Result<Option<Value>, RequestError> {
    let argocd = &platform.argocd;
    let needed = !argocd.has_root_app || argocd.access == ArgoCdAccess::Kubernetes;
    let stored = match read(client, &argocd.namespace, &platform.name).await {
        // Whoever has rights in the namespaces of Argo CD only can do without it.
        Err(error) if error.cause() == Cause::Denied => None,
        stored => stored?,
    };
    if !needed && stored.is_none() {
        return Ok(None);
    }
    let mut metadata =
        cluster_metadata(platform, &names::stored_file(&argocd.namespace, &platform.name));
    metadata["namespace"] = NAMESPACE.into();
    metadata["labels"][LABEL] = platform.name.to_string().into();
    let data: Map<String, Value> = if needed {
        files.iter().map(|(name, text)| (key(name), text.clone().into())).collect()
    } else {
        Map::new()
    };
    Ok(Some(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data,
    })))
}

/// What is kept of a platform, if anything is.
pub async fn read(
    client: &Client,
    argocd: &str,
    platform: &PlatformName,
) -> Result<Option<PlatformFiles>, RequestError> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let name = names::stored_file(argocd, platform);
    let what = format!("cannot read the ConfigMap {name} in {NAMESPACE}");
    let found = maps.get_opt(&name).await.map_err(RequestError::because(what))?;
    Ok(found.and_then(|map| map.data).filter(|data| !data.is_empty()))
}

/// Keys have fewer characters than files.
fn key(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    name.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use tiphys_cluster::scripted::Server;

    use super::*;
    use crate::configure::objects::tests::platform;

    #[tokio::test]
    async fn it_is_kept_where_nobody_else_has_it() {
        let server = Server::default();
        let files = PlatformFiles::from([("my platform.yaml".to_owned(), "kind: Platform".into())]);
        let of = async |platform: &Platform| {
            object(&server.client(), platform, &files).await.unwrap().map(|map| map["data"].clone())
        };
        let mut platform = platform("prod");
        assert_eq!(of(&platform).await, None);
        platform.argocd.access = ArgoCdAccess::Kubernetes;
        let kept = json!({ "my_platform.yaml": "kind: Platform" });
        assert_eq!(of(&platform).await, Some(kept.clone()));
        platform.argocd.access = ArgoCdAccess::Api;
        platform.argocd.has_root_app = false;
        assert_eq!(of(&platform).await, Some(kept.clone()));

        let path = "/api/v1/namespaces/tiphys/configmaps/tiphys.argocd.prod.file";
        server.put(path, json!({ "data": kept }));
        let stored = read(&server.client(), "argocd", &platform.name).await.unwrap();
        assert_eq!(stored.unwrap()["my_platform.yaml"], "kind: Platform");
        platform.argocd.has_root_app = true;
        assert_eq!(of(&platform).await, Some(json!({})), "the root app has it now");
        server.put(path, json!({ "data": {} }));
        assert_eq!(of(&platform).await, None);
    }
}
