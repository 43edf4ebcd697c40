//! `tiphys teardown`: the platform off a real cluster.

mod preview;

use std::sync::Arc;

use tiphys_cluster::{Access, Client};
use tiphys_engine::{Engine, Extent, Kept, Leftover, RunUpdate, Teardown, TeardownOptions};
use tiphys_model::{Exit, Plan, Platform, Scope};
use tiphys_plan::Reach;
use tiphys_report::one_line;
use tiphys_run::Action;
use tiphys_state::DeployedGraph;

use crate::args::{RunFormat, TeardownArgs};
use crate::cluster_record::ClusterRecord;
use crate::commands::plan::plan_reaching;
use crate::display::{Display, can_ask};
use crate::failure::Failure;
use crate::identity::identity;
use crate::located::{self, Located};
use crate::record::Record;
use crate::report_files::RunFiles;
use crate::{output, runtime, target};
use preview::Preview;

pub(crate) fn run(args: &TeardownArgs) -> Result<Exit, Failure> {
    if !args.yes && !args.dry_run && !can_ask() {
        return Err(Failure::NobodyToAsk);
    }
    let files = RunFiles::open(args.events.as_deref(), &args.reports)?;
    let access = args.cluster.access();
    let Some(Located { platform, graph }) = located::deployed(&args.platform, &access)? else {
        let namespace = &args.platform.namespace;
        output::note(&format!("no platform found in the namespace `{namespace}`"));
        return Ok(Exit::Done);
    };
    let plan = Arc::new(plan(args, &platform)?);
    let extent = match plan.scope {
        Scope::Platform => Extent::Platform,
        Scope::Parts(_) => Extent::Apps,
    };
    let options = TeardownOptions {
        retain_volumes: args.retain_volumes,
        keep_primitives: args.keep_primitives,
        clean_leftovers: args.clean_leftovers,
        including: args.including_others.clone(),
        forced: args.force_finalizer.clone(),
    };
    let removal = Removal { platform, graph, plan, extent, options, yes: args.yes };
    if args.yes && !args.dry_run {
        target::tell(&access)?;
    }
    let preview = preview(&access, &removal)?;
    if args.dry_run {
        match args.output {
            RunFormat::Text => output::text(|out| write!(out, "{preview}"))?,
            RunFormat::Jsonl => output::data(|out| writeln!(out, "{}", preview.json()))?,
        }
        return Ok(Exit::Done);
    }
    if !consented(args, &removal.platform, &preview)? {
        output::note("nothing was removed");
        return Ok(Exit::Failed);
    }
    let again = format!("teardown{}", repeat(args));
    let (exit, leftovers) = remove(access, removal, args.output, files, &again)?;
    if leftovers.iter().any(|leftover| leftover.certain) && !args.clean_leftovers {
        output::note(&format!(
            "to remove the platform's leftovers: tiphys {again} --clean-leftovers"
        ));
    }
    Ok(exit)
}

fn plan(args: &TeardownArgs, platform: &Platform) -> Result<Plan, Failure> {
    let reach = if args.with_dependents { Reach::RemovalWithDependents } else { Reach::Removal };
    let mut plan = plan_reaching(platform, &args.scope.of(platform)?, reach)?;
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
    let others = args.including_others.iter().map(|others| format!(" --including-others {others}"));
    file.into_iter().chain(args.scope.repeat()).chain(flags).chain(others).collect()
}

/// What is to be removed, and how.
#[derive(Clone)]
pub(crate) struct Removal {
    pub(crate) platform: Platform,
    pub(crate) graph: Option<DeployedGraph>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) extent: Extent,
    pub(crate) options: TeardownOptions,
    /// Leftovers need not be asked about.
    pub(crate) yes: bool,
}

impl Removal {
    fn keeps_primitives(&self) -> bool {
        self.options.keep_primitives || self.extent != Extent::Platform
    }

    fn teardown(self, client: Client, identity: String) -> Teardown {
        let Removal { platform, graph, plan, extent, options, .. } = self;
        let (platform, engine) = (Arc::new(platform), Engine::Local);
        Teardown { client, platform, graph, plan, extent, engine, identity, options }
    }
}

fn preview(access: &Access, removal: &Removal) -> Result<Preview, Failure> {
    runtime::block_on(async {
        let target = access.target().await?;
        let would = removal.clone().teardown(access.client().await?, identity()).preview().await?;
        let (platform, primitives) = (removal.platform.name.clone(), !removal.keeps_primitives());
        let namespace = removal.platform.argocd.namespace.clone();
        Ok(Preview { target, platform, namespace, would, primitives })
    })
}

/// Whether whoever gave the command wants what it does. Where nothing is left, nobody is asked.
fn consented(args: &TeardownArgs, platform: &Platform, preview: &Preview) -> Result<bool, Failure> {
    if args.yes || preview.is_empty() {
        return Ok(true);
    }
    output::aside(&format!("{preview}\nType the name of the platform to remove it: "));
    let mut typed = String::new();
    std::io::stdin().read_line(&mut typed).map_err(Failure::Output)?;
    Ok(typed.trim() == platform.name.as_str())
}

/// Removes it and shows that; what is left in the cluster in the end.
pub(crate) fn remove(
    access: Access,
    removal: Removal,
    format: RunFormat,
    files: RunFiles,
    again: &str,
) -> Result<(Exit, Vec<Leftover>), Failure> {
    let mut display = Display::new(format);
    let RunFiles { events, reports, progress } = files;
    let identity = identity();
    let cluster = ClusterRecord::new(access.clone(), &removal.platform, identity.clone());
    let record =
        Record::new(Action::Teardown, &removal.plan, events).and_in(cluster).and_progress(progress);
    let yes = removal.yes;
    let ended = display.follow(record, move |tell| {
        let tell = |news| match news {
            RunUpdate::Ask { answer, .. } if yes => answer.send(true).unwrap_or_default(),
            news => tell(news),
        };
        runtime::block_on(async {
            let teardown = removal.teardown(access.client().await?, identity);
            Ok(Box::pin(teardown.run(&tell)).await?)
        })
    });
    // What went wrong after the run is told below what the run has done.
    display.close(&format!("tiphys {again}"));
    let leftovers = ended.as_ref().map_or(&[][..], |ended| &ended.leftovers);
    if !leftovers.is_empty() {
        let line = |leftover: &Leftover| format!("\n  {}", one_line(&leftover.to_string()));
        let list: String = leftovers.iter().map(line).collect();
        display.say(&format!("\nLeft in the cluster:{list}"));
    }
    let kept = ended.as_ref().map_or(&[][..], |ended| &ended.kept);
    if !kept.is_empty() {
        let line = |kept: &Kept| format!("\n  {}", one_line(&kept.to_string()));
        let list: String = kept.iter().map(line).collect();
        display.say(&format!("\nStays in the cluster:{list}"));
    }
    let exit = display.end(ended.as_ref().map_or(Exit::Done, |ended| ended.verdict.exit()));
    let exit = display.report(reports, Action::Teardown, &ended, exit);
    Ok((exit, ended?.leftovers))
}
