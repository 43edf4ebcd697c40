//! What is done without, because the cluster or the caller's rights do not allow it.

use std::fmt;

use serde_json::Value;
use tiphys_cluster::Cause;
use tiphys_cluster::names::SYSTEM_NAMESPACE;
use tiphys_model::Explain;

use super::intent::IntentError;
use super::objects::Desired;

/// An object that is not there, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub kind: String,
    pub name: String,
    /// Of a namespace: how many objects would have been in it.
    pub others: usize,
    pub why: String,
}

impl LeftOut {
    fn of(object: &Value) -> Self {
        let text = |pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        LeftOut { kind, name, others: 0, why: String::new() }
    }

    /// Whether it is the namespace of another object.
    pub(super) fn holds(&self, desired: &Desired) -> bool {
        self.kind == "Namespace" && desired.namespace() == Some(&*self.name)
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { kind, name, others, why } = self;
        match others {
            0 => write!(f, "{kind} {name} skipped: {why}"),
            others => write!(f, "{kind} {name} and {others} objects in it skipped: {why}"),
        }
    }
}

/// What the cluster does not know, or the caller may not write, is done without.
pub(super) fn left_out_because(object: &Value, error: IntentError) -> Result<LeftOut, IntentError> {
    let IntentError::Request(request) = error else { return Err(error) };
    let why = match request.cause() {
        Cause::Denied => request.explain().why,
        Cause::NotFound if object["metadata"]["namespace"] == SYSTEM_NAMESPACE => {
            format!("the namespace {SYSTEM_NAMESPACE} does not exist: install the chart first")
        }
        Cause::NotFound => "the cluster does not have this kind".to_owned(),
        Cause::Conflict | Cause::Unreachable | Cause::Other => return Err(request.into()),
    };
    Ok(LeftOut { why, ..LeftOut::of(object) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tiphys_cluster::RequestError;

    use super::*;

    #[test]
    fn only_what_is_unknown_or_denied_is_left_out() {
        let object =
            json!({ "kind": "ValidatingAdmissionPolicy", "metadata": { "name": "policy" } });
        let left_out = |code: u16, reason: &str| {
            let status = kube::core::Status::failure("User \"a\" cannot", reason).with_code(code);
            let error = RequestError::because("cannot read it")(kube::Error::Api(status.boxed()));
            left_out_because(&object, error.into()).map(|left_out| left_out.to_string())
        };
        let unknown =
            "ValidatingAdmissionPolicy policy skipped: the cluster does not have this kind";
        assert_eq!(left_out(404, "NotFound").unwrap(), unknown);
        assert!(left_out(403, "Forbidden").unwrap().contains("User \"a\" cannot"));
        assert!(left_out(409, "Conflict").is_err());
        assert!(left_out(500, "InternalError").is_err());
        assert!(left_out(503, "ServiceUnavailable").is_err());
        let (object, platform) = ("a".to_owned(), "b".to_owned());
        let other = IntentError::OtherPlatform { object, platform };
        assert!(left_out_because(&Value::Null, other).is_err());
    }

    #[test]
    fn what_would_be_in_a_namespace_is_left_out_with_it() {
        let namespace = json!({ "kind": "Namespace", "metadata": { "name": "tiphys" } });
        let mut left_out = LeftOut { why: "denied".to_owned(), ..LeftOut::of(&namespace) };
        assert_eq!(left_out.to_string(), "Namespace tiphys skipped: denied");
        let desired = |namespace: &str| Desired {
            manager: String::new(),
            object: json!({ "kind": "Role", "metadata": { "name": "a", "namespace": namespace } }),
        };
        assert!(left_out.holds(&desired("tiphys")) && !left_out.holds(&desired("argocd")));
        left_out.others = 2;
        let told = "Namespace tiphys and 2 objects in it skipped: denied";
        assert_eq!(left_out.to_string(), told);
    }
}
