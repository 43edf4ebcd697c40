//! Our own definitions, on objects in every state, as Argo CD runs scripts from `argocd-cm`: without
//! open libs.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest, Sha256};
use tiphys_health::{Decider, Evaluator, GroupKind, Limits, Lookup, Tree, definitions};

fn tree() -> Tree {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("definitions");
    Tree::read(&root, false).expect("the definitions are readable")
}

#[test]
fn every_case_agrees() {
    let report = tree().test(&mut Evaluator::new(Limits::default())).expect("readable cases");
    assert!(report.agrees(), "{:#?}", report.differences);
    assert_eq!(report.untested, Vec::<String>::new());
    assert!(report.cases >= 100, "{} cases", report.cases);
}

#[test]
fn each_definition_has_cases_of_at_least_three_states() {
    for (kind, _) in tree().scripts {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("definitions").join(&kind);
        let cases = std::fs::read_to_string(root.join("health_test.yaml")).expect("readable");
        let tested = ["Healthy", "Progressing", "Degraded"]
            .iter()
            .filter(|state| cases.contains(&format!("status: {state}\n")))
            .count();
        assert_eq!(tested, 3, "{kind}");
        // An object that nobody refers to tests nothing.
        for entry in std::fs::read_dir(root.join("testdata")).expect("readable") {
            let name = entry.expect("readable").file_name();
            let name = name.to_string_lossy();
            assert!(cases.contains(&format!("testdata/{name}")), "{kind}: {name} has no case");
        }
    }
}

#[test]
fn the_bundled_ones_are_those_of_the_directory() {
    let bundled: Vec<(String, String)> = definitions()
        .into_iter()
        .map(|definition| (definition.kind.to_string(), definition.script.text.to_string()))
        .collect();
    let found: Vec<(String, String)> =
        tree().scripts.into_iter().map(|(kind, script)| (kind, script.text.to_string())).collect();
    assert_eq!(bundled, found);
}

#[test]
fn keys_are_as_argo_cd_wants_them() {
    let keys: Vec<String> = definitions().iter().map(|one| one.kind.config_key()).collect();
    assert!(keys.contains(&"ceph.rook.io_CephCluster".to_owned()), "{keys:?}");
}

#[test]
fn they_win_over_what_is_built_in() {
    let overrides = definitions().into_iter().map(|one| (one.kind.to_string(), one.script));
    let lookup = Lookup { overrides: overrides.collect(), built_in: tree().scripts };
    let kind = |group: &str, kind: &str| GroupKind { group: group.into(), kind: kind.into() };
    let kafka = kind("kafka.strimzi.io", "Kafka");
    assert!(matches!(lookup.decider(&kafka), Decider::Override(_)));
    assert!(matches!(lookup.decider(&kind("apps", "Deployment")), Decider::ArgoCd));
    assert!(matches!(lookup.decider(&kind("", "ConfigMap")), Decider::Nobody));
    let built_in = Lookup { built_in: tree().scripts, ..Lookup::default() };
    assert!(matches!(built_in.decider(&kafka), Decider::BuiltIn(_)));
}

/// Plans count on them, so a plan knows their hash. It is the one of
/// `{"GROUP/KIND": "SCRIPT", …}`, sorted, without white space.
#[test]
fn plans_know_these_definitions() {
    let scripts: BTreeMap<String, String> = definitions()
        .into_iter()
        .map(|definition| (definition.kind.to_string(), definition.script.text.to_string()))
        .collect();
    let text = serde_json::to_string(&scripts).expect("texts are JSON");
    let hash: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    let known = tiphys_plan::HEALTH_DEFINITIONS;
    assert_eq!(known, format!("sha256:{hash}"), "change it in crates/plan/src/definitions.rs");
}
