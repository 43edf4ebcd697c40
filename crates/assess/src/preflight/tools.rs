//! What must be installed where the platform is set up from: programs, Python packages and
//! Ansible collections, as RFC 3.2.1 to 3.2.3 list them.

use std::collections::BTreeMap;

use serde::Deserialize;
use tiphys_model::bootstrap::{Bootstrap, Installer, Manifests};

use super::{Check, Requirement, Section, Trouble, Version};

/// A program, and how it is asked for its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    pub name: &'static str,
    pub args: &'static [&'static str],
    pub minimum: Version,
}

pub const ANSIBLE: Tool =
    Tool { name: "ansible-playbook", args: &["--version"], minimum: Version::new(2, 15, 0) };
pub const HELM: Tool =
    Tool { name: "helm", args: &["version", "--short"], minimum: Version::new(3, 12, 0) };
const YQ: Tool = Tool { name: "yq", args: &["--version"], minimum: Version::new(4, 0, 0) };

pub const TOOLS: [Tool; 6] = [
    ANSIBLE,
    Tool { name: "kubectl", args: &["version", "--client"], minimum: Version::new(1, 28, 0) },
    HELM,
    Tool { name: "kubeseal", args: &["--version"], minimum: Version::new(0, 24, 0) },
    Tool { name: "jq", args: &["--version"], minimum: Version::new(1, 6, 0) },
    YQ,
];

/// Any version of these will do.
pub const PACKAGES: [&str; 4] = ["kubernetes", "openshift", "pyyaml", "jsonpatch"];

pub const COLLECTIONS: [(&str, Version); 4] = [
    ("kubernetes.core", Version::new(4, 0, 0)),
    ("community.general", Version::new(4, 0, 0)),
    ("ansible.posix", Version::new(1, 0, 0)),
    ("ansible.utils", Version::new(5, 0, 0)),
];

/// What came of running a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ran {
    Absent,
    /// It was there, and did not do what it was asked: why.
    Failed(String),
    /// What it printed.
    Said(String),
}

/// Which of these things the platform needs, and why not.
#[derive(Debug, Clone, Copy)]
pub struct Needs<'a> {
    pub bootstrap: Option<&'a Bootstrap>,
    /// The RFC's letter, whatever the installer.
    pub strict: bool,
}

impl Needs<'_> {
    /// Why it is not needed; none, if it is.
    #[must_use]
    pub fn spare_tool(&self, tool: &Tool) -> Option<&'static str> {
        let chart = |bootstrap: &Bootstrap| {
            let mut primitives = bootstrap.primitives.iter();
            primitives.any(|primitive| matches!(primitive.manifests, Manifests::Chart(_)))
        };
        let rendered = *tool == HELM && self.bootstrap.is_some_and(chart);
        self.spare_ansible().filter(|_| !rendered)
    }

    /// Likewise, for what only Ansible uses.
    #[must_use]
    pub fn spare_ansible(&self) -> Option<&'static str> {
        match self.bootstrap.map(|bootstrap| bootstrap.installer) {
            _ if self.strict => None,
            Some(Installer::Ansible) => None,
            Some(Installer::Native) => Some("not needed by the native installer"),
            None => Some("not needed: the platform file has no `bootstrap`"),
        }
    }
}

/// What is required of a tool, in a check that nobody has looked at yet.
#[must_use]
pub fn tool(tool: &Tool) -> Requirement {
    Requirement::new(Section::Tools, tool.name, format!("{} or newer", tool.minimum))
}

#[must_use]
pub fn judge_tool(wanted: &Tool, ran: &Ran) -> Check {
    let requirement = tool(wanted);
    let Tool { name, args, minimum } = wanted;
    let install = format!("install {name} {minimum} or newer on this machine, in a folder of PATH");
    let said = match ran {
        Ran::Absent => return requirement.failed(Trouble::Missing, "not in PATH", install),
        Ran::Failed(why) => {
            let next = format!("make sure that `{name} {}` works on this machine", args.join(" "));
            return requirement.failed(Trouble::Missing, why, next);
        }
        Ran::Said(text) => text,
    };
    if *wanted == YQ && !is_the_right_yq(said) {
        let next = format!("{install}: the one from https://github.com/mikefarah/yq");
        return requirement.failed(Trouble::Missing, "another program with this name", next);
    }
    match Version::find(said) {
        Some(version) if version >= *minimum => requirement.passed(version.to_string()),
        Some(version) => requirement.failed(Trouble::Missing, version.to_string(), install),
        None => {
            let found = format!("no version in its output: {}", first_line(said));
            requirement.failed(Trouble::Missing, found, install)
        }
    }
}

