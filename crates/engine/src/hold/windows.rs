//! Sync windows as a hold: what they say, and what they have to say.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// How the description of a hold begins.
const HOLD: &str = "tiphys hold";

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

/// What stands beside it, in words.
pub(super) fn foreign(windows: &[Value]) -> Vec<String> {
    let others = windows.iter().filter(|window| !is_hold(window));
    let text = |window: &Value, field: &str| window[field].as_str().unwrap_or("?").to_owned();
    others
        .map(|window| {
            let (kind, schedule) = (text(window, "kind"), text(window, "schedule"));
            let description = window["description"].as_str().unwrap_or("no description");
            format!("{kind} `{schedule}` for {} ({description})", text(window, "duration"))
        })
        .collect()
}

/// The windows that hold these apps: one, or none.
pub(super) fn holding(apps: &BTreeSet<String>, run: &str) -> Value {
    if apps.is_empty() {
        // A merge patch removes a field that is null, and leaves an empty list.
        return Value::Null;
    }
    json!([{
        "kind": "deny",
        // Begins anew every minute and lasts a day: there is no moment without it.
        "schedule": "* * * * *",
        "duration": "24h",
        "manualSync": true,
        "applications": apps,
        "description": format!("{HOLD} {run}"),
    }])
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
        let windows = holding(&apps(&["vault", "loki"]), "run-1");
        let windows = windows.as_array().unwrap();
        assert_eq!(held(windows), apps(&["loki", "vault"]));
        assert_eq!(foreign(windows), Vec::<String>::new());
        assert_eq!(windows[0]["description"], "tiphys hold run-1");
        assert_eq!(held_by(windows).as_deref(), Some("run-1"));
        assert_eq!(holding(&apps(&[]), "run-1"), Value::Null);
    }

    #[test]
    fn windows_of_others_are_named_and_hold_nothing_of_ours() {
        let windows = [json!({
            "kind": "allow", "schedule": "0 22 * * *", "duration": "1h", "applications": ["vault"],
        })];
        assert_eq!(held(&windows), apps(&[]));
        assert_eq!(foreign(&windows), ["allow `0 22 * * *` for 1h (no description)"]);
    }
}
