//! The executor, as a container runs it: all that it prints is JSON, and nothing of the environment
//! counts but what is said to.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Nobody listens there.
const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: away
contexts: [{ name: away, context: { cluster: away, user: nobody } }]
clusters: [{ name: away, cluster: { server: \"http://127.0.0.1:1\" } }]
users: [{ name: nobody, user: { token: hunter2 } }]
";

type Variables = BTreeMap<&'static str, String>;

/// What it did: its exit code, and each line without its time.
#[derive(Debug, PartialEq, Eq)]
struct Ran {
    code: Option<i32>,
    lines: Vec<Value>,
}

fn run(words: &[&str], directory: &Path, variables: &Variables) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
    command.args(words).env_clear().envs(variables).current_dir(directory);
    let output = command.output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let line = |line: &str| {
        let mut line: Value = serde_json::from_str(line).expect(&text);
        line.as_object_mut().unwrap().remove("at").unwrap();
        line
    };
    Ran { code: output.status.code(), lines: text.lines().map(line).collect() }
}

/// One call for each way to begin, with its exit code.
fn calls() -> Vec<(&'static [&'static str], Variables, i32)> {
    let kubeconfig = base64(KUBECONFIG);
    let call = |variables: &[(&'static str, &str)], code| {
        let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned()));
        (&["executor"][..], variables.collect::<Variables>(), code)
    };
    let away = ("TIPHYS_KUBECONFIG_BASE64", kubeconfig.as_str());
    let (shop, action) = (("TIPHYS_PLATFORM", "shop"), "TIPHYS_ACTION");
    vec![
        call(&[], 3),
        call(&[(action, "deploy")], 3),
        call(&[(action, "destroy"), shop], 2),
        call(&[(action, "deploy"), ("TIPHYS_PLATFORM", "No")], 2),
        call(&[(action, "deploy"), shop, ("TIPHYS_ENGINE", "steam")], 3),
        call(&[(action, "teardown"), shop, away], 3),
        call(&[(action, "teardown"), shop, ("TIPHYS_CONFIRM", "shop"), away], 6),
        call(&[(action, "deploy"), shop, away], 6),
        call(&[(action, "validate"), shop, away], 6),
        call(&[(action, "deploy"), shop, ("TIPHYS_KUBECONFIG_BASE64", "?")], 3),
        call(&[(action, "deploy"), shop], 3),
        (&["executor", "plugin"], Variables::new(), 3),
        (&["executor", "plugin"], Variables::from([("TIPHYS_PLATFORM", "shop".to_owned())]), 3),
    ]
}

#[test]
fn nothing_else_of_the_environment_counts() {
    let clean = tempfile::tempdir().unwrap();
    let hostile = tempfile::tempdir().unwrap();
    let folder = hostile.path().display().to_string();
    fs::create_dir(hostile.path().join(".kube")).unwrap();
    fs::write(hostile.path().join(".kube/config"), "not a kubeconfig").unwrap();
    fs::write(hostile.path().join("platform.yaml"), "not a platform").unwrap();
    let foreign = [
        ("HOME", &*folder),
        ("PATH", "/nowhere"),
        ("GIT_DIR", "/nowhere"),
        ("GIT_SSH_COMMAND", "false"),
        ("LC_ALL", "tr_TR.UTF-8"),
        ("LANGUAGE", "de"),
        ("TZ", "Asia/Kathmandu"),
        ("CLICOLOR_FORCE", "1"),
        ("TERM", "xterm-256color"),
        ("COLUMNS", "20"),
        ("RUST_LOG", "trace"),
        ("TIPHYS_FILE", "/etc/passwd"),
        ("TIPHYS_TIMEOUT", "soon"),
        ("TIPHYS_JUNIT", "/nowhere/junit.xml"),
        ("TIPHYS_CONTEXT", "nobody"),
        ("TIPHYS_COMPLETE", "bash"),
        ("TIPHYS_LAB_GIT", "x"),
    ];
    for (words, variables, code) in calls() {
        let expected = run(words, clean.path(), &variables);
        assert_eq!(expected.code, Some(code), "{words:?} {variables:?} {expected:#?}");
        let last = expected.lines.last().unwrap();
        assert_eq!((&last["kind"], &last["level"]), (&"log".into(), &"error".into()), "{last}");
        let mut around = variables.clone();
        around.extend(foreign.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(run(words, hostile.path(), &around), expected, "{variables:?}");
    }
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::prelude::BASE64_STANDARD.encode(text)
}
