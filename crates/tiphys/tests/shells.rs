//! What shells get: completion of names from the platform file, and manual pages.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, a panic is the report")]

use std::fs;
use std::path::Path;
use std::process::Command;

const PLATFORM: &str = "
apiVersion: tiphys.dev/v1alpha1
kind: Platform
metadata: { name: small }
spec:
  stacks:
    - { name: data, apps: [{ name: vault }, { name: vault-config }] }
    - { name: front, apps: [{ name: about }, { name: web }] }
";

/// The program in a directory, with nothing of the caller's environment.
fn tiphys(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiphys"));
    command.env_clear().current_dir(directory);
    command
}

/// What the program offers for the last of these words.
fn offered(directory: &Path, words: &str) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    let mut command = tiphys(directory);
    command.args(["--"]).args(&words).env("TIPHYS_COMPLETE", "fish");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let names = String::from_utf8(output.stdout).unwrap();
    names.lines().map(|line| line.split('\t').next().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn names_are_completed_from_the_platform_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("shop.yaml"), PLATFORM).unwrap();
    let offered = |words| offered(directory.path(), words);
    assert_eq!(offered("tiphys why -f shop.yaml v"), "vault vault-config");
    assert_eq!(offered("tiphys plan --file=shop.yaml --scope st"), "stack:data stack:front");
    assert_eq!(offered("tiphys plan --file shop.yaml --scope p"), "platform");
    assert_eq!(offered("tiphys why v"), "", "there is no ./platform.yaml");
    fs::write(directory.path().join("platform.yaml"), "not a platform").unwrap();
    assert_eq!(offered("tiphys why v"), "", "whatever is wrong, a shell is not the place for it");
    fs::write(directory.path().join("platform.yaml"), PLATFORM).unwrap();
    assert_eq!(offered("tiphys why w"), "web");
}

/// Where bash has broken the words, it gets an answer for the last piece.
#[test]
fn bash_completes_scopes_though_it_ends_words_at_colons() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("platform.yaml"), PLATFORM).unwrap();
    let replies = |words: &str, last: &str| {
        let script = format!(
            "source <(tiphys completion bash); COMP_WORDS=({words}); \
             COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); _tiphys_complete tiphys '{last}' ''; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let program = Path::new(env!("CARGO_BIN_EXE_tiphys")).parent().unwrap();
        let path = format!("{}:/usr/bin:/bin", program.display());
        let mut bash = Command::new("bash");
        let bash = bash.env_clear().env("PATH", path).current_dir(directory.path());
        let output = bash.args(["--norc", "-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(replies("tiphys plan --scope app : va", "va"), "vault vault-config");
    assert_eq!(replies("tiphys plan --scope stack :", ""), "data front");
    assert_eq!(replies("tiphys why we", "we"), "web");
}

#[test]
fn there_is_a_manual_page_for_each_action() {
    let directory = tempfile::tempdir().unwrap();
    let output = tiphys(directory.path()).args(["man", "pages/man1"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let pages = directory.path().join("pages/man1");
    let deploy = fs::read_to_string(pages.join("tiphys-deploy.1")).unwrap();
    assert!(deploy.contains(".TH TIPHYS-DEPLOY 1"), "{deploy}");
    assert!(deploy.contains("TIPHYS_SCOPE"), "{deploy}");
    assert!(fs::read_to_string(pages.join("tiphys.1")).unwrap().contains("tiphys\\-teardown(1)"));
    let output = tiphys(directory.path()).args(["man", "/dev/null/pages"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("/dev/null/pages"), "{message}");
}
