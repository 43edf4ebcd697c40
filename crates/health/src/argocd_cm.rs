//! Health scripts in the ConfigMap `argocd-cm`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::{ObjectError, Script, object};

#[derive(Debug, thiserror::Error)]
pub enum CustomizationsError {
    #[error("cannot read `{key}`: {source}")]
    Unreadable { key: String, source: ObjectError },
    #[error("invalid key `{key}`: it must end in GROUP_KIND")]
    NoKind { key: String },
}

const ALL: &str = "resource.customizations";
const HEALTH: &str = "resource.customizations.health.";
const OPEN: &str = "resource.customizations.useOpenLibs.";

#[derive(Debug, Deserialize)]
struct Customization {
    #[serde(rename = "health.lua", default)]
    health: String,
    #[serde(rename = "health.lua.useOpenLibs", default)]
    open: bool,
}

/// The scripts by `group/Kind`; in `resource.customizations` the names may have wildcards.
pub fn overrides_from_argocd_cm(
    config_map: &Json,
) -> Result<BTreeMap<String, Script>, CustomizationsError> {
    let mut scripts = BTreeMap::new();
    let Some(data) = config_map["data"].as_object() else { return Ok(scripts) };
    let texts = || data.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    if let Some((key, text)) = texts().find(|(key, _)| *key == ALL) {
        let unreadable = |source| CustomizationsError::Unreadable { key: key.to_owned(), source };
        let all: BTreeMap<String, Customization> = object::document(text).map_err(unreadable)?;
        for (kind, one) in all.into_iter().filter(|(_, one)| !one.health.is_empty()) {
            let name = format!("argocd-cm {ALL} {kind}");
            let script = Script { name, text: one.health.into(), open_libs: one.open };
            scripts.insert(kind, script);
        }
    }
    // The separate keys come second: they win.
    for (key, text) in texts() {
        let Some(kind) = key.strip_prefix(HEALTH) else { continue };
        let open = texts()
            .any(|(other, value)| other.strip_prefix(OPEN) == Some(kind) && value.trim() == "true");
        let script =
            Script { name: format!("argocd-cm {key}"), text: text.into(), open_libs: open };
        scripts.insert(group_kind(key, kind)?, script);
    }
    Ok(scripts)
}

/// `argoproj.io_Application`, or `Service` for the core group.
fn group_kind(key: &str, name: &str) -> Result<String, CustomizationsError> {
    match name.split('_').collect::<Vec<_>>()[..] {
        [kind] if !kind.is_empty() => Ok(kind.to_owned()),
        [group, kind] => Ok(format!("{group}/{kind}")),
        _ => Err(CustomizationsError::NoKind { key: key.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::overrides_from_argocd_cm;
    use serde_json::json;

    #[test]
    fn both_ways_to_write_them() {
        let found = overrides_from_argocd_cm(&json!({"data": {
            "resource.customizations":
                "'*.acme.org/*':\n  health.lua: return 1\n  health.lua.useOpenLibs: true\n",
            "resource.customizations.health.argoproj.io_Application": "return 2",
            "resource.customizations.useOpenLibs.argoproj.io_Application": "true",
            "resource.customizations.health.Service": "return 3",
            "resource.customizations.actions.apps_Deployment": "x",
        }}))
        .expect("readable");
        let kinds: Vec<(&str, bool)> =
            found.iter().map(|(kind, script)| (kind.as_str(), script.open_libs)).collect();
        assert_eq!(
            kinds,
            [("*.acme.org/*", true), ("Service", false), ("argoproj.io/Application", true)]
        );
    }

    #[test]
    fn a_key_without_a_kind_is_named() {
        let config_map = json!({"data": {"resource.customizations.health.a_b_c": "return 1"}});
        let error = overrides_from_argocd_cm(&config_map).expect_err("three parts");
        assert!(error.to_string().contains("health.a_b_c"), "{error}");
    }
}
