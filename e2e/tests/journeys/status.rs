//! What people see of a platform: whether it is well, and if not, why.

mod behind;
mod catalogue;
mod troubles;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tiphys_e2e::{PlatformFile, Site, World, tiphys};
use tiphys_lab::audit::{self, Record};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::{configure, deploy};
pub(crate) use behind::is_told as argo_cd_that_is_behind_is_told;
pub(crate) use troubles::are_told_by_their_true_cause;

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
    assert_eq!((code, &*stdout), (Some(0), "platform stat-well is healthy: 3 apps\n"));

    // Somebody who does not ask a run.
    let (app, project) = ("stat-well-web", site.platform.project.clone());
    let sync = serde_json::json!({ "project": project });
    let _: Value = world
        .argocd
        .call(
            http::Method::POST,
            &format!("applications/{app}/sync"),
            Some(&sync),
            tiphys_argocd::rest::REQUEST_TIMEOUT,
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
