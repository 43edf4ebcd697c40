//! `tiphys rehearse`: the platform on a simulated cluster, in virtual time.

mod player;
mod soak;

use std::io::IsTerminal;
use std::sync::Arc;

use tiphys_model::{Exit, Platform};
use tiphys_run::Action;
use tiphys_sim::{FaultKind, FaultTarget, Simulation};

use crate::args::{RehearseArgs, Speed};
use crate::commands::plan::{plan, warn};
use crate::failure::Failure;
use crate::output;
use crate::stage::Stage;
use player::Player;

pub(crate) fn run(args: RehearseArgs) -> Result<Exit, Failure> {
    if let Some(seeds) = args.seeds {
        return soak::run(args.seed, seeds);
    }
    let platform = args.platform.read()?;
    let plan = Arc::new(plan(&platform, &args.platform.scope.of(&platform)?)?);
    warn(&plan);
    check_faults(&platform, &args)?;
    let terminal = std::io::stdout().is_terminal();
    let stage = Stage::new(args.output);
    let default = if terminal { Player::DEFAULT_SPEED } else { Speed::Max };
    let speed = args.speed.unwrap_or(default);
    let simulation = Simulation::new(plan, args.seed, args.fault);
    let mut player = Player::new(simulation, args.seed, speed, stage);
    let mut exit = player.play(Action::Deploy)?;
    let interrupted = matches!(exit, Exit::Interrupted | Exit::Terminated);
    if args.teardown && !interrupted {
        exit = exit.max(player.play(Action::Teardown)?);
    }
    Ok(player.end(exit))
}

/// A fault for an app that is not there would never strike.
fn check_faults(platform: &Platform, args: &RehearseArgs) -> Result<(), Failure> {
    for fault in &args.fault {
        if let FaultTarget::App(name) = &fault.target
            && platform.apps.iter().all(|app| app.name != *name)
        {
            return Err(Failure::unknown_app(name, Some("--fault names it"), platform));
        }
        if fault.kind == FaultKind::StuckFinalizer && !args.teardown {
            output::warning(&format!(
                "the fault {fault} only strikes in a teardown: add --teardown"
            ));
        }
    }
    Ok(())
}
