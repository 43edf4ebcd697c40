//! `tiphys configure` on an Argo CD that is there.

pub(crate) mod address;
mod ground;
pub(crate) mod https;
mod order;
pub(crate) mod reach;

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tiphys_argocd::rest::{
    CallError, RENDER_NAME, REQUEST_TIMEOUT, Refusal, RestClient, SyncRequest,
};
use tiphys_argocd::{AppAddress, credentials};
use tiphys_cluster::names::{self, Account, Purpose};
use tiphys_e2e::{Site, World, operation, tiphys};
use tiphys_model::Explain;
use tiphys_run::Revisions;

use ground::{Ground, projects, results};
pub(crate) use order::of_settings_and_the_first_look;

fn refusal<T>(answer: &Result<T, CallError>) -> Option<Refusal> {
    match answer {
        Err(CallError::Refused { refusal, .. }) => Some(*refusal),
        Ok(_) | Err(CallError::Unanswered { .. }) => None,
    }
}

/// A sync as a run would ask for it, without a revision.
fn request<'a>(id: &'a tiphys_model::OperationId, none: &'a Revisions) -> SyncRequest<'a> {
    SyncRequest { operation: id, revisions: none, prune: false }
}

pub(crate) async fn a_token_works(world: Arc<World>) {
    let ground = Ground::new(&world, "conf-token").await;
    let site = &ground.site;
    let mut made = ground.configure(&[]).await;
    // They may be there for other platforms.
    made.retain(|(object, _)| !object.starts_with("Namespace/"));
    let created = made.iter().filter(|(_, result)| *result == "created").count();
    assert_eq!((made.len(), created), (41, 37), "{made:?}");

    let (root, project) = (site.platform.root_name(), site.platform.root_project.clone());
    let deploy = ground.argocd(Purpose::Deploy, &world.client).await;
    ground.until_known(&deploy).await;
    let refreshed =
        deploy.refresh(&AppAddress::own(&root, &project)).await.expect("the token may refresh");
    assert_eq!(refreshed.status.sync.status, "OutOfSync", "{refreshed:#?}");
    let (id, none) = (operation(&root, 1), Revisions::default());
    deploy
        .sync(&AppAddress::own(&root, &project), request(&id, &none))
        .await
        .expect("the token may sync");
    let app = ground.app.as_str();
    let child = site.until(app, "made by the root app", |_| true).await;
    let head = site.repository.head().expect("an answer").expect("a commit");
    assert_eq!(child.spec.source["targetRevision"], head.as_str());

    // Elsewhere it may do nothing, and here it may not delete.
    ground.make_foreign_app().await;
    let foreign = ground.foreign();
    let elsewhere = deploy.sync(&AppAddress::own(&foreign, &foreign), request(&id, &none)).await;
    assert_eq!(refusal(&elsewhere), Some(Refusal::Forbidden));
    assert_eq!(
        refusal(&deploy.get(&AppAddress::own(&foreign, &foreign)).await),
        Some(Refusal::Forbidden)
    );
    let own = site.platform.project.as_str();
    assert_eq!(refusal(&deploy.delete(&AppAddress::own(app, own)).await), Some(Refusal::Forbidden));
    renders_sets_and_creates_none(site, &deploy, own).await;

    let teardown = ground.argocd(Purpose::Teardown, &world.client).await;
    assert_eq!(
        refusal(&teardown.delete(&AppAddress::own(&foreign, &foreign)).await),
        Some(Refusal::Forbidden)
    );
    teardown.delete(&AppAddress::own(app, own)).await.expect("the other token may delete");
    site.until_gone(app).await;
    ground.close().await;
}

