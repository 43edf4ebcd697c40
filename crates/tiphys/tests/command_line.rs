//! What the command line says and how it ends: plans in every format, scopes, help, usage.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{Ran, compare, folder, tiphys};

/// Applications in waves, one of them with a dependency of its own.
const WAVES: &str = r#"
{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: crds, annotations: {argocd.argoproj.io/sync-wave: "-5"}}}
---
{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: storage, annotations: {tiphys.dev/type: ceph-cluster}}}
---
{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: ingress}}
---
{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: shop, annotations: {argocd.argoproj.io/sync-wave: "10", tiphys.dev/depends-on: "vault, storage, falco?", tiphys.dev/stack: shop}}}
---
{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: vault, annotations: {argocd.argoproj.io/sync-wave: "10", tiphys.dev/type: vault}}, spec: {project: default}}
"#;

/// It takes longer than it may, because of its group and of one app.
const LATE: &str = "
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: late }
spec:
  timeout: 12m
  groups: [{ name: heavy, concurrency: 1 }]
  stacks:
    - name: data
      apps:
        - { name: one, group: heavy, typical: 5m }
        - { name: two, group: heavy, typical: 5m }
        - { name: three, group: heavy, typical: 5m }
        - { name: slow, typical: 11m, timeouts: { sync: 1m, health: 9m } }
";

/// Nothing in it waits for anything, but for room.
const NARROW: &str = "
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: narrow }
spec:
  concurrency: 2
  stacks: [{ name: all, apps: [{ name: a }, { name: b }, { name: c }, { name: d }] }]
";

/// The same after some time.
const WIDE: &str = "
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: narrow }
spec:
  concurrency: 4
  stacks:
    - name: all
      apps:
        - { name: a, typical: 3m, tolerateDrift: [Secret/a] }
        - { name: b, dependsOn: [a, { app: c, optional: true }] }
        - { name: c }
    - { name: new, apps: [{ name: e, dependsOn: [b] }] }
";

/// Name, arguments and exit code. They run where there is no `platform.yaml`, so on the bundled
/// reference platform.
const CASES: [(&str, &str, i32); 50] = [
    ("plan-table", "plan", 0),
    ("plan-json", "plan -o json", 0),
    ("plan-yaml", "plan -o yaml", 0),
    ("plan-dot", "plan -o dot", 0),
    ("plan-check", "plan --check -f late.yaml", 0),
    ("plan-check-of-a-wrong-file", "plan --check -f wrong.yaml", 3),
    ("plan-mermaid", "plan -o mermaid", 0),
    ("plan-markdown", "plan --scope stack:security -o markdown", 0),
    ("plan-diff", "plan -f wide.yaml --diff narrow.yaml", 0),
    ("plan-diff-markdown", "plan -f wide.yaml --diff narrow.yaml -o markdown", 0),
    ("plan-diff-json", "plan -f wide.yaml --diff narrow.yaml -o json", 0),
    ("plan-diff-yaml", "plan -f wide.yaml --diff narrow.yaml -o yaml", 0),
    ("plan-diff-of-the-same", "plan -f narrow.yaml --diff narrow.yaml", 0),
    ("plan-diff-as-a-graph", "plan --diff narrow.yaml -o dot", 2),
    ("waves-plan", "plan --from-applications waves", 0),
    ("waves-plan-with-edges", "plan --from-applications waves --edges-from-waves", 0),
    ("waves-init", "init --from-applications waves", 0),
    ("waves-init-with-edges", "init --from-applications waves --edges-from-waves --name shop", 0),
    ("plan-that-cannot-succeed", "plan -f late.yaml", 0),
    ("plan-limited-by-concurrency", "plan -f narrow.yaml", 0),
    ("scope-stack-table", "plan --scope stack:monitoring", 0),
    ("scope-stack-dot", "plan --scope stack:monitoring -o dot", 0),
    ("scope-stack-mermaid", "plan --scope stack:monitoring -o mermaid", 0),
    ("scope-app-table", "plan --scope app:harbor", 0),
    ("scope-app-json", "plan --scope app:harbor -o json", 0),
    // Apps outside it wait for each other too.
    ("scope-with-a-chain-outside", "plan --scope stack:security", 0),
    ("scope-several", "plan --scope stack:security --scope app:harbor", 0),
    ("scope-glob", "plan --scope app:*-config,app:metallb", 0),
    ("scope-glob-of-nothing", "plan --scope app:harbor --scope app:nope-*", 5),
    ("waves-rehearse", "rehearse --from-applications waves --edges-from-waves", 0),
    ("scope-unknown-stack", "plan --scope stack:nope", 5),
    ("scope-unknown-app", "plan --scope app:nope", 5),
    ("scope-unknown-word", "plan --scope nope", 5),
    ("scope-without-prefix", "plan --scope vault", 5),
    ("scope-with-a-slip", "plan --scope app:havbor", 5),
    ("scope-of-the-wrong-kind", "plan --scope stack:harbor", 5),
    ("scope-with-a-bad-name", "plan --scope app:Harbor", 5),
    ("scope-without-a-name", "plan --scope stack:", 5),
    ("usage-no-action", "", 2),
    ("usage-unknown-action", "plam", 2),
    ("usage-unknown-flag", "plan --scop platform", 2),
    ("usage-unknown-format", "plan -o xml", 2),
    ("usage-two-platforms", "plan -f a --from-applications b", 2),
    ("usage-waves-without-applications", "plan --edges-from-waves", 2),
    ("usage-waves-of-a-platform-file", "plan -f a --edges-from-waves", 2),
    ("init-example", "init --name shop", 0),
    ("usage-init-waves-of-nothing", "init --edges-from-waves", 2),
    ("usage-init-bad-name", "init --from-applications waves --name No", 2),
    ("help-of-an-action", "help schema", 0),
    ("version-flag", "--version", 0),
];

