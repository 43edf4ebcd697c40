//! The platform file that travels with the root app: a ConfigMap that the root app renders, and that
//! Argo CD never applies (`argocd.argoproj.io/hook: Skip`). So it is what Git has, at the very commit
//! that the root app is at, and no size limit of the API server applies to it.

use std::collections::BTreeMap;

use serde_json::Value;
use tiphys_model::PlatformName;

/// On the ConfigMap, with the name of the platform.
pub const LABEL: &str = "tiphys.dev/platform-file";

/// The files of a platform, by name.
pub type PlatformFiles = BTreeMap<String, String>;

/// More than one object has the platform file.
#[derive(Debug, PartialEq, Eq)]
pub struct Several;

/// The platform file among the objects that a root app renders.
pub fn find(objects: &[Value], platform: &PlatformName) -> Result<Option<PlatformFiles>, Several> {
    let of_platform = |object: &&Value| {
        object["kind"] == "ConfigMap" && object["metadata"]["labels"][LABEL] == platform.as_str()
    };
    let mut found = objects.iter().filter(of_platform);
    let Some(first) = found.next() else { return Ok(None) };
    if found.next().is_some() {
        return Err(Several);
    }
    let data = first["data"].as_object().into_iter().flatten();
    let text = |(name, text): (&String, &Value)| Some((name.clone(), text.as_str()?.to_owned()));
    Ok(Some(data.filter_map(text).collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_the_only_config_map_with_the_label() {
        let shop = PlatformName::parse("shop").unwrap();
        let labelled = |name: &str| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": "a", "labels": { LABEL: name } },
                "data": { "platform.yaml": "kind: Platform" },
            })
        };
        let other =
            json!({ "kind": "ConfigMap", "metadata": { "name": "b" }, "data": { "c": "d" } });
        let files =
            PlatformFiles::from([("platform.yaml".to_owned(), "kind: Platform".to_owned())]);
        let objects = [other.clone(), labelled("shop"), labelled("prod")];
        assert_eq!(find(&objects, &shop), Ok(Some(files)));
        assert_eq!(find(&[other, labelled("prod")], &shop), Ok(None));
        assert_eq!(find(&[labelled("shop"), labelled("shop")], &shop), Err(Several));
    }
}
