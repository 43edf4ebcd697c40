//! Taking back what `configure` has set up, and nothing else.

use std::collections::BTreeSet;

use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Map, json};
use tiphys_model::{DeployPolicy, Explain, Explanation, Platform};

use super::keys::{self, ARGOCD_SECRET};
use super::retry::{TokenUpdateError, again};
use super::trust::AUTHORITIES;
use super::{commit_status, roles, tokens, triggers};
use crate::definitions::{self, SETTINGS};
use tiphys_cluster::names::{self, FIELD_MANAGER, MANAGED_BY, PLATFORM_LABEL, Purpose};
use tiphys_cluster::{RequestError, delete, dynamic};

/// Why something of the platform is still in Argo CD.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum RemoveError {
    Tokens(#[from] TokenUpdateError),
    Request(#[from] RequestError),
}

impl Explain for RemoveError {
    fn explain(&self) -> Explanation {
        match self {
            RemoveError::Tokens(error) => error.explain(),
            RemoveError::Request(error) => error.explain(),
        }
    }
}

/// Removes the platform's accounts, rights and projects. A project that `used` says is still in
/// use stays.
pub async fn remove(
    client: &Client,
    platform: &Platform,
    used: impl Fn(&str) -> bool,
) -> Result<(), RemoveError> {
    let admission = "admissionregistration.k8s.io/v1";
    let mut objects = Vec::new();
    for kind in ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"] {
        objects.push((admission, kind, names::hold_policy(platform)));
        objects.push((admission, kind, names::sets_policy(platform)));
        objects.push((admission, kind, names::loop_policy(platform)));
    }
    objects.push(("v1", "Secret", names::admin(platform)));
    let repositories = repositories(client, platform).await?;
    objects.extend(repositories.into_iter().map(|name| ("v1", "Secret", name)));
    objects.extend(Purpose::ALL.map(|purpose| ("v1", "Secret", purpose.secret(platform))));
    for project in platform.argocd.all_projects() {
        if !used(project) {
            objects.push(("argoproj.io/v1alpha1", "AppProject", project.to_owned()));
        }
    }
    let mut attempts = 1;
    while let Err(error) = revoke(client, platform).await {
        again(&mut attempts, error)?;
    }
    let manager = names::own(platform);
    let common = [
        ("ConfigMap", "argocd-rbac-cm"),
        ("ConfigMap", AUTHORITIES),
        ("ConfigMap", SETTINGS),
        ("Secret", ARGOCD_SECRET),
    ];
    let own = |managers: &BTreeSet<String>| managers.contains(&manager).then(|| manager.clone());
    for object in common {
        let_go(client, platform, object, own).await?;
    }
    // The definitions are everybody's: the last platform takes them along.
    let last = |managers: &BTreeSet<String>| {
        let platform = |name: &String| name.starts_with("tiphys-");
        let last = managers.contains(definitions::MANAGER) && !managers.iter().any(platform);
        last.then(|| definitions::MANAGER.to_owned())
    };
    let_go(client, platform, ("ConfigMap", SETTINGS), last).await?;
    for (namespace, version, kind, account) in roles::removed(platform) {
        let objects = dynamic(client, namespace.as_deref(), version, kind);
        delete_own(&objects, platform, kind, &account.name(platform)).await?;
    }
    // The platform as it was deployed knows no triggers, so these are all of them.
    let without = Platform { triggers: Vec::new(), ..platform.clone() };
    for removal in triggers::removals(client, &without).await? {
        removal.carry_out().await?;
    }
    // From now on, nobody wants statuses.
    let without = Platform { deploy: DeployPolicy::default(), ..platform.clone() };
    if let Some(removal) = commit_status::removal(client, &without).await? {
        removal.carry_out().await?;
    }
    let argocd = &platform.argocd.namespace;
    let maps = dynamic(client, Some(names::NAMESPACE), "v1", "ConfigMap");
    for map in [names::stored_file, names::deploy_loop].map(|name| name(argocd, &platform.name)) {
        delete_own(&maps, platform, "ConfigMap", &map).await?;
    }
    for (version, kind, name) in objects {
        let namespace = (!kind.starts_with("Validating")).then_some(&*platform.argocd.namespace);
        delete_own(&dynamic(client, namespace, version, kind), platform, kind, &name).await?;
    }
    Ok(())
}

/// The Secrets of the platform's repositories.
async fn repositories(client: &Client, platform: &Platform) -> Result<Vec<String>, RequestError> {
    let secrets = dynamic(client, Some(&platform.argocd.namespace), "v1", "Secret");
    let ours = ListParams::default().labels(&format!("{PLATFORM_LABEL}={}", platform.name));
    let listed = secrets.list_metadata(&ours).await;
    let listed = listed.map_err(RequestError::because("cannot list the Secrets"))?;
    let own = names::repository(platform);
    let names = listed.items.iter().map(ResourceExt::name_any);
    Ok(names.filter(|name| name.starts_with(&own)).collect())
}

