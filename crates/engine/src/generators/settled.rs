//! Whether the Applications of an ApplicationSet match its template. Pure: the caller reads the set
//! after its controller has answered a refresh.

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;
use tiphys_argocd::rest::RenderedApplication;

use super::difference::{Field, differs};

/// The Applications that a set should make.
#[derive(Debug)]
pub(super) struct Rendering {
    pub applications: Vec<RenderedApplication>,
    /// That they were rendered for, if need be instead of the template's.
    pub project: String,
}

/// What is not yet as it should be, if anything. Without a rendering, the controller's word has to
/// do.
pub(super) fn unsettled(
    set: &DynamicObject,
    children: &[DynamicObject],
    rendering: Option<&Rendering>,
) -> Option<String> {
    if let Some(message) = error(set) {
        return Some(format!("its controller reports: {message}"));
    }
    if condition(set, "ResourcesUpToDate").is_none() {
        return Some("its controller does not report its Applications as up to date".to_owned());
    }
    let Rendering { applications, project: rendered_for } = rendering?;
    let mut ignored_everywhere = Vec::new();
    if project(set) != Some(rendered_for) {
        ignored_everywhere.push(Field(vec!["spec".to_owned(), "project".to_owned()]));
    }
    applications.iter().find_map(|rendered| lacks(set, children, rendered, &ignored_everywhere))
}

/// Why the controller could not do its work.
pub(super) fn error(set: &DynamicObject) -> Option<&str> {
    let error = condition(set, "ErrorOccurred")?;
    Some(error["message"].as_str().unwrap_or("unknown error"))
}