/// Debian's `yq` is a wrapper of jq in Python, with a version of its own: `yq 3.1.0`. The one
/// that is meant says `yq (https://github.com/mikefarah/yq/) version v4.44.1`, and in its first
/// years only `yq version 4.2.0`.
fn is_the_right_yq(said: &str) -> bool {
    said.contains("mikefarah") || said.starts_with("yq version")
}

/// The interpreter that Ansible runs in, from what `ansible-playbook --version` says.
#[must_use]
pub fn interpreter(said: &str) -> Option<&str> {
    let line = said.lines().find(|line| line.trim_start().starts_with("python version"))?;
    let (_, path) = line.trim_end().strip_suffix(')')?.rsplit_once('(')?;
    path.starts_with('/').then_some(path)
}

/// What the packages of Ansible's Python are asked for with; each answers on a line with its
/// name and, if it is installed, its version.
pub const PACKAGES_SCRIPT: &str = "\
import importlib.metadata, sys
for name in sys.argv[1:]:
    try:
        print(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        print(name)
";

#[must_use]
pub fn package(name: &str) -> Requirement {
    Requirement::new(Section::Python, name, "installed for Ansible's Python")
}

#[must_use]
pub fn judge_packages(ran: &Ran) -> Vec<Check> {
    let judge = |name: &str| {
        let requirement = package(name);
        let text = match ran {
            Ran::Said(text) => text,
            Ran::Absent => return unasked(requirement, "Ansible's Python not found"),
            Ran::Failed(why) => return unasked(requirement, why),
        };
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        if let Some((_, version)) = lines.find(|(package, _)| *package == name) {
            return requirement.passed(version);
        }
        let next = format!("install the Python package {name} for Ansible's Python");
        requirement.failed(Trouble::Missing, "not installed", next)
    };
    PACKAGES.into_iter().map(judge).collect()
}

/// What is missing is then Ansible, not what it would need.
fn unasked(requirement: Requirement, why: &str) -> Check {
    let next = "install Ansible: `ansible-playbook` and `ansible-galaxy` must work here";
    requirement.failed(Trouble::Missing, why, next)
}

#[must_use]
pub fn collection(name: &str, minimum: Version) -> Requirement {
    Requirement::new(Section::Collections, name, format!("{minimum} or newer"))
}

/// One of those that `ansible-galaxy collection list --format json` lists, by folder and name.
#[derive(Debug, Deserialize)]
struct Listed {
    version: String,
}

#[must_use]
pub fn judge_collections(ran: &Ran) -> Vec<Check> {
    let listed = match ran {
        Ran::Said(text) => serde_json::from_str::<BTreeMap<String, BTreeMap<String, Listed>>>(text)
            .map_err(|error| format!("ansible-galaxy did not print JSON: {error}")),
        Ran::Absent => Err("ansible-galaxy is not in PATH".to_owned()),
        Ran::Failed(why) => Err(why.clone()),
    };
    let judge = |(name, minimum): (&str, Version)| {
        let requirement = collection(name, minimum);
        let folders = match &listed {
            Ok(folders) => folders.values(),
            Err(why) => return unasked(requirement, why),
        };
        // In whichever folder; the newest, if there are several.
        let all = folders.filter_map(|folder| folder.get(name));
        let found = all.filter_map(|listed| Version::find(&listed.version)).max();
        let next = format!("run `ansible-galaxy collection install '{name}:>={minimum}.0'`");
        match found {
            Some(version) if version >= minimum => requirement.passed(version.to_string()),
            Some(version) => requirement.failed(Trouble::Missing, version.to_string(), next),
            None => requirement.failed(Trouble::Missing, "not installed", next),
        }
    };
    COLLECTIONS.into_iter().map(judge).collect()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(80).collect()
}

#[cfg(test)]
mod tests;
