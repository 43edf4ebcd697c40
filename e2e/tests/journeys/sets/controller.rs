//! ApplicationSets while their controller is away: what they have made is old, and looks current.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tiphys_e2e::{Site, World, tiphys, until};
use tiphys_lab::repository::{AppSource, Behaviour, Files};

use crate::deploy::{configure, deploy};
use crate::resume::start;
use crate::teardown::teardown;

const CONTROLLER: &str = "argocd-applicationset-controller";
const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";
/// Longer than what a run waits for without a word.
const A_WHILE: Duration = Duration::from_secs(8);

/// A set for each app. None of them shows the revision at `spec.template.spec.source`, or only one
/// that is a template, and the project of one is a template as well.
const SETS: &str = r#"
{{- range .Values.apps }}
---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: { name: {{ .name | quote }}, namespace: argocd }
spec:
  goTemplate: true
  generators:
    - list:
        elements:
          - name: {{ .name | quote }}
            namespace: {{ .namespace | quote }}
            revision: {{ $.Values.revision | quote }}
            project: {{ $.Values.project | quote }}
  template:
    metadata:
      name: '{{ "{{.name}}" }}'
      finalizers: [resources-finalizer.argocd.argoproj.io]
    spec:
      {{- if eq .name "lag-templated" }}
      project: '{{ "{{.project}}" }}'
      source:
        repoURL: {{ $.Values.repoURL | quote }}
        targetRevision: '{{ "{{.revision}}" }}'
        path: 'apps/{{ "{{.name}}" }}'
      {{- else if eq .name "lag-several" }}
      project: {{ $.Values.project | quote }}
      sources:
        - repoURL: {{ $.Values.repoURL | quote }}
          targetRevision: {{ $.Values.revision | quote }}
          path: 'apps/{{ "{{.name}}" }}'
        - repoURL: {{ $.Values.repoURL | quote }}
          targetRevision: {{ $.Values.revision | quote }}
          ref: values
      {{- else }}
      project: {{ $.Values.project | quote }}
      source:
        repoURL: {{ $.Values.repoURL | quote }}
        targetRevision: '{{ "{{.revision}}" }}'
        path: 'apps/{{ "{{.name}}" }}'
        directory: { exclude: 'no-{{ $.Values.revision }}.yaml' }
      {{- end }}
      destination:
        server: https://kubernetes.default.svc
        namespace: '{{ "{{.namespace}}" }}'
      syncPolicy:
        automated: { prune: true, selfHeal: true }
        syncOptions: [CreateNamespace=true]
{{- end }}
"#;

fn files(site: &Site) -> Files {
    let mut files = site.platform.files();
    files.insert("root/templates/applications.yaml".to_owned(), SETS.to_owned());
    files
}

/// Lets the ApplicationSet controller run, or not.
async fn run_controller(world: &World, replicas: u32) {
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), "argocd");
    let scale = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    let scaled = deployments.patch(CONTROLLER, &PatchParams::default(), &scale).await;
    scaled.expect("it can be scaled");
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "argocd");
    let selected = ListParams::default().labels(&format!("app.kubernetes.io/name={CONTROLLER}"));
    let (pods, selected) = (&pods, &selected);
    until("the ApplicationSet controller is scaled", || async move {
        let found = pods.list(selected).await.expect("a list");
        found.items.is_empty() == (replicas == 0)
    })
    .await;
}

/// The revision that each app's Application should have by its spec.
async fn revisions(site: &Site) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for app in &site.platform.apps {
        let spec = site.application(&app.name).await.spec;
        let source = if spec.sources.is_null() { &spec.source } else { &spec.sources[0] };
        found.insert(app.name.clone(), source["targetRevision"].clone());
    }
    found
}

pub(crate) async fn is_awaited(world: Arc<World>) {
    let mut site = Site::new(&world, "lag").await;
    let names = ["lag-inline", "lag-several", "lag-templated"];
    site.platform.apps =
        names.iter().map(|name| AppSource::new(name, Behaviour::ConfigOnly)).collect();
    let file = site.platform_file();
    site.repository.commit(&files(&site), "three sets").expect("a commit");
    configure(&world, &file).await;
    let events = deploy(&world, &file, 0).await;
    assert_eq!(events.last().expect("events")["counts"]["applied"], 3, "{events:#?}");

    run_controller(&world, 0).await;
    for app in &mut site.platform.apps {
        app.generation = 2;
    }
    let revision = site.repository.commit(&files(&site), "all changed").expect("a commit");
    let mut run = start(&world, &file);
    let sets = site.objects("argoproj.io/v1alpha1", "ApplicationSet", Some("argocd"));
    let asked = &sets;
    until("the run asks for a refresh", || async move {
        let set = asked.get(names[0]).await.expect("a set");
        set.annotations().contains_key(REFRESH)
    })
    .await;
    tokio::time::sleep(A_WHILE).await;
    let early = run.try_wait().expect("an answer");
    let stale = revisions(&site).await;
    // Whatever comes of this test, the others need it.
    run_controller(&world, 1).await;
    assert_eq!(early, None, "it waits");
    assert!(stale.values().all(|found| *found != revision.as_str()), "{stale:?}");

    let ended = tokio::task::spawn_blocking(|| run.wait_with_output()).await;
    let output = ended.expect("nobody cancels it").expect("it ends");
    let (code, stdout, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(0), "{stderr}\n{stdout}");
    let waits = "waiting for the ApplicationSet controller to answer for `lag-";
    assert!(stderr.contains(waits), "no `{waits}` in:\n{stderr}");
    let last: Value = serde_json::from_str(stdout.lines().last().expect("events")).expect("JSON");
    assert_eq!(last["counts"]["applied"], 3, "{stdout}");
    let found = revisions(&site).await;
    assert!(found.values().all(|found| *found == revision.as_str()), "{found:?}");

    let told = teardown(&world, &file, &[], 0).await;
    assert_eq!(told.events.last().expect("events")["counts"]["removed"], 3);
    for name in names {
        assert!(sets.get_opt(name).await.expect("an answer").is_none(), "{name} went first");
    }
    site.close().await;
}