fn run(directory: &Path, environment: &[(&str, &str)], args: &str) -> Ran {
    let mut command = tiphys(directory);
    command.args(args.split_whitespace()).envs(environment.iter().copied());
    let set: String = environment.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    Ran::new(format!("{set}tiphys {args}").trim_end(), &command.output().unwrap())
}

/// The actions that the help lists.
fn actions(help: &Ran) -> Vec<String> {
    let lines = help.transcript.lines().skip_while(|line| *line != "Commands:").skip(1);
    let rows = lines.take_while(|line| !line.is_empty());
    let actions = rows.filter_map(|row| row.split_whitespace().next());
    // It is no action: it takes the name of one.
    actions.filter(|action| *action != "help").map(str::to_owned).collect()
}

#[test]
fn actions_print_and_exit_as_before() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join("waves")).unwrap();
    fs::write(elsewhere.path().join("waves/applications.yaml"), WAVES).unwrap();
    fs::write(elsewhere.path().join("late.yaml"), LATE).unwrap();
    fs::write(elsewhere.path().join("narrow.yaml"), NARROW).unwrap();
    fs::write(elsewhere.path().join("wide.yaml"), WIDE).unwrap();
    fs::write(elsewhere.path().join("wrong.yaml"), NARROW.replace("{ name: d }", "{ nmae: d }"))
        .unwrap();
    let mut transcripts = BTreeMap::new();
    let mut codes = Vec::new();
    for (name, args, code) in CASES {
        let ran = run(elsewhere.path(), &[], args);
        codes.push((name, ran.code, Some(code)));
        transcripts.insert(name.to_owned(), ran);
    }
    let help = run(elsewhere.path(), &[], "--help");
    for action in actions(&help) {
        let ran = run(elsewhere.path(), &[], &format!("{action} --help"));
        transcripts.insert(format!("help-{action}"), ran);
    }
    transcripts.insert("help".to_owned(), help);
    let environments = [
        ("environment-other", "TIPHYS_ENVIRONMENT", "staging", 3),
        ("environment-empty", "TIPHYS_ENVIRONMENT", "", 0),
        ("plan-check-in-github", "GITHUB_ACTIONS", "true", 3),
    ];
    for (name, variable, value, code) in environments {
        let check = "plan --check -f wrong.yaml";
        let args = if variable == "GITHUB_ACTIONS" { check } else { "plan" };
        let ran = run(elsewhere.path(), &[(variable, value)], args);
        codes.push((name, ran.code, Some(code)));
        transcripts.insert(name.to_owned(), ran);
    }
    fs::write(elsewhere.path().join("platform.yaml"), MINIMAL).unwrap();
    let minimal = run(elsewhere.path(), &[], "plan");
    transcripts.insert("default-file".to_owned(), minimal);
    let unnamed = run(elsewhere.path(), &[("TIPHYS_ENVIRONMENT", "production")], "plan");
    codes.push(("environment-not-given", unnamed.code, Some(3)));
    transcripts.insert("environment-not-given".to_owned(), unnamed);

    compare(&folder("command_line"), &transcripts);
    codes.retain(|(_, code, documented)| code != documented);
    assert_eq!(codes, []);
}

