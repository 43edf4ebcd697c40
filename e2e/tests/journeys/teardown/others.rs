//! What is not ours, and what somebody wants to keep.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tiphys_e2e::{Site, World, tiphys};
use tiphys_lab::repository::Behaviour;
use tiphys_model::platform::Hold;

use super::{app, teardown};
use crate::audit::Mark;
use crate::deploy::{configure, deploy};

const CRD: &str = "things.keep.example.org";
const THINGS: &str = "keep.example.org/v1";

/// A platform in whose namespace, and of whose kinds, others have objects: they stay, and so does
/// what they need. All else goes.
pub(crate) async fn stay(world: Arc<World>) {
    let mut site = Site::new(&world, "keep").await;
    let definitions = site.objects("apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    // What is in no namespace may be left of a test that failed.
    definitions.delete(CRD, &DeleteParams::default()).await.ok();
    site.platform.apps =
        vec![app("keep-app", Behaviour::Resource { manifests: SHARED.to_owned() }, 60)];
    site.commit("an app that others use");
    let file = site.platform_file();
    configure(&world, &file).await;
    site.apply(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "keep-other" },
    }))
    .await;
    deploy(&world, &file, 0).await;
    let secrets = site.objects("v1", "Secret", Some("keep-app"));
    create(&secrets, secret("keep-theirs"), "kubectl-create").await;
    create(&secrets, secret("keep-derived"), "some-operator").await;
    let key = "sealedsecrets.bitnami.com/sealed-secrets-key";
    let mut sealing = secret("keep-sealing");
    sealing["metadata"]["labels"] = json!({ key: "active" });
    create(&secrets, sealing, "controller").await;
    let things = |namespace: &str| site.objects(THINGS, "Thing", Some(namespace));
    create(&things("keep-other"), thing("theirs"), "kubectl-create").await;
    create(&things("keep-app"), thing("derived"), "some-operator").await;

    let before = Mark::now(&world);
    let shown = tiphys::run(&["teardown", "-f", file.path(), "--dry-run"], &world.kubeconfig).await;
    let (code, stdout, stderr) = tiphys::said(&shown);
    assert_eq!(code, Some(0), "{stderr}");
    for line in [
        "Cluster     https://",
        "Platform    keep\n",
        "Generators  1: keep-root\n",
        "Apps        1: keep-app\n",
        "Namespaces  none\n",
        "  Namespace/keep-app: it holds ",
        "  Secret/keep-app/keep-theirs: `kubectl-create` has created it\n",
        "  Thing/keep-other/theirs: `kubectl-create` has created it\n",
    ] {
        assert!(stdout.contains(line), "{line}: {stdout}");
    }
    let unasked = tiphys::run(&["teardown", "-f", file.path()], &world.kubeconfig).await;
    assert_eq!(unasked.status.code(), Some(2), "nobody can be asked");
    let teardown_typing = async |typed: &str| {
        tiphys::run_on_terminal(&["teardown", "-f", file.path()], &world.kubeconfig, typed).await
    };
    let (code, shown) = teardown_typing("kept").await;
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("Type the name of the platform to remove it"), "{shown}");
    assert!(shown.contains("nothing was removed"), "{shown}");
    assert_eq!(before.writes(&site).of_ours(), BTreeMap::new(), "nothing was changed");

    for flags in [&[][..], &["--clean-leftovers"]] {
        let told = teardown(&world, &file, flags, 0).await;
        if flags.is_empty() {
            let kept: BTreeSet<String> = [
                "ConfigMap/keep-app/keep-kept",
                "CustomResourceDefinition/things.keep.example.org",
                "Namespace/keep-app",
                "Secret/keep-app/keep-sealing",
                "Secret/keep-app/keep-theirs",
                "Thing/keep-other/theirs",
            ]
            .map(str::to_owned)
            .into();
            assert_eq!(told.kept(), kept, "{}", told.stderr);
        }
        let there = async |api: &Api<DynamicObject>| -> BTreeSet<String> {
            let listed = api.list(&ListParams::default()).await.expect("a list");
            let names = listed.items.iter().map(ResourceExt::name_any);
            names.filter(|name| name != "kube-root-ca.crt").collect()
        };
        let maps = site.objects("v1", "ConfigMap", Some("keep-app"));
        assert_eq!(there(&maps).await, ["keep-kept".to_owned()].into(), "{}", told.stderr);
        let left = ["keep-sealing", "keep-theirs"].map(str::to_owned);
        assert_eq!(there(&secrets).await, left.into());
        assert_eq!(there(&things("keep-other")).await, ["theirs".to_owned()].into());
        assert_eq!(there(&things("keep-app")).await, BTreeSet::new());
        let graphs = site.objects("v1", "ConfigMap", Some("argocd"));
        let graph = graphs.get_opt("tiphys-keep").await.expect("it can be asked for");
        assert!(graph.is_none(), "the platform is gone: {}", told.stderr);
    }

    // What stayed is in nobody's way.
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;
    let (code, shown) = teardown_typing("keep").await;
    assert_eq!(code, Some(0), "{shown}");
    definitions.delete(CRD, &DeleteParams::default()).await.expect("it stayed");
    site.close().await;
}

