//! `tiphys plan --diff`: what changes from another plan.

use std::io;
use std::path::Path;

use tiphys_model::{Plan, Platform, Scope};
use tiphys_plan::PlanDifference;
use tiphys_report::{PlanDifferenceMarkdown, PlanDifferenceText};

use crate::args::{DeployedArgs, PlanArgs, PlanFormat};
use crate::commands::validate::json;
use crate::failure::Failure;
use crate::{input, located, output};

/// What is not a file, but the platform in the cluster.
const DEPLOYED: &str = "deployed";

pub(super) fn run(
    args: &PlanArgs,
    old: &Path,
    new: &Plan,
    platform: &Platform,
) -> Result<(), Failure> {
    let old = if old == Path::new(DEPLOYED) {
        deployed(args, platform)?
    } else {
        input::platform(Some(old))?
    };
    let difference = PlanDifference::new(&super::plan(&old, &Scope::default())?, new);
    match args.output {
        PlanFormat::Table => output::text(|out| write!(out, "{}", PlanDifferenceText(&difference))),
        PlanFormat::Markdown => {
            output::data(|out| write!(out, "{}", PlanDifferenceMarkdown(&difference)))
        }
        PlanFormat::Json => json(&difference),
        PlanFormat::Yaml => output::data(|mut out| {
            serde_saphyr::to_io_writer(&mut out, &difference).map_err(io::Error::other)
        }),
        graph @ (PlanFormat::Dot | PlanFormat::Mermaid) => check_format(graph),
    }
}

/// Refuses what a difference cannot be printed as, before anything is read for it.
pub(super) fn check_format(format: PlanFormat) -> Result<(), Failure> {
    match format {
        PlanFormat::Dot | PlanFormat::Mermaid => Err(Failure::Usage {
            what: "`--diff` cannot be printed as a graph".to_owned(),
            next: "choose `-o table`, `-o markdown`, `-o json` or `-o yaml`".to_owned(),
        }),
        PlanFormat::Table | PlanFormat::Markdown | PlanFormat::Json | PlanFormat::Yaml => Ok(()),
    }
}

/// The platform of the same name, as it was deployed last.
fn deployed(args: &PlanArgs, platform: &Platform) -> Result<Platform, Failure> {
    let deployed = DeployedArgs {
        file: None,
        name: Some(platform.name.clone()),
        namespace: platform.argocd.namespace.clone(),
    };
    Ok(located::described(&deployed, &args.platform.cluster.access(), located::Prefer::Cluster)?
        .platform)
}
