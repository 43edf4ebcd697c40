//! `tiphys pause` and `tiphys resume`: automatic deployments of a platform stop and go on.

use jiff::Timestamp;
use tiphys_assess::deploy_loop::Pause;
use tiphys_cluster::{Client, access_review};
use tiphys_model::{Exit, Explain, Explanation};
use tiphys_state::deploy_loop::{LoopState, LoopStore};

use crate::args::{PauseArgs, ResumeArgs};
use crate::failure::Failure;
use crate::{output, runtime};

pub(crate) fn pause(args: &PauseArgs) -> Result<(), Failure> {
    let ResumeArgs { platform, namespace, .. } = &args.which;
    let access = args.which.cluster.access();
    runtime::block_on(async {
        let client = access.client().await?;
        let store = known(&client, &args.which).await?.0;
        let by = access_review::own_name(&client).await?;
        let pause = Pause { by, at: Timestamp::now(), reason: args.reason.clone() };
        Ok(store.set_pause(namespace, platform, Some(&pause)).await?)
    })?;
    output::note(&format!(
        "paused: new commits are not deployed automatically until `tiphys resume {platform}`"
    ));
    Ok(())
}

pub(crate) fn resume(args: &ResumeArgs) -> Result<(), Failure> {
    let ResumeArgs { platform, namespace, .. } = args;
    let access = args.cluster.access();
    let was_paused = runtime::block_on(async {
        let client = access.client().await?;
        let (store, state) = known(&client, args).await?;
        if state.pause.is_some() {
            store.set_pause(namespace, platform, None).await?;
        }
        Ok(state.pause.is_some())
    })?;
    output::note(if was_paused { "resumed" } else { "automatic deployments were not paused" });
    Ok(())
}

async fn known(client: &Client, which: &ResumeArgs) -> Result<(LoopStore, LoopState), Failure> {
    let store = LoopStore::new(client);
    match store.get(&which.namespace, &which.platform).await? {
        Some(state) => Ok((store, state)),
        None => Err(NotAutomatic { platform: which.platform.to_string() }.into()),
    }
}

/// There is nothing to pause.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
struct NotAutomatic {
    platform: String,
}

impl Explain for NotAutomatic {
    fn explain(&self) -> Explanation {
        Explanation::new(
            Exit::NotFound,
            format!("platform `{}` is not deployed automatically", self.platform),
            "`tiphys configure` has not set it up for that",
        )
        .hint(
            "check the name and Argo CD's namespace (-n); for automatic deployments, set `deploy: \
             automatic` in the platform file and run `tiphys configure`",
        )
    }
}
