//! What preflight says of what the apps render, where an Argo CD is there already.

use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_e2e::{PlatformFile, Site, World, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::audit::Mark;
use crate::deploy::configure;

const SHOP: &str = "\
apiVersion: rendered.example.org/v1
kind: Shop
metadata: { name: shop }
";

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: shops.rendered.example.org }
spec:
  group: rendered.example.org
  names: { kind: Shop, plural: shops }
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
";

/// Rendered by Argo CD and judged against the cluster; nothing is written.
pub(crate) async fn is_judged(world: Arc<World>) {
    let mut site = Site::new(&world, "rendered").await;
    let resource = |manifests: &str| Behaviour::Resource { manifests: manifests.to_owned() };
    site.platform.apps = vec![
        AppSource::new("rendered-web", Behaviour::ConfigOnly),
        AppSource::new("rendered-shop", resource(SHOP)),
        AppSource::new("rendered-broken", Behaviour::InvalidManifest),
        AppSource::new("rendered-later", Behaviour::ConfigOnly),
    ];
    site.commit("four apps");
    let file = site.platform_file();
    configure(&world, &file).await;
    let rows = rows(&world, &file).await;
    assert_eq!(row(&rows, "manifests of apps")["outcome"], "skipped", "{rows:#?}");

    let namespace = site.platform.namespace("rendered-web");
    site.apply(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
    }))
    .await;
    for app in ["rendered-web", "rendered-shop", "rendered-broken"] {
        site.create_application(app, "HEAD", false).await;
        site.until(app, "compared once", |one| one.status.reconciled_at.is_some()).await;
    }
    let before = Mark::now(&world);
    let rows = self::rows(&world, &file).await;
    assert_eq!(before.writes(&site).of_ours(), std::collections::BTreeMap::new());
    let expect = |name: &str, outcome: &str, found: &str| {
        let row = row(&rows, name);
        assert_eq!(row["outcome"], outcome, "{row:#}");
        assert!(row["found"].as_str().is_some_and(|text| text.contains(found)), "{row:#}");
    };
    expect("manifests of apps", "warning", "(app rendered-broken)");
    expect("kinds of apps", "warning", "rendered.example.org/v1 Shop (app rendered-shop)");
    expect("namespaces of apps", "warning", &format!("{namespace} (app rendered-web)"));

    // An app that brings the CRD, and one that is repaired.
    site.platform.apps[0].behaviour = resource(CRD);
    site.platform.apps[2].behaviour = Behaviour::ConfigOnly;
    site.commit("repaired");
    for app in ["rendered-web", "rendered-broken"] {
        let address = tiphys_argocd::AppAddress::own(app, &site.platform.project);
        world.argocd.refresh(&address).await.expect("a refresh");
    }
    let rows = self::rows(&world, &file).await;
    let outcomes = ["manifests of apps", "kinds of apps"].map(|name| &row(&rows, name)["outcome"]);
    assert_eq!(outcomes, ["pass", "pass"], "{rows:#?}");
    site.close().await;
}

async fn rows(world: &World, file: &PlatformFile) -> Vec<Value> {
    let args = ["preflight", "-f", file.path(), "-o", "json"];
    let (_, stdout, stderr) = tiphys::said(&tiphys::run(&args, &world.kubeconfig).await);
    let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| unreachable!("{stderr}"));
    report["checks"].as_array().cloned().expect("checks")
}

fn row<'a>(rows: &'a [Value], name: &str) -> &'a Value {
    rows.iter().find(|row| row["name"] == name).expect("the row")
}
