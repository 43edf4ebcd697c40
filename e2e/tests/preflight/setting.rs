//! A platform file, credentials, tools and a kubeconfig: everything that preflight looks at, each of
//! which a test can spoil.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::config::Kubeconfig;
use kube::{Api, Client};
use serde_json::{Value, json};
use tiphys_e2e::{Ground, tiphys};
use tiphys_lab::git::Repository;

/// Where Debian has `git` and `ssh`.
const PATH: &str = "/usr/bin:/bin";

pub(crate) struct Setting {
    folder: tempfile::TempDir,
    name: String,
    /// Under whose name the audit log has what is asked.
    pub(crate) user: String,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) path: String,
    pub(crate) repository: String,
    /// More lines of `spec.bootstrap`; none: the platform has no `bootstrap` at all.
    pub(crate) bootstrap: Option<String>,
    pub(crate) arguments: Vec<&'static str>,
}

impl Setting {
    /// One in which everything is right.
    pub(crate) fn new(ground: &Ground, name: &str) -> Self {
        let repository = Repository::create(&ground.git, name).expect("a repository");
        let folder = tempfile::tempdir().expect("a folder");
        let git = folder.path().join("credentials/git");
        fs::create_dir_all(&git).expect("a folder");
        fs::copy(&ground.git.key, git.join("ssh-privatekey")).expect("the key");
        fs::copy(&ground.git.known_hosts, git.join("known_hosts")).expect("the host keys");
        let kubeconfig = folder.path().join("kubeconfig");
        let user = format!("{name}-{}", std::process::id());
        tiphys::act_as(&ground.kubeconfig, &user, &["system:masters"], &kubeconfig);
        Setting {
            folder,
            name: name.to_owned(),
            user,
            kubeconfig,
            path: PATH.to_owned(),
            repository: repository.url(),
            bootstrap: Some(String::new()),
            arguments: Vec::new(),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("the file can be written");
        path
    }

    /// A program in a folder of its own, which becomes the `PATH`.
    pub(crate) fn tool(&mut self, name: &str, script: &str) {
        let path = self.write(&format!("tools/{name}"), &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program");
        self.path = self.file("tools").display().to_string();
    }

    /// Where a primitive would be installed.
    pub(crate) fn namespace(&self, primitive: &str) -> String {
        format!("{}-{primitive}", self.name)
    }

    /// A new key pair; the private one is at the path.
    pub(crate) fn key_pair(&self, name: &str) -> PathBuf {
        let path = self.file(name);
        let mut make = Command::new("ssh-keygen");
        make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&path);
        assert!(make.status().expect("ssh-keygen can be started").success());
        path
    }

    /// The kubeconfig, changed.
    pub(crate) fn change_kubeconfig(&mut self, change: impl FnOnce(&mut Kubeconfig)) {
        let mut config = Kubeconfig::read_from(&self.kubeconfig).expect("the kubeconfig");
        change(&mut config);
        let text = serde_json::to_string(&config).expect("a kubeconfig can be written");
        self.kubeconfig = self.write("changed", &text);
    }

    fn platform(&self) -> String {
        let Setting { repository, name, .. } = self;
        let bootstrap = self.bootstrap.as_ref().map(|more| {
            let pin = |primitive: &str, namespace: &str| {
                let zeros = "0".repeat(64);
                format!(
                    "    {primitive}:\n      version: '1'\n{namespace}      \
                     manifests: {{ path: {primitive}.yaml, sha256: '{zeros}' }}\n"
                )
            };
            let at = |primitive: &str| format!("      namespace: {name}-{primitive}\n");
            let argocd =
                if more.contains("    argocd:") { String::new() } else { pin("argocd", "") };
            let others = pin("workflows", &at("workflows")) + &pin("events", &at("events"));
            format!("  bootstrap:\n{argocd}{others}{more}")
        });
        format!(
            "apiVersion: tiphys.dev/v1alpha1\nkind: Platform\nmetadata: {{ name: {name} }}\nspec:\n  \
             source: {{ repoURL: '{repository}', targetRevision: main, path: root }}\n  \
             argocd: {{ namespace: {name}-argocd }}\n{}  \
             stacks: [{{ name: s, apps: [{{ name: {name}-a }}] }}]\n",
            bootstrap.unwrap_or_default()
        )
    }

    /// Looks, and reads the report.
    pub(crate) async fn look(&self) -> Seen {
        let file = self.write("platform.yaml", &self.platform());
        let credentials = self.file("credentials");
        let text = |path: &Path| path.to_str().expect("a plain name").to_owned();
        let (file, credentials) = (text(&file), text(&credentials));
        let mut arguments =
            vec!["preflight", "-f", &file, "--credentials", &credentials, "-o", "json"];
        arguments.extend(&self.arguments);
        let mut command = tiphys::command(&arguments, &self.kubeconfig);
        command.env("PATH", &self.path);
        let began = Instant::now();
        let run = move || command.output().expect("the program can be started");
        let output = tokio::task::spawn_blocking(run).await.expect("nobody cancels it");
        let took = began.elapsed();
        let (code, stdout, stderr) = tiphys::said(&output);
        assert!(stdout.starts_with('{'), "no report: {stdout}{stderr}");
        let report = serde_json::from_str(&stdout).expect("JSON");
        Seen { code, report, took }
    }
}

/// What was said.
pub(crate) struct Seen {
    pub(crate) code: Option<i32>,
    pub(crate) report: Value,
    pub(crate) took: Duration,
}

/// `SECTION NAME` of a check.
pub(crate) type Row = String;

impl Seen {
    pub(crate) fn checks(&self) -> impl Iterator<Item = &Value> {
        self.report["checks"].as_array().expect("checks").iter()
    }