/// Argo CD asks for the right to create what it renders; with ours, nothing can be created.
async fn renders_sets_and_creates_none(site: &Site, deploy: &RestClient, project: &str) {
    let set = |name: &str| {
        json!({
            "metadata": { "name": name, "namespace": "argocd" },
            "spec": {
                "generators": [{ "list": { "elements": [{ "name": "conf-token-rendered" }] } }],
                "template": {
                    "metadata": { "name": "{{name}}" },
                    "spec": {
                        "project": project,
                        "source": { "repoURL": site.repository.url(), "path": "{{name}}" },
                        "destination": { "server": "https://kubernetes.default.svc" },
                    },
                },
            },
        })
    };
    let names = [RENDER_NAME, "conf-token-set"];
    let object: DynamicObject = serde_json::from_value(set(names[1])).expect("an object");
    let rendered = deploy.render(&object, project).await.expect("the token may render");
    assert_eq!(rendered[0].spec["source"]["path"], "conf-token-rendered", "{rendered:?}");
    for name in names {
        let made: Result<Value, CallError> =
            deploy.call(Method::POST, "applicationsets", Some(&set(name)), REQUEST_TIMEOUT).await;
        made.expect_err("no set can be created");
    }
    let sets = site.objects("argoproj.io/v1alpha1", "ApplicationSet", Some("argocd"));
    for set in sets.list(&ListParams::default()).await.expect("a list") {
        assert!(!names.contains(&&*set.name_any()), "{}", set.name_any());
    }
}

pub(crate) async fn a_second_run(world: Arc<World>) {
    let ground = Ground::new(&world, "conf-again").await;
    let first = ground.act_as("conf-before", &["system:masters"]);
    ground.configure_with(&first, &[]).await;
    // Who writes is seen, so that who does not is believed.
    let is_real = |uri: &&String| !uri.contains("dryRun=All");
    if let Some(writes) = ground.writes_by("conf-before") {
        assert!(writes.iter().filter(is_real).count() >= 9, "{writes:#?}");
    }
    let before = ground.versions().await;
    let again = ground.act_as("conf-again", &["system:masters"]);
    let result = ground.configure_with(&again, &[]).await;
    assert!(result.iter().all(|(_, result)| result == "unchanged"), "{result:?}");
    assert_eq!(ground.versions().await, before);
    if let Some(writes) = ground.writes_by("conf-again") {
        let real: Vec<_> = writes.iter().filter(is_real).collect();
        // More than these if somebody else wrote to argocd-secret at the same moment.
        assert!(real.is_empty() && writes.len() >= 11, "{writes:#?}");
    }
    // A run's hold stands in the same object, and stays.
    ground.site.hold(&["*"]).await;
    let result = ground.configure(&[]).await;
    assert!(result.iter().all(|(_, result)| result == "unchanged"), "{result:?}");
    let project = ground.object("AppProject", &ground.site.platform.project).await;
    assert_eq!(project.data["spec"]["syncWindows"][0]["kind"], "deny");
    ground.close().await;
}

pub(crate) async fn a_dry_run(world: Arc<World>) {
    let ground = Ground::new(&world, "conf-dry").await;
    let dry = ground.act_as("conf-dry", &["system:masters"]);
    let (code, stdout, stderr) = ground.run_with(&dry, &["--dry-run"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    for line in ["+ kind: AppProject", "+   token: (new)", "+   accounts.tiphys.tokens: (new)"] {
        // Another test may have made the accounts, but not this platform's tokens.
        assert!(stdout.lines().any(|said| said == line), "no `{line}` in:\n{stdout}");
    }
    let secret = ["eyJ", "BEGIN CERTIFICATE"];
    assert!(secret.iter().all(|text| !stdout.contains(text)), "{stdout}");
    assert!(ground.versions().await.is_empty(), "nothing of the platform is there");
    if let Some(writes) = ground.writes_by("conf-dry") {
        assert!(writes.len() >= 11, "{writes:#?}");
        assert!(writes.iter().all(|uri| uri.contains("dryRun=All")), "{writes:#?}");
    }
    ground.close().await;
}

pub(crate) async fn a_conflict(world: Arc<World>) {
    let ground = Ground::new(&world, "conf-clash").await;
    ground.configure(&[]).await;
    let root_project = ground.site.platform.root_project.clone();
    let theirs = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": { "name": root_project, "namespace": "argocd" },
        "spec": { "sourceRepos": ["https://git.example/theirs.git"] },
    });
    ground.site.apply(theirs).await;
    let before = ground.versions().await;
    let (code, stdout, stderr) = ground.run(&[]).await;
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    let object = format!("AppProject {root_project} in argocd");
    let url = ground.site.platform.repo_url.as_str();
    for part in [object.as_str(), "`.spec.sourceRepos` is managed by `tiphys-e2e`", url, "help:"] {
        assert!(stderr.contains(part), "no `{part}` in:\n{stderr}");
    }
    assert_eq!(ground.versions().await, before);

    // As the message says: agree, and it goes on.
    let agreed = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": { "name": root_project, "namespace": "argocd" },
        "spec": {
            "sourceRepos": [url],
            // For what comes below: the root app must not really sync by itself.
            "syncWindows": [{
                "kind": "deny", "schedule": "* * * * *", "duration": "24h", "applications": ["*"],
            }],
        },
    });
    ground.site.apply(agreed).await;
    ground.configure(&[]).await;

    let automated = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": { "name": ground.site.platform.root_name(), "namespace": "argocd" },
        "spec": { "syncPolicy": { "automated": {} } },
    });
    ground.site.apply(automated).await;
    let (code, _, stderr) = ground.run(&[]).await;
    assert_eq!((code, stderr.contains("automated sync is enabled")), (Some(3), true), "{stderr}");
    ground.close().await;
}

