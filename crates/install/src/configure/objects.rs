//! The platform's objects in Argo CD, as plain data: projects, root app, accounts, policy.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use tiphys_model::Platform;
use tiphys_model::platform::{Source, SourceTool};

use super::trust::AUTHORITIES;
use super::{
    deploy_loop, hold_policy, projects, repositories, rights, roles, schedules, sets_policy,
};
use crate::definitions::{self, SETTINGS};
use crate::mounted::Mounted;
use tiphys_argocd::destination::IN_CLUSTER_SERVER;
use tiphys_cluster::names::{self, FIELD_MANAGER, MANAGED_BY, PLATFORM_LABEL, Purpose};

/// An object as it should be, and in whose name its fields are written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Desired {
    pub(super) manager: String,
    pub(super) object: Value,
}

impl Desired {
    /// Nowhere, if it is in no namespace.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.object["metadata"]["namespace"].as_str()
    }
}

/// Everything but the tokens. What others refer to comes first, and the Application last: it makes
/// Argo CD look at the cluster, and if settings change during that look, two of its threads go on
/// to process one stream of events out of order, until what it shows of a resource may be older
/// than the resource for as long as it runs.
///
/// Without a root app, there is nothing of it. What is `shared` are projects that others have made:
/// they stay as they are.
pub(super) fn desired(
    platform: &Platform,
    mounted: &Mounted,
    shared: &BTreeSet<String>,
) -> Vec<Desired> {
    let source = platform.source.as_ref();
    let own = |object: Value| Desired { manager: FIELD_MANAGER.to_owned(), object };
    // Platforms have these in common. An apply takes back what the same manager has applied before, so
    // with one name for all of them each platform would take away the keys of the one before.
    let common = |object: Value| Desired { manager: names::own(platform), object };
    let mut desired = vec![
        Desired {
            manager: definitions::MANAGER.to_owned(),
            object: config_map(platform, SETTINGS, &definitions::keys()),
        },
        common(config_map(platform, SETTINGS, &accounts())),
        common(config_map(platform, "argocd-rbac-cm", &rights::policy(platform))),
    ];
    let made = platform.argocd.projects.iter().filter(|project| !shared.contains(*project));
    desired.extend(made.map(|project| own(projects::of_apps(platform, project))));
    desired.extend(source.map(|source| own(projects::of_root(platform, source))));
    desired.extend(roles::namespaces(platform).map(own));
    desired.extend(roles::accounts(platform).into_iter().map(own));
    desired.extend(roles::roles(platform).into_iter().map(own));
    desired.extend(roles::cluster_roles(platform).into_iter().map(own));
    desired.extend(deploy_loop::kept(platform).map(own));
    desired.extend(schedules::objects(platform).map(own));
    desired.extend(deploy_loop::policy(platform).into_iter().flatten().map(own));
    desired.extend(hold_policy::objects(platform).into_iter().map(own));
    desired.extend(sets_policy::objects(platform).into_iter().map(own));
    let authorities = repositories::authorities(source, mounted);
    if !authorities.is_empty() {
        desired.push(common(config_map(platform, AUTHORITIES, &authorities)));
    }
    desired.extend(repositories::secrets(platform, source, mounted).into_iter().map(own));
    desired.extend(source.map(|source| own(root_application(platform, source))));
    desired
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
    let (tool, how) = match source.tool {
        SourceTool::Chart => ("helm", json!({ "parameters": root_parameters(platform) })),
        SourceTool::Directory { recurse } => ("directory", json!({ "recurse": recurse })),
    };
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
                tool: how,
            },
            "destination": { "server": IN_CLUSTER_SERVER, "namespace": platform.argocd.namespace },
        },
    })
}

