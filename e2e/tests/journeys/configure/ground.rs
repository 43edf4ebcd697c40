//! Where one test of `tiphys configure` takes place, and how it is cleared away again.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{AuthInfo, KubeConfigOptions};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Config};
use secrecy::SecretString;
use serde_json::{Value, json};
use tempfile::TempDir;
use tiphys_argocd::credentials;
use tiphys_argocd::rest::RestClient;
use tiphys_cluster::names::{self, Account, Purpose};
use tiphys_e2e::{Site, World, tiphys};
use tiphys_lab::repository::{AppSource, Behaviour};
use tiphys_model::Platform;
use tiphys_spec::{Source, Sources};

pub(super) struct Ground {
    pub(super) site: Site,
    /// The only app of the platform.
    pub(super) app: String,
    folder: TempDir,
}

/// `Kind/name`, and what became of it.
pub(super) type Results = Vec<(String, String)>;

/// The objects with one result.
pub(super) fn results(all: &Results, result: &str) -> Vec<String> {
    let these = all.iter().filter(|(_, given)| given == result);
    these.map(|(object, _)| object.clone()).collect()
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// Where `tiphys configure` makes objects.
const NAMESPACES: [&str; 3] = ["argocd", names::NAMESPACE, names::TEARDOWN_NAMESPACE];

impl Ground {
    /// A platform in Git, of which Argo CD knows nothing but how to read it.
    pub(super) async fn new(world: &Arc<World>, name: &str) -> Ground {
        let mut site = Site::new(world, name).await;
        let app = format!("{name}-app");
        site.platform.apps = vec![AppSource::new(&app, Behaviour::ConfigOnly)];
        site.commit("an app");
        let folder = TempDir::new().expect("a folder");
        let file = &site.platform.files()["platform.yaml"];
        fs::write(folder.path().join("platform.yaml"), file).expect("a file");
        let ground = Ground { site, app, folder };
        ground.clear().await;
        ground
    }

    pub(super) async fn close(self) {
        self.clear().await;
        // How Argo CD reads the repository.
        let secrets = self.api("v1", "Secret");
        secrets.delete(&self.site.platform.name, &DeleteParams::default()).await.ok();
        self.site.close().await;
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path("platform.yaml")).expect("the platform file")
    }

    pub(super) fn model(&self) -> Platform {
        let source = Source::new("platform.yaml", self.text().into()).expect("text");
        tiphys_spec::platform(&Sources::new(vec![source])).expect("a platform")
    }

    pub(super) async fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        self.run_with(&self.site.world.kubeconfig, args).await
    }

    pub(super) async fn run_with(
        &self,
        kubeconfig: &Path,
        args: &[&str],
    ) -> (Option<i32>, String, String) {
        self.run_file(kubeconfig, "platform.yaml", args).await
    }

    async fn run_file(
        &self,
        kubeconfig: &Path,
        file: &str,
        args: &[&str],
    ) -> (Option<i32>, String, String) {
        let file = self.path(file).display().to_string();
        let all: Vec<&str> = ["configure", "-f", &file].iter().chain(args).copied().collect();
        tiphys::said(&tiphys::run(&all, kubeconfig).await)
    }

    /// With this platform's file, but for another namespace.
    pub(super) async fn run_in_namespace(&self, name: &str) -> (Option<i32>, String, String) {
        let text = self.text().replace("namespace: argocd", &format!("namespace: {name}"));
        fs::write(self.path("elsewhere.yaml"), text).expect("a file");
        self.run_file(&self.site.world.kubeconfig, "elsewhere.yaml", &[]).await
    }

    /// As a platform of this name would, that uses the project of another one.
    pub(super) async fn run_as_platform(
        &self,
        project: &str,
        name: &str,
    ) -> (Option<i32>, String, String) {
        let own = &self.site.platform.name;
        let text = self
            .text()
            .replace(&format!("  name: {own}\n"), &format!("  name: {name}\n"))
            .replace(&format!("project: {own}\n"), &format!("project: {project}\n"));
        fs::write(self.path("third.yaml"), text).expect("a file");
        self.run_file(&self.site.world.kubeconfig, "third.yaml", &[]).await
    }

    /// A run that must end well.
    pub(super) async fn configure(&self, args: &[&str]) -> Results {
        self.configure_with(&self.site.world.kubeconfig, args).await
    }

    pub(super) async fn configure_with(&self, kubeconfig: &Path, args: &[&str]) -> Results {
        let all: Vec<&str> = ["-o", "json"].iter().chain(args).copied().collect();
        let (code, stdout, stderr) = self.run_with(kubeconfig, &all).await;
        assert_eq!(code, Some(0), "{stderr}");
        let list: Vec<Value> = serde_json::from_str(&stdout).expect("a list");
        let text = |object: &Value, field: &str| object[field].as_str().expect("a text").to_owned();
        list.iter()
            .map(|object| {
                let kind = object["kind"].as_str().unwrap_or_default();
                let wide = ["ClusterRole", "Validating", "Namespace"];
                let wide = wide.iter().any(|start| kind.starts_with(start));
                let namespace = text(object, "namespace");
                assert_eq!(namespace.is_empty(), wide, "{object}");
                assert!(wide || NAMESPACES.contains(&&*namespace), "{object}");
                let name = format!("{}/{}", text(object, "kind"), text(object, "name"));
                (name, text(object, "result"))
            })
            .collect()
    }

    pub(super) fn act_as(&self, user: &str, groups: &[&str]) -> PathBuf {
        let path = self.path(user);
        tiphys::act_as(&self.site.world.kubeconfig, user, groups, &path);
        path
    }

    /// What somebody has written or tried to, if there is an audit log.
    pub(super) fn writes_by(&self, user: &str) -> Option<Vec<String>> {
        let log = fs::File::open(self.site.world.audit_log.as_ref()?).expect("the audit log");
        let lines = BufReader::new(log).lines().map_while(Result::ok);
        let mine = lines.filter(|line| line.contains(user));
        let records = mine.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        let written = records.filter(|record| {
            let verb = record["verb"].as_str().unwrap_or_default();
            record["impersonatedUser"]["username"] == user
                && !["get", "list", "watch"].contains(&verb)
        });
        // An earlier run of this test was the same user.
        let began = fs::metadata(self.path("platform.yaml")).and_then(|m| m.modified()).ok()?;
        let began = as_logged(began);
        let now = written.filter(|record| {
            record["requestReceivedTimestamp"].as_str().is_some_and(|at| at >= began.as_str())
        });
        Some(now.map(|r| r["requestURI"].as_str().unwrap_or_default().to_owned()).collect())
    }

    fn api(&self, version: &str, kind: &str) -> Api<DynamicObject> {
        self.site.objects(version, kind, Some("argocd"))
    }

    pub(super) async fn object(&self, kind: &str, name: &str) -> DynamicObject {
        self.api("argoproj.io/v1alpha1", kind).get(name).await.expect("the object is there")
    }

    /// The versions of everything that is this platform's alone, except the root app: Argo CD
    /// writes to that when it likes.
    pub(super) async fn versions(&self) -> Vec<(String, String)> {
        let platform = self.model();
        let mut objects = vec![
            ("argoproj.io/v1alpha1", "AppProject", platform.argocd.projects[0].clone()),
            ("argoproj.io/v1alpha1", "AppProject", platform.argocd.root_project.clone()),
            ("v1", "Secret", Purpose::Deploy.secret(&platform)),
            ("v1", "Secret", Purpose::Teardown.secret(&platform)),
        ];
        let role = Account::Deploy.name(&platform);
        objects.extend(["RoleBinding", "Role"].map(|kind| (RBAC, kind, role.clone())));
        let mut versions = Vec::new();
        for (version, kind, name) in objects {
            let found = self.api(version, kind).get_opt(&name).await.expect("an answer");
            let version = found.and_then(|object| object.metadata.resource_version);
            versions.extend(version.map(|version| (format!("{kind}/{name}"), version)));
        }
        versions
    }

    /// Argo CD's API with one of the platform's tokens, reached with the rights of `client`.
    pub(super) async fn argocd(&self, purpose: Purpose, client: &Client) -> RestClient {
        let platform = self.model();
        // With this token and no other: `credentials::argocd` reads a new one where there is one.
        let (token, endpoint) =
            credentials::find(client, &platform, purpose).await.expect("there is a token");
        RestClient::new(endpoint, Some(token))
    }

    /// A client that is an account inside the cluster.
    pub(super) async fn service_account(&self, account: Account) -> Client {
        let accounts: Api<ServiceAccount> =
            Api::namespaced(self.site.world.client.clone(), names::NAMESPACE);
        let name = account.name(&self.model());
        let request = TokenRequest::default();
        let token = accounts
            .create_token_request(&name, &PostParams::default(), &request)
            .await
            .expect("a token");
        let token = token.status.expect("a token").token;
        let kubeconfig = kube::config::Kubeconfig::read_from(&self.site.world.kubeconfig);
        let kubeconfig = kubeconfig.expect("the kubeconfig can be read");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let mut config = config.expect("the kubeconfig is good");
        config.auth_info =
            AuthInfo { token: Some(SecretString::from(token)), ..AuthInfo::default() };
        Client::try_from(config).expect("a client")
    }

    /// A project and an app that are not the platform's.
    pub(super) fn foreign(&self) -> String {
        format!("{}-foreign", self.site.platform.name)
    }

    pub(super) async fn make_foreign_app(&self) {
        let name = self.foreign();
        let metadata = json!({ "name": name, "namespace": "argocd" });
        let server = "https://kubernetes.default.svc";
        self.site
            .apply(json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata,
                "spec": {
                    "sourceRepos": ["*"], "destinations": [{ "server": "*", "namespace": "*" }],
                },
            }))
            .await;
        let source = json!({
            "repoURL": self.site.platform.repo_url, "targetRevision": "main",
            "path": format!("apps/{}", self.app),
        });
        self.site
            .apply(json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata,
                "spec": {
                    "project": name, "source": source,
                    "destination": { "server": server, "namespace": name },
                },
            }))
            .await;
    }

    /// Takes away what `tiphys configure` has made; the site does so with projects and apps.
    async fn clear(&self) {
        let platform = self.model();
        for purpose in Purpose::ALL {
            for id in self.registered(purpose).await {
                self.revoke(purpose, &id).await;
            }
            let secrets = self.api("v1", "Secret");
            secrets.delete(&purpose.secret(&platform), &DeleteParams::default()).await.ok();
        }
        let own = names::own(&platform);
        for account in Account::ALL {
            let name = account.name(&platform);
            let kinds = [(RBAC, "RoleBinding"), (RBAC, "Role"), ("v1", "ServiceAccount")];
            for (namespace, (version, kind)) in
                NAMESPACES.into_iter().flat_map(|namespace| kinds.map(|kind| (namespace, kind)))
            {
                let objects = self.site.objects(version, kind, Some(namespace));
                objects.delete(&name, &DeleteParams::default()).await.ok();
            }
        }
        for (version, kind, name) in cluster_wide(&platform) {
            let objects = self.site.objects(version, kind, None);
            objects.delete(&name, &DeleteParams::default()).await.ok();
        }
        // Gives up this platform's share; what others also want stays.
        for name in ["argocd-cm", "argocd-rbac-cm"] {
            let nothing = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": name, "namespace": "argocd" },
            });
            let params = PatchParams::apply(&own);
            let maps = self.api("v1", "ConfigMap");
            maps.patch(name, &params, &Patch::Apply(nothing)).await.expect("a share is given up");
        }
    }
}

/// What `tiphys configure` makes beside Argo CD's namespace.
fn cluster_wide(platform: &Platform) -> Vec<(&'static str, &'static str, String)> {
    let admission = "admissionregistration.k8s.io/v1";
    let roles = Account::ALL.map(|account| account.name(platform));
    let bindings = roles.clone().map(|name| (RBAC, "ClusterRoleBinding", name));
    let policies = ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"];
    let named = [names::hold_policy(platform), names::sets_policy(platform)];
    let policies =
        named.into_iter().flat_map(|name| policies.map(|kind| (admission, kind, name.clone())));
    bindings
        .into_iter()
        .chain(roles.map(|name| (RBAC, "ClusterRole", name)))
        .chain(policies)
        .collect()
}

/// The AppProjects, with the rights of a client.
pub(super) fn projects(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "AppProject");
    let resource = kube::api::ApiResource::from_gvk(&kind);
    Api::namespaced_with(client.clone(), "argocd", &resource)
}

/// A point in time as the audit log writes it, to compare as text.
fn as_logged(time: std::time::SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).expect("a time of this age");
    format!("{time:.6}")
}
