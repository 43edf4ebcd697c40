//! What a run passes over, and says: apps that are not pinned, and dependencies outside the scope
//! that are not what their source says.

use std::sync::Arc;

use tiphys_e2e::{PlatformFile, Site, World, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::{configure, deploy};

/// Deploys with more arguments; what it said on stderr.
async fn said(world: &World, file: &PlatformFile, more: &[&str]) -> String {
    let args = ["deploy", "-f", file.path(), "--allow-uncommitted"];
    let args: Vec<&str> = args.iter().chain(more).copied().collect();
    let (code, stdout, stderr) = tiphys::said(&tiphys::run(&args, &world.kubeconfig).await);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    stderr
}

pub(crate) async fn of_what_a_run_passes_over(world: Arc<World>) {
    let mut site = Site::new(&world, "warn").await;
    site.platform.apps = vec![
        AppSource::new("warn-db", Behaviour::ConfigOnly),
        AppSource::new("warn-api", Behaviour::ConfigOnly).depends_on(&["warn-db"]),
    ];
    site.commit("two apps");
    let file = site.platform_file();
    configure(&world, &file).await;
    let quiet = said(&world, &file, &[]).await;
    assert!(!quiet.contains("warning:"), "{quiet}");

    for app in &mut site.platform.apps {
        app.generation = 2;
    }
    site.commit("both change");
    let scoped = said(&world, &file, &["--scope", "app:warn-api"]).await;
    let outside = "warning: `warn-db` is outside the scope and Healthy, but OutOfSync";
    assert!(scoped.contains(outside), "{scoped}");
    deploy(&world, &file, 0).await;

    let mut files = site.platform.files();
    let template = files.get_mut("root/templates/applications.yaml").expect("the template");
    let pinned = "targetRevision: {{ $revision | quote }}";
    assert!(template.contains(pinned), "{template}");
    *template = template.replace(
        pinned,
        "targetRevision: {{ if eq .name \"warn-db\" }}main{{ else }}{{ $revision }}{{ end }}",
    );
    site.repository.commit(&files, "one follows main").expect("a commit");
    let moving = said(&world, &file, &[]).await;
    let follows = "warning: `warn-db` follows `main` of the platform's repository";
    assert!(moving.contains(follows) && !moving.contains("`warn-api`"), "{moving}");
    site.close().await;
}
