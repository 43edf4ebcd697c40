//! The program as its users have it.

use std::env;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kube::config::Kubeconfig;

/// `TIPHYS_BIN`, or what cargo has built beside this test.
#[must_use]
pub fn binary() -> PathBuf {
    if let Some(path) = env::var_os("TIPHYS_BIN") {
        return path.into();
    }
    let test = env::current_exe().expect("a program knows where it is");
    let built = test.ancestors().nth(2).expect("tests lie in target/PROFILE/deps");
    let path = built.join("tiphys");
    assert!(path.exists(), "{} is not built: `cargo build -p tiphys` first", path.display());
    path
}

/// The program with a kubeconfig, and nothing else of the caller's environment.
#[must_use]
pub fn command(args: &[&str], kubeconfig: &Path) -> Command {
    let mut command = Command::new(binary());
    command.env_clear().env("KUBECONFIG", kubeconfig).args(args);
    command
}

/// Runs it to its end.
pub async fn run(args: &[&str], kubeconfig: &Path) -> Output {
    let mut command = command(args, kubeconfig);
    let run = move || command.output().expect("the program can be started");
    tokio::task::spawn_blocking(run).await.expect("nobody cancels it")
}

/// Runs it on a terminal on which somebody types a line: the exit code, and all that was shown.
pub async fn run_on_terminal(
    args: &[&str],
    kubeconfig: &Path,
    typed: &str,
) -> (Option<i32>, String) {
    let (mut terminal, other_end) = pty_process::blocking::open().expect("a terminal");
    let command = pty_process::blocking::Command::new(binary())
        .args(args)
        .env_clear()
        .env("TERM", "xterm-256color")
        .env("KUBECONFIG", kubeconfig);
    let mut child = command.spawn(other_end).expect("the program can be started");
    writeln!(terminal, "{typed}").expect("a terminal takes what is typed");
    let ended = tokio::task::spawn_blocking(move || {
        let mut shown = Vec::new();
        // Linux tells the end of a session as an error.
        terminal.read_to_end(&mut shown).ok();
        let code = child.wait().expect("it ends").code();
        (code, String::from_utf8_lossy(&shown).into_owned())
    });
    ended.await.expect("nobody cancels it")
}

/// Exit code, stdout and stderr.
#[must_use]
pub fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A kubeconfig with which the administrator acts as somebody else, so that the audit log tells
/// requests apart and rights can be taken away.
pub fn act_as(kubeconfig: &Path, user: &str, groups: &[&str], into: &Path) {
    let mut config = Kubeconfig::read_from(kubeconfig).expect("the kubeconfig can be read");
    for named in &mut config.auth_infos {
        let info = named.auth_info.get_or_insert_default();
        info.impersonate = Some(user.to_owned());
        info.impersonate_groups = Some(groups.iter().map(|&group| group.to_owned()).collect());
    }
    // JSON is YAML.
    let text = serde_json::to_string(&config).expect("a kubeconfig can be written");
    std::fs::write(into, text).expect("the file can be written");
}
