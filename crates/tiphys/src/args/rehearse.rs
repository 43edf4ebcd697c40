//! Arguments of `tiphys rehearse`.

use std::num::NonZeroU32;

use clap::Args as ClapArgs;

use super::{PlatformArgs, RunFormat};

#[derive(Debug, ClapArgs)]
pub(crate) struct RehearseArgs {
    #[command(flatten)]
    pub(crate) platform: PlatformArgs,
    /// Inject a fault: APP=KIND, APP=KIND@TIME or *=KIND; repeatable
    ///
    /// For an app: refuse, hang, degraded, degrade-later, never-healthy, flap, stale-health,
    /// missed-health, stolen, revision-moved, stuck-finalizer, comparison-error,
    /// brief-comparison-error, out-of-sync, invalid-spec, deny-sync, deny-handoff, recreated,
    /// spec-changed, frozen-operation. For the run (*): lost-watch, duplicate-answer, slow-api, crash,
    /// lease-lost, lifted-hold, stale-reads. TIME is virtual time since the start of the run;
    /// without it, the fault strikes when the app (with `*`, any app) first syncs.
    #[arg(long, value_name = "APP=KIND[@TIME]")]
    pub(crate) fault: Vec<tiphys_sim::Fault>,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Instead, run N random platforms with random faults, and check the invariants
    #[arg(long, value_name = "N", conflicts_with_all = ["file", "from_applications", "fault", "speed", "teardown"])]
    pub(crate) seeds: Option<u64>,
    /// Virtual seconds per real second, or `max` [default: 240 on a terminal, otherwise max]
    #[arg(long, value_name = "N|max", value_parser = parse_speed)]
    pub(crate) speed: Option<Speed>,
    /// Tear the platform down afterwards
    #[arg(long)]
    pub(crate) teardown: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: RunFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speed {
    Times(NonZeroU32),
    Max,
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    match text {
        "max" => Ok(Speed::Max),
        number => number
            .parse()
            .map(Speed::Times)
            .map_err(|_| "a whole number of at least 1, or `max`".to_owned()),
    }
}
