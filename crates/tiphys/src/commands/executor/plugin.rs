//! `tiphys executor plugin`: what Argo Workflows asks about the nodes of a run.

use std::ffi::OsString;

use tiphys_cluster::{Access, KubeconfigSource};
use tiphys_engine::Signals;
use tiphys_model::{Exit, PlatformName};
use tiphys_workflows::{PluginRun, serve_plugin};

use super::{NAME_OF_PLATFORM, Variables, wrong};
use crate::failure::Failure;
use crate::runtime;

/// Answers until the pod ends.
pub(super) fn run(
    variables: &Variables<impl Fn(&str) -> Option<OsString>>,
) -> Result<Exit, Failure> {
    let run = read(variables)?;
    let access = Access { kubeconfig: KubeconfigSource::Pod, context: None };
    runtime::block_on(async {
        let mut signals = Signals::listen()?;
        let client = access.client().await?;
        tokio::select! {
            ended = serve_plugin(&client, &run) => ended?,
            _ = signals.next() => {}
        }
        Ok(Exit::Done)
    })
}

fn read(variables: &Variables<impl Fn(&str) -> Option<OsString>>) -> Result<PluginRun, Failure> {
    let platform = variables.required("TIPHYS_PLATFORM", NAME_OF_PLATFORM)?;
    let platform = PlatformName::parse(&platform)
        .map_err(|error| wrong("TIPHYS_PLATFORM", &error.to_string(), NAME_OF_PLATFORM))?;
    let argocd = variables.required("TIPHYS_NAMESPACE", "set it to the namespace of Argo CD")?;
    let next = "set it to the number of the run in its Lease";
    let epoch = variables.required("TIPHYS_EPOCH", next)?;
    let epoch = epoch.parse().map_err(|_| wrong("TIPHYS_EPOCH", "it is not a number", next))?;
    Ok(PluginRun { platform, argocd, epoch })
}
