//! Sources of other kinds than a folder of manifests: charts by version and by range, values from
//! another repository, kustomizations, folders within folders.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tiphys_e2e::servers::{self, Server};
use tiphys_e2e::{Site, World};
use tiphys_lab::repository::{AppSource, Behaviour};

use super::{application, expect};
use crate::deploy::configure;
use crate::teardown::teardown;

/// Each app with its sources; they depend on each other in this order.
const SOURCES: [(&str, &str); 5] = [
    ("kinds-exact", "source: { repoURL: 'CHARTS', chart: web, targetRevision: 1.0.0 }"),
    ("kinds-range", "source: { repoURL: 'CHARTS', chart: web, targetRevision: 1.* }"),
    (
        "kinds-values",
        "sources: [{ repoURL: 'CHARTS', chart: web, targetRevision: 1.0.0, \
         helm: { valueFiles: [$values/values/values.yaml] } }, \
         { repoURL: REPOSITORY, targetRevision: main, ref: values }]",
    ),
    (
        "kinds-kustomize",
        "source: { repoURL: REPOSITORY, path: kustomized, targetRevision: SHA, \
         kustomize: { nameSuffix: -suffixed } }",
    ),
    (
        "kinds-folder",
        "source: { repoURL: REPOSITORY, path: nested, targetRevision: SHA, \
         directory: { recurse: true } }",
    ),
];

const TEMPLATE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: { name: web }
data: { version: '{{ .Chart.Version }}', said: '{{ .Values.said }}' }
";

pub(crate) async fn are_deployed(world: Arc<World>) {
    servers::install();
    let mut site = Site::new(&world, "kinds").await;
    let charts = tempfile::tempdir().expect("a folder");
    publish(charts.path(), &["1.0.0"]);
    let (host, port) = (world.git.host().to_owned(), servers::free_port());
    let _server = Server::plain_files(&host, port, charts.path());
    let address = format!("http://{host}:{port}");
    let mut before: Option<&str> = None;
    for (name, _) in SOURCES {
        let app = AppSource::new(name, Behaviour::ConfigOnly);
        site.platform.apps.push(app.depends_on(before.as_slice()));
        before = Some(name);
    }
    commit(&site, &address, "hello");
    let file = site.platform_file();
    configure(&world, &file).await;
    let all = SOURCES.map(|(name, _)| name);
    expect(&world, &site, &file, &all).await;
    expect(&world, &site, &file, &[]).await;

    publish(charts.path(), &["1.0.0", "1.1.0"]);
    expect(&world, &site, &file, &["kinds-range"]).await;
    assert_eq!(value(&site, "kinds-range", "version").await, "1.1.0");
    assert_eq!(value(&site, "kinds-exact", "version").await, "1.0.0");
    assert_eq!(value(&site, "kinds-values", "said").await, "hello");

    commit(&site, &address, "good morning");
    expect(&world, &site, &file, &["kinds-values"]).await;
    assert_eq!(value(&site, "kinds-values", "said").await, "good morning");
    teardown(&world, &file, &[], 0).await;
    site.close().await;
}

fn commit(site: &Site, charts: &str, said: &str) {
    let mut files = site.platform.files();
    files.retain(|path, _| !path.starts_with("apps/"));
    let templates = SOURCES
        .iter()
        .map(|(name, source)| application("kinds", name, &source.replace("CHARTS", charts)));
    files.insert("root/templates/applications.yaml".to_owned(), templates.collect());
    files.insert("values/values.yaml".to_owned(), format!("said: {said}\n"));
    let map =
        |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: {name} }}\n");
    files.insert("kustomized/map.yaml".to_owned(), map("kustomized"));
    files.insert("kustomized/kustomization.yaml".to_owned(), "resources: [map.yaml]\n".to_owned());
    files.insert("nested/one/map.yaml".to_owned(), map("one"));
    files.insert("nested/two/three/map.yaml".to_owned(), map("three"));
    site.repository.commit(&files, said).expect("a commit");
}

/// A chart repository with these versions of one chart.
fn publish(folder: &Path, versions: &[&str]) {
    let mut index = "apiVersion: v1\nentries:\n  web:\n".to_owned();
    for version in versions {
        let chart = tempfile::tempdir().expect("a folder");
        let web = chart.path().join("web");
        fs::create_dir_all(web.join("templates")).expect("a folder");
        let head = format!("apiVersion: v2\nname: web\nversion: {version}\n");
        for (name, text) in [
            ("Chart.yaml", head.as_str()),
            ("values.yaml", "said: nothing\n"),
            ("templates/map.yaml", TEMPLATE),
        ] {
            fs::write(web.join(name), text).expect("a file");
        }
        let archive = format!("web-{version}.tgz");
        let packed = Command::new("tar")
            .arg("-czf")
            .arg(folder.join(&archive))
            .arg("-C")
            .arg(chart.path())
            .arg("web")
            .status();
        assert!(packed.expect("tar can be started").success());
        index += &format!("  - {{ name: web, version: {version}, urls: [{archive}] }}\n");
    }
    fs::write(folder.join("index.yaml"), index).expect("a file");
}

async fn value(site: &Site, namespace: &str, key: &str) -> String {
    let maps = site.objects("v1", "ConfigMap", Some(namespace));
    let map = maps.get("web").await.expect("the chart has it");
    map.data["data"][key].as_str().unwrap_or_default().to_owned()
}
