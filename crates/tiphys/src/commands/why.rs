//! `tiphys why`: why an app is as it is, and what to do next. It changes nothing.

use std::fmt::Display;
use std::sync::Arc;

use serde::Serialize;
use tiphys_assess::status::{
    AppStatus, Check, Known, PlatformPhase, Seen, Situation, State, Status, checklist,
};
use tiphys_evidence::Prober;
use tiphys_evidence::{AppAddress, Collected, EvidenceCollector};
use tiphys_inspect::status;
use tiphys_model::{App, AppName, Exit};
use tiphys_report::WhyReport;
use tiphys_run::{Evidence, Observation};

use crate::args::{DocumentFormat, ScopeArgs, WhyArgs};
use crate::commands::validate::{Looked, json};
use crate::failure::Failure;
use crate::located::Prefer;
use crate::{output, runtime};

/// For programs.
#[derive(Serialize)]
struct Document<'a> {
    app: &'a AppStatus,
    chain: &'a [&'a AppStatus],
    checks: Option<&'a [Check]>,
    evidence: &'a Evidence,
    next: &'a str,
}

pub(crate) fn run(args: &WhyArgs) -> Result<Exit, Failure> {
    let looked = Looked::new(&args.look, &ScopeArgs::default(), Prefer::Cluster)?;
    let position = looked.plan.apps.iter().position(|app| app.app.name.as_str() == args.app);
    let Some(position) = position else {
        return Err(unknown(&args.app, &looked));
    };
    let app = &looked.plan.apps[position].app;
    let access = args.look.cluster.access();
    let (situation, found, closer) = runtime::block_on(async {
        let client = access.client().await?;
        let prober = Prober::new(client.clone(), access.place());
        let situation = status::read(&client, &prober, &looked.platform, &looked.plan).await?;
        let collector = EvidenceCollector::of(&client, &looked.platform).await;
        let status = Status::new(&looked.plan, &looked.plan, &situation);
        let root = status.app(&app.name).and_then(|app| app.because.last()).unwrap_or(&app.name);
        let found = look(&collector, &looked, &situation, root).await;
        // The root cause is where evidence counts; the checklist is about the app itself.
        let closer = if *root == app.name {
            found.clone()
        } else {
            look(&collector, &looked, &situation, &app.name).await
        };
        Ok((situation, found, closer))
    })?;
    let status = Status::new(&looked.plan, &looked.plan, &situation);
    let Some(shown) = status.app(&app.name) else { return Err(unknown(&args.app, &looked)) };
    let chain: Vec<&AppStatus> = shown.because.iter().filter_map(|name| status.app(name)).collect();
    let criteria = !looked.without_criteria.contains(app.name.as_str());
    let known = Known { resources: closer.resources_read, criteria };
    let checks = observation(&situation, position).map(|seen| checks(app, &seen, &closer, known));
    let root = chain.last().unwrap_or(&shown);
    let next = next(args, &status, root, found.evidence.likely.is_some());
    match args.look.output {
        DocumentFormat::Json => json(&Document {
            app: shown,
            chain: &chain,
            checks: checks.as_ref().map(<[Check; 7]>::as_slice),
            evidence: &found.evidence,
            next: &next,
        })?,
        DocumentFormat::Text => {
            let evidence = (shown.state != State::Done).then_some(&found.evidence);
            let checks = checks.as_ref().map(<[Check; 7]>::as_slice);
            let report = WhyReport { app: shown, chain, checks, evidence, next: &next };
            output::text(|out| write!(out, "{report}"))?;
        }
    }
    Ok(Exit::Done)
}

fn unknown(given: &str, looked: &Looked) -> Failure {
    match AppName::parse(given) {
        Ok(name) => Failure::unknown_app(&name, None, &looked.platform),
        Err(_) => Failure::unknown_scope(&format!("app:{given}"), None, &looked.platform),
    }
}

/// A closer look at an app, as far as somebody may look.
async fn look<E: Display>(
    collector: &Result<EvidenceCollector, E>,
    looked: &Looked<'_>,
    situation: &Situation,
    app: &AppName,
) -> Collected {
    let position = looked.plan.apps.iter().position(|planned| planned.app.name == *app);
    let found = position.and_then(|at| situation.seen.get(at)?.as_ref());
    let Some(found) = found else { return Collected::default() };
    let Seen { observation: seen, project, namespace, .. } = found;
    let mut evidence = Evidence::from_observation(seen);
    if let Some(deleting) = seen.deleting.as_ref().filter(|d| !d.finalizers.is_empty()) {
        let waits = format!("waiting for the finalizers {}", deleting.finalizers.join(", "));
        evidence.message = Some(waits.into());
    }
    match collector {
        Ok(collector) => {
            let (name, project, namespace) =
                (app.as_str().into(), project.clone(), namespace.clone());
            collector.gather(&AppAddress { name, project, namespace }, evidence).await
        }
        Err(error) => {
            let unseen = vec![format!("its resources: {error}")];
            Collected { evidence: Evidence { unseen, ..evidence }, ..Collected::default() }
        }
    }
}

fn observation(situation: &Situation, position: usize) -> Option<Arc<Observation>> {
    Some(situation.seen.get(position)?.as_ref()?.observation.clone())
}

fn checks(app: &App, seen: &Observation, closer: &Collected, known: Known) -> [Check; 7] {
    let mut seen = seen.clone();
    seen.lagging.extend(closer.lagging.iter().map(|resource| resource.as_str().into()));
    checklist(app, &seen, known)
}

/// What to do about the root cause. What it likely is, if that is known, says how to repair it.
fn next(args: &WhyArgs, status: &Status, root: &AppStatus, known: bool) -> String {
    let file = args.look.platform.repeat();
    let deploy = format!("`tiphys deploy{file}`");
    let watch = format!("`tiphys status{file} --watch`");
    let name = &root.name;
    let held = status.hold.apps.contains(name);
    match root.state {
        State::Done => "nothing".to_owned(),
        State::Waiting => format!("run {deploy}: it continues here"),
        State::Absent if status.phase == PlatformPhase::Bootstrap => {
            format!("run `tiphys configure{file}`, then {deploy}")
        }
        State::Absent => {
            format!("run {deploy}; if it is still missing, check that the root app creates it")
        }
        State::Removing if known => format!("follow `likely`, then watch with {watch}"),
        State::Removing => format!("wait until it is gone ({watch}), then run {deploy}"),
        State::Converging if known => {
            format!("follow `likely`, then watch with {watch}")
        }
        State::Syncing | State::Converging => format!("wait, and watch with {watch}"),
        State::Failed if known => format!("follow `likely`, then run {deploy}: it resumes here"),
        State::Failed => format!("fix {name} in Git, then run {deploy}: it resumes here"),
        State::Unhealthy if held && known => {
            format!("follow `likely`, then run {deploy}: it resumes here")
        }
        State::Unhealthy if known => {
            format!("follow `likely`, then watch with {watch}")
        }
        State::Unhealthy if held => format!("fix {name}, then run {deploy}: it resumes here"),
        State::Unhealthy => format!("fix {name}, then watch with {watch}"),
        State::Drifted => format!(
            "run {deploy} to sync {name} again; if it drifts again, find out what changes it, or \
             list it under tolerateDrift"
        ),
    }
}
