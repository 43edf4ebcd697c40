//! Taking away what Phase 1 has installed for a platform, in reverse: nothing is left, and nothing
//! goes that somebody else needs.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tiphys_model::bootstrap::PrimitiveName;
use tiphys_model::{Exit, Explain, Explanation, PlatformName};

use tiphys_cluster::names::{INSTALLED_FOR, MANAGED_BY, PRIMITIVE_LABEL};
use tiphys_cluster::stuck::Stuck;
use tiphys_cluster::{Kinds, ObjectName, RequestError, crds, delete};

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long each stage of it may take.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(300);
/// How many kinds are listed at once.
const AT_ONCE: usize = 8;
/// Made by Argo CD itself.
const ITS_OWN: (&str, &str) = ("AppProject", "default");

/// Why something of what was installed is still there.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum RemoveError {
    /// It was deleted, and stays.
    NotGone {
        object: Box<ObjectName>,
        stage: &'static str,
        stuck: Option<Box<Stuck>>,
        /// What its conditions say.
        conditions: Vec<String>,
    },
    Request(#[from] RequestError),
}

impl Explain for RemoveError {
    fn explain(&self) -> Explanation {
        match self {
            RemoveError::NotGone { object, stage, stuck, conditions } => {
                let why = match stuck {
                    Some(stuck) => stuck.to_string(),
                    None if conditions.is_empty() => "its status does not say why".to_owned(),
                    None => conditions.join(", "),
                };
                let what = format!("timed out deleting {object} ({stage})");
                Explanation::new(Exit::Failed, what, why)
                    .hint("fix the cause, then run this command again: it continues here")
            }
            RemoveError::Request(error) => error.explain(),
        }
    }
}

/// An object that is there.
#[derive(Clone)]
struct Live {
    name: ObjectName,
    uid: Option<String>,
    primitive: Option<PrimitiveName>,
}

/// Removes the primitives that were installed for a platform, the last one first; whether there
/// was anything of them.
pub async fn remove(
    client: &Client,
    platform: &PlatformName,
    tell: &dyn Fn(String),
) -> Result<bool, RemoveError> {
    let kinds = Kinds::discover(client).await?;
    let selector = format!("{}={},{INSTALLED_FOR}={platform}", MANAGED_BY.0, MANAGED_BY.1);
    let all = list(&kinds, &ListParams::default().labels(&selector), |_| true).await?;
    for primitive in PrimitiveName::ALL.into_iter().rev() {
        let own: Vec<&Live> = all.iter().filter(|o| o.primitive == Some(primitive)).collect();
        if own.is_empty() {
            continue;
        }
        let title = primitive.title();
        let instances = instances(&kinds, &own).await?;
        if let Some(other) = user(&instances, &own) {
            tell(format!("{title} is kept: {other} does not belong to the platform"));
            continue;
        }
        tell(format!("removing {title}"));
        // While its controllers are there to take their finalizers off.
        remove_all(client, &kinds, instances, "custom resources").await?;
        for (stage, part) in [
            ("namespace", Part::Namespace),
            ("cluster-wide objects", Part::ClusterWide),
            ("CRDs", Part::Crds),
        ] {
            let objects = own.iter().filter(|object| part.has(object)).map(|o| (*o).clone());
            remove_all(client, &kinds, objects.collect(), stage).await?;
        }
    }
    Ok(!all.is_empty())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Namespace,
    ClusterWide,
    Crds,
}

impl Part {
    fn has(self, object: &Live) -> bool {
        let part = match &*object.name.kind {
            "Namespace" => Part::Namespace,
            "CustomResourceDefinition" => Part::Crds,
            // What is in the namespace goes with it.
            _ if !object.name.namespace.is_empty() => return false,
            _ => Part::ClusterWide,
        };
        self == part
    }
}

/// Whoever else uses a primitive: its objects in other namespaces than its own, and Applications
/// wherever they are.
fn user(instances: &[Live], own: &[&Live]) -> Option<ObjectName> {
    let namespaces: BTreeSet<&str> = own
        .iter()
        .filter(|object| object.name.kind == "Namespace")
        .map(|object| object.name.name.as_str())
        .collect();
    let other = |object: &&Live| {
        let name = &object.name;
        let application = ["Application", "ApplicationSet"].contains(&&*name.kind);
        // Without its namespace, what is left is what a removal before has not come to.
        application || !(namespaces.is_empty() || namespaces.contains(&*name.namespace))
    };
    instances.iter().find(other).map(|object| object.name.clone())
}

/// The objects of the kinds that a primitive has brought.
async fn instances(kinds: &Kinds, own: &[&Live]) -> Result<Vec<Live>, RequestError> {
    let crds: BTreeSet<&str> = own
        .iter()
        .filter(|object| object.name.kind == "CustomResourceDefinition")
        .map(|object| object.name.name.as_str())
        .collect();
    let brought = |resource: &ApiResource| {
        crds.contains(format!("{}.{}", resource.plural, resource.group).as_str())
    };
    let found = list(kinds, &ListParams::default(), brought).await?;
    let its_own = |live: &Live| (&*live.name.kind, &*live.name.name) == ITS_OWN;
    Ok(found.into_iter().filter(|live| !its_own(live)).collect())
}

