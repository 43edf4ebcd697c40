//! From pinned manifests to the objects that are applied, in order. Nothing here looks at a
//! cluster: the same inputs give the same objects.

mod images;
mod manifests;
mod overlay;
mod place;
mod sizes;
mod surroundings;

use serde_json::{Value, json};
use tiphys_model::bootstrap::{Bootstrap, Primitive, PrimitiveName, REQUEUE_TIME};
use tiphys_model::{Platform, PlatformName};

use tiphys_cluster::names::{INSTALLED_FOR, MANAGED_BY, PRIMITIVE_LABEL};
use tiphys_cluster::workload::is_workload;

/// The ConfigMap that says which version of a primitive is there as a whole. The graph of a platform
/// is in `tiphys-NAME`, and no platform has a dot in its name.
pub(super) const NOTE: &str = "tiphys.primitive";
/// What it was called before, when it could be the graph of a platform called `primitive`.
pub(super) const OLD_NOTE: &str = "tiphys-primitive";
/// The Secret with which images are pulled.
pub(super) const PULL_SECRET: &str = "tiphys-registry";
/// How many replicas a component has that can have several.
const REPLICAS: u64 = 2;

/// What is needed beside the platform file.
#[derive(Debug, Clone, Default)]
pub struct RenderInput {
    pub manifests: String,
    pub patches: Option<String>,
    /// Host keys that Argo CD shall know.
    pub known_hosts: Option<String>,
    /// Images are pulled with credentials.
    pub pull_secret: bool,
}

/// A primitive as it is applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    pub primitive: Primitive,
    /// Each is ready before the next one begins.
    pub stages: Vec<Stage>,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    pub name: String,
    pub objects: Vec<Value>,
}

/// Why manifests cannot be used: what, and in which object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RenderError(pub(super) String);

/// Makes the objects of a primitive.
pub fn render(
    platform: &Platform,
    bootstrap: &Bootstrap,
    primitive: &Primitive,
    given: &RenderInput,
) -> Result<Rendered, RenderError> {
    let mut objects = manifests::read(&given.manifests)?;
    let mut warnings = Vec::new();
    for object in &mut objects {
        place::place(object, primitive.name.namespace(), &primitive.namespace);
        sizes::limit(object);
        if bootstrap.high_availability {
            sizes::replicate(object, REPLICAS);
        }
        if given.pull_secret {
            pull_with_secret(object);
        }
    }
    match primitive.name {
        PrimitiveName::ArgoCd => {
            trust_hosts(&mut objects, given.known_hosts.as_deref());
            let_kustomize_use_helm(&mut objects);
        }
        PrimitiveName::Workflows => prepare_for_nodes(&mut objects),
        PrimitiveName::Events | PrimitiveName::Tiphys => {}
    }
    let mirrored = images::executor(primitive, &bootstrap.images);
    if let Some(executor) = mirrored {
        argue(&mut objects, "workflow-controller", &["--executor-image", &executor]);
    }
    // Our chart has no public image: its values say where this site has it.
    if primitive.name != PrimitiveName::Tiphys {
        for object in &mut objects {
            images::rewrite(object, &bootstrap.images);
        }
    }
    if bootstrap.high_availability {
        warnings.extend(single(&objects));
    }
    objects.splice(0..0, surroundings::surroundings(primitive));
    if let Some(patches) = &given.patches {
        overlay::lay(&mut objects, &manifests::read(patches)?, &primitive.namespace)?;
    }
    for object in &mut objects {
        label(object, &platform.name, primitive.name);
    }
    Ok(Rendered {
        primitive: primitive.clone(),
        stages: stages(&platform.name, primitive, objects),
        warnings,
    })
}

/// CRDs must be known before objects of their kinds, and what is there as a whole is noted last.
fn stages(platform: &PlatformName, primitive: &Primitive, mut objects: Vec<Value>) -> Vec<Stage> {
    objects.sort_by_key(|object| (rank(object), identity(object)));
    let first = objects.partition_point(|object| rank(object) < Rank::Rights);
    let rest = objects.split_off(first);
    let mut note = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": NOTE, "namespace": primitive.namespace },
        "data": { "version": primitive.version },
    });
    label(&mut note, platform, primitive.name);
    let name = primitive.name.as_str();
    vec![
        Stage { name: format!("{name}: namespace and CRDs"), objects },
        Stage { name: format!("{name}: controllers"), objects: rest },
        Stage { name: format!("{name}: note"), objects: vec![note] },
    ]
}