/// What the root chart can render into what it creates. A commit of digits only is no number.
fn root_parameters(platform: &Platform) -> Vec<Value> {
    let environment = platform.environment.as_ref();
    let known = [
        ("revision", Some("$ARGOCD_APP_REVISION")),
        ("environment", environment.map(|environment| &*environment.name)),
        ("domain", environment.and_then(|environment| environment.domain.as_deref())),
    ];
    let parameter =
        |(name, value)| Some(json!({ "name": name, "value": value?, "forceString": true }));
    known.into_iter().filter_map(|(name, value)| parameter((name, value))).collect()
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

    use tiphys_model::platform::{
        Allowed, AppType, ArgoCd, Environment, Hold, Policies, Retry, Timeouts,
    };
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
                tool: SourceTool::Chart,
            }),
            bootstrap: None,
            teardown: tiphys_model::platform::TeardownPolicy::default(),
            workflows: tiphys_model::platform::WorkflowMode::default(),
            deploy: tiphys_model::DeployPolicy::default(),
            triggers: Vec::new(),
            argocd: ArgoCd {
                namespace: "argocd".to_owned(),
                application_namespaces: Vec::new(),
                projects: vec!["apps".to_owned()],
                root_project: "roots".to_owned(),
                has_root_app: true,
                access: tiphys_model::platform::ArgoCdAccess::default(),
                server: tiphys_model::ApiServer::default(),
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

    /// Where no project is there yet.
    fn all(platform: &Platform) -> Vec<Desired> {
        desired(platform, &Mounted::default(), &BTreeSet::new())
    }

    fn find<'a>(desired: &'a [Desired], kind: &str, name: &str) -> &'a Desired {
        let is = |d: &&Desired| d.object["kind"] == kind && d.object["metadata"]["name"] == name;
        desired.iter().find(is).unwrap()
    }

    #[test]
    fn the_root_app_is_synced_by_runs_alone_and_pins_its_children() {
        let desired = all(&platform("prod"));
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
        let desired = all(&platform("prod"));
        let at = |kind: &str| desired.iter().position(|desired| desired.object["kind"] == kind);
        assert_eq!(at("ConfigMap"), Some(0));
        assert_eq!(at("Application"), Some(desired.len() - 1));
    }

    #[test]
    fn the_hold_belongs_to_runs() {
        for desired in all(&platform("prod")) {
            assert_eq!(desired.object.pointer("/spec/syncWindows"), None);
        }
    }

    #[test]
    fn what_is_ours_says_so_and_what_is_argo_cds_is_left_as_it_is() {
        for desired in all(&platform("prod")) {
            let labels = &desired.object["metadata"]["labels"];
            if desired.object["kind"] == "ConfigMap" {
                assert_eq!(labels, &Value::Null);
                // Platforms have keys of their own, and the definitions in common.
                let common = desired.object["data"] == Value::from(definitions::keys());
                let manager = if common { "tiphys.health" } else { "tiphys-prod" };
                assert_eq!(desired.manager, manager);
            } else {
                assert_eq!(labels[MANAGED_BY.0], MANAGED_BY.1);
                let shared = desired.object["kind"] == "Namespace";
                let platform = if shared { Value::Null } else { json!("prod") };
                assert_eq!((&labels[PLATFORM_LABEL], &*desired.manager), (&platform, "tiphys"));
            }
            let kind = desired.object["kind"].as_str().unwrap();
            let wide = ["ClusterRole", "Validating", "Namespace"];
            let wide = wide.iter().any(|start| kind.starts_with(start));
            let in_ours = ["ServiceAccount", "Role", "RoleBinding"].contains(&kind);
            match desired.namespace() {
                None => assert!(wide, "{kind}"),
                Some("argocd") => assert!(!wide && kind != "ServiceAccount", "{kind}"),
                Some("tiphys" | "tiphys-teardown") => assert!(in_ours, "{kind}"),
                Some(other) => panic!("{kind} in {other}"),
            }
        }
    }

    #[test]
    fn accounts_have_tokens_and_no_password() {
        let desired = all(&platform("prod"));
        let settings = json!({ "accounts.tiphys": "apiKey", "accounts.tiphys-teardown": "apiKey" });
        assert!(desired.iter().any(|desired| desired.object["data"] == settings), "{desired:#?}");
    }

    #[test]
    fn the_root_chart_gets_what_the_platform_file_says_of_its_environment() {
        let mut platform = platform("prod");
        let domain = Some("example.org".to_owned());
        platform.environment = Some(Environment { name: "staging".to_owned(), domain });
        let root = find(&all(&platform), "Application", "prod-root").object.clone();
        let parameters = root["spec"]["source"]["helm"]["parameters"].as_array().unwrap().clone();
        let given = parameters.iter().map(|one| (one["name"].clone(), one["value"].clone()));
        let expected = [
            ("revision", "$ARGOCD_APP_REVISION"),
            ("environment", "staging"),
            ("domain", "example.org"),
        ];
        assert_eq!(given.collect::<Vec<_>>(), expected.map(|(a, b)| (json!(a), json!(b))));

        platform.source.as_mut().unwrap().tool = SourceTool::Directory { recurse: true };
        let root = find(&all(&platform), "Application", "prod-root").object.clone();
        assert_eq!(root["spec"]["source"].get("helm"), None, "Argo CD would look for a chart");
        assert_eq!(root["spec"]["source"]["directory"], json!({ "recurse": true }));
    }

    #[test]
    fn without_a_root_app_there_is_nothing_of_it() {
        let mut without = platform("prod");
        (without.source, without.argocd.has_root_app) = (None, false);
        let desired = all(&without);
        let kinds = |kind: &str| desired.iter().filter(|one| one.object["kind"] == kind).count();
        assert_eq!((kinds("Application"), kinds("AppProject")), (0, 1));
        assert!(!desired.iter().any(|one| one.object.to_string().contains("roots")), "{desired:?}");
    }

    #[test]
    fn projects_of_others_stay_as_they_are() {
        let mut platform = platform("prod");
        platform.argocd.projects.push("default".to_owned());
        let shared = ["default".to_owned()].into();
        let desired = desired(&platform, &Mounted::default(), &shared);
        let projects = desired.iter().filter(|one| one.object["kind"] == "AppProject");
        let names: Vec<&Value> = projects.map(|one| &one.object["metadata"]["name"]).collect();
        assert_eq!(names, ["apps", "roots"]);
    }
}
