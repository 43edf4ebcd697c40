//! Answers that mean nothing by themselves: an API server that starts, a proxy that is overloaded,
//! a watch that ends. None of them ends a run, and nothing is missed because of them.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use http::Method;
use tiphys_e2e::inventory::{difference, inventory_of};
use tiphys_e2e::{PlatformFile, Proxy, Site, Spoiled, World, figure, seed, tiphys};
use tiphys_sim::Chance;

use crate::audit::Mark;
use crate::deploy::configure;

/// One request of so many is spoiled.
const ONE_IN: u64 = 6;
const WAYS: [Spoiled; 6] = [
    Spoiled::Cut,
    Spoiled::Refused(401),
    Spoiled::Refused(403),
    Spoiled::Refused(500),
    Spoiled::Refused(503),
    Spoiled::Refused(409),
];

pub(crate) async fn answers(world: Arc<World>) {
    let mut site = Site::reference(&world, "spoil", Duration::from_secs(1)).await;
    site.platform.apps.retain(|app| {
        let few = ["metallb", "metallb-config", "cert-manager", "cluster-issuers", "ceph-operator"];
        few.iter().any(|name| app.name == format!("spoil-{name}"))
    });
    let revision = site.commit("the reference platform");
    // The way to Argo CD's own API does not lead through a proxy of HTTP.
    let file = site.platform_file_with(|text| {
        assert!(text.contains("    rootProject:"), "{text}");
        text.replacen("    rootProject:", "    access: kubernetes\n    rootProject:", 1)
    });
    let before = inventory_of(&world.client, "spoil").await.expect("an inventory");
    configure(&world, &file).await;

    let mark = Mark::now(&world);
    let deploy = ["deploy", "-f", file.path(), "--allow-uncommitted", "-o", "jsonl"];
    let spoiled = run(&world, &file, &deploy).await;
    let writes = mark.writes(&site);
    writes.check_order(&site, revision.as_str());
    let teardown = ["teardown", "-f", file.path(), "--yes", "-o", "jsonl"];
    let more = run(&world, &file, &teardown).await;
    let after = inventory_of(&world.client, "spoil").await.expect("an inventory");
    assert_eq!(difference(&before, &after), Vec::<String>::new());
    figure(&format!("{spoiled} answers to a deployment and {more} to a teardown were spoiled"));
    site.close().await;
}

/// Runs to a good end, and spoils answers from when the run has begun; returns how many.
async fn run(world: &World, file: &PlatformFile, args: &[&str]) -> u32 {
    let proxy = Proxy::start(world.client.clone()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    proxy.kubeconfig(&world.kubeconfig, &kubeconfig);
    let mut command = tiphys::command(args, &kubeconfig);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a run");
    let spoiled = Arc::new(AtomicU32::new(0));
    let (count, mut chance) = (spoiled.clone(), Chance::new(seed()));
    until_begun(&mut run).await;
    let mut just_now = BTreeSet::new();
    proxy.spoil(move |request| {
        let name = format!("{} {}", request.method(), request.uri().path());
        // Once is odd, twice is a cluster that does not work. A Lease is another journey.
        let spared = just_now.remove(&name) || name.contains("/leases/");
        if spared || !chance.once_in(ONE_IN) {
            return None;
        }
        just_now.insert(name);
        count.fetch_add(1, Relaxed);
        // Nobody who only reads is told of a conflict, which is the last one.
        let ways = if request.method() == Method::GET { WAYS.len() - 1 } else { WAYS.len() };
        chance.pick(&WAYS[..ways]).copied()
    });
    let wait = move || run.wait_with_output().expect("it ends");
    let output = tokio::task::spawn_blocking(wait).await.expect("nobody cancels it");
    let (code, _, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(0), "{} {stderr}", file.path());
    spoiled.load(Relaxed)
}

/// Reads the first event. The rest is read too, so that the run is not held up.
async fn until_begun(run: &mut Child) {
    let mut lines = BufReader::new(run.stdout.take().expect("a pipe")).lines();
    let first = tokio::task::spawn_blocking(move || {
        let first = lines.next().expect("a line").expect("text");
        std::thread::spawn(move || lines.for_each(drop));
        first
    });
    let first = first.await.expect("nobody cancels it");
    assert!(first.contains("run-started"), "{first}");
}
