//! What people see of a platform: whether it is well, and if not, why.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tiphys_cluster::Application;
use tiphys_e2e::{PlatformFile, Site, World, tiphys};
use tiphys_lab::audit::{self, Record};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::{configure, deploy};

/// A look at a platform with the program, by somebody of their own: the audit log tells what
/// they wrote.
struct Eye {
    world: Arc<World>,
    file: PlatformFile,
    user: String,
    kubeconfig: PathBuf,
    /// Before the names of everything in the site.
    prefix: String,
    _folder: tempfile::TempDir,
}

impl Eye {
    fn new(world: &Arc<World>, site: &Site) -> Eye {
        let folder = tempfile::tempdir().expect("a folder");
        let kubeconfig = folder.path().join("kubeconfig");
        let user = format!("{}-eye-{}", site.platform.name, std::process::id());
        tiphys::act_as(&world.kubeconfig, &user, &["system:masters"], &kubeconfig);
        let file = site.platform_file();
        let prefix = format!("{}-", site.platform.name);
        Eye { world: world.clone(), file, user, kubeconfig, prefix, _folder: folder }
    }

    async fn look(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let (action, rest) = args.split_first().expect("an action");
        let all: Vec<&str> =
            [*action, "-f", self.file.path()].iter().chain(rest).copied().collect();
        tiphys::said(&tiphys::run(&all, &self.kubeconfig).await)
    }

    async fn json(&self, args: &[&str], expected: i32) -> Value {
        let args: Vec<&str> = args.iter().copied().chain(["-o", "json"]).collect();
        let (code, stdout, stderr) = self.look(&args).await;
        assert_eq!(code, Some(expected), "{args:?}\n{stdout}{stderr}");
        serde_json::from_str(&stdout).expect("JSON")
    }

    /// The same as somebody else.
    fn acting_as(mut self, user: &str, groups: &[&str]) -> Eye {
        tiphys::act_as(&self.world.kubeconfig, user, groups, &self.kubeconfig);
        user.clone_into(&mut self.user);
        self
    }

    /// Goes on looking beside what follows.
    fn watch(&self) -> Watch {
        let args = ["status", "-f", self.file.path(), "--watch"];
        let mut command = tiphys::command(&args, &self.kubeconfig);
        let child = command.stdout(Stdio::piped()).spawn().expect("the program can be started");
        Watch(child)
    }

    /// What it has written or tried to. Port-forwards are `create` of a subresource, and change
    /// no object.
    fn writes(&self) -> Vec<String> {
        let Some(log) = &self.world.audit_log else { return Vec::new() };
        let text = std::fs::read_to_string(log).expect("the audit log");
        let all = text.lines().filter(|line| line.contains(&self.user));
        let mine = all.filter_map(|line| serde_json::from_str::<Value>(line).ok()).filter(|r| {
            let verb = r["verb"].as_str().unwrap_or_default();
            r["impersonatedUser"]["username"] == self.user.as_str()
                && !["get", "list", "watch"].contains(&verb)
                && r["objectRef"]["subresource"] != "portforward"
        });
        mine.map(|record| format!("{} {}", record["verb"], record["requestURI"])).collect()
    }

    /// What Argo CD's API server has written since on the site's Applications, for whomever.
    fn nothing_was_written_for_it(&self, before: u64) {
        let Some(log) = &self.world.audit_log else { return };
        let records = audit::read_from(log, before).expect("the audit log");
        let is_its = |record: &&Record| {
            let server = record.user.username.ends_with(":argocd-server");
            let object = record.object_ref.as_ref();
            server && record.is_write() && object.is_some_and(|o| o.name.starts_with(&self.prefix))
        };
        let writes: Vec<&Record> = records.iter().filter(is_its).collect();
        assert!(writes.is_empty(), "{writes:#?}");
    }
}

struct Watch(Child);

impl Watch {
    /// Interrupts it once it has had time to see the last change; what it has said.
    async fn end(self) -> Vec<String> {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().expect("a signal can be sent");
        assert!(sent.success());
        let waited = tokio::task::spawn_blocking(|| self.0.wait_with_output()).await;
        let output = waited.expect("nobody cancels it").expect("it ends");
        assert_eq!(output.status.code(), Some(130));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }
}

fn logged(world: &World) -> u64 {
    let log = world.audit_log.as_ref();
    log.map_or(0, |log| audit::length(log).expect("the audit log"))
}