/// What comes before what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Namespace,
    Crd,
    Rights,
    Settings,
    Workload,
    Webhook,
}

fn rank(object: &Value) -> Rank {
    match kind(object) {
        "Namespace" => Rank::Namespace,
        "CustomResourceDefinition" => Rank::Crd,
        "ServiceAccount" | "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding"
        | "NetworkPolicy" | "PriorityClass" => Rank::Rights,
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => Rank::Webhook,
        kind if is_workload(kind) => Rank::Workload,
        _ => Rank::Settings,
    }
}

pub(super) fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(super) fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

fn identity(object: &Value) -> (String, String, String) {
    (kind(object).to_owned(), namespace(object).to_owned(), name(object).to_owned())
}

/// So that it is found again, and not taken for somebody else's.
pub(super) fn label(object: &mut Value, platform: &PlatformName, primitive: PrimitiveName) {
    let labels = &mut object["metadata"]["labels"];
    labels[MANAGED_BY.0] = MANAGED_BY.1.into();
    labels[PRIMITIVE_LABEL] = primitive.as_str().into();
    labels[INSTALLED_FOR] = platform.as_str().into();
}

/// The spec of the pods that a workload makes.
fn pod_spec(object: &mut Value) -> Option<&mut Value> {
    is_workload(kind(object)).then(|| object.pointer_mut("/spec/template/spec")).flatten()
}

fn pull_with_secret(object: &mut Value) {
    if let Some(spec) = pod_spec(object) {
        spec["imagePullSecrets"] = json!([{ "name": PULL_SECRET }]);
    }
}

/// Beside those that upstream knows.
fn trust_hosts(objects: &mut [Value], known_hosts: Option<&str>) {
    let map = objects.iter_mut().find(|object| name(object) == "argocd-ssh-known-hosts-cm");
    let (Some(map), Some(hosts)) = (map, known_hosts) else { return };
    let known = map["data"]["ssh_known_hosts"].as_str().unwrap_or_default().trim_end();
    map["data"]["ssh_known_hosts"] = format!("{known}\n{}\n", hosts.trim_end()).trim_start().into();
}

/// Kustomizations may inflate charts. Patches are laid over it, so whoever wants other options says so
/// there.
fn let_kustomize_use_helm(objects: &mut [Value]) {
    let settings = objects.iter_mut().find(|object| name(object) == "argocd-cm");
    if let Some(settings) = settings {
        settings["data"]["kustomize.buildOptions"] = "--enable-helm".into();
    }
}

/// Runs may have a node for each app. Upstream's role lacks what the controller needs to tidy up after
/// nodes that have ended.
fn prepare_for_nodes(objects: &mut [Value]) {
    let (requeue, time) = REQUEUE_TIME;
    for object in objects {
        match (kind(object), name(object)) {
            ("Deployment", "workflow-controller") => {
                let container = object.pointer_mut("/spec/template/spec/containers/0");
                let Some(container) = container else { continue };
                if !container["env"].is_array() {
                    container["env"] = json!([]);
                }
                let Some(variables) = container["env"].as_array_mut() else { continue };
                variables.retain(|variable| variable["name"] != requeue);
                variables.push(json!({ "name": requeue, "value": time }));
            }
            ("ClusterRole" | "Role", "argo-cluster-role" | "argo-role") => {
                if let Some(rules) = object["rules"].as_array_mut() {
                    rules.push(json!({
                        "apiGroups": ["argoproj.io"],
                        "resources": ["workflowtasksets/status"],
                        "verbs": ["patch"],
                    }));
                }
            }
            _ => {}
        }
    }
}

/// Gives a Deployment's first container more arguments.
fn argue(objects: &mut [Value], deployment: &str, arguments: &[&str]) {
    let found = objects
        .iter_mut()
        .find(|object| kind(object) == "Deployment" && name(object) == deployment)
        .and_then(|object| object.pointer_mut("/spec/template/spec/containers/0"));
    let Some(container) = found else { return };
    let mut all = container["args"].as_array().cloned().unwrap_or_default();
    all.extend(arguments.iter().map(|argument| (*argument).into()));
    container["args"] = all.into();
}

/// A cache of which there is one is not highly available; only other manifests help.
fn single(objects: &[Value]) -> Option<String> {
    objects.iter().any(|o| kind(o) == "Deployment" && name(o) == "argocd-redis").then(|| {
        "these manifests have only one Redis: for high availability, pin Argo CD's \
         ha/install.yaml"
            .to_owned()
    })
}

#[cfg(test)]
mod tests;
