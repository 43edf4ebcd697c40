//! Rendering small manifests that have every shape that upstream's have.

use tiphys_model::bootstrap::{Checksum, Endpoints, Installer, Manifests, Mirror};

use super::*;
use crate::configure::objects::tests::platform;

fn primitive(name: PrimitiveName, namespace: &str) -> Primitive {
    Primitive {
        name,
        version: "1.2.3".to_owned(),
        namespace: namespace.to_owned(),
        manifests: Manifests::Path("install.yaml".to_owned()),
        checksum: Checksum::parse(&"0".repeat(64)).unwrap(),
        patches: None,
    }
}

fn bootstrap(high_availability: bool, images: &[(&str, &str)]) -> Bootstrap {
    let mirror =
        |(from, to): &(&str, &str)| Mirror { from: (*from).to_owned(), to: (*to).to_owned() };
    Bootstrap {
        installer: Installer::Native,
        high_availability,
        timeout: std::time::Duration::from_secs(600),
        primitives: Vec::new(),
        images: images.iter().map(mirror).collect(),
        endpoints: Endpoints::default(),
    }
}

fn given(manifests: &str) -> RenderInput {
    RenderInput { manifests: manifests.to_owned(), ..RenderInput::default() }
}

fn rendered(
    bootstrap: &Bootstrap,
    primitive: &Primitive,
    given: &RenderInput,
) -> Result<Rendered, RenderError> {
    render(&platform("prod"), bootstrap, primitive, given)
}

fn all(rendered: &Rendered) -> Vec<&Value> {
    rendered.stages.iter().flat_map(|stage| &stage.objects).collect()
}

fn find<'a>(rendered: &'a Rendered, wanted_kind: &str, wanted: &str) -> &'a Value {
    let found = all(rendered).into_iter().find(|o| kind(o) == wanted_kind && name(o) == wanted);
    found.unwrap_or_else(|| unreachable!("no {wanted_kind} {wanted}"))
}

const WORKFLOWS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: { name: workflow-controller, namespace: argo }
spec:
  template:
    spec:
      containers:
        - { name: workflow-controller, image: 'quay.io/argoproj/workflow-controller:v1.2.3', args: [] }
---
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: argo-binding }
subjects: [{ kind: ServiceAccount, name: argo, namespace: argo }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: argo-cluster-role }
rules: []
---
apiVersion: v1
kind: List
items:
  - { apiVersion: v1, kind: ServiceAccount, metadata: { name: argo } }
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: workflows.argoproj.io }
";

#[test]
fn definitions_come_first_and_the_note_comes_last() {
    let primitive = primitive(PrimitiveName::Workflows, "flows");
    let rendered = rendered(&bootstrap(false, &[]), &primitive, &given(WORKFLOWS)).unwrap();
    let order: Vec<String> = all(&rendered)
        .iter()
        .map(|o| format!("{} {} {}", kind(o), namespace(o), name(o)))
        .collect();
    let expected = [
        "Namespace  flows",
        "CustomResourceDefinition  workflows.argoproj.io",
        "ClusterRole  argo-cluster-role",
        "ClusterRoleBinding  argo-binding",
        "NetworkPolicy flows tiphys-argo-server",
        "NetworkPolicy flows tiphys-only-from-within",
        "ServiceAccount flows argo",
        "Deployment flows workflow-controller",
        "ConfigMap flows tiphys.primitive",
    ];
    assert_eq!(order, expected);
    let stages: Vec<usize> = rendered.stages.iter().map(|stage| stage.objects.len()).collect();
    assert_eq!(stages, [2, 6, 1]);
    let binding = find(&rendered, "ClusterRoleBinding", "argo-binding");
    assert_eq!(binding["subjects"][0]["namespace"], "flows");
    for object in all(&rendered) {
        assert_eq!(object["metadata"]["labels"][PRIMITIVE_LABEL], "workflows", "{object}");
        assert_eq!(object["metadata"]["labels"][MANAGED_BY.0], MANAGED_BY.1, "{object}");
    }
}

#[test]
fn what_is_called_from_outside_the_namespace_of_argo_events_is_open() {
    let primitive = primitive(PrimitiveName::Events, "events");
    let rendered = rendered(&bootstrap(false, &[]), &primitive, &given(WORKFLOWS)).unwrap();
    let webhook = find(&rendered, "NetworkPolicy", "tiphys-webhook");
    assert_eq!(webhook["spec"]["podSelector"]["matchLabels"]["app"], "events-webhook");
    assert_eq!(webhook["spec"]["ingress"], json!([{}]));
    let within = find(&rendered, "NetworkPolicy", "tiphys-only-from-within");
    let metrics = json!([{ "port": "metrics" }, { "port": 7777 }]);
    assert_eq!(within["spec"]["ingress"][1]["ports"], metrics);
}

