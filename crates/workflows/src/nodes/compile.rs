//! From a plan to a workflow: the same plan, the same bytes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tiphys_cluster::names::{ARGOCD_LABEL, MANAGED_BY, NAMESPACE, PLATFORM_LABEL};
use tiphys_model::{AppName, Exit, Explain, Explanation, Plan};

use super::task_names::task_names;

/// The plugin, and the container that it is.
pub(super) const PLUGIN: &str = "tiphys";
/// On which it listens, in its pod only.
pub const PLUGIN_PORT: u16 = 4242;
/// Up to this size, Argo Workflows writes a workflow as it is. What is larger it compresses, and then
/// does not see which nodes have ended.
const LARGEST: usize = 1024 * 1024;
/// What a node adds to its workflow besides its names: 420 bytes on Argo Workflows 4.0.7, and room for
/// what it says.
const NODE: usize = 560;
/// How often the name of an app is part of its node and of its task, and how long a reference to it from
/// another node is, rounded up.
const NAMES_PER_NODE: usize = 5;
const REFERENCE: usize = 45;
/// What Argo Workflows is given on top of the run's own deadline: to begin, and to end.
const GRACE_SECONDS: u64 = 600;

/// The pod that Argo Workflows makes for the nodes, as the chart describes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentPod {
    /// The image of the executor, which is the plugin.
    pub image: String,
    pub image_pull_policy: String,
    #[serde(default)]
    pub image_pull_secrets: Vec<String>,
    #[serde(default)]
    pub node_selector: Map<String, Value>,
    #[serde(default)]
    pub tolerations: Vec<Value>,
}

/// The workflow that the run is a step of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Owner {
    pub name: String,
    pub uid: String,
}

/// A run whose apps become nodes.
#[derive(Debug, Clone)]
pub struct NodesRun<'a> {
    pub plan: &'a Plan,
    /// `DIGEST12-EPOCH`.
    pub run: &'a str,
    /// Of the platform's Lease, by which the plugin knows whether the run is still there.
    pub epoch: u64,
    /// The namespace of Argo CD.
    pub argocd: &'a str,
    /// Of the ServiceAccount in which the agent's pod runs.
    pub account: &'a str,
    pub owner: &'a Owner,
    pub pod: &'a AgentPod,
}

/// More apps than a workflow has room for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.explain())]
pub struct TooLarge {
    apps: usize,
    bytes: usize,
}

impl Explain for TooLarge {
    fn explain(&self) -> Explanation {
        let TooLarge { apps, bytes } = self;
        Explanation::new(
            Exit::Configuration,
            "the platform is too large for a workflow with a node for each app",
            format!("{apps} apps need {bytes} bytes, and Argo Workflows takes {LARGEST}"),
        )
        .hint("set `workflows: single` in the platform file, or deploy it in scopes")
    }
}

