//! What a run does when the cluster, or its right to act, goes away.

use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::Value;
use tiphys_argocd::rest::REQUEST_TIMEOUT;
use tiphys_e2e::{PlatformFile, Site, World, figure};
use tiphys_lab::{Cluster, Home};

use crate::deploy::{configure, deploy};
use crate::resume::{signal, start};

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

/// Whoever insists need not wait for a cluster that does not answer.
pub(crate) async fn while_somebody_insists(world: Arc<World>) {
    let (site, file) = ready(&world, "hush").await;
    let run = start(&world, &file);
    tokio::time::sleep(Duration::from_secs(6)).await;
    tell_api_server("-STOP");
    // A renewal of the Lease is under way.
    tokio::time::sleep(Duration::from_secs(7)).await;
    signal(&run, "INT");
    tokio::time::sleep(Duration::from_millis(500)).await;
    signal(&run, "INT");
    let began = Instant::now();
    let code = ended(run).await;
    let took = began.elapsed();
    tell_api_server("-CONT");
    assert_eq!(code, Some(130));
    assert!(took < Duration::from_millis(2_500), "{took:?}");
    figure(&format!("{} ms from the second interrupt to the end", took.as_millis()));
    deploy(&world, &file, 0).await;
    site.close().await;
}

/// Keeps the API server from answering, without ending any connection.
pub(crate) async fn silence(time: Duration) {
    tell_api_server("-STOP");
    tokio::time::sleep(time).await;
    tell_api_server("-CONT");
}

fn tell_api_server(signal: &str) {
    let status = Cluster::new(Home::from_environment(), |_| {}).status();
    let server = status.processes.iter().find(|(name, _)| *name == "kube-apiserver");
    let pid = server.and_then(|(_, pid)| *pid).expect("the lab has an API server");
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(sent.expect("kill can be started").success());
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
