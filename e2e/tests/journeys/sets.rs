//! ApplicationSets as generators: the Applications that they make are awaited, pinned and
//! deployed in order like any others.

pub(crate) mod controller;
pub(crate) mod kinds;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tiphys_e2e::{Site, World, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour, Files};

use crate::audit::Mark;
use crate::deploy::{configure, deploy};
use crate::teardown::teardown;

const TEMPLATE: &str = r#"
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: { name: sets-all, namespace: argocd }
spec:
  goTemplate: true
  generators:
    - list:
        elements:
          {{- range .Values.apps }}
          - { name: {{ .name | quote }}, namespace: {{ .namespace | quote }} }
          {{- end }}
  template:
    metadata:
      name: '{{ "{{.name}}" }}'
      finalizers: [resources-finalizer.argocd.argoproj.io]
    spec:
      project: {{ .Values.project | quote }}
      source:
        repoURL: {{ .Values.repoURL | quote }}
        targetRevision: {{ .Values.revision | quote }}
        path: 'apps/{{ "{{.name}}" }}'
      destination:
        server: https://kubernetes.default.svc
        namespace: '{{ "{{.namespace}}" }}'
      syncPolicy:
        automated: { prune: true, selfHeal: true }
        syncOptions: [CreateNamespace=true]
"#;

const ROLLING: &str = "
  strategy:
    type: RollingSync
    rollingSync: { steps: [] }
";

fn files(site: &Site, more: &str) -> Files {
    let mut files = site.platform.files();
    files.insert("root/templates/applications.yaml".to_owned(), format!("{TEMPLATE}{more}"));
    files
}

pub(crate) async fn as_generators(world: Arc<World>) {
    let mut site = Site::new(&world, "sets").await;
    site.platform.apps = vec![
        AppSource::new("sets-db", Behaviour::Healthy { after: Duration::from_secs(1) }),
        AppSource::new("sets-api", Behaviour::ConfigOnly).depends_on(&["sets-db"]),
        AppSource::new("sets-web", Behaviour::ConfigOnly).depends_on(&["sets-api"]),
    ];
    let file = site.platform_file();
    let all: BTreeSet<String> = site.platform.apps.iter().map(|app| app.name.clone()).collect();
    for generation in 1..=2 {
        for app in &mut site.platform.apps {
            app.generation = generation;
        }
        let committed = site.repository.commit(&files(&site, ""), "a set of apps");
        let revision = committed.expect("a commit");
        if generation == 1 {
            configure(&world, &file).await;
        }
        let before = Mark::now(&world);
        let events = deploy(&world, &file, 0).await;
        assert_eq!(events.last().expect("events")["counts"]["applied"], 3, "{events:#?}");
        let writes = before.writes(&site);
        writes.check_order(&site, revision.as_str());
        let synced: BTreeSet<String> = writes.operations().into_keys().collect();
        assert_eq!(synced, all);
        for app in &all {
            let target = site.application(app).await.spec.source["targetRevision"].clone();
            assert_eq!(target, revision.as_str(), "{app} is pinned to the root app's revision");
        }
    }

    let committed = site.repository.commit(&files(&site, ROLLING), "with an order of its own");
    committed.expect("a commit");
    let before = Mark::now(&world);
    let args = ["deploy", "-f", file.path(), "--allow-uncommitted"];
    let (code, _, stderr) = tiphys::said(&tiphys::run(&args, &world.kubeconfig).await);
    assert_eq!(code, Some(3), "{stderr}");
    for words in ["the ApplicationSet `sets-all` has the strategy RollingSync", "spec.strategy"] {
        assert!(stderr.contains(words), "no `{words}` in:\n{stderr}");
    }
    assert!(before.writes(&site).operations().is_empty(), "nothing was synced");

    let told = teardown(&world, &file, &["--scope", "app:sets-web"], 3).await;
    assert!(told.stderr.contains("the ApplicationSet `sets-all` created it"));
    let before = Mark::now(&world);
    let told = teardown(&world, &file, &[], 0).await;
    assert_eq!(told.events.last().expect("events")["counts"]["removed"], 3);
    before.writes(&site).check_reverse_order(&site);
    let sets = site.objects("argoproj.io/v1alpha1", "ApplicationSet", Some("argocd"));
    assert!(sets.get_opt("sets-all").await.expect("an answer").is_none(), "it went first");
    site.close().await;
}