pub(crate) async fn a_revoked_token(world: Arc<World>) {
    let ground = Ground::new(&world, "conf-revoke").await;
    ground.configure(&[]).await;
    let platform = ground.model();
    let token = async || {
        let found = credentials::find(&world.client, &platform, Purpose::Deploy).await;
        found.expect("a token").0.expose_secret().to_owned()
    };
    let old = token().await;
    let client = ground.argocd(Purpose::Deploy, &world.client).await;
    ground.until_known(&client).await;
    let ids = ground.registered(Purpose::Deploy).await;
    assert_eq!(ids.len(), 1);
    ground.revoke(Purpose::Deploy, &ids[0]).await;
    let (root, project) = (ground.site.platform.root_name(), &ground.site.platform.root_project);
    let refused = ground.until_refused(&client).await;
    assert_eq!(refused, Refusal::Unauthenticated);

    let changed = results(&ground.configure(&[]).await, "changed");
    assert_eq!(changed, ["Secret/argocd-secret", "Secret/tiphys-conf-revoke-deploy"]);
    assert_ne!(token().await, old);
    let client = ground.argocd(Purpose::Deploy, &world.client).await;
    ground.until_known(&client).await;
    client.get(&AppAddress::own(&root, project)).await.expect("the new token works");

    // A lost Secret: a new token, and the lost one is worth nothing.
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "argocd");
    let lost = ground.registered(Purpose::Deploy).await;
    secrets.delete("tiphys-conf-revoke-deploy", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(
        results(&ground.configure(&[]).await, "created"),
        ["Secret/tiphys-conf-revoke-deploy"]
    );
    let ids = ground.registered(Purpose::Deploy).await;
    assert_eq!((ids.len(), ids == lost), (1, false));
    assert_eq!(ground.until_refused(&client).await, Refusal::Unauthenticated);
    ground.close().await;
}

/// Whoever has copied a token has nothing in their hands after a rotation.
pub(crate) async fn a_rotated_token(world: Arc<World>) {
    let ground = Ground::new(&world, "conf-rotate").await;
    ground.configure(&[]).await;
    let platform = ground.model();
    let found = credentials::find(&world.client, &platform, Purpose::Deploy).await;
    let (old, _) = found.expect("a token");
    // Without the Secret to read a new one from.
    let copied = world.argocd.clone().with_token(old);
    ground.until_known(&copied).await;
    let file = ground.site.platform_file();
    let rotate = ["rotate-credentials", "-f", file.path()];
    let (code, _, stderr) = tiphys::said(&tiphys::run(&rotate, &world.kubeconfig).await);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(ground.until_refused(&copied).await, Refusal::Unauthenticated);
    let client = ground.argocd(Purpose::Deploy, &world.client).await;
    ground.until_known(&client).await;
    ground.close().await;
}