fn condition<'a>(set: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    let mut all = set.data.pointer("/status/conditions")?.as_array()?.iter();
    all.find(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// What an Application lacks to be as rendered.
fn lacks(
    set: &DynamicObject,
    children: &[DynamicObject],
    rendered: &RenderedApplication,
    ignored_everywhere: &[Field],
) -> Option<String> {
    let name = &rendered.name;
    let Some(child) = children.iter().find(|child| child.name_any() == *name) else {
        return Some(format!("it has not created the Application `{name}`"));
    };
    if !updates(set) {
        return None;
    }
    let ignored = [ignored_everywhere, &ignored(set, name)].concat();
    let field = differs(&rendered.spec, &child.data["spec"], &ignored)?;
    Some(format!("the Application `{name}` differs from its template in {field}"))
}

/// Whether the set changes Applications that it has made.
fn updates(set: &DynamicObject) -> bool {
    let policy = set.data.pointer("/spec/syncPolicy/applicationsSync").and_then(Value::as_str);
    !matches!(policy, Some("create-only" | "create-delete"))
}

/// Whether Argo CD's API renders the set as its controller does. It does not for plugin generators:
/// they receive the name of the set, and the set that we send for rendering has another one.
pub(super) fn is_renderable(set: &DynamicObject) -> bool {
    fn has_plugin(generators: &Value) -> bool {
        generators.as_array().into_iter().flatten().any(|generator| {
            let nested = ["matrix", "merge"];
            generator.get("plugin").is_some()
                || nested.iter().any(|kind| has_plugin(&generator[kind]["generators"]))
        })
    }
    !has_plugin(&set.data["spec"]["generators"])
}

/// The project that the template names, unless that is a template itself.
pub(super) fn project(set: &DynamicObject) -> Option<&str> {
    let project = set.data.pointer("/spec/template/spec/project")?.as_str()?;
    (!project.contains("{{")).then_some(project)
}

/// What the set leaves to others in this Application.
fn ignored(set: &DynamicObject, application: &str) -> Vec<Field> {
    let rules = set.data.pointer("/spec/ignoreApplicationDifferences").and_then(Value::as_array);
    let rules = rules.into_iter().flatten().filter(|rule| {
        let name = rule["name"].as_str().unwrap_or_default();
        name.is_empty() || name == application
    });
    let texts = |rule: &Value, field: &str| {
        let texts = rule[field].as_array().into_iter().flatten();
        texts.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    rules
        .flat_map(|rule| {
            let pointers = texts(rule, "jsonPointers").into_iter().map(|text| pointer(&text));
            let queries = texts(rule, "jqPathExpressions").into_iter().map(|text| query(&text));
            pointers.chain(queries).collect::<Vec<_>>()
        })
        .collect()
}

/// RFC 6901.
fn pointer(text: &str) -> Field {
    let steps = text.split('/').skip(1);
    Field(steps.map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

/// The plain names that a jq expression begins with: all below them is ignored, because what the
/// rest selects is not known. At least that is a part of the spec.
fn query(text: &str) -> Field {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let end = text.find(|c| !plain(c)).unwrap_or(text.len());
    let steps = text[..end].split('.').filter(|step| !step.is_empty());
    let steps: Vec<String> = steps.map(str::to_owned).collect();
    if steps.is_empty() { Field(vec!["spec".to_owned()]) } else { Field(steps) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(spec: &Value, conditions: &Value) -> DynamicObject {
        let metadata = json!({ "name": "stacks" });
        let status = json!({ "conditions": conditions });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec, "status": status }))
            .unwrap()
    }

    fn up_to_date(spec: &Value) -> DynamicObject {
        let conditions = json!([
            { "type": "ErrorOccurred", "status": "False" },
            { "type": "ResourcesUpToDate", "status": "True" },
        ]);
        set(spec, &conditions)
    }

    fn spec(revision: &str) -> Value {
        json!({ "source": { "targetRevision": revision } })
    }

    fn child(revision: &str) -> DynamicObject {
        let metadata = json!({ "name": "vault" });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec(revision) })).unwrap()
    }

    fn rendered(name: &str) -> Rendering {
        let application = RenderedApplication { name: name.to_owned(), spec: spec("new") };
        Rendering { applications: vec![application], project: "apps".to_owned() }
    }

    #[test]
    fn it_is_settled_when_every_application_is_as_rendered() {
        let set = up_to_date(&json!({}));
        assert_eq!(unsettled(&set, &[child("new")], Some(&rendered("vault"))), None);
        assert_eq!(
            unsettled(&set, &[child("old")], Some(&rendered("vault"))).unwrap(),
            "the Application `vault` differs from its template in spec.source.targetRevision"
        );
        assert_eq!(
            unsettled(&set, &[child("new")], Some(&rendered("api"))).unwrap(),
            "it has not created the Application `api`"
        );
        assert_eq!(
            unsettled(&set, &[child("old")], None),
            None,
            "nobody can say what it should be"
        );
    }

    #[test]
    fn what_its_controller_says_counts_before_that() {
        let says = |conditions: Value| {
            unsettled(&set(&json!({}), &conditions), &[child("new")], Some(&rendered("vault")))
        };
        let nothing = "its controller does not report its Applications as up to date";
        assert_eq!(says(Value::Null).unwrap(), nothing);
        assert_eq!(
            says(json!([{ "type": "ResourcesUpToDate", "status": "False" }])).unwrap(),
            nothing
        );
        let failed =
            json!([{ "type": "ErrorOccurred", "status": "True", "message": "no cluster" }]);
        assert_eq!(says(failed).unwrap(), "its controller reports: no cluster");
    }

    #[test]
    fn a_set_that_only_creates_leaves_what_is_there_as_it_is() {
        for (policy, settled) in [
            ("create-only", true),
            ("create-delete", true),
            ("create-update", false),
            ("sync", false),
        ] {
            let set = up_to_date(&json!({ "syncPolicy": { "applicationsSync": policy } }));
            let lack = unsettled(&set, &[child("old")], Some(&rendered("vault")));
            assert_eq!(lack.is_none(), settled, "{policy}");
            assert!(unsettled(&set, &[], Some(&rendered("vault"))).is_some(), "{policy}");
        }
    }

    #[test]
    fn what_the_set_leaves_to_others_does_not_count() {
        for (rule, settled) in [
            (json!({ "jsonPointers": ["/spec/source/targetRevision"] }), true),
            (json!({ "jsonPointers": ["/spec/source/path"] }), false),
            (json!({ "name": "vault", "jsonPointers": ["/spec/source/targetRevision"] }), true),
            (json!({ "name": "api", "jsonPointers": ["/spec/source/targetRevision"] }), false),
            (json!({ "jqPathExpressions": [".spec.source.targetRevision"] }), true),
            (json!({ "jqPathExpressions": [".spec.source | .targetRevision"] }), true),
            (json!({ "jqPathExpressions": ["(.spec | .source)"] }), true),
            (json!({ "jqPathExpressions": [".spec.sources[] | select(.chart)"] }), false),
        ] {
            let set = up_to_date(&json!({ "ignoreApplicationDifferences": [rule] }));
            let lack = unsettled(&set, &[child("old")], Some(&rendered("vault")));
            assert_eq!(lack.is_none(), settled, "{rule}");
        }
    }

    #[test]
    fn a_plugin_at_any_depth_keeps_a_set_from_being_rendered() {
        let plugin = json!({ "plugin": { "configMapRef": { "name": "p" } } });
        let renderable =
            |generators: Value| is_renderable(&up_to_date(&json!({ "generators": generators })));
        assert!(renderable(json!([{ "list": { "elements": [{ "plugin": "a" }] } }])));
        assert!(!renderable(json!([plugin])));
        assert!(!renderable(json!([{ "matrix": { "generators": [{ "git": {} }, plugin] } }])));
    }

    #[test]
    fn the_project_counts_if_it_is_the_templates_own() {
        let mut rendered = rendered("vault");
        rendered.applications[0].spec["project"] = "apps".into();
        for (template, settled) in [("apps", false), ("{{.project}}", true), ("theirs", true)] {
            let set = up_to_date(&json!({ "template": { "spec": { "project": template } } }));
            let lack = unsettled(&set, &[child("new")], Some(&rendered));
            assert_eq!(lack.is_none(), settled, "{template}: {lack:?}");
        }
    }
}
