//! An Application inside of another one: what the outer one shows of it is never the health from
//! before its last sync.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::join_all;
use http::Method;
use serde_json::{Value, json};
use tiphys_argocd::AppAddress;
use tiphys_argocd::rest::REQUEST_TIMEOUT;
use tiphys_e2e::{Recording, Site, World, Written, count, figure};
use tiphys_health::{Evaluator, Limits, definitions};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::configure;

const PARENT: &str = "nest-parent";
const CHILDREN: u32 = 10;
/// How long the outer Application is looked at after the last update.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// What one sample of the outer Application says of an inner one.
struct Sample {
    child: String,
    version: u64,
    health: String,
}

#[derive(Debug, Default)]
struct Tally {
    updates: u32,
    versions: u32,
    /// Healthy by our definition.
    healthy: u32,
    /// Healthy by the field alone, though what was applied was not.
    wrong_without: u32,
    /// Samples of the outer Application that say Healthy.
    shown: u32,
}

/// Ten updates; a soak sets `TIPHYS_E2E_ROUNDS=20` for two hundred.
pub(crate) async fn never_stale(world: Arc<World>) {
    let mut site = Site::new(&world, "nest").await;
    let names: Vec<String> = (0..CHILDREN).map(|number| format!("nest-child-{number}")).collect();
    let manifests = names.iter().map(|name| format!("---\n{}\n", application(&site, name)));
    let parent = Behaviour::Resource { manifests: manifests.collect() };
    let behaviour = Behaviour::Healthy { after: Duration::from_secs(1) };
    let children = names.iter().map(|name| AppSource::new(name, behaviour.clone()));
    site.platform.apps = [AppSource::new(PARENT, parent)].into_iter().chain(children).collect();
    let revision = site.commit("an app of apps");
    configure(&world, &site.platform_file()).await;
    site.create_application(PARENT, revision.as_str(), false).await;
    world
        .argocd
        .refresh(&AppAddress::own(PARENT, &site.platform.project))
        .await
        .expect("a refresh");
    site.sync(PARENT, revision.as_str(), 1).await.expect("the sync is taken");
    for name in &names {
        site.until(name, "there", |_| true).await;
    }
    let rounds = count("TIPHYS_E2E_ROUNDS", 1);
    let mut tally = Tally::default();
    // Of what is made in the first one there is no health from before.
    for round in 0..=rounds {
        for app in &mut site.platform.apps {
            app.generation = round;
        }
        let revision = site.commit("all apps changed");
        let apps = site.objects("argoproj.io/v1alpha1", "Application", Some("argocd"));
        let apps = Recording::start(apps, None).await;
        let workloads = Recording::start(site.objects("apps/v1", "Deployment", None), None).await;
        let updates =
            join_all(names.iter().map(|name| update(&site, name, revision.as_str(), round)));
        let samples = sample_until(&world, &site, updates).await;
        if round > 0 {
            judge(&mut tally, &names, &apps.end(), &workloads.end(), &samples);
            tally.updates += CHILDREN;
        }
    }
    figure(&format!("{tally:?}"));
    assert!(tally.healthy >= tally.updates && tally.shown > 0, "{tally:?}");
    assert!(tally.wrong_without > 0, "the race was never seen: {tally:?}");
    site.close().await;
}

fn application(site: &Site, name: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": { "name": name, "namespace": "argocd" },
        "spec": {
            "project": site.platform.project,
            "source": {
                "repoURL": site.platform.repo_url, "targetRevision": "main",
                "path": format!("apps/{name}"),
            },
            "destination": {
                "server": "https://kubernetes.default.svc",
                "namespace": site.platform.namespace(name),
            },
            "syncPolicy": { "syncOptions": ["CreateNamespace=true"] },
        },
    })
}

