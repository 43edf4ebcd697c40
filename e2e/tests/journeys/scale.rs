//! A small platform in an Argo CD that has thousands of Applications of others.

pub(crate) mod neighbours;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use serde_json::{Value, json};
use tiphys_e2e::{Site, World, count, figure, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::audit::Mark;
use crate::deploy::{arguments, configure};
use crate::teardown::teardown;

const OTHERS: usize = 2_000;
/// Requests at a time.
const AT_ONCE: usize = 16;
const LABEL: &str = "lab.tiphys.dev/crowd";
/// As much memory may a run take, in KiB.
const MEMORY: u64 = 40 * 1024;

pub(crate) async fn among_thousands(world: Arc<World>) {
    let site = small(&world).await;
    let crowd = site.objects("argoproj.io/v1alpha1", "Application", Some("argocd"));
    disperse(&crowd).await;
    let file = site.platform_file();
    site.commit("a small platform");
    configure(&world, &file).await;
    let status = ["status", "-f", file.path()];
    // The first one brings the apps in; those that are compared do the same work.
    measure(&world, &arguments(&file)).await;
    let alone = [again(&world, &site).await, measure(&world, &status).await];

    gather(&crowd).await;
    let among = [again(&world, &site).await, measure(&world, &status).await];
    // What remains of `status` without it is ours.
    figure(&format!("to list them all takes {:.1} s", list(&crowd).await.as_secs_f64()));
    disperse(&crowd).await;
    for (what, (alone, among)) in ["deploy", "status"].iter().zip(alone.iter().zip(&among)) {
        figure(&format!(
            "{what} alone {alone}, among {OTHERS} Applications {among}: {:.2} times as long",
            among.time.as_secs_f64() / alone.time.as_secs_f64(),
        ));
        assert!(among.memory <= MEMORY, "{what} takes {} KiB", among.memory);
    }
    site.close().await;
}

/// Platforms of more and more apps: brought in, left alone, and changed in two places.
pub(crate) async fn of_hundreds(world: Arc<World>) {
    let (least, most) = (count("TIPHYS_E2E_LEAST_APPS", 50), count("TIPHYS_E2E_APPS", 100));
    for apps in [50, 100, 300, 1_000].into_iter().filter(|apps| (least..=most).contains(apps)) {
        let mut site = many_apps(&world, &format!("size{apps}"), apps).await;
        site.commit("many apps");
        let file = site.platform_file();
        configure(&world, &file).await;
        let first = counted(&world, &site, &arguments(&file)).await;
        let nothing = counted(&world, &site, &arguments(&file)).await;
        for app in site.platform.apps.iter_mut().rev().take(2) {
            app.generation += 1;
        }
        site.commit("two apps change");
        let two = counted(&world, &site, &arguments(&file)).await;
        let began = Instant::now();
        teardown(&world, &file, &[], 0).await;
        let down = began.elapsed().as_secs_f64();
        figure(&format!(
            "{apps} apps: first {first}; nothing to do {nothing}; two changed {two}; teardown {down:.1} s"
        ));
        site.close().await;
    }
}

/// So many apps, each with ten that wait for it.
pub(crate) async fn many_apps(world: &Arc<World>, site: &str, apps: u32) -> Site {
    let name = |number: u32| format!("{site}-{number}");
    let app = |number: u32| {
        let app = AppSource::new(&name(number), Behaviour::ConfigOnly);
        let before = number.checked_sub(1).map(|number| name(number / 10));
        app.depends_on(&before.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let mut site = Site::new(world, site).await;
    site.platform.apps = (0..apps).map(app).collect();
    site
}

async fn small(world: &Arc<World>) -> Site {
    let mut site = Site::new(world, "scale").await;
    let name = |number: usize| format!("scale-{number}");
    site.platform.apps = (0..6)
        .map(|number| {
            let app = AppSource::new(&name(number), Behaviour::ConfigOnly);
            if number == 0 { app } else { app.depends_on(&[&name(number - 1)]) }
        })
        .collect();
    site
}

/// What a run took, and how often it had Applications written.
async fn counted(world: &World, site: &Site, args: &[&str]) -> String {
    let before = Mark::now(world);
    let took = measure(world, args).await;
    let writes: u32 = before.writes(site).of_ours().values().sum();
    format!("{took}, {writes} writes")
}

/// What a process took.
struct Took {
    time: Duration,
    /// On the processor, in clock ticks.
    ticks: u64,
    /// At most, in KiB.
    memory: u64,
    /// What Argo CD took on the processor meanwhile, in clock ticks.
    argocd: u64,
}

impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Took { time, ticks, memory, argocd } = self;
        let seconds = time.as_secs_f64();
        write!(f, "{seconds:.1} s, {ticks} ticks (Argo CD {argocd}), {memory} KiB")
    }
}

/// A deployment in which every app changes.
async fn again(world: &World, site: &Site) -> Took {
    let mut platform = site.platform.clone();
    let head = site.repository.head().expect("an answer").expect("a commit");
    let number = u32::from_str_radix(&head.as_str()[..6], 16).expect("a SHA is hexadecimal");
    platform.apps.iter_mut().for_each(|app| app.generation = number);
    site.repository.commit(&platform.files(), "every app changes").expect("a commit");
    let file = site.platform_file();
    measure(world, &arguments(&file)).await
}

async fn measure(world: &World, args: &[&str]) -> Took {
    let began = Instant::now();
    let mut command = tiphys::command(args, &world.kubeconfig);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it can be started");
    let process = format!("/proc/{}", child.id());
    let mut took = Took { time: Duration::ZERO, ticks: 0, memory: 0, argocd: 0 };
    let argocd = argocd_ticks();
    let status = loop {
        // What is gone says nothing more; the last word before that counts.
        if let Some((ticks, memory)) = look(Path::new(&process)) {
            (took.ticks, took.memory) = (took.ticks.max(ticks), took.memory.max(memory));
        }
        if let Some(status) = child.try_wait().expect("it is ours") {
            break status;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    took.time = began.elapsed();
    took.argocd = argocd_ticks().saturating_sub(argocd);
    assert_eq!(status.code(), Some(0), "{args:?}");
    took
}

fn look(process: &Path) -> Option<(u64, u64)> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let memory = line.split_whitespace().next()?.parse().ok()?;
    Some((ticks(process)?, memory))
}

/// On the processor so far.
fn ticks(process: &Path) -> Option<u64> {
    // The name of the program, in brackets, may have spaces.
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(ticks(11)? + ticks(12)?)
}

/// Of all parts of Argo CD: in the lab, they are processes of this machine.
fn argocd_ticks() -> u64 {
    let processes = fs::read_dir("/proc").expect("a list of processes").flatten();
    let argocd = processes.map(|entry| entry.path()).filter(|process| {
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("argocd-")
    });
    argocd.filter_map(|process| ticks(&process)).sum()
}

/// Applications as others have them, with a status of some length. Argo CD is told to leave them
/// alone: what is measured is ours.
fn other(number: usize) -> Value {
    let resources: Vec<Value> = (0..20)
        .map(|at| {
            json!({
                "group": "apps", "version": "v1", "kind": "Deployment", "status": "Synced",
                "namespace": "crowd", "name": format!("part-{at}-of-{number}"),
                "health": { "status": "Healthy" },
            })
        })
        .collect();
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": format!("crowd-{number:04}"),
            "labels": { LABEL: "yes" },
            "annotations": { "argocd.argoproj.io/skip-reconcile": "true" },
        },
        "spec": {
            "project": "crowd",
            "source": { "repoURL": "https://git.example/crowd.git", "path": "." },
            "destination": { "server": "https://kubernetes.default.svc", "namespace": "crowd" },
        },
        "status": {
            "health": { "status": "Healthy" },
            "sync": { "status": "Synced", "revision": "0123456789abcdef0123456789abcdef01234567" },
            "resources": resources,
        },
    })
}

async fn gather(crowd: &Api<DynamicObject>) {
    let create = async |number: usize| {
        let object: DynamicObject = serde_json::from_value(other(number)).expect("an object");
        crowd.create(&PostParams::default(), &object).await.expect("it can be created");
    };
    stream::iter(0..OTHERS).for_each_concurrent(AT_ONCE, create).await;
}

/// How long it takes until all Applications have arrived, in pages as `status` asks for them.
async fn list(crowd: &Api<DynamicObject>) -> Duration {
    let began = Instant::now();
    let mut page = ListParams::default().limit(100);
    loop {
        let listed = crowd.list(&page).await.expect("a list");
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return began.elapsed(),
        }
    }
}

async fn disperse(crowd: &Api<DynamicObject>) {
    let all = ListParams::default().labels(LABEL);
    crowd.delete_collection(&DeleteParams::default(), &all).await.expect("they can be deleted");
    let began = Instant::now();
    while !crowd.list_metadata(&all).await.expect("a list").items.is_empty() {
        assert!(began.elapsed() < Duration::from_secs(120), "the crowd does not go away");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
