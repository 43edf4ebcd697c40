//! The program: arguments in, an action, an exit code out.

mod args;
mod cluster_record;
mod commands;
mod committed;
mod completer;
mod display;
mod failure;
mod git;
mod identity;
mod input;
mod located;
mod lossy;
mod output;
mod progress_file;
mod record;
mod report_files;
mod runtime;
mod stage;
mod target;
mod trace;
mod variables;
mod workflow_run;
mod written;

use std::env;
use std::process::ExitCode;

use tiphys_model::Exit;

use crate::args::Action;
use crate::failure::Failure;

fn main() -> ExitCode {
    completer::answer();
    let (args, used) = match variables::parse(env::args_os().collect(), |name| env::var_os(name)) {
        Ok(parsed) => parsed,
        // Help and version also arrive here; clap knows the stream and the code for each.
        Err(usage) => usage.exit(),
    };
    trace::start(args.verbose);
    for variable in used {
        tracing::info!("{variable} is set");
    }
    let exit = match act(args.action) {
        Ok(exit) => exit,
        Err(failure) => {
            output::failure(&failure);
            failure.exit()
        }
    };
    ExitCode::from(exit.code())
}

fn act(action: Action) -> Result<Exit, Failure> {
    match action {
        Action::Executor(args) => {
            return commands::executor::run(&args, |name| env::var_os(name));
        }
        Action::Attach(args) => return commands::attach::run(&args),
        Action::Bootstrap(args) => return commands::bootstrap::run(&args),
        Action::Deploy(args) => return commands::deploy::run(&args),
        Action::Health(args) => return commands::health::run(&args),
        Action::Preflight(args) => return commands::preflight::run(&args),
        Action::Serve(args) => return commands::serve::run(&args),
        Action::Rehearse(args) => return commands::rehearse::run(args),
        Action::Validate(args) => return commands::validate::run(&args),
        Action::Status(args) => return commands::status::run(&args),
        Action::Teardown(args) => return commands::teardown::run(&args),
        Action::Why(args) => return commands::why::run(&args),
        Action::Init(args) => commands::init::run(args),
        Action::Plan(args) => commands::plan::run(&args),
        Action::RotateCredentials(args) => commands::rotate::run(&args),
        Action::Configure(args) => commands::configure::run(&args),
        Action::Cancel(args) => commands::cancel::run(&args),
        Action::Pause(args) => commands::pause::pause(&args),
        Action::Resume(args) => commands::pause::resume(&args),
        Action::Runs(args) => commands::runs::run(&args),
        Action::Triggers(args) => commands::triggers::run(&args),
        Action::Schema => commands::schema::run(),
        Action::Completion(args) => commands::completion::run(&args),
        Action::Man(args) => commands::man::run(&args),
        Action::Version => commands::version::run(),
    }?;
    Ok(Exit::Done)
}
