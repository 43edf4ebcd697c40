//! The picture of crates in `docs/architecture.md` is the one that cargo has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

type Edges = BTreeMap<String, BTreeSet<String>>;

/// Which of our crates the program is made of, and what each uses of the others, without tests.
fn crates() -> Edges {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&cargo.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let ours = packages.iter().filter(|package| {
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        manifest.iter().any(|part| part == "crates")
    });
    let short = |name: &Value| {
        let name = name.as_str().expect("a name");
        name.strip_prefix("tiphys-").unwrap_or(name).to_owned()
    };
    ours.map(|package| {
        let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
        let shipped = dependencies
            .filter(|dependency| dependency["kind"].is_null() && dependency["path"].is_string());
        (short(&package["name"]), shipped.map(|dependency| short(&dependency["name"])).collect())
    })
    .collect()
}

/// All that can be reached from a crate, without the first step to `but`.
fn reached(edges: &Edges, from: &str, but: Option<&str>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&String> = edges[from].iter().filter(|to| Some(to.as_str()) != but).collect();
    while let Some(name) = next.pop() {
        if found.insert(name.clone()) {
            next.extend(&edges[name]);
        }
    }
    found
}

#[test]
fn the_picture_shows_the_crates_as_they_are() {
    let edges = crates();
    // What follows from other arrows is left out.
    let drawn: BTreeSet<String> = edges
        .iter()
        .flat_map(|(from, all)| all.iter().map(move |to| (from, to)))
        .filter(|(from, to)| !reached(&edges, from, Some(to)).contains(*to))
        .map(|(from, to)| format!("{from} --> {to}"))
        .collect();
    let page = include_str!("../../../docs/architecture.md");
    let picture = page.split("```").find(|block| block.starts_with("mermaid")).expect("a picture");
    let shown: BTreeSet<String> = picture
        .lines()
        .map(str::trim)
        .filter(|line| line.contains(" --> "))
        .map(str::to_owned)
        .collect();
    assert_eq!(shown, drawn, "copy the right side into the picture");
    let rows: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|row| row.0)
        .collect();
    for name in edges.keys() {
        assert!(rows.contains(name.as_str()), "the table of crates lacks {name}");
    }
}
