//! What real programs print.

use super::*;
use crate::preflight::Outcome;

const ANSIBLE_SAYS: &str = "\
ansible-playbook [core 2.19.14]
  config file = None
  executable location = /opt/ansible/bin/ansible-playbook
  python version = 3.11.7 (main, May  9 2026, 07:35:25) [GCC 12.2.0] (/opt/ansible/bin/python3)
  jinja version = 3.1.6
";

fn named(name: &str) -> Tool {
    *TOOLS.iter().find(|tool| tool.name == name).unwrap()
}

fn said(text: &str) -> Ran {
    Ran::Said(text.to_owned())
}

#[test]
fn tools_are_judged_by_what_they_say() {
    let pass = |found: &str| (Outcome::Pass, found.to_owned());
    let fail = |found: &str| (Outcome::Fail(Trouble::Missing), found.to_owned());
    let other = fail("another program with this name");
    let old_kubectl = "Client Version: version.Info{Major:\"1\", Minor:\"20+\", \
        GitVersion:\"v1.20.5-dirty\", GitCommit:\"cb70b2\", GitTreeState:\"dirty\"}\n";
    let cases = [
        ("ansible-playbook", ANSIBLE_SAYS, pass("2.19.14")),
        ("ansible-playbook", "ansible-playbook 2.9.6\n  config file = None\n", fail("2.9.6")),
        ("ansible-playbook", "ansible-playbook [core 2.15.0]\n", pass("2.15")),
        ("kubectl", "Client Version: v1.34.4\nKustomize Version: v5.7.1\n", pass("1.34.4")),
        ("kubectl", "Client Version: v1.27.16\nKustomize Version: v5.0.1\n", fail("1.27.16")),
        ("kubectl", old_kubectl, fail("1.20.5")),
        ("helm", "v3.20.2+g9f8c7d6\n", pass("3.20.2")),
        ("helm", "v3.20\n", pass("3.20")),
        ("helm", "v3.11.3+g323249351\n", fail("3.11.3")),
        ("helm", "Client: v2.16.1+gbbdfe5e\n", fail("2.16.1")),
        ("helm", "v4.0.0+g99cd196\n", pass("4.0")),
        ("kubeseal", "kubeseal version: 0.24.0\n", pass("0.24")),
        ("kubeseal", "kubeseal version: v0.17.5\n", fail("0.17.5")),
        ("jq", "jq-1.6\n", pass("1.6")),
        ("jq", "jq-1.5-1-a5b5cbe\n", fail("1.5")),
        ("jq", "jq-1.8.1\n", pass("1.8.1")),
        ("yq", "yq (https://github.com/mikefarah/yq/) version v4.44.1\n", pass("4.44.1")),
        ("yq", "yq version 4.2.0\n", pass("4.2")),
        ("yq", "yq version 3.3.2\n", fail("3.3.2")),
        ("yq", "yq 3.1.0\n", other.clone()),
        ("yq", "yq 0.0.0\n", other),
        (
            "kubeseal",
            "kubeseal version: UNKNOWN\n",
            fail("no version in its output: kubeseal version: UNKNOWN"),
        ),
    ];
    for (name, text, expected) in cases {
        let check = judge_tool(&named(name), &said(text));
        assert_eq!((check.outcome, check.found), expected, "{name}: {text}");
        assert_eq!(check.next.is_some(), check.outcome != Outcome::Pass, "{name}: {text}");
    }
}

#[test]
fn a_tool_that_is_absent_or_broken_fails_with_what_to_do() {
    let absent = judge_tool(&named("jq"), &Ran::Absent);
    assert_eq!(absent.outcome, Outcome::Fail(Trouble::Missing));
    assert_eq!((&*absent.required, &*absent.found), ("1.6 or newer", "not in PATH"));
    assert_eq!(
        absent.next.as_deref(),
        Some("install jq 1.6 or newer on this machine, in a folder of PATH")
    );
    let broken = judge_tool(&HELM, &Ran::Failed("no answer within 5 s".to_owned()));
    assert_eq!(broken.outcome, Outcome::Fail(Trouble::Missing));
    assert_eq!(
        broken.next.as_deref(),
        Some("make sure that `helm version --short` works on this machine")
    );
}

#[test]
fn the_interpreter_is_the_one_that_ansible_names() {
    assert_eq!(interpreter(ANSIBLE_SAYS), Some("/opt/ansible/bin/python3"));
    let old =
        "ansible-playbook 2.9.6\n  python version = 3.8.10 (default, Mar 18 2025) [GCC 9.4.0]\n";
    assert_eq!(interpreter(old), None);
    assert_eq!(interpreter(""), None);
}

#[test]
fn packages_are_read_line_by_line() {
    let text = "kubernetes 37.0.2\nopenshift\npyyaml 6.0.3\njsonpatch 1.46\n";
    let found: Vec<_> = judge_packages(&said(text)).into_iter().map(|check| check.found).collect();
    assert_eq!(found, ["37.0.2", "not installed", "6.0.3", "1.46"]);
    let checks = judge_packages(&Ran::Absent);
    assert!(checks.iter().all(|check| check.outcome == Outcome::Fail(Trouble::Missing)));
}

#[test]
fn collections_are_found_in_any_folder() {
    let text = r#"{
        "/home/me/.ansible/collections/ansible_collections": {
            "kubernetes.core": {"version": "6.1.0"}, "ansible.posix": {"version": "*"}},
        "/usr/lib/python3/dist-packages/ansible_collections": {
            "kubernetes.core": {"version": "2.3.2"}, "community.general": {"version": "3.9.9"}}
    }"#;
    let found: Vec<_> =
        judge_collections(&said(text)).into_iter().map(|check| check.found).collect();
    assert_eq!(found, ["6.1", "3.9.9", "not installed", "not installed"]);
    let none = judge_collections(&said("{}"));
    assert_eq!(
        none[0].next.as_deref(),
        Some("run `ansible-galaxy collection install 'kubernetes.core:>=4.0.0'`")
    );
    let absent = judge_collections(&Ran::Absent);
    let ansible = "install Ansible: `ansible-playbook` and `ansible-galaxy` must work here";
    assert_eq!(absent[0].next.as_deref(), Some(ansible));
    let wrong = judge_collections(&said("[]"));
    assert!(wrong[0].found.starts_with("ansible-galaxy did not print JSON"), "{wrong:?}");
}
