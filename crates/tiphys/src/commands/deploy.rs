//! `tiphys deploy`: the platform on a real cluster.

mod dry_run;
mod on_workflows;
mod prune;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tiphys_cluster::{Access, Cause};
use tiphys_engine::{Check, Deploy, Engine, Nodes, PlatformFiles, Refused};
use tiphys_install::bootstrap::{Adoption, ChangedPin, Standing, is_bootstrapped, standing};
use tiphys_model::platform::WorkflowMode;
use tiphys_model::{Exit, Plan, Platform};
use tiphys_plan::Reach;
use tiphys_run::{Action, Verdict};

use crate::args::{DeployArgs, EngineChoice, NodesGiven, RunFormat};
use crate::cluster_record::ClusterRecord;
use crate::commands::bootstrap::{self, Phase1};
use crate::commands::plan::plan_reaching;
use crate::commands::preflight;
use crate::committed::CommittedError;
use crate::display::Display;
use crate::failure::Failure;
use crate::identity::identity;
use crate::record::Record;
use crate::report_files::RunFiles;
use crate::{git, input, output, runtime, target};

/// How often a run by name begins anew because Git has moved on.
const MOST_ATTEMPTS: u32 = 5;

/// Deploys, and installs before what the platform stands on, if that is not there.
pub(crate) fn run(args: &DeployArgs) -> Result<Exit, Failure> {
    if args.engine == EngineChoice::Workflows {
        return on_workflows::run(args);
    }
    let moved = Arc::new(AtomicBool::new(false));
    for _ in 1..MOST_ATTEMPTS {
        match deploy(args, &moved) {
            Err(_) if moved.swap(false, Ordering::Relaxed) => {
                output::note("the platform file has changed in Git: starting over with it");
            }
            ended => return ended,
        }
    }
    deploy(args, &moved)
}

/// Deploys what is there now. `moved` is set if Git has another platform file when the run begins, which
/// may have waited for others.
fn deploy(args: &DeployArgs, moved: &Arc<AtomicBool>) -> Result<Exit, Failure> {
    let file = args.platform.file.as_deref().unwrap_or(Path::new(input::DEFAULT));
    let (named, namespace) = (&args.platform.named.name, &args.platform.named.namespace);
    let (platform, files, origin) = if let Some(name) = named {
        let found = git::platform(&args.cluster.access(), namespace, name)?;
        let origin = found.from_git.then(|| Origin::Git(moved.clone()));
        (found.platform, PlatformFiles::new(), origin)
    } else {
        let (platform, files) = input::with_files(file)?;
        let origin = (!args.allow_uncommitted).then(|| Origin::File(file.to_owned()));
        (platform, files, origin)
    };
    // A scope or a digest that is wrong must not be found after an installation.
    let plan = plan(args, &platform)?;
    let access = args.cluster.access();
    if args.dry_run {
        return dry_run::run(&access, &platform, &plan, args.output);
    }
    let run_files = RunFiles::open(args.events.as_deref(), &args.reports)?;
    target::tell(&access)?;
    if let Some(exit) = bootstrap_if_needed(args, file, &platform, &files)? {
        return Ok(exit);
    }
    let deployment = Deployment {
        access,
        platform: Arc::new(platform),
        plan: Arc::new(plan),
        origin,
        prune: args.prune,
        files: run_files,
        format: args.output,
        again: format!("tiphys deploy{}", args.platform.repeat()),
        nodes: args.nodes.clone(),
        unattended: args.unattended,
    };
    deployment.run()
}

