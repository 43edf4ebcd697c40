//! Platforms that are validated when objects change.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use tiphys_e2e::{Site, World, figure, until_within};
use tiphys_model::{DeployMode, Label, ResourceTrigger, Scope, Trigger, TriggerKind, TriggerName};

use super::automatic::{take_down, two_apps};
use super::webhooks::{START, are_ready, bus_of_somebody_else, objects, remove_bus};
use super::{install_chart, said};
use crate::deploy::configure;

/// The loop looks every few seconds, and rests for a minute after a validation.
const LATEST: Duration = Duration::from_secs(150);
/// ConfigMaps: one has the label, the other has not.
const WATCHED: &str = "wf-change-watched";
const OTHER: &str = "wf-change-other";

pub(crate) async fn have_platforms_validated(world: Arc<World>) {
    bus_of_somebody_else(&world).await;
    let mut site = two_apps(&world, "wf-change").await;
    let name = site.platform.name.clone();
    // A platform that only people deploy.
    site.platform.deploy = DeployMode::Manual;
    site.platform.triggers = vec![Trigger {
        name: TriggerName::parse("settings").expect("a name"),
        kind: TriggerKind::Resource(ResourceTrigger {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            label: Label::parse(&format!("team={name}")).expect("a label"),
            scope: Scope::Platform,
        }),
    }];
    site.commit("two apps, and a trigger");
    configure(&world, &site.platform_file()).await;
    install_chart().await;
    let (code, stdout, stderr) = said(&world, &["deploy", "--platform", &name]).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    are_ready(&site, 2).await;

    // The first changes may come before anybody listens.
    until_within(START, "a change is followed by a validation", async || {
        change(&site, WATCHED, &name).await;
        !validations(&site, None).await.is_empty()
    })
    .await;
    until_within(LATEST, "the platform is healthy", async || {
        !validations(&site, Some("Succeeded")).await.is_empty()
    })
    .await;
    let file = site.platform_file();
    let (_, status, stderr) = said(&world, &["status", "-f", file.path()]).await;
    assert!(status.contains("trigger settings: validated after a change at "), "{status}{stderr}");

    // Of a burst, the last change counts; what has another label does not.
    tokio::time::sleep(LATEST).await;
    let known = validations(&site, None).await;
    change(&site, OTHER, "another").await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(validations(&site, None).await, known, "it has another label");
    for _ in 0..20 {
        change(&site, WATCHED, &name).await;
    }
    tokio::time::sleep(LATEST).await;
    let new = validations(&site, None).await.difference(&known).count();
    figure(&format!("20 changes: {new} validations"));
    assert!((1..=2).contains(&new), "{new}");

    take_down(&site).await;
    assert_eq!(objects(&site).await, BTreeSet::new());
    let maps = site.objects("v1", "ConfigMap", Some("default"));
    for name in [WATCHED, OTHER] {
        maps.delete(name, &DeleteParams::default()).await.expect("deleted");
    }
    remove_bus(&site).await;
    site.close().await;
}

async fn change(site: &Site, name: &str, team: &str) {
    site.apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default", "labels": { "team": team } },
        "data": { "changed": Timestamp::now().to_string() },
    }))
    .await;
}

/// The workflows that validate the platform; those in one phase, if it is given.
async fn validations(site: &Site, phase: Option<&str>) -> BTreeSet<String> {
    let workflows = site.objects("argoproj.io/v1alpha1", "Workflow", Some("tiphys"));
    let labels = format!("tiphys.dev/platform={}", site.platform.name);
    let listed = workflows.list(&ListParams::default().labels(&labels)).await.expect("a list");
    let wanted = listed.into_iter().filter(|workflow| {
        let is_validation = workflow.name_any().starts_with("tiphys-validate-");
        is_validation && phase.is_none_or(|phase| workflow.data["status"]["phase"] == phase)
    });
    wanted.map(|workflow| workflow.name_any()).collect()
}
