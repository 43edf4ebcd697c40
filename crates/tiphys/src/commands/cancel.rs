//! `tiphys cancel`: stops a run in the cluster.

use tiphys_workflows::cancel;

use crate::args::RunArgs;
use crate::commands::attach::{Located, locate};
use crate::failure::Failure;
use crate::{output, runtime};

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let access = args.cluster.access();
    let at = runtime::block_on(async {
        let client = access.client().await?;
        let at = match locate(&client, &args.namespace, &args.name).await? {
            Located::Workflow(at) => at,
            Located::Record(found) => {
                let by = &found.head.by;
                return Err(Failure::Usage {
                    what: format!("no workflow executes the run `{}`", args.name),
                    next: format!("stop it where it runs ({by}), with Ctrl-C"),
                });
            }
        };
        Ok(cancel(&client, &at).await?.then_some(at))
    })?;
    match at {
        Some(at) => output::note(&format!(
            "workflow {} is being stopped: apps that are not done stay held, and the next deployment \
             resumes",
            at.name
        )),
        None => output::note("the run has already ended"),
    }
    Ok(())
}
