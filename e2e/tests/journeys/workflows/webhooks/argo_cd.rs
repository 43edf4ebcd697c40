//! Pushes without Argo Events: Argo CD's own webhook tells of them, or Argo CD finds them when it looks.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tiphys_e2e::{Site, World, count};
use tiphys_lab::packages;

use super::caller::signed;
use super::{SECRET, configure, pushed, told};
use crate::workflows::automatic::{deployed_once, take_down, two_apps};

/// Argo CD looks every two minutes, and waits up to a minute more, so that not all apps are due at once;
/// then the deploy loop looks, and a pod starts.
const POLL: Duration = Duration::from_secs(120 + 60 + 30);

async fn arrange(world: &Arc<World>, name: &str) -> Site {
    let site = two_apps(world, name).await;
    site.commit("two apps");
    configure(&site, world).await;
    deployed_once(&site, world).await;
    site
}

pub(crate) async fn hears_of_pushes(world: Arc<World>) {
    packages::ensure(&[("curl", "/usr/bin/curl")], &[]).expect("Debian's packages");
    let mut site = arrange(&world, "wf-hook").await;
    let services = site.objects("v1", "Service", Some("argocd"));
    let server = services.get("argocd-server").await.expect("Argo CD's API server");
    let address = server.data["spec"]["clusterIP"].as_str().expect("an address").to_owned();
    let page = page(&site.platform.repo_url);
    let mut seconds = Vec::new();
    for number in 0..count("TIPHYS_E2E_PUSHES", 20_u32) {
        let tell = async |commit: &str| call(&address, &page, commit);
        seconds.push(pushed(&mut site, &world, &format!("push {number}"), tell).await.1);
    }
    told("Argo CD's webhook", seconds);
    take_down(&site).await;
    site.close().await;
}

pub(crate) async fn finds_pushes(world: Arc<World>) {
    let mut site = arrange(&world, "wf-poll").await;
    let mut seconds = Vec::new();
    for number in 0..count("TIPHYS_E2E_POLLS", 3_u32) {
        let nobody = async |_: &str| {};
        seconds.push(pushed(&mut site, &world, &format!("push {number}"), nobody).await.1);
    }
    assert!(seconds.iter().all(|taken| *taken < POLL.as_secs_f64()), "{seconds:?}");
    told("nobody", seconds);
    take_down(&site).await;
    site.close().await;
}

/// Where people would look at the repository: the address without user, port and ending.
fn page(repo_url: &str) -> String {
    let rest = repo_url.split_once("://").map_or(repo_url, |(_, rest)| rest);
    let (server, path) = rest.split_once('/').expect("a path");
    let host = server.rsplit('@').next().and_then(|host| host.split(':').next()).expect("a host");
    format!("https://{host}/{}", path.trim_end_matches(".git"))
}

/// As GitHub calls it.
fn call(address: &str, page: &str, commit: &str) {
    let body = json!({
        "ref": "refs/heads/main", "before": "0".repeat(40), "after": commit, "commits": [],
        "repository": { "html_url": page, "default_branch": "main" },
    });
    let body = body.to_string();
    let mut curl = Command::new("curl");
    // The certificate is Argo CD's own.
    curl.args(["--silent", "--insecure", "--output", "/dev/null", "--write-out", "%{http_code}"]);
    curl.args(["--header", "Content-Type: application/json", "--data-binary", &body]);
    for (name, value) in signed(SECRET, body.as_bytes()) {
        curl.args(["--header", &format!("{name}: {value}")]);
    }
    let output = curl.arg(format!("https://{address}/api/webhook")).output().expect("curl");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "200", "{output:?}");
}
