//! What people read about each of the troubles: the true cause first.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use tiphys_e2e::{Lots, Site, World};
use tiphys_lab::repository::{AppSource, Behaviour};

use super::catalogue::{Trouble, hook, troubles, unhook};
use super::{Eye, logged};
use crate::deploy::configure;
use crate::snapshots;

/// Kubernetes needs a while until it says what is wrong, and it says it in several steps. On a
/// machine with much else to do, a deadline of one second has taken two minutes to be noticed.
const WAIT_LIMIT: Duration = Duration::from_secs(300);
/// What has been the same for so long is how it stays.
const SETTLED: Duration = Duration::from_secs(25);
/// How many are looked at at once.
const AT_ONCE: usize = 3;

fn full(name: &str) -> String {
    format!("trouble-{name}")
}

pub(crate) async fn are_told_by_their_true_cause(world: Arc<World>) {
    let mut site = Site::new(&world, "trouble").await;
    for Trouble { name, behaviour, .. } in troubles() {
        let mut app = AppSource::new(&full(name), behaviour);
        let mut user = AppSource::new(&full(&format!("on-{name}")), Behaviour::ConfigOnly);
        (app.stack, user.stack) = (name.to_owned(), name.to_owned());
        site.platform.apps.extend([app, user.depends_on(&[&full(name)])]);
    }
    let revision = site.commit("many ways to fail");
    let eye = Eye::new(&world, &site);
    configure(&world, &eye.file).await;
    hook(&site, &full("webhook")).await;
    // A run would wait for each until it is sure.
    for app in &site.platform.apps {
        site.create_application(&app.name, revision.as_str(), false).await;
    }
    for Trouble { name, .. } in troubles() {
        // Argo CD refuses what it cannot compare.
        site.sync(&full(name), revision.as_str(), 1).await.ok();
    }
    let before = logged(&world);
    let lots = Lots::new(revision.as_str());
    // Last the app that is being deleted: as long as one is, so is the platform.
    let (going, staying): (Vec<Trouble>, Vec<Trouble>) =
        troubles().into_iter().partition(|trouble| trouble.state == "removing");
    let tell = async |trouble: Trouble| {
        let text = tell(&eye, &site, &lots, &trouble).await;
        (trouble.name, text)
    };
    let mut told: Vec<(&str, String)> =
        stream::iter(staying).map(&tell).buffered(AT_ONCE).collect().await;
    for trouble in going {
        let app = full(trouble.name);
        site.until_healthy(&app).await;
        let gone = DeleteParams::default();
        site.applications().delete(&app, &gone).await.expect("it can be deleted");
        told.push(tell(trouble).await);
    }
    assert_eq!(eye.writes(), Vec::<String>::new());
    eye.nothing_was_written_for_it(before);
    let texts: Vec<(&str, &str)> = told.iter().map(|(name, text)| (*name, text.as_str())).collect();
    snapshots::compare(&folder(), &texts);

    // A run's own account sees all of it, also what pods write.
    let account =
        format!("system:serviceaccount:tiphys:tiphys.argocd.{}.deploy", site.platform.name);
    let eye = eye.acting_as(&account, &["system:serviceaccounts", "system:authenticated"]);
    eye.json(&["validate"], 1).await;
    let (code, stdout, stderr) = eye.look(&["why", &full("probe")]).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    assert!(stdout.contains("likely: a probe fails"), "{stdout}");
    assert!(!stdout.contains("unavailable"), "{stdout}");
    unhook(&site, &full("webhook")).await;
    site.close().await;
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journeys/status")
}

/// What people read about a trouble once Kubernetes has said all there is; checked for its true
/// cause.
async fn tell(eye: &Eye, site: &Site, lots: &Lots, trouble: &Trouble) -> String {
    let Trouble { name, state, cause, first, .. } = trouble;
    let app = full(name);
    let file = folder().join(format!("{name}.out"));
    let accepted = std::fs::read_to_string(file).ok();
    let accepted = accepted.filter(|_| std::env::var_os("SNAPSHOTS").is_none());
    let (began, mut same) = (Instant::now(), Instant::now());
    let mut text = String::new();
    let why = loop {
        let (status, why) = look(eye, name).await;
        let pods = replica_sets(site, &app).await;
        let now = lots.normal(&format!("{status}\n{why}"), &pods);
        if now != text {
            (text, same) = (now, Instant::now());
        }
        let done = match &accepted {
            Some(accepted) => *accepted == text,
            None => same.elapsed() > SETTLED && seen_first(&why).contains(first),
        };
        if done || began.elapsed() > WAIT_LIMIT {
            break why;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    assert!(seen_first(&why).contains(first), "not first of all `{first}` in:\n{why}");
    let found = eye.json(&["validate", "--scope", &format!("stack:{name}")], 1).await;
    let root = &found["rootCauses"][0];
    assert_eq!((&root["app"], &root["state"]), (&json!(app), &json!(state)), "{found:#}");
    assert!(root["cause"].as_str().unwrap_or_default().contains(cause), "{root:#}");
    let (code, stdout, stderr) = eye.look(&["why", &full(&format!("on-{name}"))]).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    let second = stdout.lines().nth(1).unwrap_or_default();
    assert!(second.starts_with(&format!("  because {app} ")), "{stdout}");
    assert!(second.contains(cause), "{stdout}");
    assert!(seen_first(&stdout).contains(first), "not first of all `{first}` in:\n{stdout}");
    text
}

/// `status` and `why`, as somebody would type it and read it.
async fn look(eye: &Eye, name: &str) -> (String, String) {
    let (scope, app) = (format!("stack:{name}"), full(name));
    let mut told = Vec::new();
    for args in [["status", "--scope", &scope].as_slice(), &["why", &app]] {
        let (code, stdout, stderr) = eye.look(args).await;
        assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
        let stdout = stdout.replace(eye.file.path(), "platform.yaml");
        told.push(format!("$ tiphys {}\n{stdout}", args.join(" ")));
    }
    let why = told.pop().unwrap_or_default();
    (told.pop().unwrap_or_default(), why)
}

/// The first line below what was seen of the root cause.
fn seen_first(why: &str) -> &str {
    let mut lines = why.lines().skip_while(|line| !line.starts_with("evidence for "));
    lines.nth(1).unwrap_or_default()
}

async fn replica_sets(site: &Site, namespace: &str) -> Vec<String> {
    let sets = site.objects("apps/v1", "ReplicaSet", Some(namespace));
    let listed = sets.list(&ListParams::default()).await.expect("a list");
    listed.items.iter().map(ResourceExt::name_any).collect()
}
