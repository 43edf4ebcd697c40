//! Platforms drawn by lot, among objects of others drawn by lot: whatever is not the platform's is
//! afterwards as it was before.

use std::sync::Arc;

use kube::Api;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::{Value, json};
use tiphys_e2e::inventory::{Inventory, inventory_of};
use tiphys_e2e::{Site, World, count, figure, seed};
use tiphys_lab::repository::Behaviour;
use tiphys_sim::Chance;

use super::others::create;
use super::{app, teardown};
use crate::deploy::{configure, deploy};

/// How many platforms: a soak sets `TIPHYS_E2E_PLATFORMS=50`.
const PLATFORMS: u32 = 1;
/// Who has created objects that are nobody's to remove.
const PEOPLE: [&str; 4] = ["kubectl-create", "kubectl", "helm", "terraform"];

/// What somebody has beside, or within, a platform.
struct Beside {
    api: Api<DynamicObject>,
    name: String,
    uid: String,
}

pub(crate) async fn among_others(world: Arc<World>) {
    let platforms = count("TIPHYS_E2E_PLATFORMS", PLATFORMS);
    let mut chance = Chance::new(seed());
    let mut site = Site::new(&world, "lots").await;
    let (mut others, mut gone) = (0, 0);
    for round in 0..platforms {
        let apps = chance.between(1, 4);
        site.platform.apps = (0..apps).map(|number| drawn(number, &mut chance)).collect();
        site.commit("drawn by lot");
        let file = site.platform_file();
        configure(&world, &file).await;
        deploy(&world, &file, 0).await;
        let beside = put(&site, apps, round, &mut chance).await;
        let before = of_others(&world, &beside).await;
        let told = teardown(&world, &file, &[], 0).await;
        assert_eq!(of_others(&world, &beside).await, before, "round {round}: {}", told.stderr);
        for Beside { api, name, uid } in &beside {
            let found = api.get_opt(name).await.expect("an answer");
            let found = found.and_then(|found| found.metadata.uid);
            assert_eq!(found.as_ref(), Some(uid), "round {round}: {name}\n{}", told.stderr);
        }
        others += beside.len();
        gone += usize::try_from(apps).expect("a few");
        for Beside { api, name, .. } in &beside {
            api.delete(name, &DeleteParams::default()).await.expect("its owner may");
        }
        clear(&site, apps).await;
    }
    figure(&format!(
        "{platforms} platforms with {gone} apps gone, {others} objects of others stay"
    ));
    site.close().await;
}

fn drawn(number: u64, chance: &mut Chance) -> tiphys_lab::repository::AppSource {
    let name = format!("lots-{number}");
    let mut text = map(&format!("{name}-goes"), "");
    if chance.once_in(2) {
        text += &map(&format!("{name}-kept"), KEPT);
    }
    if chance.once_in(2) {
        let (kind, singular) = (format!("Lot{number}"), format!("lot{number}"));
        text += &CRD.replace("KIND", &kind).replace("NAME", &singular);
    }
    let before: Vec<String> = (0..number).map(|other| format!("lots-{other}")).collect();
    let needs = chance.pick(&before).cloned();
    let drawn = app(&name, Behaviour::Resource { manifests: text }, 60);
    drawn.depends_on(&needs.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Objects of people in the namespaces of apps, in one that was there before, and of the kinds that
/// apps bring.
async fn put(site: &Site, apps: u64, round: u32, chance: &mut Chance) -> Vec<Beside> {
    let mut beside = Vec::new();
    for number in 0..apps {
        let namespace = format!("lots-{number}");
        let kinds = [("v1", "Secret"), ("v1", "ConfigMap"), ("v1", "ServiceAccount")];
        for at in 0..chance.between(0, 2) {
            let (version, kind) = *chance.pick(&kinds).expect("kinds");
            let api = site.objects(version, kind, Some(&namespace));
            beside.push(made(api, version, kind, &format!("theirs-{round}-{at}"), chance).await);
        }
        let kind = format!("Lot{number}");
        let api = site.objects("lots.example.org/v1", &kind, Some("default"));
        let defined = api.list_metadata(&kube::api::ListParams::default()).await.is_ok();
        if defined && chance.once_in(2) {
            let name = format!("lots-theirs-{round}");
            beside.push(made(api, "lots.example.org/v1", &kind, &name, chance).await);
        }
    }
    beside
}

async fn made(
    api: Api<DynamicObject>,
    version: &str,
    kind: &str,
    name: &str,
    chance: &mut Chance,
) -> Beside {
    let who = chance.pick(&PEOPLE).expect("people");
    // Without any field, the API server does not note who wrote it.
    let metadata = json!({ "name": name, "labels": { "of": name } });
    let object: Value = json!({ "apiVersion": version, "kind": kind, "metadata": metadata });
    create(&api, object, who).await;
    let uid = api.get(name).await.expect("it was made").metadata.uid.expect("a uid");
    Beside { api, name: name.to_owned(), uid }
}

/// What they look like, as far as it is not the platform's.
async fn of_others(world: &World, beside: &[Beside]) -> Inventory {
    let mut all = inventory_of(&world.client, "lots").await.expect("an inventory");
    all.retain(|key, _| beside.iter().any(|Beside { name, .. }| key.contains(name.as_str())));
    all
}

/// What stayed for the sake of it is nobody's any more.
async fn clear(site: &Site, apps: u64) {
    let definitions = site.objects("apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    let namespaces = site.objects("v1", "Namespace", None);
    for number in 0..apps {
        let crd = format!("lot{number}s.lots.example.org");
        definitions.delete(&crd, &DeleteParams::default()).await.ok();
        namespaces.delete(&format!("lots-{number}"), &DeleteParams::default()).await.ok();
    }
    site.until_namespaces_are_gone().await;
}

fn map(name: &str, annotations: &str) -> String {
    format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: {name}{annotations} }}\n")
}

const KEPT: &str = ", annotations: { argocd.argoproj.io/sync-options: Delete=false }";

const CRD: &str = "\
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: NAMEs.lots.example.org }
spec:
  group: lots.example.org
  scope: Namespaced
  names: { kind: KIND, plural: NAMEs, singular: NAME }
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object } }
";