pub(crate) async fn rights_of_a_run(world: Arc<World>) {
    let ground = Ground::new(&world, "conf-role").await;
    ground.configure(&[]).await;
    let run = ground.service_account(Account::Deploy).await;
    let argocd = ground.argocd(Purpose::Deploy, &run).await;
    ground.until_known(&argocd).await;
    let (root, project) = (ground.site.platform.root_name(), &ground.site.platform.root_project);
    argocd
        .get(&AppAddress::own(&root, project))
        .await
        .expect("Argo CD is reached with the rights of a run");

    let forbidden = |answer: Result<(), kube::Error>| match answer {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 403, "{status:?}"),
        other => unreachable!("this must not be allowed: {other:?}"),
    };
    let secrets: Api<Secret> = Api::namespaced(run.clone(), "argocd");
    for name in ["argocd-secret", "tiphys-conf-role-teardown"] {
        forbidden(secrets.get(name).await.map(|_| ()));
    }
    forbidden(secrets.list(&ListParams::default()).await.map(|_| ()));
    let pods: Api<Pod> = Api::namespaced(run.clone(), "argocd");
    forbidden(pods.delete("any", &DeleteParams::default()).await.map(|_| ()));
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { "a": "b" } } }));
    let applications: Api<tiphys_argocd::Application> = Api::namespaced(run.clone(), "argocd");
    forbidden(applications.patch(&root, &PatchParams::default(), &patch).await.map(|_| ()));
    let projects = projects(&run);
    forbidden(projects.patch("default", &PatchParams::default(), &patch).await.map(|_| ()));
    // Of its own projects, too, it may change the hold alone.
    let own = &ground.site.platform.project;
    for name in [own, project] {
        let refused = until_refused_by_policy(&projects, name, &patch).await;
        assert!(refused.contains("tiphys hold"), "{refused}");
    }
    let hold = json!([{
        "kind": "deny", "schedule": "* * * * *", "duration": "24h", "manualSync": true,
        "applications": ["none"], "description": "tiphys hold run",
    }]);
    let hold = Patch::Merge(json!({ "spec": { "syncWindows": hold } }));
    projects.patch(own, &PatchParams::default(), &hold).await.expect("the hold can be set");

    // Who may submit can do so where no account is that could remove something.
    let submit = ground.service_account(Account::Submit).await;
    let secrets: Api<Secret> = Api::namespaced(submit.clone(), "argocd");
    forbidden(secrets.list(&ListParams::default()).await.map(|_| ()));
    forbidden(secrets.get("argocd-secret").await.map(|_| ()));
    let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Workflow");
    let workflow = json!({ "metadata": { "name": "conf-role" }, "spec": {} });
    let workflow: DynamicObject = serde_json::from_value(workflow).expect("an object");
    let resource = ApiResource::from_gvk(&kind);
    for namespace in ["argocd", names::TEARDOWN_NAMESPACE, "default"] {
        let workflows: Api<DynamicObject> =
            Api::namespaced_with(submit.clone(), namespace, &resource);
        let params = PostParams { dry_run: true, ..PostParams::default() };
        forbidden(workflows.create(&params, &workflow).await.map(|_| ()));
    }
    for namespace in [names::NAMESPACE, names::TEARDOWN_NAMESPACE] {
        let pods: Api<Pod> = Api::namespaced(submit.clone(), namespace);
        forbidden(pods.create(&PostParams::default(), &Pod::default()).await.map(|_| ()));
    }
    ground.close().await;
}

/// A policy counts a little later than it is written.
async fn until_refused_by_policy(
    projects: &Api<DynamicObject>,
    name: &str,
    patch: &Patch<Value>,
) -> String {
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    for _ in 0..100 {
        match projects.patch(name, &dry, patch).await {
            Err(kube::Error::Api(status)) if status.code == 403 => return status.message.clone(),
            Err(error) => unreachable!("another refusal: {error}"),
            Ok(_) => tokio::time::sleep(Duration::from_millis(300)).await,
        }
    }
    unreachable!("the project {name} may be changed")
}

