//! The cluster that the tests run on: the lab's, or one that the environment names.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use http::Method;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{ListParams, LogParams};
use kube::{Api, Client};
use secrecy::SecretString;
use serde_json::{Value, json};
use tiphys_argocd::app_project;
use tiphys_argocd::rest::{Endpoint, REQUEST_TIMEOUT, RestClient, Security};
use tiphys_cluster::RequestError;
use tiphys_lab::git::GitServer;
use tiphys_state::hold::windows;

use crate::{Ground, Place};

pub(crate) const ARGOCD: &str = "argocd";

/// A cluster with Argo CD, and a Git server that both can reach.
pub struct World {
    pub client: Client,
    /// As Argo CD's administrator.
    pub argocd: RestClient,
    pub git: GitServer,
    pub kubeconfig: PathBuf,
    /// Of the lab; another cluster's is not ours to read.
    pub audit_log: Option<PathBuf>,
}

impl Place for World {
    async fn open() -> Result<World, String> {
        World::from_ground(&Ground::open().await?, "argocd-initial-admin-secret").await
    }

    /// The last lines of Argo CD's logs that mention something, for who has to explain a failure.
    async fn log_tails(&self, about: &str) -> String {
        log_tails(&self.client, about).await
    }
}

impl World {
    /// The cluster with its Argo CD; the Secret has the password of the administrator.
    pub async fn from_ground(ground: &Ground, secret: &str) -> Result<World, String> {
        let argocd = log_in(&ground.client, secret).await?;
        Ok(World {
            client: ground.client.clone(),
            argocd,
            git: ground.git.clone(),
            kubeconfig: ground.kubeconfig.clone(),
            audit_log: ground.audit_log.clone(),
        })
    }

    /// The apps of a project that are held.
    pub async fn held(&self, project: &str) -> BTreeSet<String> {
        let projects = app_project::api(&self.client, ARGOCD);
        let project = projects.get(project).await.expect("the project can be read");
        let windows = project.data["spec"]["syncWindows"].as_array();
        windows.map(|windows| windows::held(windows)).unwrap_or_default()
    }
}

pub(crate) async fn log_tails(client: &Client, about: &str) -> String {
    let pods: Api<Pod> = Api::namespaced(client.clone(), ARGOCD);
    let listed = pods.list(&ListParams::default()).await;
    let mut text = String::new();
    for pod in listed.into_iter().flatten() {
        let name = pod.metadata.name.unwrap_or_default();
        let params = LogParams { tail_lines: Some(2000), ..LogParams::default() };
        let log = pods.logs(&name, &params).await.unwrap_or_else(|error| error.to_string());
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(about)).collect();
        let last = &lines[lines.len().saturating_sub(15)..];
        if !last.is_empty() {
            text += &format!("--- {name}\n{}\n", last.join("\n"));
        }
    }
    text
}

async fn log_in(client: &Client, secret: &str) -> Result<RestClient, String> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), ARGOCD);
    let read = async |name: &str, field: &str| {
        let secret = secrets.get(name).await;
        let secret = secret.map_err(|error| RequestError::because(name)(error).to_string())?;
        let value = secret.data.and_then(|mut data| data.remove(field));
        value.map(|value| value.0).ok_or_else(|| format!("the Secret {name} has no {field}"))
    };
    let certificate = read("argocd-secret", "tls.crt").await?;
    let password = read(secret, "password").await?;
    let security = Security::trusting(&certificate).map_err(|error| error.to_string())?;
    let argocd = RestClient::new(Endpoint::new(client.clone(), ARGOCD, security), None);
    let login = json!({ "username": "admin", "password": String::from_utf8_lossy(&password) });
    // A server that has just become ready may not have read its accounts yet.
    for attempt in 0.. {
        let answer: Result<Value, _> =
            argocd.call(Method::POST, "session", Some(&login), REQUEST_TIMEOUT).await;
        match answer {
            Ok(session) => {
                let token = session["token"].as_str().ok_or("a session without a token")?;
                return Ok(argocd.with_token(SecretString::from(token)));
            }
            Err(error) if attempt == 20 => return Err(format!("Argo CD's login: {error}")),
            Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
    unreachable!("the loop ends by returning")
}
