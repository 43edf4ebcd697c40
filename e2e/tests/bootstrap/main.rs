//! From an empty cluster to a platform, and back.
//!
//! `cargo build -p tiphys && cargo test -p tiphys-e2e --test bootstrap`, on a lab without Argo CD
//! (`lab up --with primitives --with registry`). Each test leaves the cluster empty.

mod ansible;
mod failure;
mod getting_started;
mod job;
mod journey;
mod kills;
mod policy;
mod sources;
mod start;
mod work;

use std::process::ExitCode;

use tiphys_e2e::{Case, main as run};

fn main() -> ExitCode {
    // Each has the cluster to itself. Those that make it fail in every way, and the counted ones,
    // take long.
    run(vec![
        Case::new(
            "an_empty_cluster_becomes_the_platform_and_is_empty_again",
            journey::there_and_back,
        )
        .disruptive(),
        Case::new(
            "the_page_getting_started_works_from_its_text",
            getting_started::works_from_its_text,
        )
        .disruptive(),
        Case::new("bootstrap_refuses_before_it_changes_anything", failure::before_anything)
            .disruptive(),
        Case::new(
            "bootstrap_is_judged_with_high_availability",
            failure::never_with_high_availability,
        )
        .disruptive(),
        Case::new("bootstrap_gives_no_more_rights_than_needed", failure::of_too_many_rights),
        Case::new(
            "runs_change_nothing_of_a_project_but_their_hold",
            policy::keeps_projects_as_they_are,
        )
        .disruptive(),
        Case::new(
            "manifests_come_from_wherever_they_are",
            sources::are_used_from_wherever_they_are,
        ),
        Case::new("bootstrap_says_why_pods_do_not_start", failure::of_pods).disruptive().soak(),
        Case::new("bootstrap_says_what_the_cluster_refuses", failure::of_the_cluster)
            .disruptive()
            .soak(),
        Case::new("jobs_bring_the_platform_and_take_it_away", job::there_and_back)
            .disruptive()
            .soak(),
        Case::new("bootstrap_resumes_after_being_killed", kills::at_any_moment).disruptive().soak(),
        Case::new("ansible_comes_to_the_same_end", ansible::comes_to_the_same_end)
            .disruptive()
            .soak(),
    ])
}
