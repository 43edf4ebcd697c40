//! Any bytes as a platform file: an answer, never a panic; and what is accepted can be planned.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tiphys_model::{Platform, Scope};
use tiphys_plan::PlanDocument;
use tiphys_spec::{Source, Sources};

/// Between the files of a directory, so that one input can also be several files.
const SEPARATOR: &[u8] = b"\n#FILE\n";

fuzz_target!(|bytes: &[u8]| {
    let files = split(bytes).into_iter().enumerate().map(|(number, bytes)| {
        // Names in byte order, as a directory would give them.
        Source::new(format!("{number:04}.yaml"), bytes.to_vec())
    });
    let Ok(files) = files.collect::<Result<Vec<Source>, _>>() else { return };
    let sources = Sources::new(files);
    match tiphys_spec::platform(&sources) {
        Ok(platform) => check_plans(&platform),
        Err(problems) => {
            let text = tiphys_report::render_diagnostics(&sources, problems);
            assert!(text.contains("problem"), "a refusal without a reason: {text}");
        }
    }
});

fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut files = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(SEPARATOR.len()).position(|window| window == SEPARATOR) {
        files.push(&rest[..at]);
        rest = &rest[at + SEPARATOR.len()..];
    }
    files.push(rest);
    files
}

fn check_plans(platform: &Platform) {
    let first = &platform.apps[0];
    let scopes =
        [Scope::Platform, Scope::Stack(first.stack.clone()), Scope::App(first.name.clone())];
    for scope in scopes {
        let plan = tiphys_plan::plan(platform, &scope).expect("the scope is in the platform");
        for app in plan.graph.apps() {
            for dependency in plan.graph.dependencies(app) {
                assert!(dependency < &app, "{dependency} must start before {app}");
                let (needed, starts) = (plan.app(*dependency), plan.app(app).start);
                assert!(needed.start + needed.typical() <= starts);
            }
        }
        let again = tiphys_plan::plan(platform, &scope).expect("the scope is in the platform");
        assert_eq!(plan, again);
        let json = |plan| serde_json::to_vec(&PlanDocument::new(plan)).expect("plans are JSON");
        assert_eq!(json(&plan), json(&again));
    }
}
