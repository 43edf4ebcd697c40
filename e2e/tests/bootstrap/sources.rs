//! Manifests from wherever they are: a file, a registry, a server, a chart.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::{Value, json};
use tiphys_e2e::servers::{self, Server};
use tiphys_e2e::{Ground, tiphys};
use tiphys_lab::{Cluster, Home, Registry, packages};

use crate::start::{Start, checksum, objects};

/// The objects, in an order of their own: Helm has another one.
fn sorted(rendered: &str) -> Vec<String> {
    let mut texts: Vec<String> = objects(rendered).iter().map(Value::to_string).collect();
    texts.sort();
    texts
}

/// Renders, with the lab's tools on the path.
fn render(start: &Start, ground: &Ground, tools: &Path) -> (Option<i32>, String, String) {
    let mut command = start.command(ground, &["bootstrap", "--render", "-o", "json"]);
    command.env("PATH", tools).env("HOME", start.path("."));
    tiphys::said(&command.output().expect("the program can be started"))
}

fn curl(registry: &Registry, arguments: &[&str]) -> String {
    let password = fs::read_to_string(&registry.password).expect("the password");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--include", "--cacert"])
        .arg(&registry.authority)
        .args(["--user", &format!("{}:{}", registry.user, password.trim())])
        .args(arguments);
    text(&curl.output().expect("curl can be started"))
}

fn text(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Puts bytes into the registry; what they are called there.
fn push_blob(registry: &Registry, repository: &str, file: &Path) -> Value {
    let (sum, size) = (checksum(file), fs::metadata(file).expect("the file").len());
    let uploads = format!("https://{}/v2/{repository}/blobs/uploads/", registry.address);
    let answer = curl(registry, &["--request", "POST", &uploads]);
    let place = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    let place = format!("{}&digest=sha256:{sum}", place.expect("a place"));
    let data = format!("@{}", file.display());
    let kind = "Content-Type: application/octet-stream";
    curl(registry, &["--request", "PUT", "--header", kind, "--data-binary", &data, &place]);
    json!({ "digest": format!("sha256:{sum}"), "size": size })
}

/// An artifact with one layer, as `oras push` makes it; its reference.
fn push(registry: &Registry, start: &Start, file: &str, repository: &str, tag: &str) -> String {
    let (empty, manifest) = (start.path("empty.json"), start.path("manifest.json"));
    fs::write(&empty, "{}").expect("a file");
    let mut config = push_blob(registry, repository, &empty);
    config["mediaType"] = "application/vnd.oci.empty.v1+json".into();
    let mut layer = push_blob(registry, repository, &start.path(file));
    layer["mediaType"] = "application/yaml".into();
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let artifact = json!({
        "schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer],
    });
    fs::write(&manifest, artifact.to_string()).expect("a file");
    let place = format!("https://{}/v2/{repository}/manifests/{tag}", registry.address);
    let data = format!("@{}", manifest.display());
    let kind = format!("Content-Type: {kind}");
    curl(registry, &["--request", "PUT", "--header", &kind, "--data-binary", &data, &place]);
    format!("{}/{repository}:{tag}", registry.address)
}

/// A repository of charts with one that has the manifests of Argo Events in it.
fn chart(start: &Start, helm: &Path, root: &Path, url: &str) {
    let folder = start.path("argo-events");
    fs::create_dir_all(folder.join("templates")).expect("a folder");
    let about = "apiVersion: v2\nname: argo-events\nversion: 1.9.10\n";
    fs::write(folder.join("Chart.yaml"), about).expect("a file");
    fs::copy(start.path("events.yaml"), folder.join("events.yaml")).expect("a file");
    let template = "{{ .Files.Get \"events.yaml\" }}";
    fs::write(folder.join("templates/all.yaml"), template).expect("a file");
    let charts = root.join("charts");
    fs::create_dir_all(&charts).expect("a folder");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(helm);
        command.env("HOME", start.path(".")).current_dir(&charts).args(arguments);
        text(&command.output().expect("helm can be started"));
    };
    run(&["package", &folder.display().to_string()]);
    run(&["repo", "index", ".", "--url", url]);
}

pub(crate) async fn are_used_from_wherever_they_are(ground: Arc<Ground>) {
    let start = Start::reference(&ground, "src").await;
    let work = tokio::task::spawn_blocking(move || from_wherever_they_are(&ground, &start));
    work.await.expect("it comes to its end");
}

fn from_wherever_they_are(ground: &Ground, start: &Start) {
    packages::ensure(&[("curl", "/usr/bin/curl")], &[]).expect("curl can be installed");
    servers::install();
    let cluster = Cluster::new(Home::from_environment(), |_| ());
    let registry = cluster.registry().expect("a registry: `lab up --with registry`");
    let tools = cluster.tools().expect("tools");
    let (root, port) = (tempfile::tempdir().expect("a folder"), servers::free_port());
    let (_server, own) = Server::files(port, root.path());
    let address = format!("https://127.0.0.1:{port}");

    let credentials: PathBuf = start.path("credentials/registry");
    fs::create_dir_all(&credentials).expect("a folder");
    let of_registry = fs::read_to_string(&registry.authority).expect("the authority");
    fs::write(credentials.join("ca.crt"), format!("{of_registry}\n{own}")).expect("a file");
    let password = fs::read_to_string(&registry.password).expect("the password");
    let login = json!({ "username": registry.user, "password": password.trim() });
    let config = json!({ "auths": { registry.address.as_str(): login } });
    fs::write(credentials.join("config.json"), config.to_string()).expect("a file");
    let (code, expected, stderr) = render(start, ground, &tools);
    assert_eq!(code, Some(0), "{stderr}");

    let oci = push(&registry, start, "argocd.yaml", "primitives/argocd", "3.2.6");
    fs::copy(start.path("workflows.yaml"), root.path().join("workflows.yaml")).expect("a file");
    chart(start, &tools.join("helm"), root.path(), &format!("{address}/charts"));
    let elsewhere = |text: String| {
        let chart = format!(
            "chart: {{ repository: '{address}/charts', name: argo-events, version: 1.9.10 }}"
        );
        text.replace("path: argocd.yaml", &format!("oci: '{oci}'"))
            .replace("path: workflows.yaml", &format!("url: '{address}/moved/workflows.yaml'"))
            .replace("path: events.yaml", &chart)
    };
    start.write(elsewhere);
    // What a chart renders to is pinned by what the message says.
    let (code, _, stderr) = render(start, ground, &tools);
    assert_eq!(code, Some(3), "{stderr}");
    let (_, found) = stderr.split_once("has the SHA-256 ").expect("a checksum");
    let (found, rest) = found.split_once(", but ").expect("a checksum");
    let (pinned, _) = rest.split_once(" is pinned").expect("a checksum");
    start.write(|text| elsewhere(text).replace(pinned, found));
    let (code, rendered, stderr) = render(start, ground, &tools);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(sorted(&rendered), sorted(&expected));
    for secret in [password.trim(), "Authorization"] {
        assert!(!stderr.contains(secret) && !rendered.contains(secret), "{stderr}");
    }
}
