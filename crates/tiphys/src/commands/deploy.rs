//! `tiphys deploy`: the platform on a real cluster.

mod dry_run;
mod prune;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use tiphys_cluster::Access;
use tiphys_engine::{Check, Deploy, Engine};
use tiphys_install::bootstrap::{Taking, is_bootstrapped};
use tiphys_model::{Exit, Plan, Platform};
use tiphys_plan::Reach;
use tiphys_run::{Action, Verdict};

use crate::args::{ClusterArgs, DeployArgs};
use crate::commands::bootstrap::{self, Phase1};
use crate::commands::plan::plan_reaching;
use crate::commands::preflight;
use crate::display::{Display, identity};
use crate::failure::Failure;
use crate::{committed, input, output, runtime};

impl ClusterArgs {
    pub(crate) fn access(&self) -> Access {
        Access { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() }
    }
}

/// Deploys, and installs before what the platform stands on, if that is not there.
pub(crate) fn run(args: &DeployArgs) -> Result<Exit, Failure> {
    let platform = input::own_platform(args.platform.file.as_deref())?;
    // A scope or a digest that is wrong must not be found after an installation.
    let planned = Planned::new(args, platform)?;
    if !args.dry_run
        && let Some(exit) = bootstrap_if_needed(args, &planned.platform)?
    {
        return Ok(exit);
    }
    deploy(args, planned)
}

/// What is to be deployed.
pub(crate) struct Planned {
    platform: Arc<Platform>,
    plan: Arc<Plan>,
}

impl Planned {
    pub(crate) fn new(args: &DeployArgs, platform: Platform) -> Result<Self, Failure> {
        let reach = if args.with_dependencies { Reach::WithDependencies } else { Reach::Exactly };
        let mut plan = plan_reaching(&platform, args.platform.scope.of(&platform)?, reach)?;
        check_digest(&plan, args.plan.as_deref())?;
        // After the digest: how long somebody waits today does not make another plan.
        plan.policies.timeout = args.timeout.unwrap_or(plan.policies.timeout);
        Ok(Planned { platform: Arc::new(platform), plan: Arc::new(plan) })
    }
}

/// How that ends, if something is in its way. What is there is not looked at any closer: who
/// deploys may lack the rights for more.
fn bootstrap_if_needed(args: &DeployArgs, platform: &Platform) -> Result<Option<Exit>, Failure> {
    let Some(bootstrap) = &platform.bootstrap else { return Ok(None) };
    let access = args.cluster.access();
    if runtime::block_on(async { is_bootstrapped(&access.client().await?, platform).await })? {
        return Ok(None);
    }
    output::note("what the platform stands on is not all there: bootstrap comes first");
    let taking = Taking::NoFields;
    if let Some(exit) = preflight::first(platform, &access, &args.credentials, taking)? {
        return Ok(Some(exit));
    }
    let mounted = args.credentials.read()?;
    let file = args.platform.file.as_deref().unwrap_or(Path::new(input::DEFAULT));
    let rendered = bootstrap::rendered(file, platform, bootstrap, &mounted)?;
    let (rendered, mounted) = (&rendered, &mounted);
    let phase1 = Phase1 { access, platform, bootstrap, rendered, mounted, taking };
    runtime::block_on(phase1.install())?;
    output::note("bootstrap is complete: its authority passes to orchestration");
    Ok(None)
}

pub(crate) fn deploy(args: &DeployArgs, planned: Planned) -> Result<Exit, Failure> {
    let Planned { platform, plan } = planned;
    if args.dry_run {
        return dry_run::run(args, &platform, &plan);
    }
    let events = args.events.as_deref();
    let mut display = Display::new(Action::Deploy, &plan, args.output, events)?;
    let (sender, news) = channel();
    let access = args.cluster.access();
    let check = committed_check(args);
    // The run has a thread of its own: whoever is slow to read what it tells cannot hold it up.
    let deployed = platform.clone();
    let run = thread::spawn(move || {
        runtime::block_on(async {
            let client = access.client().await?;
            let (place, platform, engine) = (access.place(), deployed, Engine::Local);
            let deploy =
                Deploy { client, place, platform, plan, engine, identity: identity(), check };
            Box::pin(deploy.run(&|news| sender.send(news).unwrap_or_default())).await
        })
    });
    display.show(&news)?;
    let verdict = run.join().map_err(|_| Failure::Bug("the run panicked".to_owned()))?;
    let verdict = verdict?;
    display.close(&format!("tiphys deploy{}", args.platform.repeat()))?;
    if args.prune && verdict == Verdict::Succeeded {
        return prune::run(args, &platform);
    }
    Ok(verdict.exit())
}

fn check_digest(plan: &Plan, wanted: Option<&str>) -> Result<(), Failure> {
    let Some(wanted) = wanted else { return Ok(()) };
    let digest = plan.digest.as_str();
    let bare = wanted.strip_prefix("sha256:").unwrap_or(wanted);
    if bare.len() >= 12 && digest["sha256:".len()..].starts_with(bare) {
        return Ok(());
    }
    Err(Failure::Plan { wanted: wanted.to_owned(), found: digest.to_owned() })
}

/// Compares the platform file with the commit that is deployed, unless that is not wanted.
fn committed_check(args: &DeployArgs) -> Check {
    if args.allow_uncommitted {
        return Box::new(|_| Ok(()));
    }
    let file = args.platform.file.clone().unwrap_or_else(|| input::DEFAULT.into());
    Box::new(move |revisions| {
        // The root app has one source, unless somebody else configured it.
        revisions.0.first().map_or(Ok(()), |revision| committed::check(&file, revision))
    })
}
