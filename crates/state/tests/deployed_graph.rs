//! What the deployed graph keeps is all that `status`, `why` and `teardown` read of a platform.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

#[path = "../../plan/tests/common/mod.rs"]
mod common;

use proptest::prelude::*;
use tiphys_model::platform::Allowed;
use tiphys_model::{Plan, Platform, Scope};
use tiphys_state::DeployedGraph;

use common::scoped_platforms;

fn plan(platform: &Platform, scope: &Scope) -> Plan {
    tiphys_plan::plan(platform, scope).expect("the scope is in the platform")
}

/// A run that completes.
fn deploy(graph: &mut DeployedGraph, platform: &Platform, scope: &Scope) {
    let plan = plan(platform, scope);
    graph.plan(platform, &plan, None);
    for app in plan.graph.apps() {
        graph.done(&plan, app);
    }
}

/// As another process finds it.
fn read_back(graph: &DeployedGraph) -> DeployedGraph {
    let text = serde_json::to_string(graph).expect("it can be written");
    serde_json::from_str(&text).expect("it can be read")
}

fn restored(graph: &DeployedGraph, platform: &Platform) -> Platform {
    graph.platform(&platform.name, &platform.argocd.namespace).expect("it is a platform")
}

proptest! {
    #[test]
    fn a_platform_is_the_same_from_its_file_and_from_its_deployed_graph(
        (platform, scope) in scoped_platforms(),
    ) {
        let mut graph = DeployedGraph::new(&platform, None);
        deploy(&mut graph, &platform, &Scope::Platform);
        let restored = restored(&read_back(&graph), &platform);
        // Where the platform comes from, and what its project allows, is nothing that it is asked
        // about.
        let mut expected = Platform { source: None, bootstrap: None, ..platform.clone() };
        expected.argocd.allowed = Allowed::default();
        if let Some(environment) = &mut expected.environment {
            environment.domain = None;
        }
        prop_assert_eq!(&restored, &expected);
        prop_assert_eq!(plan(&restored, &scope).digest, plan(&platform, &scope).digest);
        prop_assert!(graph.without_criteria().is_empty());
    }

    #[test]
    fn a_run_over_a_part_of_a_platform_changes_nothing_in_the_graph_of_the_whole(
        (platform, scope) in scoped_platforms(),
    ) {
        let mut graph = DeployedGraph::new(&platform, None);
        deploy(&mut graph, &platform, &Scope::Platform);
        let before = graph.clone();
        deploy(&mut graph, &platform, &scope);
        prop_assert_eq!(restored(&graph, &platform), restored(&before, &platform));
    }

    #[test]
    fn a_run_over_a_part_of_a_new_platform_leaves_a_graph_that_can_be_used(
        (platform, scope) in scoped_platforms(),
    ) {
        let mut graph = DeployedGraph::new(&platform, None);
        deploy(&mut graph, &platform, &scope);
        let scoped = plan(&platform, &scope);
        let deployed = scoped.apps.iter().filter(|app| app.role == tiphys_model::Role::Act);
        prop_assert_eq!(restored(&graph, &platform).apps.len(), deployed.count());
    }
}

#[test]
fn whether_an_app_of_an_older_tiphys_has_criteria_is_unknown() {
    let old = serde_json::json!({
        "settings": {
            "project": "platform", "rootProject": "platform-root", "throughFields": false,
            "alwaysHeld": false, "concurrency": 16, "groups": {}, "timeoutSeconds": 60,
        },
        "apps": { "vault": {
            "stack": "security", "syncSeconds": 60, "healthSeconds": 60, "typicalSeconds": 60,
            "done": [], "planned": [],
        } },
        "before": null,
    });
    let graph: DeployedGraph = serde_json::from_value(old).expect("it can be read");
    assert_eq!(graph.without_criteria(), ["vault".to_owned()].into());
}
