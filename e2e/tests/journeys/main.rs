//! What people do with the program, on a real cluster with real Argo CD.
//!
//! `cargo build -p tiphys && cargo test -p tiphys-e2e --test journeys`, on the lab (`lab up --with
//! argocd`) or on the cluster that `TIPHYS_E2E_KUBECONFIG` names.

mod audit;
mod by_name;
mod configure;
mod conformance;
mod criteria;
mod deploy;
mod executor;
mod failure;
mod frozen;
mod health;
mod hold;
mod in_flight;
mod layouts;
mod namespaces;
mod nested;
mod obstacle;
mod odd;
mod other_cluster;
mod outage;
mod refusal;
mod rendered;
mod resume;
mod revisions;
mod rights;
mod same;
mod scale;
mod scope;
mod sets;
#[path = "../../../crates/tiphys/tests/common/snapshots.rs"]
mod snapshots;
mod stale;
mod status;
mod teardown;
mod unwritten;
mod warning;
mod waves;
mod workflows;

use std::process::ExitCode;

use tiphys_e2e::{Case, main as run};

fn main() -> ExitCode {
    let mut cases = runs();
    cases.extend(in_the_cluster());
    cases.extend(configurations());
    cases.extend(teardowns());
    run(cases)
}

fn runs() -> Vec<Case> {
    vec![
        Case::new("deploy_follows_the_order_and_is_idempotent", deploy::in_order),
        Case::new("deploy_needs_no_api_of_argo_cd", deploy::through_fields),
        Case::new("deploy_tells_failures_apart_and_resumes", failure::in_every_way),
        Case::new("deploy_names_who_is_in_its_way", obstacle::of_others),
        Case::new("deploy_awaits_self_heal_before_it_holds", obstacle::of_self_heal),
        Case::new("a_frozen_operation_is_freed", frozen::is_freed),
        Case::new("deploy_refuses_what_is_not_ready", refusal::of_what_is_not_ready),
        Case::new("deploy_names_the_missing_application", refusal::of_an_app_without_application),
        Case::new("deploy_awaits_application_sets", sets::as_generators),
        Case::new("deploy_awaits_every_kind_of_application_set", sets::kinds::are_awaited),
        Case::new("deploy_waits_for_the_applicationset_controller", sets::controller::is_awaited)
            .disruptive(),
        Case::new("deploy_gives_the_same_cluster_twice", same::inventory_for_the_same_inputs),
        Case::new("deploy_of_hundreds_of_apps", scale::of_hundreds).disruptive().soak(),
        Case::new("deploy_leaves_others_their_time", scale::neighbours::keep_their_time)
            .disruptive()
            .soak(),
        Case::new("deploy_is_flat_among_thousands_of_applications", scale::among_thousands).soak(),
        Case::new("deploy_takes_revisions_as_people_write_them", revisions::as_people_write_them),
        Case::new("deploy_takes_sources_of_every_kind", revisions::kinds::are_deployed),
        Case::new("deploy_of_platforms_in_the_project_default", layouts::in_default),
        Case::new("deploy_of_applications_made_by_hand", layouts::made_by_hand),
        Case::new("deploy_of_applications_in_other_namespaces", namespaces::of_a_team)
            .disruptive()
            .soak(),
        Case::new("deploy_warns_of_what_it_passes_over", warning::of_what_a_run_passes_over),
        Case::new("deploy_by_name_takes_what_git_has", by_name::takes_what_git_has),
        Case::new("the_executor_runs_in_a_pod", executor::in_a_pod),
        Case::new("deploy_of_a_part_and_without_changes", scope::of_a_part),
        Case::new("deploy_fails_when_something_degrades_later", scope::of_what_degrades_later),
        Case::new(
            "a_platform_stays_held_and_a_deadline_holds",
            scope::of_a_platform_that_stays_held,
        ),
        Case::new("runs_end_well_on_a_full_disk", unwritten::on_a_full_disk),
        Case::new("deploy_resumes_after_being_killed", resume::after_kills),
        Case::new("deploy_believes_no_health_from_before_the_sync", stale::from_before_the_sync),
        Case::new("a_run_that_lost_its_lease_does_nothing_more", resume::after_a_stop),
        Case::new("a_hold_that_is_removed_is_set_again", hold::that_is_removed_is_set_again),
        Case::new(
            "a_hold_that_is_removed_each_time_ends_the_run",
            hold::that_is_removed_each_time_ends_the_run,
        )
        .soak(),
        Case::new("a_hold_leaves_freezes_of_others", hold::leaves_freezes_of_others).soak(),
        Case::new("deploy_ends_with_4_when_its_token_is_revoked", outage::a_revoked_token),
        Case::new("deploy_survives_restarts_of_argo_cd", resume::while_argo_cd_restarts)
            .disruptive(),
        Case::new("deploy_awaits_a_sync_of_the_root_app", in_flight::on_the_root_app)
            .disruptive()
            .soak(),
        Case::new("deploy_survives_a_silent_api_server", outage::for_a_while).disruptive().soak(),
        Case::new("deploy_is_quicker_than_sync_waves", waves::against_sync_waves)
            .disruptive()
            .soak(),
        Case::new("deploy_is_quicker_on_random_graphs", waves::against_sync_waves_on_random_graphs)
            .disruptive()
            .soak(),
        Case::new("deploy_ends_with_6_when_the_cluster_stays_away", outage::for_good)
            .disruptive()
            .soak(),
        Case::new("deploy_ends_when_somebody_insists", outage::while_somebody_insists)
            .disruptive()
            .soak(),
        Case::new("criteria_of_every_kind_on_real_servers", criteria::of_every_kind),
        Case::new("criteria_count_in_a_run", criteria::in_a_run),
        Case::new("definitions_judge_as_argo_cd_does", health::as_argo_cd_judges),
        Case::new("definitions_take_nothing_from_others", health::nothing_of_others_is_taken),
        Case::new("nested_applications_are_never_stale", nested::never_stale),
        Case::new("validate_of_a_healthy_platform_and_a_bypass", status::of_a_healthy_platform),
        Case::new("troubles_are_told_by_their_true_cause", status::are_told_by_their_true_cause),
        Case::new("why_tells_that_argo_cd_is_behind", status::argo_cd_that_is_behind_is_told)
            .disruptive(),
        Case::new("an_app_on_another_cluster", other_cluster::is_not_mistaken_for_this_one).soak(),
        Case::new("runs_survive_odd_answers", odd::answers),
        Case::new("each_right_of_a_run_is_needed", rights::each_is_needed),
        Case::new("preflight_judges_what_apps_render", rendered::is_judged),
    ]
}

