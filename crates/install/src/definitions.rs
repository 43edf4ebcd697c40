//! Our health definitions in Argo CD's settings: what has to be there, and whether it is.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, Client};
use serde_json::{Map, Value};
use tiphys_cluster::RequestError;
use tiphys_model::{Exit, Explain, Explanation};

/// Argo CD's settings.
pub(crate) const SETTINGS: &str = "argocd-cm";
/// Who is named as the manager of the definitions. All platforms of an Argo CD share them, so
/// all write them in one name: then each can replace those of an older Tiphys. No platform has a
/// dot in its name, so none writes in this one.
pub const MANAGER: &str = "tiphys.health";

/// The keys, and the scripts.
#[must_use]
pub fn keys() -> Map<String, Value> {
    let key = |definition: tiphys_health::Definition| {
        let key = format!("resource.customizations.health.{}", definition.kind.config_key());
        (key, Value::from(&*definition.script.text))
    };
    tiphys_health::definitions().into_iter().map(key).collect()
}

/// Refuses an Argo CD that judges by other definitions than ours: a run would wait for another
/// Healthy than the one it was planned with. When the settings changed last, if they say so.
pub async fn verify(client: &Client, namespace: &str) -> Result<Option<Time>, DefinitionsError> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let what = format!("cannot read the ConfigMap {SETTINGS} in {namespace}");
    let found = maps.get(SETTINGS).await.map_err(RequestError::because(what))?;
    compare(&found.data.unwrap_or_default())?;
    let changes = found.metadata.managed_fields.unwrap_or_default().into_iter();
    Ok(changes.filter_map(|change| change.time).max())
}

fn compare(found: &BTreeMap<String, String>) -> Result<(), DefinitionsError> {
    let changed: Vec<Difference> = keys()
        .iter()
        .filter_map(|(key, script)| Difference::of(key, script.as_str()?, found.get(key)?))
        .collect();
    let absent: Vec<String> =
        keys().into_iter().map(|(key, _)| key).filter(|key| !found.contains_key(key)).collect();
    if changed.is_empty() && absent.is_empty() {
        return Ok(());
    }
    Err(DefinitionsError::Different { absent, changed })
}

/// Why Argo CD cannot be relied on to judge health as the plan does.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum DefinitionsError {
    Different {
        /// Keys that Argo CD's settings lack.
        absent: Vec<String>,
        changed: Vec<Difference>,
    },
    Request(#[from] RequestError),
}

impl Explain for DefinitionsError {
    fn explain(&self) -> Explanation {
        match self {
            DefinitionsError::Different { absent, changed } => {
                let mut why = Vec::new();
                if !absent.is_empty() {
                    why.push(format!("missing in {SETTINGS}: {}", absent.join(", ")));
                }
                why.extend(changed.iter().map(Difference::to_string));
                Explanation::new(
                    Exit::Configuration,
                    "Argo CD's health definitions differ from the plan's",
                    why.join("\n"),
                )
                .hint("run `tiphys configure` to install the plan's definitions")
            }
            DefinitionsError::Request(error) => error.explain(),
        }
    }
}

/// A key whose script is not ours.
#[derive(Debug)]
pub struct Difference {
    key: String,
    wanted: String,
    found: String,
}

impl Difference {
    fn of(key: &str, wanted: &str, found: &str) -> Option<Self> {
        (wanted != found).then(|| {
            let [key, wanted, found] = [key, wanted, found].map(str::to_owned);
            Difference { key, wanted, found }
        })
    }
}

/// The lines that differ, as in a diff.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted: Vec<&str> = self.wanted.lines().collect();
        let found: Vec<&str> = self.found.lines().collect();
        let same = wanted.iter().zip(&found).take_while(|(a, b)| a == b).count();
        let (wanted, found) = (&wanted[same..], &found[same..]);
        let tail = wanted.iter().rev().zip(found.iter().rev()).take_while(|(a, b)| a == b).count();
        let lines = |sign: &'static str, lines: &[&str]| -> Vec<String> {
            let lines = &lines[..lines.len() - tail];
            let shown = lines.iter().take(LINES).map(move |line| format!("{sign} {line}"));
            let more = lines.len().saturating_sub(LINES);
            shown.chain((more > 0).then(|| format!("{sign} … {more} more lines"))).collect()
        };
        let changes = [lines("-", found), lines("+", wanted)].concat();
        if changes.is_empty() {
            return write!(f, "{}: only the final line break differs", self.key);
        }
        write!(f, "{}, from line {}:\n{}", self.key, same + 1, changes.join("\n"))
    }
}

/// How many lines of a difference are shown of each side.
const LINES: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_and_what_is_changed_is_said() {
        let ours =
            || keys().into_iter().map(|(key, script)| (key, script.as_str().unwrap().into()));
        let mut found: BTreeMap<String, String> = ours().collect();
        assert!(compare(&found).is_ok());
        let mut names = keys().into_iter().map(|(key, _)| key);
        let (absent, changed) = (names.next().unwrap(), names.next().unwrap());
        found.remove(&absent);
        found.get_mut(&changed).unwrap().insert_str(0, "-- theirs\n");
        let why = compare(&found).unwrap_err().explain().why;
        let changed = format!("{changed}, from line 1:\n- -- theirs");
        assert_eq!(why, format!("missing in argocd-cm: {absent}\n{changed}"));
    }

    #[test]
    fn differences_are_shown_as_a_diff() {
        let difference = |key: &str, wanted: &str, found: &str| {
            Difference::of(key, wanted, found).map(|difference| difference.to_string())
        };
        let wanted = "a\nb\nc\nd\n";
        assert_eq!(difference("k", wanted, wanted), None);
        let changed = difference("k", wanted, "a\nx\ny\nd\n").unwrap();
        assert_eq!(changed, "k, from line 2:\n- x\n- y\n+ b\n+ c");
        assert_eq!(difference("k", wanted, "a\nb\nd\n").unwrap(), "k, from line 3:\n+ c");
        let long = difference("k", wanted, &"z\n".repeat(9)).unwrap();
        assert!(long.contains("\n- … 4 more lines\n+ a\n"), "{long}");
        let end = difference("k", wanted, "a\nb\nc\nd").unwrap();
        assert_eq!(end, "k: only the final line break differs");
    }

    #[test]
    fn keys_are_argo_cds() {
        let keys = keys();
        let script = keys["resource.customizations.health.ceph.rook.io_CephCluster"].as_str();
        assert!(script.unwrap().contains("HEALTH_OK"));
    }
}
