//! A repository behind HTTPS, a token, and an authority that nobody else knows.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use tiphys_e2e::servers::{self, Server};
use tiphys_e2e::{Site, World, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::audit::Mark;
use crate::deploy::deploy;
use crate::teardown::teardown;

const LOGIN: (&str, &str) = ("robot", "token-0123");

pub(crate) async fn with_a_token_and_a_private_authority(world: Arc<World>) {
    servers::install();
    let mut site = Site::new(&world, "https").await;
    let (host, port) = (world.git.host().to_owned(), servers::free_port());
    let folder = world.git.folder().expect("the lab's repositories").to_owned();
    let (_servers, authority) = Server::git(&host, port, &folder, LOGIN);
    site.platform.repo_url = format!("https://{host}:{port}/git/https.git");
    let healthy = Behaviour::Healthy { after: Duration::from_secs(1) };
    site.platform.apps = vec![
        AppSource::new("https-db", healthy.clone()),
        AppSource::new("https-api", healthy).depends_on(&["https-db"]),
    ];
    let revision = site.commit("two apps");
    let file = site.platform_file();

    let credentials = tempfile::tempdir().expect("a folder");
    let git = credentials.path().join("git");
    fs::create_dir(&git).expect("a folder");
    let path = credentials.path().display().to_string();
    let configure = async |username: &str, password: &str, authority: &str| {
        for (name, text) in [("username", username), ("password", password), ("ca.crt", authority)]
        {
            fs::write(git.join(name), text).expect("a file");
        }
        let args = ["configure", "-f", file.path(), "--credentials", &path];
        let (code, stdout, stderr) = tiphys::said(&tiphys::run(&args, &world.kubeconfig).await);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(!format!("{stdout}{stderr}").contains(LOGIN.1), "{stdout}{stderr}");
    };
    configure(LOGIN.0, "wrong", &authority).await;
    let args = ["deploy", "-f", file.path(), "--allow-uncommitted"];
    let (code, _, stderr) = tiphys::said(&tiphys::run(&args, &world.kubeconfig).await);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("authentication required"), "{stderr}");

    configure(LOGIN.0, LOGIN.1, &authority).await;
    let before = Mark::now(&world);
    let events = deploy(&world, &file, 0).await;
    assert_eq!(events.last().expect("events")["counts"]["applied"], 2, "{events:#?}");
    before.writes(&site).check_order(&site, revision.as_str());
    let authorities = site.objects("v1", "ConfigMap", Some("argocd"));
    let known = async || {
        let map = authorities.get("argocd-tls-certs-cm").await.expect("Argo CD has it");
        map.data["data"][&host].as_str().map(str::to_owned)
    };
    assert_eq!(known().await.as_deref(), Some(&*authority));
    teardown(&world, &file, &[], 0).await;
    assert_eq!(known().await, None, "it goes with the platform");
    site.close().await;
}