fn in_the_cluster() -> Vec<Case> {
    vec![
        Case::new("deploy_on_argo_workflows", workflows::in_one_container),
        Case::new("deploy_with_a_node_for_each_app", workflows::nodes::show_each_app),
        Case::new("automatic_deployments_take_what_git_has", workflows::automatic::what_git_has),
        Case::new(
            "automatic_deployments_survive_kills_of_the_loop",
            workflows::automatic::whatever_becomes_of_the_loop,
        )
        .soak(),
        Case::new(
            "automatic_deployments_give_up_on_a_bad_commit",
            workflows::automatic::a_commit_that_fails,
        )
        .soak(),
        Case::new(
            "notifications_tell_what_deployments_come_to",
            workflows::notifications::tell_what_deployments_come_to,
        ),
        Case::new("schedules_start_runs", workflows::schedules::start_runs),
        Case::new(
            "commits_show_what_became_of_them",
            workflows::statuses::show_what_became_of_commits,
        )
        .soak(),
        Case::new("changes_have_platforms_validated", workflows::changes::have_platforms_validated)
            .disruptive()
            .soak(),
        Case::new("pushes_start_deployments", workflows::webhooks::start_deployments)
            .disruptive()
            .soak(),
        Case::new("pushes_are_deployed_quickly", workflows::webhooks::are_quick)
            .disruptive()
            .soak(),
        Case::new(
            "pushes_that_argo_cd_hears_of_are_deployed",
            workflows::webhooks::argo_cd::hears_of_pushes,
        )
        .disruptive()
        .soak(),
        Case::new(
            "pushes_that_argo_cd_finds_are_deployed",
            workflows::webhooks::argo_cd::finds_pushes,
        )
        .soak(),
        Case::new("pushes_survive_kills", workflows::webhooks::are_deployed_whatever_dies)
            .disruptive()
            .soak(),
        Case::new("a_workflow_is_cancelled_and_resumed", workflows::cancelled),
        Case::new("the_chart_is_installed_and_goes_away", workflows::chart).disruptive(),
        Case::new("a_workflow_that_is_retried_deploys_what_git_has", workflows::retried),
        Case::new("workflows_are_as_quick_as_local_runs", workflows::as_quick_as_local).soak(),
        Case::new("a_workflow_survives_its_pod", workflows::survival::of_a_deleted_pod),
        Case::new("engines_agree", conformance::of_engines).soak(),
        Case::new("workflows_survive_lost_pods", workflows::survival::of_lost_pods).soak(),
        Case::new("nodes_survive_lost_pods", workflows::survival::of_lost_pods_with_nodes).soak(),
        Case::new("workflows_survive_kills", workflows::survival::of_kills).soak(),
        Case::new("nodes_survive_kills", workflows::survival::of_kills_with_nodes).soak(),
        Case::new("workflows_survive_outages", workflows::survival::of_outages).disruptive().soak(),
        Case::new("nodes_survive_outages", workflows::survival::of_outages_with_nodes)
            .disruptive()
            .soak(),
        Case::new("nodes_of_hundreds_of_apps", workflows::nodes::of_hundreds).disruptive().soak(),
    ]
}

