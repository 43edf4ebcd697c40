//! The pure crates stay pure: no disk, network, clock, threads, randomness, environment, output
//! or async in their sources, and no dependency that could bring them in.
//!
//! Clippy does most of it, with the lists in the `clippy.toml` that all of them share. This is what
//! clippy cannot say.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crates that hold the decisions.
const PURE: [&str; 7] = ["assess", "expression", "model", "plan", "run", "sim", "spec"];

/// What pure crates may depend on, and why each is harmless.
const DEPENDENCIES: [(&str, &str); 13] = [
    ("cel", "expressions over values that it is given; without `chrono` it has no clock"),
    ("granit-parser", "YAML grammar over a string that it is given"),
    ("jiff", "calendar arithmetic; clippy forbids its clock"),
    ("serde", "traits and derives"),
    ("serde_json", "writes to whatever writer it is given"),
    ("sha2", "arithmetic on bytes"),
    ("strsim", "arithmetic on two strings"),
    ("thiserror", "derives `Display` and `Error`"),
    ("tiphys-assess", "pure itself"),
    ("tiphys-expression", "pure itself"),
    ("tiphys-model", "pure itself"),
    ("tiphys-plan", "pure itself"),
    ("tiphys-run", "pure itself"),
];

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

#[test]
fn pure_crates_share_the_lists_of_clippy() {
    let lists = |name| fs::read_to_string(directory(name).join("clippy.toml")).expect(name);
    for name in PURE {
        assert_eq!(lists(name), lists("model"), "crates/{name}/clippy.toml");
    }
}

/// Dependencies of tests are free.
#[test]
fn pure_crates_depend_on_what_is_on_the_list() {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(directory("tiphys"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&cargo.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let mut used = BTreeSet::new();
    for name in PURE {
        let package = packages.iter().find(|package| package["name"] == format!("tiphys-{name}"));
        let dependencies = package.expect(name)["dependencies"].as_array().expect("dependencies");
        let shipped = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
        used.extend(shipped.map(|dependency| dependency["name"].as_str().expect("a name")));
    }
    assert_eq!(used, BTreeSet::from(DEPENDENCIES.map(|(name, _)| name)));
}

#[test]
fn pure_crates_have_no_async() {
    for name in PURE {
        let sources = rust_files(&directory(name).join("src"));
        assert!(!sources.is_empty(), "crates/{name} has no sources");
        for path in sources {
            for (number, line) in (1..).zip(fs::read_to_string(&path).unwrap().lines()) {
                let code = line.split("//").next().unwrap_or_default();
                let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
                let found = words.any(|word| word == "async" || word == "await");
                assert!(!found, "{}:{number}: {line}", path.display());
            }
        }
    }
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("the directory is readable") {
        let path = entry.expect("its entries are readable").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    files
}
