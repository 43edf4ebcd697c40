//! Twelve things that go wrong on real platforms: each is made on the cluster, and told by its
//! true cause.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use tiphys_e2e::{Lots, Site, World};
use tiphys_lab::PAUSE_IMAGE;
use tiphys_lab::repository::{AppSource, Behaviour};

use super::{Eye, logged};
use crate::deploy::configure;
use crate::snapshots;

/// Kubernetes needs a while until it says what is wrong, and it says it in several steps. On a
/// machine with much else to do, a deadline of one second has taken two minutes to be noticed.
const PATIENCE: Duration = Duration::from_secs(300);
/// What has been the same for so long is how it stays.
const SETTLED: Duration = Duration::from_secs(25);
/// How many are looked at at once.
const AT_ONCE: usize = 3;

struct Trouble {
    /// Of the app, of its stack, and of the snapshot.
    name: &'static str,
    behaviour: Behaviour,
    state: &'static str,
    /// What its status says is the cause.
    cause: &'static str,
    /// What a closer look says first.
    first: &'static str,
}

impl Trouble {
    fn new(
        name: &'static str,
        behaviour: Behaviour,
        state: &'static str,
        cause: &'static str,
        first: &'static str,
    ) -> Self {
        Trouble { name, behaviour, state, cause, first }
    }
}

fn troubles() -> Vec<Trouble> {
    let resource = |manifests: String| Behaviour::Resource { manifests };
    let deadline = Behaviour::Degrades { after: Duration::from_secs(1) };
    let (progressing, failed) = ("it is Progressing", "the sync failed");
    vec![
        Trouble::new(
            "probe",
            Behaviour::NeverHealthy,
            "converging",
            progressing,
            "likely: a probe fails",
        ),
        Trouble::new("degraded", deadline, "unhealthy", "it is Degraded", "likely: a probe fails"),
        Trouble::new(
            "refused",
            Behaviour::FailsToSync,
            "failed",
            failed,
            "likely: the API server rejects a manifest",
        ),
        Trouble::new(
            "unreadable",
            Behaviour::InvalidManifest,
            "failed",
            "it cannot be compared",
            "likely: the manifests cannot be rendered",
        ),
        Trouble::new(
            "drifting",
            Behaviour::StaysOutOfSync,
            "drifted",
            "OutOfSync",
            "drifted Deployment/trouble-drifting: \
             metadata.annotations[\"deployment.kubernetes.io/revision\"]",
        ),
        Trouble::new(
            "image",
            resource(deployment("")),
            "converging",
            progressing,
            "likely: an image cannot be pulled",
        ),
        Trouble::new(
            "volume",
            resource(deployment(MOUNT) + CLAIM),
            "converging",
            progressing,
            "likely: a volume is pending",
        ),
        Trouble::new(
            "quota",
            resource(deployment("") + QUOTA),
            "converging",
            progressing,
            "likely: a quota is used up",
        ),
        Trouble::new(
            "crd",
            resource(UNKNOWN.to_owned()),
            "failed",
            failed,
            "likely: a CRD is missing",
        ),
        Trouble::new(
            "webhook",
            resource(SERVICE.to_owned()),
            "failed",
            failed,
            "likely: an admission webhook does not answer",
        ),
        Trouble::new(
            "vault",
            resource(vault()),
            "converging",
            progressing,
            "likely: Vault is sealed",
        ),
        Trouble::new(
            "finalizer",
            Behaviour::HoldsFinalizer,
            "removing",
            "it is being deleted",
            "likely: something is being deleted and waits for a finalizer",
        ),
    ]
}