fn configurations() -> Vec<Case> {
    vec![
        Case::new(
            "configure_of_a_repository_behind_https",
            configure::https::with_a_token_and_a_private_authority,
        ),
        Case::new("configure_makes_a_token_that_works_and_no_more", configure::a_token_works),
        Case::new("configure_changes_nothing_a_second_time", configure::a_second_run),
        Case::new("configure_dry_run_writes_nothing", configure::a_dry_run),
        Case::new("configure_takes_no_fields_from_others", configure::a_conflict),
        Case::new("configure_replaces_a_revoked_token", configure::a_revoked_token),
        Case::new("rotation_leaves_the_old_token_worthless", configure::a_rotated_token),
        Case::new("configure_gives_runs_the_rights_they_need", configure::rights_of_a_run),
        Case::new("configure_lets_platforms_live_side_by_side", configure::two_platforms),
        Case::new("configure_says_what_is_missing", configure::what_is_missing),
        Case::new("configure_of_an_api_server_at_an_address", configure::address::is_used).soak(),
        Case::new("configure_finds_an_api_server_elsewhere", configure::reach::elsewhere)
            .disruptive()
            .soak(),
        Case::new(
            "configure_changes_no_settings_during_the_first_look",
            configure::of_settings_and_the_first_look,
        )
        .disruptive()
        .soak(),
    ]
}

fn teardowns() -> Vec<Case> {
    vec![
        Case::new("teardown_of_a_half_deployed_platform", teardown::of_a_half_deployed_platform),
        Case::new("teardown_blocked_by_a_finalizer", teardown::blocked_by_a_finalizer),
        Case::new("teardown_of_a_scope", teardown::of_a_scope),
        Case::new("teardown_tells_leftovers", teardown::with_leftovers),
        Case::new("teardowns_among_others", teardown::random::among_others).soak(),
        Case::new("teardown_keeps_what_is_not_ours", teardown::others::stay),
        Case::new(
            "teardown_refuses_a_namespace_with_what_is_not_ours",
            teardown::others::stay_in_a_namespace_of_an_app,
        ),
        Case::new("teardown_removes_nothing_by_another_name", teardown::copied::under_another_name),
        Case::new("teardown_lets_argo_cd_run_its_hooks", teardown::hooks::after_the_deletion),
        Case::new(
            "teardown_keeps_what_an_app_keeps",
            teardown::others::stay_with_an_app_that_keeps_them,
        )
        .soak(),
        Case::new("teardown_leaves_an_app_that_has_moved", teardown::moved::is_not_taken_along),
        Case::new(
            "teardown_keeps_a_namespace_that_was_made_anew",
            teardown::others::stay_in_a_namespace_that_was_made_anew,
        )
        .soak(),
        Case::new("teardown_takes_others_along_when_told", teardown::others::go_when_told).soak(),
        Case::new("teardown_resumes_after_being_killed", teardown::after_kills),
        Case::new("deploy_prunes_what_left_the_file", teardown::of_what_left_the_file),
        Case::new("teardown_leaves_nothing", teardown::of_the_reference_platform).disruptive(),
    ]
}
