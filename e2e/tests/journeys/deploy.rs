//! The reference platform on a real cluster: order, again, and a change of a few apps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tiphys_cluster::Application;
use tiphys_e2e::{PlatformFile, Site, World, figure, tiphys};
use tiphys_lab::audit::{self, Record};

pub(crate) async fn in_order(world: Arc<World>) {
    let mut site = Site::reference(&world, "order", Duration::from_secs(3)).await;
    let revision = site.commit("the reference platform");
    let file = site.platform_file();
    configure(&world, &file).await;

    let before = Mark::now(&world);
    let events = deploy(&world, &file, 0).await;
    let finished = events.last().expect("events");
    assert_eq!(finished["counts"]["applied"], 43, "{finished}");
    let writes = before.writes();
    check_order(&site, &writes, revision.as_str());
    assert_eq!(operations(&writes, &site).len(), 43, "each app is synced once");
    let most = writes_per_app(&writes, &site).into_values().max();
    figure(&format!(
        "makespan {} ms, critical path {} ms, at most {most:?} writes of ours for an app",
        finished["makespanMs"], finished["criticalPathMs"]
    ));
    assert!(world.held(&site.platform.project).await.is_empty(), "everything was handed off");

    let before = Mark::now(&world);
    let events = deploy(&world, &file, 0).await;
    let finished = events.last().expect("events");
    assert_eq!(finished["counts"]["alreadyCurrent"], 43, "{finished}");
    assert_eq!(operations(&before.writes(), &site), BTreeMap::new(), "nothing is synced again");

    let changed = ["order-vault", "order-keycloak", "order-loki"];
    for app in changed {
        site.platform.app_mut(app).expect("an app").generation = 2;
    }
    let revision = site.commit("three apps changed");
    let before = Mark::now(&world);
    deploy(&world, &file, 0).await;
    let writes = before.writes();
    let synced: BTreeSet<String> = operations(&writes, &site).into_keys().collect();
    assert_eq!(synced, changed.map(str::to_owned).into());
    check_order(&site, &writes, revision.as_str());
    site.close().await;
}

async fn configure(world: &World, file: &PlatformFile) {
    let output = tiphys::run(&["configure", "-f", file.path()], &world.kubeconfig).await;
    let (code, _, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(0), "{stderr}");
}

/// Deploys, and returns the events.
async fn deploy(world: &World, file: &PlatformFile, expected: i32) -> Vec<Value> {
    let args = ["deploy", "-f", file.path(), "-o", "jsonl"];
    let output = tiphys::run(&args, &world.kubeconfig).await;
    let (code, stdout, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(expected), "{stderr}\n{stdout}");
    stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A place in the audit log.
struct Mark {
    log: std::path::PathBuf,
    records: usize,
}

impl Mark {
    fn now(world: &World) -> Mark {
        let log = world.audit_log.clone().expect("only the lab has a log to read");
        let records = audit::read(&log).expect("the audit log").len();
        Mark { log, records }
    }

    /// What was written to Applications since, in the order of their versions.
    fn writes(&self) -> Vec<Record> {
        let records = audit::read(&self.log).expect("the audit log").into_iter();
        let mut writes: Vec<Record> = records
            .skip(self.records)
            .filter(|record| record.is_write() && record.resource_version().is_some())
            .filter(|record| {
                record.object_ref.as_ref().is_some_and(|o| o.resource == "applications")
            })
            .collect();
        writes.sort_by_key(Record::resource_version);
        writes
    }
}

fn application(record: &Record) -> Application {
    let object = record.response_object.clone().expect("the policy keeps Applications");
    serde_json::from_value(object).expect("an Application")
}

fn is_app(site: &Site, name: &str) -> bool {
    site.platform.apps.iter().any(|app| app.name == name)
}

/// The version at which an operation was first set, for each app that has got one.
fn operations(writes: &[Record], site: &Site) -> BTreeMap<String, u64> {
    let mut set = BTreeMap::new();
    for record in writes {
        let application = application(record);
        if application.operation.is_some() && is_app(site, application.name()) {
            let version = record.resource_version().expect("a version");
            set.entry(application.name().to_owned()).or_insert(version);
        }
    }
    set
}

/// Before the write that set the operation of an app, each of its dependencies had been written
/// as Healthy and Synced at the revision, and not been written otherwise since.
fn check_order(site: &Site, writes: &[Record], revision: &str) {
    let started = operations(writes, site);
    let mut states: BTreeMap<String, Vec<(u64, bool)>> = BTreeMap::new();
    for record in writes {
        let application = application(record);
        let status = &application.status;
        let well = status.health.status == "Healthy"
            && status.sync.status == "Synced"
            && status.sync.revision == revision;
        let version = record.resource_version().expect("a version");
        states.entry(application.name().to_owned()).or_default().push((version, well));
    }
    let mut edges = 0;
    for app in &site.platform.apps {
        let Some(start) = started.get(&app.name) else { continue };
        for dependency in &app.depends_on {
            let before = states.get(dependency).into_iter().flatten();
            let last = before.take_while(|(version, _)| version < start).last();
            assert!(
                last.is_some_and(|(_, well)| *well),
                "{} started before {dependency} was well",
                app.name
            );
            edges += 1;
        }
    }
    figure(&format!("{edges} edges in order"));
}

/// Writes that we caused, for each app: the controller's own are not ours.
fn writes_per_app(writes: &[Record], site: &Site) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for record in writes {
        let name = record.object_ref.as_ref().map(|object| object.name.clone()).unwrap_or_default();
        if is_app(site, &name) && !record.user.username.contains("application-controller") {
            *counts.entry(name).or_default() += 1;
        }
    }
    counts
}