#[test]
fn the_note_is_no_graph_of_any_platform() {
    assert_eq!(NOTE.strip_prefix("tiphys-"), None);
}

#[test]
fn nodes_that_end_are_noticed_soon_and_tidied_up() {
    let primitive = primitive(PrimitiveName::Workflows, "argo");
    let rendered = rendered(&bootstrap(false, &[]), &primitive, &given(WORKFLOWS)).unwrap();
    let role = find(&rendered, "ClusterRole", "argo-cluster-role");
    assert_eq!(role["rules"][0]["resources"], json!(["workflowtasksets/status"]));
    let controller = find(&rendered, "Deployment", "workflow-controller");
    let container = &controller["spec"]["template"]["spec"]["containers"][0];
    let soon = json!({ "name": "DEFAULT_REQUEUE_TIME", "value": "1s" });
    assert!(container["env"].as_array().unwrap().contains(&soon));
    assert_eq!(container["resources"]["limits"], json!({ "cpu": "500m", "memory": "512Mi" }));
    assert!(container["args"].as_array().unwrap().is_empty());
}

#[test]
fn images_come_from_the_mirror_wherever_they_are_named() {
    let manifests = format!(
        "{WORKFLOWS}---
apiVersion: v1
kind: ConfigMap
metadata: {{ name: settings }}
data:
  config: |
    versions:
    - natsImage: nats:2.10.29
      startCommand: /nats-server
  image: redis:8
---
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: controller-manager }}
spec:
  template:
    spec:
      containers:
        - name: controller-manager
          image: quay.io/argoproj/argo-events:v1
          args: [controller, --for, quay.io.example/argoproj/x]
          env: [{{ name: ARGO_EVENTS_IMAGE, value: 'quay.io/argoproj/argo-events:v1' }}]
"
    );
    let mirrors =
        [("quay.io/argoproj/argo-events", "m/events"), ("quay.io", "m/quay"), ("docker.io", "m/d")];
    let primitive = primitive(PrimitiveName::Workflows, "argo");
    let rendered = rendered(&bootstrap(false, &mirrors), &primitive, &given(&manifests)).unwrap();
    let container = |name: &str| {
        find(&rendered, "Deployment", name)["spec"]["template"]["spec"]["containers"][0].clone()
    };
    let events = container("controller-manager");
    assert_eq!(events["image"], "m/events:v1");
    assert_eq!(events["env"][0]["value"], "m/events:v1");
    assert_eq!(events["args"][2], "quay.io.example/argoproj/x");
    let workflows = container("workflow-controller");
    assert_eq!(workflows["image"], "m/quay/argoproj/workflow-controller:v1.2.3");
    // Its name is built in, so the controller is told.
    let told = json!(["--executor-image", "m/quay/argoproj/argoexec:v1.2.3"]);
    assert_eq!(workflows["args"], told);
    let settings = &find(&rendered, "ConfigMap", "settings")["data"];
    let expected =
        "versions:\n- natsImage: m/d/library/nats:2.10.29\n  startCommand: /nats-server\n";
    assert_eq!(settings["config"], expected);
    assert_eq!(settings["image"], "m/d/library/redis:8");
}

const ARGOCD: &str = "
apiVersion: v1
kind: ConfigMap
metadata: { name: argocd-ssh-known-hosts-cm }
data: { ssh_known_hosts: 'github.com A' }
---
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: argocd-application-controller }
spec:
  replicas: 1
  template:
    spec:
      containers:
        - { name: argocd-application-controller, image: a, env: [{ name: A, value: b }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: argocd-redis }
spec: { template: { spec: { containers: [{ name: redis, image: r, resources: { limits: { cpu: 2 } } }] } } }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: argocd-server }
spec: { template: { spec: { containers: [{ name: argocd-server, image: a }] } } }
";