/// A Deployment of an image that nobody serves, with what a trouble needs.
fn deployment(pod: &str) -> String {
    format!(
        "\
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: app }}
spec:
  selector: {{ matchLabels: {{ app: app }} }}
  template:
    metadata: {{ labels: {{ app: app }} }}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - {{ name: app, image: \"localhost:1/nobody/serves:this\" }}
{pod}"
    )
}

const MOUNT: &str = "      volumes: [{ name: data, persistentVolumeClaim: { claimName: data } }]\n";

const CLAIM: &str = "\
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: data }
spec:
  storageClassName: nobody-provides-this
  accessModes: [ReadWriteOnce]
  resources: { requests: { storage: 1Gi } }
";

const QUOTA: &str = "\
---
apiVersion: v1
kind: ResourceQuota
metadata: { name: none }
spec: { hard: { pods: 0 } }
";

const UNKNOWN: &str = "\
apiVersion: tiphys.dev/v1
kind: Unheard
metadata: { name: app }
";

const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata: { name: app }
spec: { ports: [{ port: 80 }] }
";

/// Vault is not ready until somebody has unsealed it, and says so on its pod.
fn vault() -> String {
    format!(
        "\
apiVersion: apps/v1
kind: StatefulSet
metadata: {{ name: vault }}
spec:
  serviceName: vault
  selector: {{ matchLabels: {{ app: vault }} }}
  template:
    metadata:
      labels: {{ app: vault, vault-initialized: \"true\", vault-sealed: \"true\" }}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: vault
          image: {PAUSE_IMAGE}
          imagePullPolicy: Never
          readinessProbe: {{ tcpSocket: {{ port: 8200 }} }}
"
    )
}

/// A webhook for the Services of one namespace, and nothing behind it.
async fn hook(site: &Site, watched: &str) {
    let namespace = format!("{watched}-hook");
    site.apply(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
    }))
    .await;
    // One that is not there at all would be a leftover of somebody, to whoever looks for those.
    site.apply(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "hook", "namespace": namespace },
        "spec": { "ports": [{ "port": 443 }], "selector": { "app": "none" } },
    }))
    .await;
    site.apply(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": watched },
        "webhooks": [{
            "name": "hook.example.org",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": { "service": { "namespace": namespace, "name": "hook" } },
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": watched } },
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["services"],
            }],
        }],
    }))
    .await;
}

async fn unhook(site: &Site, watched: &str) {
    let kind = "ValidatingWebhookConfiguration";
    let hooks = site.objects("admissionregistration.k8s.io/v1", kind, None);
    hooks.delete(watched, &DeleteParams::default()).await.expect("it can be deleted");
}

fn full(name: &str) -> String {
    format!("trouble-{name}")
}

pub(crate) async fn are_told_by_their_true_cause(world: Arc<World>) {
    let mut site = Site::new(&world, "trouble").await;
    for Trouble { name, behaviour, .. } in troubles() {
        let mut app = AppSource::new(&full(name), behaviour);
        let mut user = AppSource::new(&full(&format!("on-{name}")), Behaviour::ConfigOnly);
        (app.stack, user.stack) = (name.to_owned(), name.to_owned());
        site.platform.apps.extend([app, user.depends_on(&[&full(name)])]);
    }
    let revision = site.commit("many ways to fail");
    let eye = Eye::new(&world, &site);
    configure(&world, &eye.file).await;
    hook(&site, &full("webhook")).await;
    // A run would wait for each until it is sure.
    for app in &site.platform.apps {
        site.create_application(&app.name, revision.as_str(), false).await;
    }
    for Trouble { name, .. } in troubles() {
        // Argo CD refuses what it cannot compare.
        site.sync(&full(name), revision.as_str(), 1).await.ok();
    }
    let before = logged(&world);
    let lots = Lots::new(revision.as_str());
    // Last the app that is being deleted: as long as one is, so is the platform.
    let (going, staying): (Vec<Trouble>, Vec<Trouble>) =
        troubles().into_iter().partition(|trouble| trouble.state == "removing");
    let tell = async |trouble: Trouble| {
        let text = tell(&eye, &site, &lots, &trouble).await;
        (trouble.name, text)
    };
    let mut told: Vec<(&str, String)> =
        stream::iter(staying).map(&tell).buffered(AT_ONCE).collect().await;
    for trouble in going {
        let app = full(trouble.name);
        site.until_healthy(&app).await;
        let gone = DeleteParams::default();
        site.applications().delete(&app, &gone).await.expect("it can be deleted");
        told.push(tell(trouble).await);
    }
    assert_eq!(eye.writes(), Vec::<String>::new());
    eye.nothing_was_written_for_it(before);
    let texts: Vec<(&str, &str)> = told.iter().map(|(name, text)| (*name, text.as_str())).collect();
    snapshots::compare(&folder(), &texts);

    // A run's own account sees all of it but what pods write.
    let account = format!("system:serviceaccount:argocd:tiphys-{}", site.platform.name);
    let eye = eye.acting_as(&account, &["system:serviceaccounts", "system:authenticated"]);
    eye.json(&["validate"], 1).await;
    let (code, stdout, stderr) = eye.look(&["why", &full("probe")]).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    for text in ["likely: a probe fails", "not seen: the log of Pod/", "forbidden"] {
        assert!(stdout.contains(text), "no `{text}` in:\n{stdout}");
    }
    unhook(&site, &full("webhook")).await;
    site.close().await;
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journeys/status")
}

