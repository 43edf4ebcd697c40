//! `tiphys validate`: whether the platform is as it should be. It changes nothing.

use std::collections::BTreeSet;

use serde::Serialize;
use tiphys_assess::status::Status;
use tiphys_evidence::Prober;
use tiphys_inspect::status;
use tiphys_model::{Exit, Plan, Platform, Scope};
use tiphys_report::{Outcomes, ValidateReport};

use crate::args::{DocumentFormat, LookArgs, ScopeArgs, ValidateArgs};
use crate::commands::plan::plan;
use crate::failure::Failure;
use crate::located::{self, Located, Prefer};
use crate::report_files::ReportFiles;
use crate::{output, runtime};

pub(crate) fn run(args: &ValidateArgs) -> Result<Exit, Failure> {
    let reports = ReportFiles::open(&args.reports)?;
    // What should be is what the file says, where there is one.
    let looked = Looked::new(&args.look, &args.scope, Prefer::File)?;
    let status = looked.status()?;
    match args.look.output {
        DocumentFormat::Json => json(&status)?,
        DocumentFormat::Text => output::text(|out| write!(out, "{}", ValidateReport(&status)))?,
    }
    let exit = match (status.is_deployed(), status.is_well()) {
        (false, _) => {
            output::note("the platform is not deployed in this cluster: run `tiphys deploy`");
            Exit::NotFound
        }
        (true, true) => Exit::Done,
        (true, false) => Exit::Failed,
    };
    Ok(reports.write(&Outcomes::of_status(&status), exit))
}

/// A platform, and the cluster that it is looked at on.
pub(crate) struct Looked<'a> {
    pub(crate) args: &'a LookArgs,
    pub(crate) platform: Platform,
    /// Of the whole platform.
    pub(crate) plan: Plan,
    /// Of what is shown.
    pub(crate) scoped: Plan,
    /// Apps of which nobody knows whether they have health criteria.
    pub(crate) without_criteria: BTreeSet<String>,
}

impl<'a> Looked<'a> {
    pub(crate) fn new(
        args: &'a LookArgs,
        scope: &ScopeArgs,
        prefer: Prefer,
    ) -> Result<Self, Failure> {
        let located = located::described(&args.platform, &args.cluster.access(), prefer)?;
        let Located { platform, graph } = located;
        let whole = plan(&platform, &Scope::Platform)?;
        let scoped = plan(&platform, &scope.of(&platform)?)?;
        let without_criteria = graph.map(|graph| graph.without_criteria()).unwrap_or_default();
        Ok(Looked { args, platform, plan: whole, scoped, without_criteria })
    }

    pub(crate) fn status(&self) -> Result<Status, Failure> {
        let access = self.args.cluster.access();
        let situation = runtime::block_on(async {
            let client = access.client().await?;
            let prober = Prober::new(client.clone(), access.place());
            Ok(status::read(&client, &prober, &self.platform, &self.plan).await?)
        })?;
        Ok(Status::new(&self.plan, &self.scoped, &situation))
    }
}

/// One document, for programs.
pub(crate) fn json(document: &impl Serialize) -> Result<(), Failure> {
    output::data(|mut out| {
        if output::speaks_json() {
            serde_json::to_writer(&mut out, document)?;
        } else {
            serde_json::to_writer_pretty(&mut out, document)?;
        }
        writeln!(out)
    })
}
