//! A cluster in which nothing is in the way.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use tiphys_e2e::{Ground, figure};

use crate::setting::{Setting, written_by};

pub(crate) async fn changes_nothing(ground: Arc<Ground>) {
    let mut setting = Setting::new(&ground, "pre-ready");
    // Of an Argo CD that is there somebody else is the owner; all the rest is as it must be.
    let seen = setting.look().await;
    let failed = seen.rows("fail");
    let foreign = BTreeSet::from(["absence Argo CD".to_owned()]);
    assert!(failed.is_subset(&foreign), "{:#}", seen.report);
    assert_eq!(seen.code, Some(if failed.is_empty() { 0 } else { 3 }));
    figure(&format!("preflight took {} ms", seen.took.as_millis()));

    // Without `bootstrap`, Argo CD is meant to be somebody else's.
    setting.bootstrap = None;
    let seen = setting.look().await;
    assert_eq!(seen.code, Some(0), "{:#}", seen.report);
    assert_eq!(seen.report["verdict"], "ready");
    assert_eq!(seen.report["connectivity"][0]["reachable"], "yes");
    assert_eq!(
        seen.report["credentials"][0],
        json!({
            "name": "kubeconfig", "state": "accepted", "canWrite": null, "detail": "accepted",
        })
    );
    let inventory = &seen.report["inventory"];
    let nodes = inventory["nodes"].as_array().expect("nodes");
    assert!(nodes.iter().any(|node| node["ready"] == true), "{inventory:#}");
    let processors = inventory["allocatable"]["cpuMillis"].as_u64();
    assert!(processors.is_some_and(|millis| millis >= 1_000), "{inventory:#}");
    // The key of the lab's Git server can push.
    assert!(seen.rows("warning").contains("credentials git, read only"), "{:#}", seen.report);

    let Some(written) = written_by(&ground, &setting.user) else { return };
    assert!(!written.is_empty(), "whoever asks for rights is seen");
    let asked = |line: &&String| *line != "create selfsubjectaccessreviews";
    assert_eq!(written.iter().filter(asked).collect::<Vec<_>>(), Vec::<&String>::new());
    figure(&format!("{} questions for rights, and no other write", written.len()));
}