pub(crate) async fn of_a_healthy_platform(world: Arc<World>) {
    let mut site = Site::new(&world, "stat-well").await;
    site.platform.apps = vec![
        AppSource::new("stat-well-db", Behaviour::ConfigOnly),
        AppSource::new("stat-well-api", Behaviour::ConfigOnly).depends_on(&["stat-well-db"]),
        AppSource::new("stat-well-web", Behaviour::ConfigOnly).depends_on(&["stat-well-api"]),
    ];
    site.commit("three apps");
    let eye = Eye::new(&world, &site);
    let nothing = eye.json(&["validate"], 5).await;
    assert_eq!((&nothing["phase"], &nothing["authority"]), (&1.into(), &"bootstrap".into()));
    configure(&world, &eye.file).await;
    let before = eye.json(&["validate"], 1).await;
    assert_eq!((&before["phase"], &before["authority"]), (&2.into(), &"orchestration".into()));
    let watch = eye.watch();
    deploy(&world, &eye.file, 0).await;
    let lines = watch.end().await;
    for app in &site.platform.apps {
        let told = |word: &str| lines.iter().any(|line| *line == format!("{} {word}", app.name));
        assert!(told("done"), "{lines:#?}");
    }
    assert!(lines[0].starts_with("platform stat-well: phase 2, orchestration"), "{lines:#?}");
    let well = eye.json(&["validate"], 0).await;
    assert_eq!((&well["phase"], &well["authority"]), (&3.into(), &"argocd".into()), "{well:#}");
    assert_eq!(well["rootCauses"], serde_json::json!([]));
    assert_eq!(well["bypasses"], serde_json::json!([]), "{well:#}");
    let (code, stdout, _) = eye.look(&["validate"]).await;
    assert_eq!((code, &*stdout), (Some(0), "platform stat-well is well: 3 apps\n"));

    // Somebody who does not ask a run.
    let (app, project) = ("stat-well-web", site.platform.project.clone());
    let sync = serde_json::json!({ "project": project });
    let _: Value = world
        .argocd
        .call(
            http::Method::POST,
            &format!("applications/{app}/sync"),
            Some(&sync),
            tiphys_cluster::argocd::PATIENCE,
        )
        .await
        .expect("the administrator may sync");
    site.until(app, "synced by the administrator", |application| {
        application.operation.is_none()
            && application.status.operation_state.as_ref().is_some_and(|s| s.phase == "Succeeded")
    })
    .await;
    let status = eye.json(&["status"], 0).await;
    assert_eq!(status["bypasses"][0]["app"], app, "{status:#}");
    assert_eq!(status["bypasses"][0]["by"], "admin");
    assert_eq!(eye.writes(), Vec::<String>::new());
    // Who writes is seen, so that who does not is believed.
    let (code, ..) = eye.look(&["configure"]).await;
    assert_eq!(code, Some(0));
    assert!(world.audit_log.is_none() || !eye.writes().is_empty());
    site.close().await;
}

/// Name, behaviour, state, what the cause says, and what the evidence shows.
fn ways() -> [(&'static str, Behaviour, &'static str, &'static str, &'static str); 5] {
    let probe = "likely: a probe fails";
    [
        ("never", Behaviour::NeverHealthy, "converging", "it is Progressing", probe),
        (
            "degraded",
            Behaviour::Degrades { after: Duration::from_secs(1) },
            "unhealthy",
            "it is Degraded",
            "exceeded its progress deadline",
        ),
        (
            "refused",
            Behaviour::FailsToSync,
            "failed",
            "the sync failed",
            "likely: the API server rejects a manifest",
        ),
        (
            "broken",
            Behaviour::InvalidManifest,
            "failed",
            "it cannot be compared",
            "likely: the manifests cannot be rendered",
        ),
        (
            "drifting",
            Behaviour::StaysOutOfSync,
            "drifted",
            "OutOfSync",
            "metadata.annotations[\"deployment.kubernetes.io/revision\"]",
        ),
    ]
}

pub(crate) async fn of_broken_platforms(world: Arc<World>) {
    let mut site = Site::new(&world, "stat-bad").await;
    let full = |name: &str| format!("stat-bad-{name}");
    for (name, behaviour, ..) in ways() {
        let mut app = AppSource::new(&full(name), behaviour);
        let mut user = AppSource::new(&full(&format!("on-{name}")), Behaviour::ConfigOnly);
        (app.stack, user.stack) = (name.to_owned(), name.to_owned());
        site.platform.apps.extend([app, user.depends_on(&[&full(name)])]);
    }
    let revision = site.commit("many ways to fail");
    let eye = Eye::new(&world, &site);
    configure(&world, &eye.file).await;
    // A run would wait for each until it is sure.
    let apps: Vec<String> = site.platform.apps.iter().map(|app| app.name.clone()).collect();
    for app in &apps {
        site.create_application(app, revision.as_str(), false).await;
    }
    for (name, ..) in ways() {
        // Argo CD refuses what it cannot compare.
        site.sync(&full(name), revision.as_str(), 1).await.ok();
    }
    for (name, _, state, ..) in ways() {
        site.until(&full(name), state, |application| is_as_it_will_stay(name, application)).await;
    }
    let before = logged(&world);
    for (name, _, state, cause, seen) in ways() {
        let app = full(name);
        let scope = format!("stack:{name}");
        let found = eye.json(&["validate", "--scope", &scope], 1).await;
        let first = &found["rootCauses"][0];
        assert_eq!(first["app"], app.as_str(), "{found:#}");
        assert_eq!(first["state"], state, "{found:#}");
        assert!(first["cause"].as_str().unwrap_or_default().contains(cause), "{first:#}");
        let user = full(&format!("on-{name}"));
        let (code, stdout, stderr) = eye.look(&["why", &user]).await;
        assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
        for text in [&*format!("because {app} is {state}"), seen, "next: "] {
            assert!(stdout.contains(text), "no `{text}` in:\n{stdout}");
        }
    }
    assert_eq!(eye.writes(), Vec::<String>::new());
    eye.nothing_was_written_for_it(before);

    // A run's own account sees all of it but what pods write.
    let account = format!("system:serviceaccount:argocd:tiphys-{}", site.platform.name);
    let eye = eye.acting_as(&account, &["system:serviceaccounts", "system:authenticated"]);
    eye.json(&["validate"], 1).await;
    let (code, stdout, stderr) = eye.look(&["why", &full("never")]).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    for text in ["likely: a probe fails", "not seen: the log of Pod/", "forbidden"] {
        assert!(stdout.contains(text), "no `{text}` in:\n{stdout}");
    }
    site.close().await;
}

