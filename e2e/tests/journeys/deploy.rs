//! The reference platform on a real cluster: order, again, and a change of a few apps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::DeleteParams;
use serde_json::Value;
use tiphys_e2e::{PlatformFile, Site, World, figure, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::audit::{Mark, Writes};

pub(crate) async fn in_order(world: Arc<World>) {
    let mut site = Site::reference(&world, "order", Duration::from_secs(3)).await;
    let revision = site.commit("the reference platform");
    let file = site.platform_file();
    configure(&world, &file).await;

    let before = Mark::now(&world);
    let events = deploy(&world, &file, 0).await;
    let finished = events.last().expect("events");
    assert_eq!(finished["counts"]["applied"], 43, "{finished}");
    let writes = before.writes(&site);
    writes.check_order(&site, revision.as_str());
    let operations = writes.operations();
    assert!(operations.len() == 43 && operations.values().all(|o| o.len() == 1), "each once");
    let most = writes.of_ours().into_values().max().unwrap_or_default();
    figure(&format!(
        "makespan {} ms, critical path {} ms, at most {most} writes of ours for an app",
        finished["makespanMs"], finished["criticalPathMs"]
    ));
    assert!(world.held(&site.platform.project).await.is_empty(), "everything was handed off");
    tell_latencies(&site, &events, &writes, revision.as_str());

    let before = Mark::now(&world);
    let events = deploy(&world, &file, 0).await;
    let finished = events.last().expect("events");
    assert_eq!(finished["counts"]["alreadyCurrent"], 43, "{finished}");
    assert_eq!(before.writes(&site).operations(), BTreeMap::new(), "nothing is synced again");

    let changed = ["order-vault", "order-keycloak", "order-loki"];
    for app in changed {
        site.platform.app_mut(app).expect("an app").generation = 2;
    }
    let revision = site.commit("three apps changed");
    let before = Mark::now(&world);
    deploy(&world, &file, 0).await;
    let writes = before.writes(&site);
    let synced: BTreeSet<String> = writes.operations().into_keys().collect();
    assert_eq!(synced, changed.map(str::to_owned).into());
    writes.check_order(&site, revision.as_str());
    site.close().await;
}

/// Without Argo CD's API: no token, only the fields of Applications.
pub(crate) async fn through_fields(world: Arc<World>) {
    let mut site = Site::new(&world, "field").await;
    site.platform.apps = vec![
        AppSource::new("field-a", Behaviour::Healthy { after: Duration::from_secs(1) }),
        AppSource::new("field-b", Behaviour::ConfigOnly).depends_on(&["field-a"]),
    ];
    let revision = site.commit("two apps");
    let access = "    rootProject: field-root\n";
    let file = site.platform_file_with(|text| {
        assert!(text.contains(access), "{text}");
        text.replace(access, &format!("{access}    access: kubernetes\n"))
    });
    configure(&world, &file).await;
    let secrets = site.objects("v1", "Secret", Some("argocd"));
    let gone = secrets.delete("tiphys-field-deploy", &DeleteParams::default()).await;
    gone.expect("there is a token that is not needed");
    let before = Mark::now(&world);
    let events = deploy(&world, &file, 0).await;
    assert_eq!(events.last().expect("events")["counts"]["applied"], 2);
    let writes = before.writes(&site);
    writes.check_order(&site, revision.as_str());
    // Each request can be found by its run.
    let run = events[0]["run"].as_str().expect("a run");
    let agent = format!("tiphys/{} run {run}", env!("CARGO_PKG_VERSION"));
    assert_eq!(writes.agents(), [agent].into());
    deploys_what_was_stored(&world, "field").await;
    site.close().await;
}

/// Where no root app can be asked for the platform file, `configure` has kept it.
pub(crate) async fn deploys_what_was_stored(world: &World, platform: &str) {
    let args = ["deploy", "--platform", platform];
    let (code, stdout, stderr) = tiphys::said(&tiphys::run(&args, &world.kubeconfig).await);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("as `tiphys configure` has stored it"), "{stderr}");
}

/// How long a dependant's request took: after the gate let the last of its dependencies pass, and
/// after that was first written as Healthy.
fn tell_latencies(site: &Site, events: &[Value], writes: &Writes, revision: &str) {
    let done: BTreeMap<&str, Timestamp> = events
        .iter()
        .filter(|event| event["kind"] == "step-done")
        .filter_map(|event| Some((event["app"].as_str()?, event["at"].as_str()?.parse().ok()?)))
        .collect();
    let (requested, healthy) = (writes.requested(), writes.healthy(revision));
    let (mut after_gate, mut after_healthy) = (Vec::new(), Vec::new());
    for app in site.platform.apps.iter().filter(|app| !app.depends_on.is_empty()) {
        let request = requested[&app.name];
        let last = |times: &dyn Fn(&str) -> Timestamp| {
            let last = app.depends_on.iter().map(|dependency| times(dependency)).max();
            (request - last.expect("a dependency")).total(jiff::Unit::Millisecond).expect("a time")
        };
        after_gate.push(last(&|dependency| done[dependency]));
        after_healthy.push(last(&|dependency| healthy[dependency]));
    }
    for (what, mut times) in
        [("passed the gate", after_gate), ("was first written as Healthy", after_healthy)]
    {
        times.sort_by(f64::total_cmp);
        let (median, last) = (times[times.len() / 2], times[times.len() - 1]);
        figure(&format!(
            "a dependant's request comes {median:.0} ms (median of {}) to {last:.0} ms after its \
             last dependency {what}",
            times.len()
        ));
    }
}

pub(crate) async fn configure(world: &World, file: &PlatformFile) {
    let output = tiphys::run(&["configure", "-f", file.path()], &world.kubeconfig).await;
    let (code, _, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(0), "{stderr}");
}

/// The arguments of a deployment whose platform file lies in no clone.
pub(crate) fn arguments(file: &PlatformFile) -> [&str; 6] {
    ["deploy", "-f", file.path(), "--allow-uncommitted", "-o", "jsonl"]
}

/// Deploys, and returns the events.
pub(crate) async fn deploy(world: &World, file: &PlatformFile, expected: i32) -> Vec<Value> {
    let output = tiphys::run(&arguments(file), &world.kubeconfig).await;
    let (code, stdout, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(expected), "{stderr}\n{stdout}");
    stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}
