//! Commits that show on a Git server what became of their deployment.

use std::sync::Arc;
use std::time::Duration;

use tiphys_e2e::forge::Forge;
use tiphys_e2e::{Site, World, until_within};
use tiphys_lab::repository::Behaviour;
use tiphys_model::platform::Retry;
use tiphys_model::{CommitStatus, StatusProvider};

use super::automatic::{
    commit_everything, deployed_once, refresh_root, take_down, two_apps, until_loop_says,
};
use super::said;

const NAME: &str = "wf-status";
const LATEST: Duration = Duration::from_secs(240);

/// A platform whose repository is on the forge.
async fn arrange(world: &Arc<World>, forge: &Forge) -> Site {
    forge.create(NAME).await;
    let mut site = two_apps(world, NAME).await;
    site.platform.repo_url = forge.repository(NAME);
    site.platform.commit_status = Some(CommitStatus {
        provider: StatusProvider::GitHub,
        api: forge.api_address(),
        repository: String::new(),
        context: String::new(),
        link: Some("https://page.example/starter".to_owned()),
    });
    site.commit("two apps");
    forge.push(&world.git, NAME);
    let file = site.platform_file();
    let refused = said(world, &["configure", "-f", file.path()]).await;
    assert_eq!(refused.0, Some(3), "{refused:?}");
    assert!(refused.2.contains("there is no token for commit statuses"), "{}", refused.2);
    let credentials = tempfile::tempdir().expect("a folder");
    forge.write_credentials(credentials.path());
    let folder = credentials.path().display().to_string();
    let args = ["configure", "-f", file.path(), "--credentials", &folder];
    let (code, stdout, stderr) = said(world, &args).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    deployed_once(&site, world).await;
    site
}

pub(crate) async fn show_what_became_of_commits(world: Arc<World>) {
    let forge = Forge::start(&world.git).await;
    let mut site = arrange(&world, &forge).await;
    let context = format!("tiphys/{NAME}");
    let states = async |commit: &str| -> Vec<String> {
        let statuses = forge.statuses(NAME, commit).await;
        assert!(statuses.iter().all(|[of, ..]| *of == context), "{statuses:?}");
        statuses.into_iter().map(|[_, state, _]| state).collect()
    };
    let until_last = async |commit: &str, state: &str| {
        until_within(LATEST, &format!("{commit} shows {state}"), async || {
            states(commit).await.last().is_some_and(|last| last == state)
        })
        .await;
    };

    let good = changed(&mut site, &forge, "news").await;
    until_loop_says(&site, &world, "up-to-date", Some(&good)).await;
    until_last(&good, "success").await;
    assert_eq!(states(&good).await, ["pending", "success"]);

    // What fails is said with the reason.
    let api = format!("{NAME}-api");
    let app = site.platform.app_mut(&api).expect("an app");
    app.behaviour = Behaviour::FailsToSync;
    app.retry = Some(Retry { limit: 0, ..Retry::default() });
    let bad = changed(&mut site, &forge, "an app that cannot be applied").await;
    until_last(&bad, "failure").await;
    let statuses = forge.statuses(NAME, &bad).await;
    let [_, _, words] = statuses.last().expect("a status");
    assert!(words.starts_with(&format!("not deployed: {api}: ")), "{words}");

    // What was left behind is not left pending.
    let (code, _, stderr) = said(&world, &["pause", NAME]).await;
    assert_eq!(code, Some(0), "{stderr}");
    site.platform.app_mut(&api).expect("an app").behaviour = Behaviour::ConfigOnly;
    let skipped = changed(&mut site, &forge, "mended").await;
    until_last(&skipped, "pending").await;
    let newest = changed(&mut site, &forge, "and better").await;
    until_last(&skipped, "error").await;
    let (code, _, stderr) = said(&world, &["resume", NAME]).await;
    assert_eq!(code, Some(0), "{stderr}");
    until_last(&newest, "success").await;

    take_down(&site).await;
    let secrets = site.objects("v1", "Secret", Some("tiphys-system"));
    let secret = format!("tiphys.argocd.{NAME}.commit-status");
    assert!(secrets.get_opt(&secret).await.expect("an answer").is_none(), "it goes, too");
    site.close().await;
}

/// Commits a change of every app, pushes it, and has Argo CD look.
async fn changed(site: &mut Site, forge: &Forge, message: &str) -> String {
    let commit = commit_everything(site, message);
    forge.push(&site.world.git, NAME);
    refresh_root(site).await;
    commit
}
