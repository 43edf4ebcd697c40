//! The files of a run for pipelines.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

use serde_json::{Value, json};
use tiphys_model::Exit;
use tiphys_report::{Outcomes, OutcomesJunit, OutcomesMarkdown};
use tiphys_run::RunView;

/// A run in which one app of each end is found.
fn view() -> RunView {
    let app = |name: &str| json!({ "app": name, "stack": "s", "layer": 0, "dependsOn": [], "typicalSeconds": 60 });
    let events = [
        json!({
            "kind": "run-started", "run": "r", "action": "deploy", "engine": "local",
            "platform": "demo", "scope": "platform", "plan": format!("sha256:{}", "0".repeat(64)),
            "graph": [app("base"), app("db"), app("web"), app("late")],
        }),
        json!({ "kind": "step-syncing", "app": "base", "attempt": 1 }),
        json!({ "kind": "step-done", "app": "base", "how": "applied", "tookMs": 61_500 }),
        json!({
            "kind": "step-failed", "app": "db", "state": "timed-out",
            "cause": "it is Degraded: a <b> | `c`", "hint": "fix db in Git", "evidence": {},
        }),
        json!({
            "kind": "step-skipped", "app": "web", "because": ["db"], "reason": "is Degraded",
        }),
        json!({ "kind": "step-syncing", "app": "late", "attempt": 1 }),
        json!({
            "kind": "run-finished", "verdict": "failed", "exit": 1, "makespanMs": 90_000,
            "criticalPathMs": 80_000, "counts": {
                "applied": 1, "alreadyCurrent": 0, "removed": 0, "failed": 0, "errored": 0,
                "timedOut": 1, "skipped": 1, "unhealthy": 0, "unfinished": 1,
            },
        }),
    ];
    let mut view = RunView::default();
    for (seq, mut event) in events.into_iter().enumerate() {
        event["seq"] = json!(seq);
        event["at"] = json!("2026-11-16T00:00:00Z");
        event["elapsedMs"] = Value::from(1000 * seq);
        view.fold(&serde_json::from_value(event).unwrap());
    }
    view
}

#[test]
fn each_app_is_a_test_case_and_a_row() {
    let outcomes = Outcomes::of_run(&view()).unwrap();
    insta::assert_snapshot!("outcomes_junit", OutcomesJunit(&outcomes).to_string());
    insta::assert_snapshot!("outcomes_markdown", OutcomesMarkdown(&outcomes).to_string());
}

#[test]
fn what_fails_before_a_run_is_a_test_case() {
    assert_eq!(Outcomes::of_run(&RunView::default()), None);
    let failed = Outcomes::failed("deploy", Exit::Unreachable, "error: cannot reach it\n");
    let junit = OutcomesJunit(&failed).to_string();
    assert!(junit.contains(r#"tests="1" failures="1""#), "{junit}");
    assert!(junit.contains("exit 6: error: cannot reach it"), "{junit}");
}
