//! How Argo CD logs in to repositories.

use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use tiphys_model::Platform;
use tiphys_model::platform::Source;

use super::objects::metadata;
use super::trust;
use crate::mounted::{Git, Login, Mounted, Repository, RepositoryKind};
use tiphys_cluster::encoded;
use tiphys_cluster::names;

/// A Secret for each: the platform's own, if somebody says how to log in there, and others.
pub(super) fn secrets(
    platform: &Platform,
    source: Option<&Source>,
    mounted: &Mounted,
) -> Vec<Value> {
    let own = names::repository(platform);
    let mut secrets = Vec::new();
    if let Some(source) = source
        && mounted.git.login.is_some()
    {
        let kind = RepositoryKind::One;
        let data = json!({ "type": encoded("git"), "url": encoded(&source.repo_url) });
        secrets.push(secret(platform, &own, kind, data, &mounted.git));
    }
    for repository in &mounted.repositories {
        let Repository { name, url, kind, content, proxy, no_proxy, git } = repository;
        let mut data = json!({ "type": encoded(content), "url": encoded(url) });
        for (field, value) in [("proxy", proxy), ("noProxy", no_proxy)] {
            if let Some(value) = value {
                data[field] = encoded(value).into();
            }
        }
        secrets.push(secret(platform, &format!("{own}.{name}"), *kind, data, git));
    }
    secrets
}

fn secret(
    platform: &Platform,
    name: &str,
    kind: RepositoryKind,
    mut data: Value,
    git: &Git,
) -> Value {
    match &git.login {
        Some(Login::Key(key)) => data["sshPrivateKey"] = encoded(key.expose_secret()).into(),
        Some(Login::Password { username, password }) => {
            data["username"] = encoded(username).into();
            data["password"] = encoded(password.expose_secret()).into();
        }
        None => {}
    }
    let mut metadata = metadata(platform, name);
    metadata["labels"]["argocd.argoproj.io/secret-type"] = kind.as_str().into();
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data })
}

/// The authorities of all servers, by their names.
pub(super) fn authorities(source: Option<&Source>, mounted: &Mounted) -> Map<String, Value> {
    let own = source.map(|source| (&source.repo_url, &mounted.git));
    let others = mounted.repositories.iter().map(|one| (&one.url, &one.git));
    let known = |(url, git): (&String, &Git)| {
        Some((trust::https_host(url)?.to_owned(), git.authority.clone()?.into()))
    };
    own.into_iter().chain(others).filter_map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configure::objects::tests::platform;

    fn git(authority: &str) -> Git {
        Git { authority: Some(authority.to_owned()), ..Git::default() }
    }

    #[test]
    fn each_repository_has_a_secret_of_its_own() {
        let platform = platform("prod");
        let mut mounted = Mounted { git: git("ours"), ..Mounted::default() };
        let source = platform.source.as_ref();
        assert!(secrets(&platform, source, &mounted).is_empty(), "nobody says how to log in");
        let password = "token".to_owned().into();
        mounted.git.login = Some(Login::Password { username: "me".to_owned(), password });
        mounted.repositories.push(Repository {
            name: "charts".to_owned(),
            url: "https://charts.example:8443/stable".to_owned(),
            kind: RepositoryKind::Template,
            content: "helm".to_owned(),
            proxy: Some("http://proxy:3128".to_owned()),
            no_proxy: None,
            git: git("theirs"),
        });
        let [own, charts] = &secrets(&platform, source, &mounted)[..] else {
            unreachable!("two repositories")
        };
        assert_eq!(own["metadata"]["name"], "tiphys-prod-repository");
        assert_eq!(charts["metadata"]["name"], "tiphys-prod-repository.charts");
        let label = &charts["metadata"]["labels"]["argocd.argoproj.io/secret-type"];
        assert_eq!(label, "repo-creds");
        assert_eq!(charts["data"]["proxy"], encoded("http://proxy:3128"));
        assert_eq!(charts["data"].get("noProxy"), None);
        assert_eq!(own["data"]["password"], encoded("token"));
        let known = authorities(source, &mounted);
        assert_eq!(
            Value::from(known),
            json!({ "git.example": "ours", "charts.example": "theirs" })
        );
    }
}
