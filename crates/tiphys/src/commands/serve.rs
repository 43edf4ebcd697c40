//! `tiphys serve`: what goes on in the cluster between runs.

use std::fs;

use tiphys_cluster::names::SYSTEM_NAMESPACE;
use tiphys_engine::Signals;
use tiphys_model::Exit;
use tiphys_run::Signal;
use tiphys_serve::{Said, deploy_loop};

use crate::args::{RunFormat, ServeArgs};
use crate::commands::executor::POD_NAMESPACE;
use crate::failure::Failure;
use crate::identity::identity;
use crate::{output, runtime, target};

pub(crate) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    if args.output == RunFormat::Jsonl {
        output::speak_json();
    }
    let access = args.cluster.access();
    target::tell(&access)?;
    let namespace = fs::read_to_string(POD_NAMESPACE);
    let namespace = namespace.as_deref().map_or(SYSTEM_NAMESPACE, str::trim);
    let signal = runtime::block_on(async {
        let mut signals = Signals::listen()?;
        let client = access.client().await?;
        Ok(deploy_loop(&client, namespace, &identity(), &tell, signals.next()).await?)
    })?;
    Ok(match signal {
        Signal::Interrupt => Exit::Interrupted,
        Signal::Terminate => Exit::Terminated,
    })
}

fn tell(said: Said) {
    match said {
        Said::Note(text) => output::note(&text),
        Said::Warning(text) => output::warning(&text),
    }
}
