//! What a run does when the cluster, or its right to act, goes away.

use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::Value;
use tiphys_argocd::rest::REQUEST_TIMEOUT;
use tiphys_e2e::{PlatformFile, Site, World};
use tiphys_lab::{Cluster, Home};

use crate::deploy::{configure, deploy};
use crate::resume::start;

/// Shorter than what is left of a Lease that was renewed in time.
const A_WHILE: Duration = Duration::from_secs(20);
/// Longer than a Lease.
const FOR_GOOD: Duration = Duration::from_secs(50);

pub(crate) async fn for_a_while(world: Arc<World>) {
    let (site, file) = ready(&world, "away").await;
    let run = start(&world, &file);
    tokio::time::sleep(Duration::from_secs(6)).await;
    silence(A_WHILE).await;
    assert_eq!(ended(run).await, Some(0));
    site.close().await;
}

pub(crate) async fn for_good(world: Arc<World>) {
    let (site, file) = ready(&world, "gone").await;
    let run = start(&world, &file);
    tokio::time::sleep(Duration::from_secs(6)).await;
    silence(FOR_GOOD).await;
    assert_eq!(ended(run).await, Some(6));
    // And when it is back, the next run goes on where that one was.
    deploy(&world, &file, 0).await;
    site.close().await;
}

pub(crate) async fn a_revoked_token(world: Arc<World>) {
    let (site, file) = ready(&world, "revoked").await;
    let run = start(&world, &file);
    tokio::time::sleep(Duration::from_secs(6)).await;
    revoke(&world, &site.platform.name).await;
    assert_eq!(ended(run).await, Some(4));
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;
    site.close().await;
}

async fn ready(world: &Arc<World>, name: &str) -> (Site, PlatformFile) {
    let site = Site::reference(world, name, Duration::from_secs(2)).await;
    site.commit("the reference platform");
    let file = site.platform_file();
    configure(world, &file).await;
    (site, file)
}

async fn ended(run: Child) -> Option<i32> {
    let wait = move || run.wait_with_output().expect("it ends");
    tokio::task::spawn_blocking(wait).await.expect("nobody cancels it").status.code()
}

/// Keeps the API server from answering, without ending any connection.
async fn silence(time: Duration) {
    let status = Cluster::new(Home::from_environment(), |_| {}).status();
    let server = status.processes.iter().find(|(name, _)| *name == "kube-apiserver");
    let pid = server.and_then(|(_, pid)| *pid).expect("the lab has an API server");
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid.to_string()]).status();
        assert!(sent.expect("kill can be started").success());
    };
    signal("-STOP");
    tokio::time::sleep(time).await;
    signal("-CONT");
}

/// Takes the platform's token back, as Argo CD's administrator.
async fn revoke(world: &World, platform: &str) {
    let account: Value = world
        .argocd
        .call(Method::GET, "account/tiphys", None::<&()>, REQUEST_TIMEOUT)
        .await
        .expect("the account can be read");
    let ids = account["tokens"].as_array().into_iter().flatten();
    let mut ids = ids.filter_map(|token| token["id"].as_str());
    let id = ids.find(|id| id.starts_with(&format!("{platform}."))).expect("a token");
    let path = format!("account/tiphys/token/{id}");
    let _: Value = world
        .argocd
        .call(Method::DELETE, &path, None::<&()>, REQUEST_TIMEOUT)
        .await
        .expect("the token can be revoked");
}
