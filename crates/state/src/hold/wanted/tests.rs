use serde_json::json;

use super::*;

const RUN: &str = "abc-7";

fn apps(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn hold(names: &[&str]) -> Change {
    Change::Hold(apps(names))
}

fn release(names: &[&str]) -> Change {
    Change::Release(apps(names))
}

/// A project that a run holds these apps in, changed by nobody else.
fn held(names: &[&str], run: &str) -> Project {
    let windows = windows::holding(&[], &apps(names), run);
    Project { windows: windows.as_array().cloned().unwrap_or_default(), ..Project::default() }
}

/// A run that holds these.
fn holding(names: &[&str]) -> Wanted {
    let mut wanted = Wanted::default();
    wanted.write(&apps(names));
    wanted.written(false);
    wanted.begin();
    wanted
}

fn write(names: &[&str], difference: Option<Difference>) -> Next {
    let changed = difference.map(|difference| ForeignChange { difference, by: None });
    Next::Write { apps: apps(names), changed }
}

#[test]
fn what_a_run_finds_before_it_holds_is_added_to_and_taken_over() {
    let wanted = Wanted::default();
    for (project, change, next) in [
        (held(&[], RUN), hold(&["a"]), write(&["a"], None)),
        (held(&["b"], "abc-3"), hold(&["a"]), write(&["a", "b"], None)),
        // So that everybody can see whose it is.
        (held(&["a"], "abc-3"), hold(&["a"]), write(&["a"], None)),
        // Epochs begin anew with a new Lease.
        (held(&["a"], "abc-9"), hold(&["a"]), write(&["a"], None)),
        (held(&["a"], RUN), hold(&["a"]), Next::Nothing),
        (held(&["a"], "abc-3"), release(&["b"]), Next::Nothing),
        (held(&["a"], "abc-3"), release(&["a"]), write(&[], None)),
    ] {
        assert_eq!(wanted.decide(&project, RUN, &change), next, "{change:?} {project:?}");
    }
}

#[test]
fn the_hold_of_a_later_run_is_left_alone() {
    let later = held(&["a", "b"], "def-8");
    let left_alone = Next::LeaveAlone { run: "def-8".to_owned() };
    for change in [release(&["a"]), hold(&["a"]), Change::nothing()] {
        assert_eq!(holding(&["a"]).decide(&later, RUN, &change), left_alone, "{change:?}");
    }
    assert_eq!(Wanted::default().decide(&later, RUN, &release(&["a"])), left_alone);
    let mut wanted = holding(&["a"]);
    assert!(wanted.learns_of("def-8") && !wanted.learns_of("def-8"));
}

#[test]
fn what_others_change_is_set_again_together_with_what_is_wanted_now() {
    let (wanted, removed) = (holding(&["a", "b"]), Some(Difference::Removed));
    let fields = |names: &[&'static str]| Some(Difference::Changed(names.to_vec()));
    let mut disabled = held(&["a", "b"], RUN);
    disabled.windows[0]["manualSync"] = json!(false);
    for (project, change, next) in [
        (held(&["a", "b"], RUN), Change::nothing(), Next::Nothing),
        (held(&["a", "b"], RUN), release(&["a"]), write(&["b"], None)),
        (held(&[], RUN), Change::nothing(), write(&["a", "b"], removed.clone())),
        (held(&[], RUN), release(&["a"]), write(&["b"], removed.clone())),
        (held(&[], RUN), hold(&["c"]), write(&["a", "b", "c"], removed)),
        // What they took away was about to go.
        (held(&[], RUN), release(&["a", "b"]), Next::Nothing),
        (held(&["b"], RUN), Change::nothing(), write(&["a", "b"], fields(&["applications"]))),
        (held(&["b"], RUN), release(&["a"]), Next::Nothing),
        (disabled, Change::nothing(), write(&["a", "b"], fields(&["manualSync"]))),
        // An old hold that somebody restored.
        (held(&["a"], "abc-3"), Change::nothing(), {
            write(&["a", "b"], fields(&["applications", "description"]))
        }),
    ] {
        assert_eq!(wanted.decide(&project, RUN, &change), next, "{change:?} {project:?}");
    }
    let added = holding(&[]).decide(&held(&["a"], RUN), RUN, &Change::nothing());
    assert_eq!(added, write(&[], Some(Difference::Added)));
}

#[test]
fn the_hold_is_set_again_three_times() {
    let mut wanted = holding(&["a"]);
    for _ in 0..LIMIT {
        let next = wanted.decide(&held(&[], RUN), RUN, &Change::nothing());
        assert_eq!(next, write(&["a"], Some(Difference::Removed)));
        wanted.write(&apps(&["a"]));
        wanted.written(true);
        assert_eq!(wanted.decide(&held(&["a"], RUN), RUN, &Change::nothing()), Next::Nothing);
    }
    let next = wanted.decide(&held(&[], RUN), RUN, &Change::nothing());
    assert_eq!(next, Next::GiveUp(ForeignChange { difference: Difference::Removed, by: None }));
    // Our own changes go on for ever.
    assert_eq!(wanted.decide(&held(&["a"], RUN), RUN, &release(&["a"])), write(&[], None));
}

/// A write of ours that got no answer may have arrived or not: neither is a change of others.
#[test]
fn what_a_lost_answer_leaves_open_is_not_held_against_others() {
    let mut wanted = holding(&["a", "b"]);
    wanted.write(&apps(&["b"]));
    assert_eq!(wanted.decide(&held(&["b"], RUN), RUN, &Change::nothing()), Next::Nothing);
    let lost = held(&["a", "b"], RUN);
    assert_eq!(wanted.decide(&lost, RUN, &Change::nothing()), write(&["b"], None));
    wanted.confirm(&held(&["b"], RUN), &Change::nothing());
    let next = wanted.decide(&lost, RUN, &Change::nothing());
    assert_eq!(next, write(&["b"], Some(Difference::Changed(vec!["applications"]))));
}

#[test]
fn a_run_goes_on_only_with_a_hold_of_its_own() {
    for (project, begun) in
        [(held(&["a"], RUN), true), (held(&["a"], "abc-3"), false), (held(&[], RUN), false)]
    {
        let mut wanted = Wanted::default();
        wanted.adopt(&project, RUN);
        assert_eq!(wanted.has_begun(), begun, "{project:?}");
    }
}

#[test]
fn who_changed_the_windows_is_read_from_the_managed_fields() {
    let entry = |manager: &str, second: u32, windows: bool| {
        let fields =
            if windows { json!({ "f:syncWindows": {} }) } else { json!({ "f:roles": {} }) };
        serde_json::from_value::<ManagedFieldsEntry>(json!({
            "manager": manager, "operation": "Update", "time": format!("2026-11-16T12:00:{second:02}Z"),
            "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": fields },
        }))
        .unwrap()
    };
    for (managers, by) in [
        (vec![], None),
        (vec![entry("tiphys", 5, true)], None),
        (vec![entry("tiphys", 5, false), entry("kubectl-edit", 9, true)], Some("kubectl-edit")),
        // It owns them, whatever else has changed since.
        (vec![entry("kubectl-edit", 9, true), entry("argocd-server", 20, false)], {
            Some("kubectl-edit")
        }),
        // Removed together with something else.
        (vec![entry("tiphys", 5, false), entry("argocd-server", 9, false)], Some("argocd-server")),
        // Whoever has changed nothing since us has not done it.
        (vec![entry("tiphys", 5, true), entry("argocd-server", 4, false)], None),
    ] {
        assert_eq!(changed_by(&managers).as_deref(), by, "{managers:?}");
    }
}
