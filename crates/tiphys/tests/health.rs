//! What `tiphys health` and `tiphys health test` print, and how they end.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

mod common;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::common::{Ran, compare, folder, tiphys};

/// Name, arguments and exit code. They run in `tests/health/input`.
const CASES: [(&str, &str, i32); 21] = [
    ("healthy", "health ceph.yaml", 0),
    ("explain", "health ceph.yaml --explain", 0),
    ("json", "health ceph.yaml --explain -o json", 0),
    ("several", "health several.yaml", 0),
    ("several-json", "health several.yaml -o json", 0),
    ("explain-nobody", "health several.yaml --explain", 0),
    ("argocd-cm", "health several.yaml --argocd-cm argocd-cm.yaml --explain", 1),
    ("built-in", "health widget.yaml --built-in tree --explain", 0),
    ("cm-before-built-in", "health widget.yaml --argocd-cm argocd-cm.yaml --built-in tree", 0),
    ("absent", "health absent.yaml", 3),
    ("not-yaml", "health not-yaml.yaml", 3),
    ("no-object", "health no-object.yaml", 3),
    ("no-config-map", "health ceph.yaml --argocd-cm ceph.yaml", 3),
    ("no-scripts", "health ceph.yaml --built-in absent", 3),
    ("usage", "health", 2),
    ("help-test", "health test --help", 0),
    ("test", "health test tree", 1),
    ("test-json", "health test tree -o json", 1),
    ("test-agrees", "health test tree/acme.org/Widget", 0),
    ("test-absent", "health test absent", 3),
    ("test-unreadable", "health test broken", 3),
];

#[test]
fn verdicts_and_cases_print_and_exit_as_before() {
    let folder = folder("health");
    let input = folder.join("input");
    let mut transcripts = BTreeMap::new();
    let mut codes = Vec::new();
    for (name, args, code) in CASES {
        let output = tiphys(&input).args(args.split_whitespace()).output().unwrap();
        let ran = Ran::new(&format!("tiphys {args}"), &output);
        codes.push((name, ran.code, Some(code)));
        transcripts.insert(name.to_owned(), ran);
    }
    transcripts.insert(
        "stdin".to_owned(),
        from_stdin(
            &input,
            "{apiVersion: apps/v1, \
        kind: Deployment, metadata: {name: web}}",
        ),
    );
    transcripts.insert("stdin-empty".to_owned(), from_stdin(&input, ""));
    compare(&folder, &transcripts);
    codes.retain(|(_, code, documented)| code != documented);
    assert_eq!(codes, []);
}

fn from_stdin(directory: &Path, text: &str) -> Ran {
    let mut command = tiphys(directory);
    command.args(["health", "-"]).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    Ran::new("tiphys health -", &child.wait_with_output().unwrap())
}
