//! What an Argo CD needs to have before it can read a platform: its projects and its root app.
//!
//! `tiphys configure` will make these for users; tests of everything else begin here.

use serde_json::{Value, json};

use super::PlatformRepository;

const NAMESPACE: &str = "argocd";
const CLUSTER: &str = "https://kubernetes.default.svc";

impl PlatformRepository {
    /// The AppProjects of the apps and of the root app.
    #[must_use]
    pub fn app_projects(&self) -> [Value; 2] {
        let apps = json!({
            "sourceRepos": [self.repo_url],
            "destinations": [{ "server": CLUSTER, "namespace": "*" }],
            // `CreateNamespace` needs Namespaces; tests bring CRDs.
            "clusterResourceWhitelist": [{ "group": "*", "kind": "*" }],
        });
        let root = json!({
            "sourceRepos": [self.repo_url],
            "destinations": [{ "server": CLUSTER, "namespace": NAMESPACE }],
            "namespaceResourceWhitelist": [{ "group": "argoproj.io", "kind": "Application" }],
        });
        [project(&self.project, &apps), project(&self.root_project, &root)]
    }

    /// The name of the root app.
    #[must_use]
    pub fn root_name(&self) -> String {
        format!("{}-root", self.name)
    }

    /// The root app: never synced by itself, and each child at the commit that it is synced at.
    #[must_use]
    pub fn root_application(&self) -> Value {
        json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": { "name": self.root_name(), "namespace": NAMESPACE },
            "spec": {
                "project": self.root_project,
                "source": {
                    "repoURL": self.repo_url,
                    "targetRevision": self.target_revision,
                    "path": "root",
                    "helm": { "parameters": [{
                        "name": "revision",
                        "value": "$ARGOCD_APP_REVISION",
                        // A commit of digits only is no number.
                        "forceString": true,
                    }] },
                },
                "destination": { "server": CLUSTER, "namespace": NAMESPACE },
            },
        })
    }
}

fn project(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_app_pins_its_children_and_never_syncs_itself() {
        let platform = PlatformRepository::new("demo", "ssh://git@example.org/demo.git");
        let root = platform.root_application();
        assert_eq!(root["metadata"]["name"], "demo-root");
        assert_eq!(root["spec"]["project"], "demo-root");
        let parameter = &root["spec"]["source"]["helm"]["parameters"][0];
        assert_eq!(parameter["value"], "$ARGOCD_APP_REVISION");
        assert!(root["spec"].get("syncPolicy").is_none());
        let [apps, _] = platform.app_projects();
        assert_eq!(apps["metadata"]["name"], "demo");
    }
}
