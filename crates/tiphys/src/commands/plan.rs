//! `tiphys plan`: order, layers, critical path, estimate, digest.

mod diff;

use std::io::{self, Write};

use tiphys_model::{Plan, Platform, Scope};
use tiphys_plan::{PlanDocument, Reach, advice};
use tiphys_report::{
    PlanMarkdown, PlanTable, Timeline, github_annotations, github_warning, plan_dot, plan_mermaid,
};

use crate::args::{PlanArgs, PlanFormat};
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(args: &PlanArgs) -> Result<(), Failure> {
    if args.check {
        return check(args);
    }
    if args.diff.is_some() {
        diff::check_format(args.output)?;
    }
    let platform = args.platform.read()?;
    let plan = plan(&platform, &args.platform.scope.of(&platform)?)?;
    warn(&plan);
    if let Some(old) = &args.diff {
        return diff::run(args, old, &plan, &platform);
    }
    match args.output {
        PlanFormat::Table => output::text(|out| write(out, &plan, PlanFormat::Table)),
        format => output::data(|out| write(out, &plan, format)),
    }
}

/// Whether the files are right, and nothing else.
fn check(args: &PlanArgs) -> Result<(), Failure> {
    let annotated = std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true");
    let annotate = |text: String| {
        if annotated { output::data(|out| out.write_all(text.as_bytes())) } else { Ok(()) }
    };
    let platform = match args.platform.read() {
        Err(Failure::Platform(sources, problems)) => {
            annotate(github_annotations(&sources, problems.clone()))?;
            return Err(Failure::Platform(sources, problems));
        }
        read => read?,
    };
    let plan = plan(&platform, &args.platform.scope.of(&platform)?)?;
    for warning in advice::warnings(&plan) {
        annotate(github_warning(&warning.to_string()))?;
    }
    warn(&plan);
    let (name, apps, digest) = (&platform.name, plan.apps.len(), plan.digest.as_str());
    output::text(|out| writeln!(out, "platform {name} is valid: {apps} apps, {digest}"))
}

/// Tells why a run of the plan is likely to fail.
pub(crate) fn warn(plan: &Plan) {
    for warning in advice::warnings(plan) {
        output::warning(&warning.to_string());
    }
}

pub(crate) fn plan(platform: &Platform, scope: &Scope) -> Result<Plan, Failure> {
    plan_reaching(platform, scope, Reach::Exactly)
}

pub(crate) fn plan_reaching(
    platform: &Platform,
    scope: &Scope,
    reach: Reach,
) -> Result<Plan, Failure> {
    tiphys_plan::plan_reaching(platform, scope, reach)
        .map_err(|error| Failure::unknown_scope(&error.part.to_string(), None, platform))
}

fn write(mut out: &mut dyn Write, plan: &Plan, format: PlanFormat) -> io::Result<()> {
    match format {
        PlanFormat::Table => {
            let timeline = output::terminal_width().map_or(Timeline::None, Timeline::Within);
            write!(out, "{}", PlanTable::new(plan, timeline))
        }
        PlanFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &PlanDocument::new(plan))?;
            writeln!(out)
        }
        PlanFormat::Yaml => {
            serde_saphyr::to_io_writer(&mut out, &PlanDocument::new(plan)).map_err(io::Error::other)
        }
        PlanFormat::Dot => out.write_all(plan_dot(plan).as_bytes()),
        PlanFormat::Markdown => write!(out, "{}", PlanMarkdown(plan)),
        PlanFormat::Mermaid => out.write_all(plan_mermaid(plan).as_bytes()),
    }
}
