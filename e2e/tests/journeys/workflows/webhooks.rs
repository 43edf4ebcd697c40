//! Pushes that a Git server tells of: Argo Events, and a bus that somebody else has set up.

pub(crate) mod argo_cd;
mod caller;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine};
use http::StatusCode;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, ListParams};
use serde_json::{Value, json};
use tiphys_e2e::{Site, World, count, figure, seed, tiphys, until, until_within};
use tiphys_lab::NATS_ADDRESS;
use tiphys_model::{PushProvider, PushTrigger, Trigger, TriggerKind, TriggerName};
use tiphys_sim::Chance;

use super::automatic::{
    commit_everything, deployed_once, loop_says, take_down, two_apps, until_loop_says, workflows,
};
use super::{CHART_NAMESPACE, kubectl, said};
use crate::audit::{Mark, Writes};
use caller::{BODY, Headers, Webhook, bearer, signed};

const NAMESPACE: &str = "tiphys-events";
const ARGO: &str = "argoproj.io/v1alpha1";
const SECRET: &str = "hunter2-of-this-journey";
/// Until Argo Events has started its pods, and they have found the bus.
pub(super) const START: Duration = Duration::from_secs(240);
/// In which a call that was refused would have arrived.
const ARRIVAL: Duration = Duration::from_secs(5);
/// Argo CD's poll, and a run.
const LATEST: Duration = Duration::from_secs(420);
/// Argo Events accepts half of it.
const TOO_LARGE: usize = 2 << 20;

/// A platform with two webhooks, whose calls arrive. The secret makes Argo CD's API server restart.
async fn arrange(world: &Arc<World>, name: &str) -> Site {
    bus_of_somebody_else(world).await;
    let mut site = two_apps(world, name).await;
    let push = |name, provider| Trigger {
        name: TriggerName::parse(name).expect("a name"),
        kind: TriggerKind::Push(PushTrigger { provider }),
    };
    site.platform.triggers =
        vec![push("hub", PushProvider::GitHub), push("other", PushProvider::Generic)];
    site.commit("two apps and two webhooks");
    configure(&site, world).await;
    deployed_once(&site, world).await;
    are_ready(&site, 4).await;
    // A Sensor that has just begun to listen has missed what was before.
    for (trigger, headers) in [("hub", signed(SECRET, BODY)), ("other", bearer(SECRET))] {
        let webhook = Webhook::of(&site, trigger).await;
        until_within(START, &format!("a call of {trigger} arrives"), async || {
            webhook.call(&headers, BODY).await;
            !webhook.heard(&site).await.is_null()
        })
        .await;
    }
    site
}

/// Waits for all pods of Argo Events.
pub(super) async fn are_ready(site: &Site, count: usize) {
    let pods = site.objects("v1", "Pod", Some(NAMESPACE));
    until_within(START, "all pods of Argo Events are ready", async || {
        let pods = pods.list(&ListParams::default()).await.expect("a list").items;
        pods.len() == count && pods.iter().all(is_ready)
    })
    .await;
}

fn is_ready(pod: &DynamicObject) -> bool {
    let conditions = pod.data["status"]["conditions"].as_array();
    let mut ready = conditions.into_iter().flatten().filter(|one| one["type"] == "Ready");
    ready.any(|ready| ready["status"] == "True")
}

/// Somebody may have a bus of their own, and with it the namespace.
pub(super) async fn bus_of_somebody_else(world: &World) {
    let apply = async |object: Value| {
        tiphys_e2e::objects::apply(&world.client, &object).await;
    };
    apply(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } }))
        .await;
    apply(json!({
        "apiVersion": ARGO, "kind": "EventBus",
        "metadata": { "name": "tiphys", "namespace": NAMESPACE },
        "spec": { "jetstreamExotic": { "url": NATS_ADDRESS, "streamConfig": "replicas: 1" } },
    }))
    .await;
}

async fn configure(site: &Site, world: &World) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("argocd")).expect("a folder");
    std::fs::write(folder.path().join("argocd/webhook-secret"), SECRET).expect("a file");
    let file = site.platform_file();
    let credentials = folder.path().to_str().expect("a path");
    let args = ["configure", "-f", file.path(), "--credentials", credentials];
    let (code, stdout, stderr) = said(world, &args).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let shown = format!("{stdout}{stderr}");
    let encoded = BASE64_STANDARD.encode(SECRET);
    assert!(!shown.contains(SECRET) && !shown.contains(&encoded), "{shown}");
}

