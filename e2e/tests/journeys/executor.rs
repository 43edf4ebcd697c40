//! The executor in a pod: variables and a service account, nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tiphys_e2e::pod::{PROGRAM, PodEnd, ProgramPod};
use tiphys_e2e::{Site, World, figure};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::configure;

const NAME: &str = "pod-run";
/// The account that `configure` makes for runs.
const ACCOUNT: &str = "tiphys-pod-run";

/// What a pod came to.
struct Ended {
    code: i32,
    /// Both streams; each line is JSON.
    lines: Vec<Value>,
}

impl Ended {
    fn errors(&self) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["level"] == "error").collect()
    }
}

/// Runs the executor to its end.
async fn run(site: &Site, variables: &[(&str, &str)]) -> Ended {
    let pod = ProgramPod {
        name: NAME,
        namespace: "argocd",
        account: ACCOUNT,
        command: &[PROGRAM, "executor"],
        variables,
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
    let deployed = run(&site, &[("TIPHYS_ACTION", "deploy"), platform]).await;
    assert_eq!(deployed.code, 0, "{:#?}", deployed.lines);
    figure(&format!("deployment by a pod: {} s", began.elapsed().as_secs()));
    let finished = deployed.lines.iter().find(|line| line["kind"] == "run-finished");
    assert_eq!(finished.expect("an end")["verdict"], "succeeded", "{:#?}", deployed.lines);
    let named = deployed.lines.iter().any(|line| {
        line["message"].as_str().is_some_and(|text| text.contains("the cluster that this runs in"))
    });
    assert!(named, "{:#?}", deployed.lines);

    let valid = run(&site, &[("TIPHYS_ACTION", "validate"), platform]).await;
    assert_eq!(valid.code, 0, "{:#?}", valid.lines);
    assert_eq!(valid.lines[0]["platform"], NAME, "{:#?}", valid.lines);

    // Who may deploy may not take down, whatever is said.
    let teardown = ("TIPHYS_ACTION", "teardown");
    let unconfirmed = run(&site, &[teardown, platform]).await;
    assert_eq!(unconfirmed.code, 3, "{:#?}", unconfirmed.lines);
    let elsewhere = ("TIPHYS_ENVIRONMENT", "another");
    let other = run(&site, &[teardown, platform, ("TIPHYS_CONFIRM", NAME), elsewhere]).await;
    assert_eq!(other.code, 3, "{:#?}", other.lines);
    let denied = run(&site, &[teardown, platform, ("TIPHYS_CONFIRM", NAME)]).await;
    assert_eq!(denied.code, 4, "{:#?}", denied.lines);
    assert_eq!(denied.errors().len(), 1, "{:#?}", denied.lines);
    site.until_healthy("pod-run-db").await;
    site.close().await;
}
