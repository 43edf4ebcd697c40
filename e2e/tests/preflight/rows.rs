//! Every row of the RFC's tables (3.2.1 to 3.2.7), and what makes it fail.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tiphys_e2e::{Ground, tiphys};
use tiphys_lab::{Cluster, Home};

use crate::setting::{Row, Seen, Setting, with_namespaces, without_namespaces};

const TOOLS: [&str; 14] = [
    "tools ansible-playbook",
    "tools kubectl",
    "tools helm",
    "tools kubeseal",
    "tools jq",
    "tools yq",
    "python kubernetes",
    "python openshift",
    "python pyyaml",
    "python jsonpatch",
    "collections kubernetes.core",
    "collections community.general",
    "collections ansible.posix",
    "collections ansible.utils",
];

/// The other rows that fail here. Beside them there are: `cluster nodes` and `cluster DNS`, which
/// fail in the test that disrupts; `cluster worker nodes`, `cluster resources`, `cluster Argo CD
/// version` and `absence sealed-secrets controller`, which only warn; and `absence namespaces of
/// apps`, which nobody can know of before Argo CD has rendered the root app.
const OTHERS: [&str; 13] = [
    "cluster API server",
    "cluster authentication",
    "cluster rights",
    "connectivity git",
    "connectivity registry",
    "connectivity charts",
    "credentials kubeconfig",
    "credentials git",
    "credentials registry",
    "credentials dns",
    "absence Argo CD",
    "absence Argo Workflows",
    "absence Argo Events",
];

/// Scenarios, what failed in them, and what fails in none of them.
pub(crate) struct Rows {
    ground: Arc<Ground>,
    name: &'static str,
    /// What fails even though nothing was spoilt: an Argo CD that is somebody else's.
    before: BTreeSet<Row>,
    failed: BTreeSet<Row>,
}

impl Rows {
    pub(crate) async fn new(ground: Arc<Ground>, name: &'static str) -> Self {
        let before = Setting::new(&ground, name).look().await.rows("fail");
        Rows { ground, name, before, failed: BTreeSet::new() }
    }

    /// Spoils something and looks; exactly these rows fail, with that exit code.
    pub(crate) async fn spoil(
        &mut self,
        code: i32,
        rows: &[&str],
        spoil: impl FnOnce(&mut Setting),
    ) -> Seen {
        let mut setting = Setting::new(&self.ground, self.name);
        spoil(&mut setting);
        let seen = setting.look().await;
        let failed = seen.rows("fail");
        let new: BTreeSet<&str> = failed.difference(&self.before).map(String::as_str).collect();
        let expected: BTreeSet<&str> = rows.iter().copied().collect();
        let expected: BTreeSet<&str> =
            expected.into_iter().filter(|row| !self.before.contains(*row)).collect();
        assert_eq!(new, expected, "{:#}", seen.report);
        assert_eq!(seen.code, Some(code), "{:#}", seen.report);
        for check in seen.checks().filter(|check| check["outcome"] == "fail") {
            assert!(check["next"].is_string(), "what to do is told: {check}");
        }
        self.failed.extend(failed);
        seen
    }
}

pub(crate) async fn each_can_fail(ground: Arc<Ground>) {
    let mut rows = Rows::new(ground.clone(), "pre-rows").await;
    tools(&mut rows).await;
    cluster(&mut rows).await;
    connectivity(&mut rows).await;
    credentials(&mut rows).await;
    absence(&mut rows).await;
    let is_row = |row: &str, failed: &Row| *failed == row || failed.starts_with(&format!("{row} "));
    let missing: Vec<&str> = TOOLS
        .into_iter()
        .chain(OTHERS)
        .filter(|row| !rows.failed.iter().any(|failed| is_row(row, failed)))
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "rows that nothing has made fail");
}

/// Of credentials that must be there whether needed or not.
const STRICT: [&str; 2] = ["credentials registry", "credentials dns"];