async fn test(world: &World, name: &str, trigger: &str) -> (Option<i32>, String, String) {
    said(world, &["triggers", "test", trigger, "--platform", name]).await
}

pub(crate) async fn start_deployments(world: Arc<World>) {
    let mut site = arrange(&world, "wf-push").await;
    let name = site.platform.name.clone();
    let hub = Webhook::of(&site, "hub").await;
    let other = Webhook::of(&site, "other").await;

    // A push is deployed at once, in order, and each app once.
    let (writes, seconds) = push(&mut site, &world, &hub, "pushed").await;
    figure(&format!("first sync {seconds:.1} s after the push"));
    for (app, operations) in writes.operations() {
        assert_eq!(operations.len(), 1, "{app}: {operations:?}");
    }
    assert_eq!(workflows(&site).await.len(), 1);

    // What is sent again starts nothing.
    let before = Mark::now(&world);
    for _ in 0..3 {
        assert_eq!(hub.call(&signed(SECRET, BODY), BODY).await, StatusCode::OK);
        assert_eq!(other.call(&bearer(SECRET), BODY).await, StatusCode::OK);
    }
    nothing_arrives_of_refused_calls(&site, &hub, &other).await;
    assert!(before.writes(&site).operations().is_empty(), "nothing is synced");
    assert_eq!(workflows(&site).await.len(), 1);

    // Everybody can see it, and try it.
    let file = site.platform_file();
    let (_, status, stderr) = said(&world, &["status", "-f", file.path()]).await;
    assert!(status.contains("webhook hub: github, http://"), "{status}{stderr}");
    assert!(status.contains(", last called at "), "{status}");
    let (code, stdout, stderr) = test(&world, &name, "hub").await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("Argo CD compared the root app after "), "{stderr}");
    let (code, _, stderr) = test(&world, &name, "nobody").await;
    assert_eq!(code, Some(5), "{stderr}");
    assert!(stderr.contains("push triggers of the platform: hub, other"), "{stderr}");
    a_sensor_changes_nothing_else(&site, &world).await;

    // What the file has no more goes, and the rest goes with the platform. The bus is not ours.
    site.platform.triggers.remove(1);
    site.commit("one webhook");
    let file = site.platform_file();
    let (code, dry, stderr) = said(&world, &["configure", "-f", file.path(), "--dry-run"]).await;
    assert_eq!(code, Some(0), "{dry}{stderr}");
    assert!(dry.lines().any(|line| is_removal(line, "EventSource")), "{dry}");
    assert!(!dry.contains(&BASE64_STANDARD.encode(SECRET)), "{dry}");
    assert_eq!(objects(&site).await.len(), 2 * KINDS.len(), "a dry run changes nothing");
    configure(&site, &world).await;
    let left: BTreeSet<String> = KINDS.iter().map(|(_, kind)| format!("{kind} hub")).collect();
    assert_eq!(objects(&site).await, left);
    take_down(&site).await;
    assert_eq!(objects(&site).await, BTreeSet::new());
    let bus = site.objects(ARGO, "EventBus", Some(NAMESPACE));
    bus.get("tiphys").await.expect("it is somebody else's");
    remove_bus(&site).await;
    site.close().await;
}

/// Pushes a change of every app and waits until it is deployed: what was written, and the seconds to the
/// first sync.
async fn push(site: &mut Site, world: &World, hub: &Webhook, message: &str) -> (Writes, f64) {
    pushed(site, world, message, async |_| {
        assert_eq!(hub.call(&signed(SECRET, BODY), BODY).await, StatusCode::OK);
    })
    .await
}

