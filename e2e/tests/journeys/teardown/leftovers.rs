//! What outlives a platform.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::DeleteParams;
use serde_json::{Value, json};
use tiphys_e2e::inventory::difference;
use tiphys_e2e::{Site, World, tiphys};
use tiphys_lab::repository::Behaviour;

use super::{Told, app, of, teardown};
use crate::deploy::{configure, deploy};

/// An app that leaves things behind: they are told one by one, and removed on request.
pub(crate) async fn with_leftovers(world: Arc<World>) {
    let mut site = Site::new(&world, "left").await;
    // What is in no namespace may be left of a test that failed.
    for (version, kind, name) in [
        ("v1", "PersistentVolume", "left-volume"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "left-hook"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "lefts.left-made.example.org"),
    ] {
        site.objects(version, kind, None).delete(name, &DeleteParams::default()).await.ok();
    }
    site.apply(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "left-before" },
    }))
    .await;
    site.platform.apps =
        vec![app("left-app", Behaviour::Resource { manifests: LEAVING.to_owned() }, 60)];
    site.commit("an app that leaves things behind");
    let file = site.platform_file();
    let before = of(&world, "left").await;
    configure(&world, &file).await;
    // As a provisioner makes it for a claim.
    site.apply(volume()).await;
    deploy(&world, &file, 0).await;
    // As an operator makes them while it runs.
    site.apply(webhook()).await;
    site.apply(definition()).await;

    let told = teardown(&world, &file, &["--retain-volumes"], 0).await;
    let expected: BTreeSet<String> = [
        "ConfigMap/argocd/tiphys-left",
        "CustomResourceDefinition/lefts.left-made.example.org",
        "PersistentVolume/left-volume",
        "ValidatingWebhookConfiguration/left-hook",
    ]
    .map(str::to_owned)
    .into();
    // Other tests make and break things meanwhile, which may be anybody's.
    let of_ours = |told: &Told| -> BTreeSet<String> {
        told.left().into_iter().filter(|object| object.contains("left")).collect()
    };
    assert_eq!(of_ours(&told), expected, "{}", told.stderr);
    let kept = "ConfigMap/left-before/left-kept";
    assert!(told.kept().contains(kept), "{}", told.stderr);
    let mut left: BTreeSet<String> = difference(&before, &of(&world, "left").await)
        .into_iter()
        .map(|line| object_of(&line))
        .collect();
    // Its name does not begin with that of the site.
    left.insert("CustomResourceDefinition/lefts.left-made.example.org".to_owned());
    assert!(left.remove(kept));
    assert_eq!(left, expected, "what is told is what is there");

    // The platform is gone, and who asks is still told, as far as it was the platform's.
    let output = tiphys::run(&["status", "-f", file.path(), "-o", "json"], &world.kubeconfig).await;
    let (code, stdout, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let status: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(
        status["leftovers"],
        json!([
            "PersistentVolume/left-volume: Released volume of the claim left-app/left-data",
            "ValidatingWebhookConfiguration/left-hook: it points to the service \
             left-app/left-hook, which does not exist",
        ]),
    );
    assert!(stderr.contains("to remove the leftovers: tiphys teardown"), "{stderr}");

    let told = teardown(&world, &file, &["--clean-leftovers"], 0).await;
    let perhaps = ["CustomResourceDefinition/lefts.left-made.example.org".to_owned()].into();
    assert_eq!(of_ours(&told), perhaps, "what may be somebody else's is only named");
    let left = difference(&before, &of(&world, "left").await);
    let left: Vec<String> = left.iter().map(|line| object_of(line)).collect();
    assert_eq!(left, [kept], "nobody may take away what is to be kept");
    let definitions = site.objects("apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    definitions
        .delete("lefts.left-made.example.org", &DeleteParams::default())
        .await
        .expect("gone");
    site.close().await;
}

/// `+ group/Kind namespace/name` as a teardown writes it.
fn object_of(line: &str) -> String {
    let mut words = line.split(' ').skip(1);
    let kind = words.next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    format!("{kind}/{}", words.next().unwrap_or_default())
}

const LEAVING: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: left-kept
  namespace: left-before
  annotations: { argocd.argoproj.io/sync-options: Delete=false }
---
apiVersion: v1
kind: Service
metadata: { name: left-hook }
spec: { ports: [{ port: 443 }], selector: { app: none } }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: left-data }
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: \"\"
  volumeName: left-volume
  resources: { requests: { storage: 1Mi } }
";

fn volume() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": "left-volume" },
        "spec": {
            "capacity": { "storage": "1Mi" },
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete",
            "hostPath": { "path": "/tmp/left-volume" },
            "claimRef": { "namespace": "left-app", "name": "left-data" },
        },
    })
}

fn webhook() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "left-hook" },
        "webhooks": [{
            "name": "left-hook.example.org",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "clientConfig": { "service": { "namespace": "left-app", "name": "left-hook" } },
            "rules": [{
                "apiGroups": ["left-made.example.org"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["lefts"],
            }],
        }],
    })
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "lefts.left-made.example.org" },
        "spec": {
            "group": "left-made.example.org",
            "scope": "Cluster",
            "names": { "kind": "Left", "plural": "lefts", "singular": "left" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    })
}