impl NodesRun<'_> {
    pub(super) fn workflow(&self) -> Result<Value, TooLarge> {
        let NodesRun { plan, owner, pod, .. } = self;
        let platform = &plan.platform;
        let apps: Vec<&AppName> = plan.apps.iter().map(|app| &app.app.name).collect();
        let deadline = plan.policies.timeout.as_secs() + GRACE_SECONDS;
        let secrets = pod.image_pull_secrets.iter().map(|name| json!({ "name": name }));
        let workflow = json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {
                "generateName": "tiphys-nodes-",
                "namespace": NAMESPACE,
                "labels": {
                    MANAGED_BY.0: MANAGED_BY.1,
                    PLATFORM_LABEL: platform,
                    ARGOCD_LABEL: self.argocd,
                    NODES_LABEL: "true",
                },
                "annotations": { "tiphys.dev/run": self.run },
                "ownerReferences": [{
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "Workflow",
                    "name": owner.name,
                    "uid": owner.uid,
                }],
            },
            "spec": {
                "entrypoint": "platform",
                "serviceAccountName": self.account,
                "activeDeadlineSeconds": deadline,
                "imagePullSecrets": secrets.collect::<Vec<_>>(),
                "nodeSelector": pod.node_selector,
                "tolerations": pod.tolerations,
                "podSpecPatch": self.pod_patch().to_string(),
                "templates": [
                    {
                        "name": "platform",
                        // One that fails keeps back those that depend on it, and no others.
                        "dag": { "failFast": false, "tasks": self.tasks(&apps) },
                    },
                    {
                        "name": "app",
                        "inputs": { "parameters": [{ "name": "app" }] },
                        "plugin": { PLUGIN: { "app": "{{inputs.parameters.app}}" } },
                    },
                ],
            },
        });
        let nodes = apps.iter().zip(&plan.apps).map(|(name, app)| {
            let references = app.app.dependencies.len() * REFERENCE;
            NODE + NAMES_PER_NODE * name.as_str().len() + references
        });
        let bytes = workflow.to_string().len() + nodes.sum::<usize>();
        if bytes > LARGEST {
            return Err(TooLarge { apps: apps.len(), bytes });
        }
        Ok(workflow)
    }

    fn tasks(&self, apps: &[&AppName]) -> Vec<Value> {
        let names = task_names(apps);
        let task = |app| {
            let before = self.plan.graph.dependencies(app).iter();
            let mut before: Vec<&str> = before.map(|app| &*names[app.position()]).collect();
            before.sort_unstable();
            let name = &self.plan.app(app).app.name;
            let mut task = json!({
                "name": names[app.position()],
                "template": "app",
                "arguments": { "parameters": [{ "name": "app", "value": name }] },
            });
            if !before.is_empty() {
                task["dependencies"] = json!(before);
            }
            task
        };
        self.plan.graph.apps().map(task).collect()
    }

    /// Makes the executor the agent's only plugin, whatever else is registered. So no setting of Argo
    /// Workflows is needed, and no plugin of ours is in anybody else's pods.
    fn pod_patch(&self) -> Value {
        let env = json!([
            { "name": "ARGO_PLUGIN_NAMES", "value": json!([PLUGIN]).to_string() },
            {
                "name": "ARGO_PLUGIN_ADDRESSES",
                "value": json!([format!("http://localhost:{PLUGIN_PORT}")]).to_string(),
            },
            { "name": "ARGO_AGENT_PATCH_RATE", "value": "1s" },
        ]);
        let variables = [
            ("TIPHYS_PLATFORM", self.plan.platform.to_string()),
            ("TIPHYS_NAMESPACE", self.argocd.to_owned()),
            ("TIPHYS_EPOCH", self.epoch.to_string()),
        ];
        let token = json!({
            "name": "tiphys-token",
            "projected": { "sources": [
                { "serviceAccountToken": { "path": "token" } },
                {
                    "configMap": {
                        "name": "kube-root-ca.crt",
                        "items": [{ "key": "ca.crt", "path": "ca.crt" }],
                    },
                },
                {
                    "downwardAPI": { "items": [
                        { "path": "namespace", "fieldRef": { "fieldPath": "metadata.namespace" } },
                    ] },
                },
            ] },
        });
        let variables = variables.map(|(name, value)| json!({ "name": name, "value": value }));
        let plugin = json!({
            "name": PLUGIN,
            "image": self.pod.image,
            "imagePullPolicy": self.pod.image_pull_policy,
            "command": ["/tiphys", "executor", "plugin"],
            "ports": [{ "containerPort": PLUGIN_PORT }],
            "env": variables,
            "resources": {
                "requests": { "cpu": "10m", "memory": "32Mi" },
                "limits": { "memory": "128Mi" },
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
            "volumeMounts": [
                {
                    "name": "var-run-argo",
                    "mountPath": "/var/run/argo",
                    "subPath": PLUGIN,
                    "readOnly": true,
                },
                {
                    "name": "tiphys-token",
                    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                    "readOnly": true,
                },
            ],
        });
        json!({
            // The agent does not hear that it should stop.
            "terminationGracePeriodSeconds": 5,
            "volumes": [token],
            "initContainers": [{ "name": "init", "env": env }],
            "containers": [{ "name": "main", "env": env }, plugin],
        })
    }
}

/// On workflows with nodes.
pub(super) const NODES_LABEL: &str = "tiphys.dev/nodes";

#[cfg(test)]
pub(super) mod tests;
