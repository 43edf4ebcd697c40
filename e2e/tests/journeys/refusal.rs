//! What a deployment refuses before any app is touched: each with its own exit code, and with
//! words that say what to do next.

use std::path::Path;
use std::sync::Arc;

use tiphys_e2e::{PlatformFile, Site, World, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::audit::Mark;
use crate::deploy::{configure, deploy};

/// Deploys with a kubeconfig, and expects all of these words on stderr.
async fn refused(file: &PlatformFile, kubeconfig: &Path, code: i32, words: &[&str]) {
    let args = ["deploy", "-f", file.path(), "--allow-uncommitted"];
    let said = tiphys::said(&tiphys::run(&args, kubeconfig).await);
    check(&said, code, words);
}

fn check((found, stdout, stderr): &(Option<i32>, String, String), code: i32, words: &[&str]) {
    assert_eq!(*found, Some(code), "{stdout}{stderr}");
    for word in words.iter().chain(&["help:"]) {
        assert!(stderr.contains(word), "no `{word}` in:\n{stderr}");
    }
}

async fn small(world: &Arc<World>, name: &str) -> Site {
    let mut site = Site::new(world, name).await;
    site.platform.apps = vec![
        AppSource::new(&format!("{name}-db"), Behaviour::ConfigOnly),
        AppSource::new(&format!("{name}-api"), Behaviour::ConfigOnly)
            .depends_on(&[&format!("{name}-db")]),
    ];
    site
}

/// Nothing was set up, nobody has a right, the file is not what Git has.
pub(crate) async fn of_what_is_not_ready(world: Arc<World>) {
    let mut site = small(&world, "ref").await;
    site.platform.carries_its_file = true;
    site.commit("two apps");
    let file = site.platform_file();
    let secrets = site.objects("v1", "Secret", Some("argocd"));
    secrets.delete("tiphys-ref-deploy", &kube::api::DeleteParams::default()).await.ok();
    refused(
        &file,
        &world.kubeconfig,
        3,
        &["the deploy token of the platform `ref` is missing", "tiphys configure"],
    )
    .await;
    let elsewhere = site.platform_file_with(|text| {
        assert!(text.contains("namespace: argocd"), "{text}");
        text.replace("namespace: argocd", "namespace: default")
    });
    refused(
        &elsewhere,
        &world.kubeconfig,
        3,
        &["Argo CD not found in the namespace `default`", "spec.argocd.namespace"],
    )
    .await;

    let folder = tempfile::tempdir().expect("a folder");
    let nobody = folder.path().join("nobody");
    let user = "system:serviceaccount:default:default";
    let groups = ["system:serviceaccounts", "system:authenticated"];
    tiphys::act_as(&world.kubeconfig, user, &groups, &nobody);
    let right = format!("User \"{user}\" cannot get resource \"secrets\"");
    refused(&file, &nobody, 4, &[&right, "tiphys-ref-deploy"]).await;

    configure(&world, &file).await;
    let before = Mark::now(&world);
    site.platform.concurrency = Some(2);
    let changed = site.platform_file();
    let deploy = ["deploy", "-f", changed.path(), "-o", "jsonl"];
    let said = tiphys::said(&tiphys::run(&deploy, &world.kubeconfig).await);
    let differs = "platform.yaml differs from the one in the root app";
    check(&said, 3, &["the platform file differs from Git", differs]);
    assert_eq!(before.writes(&site).of_ours(), [].into(), "no app was touched");
    assert!(world.held(&site.platform.project).await.is_empty(), "and none was held");

    let deploy = ["deploy", "-f", file.path(), "-o", "jsonl"];
    let said = tiphys::said(&tiphys::run(&deploy, &world.kubeconfig).await);
    assert_eq!(said.0, Some(0), "what is committed is deployed: {}", said.2);
    site.close().await;
}

/// An app in the platform file for which the root app creates no Application.
pub(crate) async fn of_an_app_without_application(world: Arc<World>) {
    let site = small(&world, "lack").await;
    let mut files = site.platform.files();
    let values = files.get_mut("root/values.yaml").expect("the values");
    let kept: Vec<&str> = values.lines().filter(|line| !line.contains("lack-api")).collect();
    *values = kept.join("\n") + "\n";
    site.repository.commit(&files, "an Application is missing").expect("a commit");
    let file = site.platform_file();
    configure(&world, &file).await;
    // Nobody else could create it, so it is not awaited for long.
    let missing = "no Application found for lack-api";
    let why = "no generator created them within 5 s";
    let next = "add them to the root app's source";
    refused(&file, &world.kubeconfig, 5, &[missing, why, next]).await;
    let held = world.held(&site.platform.project).await;
    assert_eq!(held.len(), 2, "what is not deployed stays held: {held:?}");

    site.commit("both Applications");
    deploy(&world, &file, 0).await;
    site.close().await;
}