    pub(crate) fn rows(&self, outcome: &str) -> BTreeSet<Row> {
        let all = self.checks().filter(|check| check["outcome"] == outcome);
        all.map(row).collect()
    }

    pub(crate) fn found(&self, wanted: &str) -> String {
        let check = self.checks().find(|check| row(check) == wanted);
        assert!(check.is_some(), "no row {wanted}: {:#}", self.report);
        check.and_then(|check| check["found"].as_str()).expect("text").to_owned()
    }
}

fn row(check: &Value) -> Row {
    let text = |name: &str| check[name].as_str().expect("text");
    format!("{} {}", text("section"), text("name"))
}

/// Namespaces of a test; they go when it is over.
pub(crate) async fn with_namespaces(client: &Client, names: &[String]) -> Api<Namespace> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in names {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name },
        });
        let (ours, object) = (PatchParams::apply("test"), Patch::Apply(&namespace));
        namespaces.patch(name, &ours, &object).await.expect("a namespace");
    }
    namespaces
}

pub(crate) async fn without_namespaces(namespaces: &Api<Namespace>, names: &[String]) {
    for name in names {
        namespaces.delete(name, &DeleteParams::default()).await.expect("it can be deleted");
    }
    for name in names {
        while namespaces.get_opt(name).await.expect("an answer").is_some() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// What the audit log has of a user, beside reading.
pub(crate) fn written_by(ground: &Arc<Ground>, user: &str) -> Option<Vec<String>> {
    let log = ground.audit_log.as_ref()?;
    let text = fs::read_to_string(log).expect("the audit log");
    let all = text.lines().filter(|line| line.contains(user));
    let mine = all.filter_map(|line| serde_json::from_str::<Value>(line).ok()).filter(|record| {
        let verb = record["verb"].as_str().unwrap_or_default();
        record["impersonatedUser"]["username"] == user && !["get", "list", "watch"].contains(&verb)
    });
    let told = |record: Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{} {}", text(&record["verb"]), text(&record["objectRef"]["resource"]))
    };
    Some(mine.map(told).collect())
}
