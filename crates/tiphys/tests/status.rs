//! What `tiphys validate`, `status` and `why` say before they have a cluster. What they say of
//! one is shown on the lab.

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
  stacks: [{ name: data, apps: [{ name: vault }] }]
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

const CASES: [(&str, &str, i32); 9] = [
    ("no-platform", "validate -f nowhere.yaml --kubeconfig kubeconfig", 3),
    ("no-kubeconfig", "validate --kubeconfig nowhere", 3),
    ("no-such-context", "status --kubeconfig kubeconfig --context there", 3),
    ("no-such-scope", "validate --kubeconfig kubeconfig --scope stack:date", 5),
    ("no-such-app", "why vaul --kubeconfig kubeconfig", 5),
    ("no-app", "why --kubeconfig kubeconfig", 2),
    ("unknown-format", "status -o yaml", 2),
    ("unreachable", "status --kubeconfig kubeconfig", 6),
    ("unreachable-why", "why vault --kubeconfig kubeconfig", 6),
];

#[test]
fn what_is_missing_is_said() {
    let here = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(here.path().join(name), text).unwrap();
    write("platform.yaml", PLATFORM);
    write("kubeconfig", KUBECONFIG);
    let mut transcripts = BTreeMap::new();
    let mut codes = Vec::new();
    for (name, args, code) in CASES {
        let output = tiphys(here.path()).args(args.split_whitespace()).output().unwrap();
        let ran = Ran::new(&format!("tiphys {args}"), &output);
        codes.push((name, ran.code, Some(code)));
        transcripts.insert(name.to_owned(), ran);
    }
    compare(&folder("status"), &transcripts);
    codes.retain(|(_, code, documented)| code != documented);
    assert_eq!(codes, []);
}
