//! Sync windows as a hold: what they say, and what they have to say.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tiphys_cluster::names::HOLD;

/// Starts every minute and lasts a day, so the window is always open.
const SCHEDULE: &str = "* * * * *";
const DURATION: &str = "24h";

/// The apps that a hold lists.
pub fn held(windows: &[Value]) -> BTreeSet<String> {
    let ours = windows.iter().filter(|window| is_hold(window));
    let apps = ours.flat_map(|window| window["applications"].as_array().into_iter().flatten());
    apps.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The run that has set the hold.
#[must_use]
pub fn held_by(windows: &[Value]) -> Option<String> {
    let hold = windows.iter().find(|window| is_hold(window))?;
    let run = hold["description"].as_str()?.strip_prefix(HOLD)?.trim();
    (!run.is_empty()).then(|| run.to_owned())
}

/// The windows of others.
pub(super) fn foreign(windows: &[Value]) -> impl Iterator<Item = &Value> {
    windows.iter().filter(|window| !is_hold(window))
}

/// All windows of a project when these apps are held. Those of others stay as they are.
pub(super) fn holding(windows: &[Value], apps: &BTreeSet<String>, run: &str) -> Value {
    let mut all: Vec<Value> = foreign(windows).cloned().collect();
    if !apps.is_empty() {
        all.push(json!({
            "kind": "deny",
            "schedule": SCHEDULE,
            "duration": DURATION,
            "manualSync": true,
            "applications": apps,
            "description": format!("{HOLD} {run}"),
        }));
    }
    // A merge patch removes a field that is null, and leaves an empty list.
    if all.is_empty() { Value::Null } else { all.into() }
}

/// How a hold differs from the one that a run wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// It is not there.
    Removed,
    /// It should not be there, or not twice.
    Added,
    /// These fields are others.
    Changed(Vec<&'static str>),
}

/// How these windows differ from one that holds these apps for this run, if they do.
pub(super) fn difference(
    windows: &[Value],
    apps: &BTreeSet<String>,
    run: &str,
) -> Option<Difference> {
    let holds: Vec<&Value> = windows.iter().filter(|window| is_hold(window)).collect();
    match holds[..] {
        [] => (!apps.is_empty()).then_some(Difference::Removed),
        [hold] if !apps.is_empty() => {
            let changed = changed_fields(hold, apps, run);
            (!changed.is_empty()).then_some(Difference::Changed(changed))
        }
        _ => Some(Difference::Added),
    }
}

/// What differs in its meaning: Argo CD adds a time zone when it writes a project, which a window
/// that is always open does not care for.
fn changed_fields(hold: &Value, apps: &BTreeSet<String>, run: &str) -> Vec<&'static str> {
    let is = |field: &str, text: &str| hold[field].as_str() == Some(text);
    let is_true = |field: &str| hold[field].as_bool().unwrap_or_default();
    let is_empty = |field: &str| hold[field].as_array().is_none_or(Vec::is_empty);
    let one = std::slice::from_ref(hold);
    let as_wanted = [
        ("kind", is("kind", "deny")),
        ("schedule", is("schedule", SCHEDULE)),
        ("duration", is("duration", DURATION)),
        ("manualSync", is_true("manualSync")),
        ("applications", held(one) == *apps),
        ("namespaces", is_empty("namespaces")),
        ("clusters", is_empty("clusters")),
        ("andOperator", !is_true("andOperator")),
        ("syncOverrun", !is_true("syncOverrun")),
        ("description", held_by(one).as_deref() == Some(run)),
    ];
    as_wanted.into_iter().filter(|(_, fits)| !fits).map(|(field, _)| field).collect()
}

fn is_hold(window: &Value) -> bool {
    window["description"].as_str().is_some_and(|text| text.starts_with(HOLD))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apps(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_held_is_read_as_it_is_written() {
        let windows = holding(&[], &apps(&["vault", "loki"]), "run-1");
        let windows = windows.as_array().unwrap();
        assert_eq!(held(windows), apps(&["loki", "vault"]));
        assert_eq!(foreign(windows).count(), 0);
        assert_eq!(windows[0]["description"], "tiphys hold run-1");
        assert_eq!(held_by(windows).as_deref(), Some("run-1"));
        assert_eq!(holding(&[], &apps(&[]), "run-1"), Value::Null);
    }

    #[test]
    fn windows_of_others_stay_as_they_are_and_hold_nothing_of_ours() {
        let others = [
            json!({ "kind": "allow", "schedule": "0 22 * * *", "duration": "1h", "later": 1 }),
            json!({ "kind": "deny", "schedule": "0 8 * * *", "applications": ["vault"] }),
        ];
        assert_eq!(held(&others), apps(&[]));
        let before = holding(&others, &apps(&["loki"]), "run-1");
        let after = holding(before.as_array().unwrap(), &apps(&["loki", "vault"]), "run-2");
        let after = after.as_array().unwrap();
        assert_eq!(after[..2], others);
        assert_eq!((after.len(), held(after)), (3, apps(&["loki", "vault"])));
        assert_eq!(holding(after, &apps(&[]), "run-2"), json!(others));
    }

    #[test]
    fn a_hold_differs_by_what_it_means() {
        let wanted = apps(&["a", "b"]);
        let hold = holding(&[], &wanted, "run-1")[0].clone();
        let changed = |field: &str, value: Value| {
            let mut hold = hold.clone();
            hold[field] = value;
            difference(&[hold], &wanted, "run-1")
        };
        assert_eq!(difference(std::slice::from_ref(&hold), &wanted, "run-1"), None);
        for (field, value) in [
            ("kind", json!("allow")),
            ("schedule", json!("0 0 1 1 *")),
            ("duration", json!("1m")),
            ("manualSync", json!(false)),
            ("applications", json!(["a"])),
            ("namespaces", json!(["x"])),
            ("clusters", json!(["x"])),
            ("andOperator", json!(true)),
            ("syncOverrun", json!(true)),
            ("description", json!("tiphys hold run-2")),
        ] {
            assert_eq!(changed(field, value), Some(Difference::Changed(vec![field])));
        }
        for (field, value) in [
            ("timeZone", json!("UTC")),
            ("applications", json!(["b", "a"])),
            ("andOperator", json!(false)),
            ("namespaces", json!([])),
        ] {
            assert_eq!(changed(field, value), None, "{field}");
        }
        // Without our description it is not our window any more.
        assert_eq!(changed("description", json!("mine")), Some(Difference::Removed));
        assert_eq!(difference(&[], &wanted, "run-1"), Some(Difference::Removed));
        assert_eq!(difference(&[], &apps(&[]), "run-1"), None);
        let twice = [hold.clone(), hold.clone()];
        assert_eq!(difference(&twice, &wanted, "run-1"), Some(Difference::Added));
        assert_eq!(difference(&[hold], &apps(&[]), "run-1"), Some(Difference::Added));
    }
}
