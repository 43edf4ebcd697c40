//! Where the resources of an Application are.

use std::sync::Arc;

use serde_json::Value;

use crate::application::Application;

/// The cluster that Argo CD runs in, as destinations name it.
pub const IN_CLUSTER_SERVER: &str = "https://kubernetes.default.svc";
const IN_CLUSTER_NAME: &str = "in-cluster";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Destination {
    /// Empty: each resource names its own.
    pub namespace: Arc<str>,
    /// The name or address of the cluster, unless it is the one that Argo CD runs in. A cluster
    /// may have more names and addresses than these two, so another one may be the same.
    pub other_cluster: Option<Arc<str>>,
}

impl From<&Value> for Destination {
    fn from(destination: &Value) -> Self {
        let text = |field: &str| destination[field].as_str().unwrap_or_default();
        let (server, name) = (text("server").trim_end_matches('/'), text("name"));
        let other_cluster = match (name, server) {
            (IN_CLUSTER_NAME, _) | (_, IN_CLUSTER_SERVER) => None,
            // Argo CD refuses it.
            ("", "") => Some("(no name or address)".into()),
            ("", server) => Some(server.into()),
            (name, _) => Some(name.into()),
        };
        Destination { namespace: text("namespace").into(), other_cluster }
    }
}

impl Application {
    #[must_use]
    pub fn destination(&self) -> Destination {
        (&self.spec.destination).into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_is_this_one_by_its_own_name_or_address_only() {
        let cluster = |destination| Destination::from(&destination).other_cluster;
        for this in [
            json!({ "server": "https://kubernetes.default.svc", "namespace": "x" }),
            json!({ "server": "https://kubernetes.default.svc/" }),
            json!({ "name": "in-cluster" }),
        ] {
            assert_eq!(cluster(this.clone()), None, "{this}");
        }
        for (other, told) in [
            (json!({ "name": "edge", "server": "" }), "edge"),
            (json!({ "server": "https://10.0.0.1:6443" }), "https://10.0.0.1:6443"),
            (json!({ "namespace": "x" }), "(no name or address)"),
            (Value::Null, "(no name or address)"),
        ] {
            assert_eq!(cluster(other.clone()).as_deref(), Some(told), "{other}");
        }
    }
}
