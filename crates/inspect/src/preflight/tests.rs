//! What follows from a platform file: which tools are needed, and what is asked.

use tiphys_assess::preflight::connectivity::{Purpose, endpoints};
use tiphys_assess::preflight::tools::{Needs, TOOLS};
use tiphys_spec::{Source, Sources};

use super::*;

/// `lines` are those of `spec`.
pub(super) fn platform(lines: &str) -> Platform {
    let text = format!(
        "apiVersion: tiphys.dev/v1alpha1\nkind: Platform\nmetadata: {{ name: demo }}\nspec:\n\
         {lines}  stacks: [{{ name: s, apps: [{{ name: a }}] }}]\n"
    );
    let source = Source::new("platform.yaml", text.into()).unwrap();
    tiphys_spec::platform(&Sources::new(vec![source])).unwrap()
}

/// Where the manifests of Argo CD are, and more lines of `bootstrap`.
fn bootstrap(place: &str, more: &str) -> Platform {
    let zeros = "0".repeat(64);
    platform(&format!(
        "  source: {{ repoURL: 'git@git.example:p.git', targetRevision: main, path: root }}\n  \
         bootstrap:\n    argocd: {{ version: '1', manifests: {{ sha256: '{zeros}', {place} }} }}\n\
         {more}"
    ))
}

const PATH: &str = "path: a.yaml";
const CHART: &str = "chart: { repository: 'https://charts.example', name: a, version: '1' }";

#[test]
fn what_is_needed_follows_the_installer() {
    let needed = |platform: &Platform, strict: bool| -> Vec<&str> {
        let needs = Needs { bootstrap: platform.bootstrap.as_ref(), strict };
        let tools = TOOLS.iter().filter(|tool| needs.spare_tool(tool).is_none());
        tools.map(|tool| tool.name).collect()
    };
    let all: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    let ansible = "    installer: ansible\n";
    assert_eq!(needed(&platform(""), false), Vec::<&str>::new());
    assert_eq!(needed(&platform(""), true), all);
    assert_eq!(needed(&bootstrap(PATH, ""), false), Vec::<&str>::new());
    assert_eq!(needed(&bootstrap(CHART, ""), false), ["helm"]);
    assert_eq!(needed(&bootstrap(PATH, ansible), false), all);
    assert_eq!(needed(&bootstrap(PATH, ""), true), all);
}

#[test]
fn every_place_that_the_platform_names_is_asked_once() {
    let asked = |platform: &Platform| -> Vec<(Purpose, String)> {
        let all = endpoints(platform).into_iter();
        all.map(|endpoint| (endpoint.purpose, endpoint.address)).collect()
    };
    let at = |purpose, address: &str| (purpose, address.to_owned());
    let git = at(Purpose::Git, "git@git.example:p.git");
    assert_eq!(asked(&platform("")), []);
    assert_eq!(asked(&bootstrap(PATH, "")), std::slice::from_ref(&git));
    let url = bootstrap("url: 'https://files.example/a.yaml'", "");
    let file = at(Purpose::Manifests, "https://files.example/a.yaml");
    assert_eq!(asked(&url), [git.clone(), file]);
    let more = "    images: [{ from: quay.io, to: 'mirror.example:5000/quay' }]\n    endpoints:\n      \
                registries: ['mirror.example:5000', ghcr.io]\n      charts: ['https://charts.example']\n";
    let expected = [
        git,
        at(Purpose::Mirror, "mirror.example:5000"),
        at(Purpose::Registry, "ghcr.io"),
        at(Purpose::Charts, "https://charts.example"),
    ];
    assert_eq!(asked(&bootstrap(CHART, more)), expected);
    // An artifact comes from a registry, too.
    assert_eq!(asked(&bootstrap("oci: 'ghcr.io/a/b:1'", more)), expected);
}
