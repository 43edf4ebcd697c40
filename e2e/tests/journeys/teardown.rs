//! Taking a platform down: in reverse order, without leaving anything, from any state.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_e2e::inventory::{Inventory, difference, inventory};
use tiphys_e2e::{PlatformFile, Site, World, figure, seed, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::platform::Timeouts;
use tiphys_sim::Chance;

use crate::audit::Mark;
use crate::deploy::{arguments, configure, deploy};
use crate::resume::{kills, start_with};

/// What a teardown has said: its events, and what it told beside them.
pub(crate) struct Told {
    pub(crate) events: Vec<Value>,
    pub(crate) stderr: String,
}

impl Told {
    fn of(&self, kind: &str, app: &str) -> Value {
        let is = |event: &&Value| event["kind"] == kind && event["app"] == app;
        self.events.iter().find(is).cloned().unwrap_or_default()
    }

    /// The objects that it says are left.
    fn left(&self) -> BTreeSet<String> {
        let lines = self.stderr.lines().skip_while(|line| *line != "Left in the cluster:").skip(1);
        let lines = lines.take_while(|line| line.starts_with("  "));
        lines.filter_map(|line| Some(line.trim().split_once(": ")?.0.to_owned())).collect()
    }
}

pub(crate) async fn teardown(
    world: &World,
    file: &PlatformFile,
    flags: &[&str],
    expected: i32,
) -> Told {
    let mut args = vec!["teardown", "-f", file.path(), "-o", "jsonl"];
    args.extend(flags);
    let output = tiphys::run(&args, &world.kubeconfig).await;
    let (code, stdout, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(expected), "{stderr}\n{stdout}");
    let events = stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    Told { events, stderr }
}

async fn look(world: &World) -> Inventory {
    inventory(&world.client).await.expect("an inventory")
}

/// The reference platform, with Git gone: nothing is left, in the whole cluster.
pub(crate) async fn of_the_reference_platform(world: Arc<World>) {
    let site = Site::reference(&world, "down", Duration::from_secs(1)).await;
    site.commit("the reference platform");
    let file = site.platform_file();
    let before = look(&world).await;
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;
    let secrets = site.objects("v1", "Secret", Some("argocd"));
    secrets.delete("down", &DeleteParams::default()).await.expect("nobody reads Git any more");

    let mark = Mark::now(&world);
    let told = teardown(&world, &file, &[], 0).await;
    let finished = told.events.last().expect("events");
    assert_eq!(finished["counts"]["removed"], 43, "{finished}");
    mark.writes(&site).check_reverse_order(&site);
    assert_eq!(difference(&before, &look(&world).await), ["- Secret argocd/down"]);
    assert_eq!(told.left(), BTreeSet::new());

    let told = teardown(&world, &file, &[], 0).await;
    assert!(told.stderr.contains("nothing of the platform `down` is there"), "{}", told.stderr);
    site.close().await;
}

fn app(name: &str, behaviour: Behaviour, health: u64) -> AppSource {
    let mut app = AppSource::new(name, behaviour);
    let health = Duration::from_secs(health);
    app.timeouts = Some(Timeouts { sync: Duration::from_secs(60), health });
    app
}

/// What belongs to a site, as far as its names say.
async fn of_site(world: &World, name: &str) -> Inventory {
    let mut all = look(world).await;
    all.retain(|key, _| {
        let object = key.split(' ').nth(1).unwrap_or_default();
        let mut parts = object.split('/').map(|part| part.trim_start_matches("tiphys-"));
        parts.any(|part| part == name || part.starts_with(&format!("{name}-")))
    });
    all
}

/// A deployment that failed, and one that was killed.
pub(crate) async fn of_a_half_deployed_platform(world: Arc<World>) {
    let mut site = Site::new(&world, "half").await;
    let second = Duration::from_secs(1);
    site.platform.apps = vec![
        app("half-base", Behaviour::Healthy { after: second }, 60),
        app("half-never", Behaviour::NeverHealthy, 5).depends_on(&["half-base"]),
        app("half-after", Behaviour::ConfigOnly, 60).depends_on(&["half-never"]),
        app("half-fine", Behaviour::ConfigOnly, 60).depends_on(&["half-base"]),
    ];
    site.commit("one that fails");
    let file = site.platform_file();
    let before = of_site(&world, "half").await;
    for killed in [false, true] {
        configure(&world, &file).await;
        if killed {
            let mut run = start_with(&world, &arguments(&file));
            tokio::time::sleep(Duration::from_secs(4)).await;
            run.kill().expect("the run can be killed");
            run.wait().expect("it has ended");
        } else {
            deploy(&world, &file, 1).await;
        }
        let mark = Mark::now(&world);
        teardown(&world, &file, &[], 0).await;
        mark.writes(&site).check_reverse_order(&site);
        let left = difference(&before, &of_site(&world, "half").await);
        assert_eq!(left, Vec::<String>::new(), "killed: {killed}");
    }
    site.close().await;
}

/// A finalizer that nobody removes blocks its branch, and no other.
pub(crate) async fn blocked_by_a_finalizer(world: Arc<World>) {
    let mut site = Site::new(&world, "block").await;
    site.platform.apps = vec![
        app("block-base", Behaviour::ConfigOnly, 10),
        app("block-stuck", Behaviour::HoldsFinalizer, 10).depends_on(&["block-base"]),
        app("block-top", Behaviour::ConfigOnly, 10).depends_on(&["block-stuck"]),
        app("block-other", Behaviour::HoldsFinalizer, 10),
        app("block-free", Behaviour::ConfigOnly, 10).depends_on(&["block-other"]),
        app("block-alone", Behaviour::ConfigOnly, 10),
    ];
    site.commit("two that hold a finalizer");
    let file = site.platform_file();
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;

    let told = teardown(&world, &file, &[], 1).await;
    for app in ["block-stuck", "block-other"] {
        let failed = told.of("step-failed", app);
        let resource = failed["evidence"]["resource"].as_str().unwrap_or_default();
        let object = format!("ConfigMap/{app}/{app} is being deleted since");
        assert!(resource.starts_with(&object), "{failed}");
        assert!(resource.contains("waits for its finalizer"), "{failed}");
        let likely = failed["evidence"]["likely"].as_str().unwrap_or_default();
        assert!(likely.contains(&format!("--force-finalizer ConfigMap/{app}/{app}")), "{failed}");
        let began = told.of("step-removing", app)["elapsedMs"].as_u64().expect("a time");
        let named = failed["elapsedMs"].as_u64().expect("a time");
        figure(&format!("{app} named {} ms after its timeout of 10 s", named - began - 10_000));
        assert!(named - began < 20_000, "{failed}");
    }
    assert_eq!(told.of("step-skipped", "block-base")["because"][0], "block-stuck");
    for app in ["block-top", "block-free", "block-alone"] {
        assert_eq!(told.of("step-removed", app)["app"], app, "{:#?}", told.events);
    }
    assert!(site.applications().get_opt("block-base").await.expect("an answer").is_some());

    let free = json!({ "metadata": { "finalizers": null } });
    let maps = site.objects("v1", "ConfigMap", Some("block-stuck"));
    maps.patch("block-stuck", &PatchParams::default(), &Patch::Merge(&free)).await.expect("freed");
    let forced = ["--force-finalizer", "ConfigMap/block-other/block-other"];
    let told = teardown(&world, &file, &forced, 0).await;
    assert!(told.stderr.contains("removed the finalizers of ConfigMap/block-other/block-other"));
    assert_eq!(told.of("step-removed", "block-base")["app"], "block-base");
    site.close().await;
}

/// Nothing goes that something outside the scope depends on.
pub(crate) async fn of_a_scope(world: Arc<World>) {
    let mut site = Site::new(&world, "part").await;
    site.platform.apps = vec![
        app("part-a", Behaviour::ConfigOnly, 30),
        app("part-b", Behaviour::ConfigOnly, 30).depends_on(&["part-a"]),
        app("part-c", Behaviour::ConfigOnly, 30).depends_on(&["part-b"]),
    ];
    site.commit("a chain");
    let file = site.platform_file();
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;
    let there =
        async |app: &str| site.applications().get_opt(app).await.expect("an answer").is_some();

    let told = teardown(&world, &file, &["--scope", "app:part-a"], 1).await;
    let cause = told.of("step-failed", "part-b")["cause"].clone();
    assert_eq!(cause, "it lies outside the scope and depends on what is to be removed");
    assert!(there("part-a").await && there("part-b").await, "nothing was removed");

    teardown(&world, &file, &["--scope", "app:part-c"], 0).await;
    assert!(!there("part-c").await && there("part-b").await && there("part-a").await);
    let held = world.held(&site.platform.project).await;
    assert_eq!(held, ["part-c".to_owned()].into(), "it stays held, in case it is created anew");

    let told = teardown(&world, &file, &["--scope", "app:part-a", "--with-dependents"], 0).await;
    assert_eq!(told.of("step-removed", "part-a")["app"], "part-a");
    assert!(!there("part-a").await && !there("part-b").await);
    deploy(&world, &file, 0).await;
    assert!(there("part-c").await, "a deployment brings all of it back");
    site.close().await;
}

/// An app that leaves things behind: they are told one by one, and removed on request.
pub(crate) async fn with_leftovers(world: Arc<World>) {
    let mut site = Site::new(&world, "left").await;
    // What is in no namespace may be left of a test that failed.
    for (version, kind, name) in [
        ("v1", "PersistentVolume", "left-volume"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "left-hook"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "lefts.left-made.example.org"),
    ] {
        site.objects(version, kind, None).delete(name, &DeleteParams::default()).await.ok();
    }
    site.apply(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "left-before" },
    }))
    .await;
    site.platform.apps =
        vec![app("left-app", Behaviour::Resource { manifests: LEAVING.to_owned() }, 60)];
    site.commit("an app that leaves things behind");
    let file = site.platform_file();
    let before = of_site(&world, "left").await;
    configure(&world, &file).await;
    // As a provisioner makes it for a claim.
    site.apply(volume()).await;
    deploy(&world, &file, 0).await;
    // As an operator makes them while it runs.
    site.apply(webhook()).await;
    site.apply(definition()).await;

    let told = teardown(&world, &file, &["--retain-volumes"], 0).await;
    let expected: BTreeSet<String> = [
        "ConfigMap/argocd/tiphys-left",
        "ConfigMap/left-before/left-kept",
        "CustomResourceDefinition/lefts.left-made.example.org",
        "PersistentVolume/left-volume",
        "ValidatingWebhookConfiguration/left-hook",
    ]
    .map(str::to_owned)
    .into();
    // Other tests make namespaces meanwhile, which may be anybody's.
    let of_ours = |told: &Told| -> BTreeSet<String> {
        told.left().into_iter().filter(|object| object.contains("left")).collect()
    };
    assert_eq!(of_ours(&told), expected, "{}", told.stderr);
    let mut left: BTreeSet<String> = difference(&before, &of_site(&world, "left").await)
        .into_iter()
        .map(|line| object_of(&line))
        .collect();
    // Its name does not begin with that of the site.
    left.insert("CustomResourceDefinition/lefts.left-made.example.org".to_owned());
    assert_eq!(left, expected, "what is told is what is there");

    // The platform is gone, and who asks is still told, as far as it was the platform's.
    let output = tiphys::run(&["status", "-f", file.path(), "-o", "json"], &world.kubeconfig).await;
    let (code, stdout, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let status: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(
        status["leftovers"],
        json!([
            "ConfigMap/left-before/left-kept: `left-app` has applied it, and Argo CD left it",
            "PersistentVolume/left-volume: Released of the claim left-app/left-data",
            "ValidatingWebhookConfiguration/left-hook: it points to the service \
             left-app/left-hook, which is not there",
        ]),
    );
    assert!(stderr.contains("--clean-leftovers` removes what is left"), "{stderr}");

    let told = teardown(&world, &file, &["--clean-leftovers", "--yes"], 0).await;
    let perhaps = ["CustomResourceDefinition/lefts.left-made.example.org".to_owned()].into();
    assert_eq!(of_ours(&told), perhaps, "what may be somebody else's is only named");
    assert_eq!(difference(&before, &of_site(&world, "left").await), Vec::<String>::new());
    let definitions = site.objects("apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    definitions
        .delete("lefts.left-made.example.org", &DeleteParams::default())
        .await
        .expect("gone");
    site.close().await;
}

/// `+ group/Kind namespace/name` as a teardown writes it.
fn object_of(line: &str) -> String {
    let mut words = line.split(' ').skip(1);
    let kind = words.next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    format!("{kind}/{}", words.next().unwrap_or_default())
}

const LEAVING: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: left-kept
  namespace: left-before
  annotations: { argocd.argoproj.io/sync-options: Delete=false }
---
apiVersion: v1
kind: Service
metadata: { name: left-hook }
spec: { ports: [{ port: 443 }], selector: { app: none } }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: left-data }
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: \"\"
  volumeName: left-volume
  resources: { requests: { storage: 1Mi } }
