//! The executor in a pod: variables and a service account, nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tiphys_cluster::names::Account;
use tiphys_e2e::pod::{PodEnd, ProgramPod};
use tiphys_e2e::{Site, World, figure};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::configure;

const NAME: &str = "pod-run";

/// What a pod came to.
struct Ended {
    code: i32,
    /// Both streams; each line is JSON.
    lines: Vec<Value>,
}

impl Ended {
    fn says(&self, text: &str) -> bool {
        let said = |line: &Value| line["message"].as_str().is_some_and(|said| said.contains(text));
        self.lines.iter().any(said)
    }

    fn errors(&self) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["level"] == "error").collect()
    }
}

/// Runs the executor to its end.
async fn run(site: &Site, account: Account, variables: &[(&str, &str)]) -> Ended {
    let pod = ProgramPod {
        name: NAME,
        namespace: account.namespace(),
        account: &format!("tiphys.argocd.{NAME}.{}", account.as_str()),
        args: &["executor"],
        variables,
        file: None,
    };
    let PodEnd { code, log } = pod.run(site).await;
    let lines = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    Ended { code, lines }
}

pub(crate) async fn in_a_pod(world: Arc<World>) {
    let mut site = Site::new(&world, NAME).await;
    let after = Duration::from_secs(1);
    site.platform.apps = vec![
        AppSource::new("pod-run-db", Behaviour::Healthy { after }),
        AppSource::new("pod-run-api", Behaviour::ConfigOnly).depends_on(&["pod-run-db"]),
    ];
    site.platform.carries_its_file = true;
    site.commit("two apps");
    configure(&world, &site.platform_file()).await;

    let platform = ("TIPHYS_PLATFORM", NAME);
    let began = Instant::now();
    let deployed = run(&site, Account::Deploy, &[("TIPHYS_ACTION", "deploy"), platform]).await;
    assert_eq!(deployed.code, 0, "{:#?}", deployed.lines);
    figure(&format!("deployment by a pod: {} s", began.elapsed().as_secs()));
    let finished = deployed.lines.iter().find(|line| line["kind"] == "run-finished");
    assert_eq!(finished.expect("an end")["verdict"], "succeeded", "{:#?}", deployed.lines);
    assert!(deployed.says("the cluster that this runs in"), "{:#?}", deployed.lines);

    let validate = ("TIPHYS_ACTION", "validate");
    let valid = run(&site, Account::Validate, &[validate, platform]).await;
    assert_eq!(valid.code, 0, "{:#?}", valid.lines);
    assert_eq!(valid.lines[0]["platform"], NAME, "{:#?}", valid.lines);

    // Who may deploy may not take down, whatever is said.
    let (teardown, confirm) = (("TIPHYS_ACTION", "teardown"), ("TIPHYS_CONFIRM", NAME));
    let unconfirmed = run(&site, Account::Deploy, &[teardown, platform]).await;
    assert_eq!(unconfirmed.code, 3, "{:#?}", unconfirmed.lines);
    let elsewhere = ("TIPHYS_ENVIRONMENT", "another");
    let other = run(&site, Account::Deploy, &[teardown, platform, confirm, elsewhere]).await;
    assert_eq!(other.code, 3, "{:#?}", other.lines);
    for account in [Account::Deploy, Account::Validate, Account::Submit] {
        let denied = run(&site, account, &[teardown, platform, confirm]).await;
        assert_eq!(denied.code, 4, "{account:?}: {:#?}", denied.lines);
        assert_eq!(denied.errors().len(), 1, "{account:?}: {:#?}", denied.lines);
    }
    site.until_healthy("pod-run-db").await;
    let denied = run(&site, Account::Validate, &[("TIPHYS_ACTION", "deploy"), platform]).await;
    assert_eq!(denied.code, 4, "{:#?}", denied.lines);

    // The teardown account removes the platform, and keeps its own account.
    let gone = run(&site, Account::Teardown, &[teardown, platform, confirm]).await;
    assert_eq!(gone.code, 0, "{:#?}", gone.lines);
    assert!(gone.says("this run needs them itself"), "{:#?}", gone.lines);
    let validated = run(&site, Account::Validate, &[validate, platform]).await;
    assert_eq!(validated.code, 5, "{:#?}", validated.lines);
    site.close().await;
}
