//! What `tiphys preflight` says of a real cluster, and of one in which something is not right.
//!
//! `cargo build -p tiphys && cargo test -p tiphys-e2e --test preflight`, on any lab; the registry's
//! logins need one (`lab up --with registry`).

mod ready;
mod rows;
mod setting;
mod warnings;

use std::process::ExitCode;

use tiphys_e2e::{Case, main as run};

fn main() -> ExitCode {
    run(vec![
        Case::new("preflight_of_a_cluster_that_is_ready_changes_nothing", ready::changes_nothing),
        Case::new("preflight_has_every_row_and_each_can_fail", rows::each_can_fail),
        Case::new("preflight_tries_the_logins_of_registries", rows::logins_of_registries),
        Case::new("preflight_warns_of_what_does_not_stop_it", warnings::of_a_node_and_a_controller),
        Case::new("preflight_without_nodes_and_dns", warnings::without_nodes_and_dns).disruptive(),
    ])
}