/// Tokens of the platform are taken off the lists of their accounts.
async fn revoke(client: &Client, platform: &Platform) -> Result<(), TokenUpdateError> {
    let namespace = &platform.argocd.namespace;
    let keys = keys::keys(client, namespace).await?;
    let mut data = Map::new();
    for purpose in Purpose::ALL {
        let key = tokens::registry_key(purpose);
        if let Some(left) = tokens::without(platform, purpose, keys.get(&key))? {
            data.insert(key, tokens::written(&left));
        }
    }
    if data.is_empty() {
        return Ok(());
    }
    let patch = json!({ "metadata": { "resourceVersion": keys.version }, "data": data });
    let secrets = dynamic(client, Some(namespace), "v1", "Secret");
    let params =
        PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() };
    let written = secrets.patch(ARGOCD_SECRET, &params, &Patch::Merge(&patch)).await;
    written.map_err(RequestError::because("cannot revoke the tokens"))?;
    Ok(())
}

/// Gives up the platform's keys of an object that others write to, too.
async fn let_go(
    client: &Client,
    platform: &Platform,
    object: (&str, &str),
    who: impl Fn(&BTreeSet<String>) -> Option<String>,
) -> Result<(), TokenUpdateError> {
    let mut attempts = 1;
    while let Err(error) = let_go_once(client, platform, object, &who).await {
        again(&mut attempts, error.into())?;
    }
    Ok(())
}

/// An apply without the keys gives them up; what other managers hold too stays. In whose name
/// that is done, if at all, depends on who manages the object. Its values are not read.
async fn let_go_once(
    client: &Client,
    platform: &Platform,
    (kind, name): (&str, &str),
    who: impl Fn(&BTreeSet<String>) -> Option<String>,
) -> Result<(), RequestError> {
    let namespace = &platform.argocd.namespace;
    let objects = dynamic(client, Some(namespace), "v1", kind);
    let what = format!("cannot write the {kind} {name} in {namespace}");
    let found = objects.get_metadata_opt(name).await.map_err(RequestError::because(&what))?;
    let managers = found.iter().flat_map(ResourceExt::managed_fields);
    let managers = managers.filter_map(|entry| entry.manager.clone()).collect();
    let Some(manager) = who(&managers) else { return Ok(()) };
    let nothing = json!({
        "apiVersion": "v1", "kind": kind, "metadata": { "name": name, "namespace": namespace },
    });
    let applied = objects.patch(name, &PatchParams::apply(&manager), &Patch::Apply(&nothing)).await;
    applied.map(|_| ()).map_err(RequestError::because(what))
}

/// Only if it says that it is this platform's.
async fn delete_own(
    objects: &Api<DynamicObject>,
    platform: &Platform,
    kind: &str,
    name: &str,
) -> Result<(), RequestError> {
    let what = format!("cannot delete {kind} {name}");
    let Some(found) = objects.get_opt(name).await.map_err(RequestError::because(&what))? else {
        return Ok(());
    };
    let label = |key: &str| found.labels().get(key).map(String::as_str);
    if label(MANAGED_BY.0) != Some(MANAGED_BY.1)
        || label(PLATFORM_LABEL) != Some(platform.name.as_str())
    {
        return Ok(());
    }
    delete::delete(objects, name, &delete::only(found.uid()), what).await
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::Method;
    use tiphys_cluster::scripted::{self, Answer};

    use super::*;
    use crate::configure::objects::tests::platform;

    /// How often it is written if so many answers are conflicts, and whether that ends well.
    async fn let_go_among(conflicts: usize) -> (usize, bool) {
        let written = Arc::new(Mutex::new(0));
        let count = written.clone();
        let client = scripted::client(move |asked| {
            if asked.method == Method::PATCH {
                let mut count = count.lock().unwrap();
                *count += 1;
                if *count <= conflicts {
                    return Answer::refused(409, "somebody else was faster");
                }
            }
            let fields = json!([{ "manager": "tiphys-prod", "operation": "Apply" }]);
            Answer::Object(json!({ "metadata": { "name": "a", "managedFields": fields } }))
        });
        let own = |managers: &BTreeSet<String>| managers.first().cloned();
        let ended = let_go(&client, &platform("prod"), ("ConfigMap", "a"), own).await;
        (*written.lock().unwrap(), ended.is_ok())
    }

    #[tokio::test]
    async fn what_others_write_to_is_looked_at_again() {
        assert_eq!(let_go_among(0).await, (1, true));
        assert_eq!(let_go_among(3).await, (4, true));
        assert!(!let_go_among(99).await.1, "not for ever");
    }
}
