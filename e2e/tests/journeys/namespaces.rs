//! Applications in a namespace that Argo CD watches beside its own.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tiphys_e2e::{Site, World, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::audit::Mark;
use crate::configure::reach::restart;
use crate::deploy::{configure, deploy};
use crate::teardown::teardown;

const TEAM: &str = "team-apps";

/// Deployed in order, found current, judged and removed, wherever each Application is.
pub(crate) async fn of_a_team(world: Arc<World>) {
    let mut site = Site::new(&world, "team").await;
    watch(&site, json!(TEAM)).await;
    site.apply(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": TEAM },
    }))
    .await;
    let_argocd_write(&site).await;
    let healthy = Behaviour::Healthy { after: Duration::from_secs(1) };
    site.platform.apps = vec![
        AppSource::new("team-db", healthy.clone()),
        AppSource::new("team-api", healthy).depends_on(&["team-db"]),
        AppSource::new("team-page", Behaviour::ConfigOnly).depends_on(&["team-api"]),
    ];
    let mut files = site.platform.files();
    let template = files.get_mut("root/templates/applications.yaml").expect("the template");
    let own = "{{ $.Values.argocdNamespace | quote }}";
    assert!(template.contains(own), "{template}");
    // One of the three is where it always was.
    let elsewhere =
        format!("{{{{ if eq .name \"team-page\" }}}}argocd{{{{ else }}}}{TEAM}{{{{ end }}}}");
    *template = template.replace(own, &elsewhere);
    let revision = site.repository.commit(&files, "two namespaces").expect("a commit");
    let file = site.platform_file_with(|text| {
        let root = "    rootProject: team-root\n";
        assert!(text.contains(root), "{text}");
        text.replace(root, &format!("{root}    applicationNamespaces: [{TEAM}]\n"))
    });
    configure(&world, &file).await;

    let before = Mark::now(&world);
    let events = deploy(&world, &file, 0).await;
    assert_eq!(events.last().expect("events")["counts"]["applied"], 3, "{events:#?}");
    before.writes(&site).check_order(&site, revision.as_str());
    let there = site.objects("argoproj.io/v1alpha1", "Application", Some(TEAM));
    let there = there.list(&ListParams::default()).await.expect("a list").items;
    let there: BTreeSet<String> =
        there.into_iter().filter_map(|application| application.metadata.name).collect();
    assert_eq!(there, ["team-api", "team-db"].map(str::to_owned).into());
    let events = deploy(&world, &file, 0).await;
    assert_eq!(events.last().expect("events")["counts"]["alreadyCurrent"], 3, "{events:#?}");
    for args in [["validate", "-f", file.path()], ["status", "-f", file.path()]] {
        let (code, stdout, stderr) = tiphys::said(&tiphys::run(&args, &world.kubeconfig).await);
        assert_eq!(code, Some(0), "{stderr}{stdout}");
    }
    let before = Mark::now(&world);
    teardown(&world, &file, &[], 0).await;
    before.writes(&site).check_reverse_order(&site);
    watch(&site, Value::Null).await;
    site.close().await;
}

/// Argo CD watches these namespaces too, from its next start on.
async fn watch(site: &Site, namespaces: Value) {
    let maps = site.objects("v1", "ConfigMap", Some("argocd"));
    let patch = json!({ "data": { "application.namespaces": namespaces } });
    let patch = Patch::Merge(&patch);
    maps.patch("argocd-cmd-params-cm", &PatchParams::default(), &patch).await.expect("it is there");
    for part in ["argocd-application-controller", "argocd-server"] {
        restart(site, part).await;
    }
}

/// Argo CD's manifests give its API server no rights in other namespaces: who wants that adds them.
async fn let_argocd_write(site: &Site) {
    let metadata = json!({ "name": "argocd-server", "namespace": TEAM });
    site.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
        "rules": [{
            "apiGroups": ["argoproj.io"], "resources": ["applications"],
            "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
        }],
    }))
    .await;
    site.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "argocd-server" },
        "subjects": [{ "kind": "ServiceAccount", "name": "argocd-server", "namespace": "argocd" }],
    }))
    .await;
}
