//! Runs of a part of a platform, and runs that only look.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_e2e::{PlatformFile, Site, World, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::platform::{Hold, Timeouts};

use crate::audit::Mark;
use crate::deploy::{arguments, configure, deploy};

const SECOND: Duration = Duration::from_secs(1);

fn app(name: &str, stack: &str, behaviour: Behaviour) -> AppSource {
    let mut app = AppSource::new(name, behaviour);
    stack.clone_into(&mut app.stack);
    app.timeouts = Some(Timeouts { sync: 60 * SECOND, health: 20 * SECOND });
    app
}

/// What a deployment with these flags has said: its events, and the rest.
async fn said(
    world: &World,
    file: &PlatformFile,
    flags: &[&str],
    code: i32,
) -> (Vec<Value>, String) {
    let mut args = arguments(file).to_vec();
    args.extend(flags);
    let output = tiphys::run(&args, &world.kubeconfig).await;
    let (found, stdout, stderr) = tiphys::said(&output);
    assert_eq!(found, Some(code), "{flags:?}\n{stderr}\n{stdout}");
    let events = stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    (events, stderr)
}

fn done(events: &[Value], how: &str) -> Vec<String> {
    let is = |event: &&Value| event["kind"] == "step-done" && event["how"] == how;
    let names = events.iter().filter(is).filter_map(|event| event["app"].as_str());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names
}

/// A database below, two apps on top of it, in stacks of their own.
async fn two_stacks(world: &Arc<World>, name: &str) -> Site {
    let mut site = Site::new(world, name).await;
    let (db, api, web) = (format!("{name}-db"), format!("{name}-api"), format!("{name}-web"));
    site.platform.apps = vec![
        app(&db, "base", Behaviour::Healthy { after: SECOND }),
        app(&api, "top", Behaviour::ConfigOnly).depends_on(&[&db]),
        app(&web, "top", Behaviour::ConfigOnly).depends_on(&[&api]),
    ];
    site
}

pub(crate) async fn of_a_part(world: Arc<World>) {
    let mut site = two_stacks(&world, "part").await;
    site.commit("two stacks");
    let file = site.platform_file();
    configure(&world, &file).await;

    let before = Mark::now(&world);
    let (events, stderr) = said(&world, &file, &["--scope", "stack:top"], 1).await;
    let failed = events.iter().find(|event| event["kind"] == "step-failed").expect("a failure");
    assert_eq!(failed["app"], "part-db", "{failed}");
    let cause = failed["cause"].as_str().unwrap_or_default();
    assert!(cause.contains("outside the scope"), "{failed}\n{stderr}");
    assert_eq!(before.writes(&site).operations(), [].into(), "nothing was synced: {events:#?}");

    let flags = ["--scope", "stack:top", "--with-dependencies"];
    let (events, _) = said(&world, &file, &flags, 0).await;
    assert_eq!(done(&events, "applied"), ["part-api", "part-db", "part-web"]);

    for app in &mut site.platform.apps {
        app.generation = 2;
    }
    site.commit("everything changed");
    let before = Mark::now(&world);
    let dry = ["deploy", "-f", file.path(), "--allow-uncommitted", "--dry-run"];
    let (code, stdout, stderr) = tiphys::said(&tiphys::run(&dry, &world.kubeconfig).await);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(before.writes(&site).of_ours(), [].into(), "it only looked: {stdout}");
    assert!(stdout.contains("part-web"), "{stdout}");
    let (forecast, _) = said(&world, &file, &["--dry-run"], 0).await;
    assert_eq!(forecast[0]["apps"].as_array().map(Vec::len), Some(3), "{forecast:#?}");

    let wrong = said(&world, &file, &["--plan", "0123456789ab"], 3).await;
    assert!(wrong.1.contains("0123456789ab"), "{}", wrong.1);
    assert_eq!(before.writes(&site).of_ours(), [].into(), "nothing was begun");

    // The root app changes all of them, and Argo CD would sync them at once.
    let (events, stderr) = said(&world, &file, &["--scope", "stack:base"], 0).await;
    assert_eq!(done(&events, "applied"), ["part-db"]);
    let synced: Vec<String> = before.writes(&site).operations().into_keys().collect();
    assert_eq!(synced, ["part-db"], "{stderr}");
    let rest = ["part-api", "part-web"].map(str::to_owned);
    assert_eq!(world.held(&site.platform.project).await, rest.into());
    assert!(stderr.contains("part-api, part-web stay held: outside the scope"), "{stderr}");

    let planned = tiphys::run(&["plan", "-f", file.path(), "-o", "json"], &world.kubeconfig).await;
    let planned: Value = serde_json::from_slice(&planned.stdout).expect("a plan");
    let digest = planned["digest"].as_str().expect("a digest").to_owned();
    let (events, _) = said(&world, &file, &["--plan", &digest[..19]], 0).await;
    assert_eq!(done(&events, "applied"), ["part-api", "part-web"]);

    let (events, stderr) = said(&world, &file, &["--scope", "stack:base"], 0).await;
    assert_eq!(done(&events, "already-current"), ["part-db"], "{events:#?}");
    let held = world.held(&site.platform.project).await;
    assert!(held.is_empty(), "nothing has changed: {held:?}\n{stderr}");
    site.close().await;
}