";

fn volume() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": "left-volume" },
        "spec": {
            "capacity": { "storage": "1Mi" },
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete",
            "hostPath": { "path": "/tmp/left-volume" },
            "claimRef": { "namespace": "left-app", "name": "left-data" },
        },
    })
}

fn webhook() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "left-hook" },
        "webhooks": [{
            "name": "left-hook.example.org",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "clientConfig": { "service": { "namespace": "left-app", "name": "left-hook" } },
            "rules": [{
                "apiGroups": ["left-made.example.org"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["lefts"],
            }],
        }],
    })
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "lefts.left-made.example.org" },
        "spec": {
            "group": "left-made.example.org",
            "scope": "Cluster",
            "names": { "kind": "Left", "plural": "lefts", "singular": "left" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    })
}

/// Killed at random moments, and run again.
pub(crate) async fn after_kills(world: Arc<World>) {
    let mut site = Site::reference(&world, "wreck", Duration::from_millis(100)).await;
    // Order is what counts here, and pods take their time.
    for app in &mut site.platform.apps {
        app.behaviour = Behaviour::ConfigOnly;
    }
    site.commit("the reference platform");
    let file = site.platform_file();
    let before = of_site(&world, "wreck").await;
    let (kills, mut chance) = (kills(), Chance::new(seed()));
    let mut whole = 30_000;
    for _ in 0..kills {
        let moment = chance.millis(0, whole);
        configure(&world, &file).await;
        deploy(&world, &file, 0).await;
        let mark = Mark::now(&world);
        let mut run = start_with(&world, &["teardown", "-f", file.path(), "-o", "jsonl"]);
        tokio::time::sleep(moment).await;
        run.kill().expect("the run can be killed, or has ended");
        run.wait().expect("it has ended");
        let began = Instant::now();
        teardown(&world, &file, &[], 0).await;
        // What is left takes less than all of it.
        whole = whole.min(millis(began.elapsed() + moment));
        mark.writes(&site).check_reverse_order(&site);
        let left = difference(&before, &of_site(&world, "wreck").await);
        assert_eq!(left, Vec::<String>::new(), "killed after {moment:?}");
    }
    figure(&format!("{kills} kills of a teardown, nothing left"));
    site.close().await;
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("a short time")
}

