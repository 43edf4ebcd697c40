//! `tiphys rotate-credentials`: new tokens for old ones.

use tiphys_cluster::names::{self, Purpose};
use tiphys_install::bootstrap::{Rotation, rotate_own};
use tiphys_install::configure;

use crate::args::RotateArgs;
use crate::failure::Failure;
use crate::located::{self, Prefer};
use crate::{output, runtime, target};

pub(crate) fn run(args: &RotateArgs) -> Result<(), Failure> {
    let access = args.cluster.access();
    target::tell(&access)?;
    let platform = located::described(&args.platform, &access, Prefer::Cluster)?.platform;
    let password = runtime::block_on(async {
        let client = access.client().await?;
        configure::rotate(&client, &platform).await?;
        Ok(rotate_own(&client, &platform).await?)
    })?;
    output::note("replaced the tokens and revoked the old ones");
    if let Some(secret) = Purpose::Deploy.given_token_secret(&platform) {
        output::note(&format!(
            "kept the token in the Secret {secret}, which `spec.argocd.tokenSecret` names"
        ));
    }
    if password == Rotation::Rotated {
        let secret = names::admin(&platform);
        output::note(&format!(
            "replaced the password of `admin`: the new one is in the Secret {secret}"
        ));
    }
    Ok(())
}
