//! Every kind of generator that needs nothing from outside, each in a set of its own.

use std::sync::Arc;
use std::time::Duration;

use tiphys_e2e::{Site, World};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::audit::Mark;
use crate::deploy::{configure, deploy};
use crate::teardown::teardown;

/// Each app with the generators of its set, and how these name it.
const KINDS: [(&str, &str, &str); 5] = [
    ("kinds-list", "[{ list: { elements: [{ app: kinds-list }] } }]", "{{.app}}"),
    ("kinds-git", "[GIT]", "{{.path.basename}}"),
    ("kinds-matrix", "[{ matrix: { generators: [{ clusters: {} }, GIT] } }]", "{{.path.basename}}"),
    (
        "kinds-merge",
        "[{ merge: { mergeKeys: [key], generators: [\
         { list: { elements: [{ key: a, app: wrong }] } }, \
         { list: { elements: [{ key: a, app: kinds-merge }] } }] } }]",
        "{{.app}}",
    ),
    ("kinds-clusters", "[{ clusters: { values: { app: kinds-clusters } } }]", "{{.values.app}}"),
];

/// As text of a chart: what the set's own templates say must not be rendered by Helm.
fn set(app: &str, generators: &str, named: &str) -> String {
    let git = format!(
        "{{ git: {{ repoURL: REPOSITORY, revision: REVISION, directories: [{{ path: apps/{app} }}] }} }}"
    );
    let text = format!(
        "---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{ name: {app}, namespace: argocd }}
spec:
  goTemplate: true
  generators: {generators}
  template:
    metadata:
      name: '{named}'
      finalizers: [resources-finalizer.argocd.argoproj.io]
    spec:
      project: kinds
      source: {{ repoURL: REPOSITORY, targetRevision: REVISION, path: 'apps/{named}' }}
      destination: {{ server: https://kubernetes.default.svc, namespace: '{named}' }}
      syncPolicy:
        automated: {{ prune: true, selfHeal: true }}
        syncOptions: [CreateNamespace=true]
",
        generators = generators.replace("GIT", &git),
    );
    text.replace(named, &format!("{{{{ `{named}` }}}}"))
        .replace("REPOSITORY", "{{ .Values.repoURL }}")
        .replace("REVISION", "{{ .Values.revision }}")
}

pub(crate) async fn are_awaited(world: Arc<World>) {
    let mut site = Site::new(&world, "kinds").await;
    let mut before: Option<&str> = None;
    for (name, _, _) in KINDS {
        let app = AppSource::new(name, Behaviour::Healthy { after: Duration::from_secs(1) });
        site.platform.apps.push(app.depends_on(before.as_slice()));
        before = Some(name);
    }
    let sets: String = KINDS.iter().map(|(app, kind, named)| set(app, kind, named)).collect();
    let file = site.platform_file();
    for generation in 1..=2 {
        for app in &mut site.platform.apps {
            app.generation = generation;
        }
        let mut files = site.platform.files();
        files.insert("root/templates/applications.yaml".to_owned(), sets.clone());
        let revision = site.repository.commit(&files, "a set of each kind").expect("a commit");
        if generation == 1 {
            configure(&world, &file).await;
        }
        let mark = Mark::now(&world);
        let events = deploy(&world, &file, 0).await;
        assert_eq!(events.last().expect("events")["counts"]["applied"], 5, "{events:#?}");
        mark.writes(&site).check_order(&site, revision.as_str());
    }
    teardown(&world, &file, &[], 0).await;
    site.close().await;
}
