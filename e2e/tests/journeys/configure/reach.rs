//! An Argo CD whose API server is not where, and not known as, ours is.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use tiphys_e2e::{Site, World, tiphys, until};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::{arguments, configure};

const SERVER: &str = "argocd-server";
const CERTIFICATE: &str = "argocd-server-tls";

/// Below a path, and with a certificate for a public name from an authority that nobody knows here.
pub(crate) async fn elsewhere(world: Arc<World>) {
    let mut site = Site::new(&world, "reach").await;
    site.platform.apps = vec![AppSource::new("reach-app", Behaviour::ConfigOnly)];
    site.commit("an app");
    let file = site.platform_file();
    configure(&world, &file).await;
    let deployed = async || {
        let (code, _, stderr) =
            tiphys::said(&tiphys::run(&arguments(&file), &world.kubeconfig).await);
        (code, stderr)
    };
    assert_eq!(deployed().await.0, Some(0));

    root_path(&site, json!("/argo/cd")).await;
    let (code, stderr) = deployed().await;
    assert_ne!(code, Some(0), "it is not found where it was: {stderr}");
    configure(&world, &file).await;
    let (code, stderr) = deployed().await;
    assert_eq!(code, Some(0), "{stderr}");

    public_certificate(&site).await;
    let (code, stderr) = deployed().await;
    assert_eq!(code, Some(6), "nobody has said that this is Argo CD: {stderr}");
    configure(&world, &file).await;
    let (code, stderr) = deployed().await;
    assert_eq!(code, Some(0), "{stderr}");

    let secrets = site.objects("v1", "Secret", Some("argocd"));
    secrets.delete(CERTIFICATE, &DeleteParams::default()).await.expect("it was made here");
    root_path(&site, Value::Null).await;
    configure(&world, &file).await;
    let (code, stderr) = deployed().await;
    assert_eq!(code, Some(0), "{stderr}");
    site.close().await;
}

async fn root_path(site: &Site, path: Value) {
    let maps = site.objects("v1", "ConfigMap", Some("argocd"));
    let patch = Patch::Merge(json!({ "data": { "server.rootpath": path } }));
    maps.patch("argocd-cmd-params-cm", &PatchParams::default(), &patch).await.expect("it is there");
    restart(site, SERVER).await;
}

async fn public_certificate(site: &Site) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key"));
    let authority = authority.expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["argocd.example.org".to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, &authority).expect("a certificate");
    site.apply(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": { "name": CERTIFICATE, "namespace": "argocd" },
        "stringData": { "tls.crt": certificate.pem(), "tls.key": key.serialize_pem() },
    }))
    .await;
    restart(site, SERVER).await;
}

/// A part of Argo CD begins anew, with what it has been told.
pub(crate) async fn restart(site: &Site, part: &str) {
    let pods: Api<Pod> = Api::namespaced(site.world.client.clone(), "argocd");
    let of_part = ListParams::default().labels(&format!("app.kubernetes.io/name={part}"));
    let old = pods.list(&of_part).await.expect("a list").items;
    for pod in &old {
        pods.delete(&pod.name_any(), &DeleteParams::default()).await.expect("it can be restarted");
    }
    let (pods, of_part, old) = (&pods, &of_part, &old);
    until("the new pod is ready", || async move {
        let new = pods.list(of_part).await.expect("a list").items;
        let ready = |pod: &Pod| {
            let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
        };
        let is_new = |pod: &Pod| old.iter().all(|old| old.uid() != pod.uid());
        !new.is_empty() && new.iter().all(|pod| is_new(pod) && ready(pod))
    })
    .await;
}