#[test]
fn applications_name_no_environment_so_none_is_the_right_one() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("a.yaml"), APPLICATION).unwrap();
    let plan = "plan --from-applications .";
    let wanted = run(elsewhere.path(), &[("TIPHYS_ENVIRONMENT", "production")], plan);
    let why = "the platform does not set `spec.environment.name`";
    assert_eq!((wanted.code, wanted.transcript.contains(why)), (Some(3), true));
    assert_eq!(run(elsewhere.path(), &[], plan).code, Some(0));
    let init = "init --from-applications .";
    let written = run(elsewhere.path(), &[("TIPHYS_ENVIRONMENT", "production")], init);
    assert_eq!(written.code, Some(0), "a file is printed, and nothing is touched");
}

const APPLICATION: &str =
    "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a}}";

#[test]
fn a_platform_file_from_waves_has_the_plan_of_the_waves() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join("waves")).unwrap();
    fs::write(elsewhere.path().join("waves/applications.yaml"), WAVES).unwrap();
    let stdout = |args: &str| {
        let output = tiphys(elsewhere.path()).args(args.split(' ')).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args}");
        output.stdout
    };
    let waves = "--from-applications waves --edges-from-waves";
    // `--from-applications` names the platform so, and the name is a part of the plan.
    let file = stdout(&format!("init {waves} --name applications"));
    fs::write(elsewhere.path().join("platform.yaml"), file).unwrap();
    assert_eq!(stdout("plan -o json"), stdout(&format!("plan {waves} -o json")));
}

#[test]
fn what_looks_like_a_command_to_a_terminal_stays_in_data() {
    let elsewhere = tempfile::tempdir().unwrap();
    let criterion =
        r#"{resource: {apiVersion: v1, kind: K, name: n, expression: "'\x7f\x9b1m' == ''"}}"#;
    let health = format!("name: a, health: [{criterion}]");
    fs::write(elsewhere.path().join("platform.yaml"), MINIMAL.replace("name: a", &health)).unwrap();
    // The other formats escape such characters themselves.
    let transcript = run(elsewhere.path(), &[], "plan -o json").transcript;
    assert!(transcript.contains("\u{7f}\u{9b}1m"), "{transcript:?}");
}

const MINIMAL: &str = "{apiVersion: tiphys.dev/v1alpha1, kind: Platform, metadata: {name: \
    minimal}, spec: {stacks: [{name: s, apps: [{name: a}]}]}}";

#[test]
fn the_right_environment_changes_nothing() {
    let elsewhere = tempfile::tempdir().unwrap();
    let without = run(elsewhere.path(), &[], "plan");
    let mut command = tiphys(elsewhere.path());
    let output = command.arg("plan").env("TIPHYS_ENVIRONMENT", "production").output().unwrap();
    assert_eq!(Ran::new("tiphys plan", &output).transcript, without.transcript);
}

#[test]
fn the_version_says_from_which_commit_it_was_built() {
    let elsewhere = tempfile::tempdir().unwrap();
    let ran = run(elsewhere.path(), &[], "version");
    let said =
        "platform file tiphys.dev/v1alpha1\nplan          tiphys.dev/v1alpha1\nevents        v1\n";
    let first = format!("tiphys {} (", env!("CARGO_PKG_VERSION"));
    assert!(ran.transcript.contains(&first) && ran.transcript.contains(said), "{}", ran.transcript);
}

#[test]
fn every_shell_gets_a_completion_script() {
    let elsewhere = tempfile::tempdir().unwrap();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = run(elsewhere.path(), &[], &format!("completion {shell}"));
        assert_eq!(ran.code, Some(0), "{shell}");
        assert!(ran.transcript.contains("TIPHYS_COMPLETE"), "{}", ran.transcript);
    }
    let known = actions(&run(elsewhere.path(), &[], "--help"));
    let mut asked = tiphys(elsewhere.path());
    let output = asked.args(["--", "tiphys", ""]).env("TIPHYS_COMPLETE", "fish").output().unwrap();
    let offered = String::from_utf8(output.stdout).unwrap();
    let offered: Vec<&str> = offered.lines().filter_map(|line| line.split('\t').next()).collect();
    let absent: Vec<_> =
        known.iter().filter(|action| !offered.contains(&action.as_str())).collect();
    assert_eq!(absent, Vec::<&String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_failure_and_a_closed_pipe_is_none() {
    let elsewhere = tempfile::tempdir().unwrap();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = tiphys(elsewhere.path()).arg("schema").stdout(full).output().unwrap();
    let said = "error: cannot write the output\n |\n = note: No space left on device";
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.starts_with(said)), (Some(1), true), "{stderr}");

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = tiphys(elsewhere.path()).arg("schema").stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