/// An app that applies its namespace itself: Argo CD would delete it with all that is in it.
pub(crate) async fn stay_in_a_namespace_of_an_app(world: Arc<World>) {
    let mut site = Site::new(&world, "cascade").await;
    site.platform.apps =
        vec![app("cascade-app", Behaviour::Resource { manifests: NAMESPACE.to_owned() }, 60)];
    site.commit("an app with a namespace");
    let file = site.platform_file();
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;
    let secrets = site.objects("v1", "Secret", Some("cascade-made"));
    create(&secrets, secret("cascade-theirs"), "kubectl-create").await;

    let told = teardown(&world, &file, &[], 1).await;
    let refused = "`cascade-made` contains objects that must not be deleted";
    for part in [refused, "Secret/cascade-made/cascade-theirs"] {
        assert!(told.stderr.contains(part), "{part}: {}", told.stderr);
    }
    let applications = site.applications();
    let application = applications.get("cascade-app").await.expect("it is there");
    assert!(application.metadata.deletion_timestamp.is_none(), "nothing was begun");
    secrets.get("cascade-theirs").await.expect("it is there");

    secrets.delete("cascade-theirs", &DeleteParams::default()).await.expect("its owner may");
    teardown(&world, &file, &[], 0).await;
    site.close().await;
}

/// Somebody deletes the namespace of an app and makes it anew: it is not the platform's any more.
pub(crate) async fn stay_in_a_namespace_that_was_made_anew(world: Arc<World>) {
    let mut site = Site::new(&world, "anew").await;
    site.platform.apps =
        vec![app("anew-app", Behaviour::Resource { manifests: MAP.to_owned() }, 60)];
    // Otherwise Argo CD would be the one who makes it anew.
    site.platform.hold = Some(Hold::Always);
    site.commit("an app");
    let file = site.platform_file();
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;
    let namespaces = site.objects("v1", "Namespace", None);
    namespaces.delete("anew-app", &DeleteParams::default()).await.expect("it came with the app");
    while namespaces.get_opt("anew-app").await.expect("it can be asked for").is_some() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "anew-app" },
    });
    // Neither a person's tool nor anything else marks it: only the uid is another.
    create(&namespaces, namespace, "some-operator").await;
    let secrets = site.objects("v1", "Secret", Some("anew-app"));
    create(&secrets, secret("anew-theirs"), "some-operator").await;

    let told = teardown(&world, &file, &[], 0).await;
    let kept = ["Namespace/anew-app", "Secret/anew-app/anew-theirs"].map(str::to_owned);
    assert_eq!(told.kept(), kept.into(), "{}", told.stderr);
    assert!(told.stderr.contains("it was deleted and created again"), "{}", told.stderr);
    secrets.get("anew-theirs").await.expect("it is there");
    site.close().await;
}

