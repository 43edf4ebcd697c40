//! Whether what was applied really works, and waiting until it does.

use std::time::Duration;

use kube::Client;
use serde_json::Value;
use tokio::time::Instant;

use super::render::kind;
use super::{outdated, trouble};
use tiphys_cluster::workload::{self, is_workload};
use tiphys_cluster::{ClusterError, Kind};
use tiphys_cluster::{Kinds, ObjectName};

const PAUSE: Duration = Duration::from_millis(500);

/// What one object has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Readiness {
    Ready,
    /// What it waits for.
    NotYet(String),
    /// It will not change by waiting.
    Refused(String),
}

/// Which of the applied objects have to become ready.
pub(super) fn awaited(object: &Value) -> bool {
    is_workload(kind(object)) || kind(object) == "CustomResourceDefinition"
}

fn readiness(live: &Value) -> Readiness {
    match kind(live) {
        "CustomResourceDefinition" => crd(live),
        _ => workload::awaits(live).map_or(Readiness::Ready, Readiness::NotYet),
    }
}

fn crd(live: &Value) -> Readiness {
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
    let condition =
        |name: &str| conditions.into_iter().flatten().find(|condition| condition["type"] == name);
    let is = |name: &str, status: &str| condition(name).filter(|c| c["status"] == status);
    let message = |condition: &Value| condition["message"].as_str().unwrap_or_default().to_owned();
    if let Some(refused) = is("NamesAccepted", "False").or(is("NonStructuralSchema", "True")) {
        return Readiness::Refused(message(refused));
    }
    match is("Established", "True") {
        Some(_) => Readiness::Ready,
        None => Readiness::NotYet("the API server does not serve it yet".to_owned()),
    }
}

/// Waits until all objects are ready; `tell` says what is waited for whenever that changes.
pub(super) async fn wait(
    client: &Client,
    objects: &[ObjectName],
    deadline: Instant,
    tell: &dyn Fn(String),
) -> Result<(), ClusterError> {
    let kinds = Kinds::discover(client).await?;
    let mut left: Vec<&ObjectName> = objects.iter().collect();
    let mut told = String::new();
    loop {
        let mut waiting = Vec::new();
        for object in left {
            match look(&kinds, object).await? {
                Readiness::Ready => {}
                Readiness::NotYet(why) => waiting.push((object, why)),
                Readiness::Refused(why) => {
                    let what = format!("{object} is not accepted");
                    return Err(ClusterError::new(Kind::Failed, what, why)
                        .hint("see whose CRD has the same names: `kubectl get crd`"));
                }
            }
        }
        let Some((object, why)) = waiting.first() else { return Ok(()) };
        for (object, _) in waiting.iter().filter(|(object, _)| object.kind == "StatefulSet") {
            outdated::replace(client, &kinds, object, tell).await?;
        }
        if Instant::now() >= deadline {
            return Err(too_late(client, &waiting).await);
        }
        let now = format!("waiting for {object}: {why}");
        if told != now {
            tell(now.clone());
            told = now;
        }
        left = waiting.into_iter().map(|(object, _)| object).collect();
        tokio::time::sleep(PAUSE).await;
    }
}

/// A cluster that does not answer for a moment is not a failure: time is what limits it.
async fn look(kinds: &Kinds, object: &ObjectName) -> Result<Readiness, ClusterError> {
    match kinds.get(object).await {
        Ok(Some(live)) => Ok(readiness(&serde_json::to_value(&live).unwrap_or_default())),
        Ok(None) => Ok(Readiness::NotYet("it is not there any more".to_owned())),
        Err(error) => {
            let error = ClusterError::kube(format!("{object} cannot be read"))(error);
            match error.kind {
                Kind::Unreachable => Ok(Readiness::NotYet(error.why)),
                _ => Err(error),
            }
        }
    }
}

async fn too_late(client: &Client, waiting: &[(&ObjectName, String)]) -> ClusterError {
    let mut told: Vec<(&ObjectName, String)> = Vec::new();
    let mut next = None;
    for (object, why) in waiting {
        match trouble::of(client, object).await {
            Some(found) => {
                next = next.or(found.next);
                told.push((object, found.text));
            }
            None => told.push((object, why.clone())),
        }
    }
    // One cause often keeps several from starting: it is told once.
    let known = |text: &str| trouble::CAUSES.iter().position(|(word, _)| text.contains(word));
    told.sort_by_key(|(_, text)| known(text).unwrap_or(usize::MAX));
    let (first, text) = &told[0];
    let others: Vec<String> = told[1..].iter().map(|(object, _)| object.to_string()).collect();
    let also = if others.is_empty() {
        String::new()
    } else {
        format!("; also not ready: {}", others.join(", "))
    };
    let what = format!("{first} is not ready in time");
    let next = next.unwrap_or("see its pods with `kubectl describe pod`");
    ClusterError::new(Kind::Failed, what, format!("{text}{also}"))
        .hint(format!("{next}; then run this again: it goes on where it stopped"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crd_is_ready_when_it_is_served_and_refused_when_its_names_are_taken() {
        let crd = |conditions: &Value| {
            readiness(&json!({
                "kind": "CustomResourceDefinition", "status": { "conditions": conditions },
            }))
        };
        let established = json!([{ "type": "Established", "status": "True" }]);
        assert_eq!(crd(&established), Readiness::Ready);
        assert!(matches!(crd(&json!([])), Readiness::NotYet(_)));
        let taken = json!([{ "type": "NamesAccepted", "status": "False", "message": "taken" }]);
        assert_eq!(crd(&taken), Readiness::Refused("taken".to_owned()));
    }
}
