//! What Argo CD's `CanSync(true)` and `Matches` say.

use serde_json::json;

use super::*;

/// A Monday.
const NOON: &str = "2026-11-16T12:00:30Z";

fn window(value: &Value) -> SyncWindow {
    let mut all = json!({ "duration": "1h", "applications": ["*"] });
    let (all_fields, given) = (all.as_object_mut().unwrap(), value.as_object().unwrap().clone());
    all_fields.extend(given);
    SyncWindow::parse(&all).unwrap()
}

fn application(name: &str) -> Application {
    let destination = json!({ "name": "east", "server": "https://east:6443", "namespace": "db" });
    let spec = json!({ "project": "prod", "destination": destination });
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
}

fn denied(windows: &[SyncWindow], now: &str) -> Option<Denied> {
    deny_manual_sync(windows, &application("vault"), now.parse().unwrap()).unwrap()
}

#[test]
fn the_verdict_is_that_of_argo_cd_for_a_manual_sync() {
    let (open, shut) = ("0 12 * * *", "0 22 * * *");
    let of = |kind: &str, schedule: &str, manual: bool| {
        window(&json!({ "kind": kind, "schedule": schedule, "manualSync": manual }))
    };
    let (deny, deny_but_manual) = (of("deny", open, false), of("deny", open, true));
    let (allow, closed) = (of("allow", open, false), of("allow", shut, false));
    let closed_but_manual = of("allow", shut, true);
    let by_deny = || Some(Denied::ByDeny("`deny 0 12 * * *` for 1h".to_owned()));
    let outside = || Some(Denied::OutsideAllow("`allow 0 22 * * *` for 1h".to_owned()));
    for (windows, expected) in [
        (vec![], None),
        (vec![&deny], by_deny()),
        (vec![&deny_but_manual], None),
        (vec![&deny_but_manual, &deny], by_deny()),
        (vec![&allow, &deny], by_deny()),
        // The reason for all this: a deny window with `manualSync` hides that no window allows it.
        (vec![&deny_but_manual, &closed], None),
        (vec![&of("deny", shut, false)], None),
        (vec![&allow], None),
        (vec![&allow, &closed], None),
        (vec![&closed], outside()),
        (vec![&closed_but_manual], None),
        (vec![&closed_but_manual, &closed], outside()),
    ] {
        let windows: Vec<SyncWindow> = windows.into_iter().cloned().collect();
        assert_eq!(denied(&windows, NOON), expected, "{windows:?}");
    }
}

#[test]
fn a_window_is_open_from_its_schedule_for_its_duration() {
    for (schedule, duration, zone, now, open) in [
        ("0 12 * * *", "1h", "", "2026-11-16T11:59:59Z", false),
        // Argo CD wants the beginning to be strictly before now.
        ("0 12 * * *", "1h", "", "2026-11-16T12:00:00Z", false),
        ("0 12 * * *", "1h", "", "2026-11-16T12:00:01Z", true),
        ("0 12 * * *", "1h", "", "2026-11-16T12:59:59Z", true),
        ("0 12 * * *", "1h", "", "2026-11-16T13:00:00Z", false),
        ("0 20 * * fri", "60h", "UTC", "2026-11-16T07:59:00Z", true),
        ("0 20 * * fri", "60h", "UTC", "2026-11-16T08:01:00Z", false),
        ("0 12 * * *", "1h30m", "", "2026-11-16T13:15:00Z", true),
        ("0 12 * * *", "0", "", "2026-11-16T12:00:01Z", false),
        ("* * * * *", "24h", "", "2026-11-16T12:00:00Z", true),
        // Five hours behind in winter, four in summer.
        ("0 12 * * *", "1h", "America/New_York", "2026-11-16T17:30:00Z", true),
        ("0 12 * * *", "1h", "America/New_York", "2026-11-16T12:30:00Z", false),
        ("0 12 * * *", "1h", "America/New_York", "2026-07-16T16:30:00Z", true),
        ("0 0 30 2 *", "1h", "", "2026-11-16T12:00:00Z", true),
    ] {
        let given = json!({
            "kind": "deny", "schedule": schedule, "duration": duration, "timeZone": zone,
        });
        let found = denied(&[window(&given)], now).is_some();
        assert_eq!(found, open, "{schedule} for {duration} {zone} at {now}");
    }
}

#[test]
fn a_window_is_about_what_its_lists_name() {
    for (lists, about) in [
        (json!({ "applications": ["vault"] }), true),
        (json!({ "applications": ["va*", "x"] }), true),
        (json!({ "applications": ["loki"] }), false),
        (json!({ "applications": [] }), false),
        (json!({ "applications": [], "clusters": ["east"] }), true),
        (json!({ "applications": [], "clusters": ["https://*:6443"] }), true),
        (json!({ "applications": [], "clusters": ["west"] }), false),
        (json!({ "applications": [], "namespaces": ["d?"] }), true),
        (json!({ "applications": ["loki"], "namespaces": ["db"] }), true),
        (json!({ "applications": ["loki"], "namespaces": ["db"], "andOperator": true }), false),
        (json!({ "applications": ["vault"], "namespaces": ["db"], "andOperator": true }), true),
        (json!({ "applications": ["vault"], "clusters": ["west"], "andOperator": true }), false),
        (json!({ "applications": ["vault"], "andOperator": true }), true),
        (json!({ "applications": [], "andOperator": true }), false),
    ] {
        let mut given = json!({ "kind": "deny", "schedule": "* * * * *" });
        given.as_object_mut().unwrap().extend(lists.as_object().unwrap().clone());
        assert_eq!(denied(&[window(&given)], NOON).is_some(), about, "{lists}");
    }
}

#[test]
fn what_cannot_be_judged_is_named_unless_it_is_about_other_apps() {
    for (field, value, what) in [
        ("schedule", "@daily", "schedule"),
        ("duration", "a while", "duration"),
        ("timeZone", "Atlantis", "time zone"),
    ] {
        let mut given = json!({
            "kind": "deny", "schedule": "* * * * *", "description": "change freeze",
        });
        given[field] = value.into();
        let about = |name: &str| {
            let now = NOON.parse().unwrap();
            let mut given = given.clone();
            given["applications"] = json!(["vault"]);
            deny_manual_sync(&[window(&given)], &application(name), now)
        };
        let error = about("vault").unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("change freeze"), "{error}");
        assert_eq!(about("loki"), Ok(None));
    }
    let error = SyncWindow::parse(&json!({ "kind": 3 })).unwrap_err();
    assert!(error.to_string().contains("invalid field"), "{error}");
}
