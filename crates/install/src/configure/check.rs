//! Platform files that cannot be set up, whatever the cluster has.

use tiphys_cluster::names::Purpose;
use tiphys_model::{Exit, Explain, Explanation, Platform, SecretName};

/// A platform file that does not say what its part of Argo CD should be.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum DesiredError {
    /// The apps and the root app are in one project.
    SameProject { project: String },
    /// The token that others hand out would be in a Secret that we write.
    OwnSecret { secret: SecretName },
}

impl Explain for DesiredError {
    fn explain(&self) -> Explanation {
        match self {
            DesiredError::SameProject { project } => Explanation::new(
                Exit::Configuration,
                format!("the apps and the root app share the project `{project}`"),
                "a run holds the project of the apps, but the root app must not be held",
            )
            .hint(
                "set `spec.argocd.rootProject` to a project that is not in \
                 `spec.argocd.projects`",
            ),
            DesiredError::OwnSecret { secret } => Explanation::new(
                Exit::Configuration,
                format!("`spec.argocd.tokenSecret` must not be the Secret {secret}"),
                "`tiphys configure` creates and manages that Secret",
            )
            .hint(
                "put the token in a Secret with another name, or remove `tokenSecret` to let \
                 `tiphys configure` create a token",
            ),
        }
    }
}

pub(super) fn check(platform: &Platform) -> Result<(), DesiredError> {
    let argocd = &platform.argocd;
    let is_ours = |given: &&SecretName| {
        Purpose::ALL.iter().any(|purpose| purpose.secret(platform) == given.as_str())
    };
    if let Some(secret) = argocd.server.token_secret.as_ref().filter(is_ours) {
        return Err(DesiredError::OwnSecret { secret: secret.clone() });
    }
    if argocd.has_root_app && argocd.has_apps_in(&argocd.root_project) {
        return Err(DesiredError::SameProject { project: argocd.root_project.clone() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configure::objects::tests::platform;

    #[test]
    fn the_root_app_is_not_among_the_apps() {
        let mut one = platform("prod");
        one.argocd.root_project = "apps".to_owned();
        let error = check(&one).unwrap_err();
        assert_eq!(error.explain().exit, Exit::Configuration);
        assert!(matches!(error, DesiredError::SameProject { .. }), "{error}");
    }

    #[test]
    fn a_token_of_others_is_not_in_a_secret_that_we_write() {
        let mut platform = platform("prod");
        for (secret, refused) in
            [("handed-out", false), ("tiphys-prod-deploy", true), ("tiphys-prod-teardown", true)]
        {
            platform.argocd.server.token_secret = Some(SecretName::parse(secret).unwrap());
            assert_eq!(check(&platform).is_err(), refused, "{secret}");
        }
    }
}