/// What degrades after its dependant was deployed fails the run; the dependant stays as it is.
pub(crate) async fn of_what_degrades_later(world: Arc<World>) {
    let mut site = Site::new(&world, "later").await;
    site.platform.apps = vec![
        app("later-db", "s", Behaviour::Healthy { after: SECOND }),
        app("later-api", "s", Behaviour::ConfigOnly).depends_on(&["later-db"]),
        app("later-slow", "s", Behaviour::Healthy { after: 12 * SECOND }),
        app("later-end", "s", Behaviour::ConfigOnly).depends_on(&["later-slow", "later-db"]),
    ];
    // Otherwise Argo CD would mend what is about to break.
    site.platform.hold = Some(Hold::Always);
    site.commit("a slow one beside");
    let file = site.platform_file();
    configure(&world, &file).await;
    let before = Mark::now(&world);
    let breaks = async {
        site.until_healthy("later-api").await;
        let deployments = site.objects("apps/v1", "Deployment", Some("later-db"));
        let nowhere = json!({ "spec": {
            "minReadySeconds": 0, "progressDeadlineSeconds": 2,
            "template": { "spec": { "nodeSelector": { "there-is": "none" } } },
        } });
        let (params, patch) = (PatchParams::default(), Patch::Merge(&nowhere));
        deployments.patch("later-db", &params, &patch).await.expect("anybody may break it");
    };
    let words = arguments(&file);
    let (output, ()) = tokio::join!(tiphys::run(&words, &world.kubeconfig), breaks);
    let (code, stdout, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(1), "{stderr}\n{stdout}");
    let operations = before.writes(&site).operations();
    assert_eq!(operations.get("later-api").map(Vec::len), Some(1), "it was synced once");
    let api = site.application("later-api").await;
    assert_eq!(api.status.health.status, "Healthy");
    assert!(stdout.contains("later-db") && !stdout.contains("\"app\":\"later-end\",\"how\""));
    site.close().await;
}

/// A platform that stays held, and a run that has no time.
pub(crate) async fn of_a_platform_that_stays_held(world: Arc<World>) {
    let mut site = two_stacks(&world, "always").await;
    site.platform.hold = Some(Hold::Always);
    site.commit("always held");
    let file = site.platform_file();
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;
    let all = ["always-api", "always-db", "always-web"].map(str::to_owned);
    assert_eq!(world.held(&site.platform.project).await, all.clone().into());
    deploy(&world, &file, 0).await;
    assert_eq!(world.held(&site.platform.project).await, all.into());

    let db = site.platform.app_mut("always-db").expect("an app");
    (db.behaviour, db.timeouts) = (Behaviour::NeverHealthy, None);
    site.commit("one that takes too long");
    let (events, stderr) = said(&world, &file, &["--timeout", "15s"], 7).await;
    let finished = events.last().expect("events");
    assert_eq!(finished["exit"], 7, "{finished}");
    assert!(stderr.contains("always-db"), "it says what it waited for: {stderr}");
    site.close().await;
}
