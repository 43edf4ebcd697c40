//! Runs that are killed or stopped in the middle, and clusters that go away for a while.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use tiphys_e2e::{PlatformFile, Site, World, count, figure, seed, tiphys};
use tiphys_sim::Chance;

use crate::audit::Mark;
use crate::deploy::{arguments, configure, deploy};

/// How often a run is killed: a soak sets `TIPHYS_E2E_KILLS=20`.
const KILLS: u32 = 1;

pub(crate) fn kills() -> u32 {
    count("TIPHYS_E2E_KILLS", KILLS)
}

pub(crate) async fn after_kills(world: Arc<World>) {
    let kills = kills();
    let mut chance = Chance::new(seed());
    let mut site = Site::reference(&world, "kill", Duration::from_secs(1)).await;
    let file = site.platform_file();
    site.commit("the reference platform");
    configure(&world, &file).await;
    let began = Instant::now();
    deploy(&world, &file, 0).await;
    let whole = u64::try_from(began.elapsed().as_millis()).expect("a short time");
    let mut moments = Vec::new();
    for generation in 2..kills + 2 {
        for app in &mut site.platform.apps {
            app.generation = generation;
        }
        let revision = site.commit("everything changed");
        let before = Mark::now(&world);
        let mut run = start(&world, &file);
        let moment = chance.millis(0, whole);
        tokio::time::sleep(moment).await;
        run.kill().expect("the run can be killed");
        let output = run.wait_with_output().expect("it has ended");
        let done = tiphys::said(&output).1.matches("\"step-done\"").count();
        moments.push(format!("{:.1} s ({done} done)", moment.as_secs_f64()));
        deploy(&world, &file, 0).await;
        let writes = before.writes(&site);
        writes.check_order(&site, revision.as_str());
        let operations = writes.operations();
        let twice: BTreeMap<_, _> = operations.iter().filter(|(_, o)| o.len() != 1).collect();
        assert!(twice.is_empty(), "killed after {moment:?}: synced more than once: {twice:?}");
        assert_eq!(operations.len(), 43, "killed after {moment:?}");
        assert!(world.held(&site.platform.project).await.is_empty(), "all is handed off");
        let valid = tiphys::run(&["validate", "-f", file.path()], &world.kubeconfig).await;
        let (code, stdout, stderr) = tiphys::said(&valid);
        assert_eq!(code, Some(0), "killed after {moment:?}: {stdout}{stderr}");
    }
    figure(&format!(
        "{kills} kills of runs of {:.1} s, each app synced once for each change; killed after {}",
        Duration::from_millis(whole).as_secs_f64(),
        moments.join(", "),
    ));
    site.close().await;
}

/// A run that was stopped for longer than its Lease must not do anything when it goes on, at
/// whatever moment it was stopped. A soak sets `TIPHYS_E2E_STOPS=20`.
pub(crate) async fn after_a_stop(world: Arc<World>) {
    let mut chance = Chance::new(seed());
    let mut site = Site::reference(&world, "stop", Duration::from_secs(2)).await;
    site.platform.apps.retain(|app| {
        let few = ["metallb", "metallb-config", "cert-manager", "cluster-issuers", "ingress-nginx"];
        few.iter().any(|name| app.name == format!("stop-{name}"))
    });
    site.commit("a few apps");
    let file = site.platform_file();
    configure(&world, &file).await;
    for generation in 2..count("TIPHYS_E2E_STOPS", 1) + 2 {
        for app in &mut site.platform.apps {
            app.generation = generation;
        }
        site.commit("everything changed");
        let stopped = start(&world, &file);
        wait_for_lease(&site, "tiphys-stop-reference").await;
        // The apps need six seconds.
        let moment = chance.millis(0, 4_000);
        tokio::time::sleep(moment).await;
        signal(&stopped, "STOP");
        // It waits for the Lease to run out, then takes over.
        deploy(&world, &file, 0).await;
        let before = Mark::now(&world);
        signal(&stopped, "CONT");
        let output = stopped.wait_with_output().expect("it ends");
        let (code, stdout, stderr) = tiphys::said(&output);
        let told = format!("stopped {moment:?} after it took the Lease: {stderr}\n{stdout}");
        assert_eq!(code, Some(8), "{told}");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(before.writes(&site).told(), Vec::<String>::new(), "writes nothing; {told}");
    }
    site.close().await;
}

/// A run that has not begun yet when it is stopped takes nothing from anybody.
async fn wait_for_lease(site: &Site, name: &str) {
    let leases = site.objects("coordination.k8s.io/v1", "Lease", Some("argocd"));
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let lease = leases.get_opt(name).await.expect("it can be asked for");
        if lease.is_some_and(|lease| lease.data["spec"]["holderIdentity"].is_string()) {
            return;
        }
        assert!(Instant::now() < deadline, "nobody took the Lease {name}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Argo CD's own parts are restarted in the middle of a run.
pub(crate) async fn while_argo_cd_restarts(world: Arc<World>) {
    let site = Site::reference(&world, "restart", Duration::from_secs(2)).await;
    site.commit("the reference platform");
    let file = site.platform_file();
    configure(&world, &file).await;
    let run = start(&world, &file);
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "argocd");
    for part in ["argocd-application-controller", "argocd-repo-server", "argocd-server"] {
        tokio::time::sleep(Duration::from_secs(8)).await;
        let selector = format!("app.kubernetes.io/name={part}");
        let list = ListParams::default().labels(&selector);
        let deleted = pods.delete_collection(&DeleteParams::default(), &list).await;
        deleted.expect("the pod can be deleted");
    }
    let output = tokio::task::spawn_blocking(|| run.wait_with_output()).await;
    let output = output.expect("nobody cancels it").expect("it ends");
    let (code, stdout, stderr) = tiphys::said(&output);
    assert_eq!(code, Some(0), "{stderr}\n{stdout}");
    site.close().await;
}

/// A run that goes on while the test does.
pub(crate) fn start(world: &World, file: &PlatformFile) -> Child {
    start_with(world, &arguments(file))
}

pub(crate) fn start_with(world: &World, args: &[&str]) -> Child {
    let mut command = tiphys::command(args, &world.kubeconfig);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program can be started")
}

pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.expect("kill can be started").success());
}
