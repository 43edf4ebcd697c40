//! `tiphys rehearse`: the platform on a simulated cluster, in virtual time.

mod player;
mod soak;
mod stage;

use std::io::IsTerminal;
use std::sync::Arc;

use tiphys_model::{Exit, Platform};
use tiphys_run::Action;
use tiphys_sim::{FaultTarget, Simulation};

use crate::args::{RehearseArgs, RunFormat, Speed};
use crate::commands::plan::plan;
use crate::failure::Failure;
use crate::input;
use player::Player;
use stage::Stage;

pub(crate) fn run(args: RehearseArgs) -> Result<Exit, Failure> {
    if let Some(seeds) = args.seeds {
        return soak::run(args.seed, seeds);
    }
    let platform = input::platform(args.platform.file.as_deref())?;
    let plan = Arc::new(plan(&platform, &args.platform.scope)?);
    check_faults(&platform, &args)?;
    let terminal = std::io::stdout().is_terminal();
    let stage = match args.output {
        RunFormat::Jsonl => Stage::Jsonl,
        RunFormat::Text if terminal => Stage::screen(),
        RunFormat::Text => Stage::Lines,
    };
    let default = if terminal { Player::DEFAULT_SPEED } else { Speed::Max };
    let speed = args.speed.unwrap_or(default);
    let resume = resume_arguments(&args);
    let simulation = Simulation::new(plan, args.seed, args.fault);
    let mut player = Player::new(simulation, args.seed, speed, stage, resume);
    let mut exit = player.play(Action::Deploy)?;
    if args.teardown {
        exit = exit.max(player.play(Action::Teardown)?);
    }
    Ok(exit)
}

/// A fault for an app that is not there would never strike.
fn check_faults(platform: &Platform, args: &RehearseArgs) -> Result<(), Failure> {
    for fault in &args.fault {
        if let FaultTarget::App(name) = &fault.target
            && platform.apps.iter().all(|app| app.name != *name)
        {
            return Err(Failure::unknown_app(name, platform));
        }
    }
    Ok(())
}

/// What stands behind `tiphys deploy` or `tiphys teardown` to go on if this were a cluster.
fn resume_arguments(args: &RehearseArgs) -> String {
    let mut command = String::new();
    if let Some(file) = &args.platform.file {
        command += &format!(" -f {}", file.display());
    }
    if args.platform.scope != "platform" {
        command += &format!(" --scope {}", args.platform.scope);
    }
    command
}
