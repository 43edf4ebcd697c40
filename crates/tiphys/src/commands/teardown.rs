//! `tiphys teardown`: the platform off a real cluster.

use std::sync::Arc;

use tiphys_cluster::Access;
use tiphys_engine::{
    DeployedGraph, Engine, Extent, Leftover, RunUpdate, Teardown, TeardownOptions,
};
use tiphys_model::{Exit, Plan, Platform, Scope};
use tiphys_plan::Reach;
use tiphys_run::Action;

use crate::args::{RunFormat, TeardownArgs};
use crate::commands::plan::plan_reaching;
use crate::display::{Display, can_ask, identity};
use crate::failure::Failure;
use crate::located::{self, Located};
use crate::record::{EventsFile, Record};
use crate::{output, runtime};

pub(crate) fn run(args: &TeardownArgs) -> Result<Exit, Failure> {
    if args.clean_leftovers && !args.yes && !can_ask() {
        return Err(Failure::NobodyToAsk);
    }
    let events = args.events.as_deref().map(EventsFile::open).transpose()?;
    let access = args.cluster.access();
    let Some(Located { platform, graph }) = located::deployed(&args.platform, &access)? else {
        let namespace = &args.platform.namespace;
        output::note(&format!("no platform is deployed from the namespace `{namespace}`"));
        return Ok(Exit::Done);
    };
    let plan = Arc::new(plan(args, &platform)?);
    let extent = match plan.scope {
        Scope::Platform => Extent::Platform,
        Scope::Stack(_) | Scope::App(_) => Extent::Apps,
    };
    let options = TeardownOptions {
        retain_volumes: args.retain_volumes,
        keep_primitives: args.keep_primitives,
        clean_leftovers: args.clean_leftovers,
        forced: args.force_finalizer.clone(),
    };
    let removal = Removal { platform, graph, plan, extent, options, yes: args.yes };
    let again = format!("teardown{}", repeat(args));
    let (exit, leftovers) = remove(access, removal, args.output, events, &again)?;
    if leftovers.iter().any(|leftover| leftover.certain) && !args.clean_leftovers {
        output::note(&format!("`tiphys {again} --clean-leftovers` removes what is the platform's"));
    }
    Ok(exit)
}

fn plan(args: &TeardownArgs, platform: &Platform) -> Result<Plan, Failure> {
    let reach = if args.with_dependents { Reach::RemovalWithDependents } else { Reach::Removal };
    let mut plan = plan_reaching(platform, args.scope.of(platform)?, reach)?;
    plan.policies.timeout = args.timeout.unwrap_or(plan.policies.timeout);
    Ok(plan)
}

/// The command to give again.
fn repeat(args: &TeardownArgs) -> String {
    let file = [args.platform.repeat()];
    let flags = [
        (args.with_dependents, " --with-dependents"),
        (args.retain_volumes, " --retain-volumes"),
        (args.keep_primitives, " --keep-primitives"),
        (args.clean_leftovers, " --clean-leftovers"),
        (args.yes, " --yes"),
    ];
    let flags = flags.iter().filter(|(given, _)| *given).map(|(_, flag)| (*flag).to_owned());
    file.into_iter().chain(args.scope.repeat()).chain(flags).collect()
}

/// What is to be removed, and how.
pub(crate) struct Removal {
    pub(crate) platform: Platform,
    pub(crate) graph: Option<DeployedGraph>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) extent: Extent,
    pub(crate) options: TeardownOptions,
    /// Leftovers need not be asked about.
    pub(crate) yes: bool,
}

/// Removes it and shows that; what is left in the cluster in the end.
pub(crate) fn remove(
    access: Access,
    removal: Removal,
    format: RunFormat,
    events: Option<EventsFile>,
    again: &str,
) -> Result<(Exit, Vec<Leftover>), Failure> {
    let Removal { platform, graph, plan, extent, options, yes } = removal;
    let mut display = Display::new(format);
    let record = Record::new(Action::Teardown, &plan, events);
    let platform = Arc::new(platform);
    let ended = display.follow(record, move |tell| {
        let tell = |news| match news {
            RunUpdate::Ask { answer, .. } if yes => answer.send(true).unwrap_or_default(),
            news => tell(news),
        };
        runtime::block_on(async {
            let client = access.client().await?;
            let (engine, identity) = (Engine::Local, identity());
            let teardown =
                Teardown { client, platform, graph, plan, extent, engine, identity, options };
            Ok(Box::pin(teardown.run(&tell)).await?)
        })
    });
    // What went wrong after the run is told below what the run has done.
    display.close(&format!("tiphys {again}"));
    let leftovers = ended.as_ref().map_or(&[][..], |ended| &ended.leftovers);
    if !leftovers.is_empty() {
        let list: String = leftovers.iter().map(|leftover| format!("\n  {leftover}")).collect();
        display.say(&format!("\nLeft in the cluster:{list}"));
    }
    let exit = display.end(ended.as_ref().map_or(Exit::Done, |ended| ended.verdict.exit()));
    Ok((exit, ended?.leftovers))
}
