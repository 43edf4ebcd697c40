//! What actions say that have no cluster to act on. What they do to one is shown on the lab.

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

/// What cannot be reached is at the reserved port as well, so that nothing is asked on the web.
const BOOTSTRAP: &str = "\
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: prod }
spec:
  source: { repoURL: 'https://me:secret@127.0.0.1:1/platform.git', targetRevision: main, path: root }
  bootstrap:
    argocd:
      version: 3.2.6
      manifests:
        sha256: '0000000000000000000000000000000000000000000000000000000000000000'
        path: argocd.yaml
    images: [{ from: quay.io, to: '127.0.0.1:1/mirror' }]
    endpoints: { charts: ['https://127.0.0.1:1/charts'] }
  stacks: [{ name: s, apps: [{ name: a }] }]
";

/// What is pinned below, in small.
const MANIFESTS: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: applications.argoproj.io }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: argocd-server }
spec:
  template:
    spec:
      containers: [{ name: argocd-server, image: 'quay.io/argoproj/argocd:v3.2.6' }]
";
const CHECKSUM: &str = "6356b73f40c937cd6005466a21d35c90abfabb58190f9d44444d58c4513bb173";

const CASES: [(&str, &str, i32); 64] = [
    ("bootstrap-absent-manifests", "bootstrap -f absent.yaml --kubeconfig kubeconfig", 3),
    ("bootstrap-no-pins", "bootstrap --kubeconfig kubeconfig", 3),
    ("bootstrap-other-checksum", "bootstrap -f bootstrap.yaml --kubeconfig kubeconfig", 3),
    ("bootstrap-render", "bootstrap -f pinned.yaml --render", 0),
    ("bootstrap-render-and-adopt", "bootstrap -f pinned.yaml --render --adopt", 2),
    ("bootstrap-render-json", "bootstrap -f pinned.yaml --render -o json", 0),
    ("bootstrap-unreachable", "bootstrap -f pinned.yaml --kubeconfig kubeconfig", 6),
    ("configure-no-platform", "configure -f nowhere.yaml --kubeconfig kubeconfig", 3),
    ("configure-one-project", "configure -f one-project.yaml --kubeconfig kubeconfig", 3),
    ("configure-no-kubeconfig", "configure --kubeconfig nowhere", 3),
    ("configure-broken-kubeconfig", "configure --kubeconfig platform.yaml", 3),
    ("configure-no-such-context", "configure --kubeconfig kubeconfig --context there", 3),
    ("configure-unreachable", "configure --kubeconfig kubeconfig", 6),
    ("configure-unknown-format", "configure -o yaml", 2),
    ("deploy-no-platform", "deploy -f nowhere.yaml --kubeconfig kubeconfig", 3),
    ("deploy-no-kubeconfig", "deploy --kubeconfig nowhere", 3),
    ("deploy-no-such-context", "deploy --kubeconfig kubeconfig --context there", 3),
    ("deploy-unreachable", "deploy --kubeconfig kubeconfig", 6),
    ("deploy-another-plan", "deploy --kubeconfig kubeconfig --plan 0123456789ab", 3),
    ("deploy-unknown-scope", "deploy --kubeconfig kubeconfig --scope app:b", 5),
    (
        "deploy-unknown-scope-of-pins",
        "deploy -f pinned.yaml --kubeconfig kubeconfig --scope app:b",
        5,
    ),
    ("deploy-bad-timeout", "deploy --kubeconfig kubeconfig --timeout soon", 2),
    ("deploy-dry-run-unreachable", "deploy --dry-run --kubeconfig kubeconfig", 6),
    ("deploy-events-nowhere", "deploy --kubeconfig kubeconfig --events nowhere/events", 3),
    ("deploy-events-folder", "deploy -f pinned.yaml --kubeconfig kubeconfig --events .", 3),
    ("deploy-events-unreachable", "deploy --kubeconfig kubeconfig --events /dev/full", 6),
    ("validate-no-platform", "validate -f nowhere.yaml --kubeconfig kubeconfig", 3),
    ("validate-no-kubeconfig", "validate --kubeconfig nowhere", 3),
    ("validate-no-such-scope", "validate --kubeconfig kubeconfig --scope stack:t", 5),
    ("preflight-no-platform", "preflight -f nowhere.yaml", 3),
    ("preflight-no-kubeconfig", "preflight -f bootstrap.yaml --kubeconfig nowhere", 3),
    ("preflight-unreachable", "preflight -f bootstrap.yaml --kubeconfig kubeconfig", 6),
    ("preflight-strict", "preflight --strict -f bootstrap.yaml --kubeconfig kubeconfig", 6),
    ("preflight-json", "preflight -o json -f bootstrap.yaml --kubeconfig kubeconfig", 6),
    ("preflight-junit", "preflight -o junit -f bootstrap.yaml --kubeconfig kubeconfig", 6),
    ("preflight-unknown-format", "preflight -o yaml", 2),
    ("rotate-unreachable", "rotate-credentials --kubeconfig kubeconfig", 6),
    ("preflight-no-plugin", "preflight -f bootstrap.yaml --kubeconfig no-plugin", 3),
    ("preflight-all", "preflight --all -f bootstrap.yaml --kubeconfig kubeconfig", 6),
    ("status-no-plugin", "status --kubeconfig no-plugin", 3),
    ("status-broken-plugin", "status --kubeconfig broken-plugin", 4),
    ("status-broken-kubeconfig", "status --kubeconfig broken", 3),
    ("status-no-such-cluster", "status --kubeconfig no-cluster", 3),
    ("status-no-context", "status --kubeconfig no-context", 3),
    ("status-unknown-host", "status --kubeconfig unknown-host", 6),
    ("deploy-reports", "deploy --kubeconfig kubeconfig --junit a.xml --summary a.md", 6),
    ("deploy-junit-nowhere", "deploy --kubeconfig kubeconfig --junit nowhere/junit.xml", 3),
    ("validate-summary-folder", "validate --kubeconfig kubeconfig --summary .", 3),
    ("deploy-from-stdin", "deploy -f - --kubeconfig kubeconfig", 6),
    (
        "teardown-several-scopes",
        "teardown --yes --scope app:a --scope app:c* --kubeconfig kubeconfig",
        6,
    ),
    ("status-no-such-context", "status --kubeconfig kubeconfig --context there", 3),
    ("status-unknown-format", "status -o yaml", 2),
    ("status-unreachable", "status --kubeconfig kubeconfig", 6),
    ("teardown-no-platform", "teardown --yes -f nowhere.yaml --kubeconfig kubeconfig", 3),
    ("teardown-no-kubeconfig", "teardown --yes --kubeconfig nowhere", 3),
    ("teardown-no-such-context", "teardown --yes --kubeconfig kubeconfig --context there", 3),
    ("teardown-unreachable", "teardown --dry-run --kubeconfig kubeconfig", 6),
    (
        "teardown-events-nowhere",
        "teardown --yes --kubeconfig kubeconfig --events nowhere/events",
        3,
    ),
    ("teardown-nobody-to-ask", "teardown --kubeconfig kubeconfig", 2),
    ("teardown-force-what", "teardown --force-finalizer main --kubeconfig kubeconfig", 2),
    ("teardown-unknown-format", "teardown -o json", 2),
    ("why-no-such-app", "why b -f platform.yaml --kubeconfig kubeconfig", 5),
    ("why-no-app", "why --kubeconfig kubeconfig", 2),
    ("why-unreachable", "why a --kubeconfig kubeconfig", 6),
];

