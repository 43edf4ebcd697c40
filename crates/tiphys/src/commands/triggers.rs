//! `tiphys triggers test`: whether the calls of a Git server arrive.

use std::time::Duration;

use tiphys_install::webhooks::trial::{self, Station};

use crate::args::{TriggersAction, TriggersArgs, TriggersTestArgs};
use crate::failure::Failure;
use crate::located::{self, Prefer};
use crate::{output, runtime};

pub(crate) fn run(args: &TriggersArgs) -> Result<(), Failure> {
    match &args.action {
        TriggersAction::Test(args) => test(args),
    }
}

fn test(args: &TriggersTestArgs) -> Result<(), Failure> {
    let access = args.cluster.access();
    let platform = located::described(&args.platform, &access, Prefer::Cluster)?.platform;
    let reached = |station: Station, after: Duration| {
        let what = match station {
            Station::EventSource => "the EventSource accepted the call",
            Station::Sensor => "the Sensor received it",
            Station::ArgoCd => "Argo CD compared the root app",
        };
        output::note(&format!("{what} after {:.1} s", after.as_secs_f64()));
    };
    runtime::block_on(async {
        let client = access.client().await?;
        let namespace = &platform.argocd.namespace;
        Ok(trial::call(&client, namespace, &platform.name, &args.trigger, &reached).await?)
    })
}
