//! Argo CD's own cases for its own health scripts, from the modules that the lab is built from:
//! `cargo test -p tiphys-e2e --test upstream`. It needs Go, and no cluster.

use tiphys_e2e::figure;
use tiphys_health::{Evaluator, Limits, Tree};
use tiphys_lab::ArgoCdVersion;

/// Script and object on which we and Argo CD disagree, and why. One that is listed here and agrees
/// does not belong here any more.
const DIFFERENCES: [(&str, &str, &str); 0] = [];

#[test]
fn every_case_of_argo_cd_3_2_agrees() {
    compare(ArgoCdVersion::V3_2);
}

#[test]
fn every_case_of_argo_cd_3_5_agrees() {
    compare(ArgoCdVersion::V3_5);
}

fn compare(version: ArgoCdVersion) {
    let source = tiphys_lab::argocd_source(version).expect("Go knows where Argo CD's source is");
    let tree = Tree::read(&source.join("resource_customizations"), true).expect("its scripts");
    let report = tree.test(&mut Evaluator::new(Limits::default())).expect("its cases");
    let listed = |script: &str, input: &str| {
        DIFFERENCES.iter().any(|(other, object, _)| (*other, *object) == (script, input))
    };
    let unlisted: Vec<_> = report
        .differences
        .iter()
        .filter(|difference| !listed(&difference.script, &difference.input))
        .collect();
    assert!(unlisted.is_empty(), "{unlisted:#?}");
    for (script, input, why) in DIFFERENCES {
        let differs = |difference: &tiphys_health::CaseReport| {
            (&*difference.script, &*difference.input) == (script, input)
        };
        assert!(report.differences.iter().any(differs), "{script} {input} agrees: {why}");
    }
    assert!(report.scripts > 200 && report.cases > 1000, "{} cases", report.cases);
    figure(&format!(
        "{} cases of {} scripts of Argo CD {version} agree",
        report.cases, report.scripts
    ));
}
