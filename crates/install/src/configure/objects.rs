//! The platform's objects in Argo CD, as plain data: projects, root app, accounts, policy.

use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use tiphys_model::platform::Source;
use tiphys_model::{Exit, Explain, Explanation, Platform};

use super::{hold_policy, projects, rights, roles, sets_policy};
use crate::definitions::{self, SETTINGS};
use crate::mounted::{Git, Login};
use tiphys_argocd::destination::IN_CLUSTER_SERVER;
use tiphys_cluster::encoded;
use tiphys_cluster::names::{self, FIELD_MANAGER, MANAGED_BY, PLATFORM_LABEL, Purpose};

/// An object as it should be, and in whose name its fields are written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Desired {
    pub(super) manager: String,
    pub(super) object: Value,
}

impl Desired {
    /// It is in no namespace. Whoever has rights in that of Argo CD only can do without it.
    pub(super) fn is_cluster_wide(&self) -> bool {
        self.object["metadata"].get("namespace").is_none()
    }
}

/// A platform file that does not say what its part of Argo CD should be.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum DesiredError {
    NoSource,
    /// The apps and the root app are in one project.
    SameProject {
        project: String,
    },
}

impl Explain for DesiredError {
    fn explain(&self) -> Explanation {
        match self {
            DesiredError::NoSource => Explanation::new(
                Exit::Configuration,
                "the platform does not say where its root app comes from",
                "`spec.source` is absent from the platform file",
            )
            .hint("add `source: { repoURL: …, targetRevision: main, path: root }` to `spec`"),
            DesiredError::SameProject { project } => Explanation::new(
                Exit::Configuration,
                format!("the apps and the root app are in one project, `{project}`"),
                "a run holds the project of the apps, and the root app must not be held with them",
            )
            .hint("give `spec.argocd.project` and `spec.argocd.rootProject` different names"),
        }
    }
}

/// Everything but the tokens. What others refer to comes first, and the Application last: it makes
/// Argo CD look at the cluster, and if settings change during that look, two of its threads go on
/// to process one stream of events out of order, until what it shows of a resource may be older
/// than the resource for as long as it runs.
pub(super) fn desired(platform: &Platform, git: &Git) -> Result<Vec<Desired>, DesiredError> {
    let source = platform.source.as_ref().ok_or(DesiredError::NoSource)?;
    let argocd = &platform.argocd;
    if argocd.project == argocd.root_project {
        return Err(DesiredError::SameProject { project: argocd.project.clone() });
    }
    let own = |object: Value| Desired { manager: FIELD_MANAGER.to_owned(), object };
    // Platforms share these. An apply takes back what the same manager has applied before, so
    // with one name for all of them each platform would take away the keys of the one before.
    let shared = |object: Value| Desired { manager: names::own(platform), object };
    let mut desired = vec![
        Desired {
            manager: definitions::MANAGER.to_owned(),
            object: config_map(platform, SETTINGS, &definitions::keys()),
        },
        shared(config_map(platform, SETTINGS, &accounts())),
        shared(config_map(platform, "argocd-rbac-cm", &rights::policy(platform))),
        own(projects::of_apps(platform)),
        own(projects::of_root(platform, source)),
    ];
    desired.extend(roles::accounts(platform).into_iter().map(own));
    desired.extend(roles::cluster_roles(platform).into_iter().map(own));
    desired.extend(hold_policy::objects(platform).into_iter().map(own));
    desired.extend(sets_policy::objects(platform).into_iter().map(own));
    desired.extend(repository(platform, source, git).map(own));
    desired.push(own(root_application(platform, source)));
    Ok(desired)
}

/// How Argo CD logs in to the repository; nothing, if nobody says how.
fn repository(platform: &Platform, source: &Source, git: &Git) -> Option<Value> {
    let mut data = json!({ "type": encoded("git"), "url": encoded(&source.repo_url) });
    match git.login.as_ref()? {
        Login::Key(key) => data["sshPrivateKey"] = encoded(key.expose_secret()).into(),
        Login::Password { username, password } => {
            data["username"] = encoded(username).into();
            data["password"] = encoded(password.expose_secret()).into();
        }
    }
    let mut metadata = metadata(platform, &names::repository(platform));
    metadata["labels"]["argocd.argoproj.io/secret-type"] = "repository".into();
    Some(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data }))
}

/// Metadata of an object that is the platform's own.
pub(crate) fn metadata(platform: &Platform, name: &str) -> Value {
    let mut metadata = cluster_metadata(platform, name);
    metadata["namespace"] = platform.argocd.namespace.clone().into();
    metadata
}

/// The same for what is in no namespace.
pub(super) fn cluster_metadata(platform: &Platform, name: &str) -> Value {
    let labels = json!({ MANAGED_BY.0: MANAGED_BY.1, PLATFORM_LABEL: platform.name });
    json!({ "name": name, "labels": labels })
}

/// Without `automated`: only a run syncs it. Its children get the commit that it is synced at.
fn root_application(platform: &Platform, source: &Source) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": metadata(platform, &names::root_application(platform)),
        "spec": {
            "project": platform.argocd.root_project,
            "source": {
                "repoURL": source.repo_url,
                "targetRevision": source.target_revision,
                "path": source.path,
                "helm": { "parameters": [{
                    "name": "revision",
                    "value": "$ARGOCD_APP_REVISION",
                    // A commit of digits only is no number.
                    "forceString": true,
                }] },
            },
            "destination": { "server": IN_CLUSTER_SERVER, "namespace": platform.argocd.namespace },
        },
    })
}