#[test]
fn high_availability_replicates_what_it_can_and_says_what_it_cannot() {
    let primitive = primitive(PrimitiveName::ArgoCd, "argocd");
    let one = rendered(&bootstrap(false, &[]), &primitive, &given(ARGOCD)).unwrap();
    assert_eq!((one.warnings.len(), &one.stages[1].objects.len()), (0, &4));
    let several = rendered(&bootstrap(true, &[]), &primitive, &given(ARGOCD)).unwrap();
    assert!(several.warnings[0].contains("Redis"));
    let replicas = |kind: &str, name: &str| find(&several, kind, name)["spec"]["replicas"].clone();
    assert_eq!(replicas("Deployment", "argocd-server"), 2);
    assert_eq!(replicas("Deployment", "argocd-redis"), Value::Null);
    assert_eq!(replicas("StatefulSet", "argocd-application-controller"), 2);
    let controller = find(&several, "StatefulSet", "argocd-application-controller");
    let variables = &controller["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(variables[1], json!({ "name": "ARGOCD_CONTROLLER_REPLICAS", "value": "2" }));
    let redis = find(&several, "Deployment", "argocd-redis");
    let limits = &redis["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"];
    assert_eq!(limits, &json!({ "cpu": 2 }), "what upstream has set stays");
}

#[test]
fn argo_cd_knows_the_hosts_that_it_is_given() {
    let primitive = primitive(PrimitiveName::ArgoCd, "argocd");
    let mut given = given(ARGOCD);
    given.known_hosts = Some("git.example B\n".to_owned());
    given.pull_secret = true;
    let rendered = rendered(&bootstrap(false, &[]), &primitive, &given).unwrap();
    let hosts = find(&rendered, "ConfigMap", "argocd-ssh-known-hosts-cm");
    assert_eq!(hosts["data"]["ssh_known_hosts"], "github.com A\ngit.example B\n");
    let server = find(&rendered, "Deployment", "argocd-server");
    let secrets = &server["spec"]["template"]["spec"]["imagePullSecrets"];
    assert_eq!(secrets, &json!([{ "name": PULL_SECRET }]));
}

#[test]
fn patches_are_laid_over_by_name() {
    let primitive = primitive(PrimitiveName::ArgoCd, "argocd");
    let mut given = given(ARGOCD);
    given.patches = Some(
        "
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: argocd-application-controller }
spec:
  replicas: null
  template:
    spec:
      containers:
        - { name: argocd-application-controller, resources: { limits: { memory: 4Gi } } }
        - { name: sidecar, image: s }
"
        .to_owned(),
    );
    let patched = rendered(&bootstrap(false, &[]), &primitive, &given).unwrap();
    let controller = find(&patched, "StatefulSet", "argocd-application-controller");
    let containers = &controller["spec"]["template"]["spec"]["containers"];
    let limits = &containers[0]["resources"]["limits"];
    assert_eq!(limits, &json!({ "cpu": "500m", "memory": "4Gi" }));
    assert_eq!(containers[0]["image"], "a");
    assert_eq!(containers[1]["name"], "sidecar");
    assert_eq!(controller["spec"].get("replicas"), None);
    given.patches = Some(
        "{ apiVersion: apps/v1, kind: Deployment, metadata: { name: argocd-sever } }".to_owned(),
    );
    let error = rendered(&bootstrap(false, &[]), &primitive, &given).unwrap_err();
    assert!(error.to_string().contains("argocd-sever"), "{error}");
}

#[test]
fn what_is_no_manifest_is_refused() {
    let primitive = primitive(PrimitiveName::ArgoCd, "argocd");
    for (text, said) in [
        ("", "no objects"),
        ("{ apiVersion: v1, kind: Secret }", "`metadata.name` is missing in document 1"),
        ("{ kind: List, items: [{ apiVersion: v1, kind: Secret }] }", "`metadata.name` is missing"),
        ("a: [", "not valid YAML"),
        ("just a text", "`apiVersion` is missing"),
    ] {
        let error = rendered(&bootstrap(false, &[]), &primitive, &given(text)).unwrap_err();
        assert!(error.to_string().contains(said), "{text}: {error}");
    }
}

#[test]
fn kustomizations_may_use_charts_unless_a_patch_says_otherwise() {
    let mut objects = vec![json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "argocd-cm" },
    })];
    let_kustomize_use_helm(&mut objects);
    assert_eq!(objects[0]["data"]["kustomize.buildOptions"], "--enable-helm");
    let patch = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "argocd-cm" },
        "data": { "kustomize.buildOptions": "--load-restrictor LoadRestrictionsNone" },
    });
    overlay::lay(&mut objects, &[patch], "argocd").unwrap();
    let options = &objects[0]["data"]["kustomize.buildOptions"];
    assert_eq!(options, "--load-restrictor LoadRestrictionsNone");
}

#[test]
fn our_own_templates_keep_the_image_of_their_values() {
    const TEMPLATE: &str = "
apiVersion: argoproj.io/v1alpha1
kind: ClusterWorkflowTemplate
metadata: { name: tiphys-deploy }
spec: { templates: [{ name: deploy, container: { image: quay.io/us/tiphys } }] }
";
    let mirrored = bootstrap(false, &[("quay.io", "mirror.example")]);
    let primitive = primitive(PrimitiveName::Tiphys, "tiphys-system");
    let rendered = rendered(&mirrored, &primitive, &given(TEMPLATE)).unwrap();
    let template = find(&rendered, "ClusterWorkflowTemplate", "tiphys-deploy");
    assert_eq!(template["spec"]["templates"][0]["container"]["image"], "quay.io/us/tiphys");
    assert_eq!(template["metadata"]["namespace"], Value::Null);
    assert_eq!(namespace(find(&rendered, "ConfigMap", NOTE)), "tiphys-system");
    let labels = &find(&rendered, "Namespace", "tiphys-system")["metadata"]["labels"];
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "restricted");
}