/// Apps that left the platform file, in reverse order.
pub(crate) async fn of_what_left_the_file(world: Arc<World>) {
    let mut site = Site::new(&world, "prune").await;
    site.platform.apps = vec![
        app("prune-a", Behaviour::ConfigOnly, 30),
        app("prune-b", Behaviour::ConfigOnly, 30).depends_on(&["prune-a"]),
        app("prune-c", Behaviour::ConfigOnly, 30).depends_on(&["prune-b"]),
    ];
    site.commit("a chain");
    let file = site.platform_file();
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;

    let whole = site.platform.apps.clone();
    site.platform.apps.truncate(1);
    site.commit("only the first");
    let file = site.platform_file();
    deploy(&world, &file, 0).await;
    assert!(site.applications().get_opt("prune-c").await.expect("an answer").is_some());

    let mut args = arguments(&file).to_vec();
    args.push("--prune");
    let mark = Mark::now(&world);
    let output = tiphys::run(&args, &world.kubeconfig).await;
    let (code, stdout, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(0), "{stderr}\n{stdout}");
    site.platform.apps = whole;
    mark.writes(&site).check_reverse_order(&site);
    let left: Vec<String> = site
        .applications()
        .list(&ListParams::default())
        .await
        .expect("a list")
        .items
        .iter()
        .map(ResourceExt::name_any)
        .filter(|name| name.starts_with("prune-"))
        .collect();
    assert_eq!(left, ["prune-a", "prune-root"]);
    assert_eq!(world.held(&site.platform.project).await, BTreeSet::new());
    site.close().await;
}