/// An app whose objects are to stay, whatever this Argo CD makes of that.
pub(crate) async fn stay_with_an_app_that_keeps_them(world: Arc<World>) {
    let mut site = Site::new(&world, "keeps").await;
    site.platform.apps = vec![app("keeps-app", Behaviour::ConfigOnly, 60)];
    let mut files = site.platform.files();
    let template = files.get_mut("root/templates/applications.yaml").expect("the root app");
    *template = template.replace("[CreateNamespace=true]", "[CreateNamespace=true, Delete=false]");
    site.repository.commit(&files, "an app that keeps what it has").expect("a commit");
    let access = |access: &str| {
        let root = "    rootProject: keeps-root\n";
        site.platform_file_with(|text| text.replace(root, &format!("{root}    access: {access}\n")))
    };
    for access in ["api", "kubernetes"].map(access) {
        configure(&world, &access).await;
        deploy(&world, &access, 0).await;
        let told = teardown(&world, &access, &[], 0).await;
        assert!(told.kept().contains("ConfigMap/keeps-app/keeps-app"), "{}", told.stderr);
        site.until_gone("keeps-app").await;
        let maps = site.objects("v1", "ConfigMap", Some("keeps-app"));
        maps.get("keeps-app").await.expect("it is there");
    }
    site.close().await;
}

/// What is somebody else's goes where it is named, and nothing that is to be kept.
pub(crate) async fn go_when_told(world: Arc<World>) {
    let mut site = Site::new(&world, "along").await;
    site.platform.apps =
        vec![app("along-app", Behaviour::Resource { manifests: MAP.to_owned() }, 60)];
    site.commit("an app that others use");
    let file = site.platform_file();
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;
    let secrets = site.objects("v1", "Secret", Some("along-app"));
    create(&secrets, secret("along-theirs"), "kubectl-create").await;
    let mut sealing = secret("along-sealing");
    sealing["metadata"]["labels"] =
        json!({ "sealedsecrets.bitnami.com/sealed-secrets-key": "active" });
    create(&secrets, sealing, "controller").await;

    let unknown = ["teardown", "-f", file.path(), "--dry-run", "--including-others", "along"];
    let (code, _, stderr) = tiphys::said(&tiphys::run(&unknown, &world.kubeconfig).await);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("use a kind or namespace such as: along-app, Secret"), "{stderr}");
    let named = ["--including-others", "along-app"];
    let shown = [&["teardown", "-f", file.path(), "--dry-run"][..], &named].concat();
    let (code, stdout, stderr) = tiphys::said(&tiphys::run(&shown, &world.kubeconfig).await);
    assert_eq!(code, Some(0), "{stderr}");
    let taken = "Taken along\n  Secret/along-app/along-theirs: `kubectl-create` has created it\n";
    assert!(stdout.contains(taken), "{stdout}");

    let told = teardown(&world, &file, &named, 0).await;
    let kept = ["Namespace/along-app", "Secret/along-app/along-sealing"].map(str::to_owned);
    assert_eq!(told.kept(), kept.into(), "{}", told.stderr);
    let theirs = secrets.get_opt("along-theirs").await.expect("it can be asked for");
    assert!(theirs.is_none(), "{}", told.stderr);
    site.close().await;
}

pub(super) async fn create(api: &Api<DynamicObject>, object: Value, manager: &str) {
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
    api.create(&params, &object).await.expect("it can be created");
}

fn secret(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } })
}

fn thing(name: &str) -> Value {
    // Without any field, the API server does not note who wrote it.
    let metadata = json!({ "name": name, "labels": { "of": name } });
    json!({ "apiVersion": THINGS, "kind": "Thing", "metadata": metadata })
}

const SHARED: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: keep-kept
  annotations: { argocd.argoproj.io/sync-options: Delete=false }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: keep-goes }
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: things.keep.example.org }
spec:
  group: keep.example.org
  scope: Namespaced
  names: { kind: Thing, plural: things, singular: thing }
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object } }
";

const MAP: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: { name: map }
";

const NAMESPACE: &str = "\
apiVersion: v1
kind: Namespace
metadata: { name: cascade-made }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: cascade-map, namespace: cascade-made }
";
