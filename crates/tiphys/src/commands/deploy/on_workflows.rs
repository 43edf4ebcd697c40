//! `tiphys deploy --engine workflows`: has the cluster deploy what Git has, and follows that.

use tiphys_cluster::RunWorkflow;
use tiphys_model::{Exit, TriggerAction};
use tiphys_workflows::{Submission, submit};

use crate::args::DeployArgs;
use crate::failure::Failure;
use crate::workflow_run::{self, Followed};
use crate::{input, output, runtime, target};

pub(super) fn run(args: &DeployArgs) -> Result<Exit, Failure> {
    let Some(platform) = args.platform.named.name.clone() else {
        return Err(usage(
            "`--engine workflows` needs `--platform NAME`",
            "a run in the cluster deploys what Git has, so it takes no platform file",
        ));
    };
    refuse_others(args)?;
    let access = args.cluster.access();
    target::tell(&access)?;
    let argocd = args.platform.named.namespace.clone();
    let run = RunWorkflow {
        action: TriggerAction::Deploy,
        platform,
        argocd: argocd.clone(),
        scope: args.platform.scope.unresolved()?,
        environment: input::wanted_environment(),
        unattended: false,
    };
    let submission = Submission { run, name: None };
    let at = runtime::block_on(async { Ok(submit(&access.client().await?, &submission).await?) })?;
    output::note(&format!("submitted as workflow {} in {}", at.name, at.namespace));
    let followed = Followed { at, format: args.output, argocd };
    workflow_run::follow(&access, followed)
}

/// The workflow takes a platform and a scope; what else was asked for would be forgotten.
fn refuse_others(args: &DeployArgs) -> Result<(), Failure> {
    let flags = [
        (args.dry_run, "--dry-run"),
        (args.prune, "--prune"),
        (args.with_dependencies, "--with-dependencies"),
        (args.allow_uncommitted, "--allow-uncommitted"),
        (args.timeout.is_some(), "--timeout"),
        (args.plan.is_some(), "--plan"),
        (args.events.is_some(), "--events"),
        (args.reports.junit.is_some(), "--junit"),
        (args.reports.summary.is_some(), "--summary"),
    ];
    match flags.into_iter().find(|(given, _)| *given) {
        Some((_, flag)) => Err(usage(
            &format!("`{flag}` does not work with `--engine workflows`"),
            "leave it out, or deploy with `--engine local`",
        )),
        None => Ok(()),
    }
}

fn usage(what: &str, next: &str) -> Failure {
    Failure::Usage { what: what.to_owned(), next: next.to_owned() }
}
