//! Whether what was applied really works, and waiting until it does.

use std::time::Duration;

use kube::Client;
use serde_json::Value;
use tokio::time::Instant;

use super::outdated;
use super::render::kind;
use super::trouble::{self, Trouble};
use tiphys_cluster::workload::{self, is_workload};
use tiphys_cluster::{Cause, Kinds, ObjectName, RequestError};
use tiphys_model::{Exit, Explain, Explanation};

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

/// Why what was applied does not work.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum ReadyError {
    /// The API server does not accept a CRD.
    Refused {
        crd: Box<ObjectName>,
        message: String,
    },
    /// What is not ready, and why; never empty.
    TooLate(Vec<(ObjectName, Trouble)>),
    Request(#[from] RequestError),
}

impl Explain for ReadyError {
    fn explain(&self) -> Explanation {
        match self {
            ReadyError::Refused { crd, message } => {
                Explanation::new(Exit::Failed, format!("the API server rejected {crd}"), message)
                    .hint("check for another CRD with the same names: `kubectl get crd`")
            }
            ReadyError::TooLate(waiting) => too_late(waiting),
            ReadyError::Request(error) => error.explain(),
        }
    }
}

/// One cause often keeps several from starting: it is told once.
fn too_late(waiting: &[(ObjectName, Trouble)]) -> Explanation {
    let next = waiting.iter().find_map(|(_, trouble)| trouble.next);
    let next = next.unwrap_or("check its pods with `kubectl describe pod`");
    let known = |text: &str| trouble::CAUSES.iter().position(|(word, _)| text.contains(word));
    let mut told: Vec<_> = waiting.iter().collect();
    told.sort_by_key(|(_, trouble)| known(&trouble.text).unwrap_or(usize::MAX));
    let (first, Trouble { text, .. }) = told[0];
    let others: Vec<String> = told[1..].iter().map(|(object, _)| object.to_string()).collect();
    let also = if others.is_empty() {
        String::new()
    } else {
        format!("; also not ready: {}", others.join(", "))
    };
    let what = format!("timed out waiting for {first}");
    Explanation::new(Exit::Failed, what, format!("{text}{also}"))
        .hint(format!("{next}; then run this command again: it continues where it stopped"))
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
) -> Result<(), ReadyError> {
    let kinds = Kinds::discover(client).await?;
    let mut left: Vec<&ObjectName> = objects.iter().collect();
    let mut told = String::new();
    loop {
        let mut waiting = Vec::new();
        for object in left {
            match look(&kinds, object).await? {
                Readiness::Ready => {}
                Readiness::NotYet(why) => waiting.push((object, why)),
                Readiness::Refused(message) => {
                    return Err(ReadyError::Refused { crd: Box::new(object.clone()), message });
                }
            }
        }
        let Some((object, why)) = waiting.first() else { return Ok(()) };
        for (object, _) in waiting.iter().filter(|(object, _)| object.kind == "StatefulSet") {
            outdated::replace(client, &kinds, object, tell).await?;
        }
        if Instant::now() >= deadline {
            return Err(ReadyError::TooLate(troubles(client, waiting).await));
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
async fn look(kinds: &Kinds, object: &ObjectName) -> Result<Readiness, RequestError> {
    match kinds.get(object).await {
        Ok(Some(live)) => Ok(readiness(&serde_json::to_value(&live).unwrap_or_default())),
        Ok(None) => Ok(Readiness::NotYet("it no longer exists".to_owned())),
        Err(error) => {
            let error = RequestError::because(format!("cannot read {object}"))(error);
            match error.cause() {
                Cause::Unreachable => Ok(Readiness::NotYet(error.why())),
                _ => Err(error),
            }
        }
    }
}

/// What keeps objects from being ready; what they wait for, where nothing else is said.
async fn troubles(
    client: &Client,
    waiting: Vec<(&ObjectName, String)>,
) -> Vec<(ObjectName, Trouble)> {
    let mut found = Vec::new();
    for (object, why) in waiting {
        let trouble = trouble::of(client, object).await;
        found.push((object.clone(), trouble.unwrap_or(Trouble { text: why, next: None })));
    }
    found
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

    #[test]
    fn a_known_cause_is_told_first_and_once() {
        let waiting = |name: &str, text: &str, next| {
            let kind = "Deployment".to_owned();
            let (group, namespace) = ("apps".to_owned(), "n".to_owned());
            let object = ObjectName { group, kind, namespace, name: name.to_owned() };
            (object, Trouble { text: text.to_owned(), next })
        };
        let error = ReadyError::TooLate(vec![
            waiting("a", "0 of 1 replicas", None),
            waiting("b", "ImagePullBackOff", Some("fix the image")),
        ]);
        let Explanation { what, why, next, .. } = error.explain();
        assert_eq!(what, "timed out waiting for Deployment/n/b");
        assert_eq!(why, "ImagePullBackOff; also not ready: Deployment/n/a");
        assert!(next.unwrap().starts_with("fix the image; then run this command again"));
        let unknown = ReadyError::TooLate(vec![waiting("a", "0 of 1 replicas", None)]).explain();
        assert_eq!(unknown.why, "0 of 1 replicas");
        assert!(unknown.next.unwrap().starts_with("check its pods with `kubectl describe pod`; "));
    }
}
