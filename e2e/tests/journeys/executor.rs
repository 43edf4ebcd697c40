//! The executor in a pod: variables and a service account, nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, LogParams};
use serde_json::{Value, json};
use tiphys_e2e::{Site, World, figure, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::configure;

const NAME: &str = "pod-run";
/// The account that `configure` makes for runs.
const ACCOUNT: &str = "tiphys-pod-run";
const LONGEST: Duration = Duration::from_secs(120);

/// What a pod came to.
struct Ended {
    code: i64,
    /// Both streams; each line is JSON.
    lines: Vec<Value>,
}

impl Ended {
    fn errors(&self) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["level"] == "error").collect()
    }
}

/// Runs the executor to its end. The program comes from this machine, and what it is linked with from
/// Argo CD's image.
async fn run(site: &Site, variables: &[(&str, &str)]) -> Ended {
    let argocd = site.objects("apps/v1", "Deployment", Some("argocd"));
    let server = argocd.get("argocd-server").await.expect("Argo CD is there");
    let image = server.data["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    let binary = tiphys::binary().canonicalize().expect("the program");
    let folder = binary.parent().expect("it lies in a folder");
    let pods: Api<Pod> = Api::namespaced(site.world.client.clone(), "argocd");
    let variables: Vec<Value> =
        variables.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let container = json!({
        "name": "tiphys", "image": image, "command": ["/program/tiphys", "executor"],
        "env": variables, "workingDir": "/proc",
        "volumeMounts": [{ "name": "program", "mountPath": "/program", "readOnly": true }],
        "securityContext": {
            "readOnlyRootFilesystem": true, "runAsNonRoot": true, "runAsUser": 65532,
            "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
            "seccompProfile": { "type": "RuntimeDefault" },
        },
    });
    site.apply(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": NAME, "namespace": "argocd" },
        "spec": {
            "serviceAccountName": ACCOUNT, "restartPolicy": "Never", "containers": [container],
            "volumes": [{ "name": "program", "hostPath": { "path": folder } }],
        },
    }))
    .await;
    let began = Instant::now();
    let code = loop {
        let pod = pods.get(NAME).await.expect("the pod");
        let statuses = pod.status.and_then(|status| status.container_statuses);
        let state = statuses.and_then(|all| all.first()?.state.clone());
        if let Some(ended) = state.and_then(|state| state.terminated) {
            break i64::from(ended.exit_code);
        }
        assert!(began.elapsed() < LONGEST, "the pod does not end");
        tokio::time::sleep(Duration::from_millis(300)).await;
    };
    let said = pods.logs(NAME, &LogParams::default()).await.expect("its log");
    pods.delete(NAME, &DeleteParams::default().grace_period(0)).await.expect("it can go");
    while pods.get_opt(NAME).await.expect("an answer").is_some() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let lines = said.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
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
