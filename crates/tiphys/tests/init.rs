//! A first platform file from the answers of a person.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

use std::io::{Read, Write};

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