async fn list(
    kinds: &Kinds,
    params: &ListParams,
    wanted: impl Fn(&ApiResource) -> bool,
) -> Result<Vec<Live>, RequestError> {
    let lists = kinds.listable().filter(|(resource, _)| wanted(resource));
    let lists = lists.map(|(resource, api)| async move {
        match api.list_metadata(params).await {
            Ok(listed) => {
                let live = |object: kube::core::PartialObjectMeta<DynamicObject>| Live {
                    name: ObjectName {
                        group: resource.group.clone(),
                        kind: resource.kind.clone(),
                        namespace: object.namespace().unwrap_or_default(),
                        name: object.name_any(),
                    },
                    uid: object.uid(),
                    primitive: object.labels().get(PRIMITIVE_LABEL).and_then(|label| {
                        PrimitiveName::ALL.into_iter().find(|name| name.as_str() == label)
                    }),
                };
                Ok(listed.items.into_iter().map(live).collect::<Vec<_>>())
            }
            // The kind has gone meanwhile.
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 405 => {
                Ok(Vec::new())
            }
            Err(error) => {
                let what = format!("cannot list {}", resource.plural);
                Err(RequestError::because(what)(error))
            }
        }
    });
    let found: Vec<Result<Vec<Live>, RequestError>> =
        futures::stream::iter(lists).buffered(AT_ONCE).collect().await;
    Ok(found.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// Deletes objects and waits until they are gone.
async fn remove_all(
    client: &Client,
    kinds: &Kinds,
    objects: Vec<Live>,
    stage: &'static str,
) -> Result<(), RemoveError> {
    let began = Instant::now();
    for object in &objects {
        let Some(api) = kinds.api(&object.name) else { continue };
        let what = format!("cannot delete {}", object.name);
        delete::delete(&api, &object.name.name, &delete::only(object.uid.clone()), what).await?;
    }
    let mut left = objects;
    loop {
        let mut still = Vec::new();
        for object in left {
            let live = kinds.get(&object.name).await;
            let what = format!("cannot read {}", object.name);
            let live = live.map_err(RequestError::because(what))?;
            if let Some(live) = live.filter(|live| live.uid() == object.uid) {
                still.push((object, live));
            }
        }
        let Some((object, live)) = still.first() else { return Ok(()) };
        if began.elapsed() > REMOVAL_TIMEOUT {
            return Err(not_gone(&object.name, live, stage));
        }
        for (_, live) in still.iter().filter(|(o, _)| o.name.kind == "CustomResourceDefinition") {
            crds::nudge(client, &serde_json::to_value(live).unwrap_or_default()).await?;
        }
        left = still.into_iter().map(|(object, _)| object).collect();
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn not_gone(name: &ObjectName, live: &DynamicObject, stage: &'static str) -> RemoveError {
    let conditions = live.data.pointer("/status/conditions").and_then(Value::as_array);
    let conditions = conditions
        .into_iter()
        .flatten()
        .filter(|condition| condition["status"] == "True")
        .filter_map(|condition| condition["message"].as_str().map(str::to_owned))
        .collect();
    RemoveError::NotGone {
        object: Box::new(name.clone()),
        stage,
        stuck: Stuck::of(name, live).map(Box::new),
        conditions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(kind: &str, namespace: &str, name: &str) -> Live {
        let [kind, namespace, name] = [kind, namespace, name].map(str::to_owned);
        let name = ObjectName { group: String::new(), kind, namespace, name };
        Live { name, uid: None, primitive: None }
    }

    #[test]
    fn who_else_uses_it_is_found() {
        let namespace = live("Namespace", "", "argo");
        let used = |instance: Live| user(&[instance], &[&namespace]).map(|name| name.to_string());
        assert_eq!(used(live("Workflow", "argo", "a")), None);
        assert_eq!(used(live("Workflow", "team", "a")).as_deref(), Some("Workflow/team/a"));
        assert_eq!(used(live("Application", "argo", "a")).as_deref(), Some("Application/argo/a"));
    }

    #[test]
    fn what_is_in_the_namespace_goes_with_it() {
        let stages = |object: Live| {
            [Part::Namespace, Part::ClusterWide, Part::Crds].map(|part| part.has(&object))
        };
        assert_eq!(stages(live("Namespace", "", "n")), [true, false, false]);
        assert_eq!(stages(live("ClusterRole", "", "r")), [false, true, false]);
        assert_eq!(stages(live("CustomResourceDefinition", "", "c")), [false, false, true]);
        assert_eq!(stages(live("Deployment", "n", "d")), [false; 3]);
    }
}
