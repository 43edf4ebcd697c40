//! Runs that start at certain times.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::Value;
use tiphys_e2e::{Site, World, until, until_within};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::{
    Cron, ScheduleTrigger, Scope, Trigger, TriggerAction, TriggerKind, TriggerName,
};

use super::{install_chart, said};
use crate::audit::Mark;
use crate::deploy::configure;

/// A minute until it is time, and the run.
const NEXT_RUN: Duration = Duration::from_secs(180);

fn every_minute(name: &str, action: TriggerAction) -> Trigger {
    Trigger {
        name: TriggerName::parse(name).expect("a name"),
        kind: TriggerKind::Schedule(ScheduleTrigger {
            at: Cron::new("* * * * *", Some("Europe/Berlin")).expect("a time"),
            action,
            scope: Scope::Platform,
        }),
    }
}

pub(crate) async fn start_runs(world: Arc<World>) {
    let mut site = Site::new(&world, "wf-cron").await;
    let name = site.platform.name.clone();
    let (database, api) = (format!("{name}-db"), format!("{name}-api"));
    site.platform.apps = vec![
        AppSource::new(&database, Behaviour::ConfigOnly),
        AppSource::new(&api, Behaviour::ConfigOnly).depends_on(&[&database]),
    ];
    site.platform.carries_its_file = true;
    site.platform.triggers = vec![
        every_minute("often", TriggerAction::Deploy),
        every_minute("watch", TriggerAction::Validate),
    ];
    site.commit("two apps");
    install_chart().await;
    configure(&world, &site.platform_file()).await;
    let (code, stdout, stderr) = said(&world, &["deploy", "--platform", &name]).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");

    // Both of them, in the order of the graph.
    let before = Mark::now(&world);
    for app in &mut site.platform.apps {
        app.generation += 1;
    }
    let commit = site.commit("news").to_string();
    let known = workflows(&site, None).await;
    until_within(NEXT_RUN, "both schedules have started a run that succeeded", async || {
        let all = workflows(&site, Some("Succeeded")).await;
        let of = |trigger: &str| {
            let start = format!("{name}-{trigger}-");
            all.difference(&known).any(|workflow| workflow.starts_with(&start))
        };
        of("often") && of("watch")
    })
    .await;
    before.writes(&site).check_order(&site, &commit);

    // A pause counts for them, too.
    let (code, _, stderr) = said(&world, &["pause", &name, "--reason", "audit"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    until("no run is left from before", async || {
        let ended = ["Succeeded", "Failed", "Error"];
        labelled(&site, "Workflow").await.iter().all(|(_, data)| {
            data["status"]["phase"].as_str().is_some_and(|phase| ended.contains(&phase))
        })
    })
    .await;
    let before = Mark::now(&world);
    for app in &mut site.platform.apps {
        app.generation += 1;
    }
    site.commit("while it is paused");
    let known = workflows(&site, None).await;
    until_within(NEXT_RUN, "the schedule has started a run", async || {
        let all = workflows(&site, Some("Succeeded")).await;
        let mut new = all.difference(&known);
        new.any(|workflow| workflow.starts_with(&format!("{name}-often-")))
    })
    .await;
    assert!(before.writes(&site).operations().is_empty(), "nothing is synced");
    let file = site.platform_file();
    let (_, status, stderr) = said(&world, &["status", "-f", file.path()]).await;
    assert!(status.contains("automatic deployments: paused by "), "{status}{stderr}");
    assert!(status.contains("schedule often: deploy, next at "), "{status}");
    assert!(status.contains("schedule watch: validate, next at "), "{status}");

    // What the file has no more ends, and what is left goes with the platform.
    site.platform.triggers.remove(0);
    site.commit("no deployments by schedule");
    let file = site.platform_file();
    let (_, dry, stderr) = said(&world, &["configure", "-f", file.path(), "--dry-run"]).await;
    assert!(
        dry.contains(&format!("removed CronWorkflow {name}-often-")) || removed(&dry),
        "{dry}{stderr}"
    );
    assert_eq!(cron_workflows(&site).await.len(), 2, "a dry run changes nothing");
    configure(&world, &file).await;
    assert_eq!(cron_workflows(&site).await.len(), 1);
    let (code, stdout, stderr) = said(&world, &["teardown", "-f", file.path(), "--yes"]).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(cron_workflows(&site).await, BTreeSet::new());
    site.close().await;
}

fn removed(table: &str) -> bool {
    let mut lines = table.lines();
    lines.any(|line| line.trim_start().starts_with("removed") && line.contains("CronWorkflow"))
}

/// The workflows of the platform; those in one phase, if it is given.
async fn workflows(site: &Site, phase: Option<&str>) -> BTreeSet<String> {
    let found = labelled(site, "Workflow").await.into_iter();
    let wanted =
        found.filter(|(_, data)| phase.is_none_or(|phase| data["status"]["phase"] == phase));
    wanted.map(|(name, _)| name).collect()
}

async fn cron_workflows(site: &Site) -> BTreeSet<String> {
    labelled(site, "CronWorkflow").await.into_iter().map(|(name, _)| name).collect()
}

async fn labelled(site: &Site, kind: &str) -> Vec<(String, Value)> {
    let objects = site.objects("argoproj.io/v1alpha1", kind, Some("tiphys"));
    let labels = format!("tiphys.dev/platform={}", site.platform.name);
    let listed = objects.list(&ListParams::default().labels(&labels)).await.expect("a list");
    listed.into_iter().map(|object| (object.name_any(), object.data)).collect()
}