/// Syncs an app, and waits until our definition calls it Healthy.
async fn update(site: &Site, name: &str, revision: &str, round: u32) {
    site.sync(name, revision, round).await.expect("the sync is taken");
    let applications = site.objects("argoproj.io/v1alpha1", "Application", Some("argocd"));
    for attempt in 0..300 {
        let seen = applications.get(name).await.expect("it is there");
        let seen = serde_json::to_value(seen).expect("an object");
        let applied = seen.pointer("/status/operationState/syncResult/revision");
        let done = applied.is_some_and(|applied| applied == revision);
        if done && verdicts([&seen])[0] == "Healthy" {
            return;
        }
        // If the assessment falls in the second of the operation's end, nobody can tell them
        // apart before the next one.
        if attempt % 15 == 14 {
            site.world
                .argocd
                .refresh(&AppAddress::own(name, &site.platform.project))
                .await
                .expect("a refresh");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    unreachable!("{name} did not become Healthy");
}

/// What the outer Application shows meanwhile.
async fn sample_until(
    world: &World,
    site: &Site,
    updates: impl Future<Output = Vec<()>>,
) -> Vec<Sample> {
    let path = format!("applications/{PARENT}/resource-tree?project={}", site.platform.project);
    let mut samples = Vec::new();
    let mut updates = Box::pin(updates.map(|_| Instant::now()));
    let mut ended = None;
    // A busy machine shows the last change only after it was made.
    while ended.is_none_or(|ended: Instant| ended.elapsed() < AFTERWARDS) {
        tokio::select! {
            now = &mut updates, if ended.is_none() => ended = Some(now),
            () = tokio::time::sleep(Duration::from_millis(200)) => {
                let tree: Value = world
                    .argocd
                    .call(Method::GET, &path, None::<&()>, REQUEST_TIMEOUT)
                    .await
                    .expect("a tree");
                for node in tree["nodes"].as_array().into_iter().flatten() {
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    samples.push(Sample {
                        child: text(&node["name"]),
                        version: text(&node["resourceVersion"]).parse().unwrap_or_default(),
                        health: text(&node["health"]["status"]),
                    });
                }
            }
        }
    }
    samples
}

fn judge(
    tally: &mut Tally,
    names: &[String],
    apps: &[Written],
    workloads: &[Written],
    samples: &[Sample],
) {
    for name in names {
        let versions: Vec<(u64, Value)> = apps
            .iter()
            .filter(|written| written.object.metadata.name.as_ref() == Some(name))
            .map(|w| (w.version, serde_json::to_value(&w.object).expect("an object")))
            .collect();
        let verdicts = verdicts(versions.iter().map(|(_, object)| object));
        let mut known = BTreeMap::new();
        for ((version, object), verdict) in versions.iter().zip(verdicts) {
            let rolled_out = rolled_out(name, *version, workloads);
            tally.versions += 1;
            if object["status"]["health"]["status"] == "Healthy" && !rolled_out {
                tally.wrong_without += 1;
            }
            if verdict == "Healthy" {
                tally.healthy += 1;
                assert!(rolled_out, "{name} is Healthy too soon, at version {version}: {object}");
            }
            known.insert(*version, verdict);
        }
        for sample in samples.iter().filter(|sample| sample.child == *name) {
            // What it shows may be older than this round.
            let Some(verdict) = known.get(&sample.version) else { continue };
            assert_eq!(sample.health, *verdict, "{name} at version {}", sample.version);
            tally.shown += u32::from(sample.health == "Healthy");
        }
    }
}

/// Whether the Deployment of an app had done all that was asked of it when a version was written.
fn rolled_out(app: &str, version: u64, workloads: &[Written]) -> bool {
    let mut before = workloads.iter().filter(|written| {
        written.version < version && written.object.metadata.name.as_deref() == Some(app)
    });
    // Before this round: it was waited for.
    let Some(newest) = before.next_back() else { return true };
    let generation = newest.object.metadata.generation;
    let status = |field: &str| newest.object.data["status"][field].as_i64();
    let wanted = newest.object.data["spec"]["replicas"].as_i64();
    status("observedGeneration") >= generation
        && ["updatedReplicas", "availableReplicas", "replicas"].iter().all(|f| status(f) == wanted)
}

/// What our definition says of each object.
fn verdicts<'v>(objects: impl IntoIterator<Item = &'v Value>) -> Vec<String> {
    let ours =
        definitions().into_iter().find(|one| one.kind.to_string() == "argoproj.io/Application");
    let script = ours.expect("we have one").script;
    let mut evaluator = Evaluator::new(Limits::default());
    let verdict = |object| {
        let verdict = evaluator.evaluate(&script, object).expect("a verdict");
        verdict.status.map(|status| status.to_string()).unwrap_or_default()
    };
    objects.into_iter().map(verdict).collect()
}