/// Argo CD needs a while to see what is wrong.
fn is_as_it_will_stay(name: &str, application: &Application) -> bool {
    let status = &application.status;
    let over = status.operation_state.as_ref().is_some_and(|s| s.phase != "Running");
    match name {
        "never" => over && status.health.status == "Progressing" && status.sync.status == "Synced",
        "degraded" => over && status.health.status == "Degraded" && status.sync.status == "Synced",
        "refused" => status.operation_state.as_ref().is_some_and(|s| s.phase == "Failed"),
        "broken" => status.conditions.iter().flatten().any(|c| c.kind == "ComparisonError"),
        _ => over && status.health.status == "Healthy" && status.sync.status == "OutOfSync",
    }
}

/// A Deployment of an image that nobody serves, with what a trouble needs.
fn deployment(pod: &str) -> String {
    format!(
        "\
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: app }}
spec:
  selector: {{ matchLabels: {{ app: app }} }}
  template:
    metadata: {{ labels: {{ app: app }} }}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - {{ name: app, image: \"localhost:1/nobody/serves:this\" }}
{pod}"
    )
}

/// Name, manifests, and what is most likely wrong with it.
fn troubles() -> [(&'static str, String, &'static str); 5] {
    let volume = "\
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: data }
spec:
  storageClassName: nobody-provides-this
  accessModes: [ReadWriteOnce]
  resources: { requests: { storage: 1Gi } }
";
    let mount = "      volumes: [{ name: data, persistentVolumeClaim: { claimName: data } }]\n";
    let quota = "\
---
apiVersion: v1
kind: ResourceQuota
metadata: { name: none }
spec: { hard: { pods: 0 } }
";
    let unknown = "\
apiVersion: tiphys.dev/v1
kind: Unheard
metadata: { name: app }
";
    let held = "\
apiVersion: v1
kind: ConfigMap
metadata: { name: app, finalizers: [lab.tiphys.dev/held] }
";
    [
        ("image", deployment(""), "an image cannot be pulled"),
        ("volume", deployment(mount) + volume, "a volume is pending"),
        ("quota", deployment("") + quota, "a quota is used up"),
        ("crd", unknown.to_owned(), "a CRD is missing"),
        ("finalizer", held.to_owned(), "waits for a finalizer"),
    ]
}

pub(crate) async fn of_common_troubles(world: Arc<World>) {
    let mut site = Site::new(&world, "stat-why").await;
    let full = |name: &str| format!("stat-why-{name}");
    for (name, manifests, _) in troubles() {
        let behaviour = Behaviour::Resource { manifests };
        site.platform.apps.push(AppSource::new(&full(name), behaviour));
    }
    let revision = site.commit("common troubles");
    let eye = Eye::new(&world, &site);
    configure(&world, &eye.file).await;
    for (name, ..) in troubles() {
        site.create_application(&full(name), revision.as_str(), false).await;
        site.sync(&full(name), revision.as_str(), 1).await.ok();
    }
    site.until_healthy(&full("finalizer")).await;
    let applications = site.applications();
    let gone = kube::api::DeleteParams::default();
    applications.delete(&full("finalizer"), &gone).await.expect("it can be deleted");
    for (name, _, likely) in troubles() {
        let mut told = String::new();
        // Kubernetes needs a while until it says what is wrong.
        for _ in 0..40 {
            (_, told, _) = eye.look(&["why", &full(name)]).await;
            if told.contains(likely) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        assert!(told.contains(likely), "no `{likely}` for {name} in:\n{told}");
    }
    site.close().await;
}
