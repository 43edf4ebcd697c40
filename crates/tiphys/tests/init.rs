//! A first platform file from the answers of a person.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use pty_process::blocking::{Command, open};

/// What a terminal shows when this is typed, a line for each question.
fn answered(args: &[&str], lines: &[&str]) -> String {
    let (mut terminal, other_end) = open().unwrap();
    let command = Command::new(env!("CARGO_BIN_EXE_tiphys")).args(args).env_clear();
    let mut child = command.spawn(other_end).unwrap();
    for line in lines {
        writeln!(terminal, "{line}").unwrap();
    }
    // Linux tells the end of a terminal session as an error.
    let mut shown = Vec::new();
    terminal.read_to_end(&mut shown).unwrap_or_default();
    child.wait().unwrap();
    String::from_utf8(shown).unwrap().replace("\r\n", "\n")
}

#[test]
fn answers_become_a_platform_file_and_wrong_ones_are_asked_for_again() {
    let lines =
        ["Shop", "shop", "git@host:shop.git", "", "v1.0", "db", "", "web", "db, Web", "db", ""];
    let shown = answered(&["init"], &lines);
    assert_eq!(shown.matches("is not allowed in a name").count(), 2, "{shown}");
    for part in [
        "  name: shop\n",
        "    repoURL: git@host:shop.git\n    path: root\n    targetRevision: v1.0\n",
        "        - name: db\n        - name: web\n",
        "          dependsOn: [db]\n",
    ] {
        assert!(shown.contains(part), "no {part:?} in:\n{shown}");
    }
}

#[test]
fn an_app_that_was_not_named_is_said_at_once() {
    let shown = answered(&["init", "--name", "shop"], &["", "web", "db", ""]);
    assert!(shown.contains("`web` depends on unknown app `db`"), "{shown}");
    assert!(!shown.contains("kind: Platform\n"), "{shown}");
}

const PLATFORM: &str = "{apiVersion: tiphys.dev/v1alpha1, kind: Platform, metadata: {name: shop}, \
    spec: {stacks: [{name: s, apps: [{name: a}]}]}}\n";

/// Runs it for the root app in `root`; its exit code and what it said.
fn into_root_app(folder: &Path) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tiphys"));
    let command = command.args(["init", "--root-app", "root"]).env_clear().current_dir(folder);
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// A platform file, and a root app with these files.
fn with_root_app(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("root")).unwrap();
    fs::write(folder.path().join("platform.yaml"), PLATFORM).unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn the_platform_file_becomes_a_part_of_any_root_app() {
    let chart = with_root_app(&[("root/Chart.yaml", "name: root")]);
    for _ in 0..2 {
        let (code, said) = into_root_app(chart.path());
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("tiphys deploy --platform shop"), "{said}");
    }
    let linked = fs::read_to_string(chart.path().join("root/platform.yaml")).unwrap();
    assert_eq!(linked, PLATFORM);
    let template = chart.path().join("root/templates/platform-file.yaml");
    assert!(fs::read_to_string(&template).unwrap().contains("tiphys.dev/platform-file: shop"));
    fs::write(&template, "somebody else's").unwrap();
    assert_eq!(into_root_app(chart.path()).0, Some(3));
    assert_eq!(fs::read_to_string(&template).unwrap(), "somebody else's");

    let folder = with_root_app(&[]);
    assert_eq!(into_root_app(folder.path()).0, Some(0));
    let written = fs::read_to_string(folder.path().join("root/platform-file.yaml")).unwrap();
    assert!(written.contains("argocd.argoproj.io/hook: Skip"), "{written}");
}

#[test]
fn a_kustomization_gets_a_generator_behind_what_is_there() {
    let before = "# mine\nresources: [apps]";
    let outside = with_root_app(&[("root/kustomization.yaml", before)]);
    let (code, said) = into_root_app(outside.path());
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("move the platform file"), "{said}");

    let kustomization = outside.path().join("root/kustomization.yaml");
    fs::rename(outside.path().join("platform.yaml"), outside.path().join("root/p.yaml")).unwrap();
    let run = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tiphys"));
        let command = command.args(["init", "--root-app", "root", "-f", "root/p.yaml"]).env_clear();
        command.current_dir(outside.path()).output().unwrap()
    };
    assert!(run().status.success());
    let after = fs::read_to_string(&kustomization).unwrap();
    assert!(after.starts_with(&format!("{before}\n")), "{after}");
    assert!(after.contains("files: [\"platform.yaml=p.yaml\"]"), "{after}");
    assert!(run().status.success());
    assert_eq!(fs::read_to_string(&kustomization).unwrap(), after, "the same again");

    fs::write(&kustomization, "configMapGenerator: []\n").unwrap();
    let refused = run();
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("add this entry"));
}