async fn tools(rows: &mut Rows) {
    let strict: Vec<&str> = TOOLS.into_iter().chain(STRICT).collect();
    let seen = rows
        .spoil(3, &strict, |setting| {
            setting.path = setting.file("nothing").display().to_string();
            setting.arguments.push("--strict");
        })
        .await;
    assert_eq!(seen.found("tools jq"), "not in PATH");
    let seen = rows
        .spoil(3, &strict, |setting| {
            let python = setting.file("tools/python").display().to_string();
            let ansible = format!(
                "echo 'ansible-playbook [core 2.14.18]'\n\
                 echo '  python version = 3.11.2 (main) [GCC 12.2.0] ({python})'"
            );
            setting.tool("ansible-playbook", &ansible);
            setting.tool("python", "shift 2; for name; do echo \"$name\"; done");
            setting.tool("kubectl", "echo 'Client Version: v1.27.16'");
            setting.tool("helm", "echo v3.11.3+g3232493");
            setting.tool("kubeseal", "echo 'kubeseal version: 0.23.1'");
            setting.tool("jq", "echo jq-1.5");
            setting.tool("yq", "echo yq 3.1.0");
            setting.tool("ansible-galaxy", &format!("echo '{OLD_COLLECTIONS}'"));
            setting.arguments.push("--strict");
        })
        .await;
    let found = TOOLS.map(|row| seen.found(row));
    let old = [
        "2.14.18",
        "1.27.16",
        "3.11.3",
        "0.23.1",
        "1.5",
        "another program with this name",
        "not installed",
        "not installed",
        "not installed",
        "not installed",
        "3.9",
        "3.8",
        "0.9",
        "4.1",
    ];
    assert_eq!(found.each_ref().map(String::as_str), old);
    // A chart needs helm, and nothing else; one that hangs is one that fails.
    let seen = rows
        .spoil(3, &["tools helm", "connectivity charts https://127.0.0.1:1"], |setting| {
            setting.tool("helm", "exec /bin/sleep 60");
            let zeros = "0".repeat(64);
            setting.bootstrap = Some(format!(
                "    argocd:\n      version: '1'\n      manifests:\n        sha256: '{zeros}'\n        \
                 chart: {{ repository: 'https://127.0.0.1:1', name: a, version: '1' }}\n"
            ));
        })
        .await;
    assert_eq!(seen.found("tools helm"), "no answer within 5 s");
    assert!(seen.took < Duration::from_secs(15), "{:?}", seen.took);
}

const OLD_COLLECTIONS: &str = r#"{"/collections": {"kubernetes.core": {"version": "3.9.0"},
    "community.general": {"version": "3.8.0"}, "ansible.posix": {"version": "0.9.0"},
    "ansible.utils": {"version": "4.1.0"}}}"#;

async fn cluster(rows: &mut Rows) {
    rows.spoil(6, &["cluster API server"], |setting| {
        setting.change_kubeconfig(|config| {
            for named in &mut config.clusters {
                let cluster = named.cluster.get_or_insert_default();
                cluster.server = Some("https://127.0.0.1:1".to_owned());
            }
        });
    })
    .await;
    let rejected = ["cluster authentication", "credentials kubeconfig"];
    rows.spoil(4, &rejected, |setting| {
        setting.change_kubeconfig(|config| {
            for named in &mut config.auth_infos {
                let wrong = kube::config::AuthInfo {
                    token: Some("wrong".to_owned().into()),
                    ..kube::config::AuthInfo::default()
                };
                named.auth_info = Some(wrong);
            }
        });
    })
    .await;
    // Somebody who is known, and may do nothing.
    let powerless = [
        "cluster authentication",
        "cluster rights",
        "cluster nodes",
        "cluster DNS",
        "absence Argo CD",
        "absence Argo Workflows",
        "absence Argo Events",
        "absence sealed-secrets controller",
    ];
    let ground = rows.ground.clone();
    let seen = rows
        .spoil(4, &powerless, |setting| {
            tiphys::act_as(&ground.kubeconfig, "pre-nobody", &[], &setting.kubeconfig);
        })
        .await;
    let missing = seen.found("cluster rights");
    assert!(missing.contains("create customresourcedefinitions, patch"), "{missing}");
}

