//! What Argo CD knows Git servers by: the authorities of their certificates, and their host keys.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use serde_json::json;
use tiphys_cluster::RequestError;
use tiphys_cluster::names;
use tiphys_model::Platform;

use super::objects::Desired;

/// By the name of a server.
pub(super) const AUTHORITIES: &str = "argocd-tls-certs-cm";
/// One text for all servers, which all who have a server add to.
const HOST_KEYS: &str = "argocd-ssh-known-hosts-cm";
const HOST_KEYS_FIELD: &str = "ssh_known_hosts";

/// Argo CD looks for a server without its port.
pub(super) fn https_host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next()?,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then_some(host)
}

/// The host keys with those that are missing, if any are. What is there stays.
pub(super) async fn host_keys(
    client: &Client,
    platform: &Platform,
    wanted: &str,
) -> Result<Option<Desired>, RequestError> {
    let namespace = &platform.argocd.namespace;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let what = format!("cannot read the ConfigMap {HOST_KEYS} in {namespace}");
    let found = maps.get_opt(HOST_KEYS).await.map_err(RequestError::because(what))?;
    let (metadata, data) = found.map(|map| (map.metadata, map.data)).unwrap_or_default();
    let known = data.and_then(|mut data| data.remove(HOST_KEYS_FIELD)).unwrap_or_default();
    let Some(text) = with_missing(&known, wanted) else { return Ok(None) };
    let ObjectMeta { resource_version, .. } = metadata;
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": HOST_KEYS, "namespace": namespace, "resourceVersion": resource_version,
        },
        "data": { HOST_KEYS_FIELD: text },
    });
    Ok(Some(Desired { manager: names::own(platform), object }))
}

fn with_missing(known: &str, wanted: &str) -> Option<String> {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    };
    let there = lines(known);
    let missing: Vec<String> =
        lines(wanted).into_iter().filter(|line| !there.contains(line)).collect();
    if missing.is_empty() {
        return None;
    }
    let known = known.trim_end();
    Some(format!("{known}\n{}\n", missing.join("\n")).trim_start().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_name_alone() {
        for (url, host) in [
            ("https://git.example/platform.git", Some("git.example")),
            ("https://me:secret@git.example:8443/platform.git", Some("git.example")),
            ("https://[2001:db8::1]:8443/platform.git", Some("2001:db8::1")),
            ("https:///platform.git", None),
            ("ssh://git@git.example/platform.git", None),
            ("git@git.example:platform.git", None),
        ] {
            assert_eq!(https_host(url), host, "{url}");
        }
    }

    #[test]
    fn host_keys_are_added_once_and_none_is_taken_away() {
        let there = "# theirs\ngithub.com ssh-rsa AAAA\n";
        assert_eq!(with_missing(there, "github.com ssh-rsa AAAA\n\n"), None);
        assert_eq!(
            with_missing(there, "git.example ssh-rsa BBBB").unwrap(),
            "# theirs\ngithub.com ssh-rsa AAAA\ngit.example ssh-rsa BBBB\n"
        );
        assert_eq!(with_missing("", "a ssh-rsa B").unwrap(), "a ssh-rsa B\n");
    }
}
