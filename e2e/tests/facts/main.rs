//! What Argo CD really does, where the design relies on it. Each test is named after a fact.
//!
//! `cargo test -p tiphys-e2e --test facts`, on the lab (`lab up --with argocd`) or on the cluster
//! that `TIPHYS_E2E_KUBECONFIG` names.

mod deletion;
mod hold;
mod missing;
mod nesting;
mod pinning;
mod refresh;
mod routes;
mod staleness;

use std::process::ExitCode;

use tiphys_e2e::{Case, main as run};

fn main() -> ExitCode {
    run(vec![
        Case::new("an_app_syncs_from_git_over_ssh", pinning::an_app_syncs_from_git),
        Case::new(
            "pinned_children_ignore_a_new_commit_until_the_root_app_is_synced",
            pinning::children_ignore_a_new_commit,
        ),
        Case::new(
            "a_deny_window_holds_automated_sync_and_lets_a_manual_one_pass",
            hold::a_window_holds,
        ),
        Case::new(
            "a_window_freezes_a_running_automated_operation_and_its_termination",
            hold::a_window_freezes,
        ),
        Case::new("an_edit_of_the_project_wakes_no_app", hold::an_edit_wakes_nobody),
        Case::new("a_sync_error_stands_for_ever_under_hold", hold::a_sync_error_stands),
        Case::new("an_app_with_a_stuck_finalizer_stays", deletion::a_stuck_finalizer_holds),
        Case::new(
            "a_missing_resource_may_leave_an_app_healthy_but_never_synced",
            missing::only_sync_status_tells,
        ),
        Case::new("the_operation_field_syncs_like_the_api", routes::both_routes_sync),
        Case::new("a_refresh_that_was_missed_is_asked_for_again", refresh::is_asked_for_again),
        Case::new(
            "health_is_stale_right_after_succeeded_and_the_gate_is_never_wrong",
            staleness::the_gate_is_never_wrong,
        ),
        Case::new(
            "a_root_app_that_waits_for_held_children_waits_for_ever",
            nesting::waves_and_nested_health_deadlock,
        )
        .disruptive(),
    ])
}