/// Likewise; `tell` is how somebody hears of the commit.
async fn pushed(
    site: &mut Site,
    world: &World,
    message: &str,
    tell: impl AsyncFnOnce(&str),
) -> (Writes, f64) {
    let before = Mark::now(world);
    let commit = commit_everything(site, message);
    let pushed = Timestamp::now();
    tell(&commit).await;
    until_within(LATEST, &format!("{message} is deployed"), async || {
        loop_says(site, world).await == ("up-to-date".to_owned(), commit.clone())
    })
    .await;
    let writes = before.writes(site);
    writes.check_order(site, &commit);
    let first = *writes.requested().values().min().expect("operations");
    (writes, first.duration_since(pushed).as_secs_f64())
}

/// How long it takes from a push to the first sync, and what a burst of pushes comes to.
pub(crate) async fn are_quick(world: Arc<World>) {
    let mut site = arrange(&world, "wf-quick").await;
    let hub = Webhook::of(&site, "hub").await;
    let mut times = Vec::new();
    for number in 0..count("TIPHYS_E2E_PUSHES", 20_u32) {
        times.push(push(&mut site, &world, &hub, &format!("push {number}")).await.1);
    }
    told("a push trigger", times);

    let known = workflows(&site).await;
    let mut commit = String::new();
    for number in 0..20 {
        commit = commit_everything(&mut site, &format!("push {number} of a burst"));
        assert_eq!(hub.call(&signed(SECRET, BODY), BODY).await, StatusCode::OK);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    until_loop_says(&site, &world, "up-to-date", Some(&commit)).await;
    let runs = workflows(&site).await.difference(&known).count();
    figure(&format!("20 pushes in 10 s: {runs} runs"));
    assert!((1..=3).contains(&runs), "{runs} runs");

    let before = Mark::now(&world);
    for _ in 0..20 {
        assert_eq!(hub.call(&signed(SECRET, BODY), BODY).await, StatusCode::OK);
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(before.writes(&site).operations().is_empty(), "what is sent again syncs nothing");
    close(site).await;
}

/// From a push to the first sync.
fn told(by: &str, mut seconds: Vec<f64>) {
    seconds.sort_by(f64::total_cmp);
    let (median, worst) = (seconds[seconds.len() / 2], seconds[seconds.len() - 1]);
    figure(&format!(
        "{} pushes told by {by}: first sync after {median:.1} s (median), {worst:.1} s (worst)",
        seconds.len()
    ));
}

/// Whatever dies after a push, its commit is deployed.
pub(crate) async fn are_deployed_whatever_dies(world: Arc<World>) {
    let mut site = arrange(&world, "wf-lost").await;
    let mut chance = Chance::new(seed());
    let hub = Webhook::of(&site, "hub").await;
    let strikes = [
        ("the EventSource", NAMESPACE, "eventsource-name"),
        ("the Sensor", NAMESPACE, "sensor-name"),
        ("the bus", "argo-events", "app=nats"),
        ("the deploy loop", CHART_NAMESPACE, "app.kubernetes.io/name=tiphys-serve"),
        ("the workflow controller", "argo", "app=workflow-controller"),
    ];
    for (what, namespace, label) in strikes {
        let mut worst = Duration::ZERO;
        for kill in 0..count("TIPHYS_E2E_KILLS", 10_u32) {
            let before = Mark::now(&world);
            let commit = commit_everything(&mut site, &format!("{what}, kill {kill}"));
            let began = Instant::now();
            let moment = Duration::from_millis(chance.between(0, 6_000));
            // A call that is refused or lost is what happens when its receiver is dead.
            tokio::join!(hub.try_call(SECRET), async {
                tokio::time::sleep(moment).await;
                let pods = site.objects("v1", "Pod", Some(namespace));
                let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
                let gone = pods.delete_collection(&now, &ListParams::default().labels(label)).await;
                let gone = gone.expect("the pods").left().expect("a list");
                assert!(!gone.items.is_empty(), "{what} has no pod");
            });
            until_within(LATEST, &format!("{what}, kill {kill}: deployed"), async || {
                loop_says(&site, &world).await == ("up-to-date".to_owned(), commit.clone())
            })
            .await;
            worst = worst.max(began.elapsed());
            before.writes(&site).check_order(&site, &commit);
        }
        figure(&format!("{what} killed each time: deployed after {} s at worst", worst.as_secs()));
    }
    close(site).await;
}

/// The bus of somebody else goes, too.
async fn close(site: Site) {
    take_down(&site).await;
    remove_bus(&site).await;
    site.close().await;
}

pub(super) async fn remove_bus(site: &Site) {
    let namespaces = site.objects("v1", "Namespace", None);
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await.expect("deleted");
    until("the namespace of events is gone", async || {
        namespaces.get_opt(NAMESPACE).await.expect("an answer").is_none()
    })
    .await;
}

/// Calls that are not, or badly, signed, or too large, are refused at the source.
async fn nothing_arrives_of_refused_calls(site: &Site, hub: &Webhook, other: &Webhook) {
    // What was sent before has arrived.
    tokio::time::sleep(ARRIVAL).await;
    let heard = (hub.heard(site).await, other.heard(site).await);
    let large = vec![b' '; TOO_LARGE];
    let event = ("x-github-event", "push".to_owned());
    let cases: [(&Webhook, Headers, &[u8]); 6] = [
        (hub, vec![event.clone()], BODY),
        (hub, signed("another", BODY), BODY),
        (hub, signed(SECRET, b"{ }"), BODY),
        (hub, signed(SECRET, &large), &large),
        (other, Vec::new(), BODY),
        (other, bearer("another"), BODY),
    ];
    for (webhook, headers, body) in cases {
        let status = webhook.call(&headers, body).await;
        assert!(status.is_client_error(), "{headers:?}: {status}");
    }
    tokio::time::sleep(ARRIVAL).await;
    assert_eq!((hub.heard(site).await, other.heard(site).await), heard, "nothing has arrived");
}

/// The account of a platform's sensors asks for a refresh of its root app, and that is all.
async fn a_sensor_changes_nothing_else(site: &Site, world: &World) {
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    let name = &site.platform.name;
    let user = format!("system:serviceaccount:{NAMESPACE}:tiphys.argocd.{name}.events");
    let groups = ["system:serviceaccounts", "system:authenticated"];
    tiphys::act_as(&world.kubeconfig, &user, &groups, &kubeconfig);
    let root = format!("application/{name}-root");
    let change = r#"{"spec":{"source":{"targetRevision":"other"}}}"#;
    let refresh = r#"{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}"#;
    let cases = [
        (vec!["-n", "argocd", "patch", "--type=merge", &root, "-p", refresh], None),
        (
            vec!["-n", "argocd", "patch", "--type=merge", &root, "-p", change],
            Some("may only request a refresh"),
        ),
        (vec!["-n", "argocd", "get", "secrets"], Some("forbidden")),
        (vec!["-n", NAMESPACE, "get", "secrets"], Some("forbidden")),
        (vec!["-n", "tiphys", "create", "configmap", "other"], Some("forbidden")),
        (vec!["-n", "tiphys", "get", "workflows"], Some("forbidden")),
    ];
    for (args, refused) in cases {
        let shown = args.join(" ");
        let mut command = kubectl();
        command.arg("--kubeconfig").arg(&kubeconfig).args(args);
        let run = move || command.output().expect("kubectl");
        let output = tokio::task::spawn_blocking(run).await.expect("nobody cancels it");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), refused.is_none(), "{shown}: {stderr}");
        assert!(refused.is_none_or(|why| stderr.contains(why)), "{shown}: {stderr}");
    }
}

const KINDS: [(&str, &str); 4] =
    [(ARGO, "EventSource"), (ARGO, "Sensor"), ("v1", "ConfigMap"), ("v1", "Secret")];

/// Kind and trigger of each object of the platform's webhooks.
pub(super) async fn objects(site: &Site) -> BTreeSet<String> {
    let labels = format!("tiphys.dev/trigger,tiphys.dev/platform={}", site.platform.name);
    let mut found = BTreeSet::new();
    for (version, kind) in KINDS {
        let objects = site.objects(version, kind, Some(NAMESPACE));
        let listed = objects.list(&ListParams::default().labels(&labels)).await.expect("a list");
        found.extend(
            listed
                .into_iter()
                .map(|object| format!("{kind} {}", object.labels()["tiphys.dev/trigger"])),
        );
    }
    found
}

fn is_removal(line: &str, kind: &str) -> bool {
    line.trim_start().starts_with("removed") && line.contains(kind)
}
