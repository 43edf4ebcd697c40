//! The accounts of runs can hold a project, and change nothing else of it.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tiphys_e2e::inventory::difference;
use tiphys_e2e::objects::objects;
use tiphys_e2e::{Ground, figure, tiphys};

use crate::start::{Start, look};

const WAIT: Duration = Duration::from_millis(300);

pub(crate) async fn keeps_projects_as_they_are(ground: Arc<Ground>) {
    let start = Start::reference(&ground, "boot").await;
    let before = look(&ground).await;
    start.run(&ground, &["bootstrap", "--no-run"], 0).await;
    let project = start.platform.project.as_str();
    let freeze = json!({
        "kind": "deny", "schedule": "0 0 1 1 *", "duration": "1h", "applications": ["*"],
        "manualSync": true, "description": "new year",
    });
    let frozen = json!({ "spec": { "syncWindows": [freeze] } });
    let admin = projects(&ground.client);
    admin.patch(project, &PatchParams::default(), &Patch::Merge(&frozen)).await.expect("a window");

    for (namespace, what) in [("tiphys", "deploy"), ("tiphys-teardown", "teardown")] {
        let account = format!("tiphys.argocd.{}.{what}", start.platform.name);
        let projects = projects(&client_of(&ground, namespace, &account).await);
        let refused = |change: Value| refused(&projects, project, change);
        refused(json!({ "spec": { "sourceRepos": ["https://git.example/theirs.git"] } })).await;
        refused(json!({ "spec": { "destinations": [] } })).await;
        refused(json!({ "metadata": { "annotations": { "a": "b" } } })).await;
        refused(json!({ "status": { "jwtTokensByRole": {} } })).await;
        let hold = json!({
            "kind": "deny", "schedule": "* * * * *", "duration": "24h", "manualSync": true,
            "applications": ["none"], "description": "tiphys hold run-1",
        });
        // In the place of the other window, and beside it.
        refused(json!({ "spec": { "syncWindows": [hold] } })).await;
        accepted(&projects, project, json!([freeze, hold])).await;
        refused(json!({ "spec": { "syncWindows": null } })).await;
        accepted(&projects, project, json!([freeze])).await;
        figure(&format!("{account}: the hold was set and taken away, all else was refused"));
    }
    // Nobody else is concerned.
    let open =
        json!({ "spec": { "syncWindows": null }, "metadata": { "annotations": { "a": "b" } } });
    admin.patch(project, &PatchParams::default(), &Patch::Merge(&open)).await.expect("a change");
    start.run(&ground, &["teardown", "--yes"], 0).await;
    assert_eq!(difference(&before, &look(&ground).await), Vec::<String>::new());
}

fn projects(client: &Client) -> Api<DynamicObject> {
    objects(client, "argoproj.io/v1alpha1", "AppProject", Some("argocd"))
}

/// The administrator acting as a ServiceAccount.
async fn client_of(ground: &Ground, namespace: &str, account: &str) -> Client {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kubeconfig");
    let of_namespace = format!("system:serviceaccounts:{namespace}");
    let groups = ["system:serviceaccounts", &of_namespace, "system:authenticated"];
    let user = format!("system:serviceaccount:{namespace}:{account}");
    tiphys::act_as(&ground.kubeconfig, &user, &groups, &file);
    let kubeconfig = Kubeconfig::read_from(&file).expect("the kubeconfig can be read");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("the kubeconfig is good")).expect("a client")
}

/// Tried out only. A policy counts a little later than it is written.
async fn refused(projects: &Api<DynamicObject>, project: &str, change: Value) {
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    for _ in 0..100 {
        match projects.patch(project, &dry, &Patch::Merge(&change)).await {
            Err(kube::Error::Api(status)) => {
                assert_eq!(status.code, 403, "{change}: {status:?}");
                assert!(
                    status.message.contains("may only change sync windows called"),
                    "{status:?}"
                );
                return;
            }
            Err(error) => unreachable!("{change}: {error}"),
            Ok(_) => tokio::time::sleep(WAIT).await,
        }
    }
    unreachable!("it may be changed: {change}")
}

async fn accepted(projects: &Api<DynamicObject>, project: &str, windows: Value) {
    let change = json!({ "spec": { "syncWindows": windows } });
    let changed = projects.patch(project, &PatchParams::default(), &Patch::Merge(&change)).await;
    let changed = changed.unwrap_or_else(|error| unreachable!("{change}: {error}"));
    assert_eq!(changed.data["spec"]["syncWindows"], windows);
}