#[test]
fn what_is_missing_is_said_before_anything_is_changed() {
    let here = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(here.path().join(name), text).unwrap();
    write("platform.yaml", PLATFORM);
    let one =
        PLATFORM.replace("  stacks", "  argocd: { project: apps, rootProject: apps }\n  stacks");
    write("one-project.yaml", &one);
    write("kubeconfig", KUBECONFIG);
    let plugin = |command: &str| {
        let exec = "exec: { apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never";
        KUBECONFIG.replace("token: t", &format!("{exec}, command: {command} }}"))
    };
    write("no-plugin", &plugin("gke-gcloud-auth-plugin"));
    write("broken-plugin", &plugin("/bin/false"));
    write("broken", "contexts: [");
    write("no-cluster", &KUBECONFIG.replace("clusters: [{ name: here", "clusters: [{ name: other"));
    write("no-context", &KUBECONFIG.replace("current-context: here\n", ""));
    write("unknown-host", &KUBECONFIG.replace("127.0.0.1:1", "nowhere.invalid:6443"));
    write("bootstrap.yaml", BOOTSTRAP);
    write("argocd.yaml", MANIFESTS);
    write("absent.yaml", &BOOTSTRAP.replace("argocd.yaml", "absent/argocd.yaml"));
    write("pinned.yaml", &BOOTSTRAP.replace(&"0".repeat(64), CHECKSUM));
    let mut transcripts = BTreeMap::new();
    let mut codes = Vec::new();
    for (name, args, code) in CASES {
        let mut command = tiphys(here.path());
        // Which programs this machine has must not matter.
        let stdin = fs::File::open(here.path().join("platform.yaml")).unwrap();
        command.env("PATH", "nowhere").args(args.split_whitespace()).stdin(stdin);
        let output = command.output().unwrap();
        let ran = Ran::new(&format!("tiphys {args}"), &output);
        codes.push((name, ran.code, Some(code)));
        transcripts.insert(name.to_owned(), ran);
    }
    let written = |name: &str| fs::read_to_string(here.path().join(name)).unwrap();
    assert!(written("a.xml").contains("exit 6: error: cannot reach the cluster"));
    assert!(written("a.md").starts_with("## deploy: failed\n"));
    compare(&folder("without_cluster"), &transcripts);
    codes.retain(|(_, code, documented)| code != documented);
    assert_eq!(codes, []);
}
