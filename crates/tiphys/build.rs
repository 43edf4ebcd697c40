//! Which commit this is, for `tiphys version`.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TIPHYS_COMMIT");
    println!("cargo::rerun-if-changed=../../.git/logs/HEAD");
    // A packager has no repository, and may say it.
    let commit = std::env::var("TIPHYS_COMMIT").ok();
    let commit = commit.or_else(|| git(&["log", "-1", "--format=%h %cs", "--abbrev=12"]));
    println!("cargo::rustc-env=TIPHYS_COMMIT={}", commit.as_deref().unwrap_or("unknown commit"));
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
