//! Our health definitions in Argo CD's settings: what has to be there, and whether it is.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use serde_json::{Map, Value};

use tiphys_cluster::{ClusterError, Kind};

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
/// Healthy than the one it was planned with.
pub async fn verify(client: &Client, namespace: &str) -> Result<(), ClusterError> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let what = format!("the ConfigMap {SETTINGS} in {namespace} cannot be read");
    let found = maps.get(SETTINGS).await.map_err(ClusterError::kube(what))?;
    let found = found.data.unwrap_or_default();
    let different: Vec<String> = keys()
        .iter()
        .filter_map(|(key, script)| difference(key, script.as_str()?, found.get(key)?.as_str()))
        .collect();
    let absent: Vec<String> =
        keys().into_iter().map(|(key, _)| key).filter(|key| !found.contains_key(key)).collect();
    if different.is_empty() && absent.is_empty() {
        return Ok(());
    }
    let mut why = Vec::new();
    if !absent.is_empty() {
        why.push(format!("{SETTINGS} has no {}", absent.join(", ")));
    }
    why.extend(different);
    Err(ClusterError::new(
        Kind::Configuration,
        "Argo CD does not judge health by the plan's definitions",
        why.join("\n"),
    )
    .hint("`tiphys configure` installs them"))
}

/// The lines that differ, as in a diff.
fn difference(key: &str, wanted: &str, found: &str) -> Option<String> {
    if wanted == found {
        return None;
    }
    let (wanted, found): (Vec<&str>, Vec<&str>) =
        (wanted.lines().collect(), found.lines().collect());
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
        return Some(format!("{key} differs in how its last line ends"));
    }
    Some(format!("{key}, from line {}:\n{}", same + 1, changes.join("\n")))
}

/// How many lines of a difference are shown of each side.
const LINES: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_shown_as_a_diff() {
        let wanted = "a\nb\nc\nd\n";
        assert_eq!(difference("k", wanted, wanted), None);
        let changed = difference("k", wanted, "a\nx\ny\nd\n").unwrap();
        assert_eq!(changed, "k, from line 2:\n- x\n- y\n+ b\n+ c");
        assert_eq!(difference("k", wanted, "a\nb\nd\n").unwrap(), "k, from line 3:\n+ c");
        let long = difference("k", wanted, &"z\n".repeat(9)).unwrap();
        assert!(long.contains("\n- … 4 more lines\n+ a\n"), "{long}");
        let end = difference("k", wanted, "a\nb\nc\nd").unwrap();
        assert_eq!(end, "k differs in how its last line ends");
    }

    #[test]
    fn keys_are_argo_cds() {
        let keys = keys();
        let script = keys["resource.customizations.health.ceph.rook.io_CephCluster"].as_str();
        assert!(script.unwrap().contains("HEALTH_OK"));
    }
}
