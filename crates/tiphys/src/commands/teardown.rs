//! `tiphys teardown`: the platform off a real cluster.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use tiphys_cluster::{Extent, Leftover, News, Teardown, TornDown, Wishes};
use tiphys_model::{Exit, Plan, Scope};
use tiphys_plan::Reach;
use tiphys_run::Action;

use crate::args::TeardownArgs;
use crate::commands::plan::plan_reaching;
use crate::display::{Display, can_ask, identity};
use crate::failure::Failure;
use crate::located::{self, Located};
use crate::{output, runtime};

pub(crate) fn run(args: &TeardownArgs) -> Result<Exit, Failure> {
    if args.clean_leftovers && !args.yes && !can_ask() {
        return Err(Failure::NobodyToAsk);
    }
    let access = args.cluster.access();
    let Some(located) = located::deployed(&args.platform, &access)? else {
        let namespace = &args.platform.namespace;
        output::note(&format!("no platform is deployed from the namespace `{namespace}`"));
        return Ok(Exit::Done);
    };
    let plan = plan(args, &located)?;
    let mut display = Display::new(Action::Teardown, &plan, args.output, args.events.as_deref())?;
    let (sender, news) = channel();
    let Located { platform, graph } = located;
    let (platform, identity, wishes) = (Arc::new(platform), identity(), wishes(args));
    let extent = match plan.scope {
        Scope::Platform => Extent::Platform,
        Scope::Stack(_) | Scope::App(_) => Extent::Apps,
    };
    let yes = args.yes;
    let run = thread::spawn(move || {
        runtime::block_on(async {
            let client = access.client().await?;
            let teardown = Teardown { client, platform, graph, plan, extent, identity, wishes };
            let tell = |news| match news {
                News::Ask { answer, .. } if yes => answer.send(true).unwrap_or_default(),
                news => sender.send(news).unwrap_or_default(),
            };
            Box::pin(teardown.run(&tell)).await
        })
    });
    display.show(&news)?;
    let ended = run.join().map_err(|_| Failure::Bug("the run panicked".to_owned()))?;
    let TornDown { verdict, leftovers } = ended?;
    display.close(&format!("tiphys teardown{}", repeat(args)))?;
    tell_leftovers(&mut display, &leftovers, args)?;
    Ok(verdict.exit())
}

fn plan(args: &TeardownArgs, located: &Located) -> Result<Arc<Plan>, Failure> {
    let reach = if args.with_dependents { Reach::RemovalWithDependents } else { Reach::Removal };
    let mut plan = plan_reaching(&located.platform, &args.scope, reach)?;
    plan.policies.timeout = args.timeout.unwrap_or(plan.policies.timeout);
    Ok(Arc::new(plan))
}

fn wishes(args: &TeardownArgs) -> Wishes {
    Wishes {
        retain_volumes: args.retain_volumes,
        keep_primitives: args.keep_primitives,
        clean_leftovers: args.clean_leftovers,
        forced: args.force_finalizer.clone(),
    }
}

/// The command to give again.
fn repeat(args: &TeardownArgs) -> String {
    let file = args.platform.file.iter().map(|file| format!(" -f {}", file.display()));
    let scope = (args.scope != "platform").then(|| format!(" --scope {}", args.scope));
    let flags = [
        (args.with_dependents, " --with-dependents"),
        (args.retain_volumes, " --retain-volumes"),
        (args.keep_primitives, " --keep-primitives"),
        (args.clean_leftovers, " --clean-leftovers"),
        (args.yes, " --yes"),
    ];
    let flags = flags.iter().filter(|(given, _)| *given).map(|(_, flag)| (*flag).to_owned());
    file.chain(scope).chain(flags).collect()
}

fn tell_leftovers(
    display: &mut Display,
    leftovers: &[Leftover],
    args: &TeardownArgs,
) -> Result<(), Failure> {
    if leftovers.is_empty() {
        return Ok(());
    }
    let list: String = leftovers.iter().map(|leftover| format!("\n  {leftover}")).collect();
    display.say(&format!("\nLeft in the cluster:{list}"))?;
    if leftovers.iter().any(|leftover| leftover.certain) && !args.clean_leftovers {
        output::note(&format!("`tiphys teardown{} --clean-leftovers` removes them", repeat(args)));
    }
    Ok(())
}
