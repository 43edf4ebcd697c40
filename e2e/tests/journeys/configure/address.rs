//! An Argo CD whose API server has an address of its own, and a token from its administrators.

use std::sync::Arc;

use http::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::{Value, json};
use tiphys_argocd::rest::REQUEST_TIMEOUT;
use tiphys_e2e::{PlatformFile, Site, World, tiphys, until};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::{arguments, configure};
use crate::teardown::teardown;

/// Of the Service that makes it one.
const PORT: u16 = 30_443;

/// Reached there, known by its certificate, and with the token that was handed out.
pub(crate) async fn is_used(world: Arc<World>) {
    let mut site = Site::new(&world, "address").await;
    site.platform.apps = vec![
        AppSource::new("address-db", Behaviour::ConfigOnly),
        AppSource::new("address-app", Behaviour::ConfigOnly).depends_on(&["address-db"]),
    ];
    site.commit("two apps");
    expose(&site).await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "argocd");
    let own = secrets.get("argocd-secret").await.expect("Argo CD has it").data.unwrap_or_default();
    let own = String::from_utf8(own["tls.crt"].0.clone()).expect("PEM");
    let other = rcgen::generate_simple_self_signed(["argocd.example.org".to_owned()]);
    let other = other.expect("a certificate").cert.pem();
    let server = format!("server: {}:{PORT}", world.git.host());

    let known = file(&site, &format!("{server}\nca: |\n{}", indented(&own)));
    configure(&world, &known).await;
    assert_eq!(deployed(&world, &known).await, (Some(0), String::new()));
    let unknown = file(&site, &format!("{server}\nca: |\n{}", indented(&other)));
    let (code, told) = deployed(&world, &unknown).await;
    assert_eq!(code, Some(6), "{told}");
    assert!(told.contains("spec.argocd.ca"), "{told}");

    // The account is there, so its administrator can hand out a token for it.
    let asked = json!({ "name": "tiphys", "id": "handed-out", "expiresIn": 0 });
    let answer: Value = world
        .argocd
        .call(Method::POST, "account/tiphys/token", Some(&asked), REQUEST_TIMEOUT)
        .await
        .expect("a token");
    site.apply(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "address-token", "namespace": "argocd" },
        "stringData": { "token": answer["token"] },
    }))
    .await;
    let given =
        file(&site, &format!("{server}\ntokenSecret: address-token\nca: |\n{}", indented(&own)));
    configure(&world, &given).await;
    let made = secrets.get("tiphys-address-deploy").await.expect("how Argo CD is reached");
    assert!(!made.data.unwrap_or_default().contains_key("token"), "nobody needs another token");
    assert_eq!(deployed(&world, &given).await, (Some(0), String::new()));
    teardown(&world, &given, &[], 0).await;
    for (version, kind, name) in
        [("v1", "Service", "address-server"), ("v1", "Secret", "address-token")]
    {
        let objects = site.objects(version, kind, Some("argocd"));
        objects.delete(name, &kube::api::DeleteParams::default()).await.expect("it was made here");
    }
    site.close().await;
}

/// A deployment's exit code, and what it says if that is not 0.
async fn deployed(world: &World, file: &PlatformFile) -> (Option<i32>, String) {
    let (code, _, stderr) = tiphys::said(&tiphys::run(&arguments(file), &world.kubeconfig).await);
    (code, if code == Some(0) { String::new() } else { stderr })
}

/// The platform file with more lines in `spec.argocd`.
fn file(site: &Site, lines: &str) -> PlatformFile {
    site.platform_file_with(|text| {
        let root = "    rootProject: address-root\n";
        assert!(text.contains(root), "{text}");
        let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
        text.replace(root, &format!("{root}{lines}"))
    })
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// The API server at a port of the lab's machine.
async fn expose(site: &Site) {
    site.apply(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "address-server", "namespace": "argocd" },
        "spec": {
            "type": "NodePort",
            "selector": { "app.kubernetes.io/name": "argocd-server" },
            "ports": [{ "port": 443, "targetPort": 8080, "nodePort": PORT }],
        },
    }))
    .await;
    let host = site.world.git.host();
    until("the port is open", || async move {
        tokio::net::TcpStream::connect((host, PORT)).await.is_ok()
    })
    .await;
}