async fn connectivity(rows: &mut Rows) {
    let away = [
        "connectivity git https://…@127.0.0.1:1/p.git",
        "connectivity mirror 127.0.0.1:1",
        "connectivity registry localhost:1",
        "connectivity charts https://127.0.0.1:1/charts",
    ];
    rows.spoil(3, &away, |setting| {
        setting.repository = String::from("https://me:secret@127.0.0.1:1/p.git");
        setting.bootstrap = Some(
            "    images: [{ from: quay.io, to: '127.0.0.1:1/mirror' }]\n    endpoints:\n      \
             registries: ['localhost:1']\n      charts: ['https://127.0.0.1:1/charts']\n"
                .to_owned(),
        );
    })
    .await;
    // Somebody listens, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address");
    let row = format!("connectivity registry {address}");
    let seen = rows
        .spoil(3, &[&row], |setting| {
            setting.bootstrap = Some(format!("    endpoints: {{ registries: ['{address}'] }}\n"));
        })
        .await;
    assert_eq!(seen.found(&row), "no answer within 5 s");
    // Another host than the known one.
    let url = Setting::new(&rows.ground, rows.name).repository;
    let row = format!("connectivity git {url}");
    let seen = rows
        .spoil(3, &[&row], |setting| {
            let public = setting.key_pair("other").with_extension("pub");
            let public = fs::read_to_string(public).expect("the key");
            let key = public.split_whitespace().nth(1).expect("a key");
            let hosts = fs::read_to_string(setting.file("credentials/git/known_hosts"));
            let hosts = hosts.expect("the host keys");
            let host = hosts.split_whitespace().next().expect("a host");
            let other = format!("{host} ssh-ed25519 {key}\n");
            setting.write("credentials/git/known_hosts", &other);
        })
        .await;
    assert!(seen.found(&row).starts_with("its host key is unknown or has changed"));
}

async fn credentials(rows: &mut Rows) {
    rows.spoil(3, &["credentials kubeconfig"], |setting| {
        setting.kubeconfig = setting.file("nowhere");
    })
    .await;
    let seen = rows
        .spoil(4, &["credentials git"], |setting| {
            let key = setting.key_pair("other");
            fs::copy(key, setting.file("credentials/git/ssh-privatekey")).expect("the key");
        })
        .await;
    let said = seen.found("credentials git");
    assert!(said.contains("Permission denied"), "{said}");
    rows.spoil(3, &["credentials git"], |setting| {
        fs::remove_file(setting.file("credentials/git/ssh-privatekey")).expect("the key");
    })
    .await;
    // Two ways to log in are none, and host keys are not read then either.
    let url = Setting::new(&rows.ground, rows.name).repository;
    let git = format!("connectivity git {url}");
    rows.spoil(3, &["credentials folder", &git], |setting| {
        setting.write("credentials/git/password", "and a key");
    })
    .await;
}

/// Namespaces in which nothing of ours was installed.
async fn absence(rows: &mut Rows) {
    let setting = Setting::new(&rows.ground, rows.name);
    let names = ["argocd", "workflows", "events"].map(|name| setting.namespace(name));
    let namespaces = with_namespaces(&rows.ground.client, &names).await;
    let foreign = ["absence Argo CD", "absence Argo Workflows", "absence Argo Events"];
    let seen = rows.spoil(3, &foreign, |_| ()).await;
    let found = seen.found("absence Argo Events");
    assert_eq!(found, "not installed by Tiphys: the namespace pre-rows-events");
    without_namespaces(&namespaces, &names).await;
}

/// With the right password, a wrong one, and something that is no configuration.
pub(crate) async fn logins_of_registries(ground: Arc<Ground>) {
    let registry = Cluster::new(Home::from_environment(), |_| ()).registry();
    let registry = registry.expect("the lab's registry");
    let password = fs::read_to_string(&registry.password).expect("the password");
    let mut rows = Rows::new(ground.clone(), "pre-logins").await;
    let address = &registry.address;
    let log_in = |setting: &mut Setting, password: &str| {
        let authority = fs::read_to_string(&registry.authority).expect("the authority");
        setting.write("credentials/registry/ca.crt", &authority);
        let login = json!({ "username": registry.user, "password": password });
        let config = json!({ "auths": { address.as_str(): login } });
        setting.write("credentials/registry/config.json", &config.to_string());
        setting.bootstrap = Some(format!("    endpoints: {{ registries: ['{address}'] }}\n"));
    };
    let row = format!("credentials registry {address}");
    let code = if rows.before.is_empty() { 0 } else { 3 };
    let seen = rows.spoil(code, &[], |setting| log_in(setting, password.trim())).await;
    assert_eq!(seen.found(&row), "accepted");
    let seen = rows.spoil(4, &[&row], |setting| log_in(setting, "wrong")).await;
    assert_eq!(seen.found(&row), "the registry answers with HTTP 401");
    assert!(!seen.report.to_string().contains("wrong"), "{:#}", seen.report);
    rows.spoil(3, &["credentials registry"], |setting| {
        setting.write("credentials/registry/config.json", "{}");
    })
    .await;
}