pub(crate) async fn two_platforms(world: Arc<World>) {
    let one = Ground::new(&world, "conf-one").await;
    let two = Ground::new(&world, "conf-two").await;
    one.configure(&[]).await;
    two.configure(&[]).await;
    // Neither has undone what the other did.
    for ground in [&one, &two] {
        let result = ground.configure(&[]).await;
        assert!(result.iter().all(|(_, result)| result == "unchanged"), "{result:?}");
    }
    // In the other's projects, it is refused.
    let (code, _, stderr) = one.run_as_platform("conf-two", "conf-third").await;
    assert_eq!(code, Some(3), "{stderr}");
    assert!(
        stderr.contains("AppProject conf-two in argocd belongs to another platform"),
        "{stderr}"
    );
    two.close().await;
    // What both need stays, whoever came first.
    let result = one.configure(&[]).await;
    assert!(result.iter().all(|(_, result)| result == "unchanged"), "{result:?}");
    one.close().await;
}

pub(crate) async fn what_is_missing(world: Arc<World>) {
    let ground = Ground::new(&world, "conf-miss").await;
    let platform = ground.model();
    let found = credentials::find(&world.client, &platform, Purpose::Deploy).await;
    let error = found.err().expect("no token");
    assert_eq!(error.explain().exit, tiphys_model::Exit::Configuration);
    assert!(error.explain().next.is_some_and(|next| next.contains("tiphys configure")));

    let nobody = ground.act_as("conf-nobody", &[]);
    let (code, _, stderr) = ground.run_with(&nobody, &[]).await;
    assert_eq!(code, Some(4), "{stderr}");
    let right = "User \"conf-nobody\" cannot get resource \"configmaps\"";
    assert!(stderr.contains(right), "{stderr}");

    let (code, _, stderr) = ground.run_in_namespace("default").await;
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("Argo CD not found in the namespace `default`"), "{stderr}");
    ground.close().await;
}

impl Ground {
    /// A token counts once Argo CD has read its accounts and its policy anew.
    async fn until_known(&self, argocd: &RestClient) {
        let site: &Site = &self.site;
        let (root, project) = (site.platform.root_name(), &site.platform.root_project);
        let mut last = None;
        for _ in 0..100 {
            match argocd.get(&AppAddress::own(&root, project)).await {
                Ok(_) => return,
                Err(error) => last = Some(error),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        unreachable!("the token is not accepted: {last:?}")
    }

    async fn until_refused(&self, argocd: &RestClient) -> Refusal {
        let (root, project) = (self.site.platform.root_name(), &self.site.platform.root_project);
        for _ in 0..100 {
            if let Some(refusal) = refusal(&argocd.get(&AppAddress::own(&root, project)).await) {
                return refusal;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        unreachable!("the token is still accepted")
    }

    /// The ids of this platform's tokens, as Argo CD lists them.
    async fn registered(&self, purpose: Purpose) -> Vec<String> {
        let path = format!("account/{}", purpose.account());
        let argocd = &self.site.world.argocd;
        let answer: Result<Value, _> =
            argocd.call(Method::GET, &path, None::<&()>, REQUEST_TIMEOUT).await;
        let Ok(account) = answer else { return Vec::new() };
        let prefix = format!("{}.", self.site.platform.name);
        let ids = account["tokens"].as_array().into_iter().flatten();
        ids.filter_map(|token| token["id"].as_str())
            .filter(|id| id.starts_with(&prefix))
            .map(str::to_owned)
            .collect()
    }

    async fn revoke(&self, purpose: Purpose, id: &str) {
        let path = format!("account/{}/token/{id}", purpose.account());
        let argocd = &self.site.world.argocd;
        let answer: Result<Value, _> =
            argocd.call(Method::DELETE, &path, None::<&()>, REQUEST_TIMEOUT).await;
        answer.expect("the token can be revoked");
    }
}
