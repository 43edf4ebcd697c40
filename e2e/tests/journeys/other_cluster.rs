//! Apps on another cluster than Argo CD's. Here it is the same one under another address: whoever
//! goes by destinations cannot tell, and everything that is asked about has a double on this one.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::DeleteParams;
use kube::config::Kubeconfig;
use secrecy::ExposeSecret as _;
use serde_json::json;
use tiphys_e2e::{Site, World, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::Criterion;
use tiphys_model::criterion::ServiceCriterion;
use tiphys_model::platform::{Retry, Timeouts};

use crate::audit::Mark;
use crate::deploy::{arguments, configure};
use crate::teardown::teardown;

pub(crate) async fn is_not_mistaken_for_this_one(world: Arc<World>) {
    let mut site = Site::new(&world, "edge").await;
    let cluster = register(&site).await;
    let mut app = AppSource::new("edge-app", crashes(&site).await);
    app.cluster = Some(cluster.clone());
    let limit = Duration::from_secs(120);
    app.timeouts = Some(Timeouts { sync: limit, health: limit });
    app.retry = Some(Retry { limit: 0, ..Retry::default() });
    // This Service exists on every cluster.
    let service = "kubernetes".to_owned();
    let namespace = Some("default".to_owned());
    app.health = vec![Criterion::Tcp(ServiceCriterion { namespace, port: 443, service })];
    site.platform.apps = vec![app];
    site.commit("an app on another cluster, with a criterion");
    let file = site.platform_file();
    configure(&world, &file).await;

    let before = Mark::now(&world);
    let (code, _, stderr) = tiphys::said(&tiphys::run(&arguments(&file), &world.kubeconfig).await);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains(&format!("`edge-app` on {cluster}")), "{stderr}");
    assert!(!before.writes(&site).operations().contains_key("edge-app"), "nothing of it is synced");

    site.platform.apps[0].health.clear();
    site.commit("without it");
    let file = site.platform_file();
    let (code, _, stderr) = tiphys::said(&tiphys::run(&arguments(&file), &world.kubeconfig).await);
    assert_eq!(code, Some(1), "{stderr}");
    let unseen =
        format!("it runs on the cluster {cluster}; Argo CD does not allow this account to read");
    assert!(stderr.contains(&unseen), "a pod of that name here is another one: {stderr}");

    let told = teardown(&world, &file, &[], 0).await;
    assert!(told.events.iter().any(|event| event["app"] == "edge-app"), "{:#?}", told.events);
    let secrets = site.objects("v1", "Secret", Some("argocd"));
    secrets.delete("edge-cluster", &DeleteParams::default()).await.expect("it was made here");
    site.close().await;
}

/// Makes the cluster known to Argo CD by the address that this machine has for it.
async fn register(site: &Site) -> String {
    let config = Kubeconfig::read_from(&site.world.kubeconfig).expect("a kubeconfig");
    let cluster = config.clusters[0].cluster.clone().expect("a cluster");
    let user = config.auth_infos[0].auth_info.clone().expect("a user");
    let address = cluster.server.expect("an address");
    let authority = cluster.certificate_authority.expect("an authority");
    let authority = std::fs::read(authority).expect("its certificate");
    let access = json!({
        "bearerToken": user.token.expect("a token").expose_secret(),
        "tlsClientConfig": { "caData": STANDARD.encode(authority) },
    });
    site.apply(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": "edge-cluster", "namespace": "argocd",
            "labels": { "argocd.argoproj.io/secret-type": "cluster" },
        },
        "stringData": { "name": "edge", "server": address, "config": access.to_string() },
    }))
    .await;
    address
}

/// Its container ends, again and again.
async fn crashes(site: &Site) -> Behaviour {
    let argocd = site.objects("apps/v1", "Deployment", Some("argocd"));
    let server = argocd.get("argocd-server").await.expect("Argo CD is there");
    let image = &server.data["spec"]["template"]["spec"]["containers"][0]["image"];
    let container = json!({
        "name": "app", "image": image, "command": ["sh", "-c", "exit 1"],
        "readinessProbe": { "exec": { "command": ["false"] } },
    });
    let labels = json!({ "app": "edge-app" });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "edge-app" },
        "spec": {
            "progressDeadlineSeconds": 15,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    });
    Behaviour::Resource { manifests: deployment.to_string() }
}