/// They have tokens and no password.
fn accounts() -> Map<String, Value> {
    Purpose::ALL
        .map(|purpose| (format!("accounts.{}", purpose.account()), json!("apiKey")))
        .into_iter()
        .collect()
}

/// Keys in a ConfigMap that is Argo CD's own, so it gets no labels.
fn config_map(platform: &Platform, name: &str, data: &Map<String, Value>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": platform.argocd.namespace },
        "data": data,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use tiphys_model::platform::{Allowed, AppType, ArgoCd, Hold, Policies, Retry, Timeouts};
    use tiphys_model::{App, AppName, Graph, PlatformName, StackName};

    use super::*;

    /// A platform without apps: they have no part in this.
    pub(crate) fn platform(name: &str) -> Platform {
        Platform {
            name: PlatformName::parse(name).unwrap(),
            environment: None,
            source: Some(Source {
                repo_url: "https://git.example/platform.git".to_owned(),
                target_revision: "main".to_owned(),
                path: "root".to_owned(),
            }),
            bootstrap: None,
            teardown: tiphys_model::platform::TeardownPolicy::default(),
            argocd: ArgoCd {
                namespace: "argocd".to_owned(),
                project: "apps".to_owned(),
                root_project: "roots".to_owned(),
                access: tiphys_model::platform::ArgoCdAccess::default(),
                allowed: Allowed::default(),
            },
            policies: Policies {
                hold: Hold::DuringRun,
                concurrency: NonZeroU32::MIN,
                groups: Vec::new(),
                timeout: Duration::from_secs(1),
            },
            apps: Vec::new(),
            graph: Graph::new(0, &[]),
        }
    }

    pub(crate) fn app(name: &str) -> App {
        let once = Duration::from_secs(1);
        App {
            name: AppName::parse(name).unwrap(),
            stack: StackName::parse("s").unwrap(),
            app_type: AppType::default(),
            group: None,
            typical: once,
            dependencies: Vec::new(),
            timeouts: Timeouts { sync: once, health: once },
            retry: Retry::default(),
            tolerate_drift: Vec::new(),
            health: Vec::new(),
        }
    }

    fn find<'a>(desired: &'a [Desired], kind: &str, name: &str) -> &'a Desired {
        let is = |d: &&Desired| d.object["kind"] == kind && d.object["metadata"]["name"] == name;
        desired.iter().find(is).unwrap()
    }

    #[test]
    fn the_root_app_is_synced_by_runs_alone_and_pins_its_children() {
        let desired = desired(&platform("prod"), &Git::default()).unwrap();
        let root = &find(&desired, "Application", "prod-root").object;
        assert_eq!(root["spec"]["project"], "roots");
        assert_eq!(root["spec"].get("syncPolicy"), None);
        let parameter = &root["spec"]["source"]["helm"]["parameters"][0];
        assert_eq!(
            (&parameter["name"], &parameter["value"], &parameter["forceString"]),
            (&json!("revision"), &json!("$ARGOCD_APP_REVISION"), &json!(true))
        );
    }

    #[test]
    fn settings_are_written_before_argo_cd_has_anything_to_look_at() {
        let desired = desired(&platform("prod"), &Git::default()).unwrap();
        let at = |kind: &str| desired.iter().position(|desired| desired.object["kind"] == kind);
        assert_eq!(at("ConfigMap"), Some(0));
        assert_eq!(at("Application"), Some(desired.len() - 1));
    }

    #[test]
    fn the_hold_belongs_to_runs() {
        for desired in desired(&platform("prod"), &Git::default()).unwrap() {
            assert_eq!(desired.object.pointer("/spec/syncWindows"), None);
        }
    }

    #[test]
    fn what_is_ours_says_so_and_what_is_argo_cds_is_left_as_it_is() {
        for desired in desired(&platform("prod"), &Git::default()).unwrap() {
            let labels = &desired.object["metadata"]["labels"];
            if desired.object["kind"] == "ConfigMap" {
                assert_eq!(labels, &Value::Null);
                // Platforms have keys of their own, and the definitions in common.
                let common = desired.object["data"] == Value::from(definitions::keys());
                let manager = if common { "tiphys.health" } else { "tiphys-prod" };
                assert_eq!(desired.manager, manager);
            } else {
                assert_eq!(labels[MANAGED_BY.0], MANAGED_BY.1);
                assert_eq!(
                    (&labels[PLATFORM_LABEL], &*desired.manager),
                    (&json!("prod"), "tiphys")
                );
            }
            let namespace = desired.object["metadata"]["namespace"].as_str();
            let kind = desired.object["kind"].as_str().unwrap();
            let beside = kind.starts_with("ClusterRole") || kind.starts_with("Validating");
            assert_eq!(namespace, (!beside).then_some("argocd"), "{kind}");
        }
    }

    #[test]
    fn accounts_have_tokens_and_no_password() {
        let desired = desired(&platform("prod"), &Git::default()).unwrap();
        let settings = json!({ "accounts.tiphys": "apiKey", "accounts.tiphys-teardown": "apiKey" });
        assert!(desired.iter().any(|desired| desired.object["data"] == settings), "{desired:#?}");
    }

    #[test]
    fn what_a_platform_cannot_do_without_is_asked_for() {
        let mut without = platform("prod");
        without.source = None;
        let error = desired(&without, &Git::default()).unwrap_err().explain();
        assert_eq!((error.exit, error.next.is_some()), (Exit::Configuration, true));
        let mut one = platform("prod");
        one.argocd.root_project = one.argocd.project.clone();
        let error = desired(&one, &Git::default()).unwrap_err();
        assert_eq!(error.explain().exit, Exit::Configuration);
        assert!(matches!(error, DesiredError::SameProject { .. }), "{error}");
    }
}