fn plan(args: &DeployArgs, platform: &Platform) -> Result<Plan, Failure> {
    let reach = if args.with_dependencies { Reach::WithDependencies } else { Reach::Exactly };
    let mut plan = plan_reaching(platform, &args.platform.scope.of(platform)?, reach)?;
    check_digest(&plan, args.plan.as_deref())?;
    // After the digest: how long somebody waits today does not make another plan.
    plan.policies.timeout = args.timeout.unwrap_or(plan.policies.timeout);
    Ok(plan)
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

/// How that ends, if something is in its way.
fn bootstrap_if_needed(
    args: &DeployArgs,
    file: &Path,
    platform: &Platform,
    files: &PlatformFiles,
) -> Result<Option<Exit>, Failure> {
    let Some(bootstrap) = &platform.bootstrap else { return Ok(None) };
    let access = args.cluster.access();
    let standing = runtime::block_on(async {
        let client = access.client().await?;
        if !is_bootstrapped(&client, platform).await? {
            return Ok(None);
        }
        match standing(&client, bootstrap).await {
            // Who deploys may lack the rights for more.
            Err(error) if error.cause() == Cause::Denied => Ok(Some(Standing::default())),
            standing => Ok(Some(standing?)),
        }
    });
    if let Some(Standing { missing, changed }) = standing?
        && missing.is_empty()
    {
        for ChangedPin { primitive, installed, pinned } in changed {
            let title = primitive.title();
            output::warning(&format!(
                "{title} {installed} is installed, but the platform file pins {pinned}: run `tiphys \
                 bootstrap` to change it"
            ));
        }
        return Ok(None);
    }
    if args.platform.named.name.is_some() {
        return Err(Failure::NoPrimitives);
    }
    output::note("primitives are missing: running bootstrap first");
    let adoption = Adoption::Refused;
    let credentials = &args.credentials.credentials;
    if let Some(exit) = preflight::first(platform, &access, credentials, adoption)? {
        return Ok(Some(exit));
    }
    let mounted = args.credentials.read()?;
    let rendered = bootstrap::rendered(file, platform, bootstrap, &mounted)?;
    let (rendered, mounted) = (&rendered, &mounted);
    let phase1 = Phase1 { access, platform, files, bootstrap, rendered, mounted, adoption };
    runtime::block_on(phase1.install())?;
    output::note("bootstrap is complete");
    Ok(None)
}

/// What is to be deployed, and how: all that was asked for, checked.
pub(crate) struct Deployment {
    pub(crate) access: Access,
    pub(crate) platform: Arc<Platform>,
    pub(crate) plan: Arc<Plan>,
    /// Where the platform file comes from, if it has to be what Git has.
    pub(crate) origin: Option<Origin>,
    /// Whether apps that have left the platform file are removed afterwards.
    pub(crate) prune: bool,
    pub(crate) files: RunFiles,
    pub(crate) format: RunFormat,
    /// The command that resumes.
    pub(crate) again: String,
    /// The workflow that this is a step of.
    pub(crate) nodes: Option<NodesGiven>,
    /// No person has asked for it.
    pub(crate) unattended: bool,
}

impl Deployment {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let Deployment { access, platform, plan, format, .. } = self;
        let mut display = Display::new(format);
        let RunFiles { events, reports, progress } = self.files;
        let identity = identity();
        let cluster = ClusterRecord::new(access.clone(), &platform, identity.clone());
        let record =
            Record::new(Action::Deploy, &plan, events).and_in(cluster).and_progress(progress);
        let check = self.origin.map(|origin| origin.check(&platform));
        let (deployed, to, nodes) = (platform.clone(), access.clone(), self.nodes);
        let unattended = self.unattended;
        let verdict = display.follow(record, move |tell| {
            runtime::block_on(async {
                let (client, place) = (to.client().await?, to.place());
                let (platform, engine) = (deployed.clone(), engine(&deployed, nodes));
                let deploy =
                    Deploy { client, place, platform, plan, engine, identity, check, unattended };
                Ok(Box::pin(deploy.run(tell)).await?)
            })
        });
        if verdict.is_ok() {
            display.close(&self.again);
        }
        let ended = display.end(verdict.as_ref().map_or(Exit::Done, |verdict| verdict.exit()));
        let ended = display.report(reports, Action::Deploy, &verdict, ended);
        if verdict? != Verdict::Succeeded || !self.prune {
            return Ok(ended);
        }
        let pruned = prune::run(access, &platform, format)?;
        Ok(if pruned == Exit::Done { ended } else { pruned })
    }
}

/// With nodes, if the platform wants them and this is a step of a workflow.
fn engine(platform: &Platform, nodes: Option<NodesGiven>) -> Engine {
    match (platform.workflows, nodes) {
        (WorkflowMode::Nodes, Some(NodesGiven { owner, pod })) => {
            Engine::Nodes(Box::new(Nodes::of(platform, owner, pod)))
        }
        (WorkflowMode::Single | WorkflowMode::Nodes, _) => Engine::Local,
    }
}

/// Where a platform file comes from that has to be what Git has.
pub(crate) enum Origin {
    /// The root app. Whether it has another one by now is noted.
    Git(Arc<AtomicBool>),
    File(PathBuf),
}

impl Origin {
    /// Compares the platform with what Git has.
    fn check(self, platform: &Arc<Platform>) -> Check {
        let platform = platform.clone();
        Box::new(move |source| {
            let revision = source.revisions.to_string();
            let found = match (&source.files, &self) {
                (Some(files), _) if git::means(files, &revision, &platform) => Ok(()),
                (_, Origin::Git(moved)) => {
                    moved.store(true, Ordering::Relaxed);
                    Err(CommittedError::Moved { revision })
                }
                (Some(_), Origin::File(file)) => {
                    Err(CommittedError::Differs { file: file.display().to_string(), revision })
                }
                // There is nothing to compare with, which the run says.
                (None, Origin::File(_)) => Ok(()),
            };
            found.map_err(|error| Box::new(error) as Refused)
        })
    }
}
