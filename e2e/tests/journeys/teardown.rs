//! Taking a platform down: in reverse order, without leaving anything, from any state.

pub(crate) mod copied;
pub(crate) mod hooks;
mod leftovers;
pub(crate) mod moved;
pub(crate) mod others;
pub(crate) mod random;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tiphys_e2e::inventory::{Inventory, difference, inventory, inventory_of};
use tiphys_e2e::{PlatformFile, Site, World, figure, seed, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::platform::Timeouts;
use tiphys_sim::Chance;

use crate::audit::Mark;
use crate::deploy::{arguments, configure, deploy};
use crate::resume::{kills, start_with};
pub(crate) use leftovers::with_leftovers;

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
        self.listed("Left in the cluster:")
    }

    /// The objects that it says stay.
    fn kept(&self) -> BTreeSet<String> {
        self.listed("Stays in the cluster:")
    }

    fn listed(&self, title: &str) -> BTreeSet<String> {
        let lines = self.stderr.lines().skip_while(|line| *line != title).skip(1);
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
    let mut args = vec!["teardown", "-f", file.path(), "-o", "jsonl", "--yes"];
    args.extend(flags);
    let output = tiphys::run(&args, &world.kubeconfig).await;
    let (code, stdout, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(expected), "{stderr}\n{stdout}");
    let events = stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    Told { events, stderr }
}

async fn look(world: &World) -> Inventory {
    let mut all = inventory(&world.client).await.expect("an inventory");
    // The records of runs stay as long as their namespace does, which other platforms share.
    all.retain(|key, _| !key.starts_with("ConfigMap tiphys/argocd."));
    all
}

/// Waits until nothing that earlier tests have left is on its way out.
async fn until_quiet(world: &World) {
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    for _ in 0..120 {
        let listed = namespaces.list(&ListParams::default()).await.expect("a list");
        if listed.items.iter().all(|namespace| namespace.metadata.deletion_timestamp.is_none()) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    unreachable!("namespaces of earlier tests do not go away");
}

async fn of(world: &World, site: &str) -> Inventory {
    inventory_of(&world.client, site).await.expect("an inventory")
}

/// The reference platform, with Git gone: nothing is left, in the whole cluster.
pub(crate) async fn of_the_reference_platform(world: Arc<World>) {
    let site = Site::reference(&world, "down", Duration::from_secs(1)).await;
    site.commit("the reference platform");
    let file = site.platform_file();
    until_quiet(&world).await;
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
    assert!(
        told.stderr.contains("nothing to do: found nothing of the platform `down-reference`"),
        "{}",
        told.stderr
    );
    site.close().await;
}

fn app(name: &str, behaviour: Behaviour, health: u64) -> AppSource {
    let mut app = AppSource::new(name, behaviour);
    let health = Duration::from_secs(health);
    app.timeouts = Some(Timeouts { sync: Duration::from_secs(60), health });
    app
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
    let before = of(&world, "half").await;
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
        let left = difference(&before, &of(&world, "half").await);
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
    assert_eq!(cause, "it is outside the scope and depends on an app to be removed");
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

/// Killed at random moments, and run again.
pub(crate) async fn after_kills(world: Arc<World>) {
    let mut site = Site::reference(&world, "wreck", Duration::from_millis(100)).await;
    // Order is what counts here, and pods take their time.
    for app in &mut site.platform.apps {
        app.behaviour = Behaviour::ConfigOnly;
    }
    site.commit("the reference platform");
    let file = site.platform_file();
    let before = of(&world, "wreck").await;
    let (kills, mut chance) = (kills(), Chance::new(seed()));
    let mut whole = 30_000;
    for _ in 0..kills {
        let moment = chance.millis(0, whole);
        configure(&world, &file).await;
        deploy(&world, &file, 0).await;
        let mark = Mark::now(&world);
        let mut run = start_with(&world, &["teardown", "-f", file.path(), "-o", "jsonl", "--yes"]);
        tokio::time::sleep(moment).await;
        run.kill().expect("the run can be killed, or has ended");
        run.wait().expect("it has ended");
        let began = Instant::now();
        teardown(&world, &file, &[], 0).await;
        // What is left takes less than all of it.
        whole = whole.min(millis(began.elapsed() + moment));
        mark.writes(&site).check_reverse_order(&site);
        let left = difference(&before, &of(&world, "wreck").await);
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
