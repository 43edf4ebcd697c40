//! What `tiphys configure` says before it has a cluster. What it does to one is shown on the lab.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

mod common;

use std::collections::BTreeMap;
use std::fs;

use crate::common::{Ran, compare, folder, tiphys};

const PLATFORM: &str = "\
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: prod }
spec:
  source: { repoURL: https://git.example/platform.git, targetRevision: main, path: root }
  stacks: [{ name: s, apps: [{ name: a }] }]
";

/// Nobody listens there: the port is reserved.
const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
current-context: here
contexts: [{ name: here, context: { cluster: here, user: me } }]
clusters: [{ name: here, cluster: { server: 'https://127.0.0.1:1' } }]
users: [{ name: me, user: { token: t } }]
";

const CASES: [(&str, &str, i32); 8] = [
    ("no-platform", "-f nowhere.yaml --kubeconfig kubeconfig", 3),
    ("no-source", "-f without-source.yaml --kubeconfig kubeconfig", 3),
    ("one-project", "-f one-project.yaml --kubeconfig kubeconfig", 3),
    ("no-kubeconfig", "--kubeconfig nowhere", 3),
    ("broken-kubeconfig", "--kubeconfig platform.yaml", 3),
    ("no-such-context", "--kubeconfig kubeconfig --context there", 3),
    ("unreachable", "--kubeconfig kubeconfig", 6),
    ("unknown-format", "-o yaml", 2),
];

#[test]
fn what_is_missing_is_said_before_anything_is_changed() {
    let here = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(here.path().join(name), text).unwrap();
    write("platform.yaml", PLATFORM);
    let without_source: Vec<&str> = PLATFORM.lines().filter(|l| !l.contains("source")).collect();
    write("without-source.yaml", &without_source.join("\n"));
    let one =
        PLATFORM.replace("  stacks", "  argocd: { project: apps, rootProject: apps }\n  stacks");
    write("one-project.yaml", &one);
    write("kubeconfig", KUBECONFIG);
    let mut transcripts = BTreeMap::new();
    let mut codes = Vec::new();
    for (name, args, code) in CASES {
        let output =
            tiphys(here.path()).arg("configure").args(args.split_whitespace()).output().unwrap();
        let ran = Ran::new(&format!("tiphys configure {args}"), &output);
        codes.push((name, ran.code, Some(code)));
        transcripts.insert(name.to_owned(), ran);
    }
    compare(&folder("configure"), &transcripts);
    codes.retain(|(_, code, documented)| code != documented);
    assert_eq!(codes, []);
}
