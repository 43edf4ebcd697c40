//! Sources whose revisions are not those of a commit: tags, branches, none, several at once.

pub(crate) mod kinds;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use tiphys_e2e::{PlatformFile, Site, World};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::platform::Hold;

use crate::audit::Mark;
use crate::deploy::{configure, deploy};
use crate::teardown::teardown;

/// Each app with its sources; they depend on each other in this order.
const SOURCES: [(&str, &str); 5] = [
    ("revs-tag", "source: { repoURL: REPOSITORY, path: apps/revs-tag, targetRevision: v1.0.0 }"),
    (
        "revs-branch",
        "source: { repoURL: REPOSITORY, path: apps/revs-branch, targetRevision: main }",
    ),
    ("revs-head", "source: { repoURL: REPOSITORY, path: apps/revs-head }"),
    ("revs-one", "sources: [{ repoURL: REPOSITORY, path: apps/revs-one, targetRevision: SHA }]"),
    (
        "revs-two",
        "sources: [{ repoURL: REPOSITORY, path: apps/revs-two, targetRevision: main }, \
         { repoURL: REPOSITORY, path: more, targetRevision: v1.0.0 }]",
    ),
];

const MORE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: { name: more }
";

/// Automated, as people have them.
fn application(project: &str, name: &str, source: &str) -> String {
    let source = source
        .replace("REPOSITORY", "{{ .Values.repoURL }}")
        .replace("SHA", "{{ .Values.revision }}");
    format!(
        "---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: {name}
  namespace: argocd
  finalizers: [resources-finalizer.argocd.argoproj.io]
spec:
  project: {project}
  {source}
  destination: {{ server: https://kubernetes.default.svc, namespace: {name} }}
  syncPolicy:
    automated: {{ prune: true, selfHeal: true }}
    syncOptions: [CreateNamespace=true]
"
    )
}

pub(crate) async fn as_people_write_them(world: Arc<World>) {
    let mut site = Site::new(&world, "revs").await;
    // Nobody but a run follows a branch here: what it syncs can be counted.
    site.platform.hold = Some(Hold::Always);
    let mut before: Option<&str> = None;
    for (name, _) in SOURCES {
        let app = AppSource::new(name, Behaviour::ConfigOnly);
        site.platform.apps.push(app.depends_on(before.as_slice()));
        before = Some(name);
    }
    commit(&site, 1);
    site.repository.tag("v1.0.0").expect("a tag");
    let api = file(&site, "api");
    configure(&world, &api).await;
    let all = SOURCES.map(|(name, _)| name);
    expect(&world, &site, &api, &all).await;
    expect(&world, &site, &api, &[]).await;

    for app in &mut site.platform.apps {
        app.generation = 2;
    }
    commit(&site, 2);
    expect(&world, &site, &api, &all[1..]).await;
    // The same without Argo CD's API.
    let fields = file(&site, "kubernetes");
    site.repository.tag("v1.0.0").expect("a tag");
    expect(&world, &site, &fields, &["revs-tag"]).await;
    for app in &mut site.platform.apps {
        app.generation = 3;
    }
    commit(&site, 3);
    expect(&world, &site, &fields, &all[1..]).await;
    expect(&world, &site, &fields, &[]).await;
    teardown(&world, &api, &[], 0).await;
    site.close().await;
}

fn commit(site: &Site, number: u32) {
    let mut files = site.platform.files();
    let templates: String =
        SOURCES.iter().map(|(name, source)| application("revs", name, source)).collect();
    files.insert("root/templates/applications.yaml".to_owned(), templates);
    files.insert("more/more.yaml".to_owned(), MORE.to_owned());
    site.repository.commit(&files, &format!("state {number}")).expect("a commit");
}

fn file(site: &Site, access: &str) -> PlatformFile {
    site.platform_file_with(|text| {
        let root = "    rootProject: revs-root\n";
        let changed = text.replace(root, &format!("{root}    access: {access}\n"));
        assert_ne!(changed, text);
        changed
    })
}

/// A run syncs these, in order, and leaves the others alone.
async fn expect(world: &World, site: &Site, file: &PlatformFile, synced: &[&str]) {
    let before = Mark::now(world);
    let events = deploy(world, file, 0).await;
    let of = |kind: &str| -> Vec<String> {
        let of_kind = events.iter().filter(|event| event["kind"] == kind);
        of_kind.filter_map(|event| event["app"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(of("step-syncing"), synced, "{events:#?}");
    let done: Vec<&Value> = events.iter().filter(|event| event["kind"] == "step-done").collect();
    assert_eq!(done.len(), site.platform.apps.len(), "{events:#?}");
    let operations: BTreeSet<String> = before.writes(site).operations().into_keys().collect();
    assert_eq!(operations, synced.iter().map(|name| (*name).to_owned()).collect());
}
