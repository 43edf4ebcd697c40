//! Repositories beside the platform's own: those that its Applications name, where they are there
//! already, and those that a login is mounted for.

use futures::stream::{self, StreamExt};
use serde_json::Value;
use tiphys_assess::preflight::Findings;
use tiphys_assess::preflight::address::{GitAddress, registry};
use tiphys_assess::preflight::connectivity::{Endpoint, Purpose, Tried, judge};
use tiphys_install::mounted::{Git, Mounted, RepositoryKind};

use super::{AT_ONCE, Preflight, applications, git, in_time, registry as registries};

pub(super) async fn look(
    preflight: &Preflight<'_>,
    known: &[Endpoint],
    mounted: &Mounted,
) -> Findings {
    let sources = sources(preflight).await;
    let places = places(&sources, known, mounted);
    let tried = places.into_iter().map(|place| async move { reach(&place, mounted).await });
    let looked = stream::iter(tried).buffered(AT_ONCE);
    let mut findings = Findings::default();
    for one in looked.collect::<Vec<_>>().await {
        findings.checks.extend(one.checks);
        findings.connectivity.extend(one.connectivity);
    }
    findings
}

/// All sources of the platform's apps. Where nobody can be asked, other rows say why.
async fn sources(preflight: &Preflight<'_>) -> Vec<Value> {
    let Ok(client) = in_time(preflight.access.client()).await else { return Vec::new() };
    let listed = applications::list(&client, preflight.platform).await;
    let listed = listed.ok().flatten().unwrap_or_default();
    listed.iter().flat_map(|one| one.sources().cloned().collect::<Vec<_>>()).collect()
}

/// What is to be tried, each once.
fn places(sources: &[Value], known: &[Endpoint], mounted: &Mounted) -> Vec<Endpoint> {
    let mut places: Vec<Endpoint> = Vec::new();
    let mounted = mounted.repositories.iter().filter(|one| one.kind == RepositoryKind::One);
    let mounted = mounted.map(|one| place(&one.url, one.content != "git"));
    let named = sources.iter().filter_map(|source| {
        let is_chart = source["chart"].as_str().is_some_and(|chart| !chart.is_empty());
        Some(place(source["repoURL"].as_str()?, is_chart))
    });
    for place in mounted.chain(named) {
        let tried = |other: &Endpoint| other.address == place.address;
        if !known.iter().any(tried) && !places.iter().any(tried) {
            places.push(place);
        }
    }
    places
}

/// Charts are in repositories, or in registries, which Argo CD names without a scheme.
fn place(url: &str, is_chart: bool) -> Endpoint {
    let (purpose, address) = if let Some(reference) = url.strip_prefix("oci://") {
        (Purpose::Registry, registry(reference).0)
    } else if is_chart && !url.contains("://") {
        (Purpose::Registry, registry(url).0)
    } else if is_chart {
        (Purpose::Charts, url)
    } else {
        (Purpose::Git, url)
    };
    Endpoint { purpose, address: address.to_owned() }
}

async fn reach(place: &Endpoint, mounted: &Mounted) -> Findings {
    if place.purpose != Purpose::Git {
        return registries::reach(place, mounted).await;
    }
    let git = login(&place.address, mounted);
    let is_ssh = matches!(GitAddress::parse(&place.address), GitAddress::Ssh(_));
    let tried = if is_ssh && git.login.is_none() {
        Tried::NotTried("no credentials mounted for it: only Argo CD can check it".to_owned())
    } else {
        match git::reach(&place.address, git).await.0 {
            Tried::Away(why, _) => {
                let next = "check the address in the Applications that use it, and `ca.crt` or \
                            `known_hosts` in the folder of its credentials";
                Tried::Away(why, next.to_owned())
            }
            tried => tried,
        }
    };
    let (check, reach) = judge(place, &tried);
    Findings { checks: vec![check], connectivity: vec![reach], ..Findings::default() }
}

static NOTHING: Git = Git { login: None, known_hosts: None, authority: None };

/// As Argo CD chooses: the repository itself, or the longest template that it begins with.
fn login<'a>(url: &str, mounted: &'a Mounted) -> &'a Git {
    let repositories = mounted.repositories.iter().filter(|one| match one.kind {
        RepositoryKind::One => one.url == url,
        RepositoryKind::Template => url.starts_with(&one.url),
    });
    let best = repositories.max_by_key(|one| (one.kind == RepositoryKind::One, one.url.len()));
    best.map_or(&NOTHING, |one| &one.git)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tiphys_install::mounted::Repository;

    use super::*;

    fn repository(name: &str, url: &str, kind: RepositoryKind) -> Repository {
        Repository {
            name: name.to_owned(),
            url: url.to_owned(),
            kind,
            content: "git".to_owned(),
            proxy: None,
            no_proxy: None,
            git: Git { known_hosts: Some(name.to_owned()), ..Git::default() },
        }
    }

    #[test]
    fn each_place_is_tried_once_for_what_it_is() {
        let mounted = Mounted {
            repositories: vec![
                repository("one", "https://git.example/one.git", RepositoryKind::One),
                repository("all", "https://git.example/", RepositoryKind::Template),
            ],
            ..Mounted::default()
        };
        let sources = [
            json!({ "repoURL": "https://git.example/platform.git", "path": "a" }),
            json!({ "repoURL": "https://git.example/one.git", "path": "a" }),
            json!({ "repoURL": "https://charts.example", "chart": "web" }),
            json!({ "repoURL": "registry.example:5000/charts", "chart": "db" }),
            json!({ "repoURL": "oci://registry.example:5000/other" }),
            json!({ "repoURL": "git@git.example:two.git", "path": "b" }),
            json!({ "path": "nothing" }),
        ];
        let known = [Endpoint {
            purpose: Purpose::Git,
            address: "https://git.example/platform.git".to_owned(),
        }];
        let places = places(&sources, &known, &mounted);
        let places: Vec<(&str, &str)> =
            places.iter().map(|place| (place.purpose.as_str(), &*place.address)).collect();
        assert_eq!(
            places,
            [
                ("git", "https://git.example/one.git"),
                ("charts", "https://charts.example"),
                ("registry", "registry.example:5000"),
                ("git", "git@git.example:two.git"),
            ]
        );
    }

    #[test]
    fn the_login_is_that_of_the_repository_or_of_the_longest_template() {
        let mounted = Mounted {
            repositories: vec![
                repository("all", "https://git.example/", RepositoryKind::Template),
                repository("team", "https://git.example/team/", RepositoryKind::Template),
                repository("one", "https://git.example/one.git", RepositoryKind::One),
            ],
            ..Mounted::default()
        };
        let chosen = |url: &str| login(url, &mounted).known_hosts.clone();
        assert_eq!(chosen("https://git.example/one.git").as_deref(), Some("one"));
        assert_eq!(chosen("https://git.example/team/a.git").as_deref(), Some("team"));
        assert_eq!(chosen("https://git.example/b.git").as_deref(), Some("all"));
        assert_eq!(chosen("https://elsewhere.example/b.git"), None);
    }
}