/// What people read about a trouble once Kubernetes has said all there is; checked for its true
/// cause.
async fn tell(eye: &Eye, site: &Site, lots: &Lots, trouble: &Trouble) -> String {
    let Trouble { name, state, cause, first, .. } = trouble;
    let app = full(name);
    let file = folder().join(format!("{name}.out"));
    let accepted = std::fs::read_to_string(file).ok();
    let accepted = accepted.filter(|_| std::env::var_os("SNAPSHOTS").is_none());
    let (began, mut same) = (Instant::now(), Instant::now());
    let mut text = String::new();
    let why = loop {
        let (status, why) = look(eye, name).await;
        let pods = replica_sets(site, &app).await;
        let now = lots.normal(&format!("{status}\n{why}"), &pods);
        if now != text {
            (text, same) = (now, Instant::now());
        }
        let done = match &accepted {
            Some(accepted) => *accepted == text,
            None => same.elapsed() > SETTLED && seen_first(&why).contains(first),
        };
        if done || began.elapsed() > PATIENCE {
            break why;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    assert!(seen_first(&why).contains(first), "not first of all `{first}` in:\n{why}");
    let found = eye.json(&["validate", "--scope", &format!("stack:{name}")], 1).await;
    let root = &found["rootCauses"][0];
    assert_eq!((&root["app"], &root["state"]), (&json!(app), &json!(state)), "{found:#}");
    assert!(root["cause"].as_str().unwrap_or_default().contains(cause), "{root:#}");
    let (code, stdout, stderr) = eye.look(&["why", &full(&format!("on-{name}"))]).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    let second = stdout.lines().nth(1).unwrap_or_default();
    assert!(second.starts_with(&format!("  because {app} ")), "{stdout}");
    assert!(second.contains(cause), "{stdout}");
    assert!(seen_first(&stdout).contains(first), "not first of all `{first}` in:\n{stdout}");
    text
}

/// `status` and `why`, as somebody would type it and read it.
async fn look(eye: &Eye, name: &str) -> (String, String) {
    let (scope, app) = (format!("stack:{name}"), full(name));
    let mut told = Vec::new();
    for args in [["status", "--scope", &scope].as_slice(), &["why", &app]] {
        let (code, stdout, stderr) = eye.look(args).await;
        assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
        let stdout = stdout.replace(eye.file.path(), "platform.yaml");
        told.push(format!("$ tiphys {}\n{stdout}", args.join(" ")));
    }
    let why = told.pop().unwrap_or_default();
    (told.pop().unwrap_or_default(), why)
}

/// The first line below what was seen of the root cause.
fn seen_first(why: &str) -> &str {
    let mut lines = why.lines().skip_while(|line| !line.starts_with("seen of "));
    lines.nth(1).unwrap_or_default()
}

async fn replica_sets(site: &Site, namespace: &str) -> Vec<String> {
    let sets = site.objects("apps/v1", "ReplicaSet", Some(namespace));
    let listed = sets.list(&ListParams::default()).await.expect("a list");
    listed.items.iter().map(ResourceExt::name_any).collect()
}
