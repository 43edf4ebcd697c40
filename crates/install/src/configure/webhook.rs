//! The secret that Git servers sign their calls of Argo CD's webhook with.

use kube::Client;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, json};
use tiphys_cluster::encoded;
use tiphys_cluster::names;
use tiphys_model::Platform;

use super::intent::{How, Intent, IntentError};
use super::keys::ARGOCD_SECRET;
use super::objects::Desired;
use crate::mounted::Mounted;

/// Argo CD asks for the one of the server that calls. Which one that is, the mounted credentials do not
/// say.
const KEYS: [&str; 3] =
    ["webhook.github.secret", "webhook.gitlab.secret", "webhook.bitbucketserver.secret"];

/// Sets the secret, if one is mounted.
pub(super) async fn intent(
    client: &Client,
    platform: &Platform,
    mounted: &Mounted,
) -> Result<Option<Intent>, IntentError> {
    let Some(secret) = &mounted.webhook_secret else { return Ok(None) };
    Intent::new(client, desired(platform, secret), How::Apply).await.map(Some)
}

/// The keys of `argocd-secret`, and nothing else of it. Platforms share that Secret, so each writes in
/// its own name, and two that want different values are told so.
fn desired(platform: &Platform, secret: &SecretString) -> Desired {
    let value = encoded(secret.expose_secret());
    let data: Map<_, _> = KEYS.map(|key| (key.to_owned(), json!(value))).into_iter().collect();
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": ARGOCD_SECRET, "namespace": platform.argocd.namespace },
        "data": data,
    });
    Desired { manager: names::own(platform), object }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::Method;
    use tiphys_cluster::scripted::{Answer, Asked, client};
    use tiphys_model::Explain;

    use super::*;
    use crate::configure::Outcome;
    use crate::configure::objects::tests::platform;

    const SECRET: &str = "hunter2";

    async fn tried(client: &Client) -> Result<Intent, IntentError> {
        let mounted = Mounted { webhook_secret: Some(SECRET.into()), ..Mounted::default() };
        Ok(intent(client, &platform("prod"), &mounted).await?.unwrap())
    }

    /// An `argocd-secret` with one more value, which takes what is applied to it; and what was asked.
    fn argocd() -> (Client, Arc<Mutex<Vec<Asked>>>) {
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let seen = asked.clone();
        let client = client(move |asked| {
            seen.lock().unwrap().push(asked.clone());
            let mut data = json!({ "server.secretkey": encoded("key") });
            if let Some(applied) = asked.body["data"].as_object() {
                data.as_object_mut().unwrap().extend(applied.clone());
            }
            Answer::Object(json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": { "name": ARGOCD_SECRET, "namespace": "argocd" }, "data": data,
            }))
        });
        (client, asked)
    }

    #[tokio::test]
    async fn without_a_mounted_secret_nothing_is_asked() {
        let (client, asked) = argocd();
        let none = intent(&client, &platform("prod"), &Mounted::default()).await.unwrap();
        assert!(none.is_none() && asked.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn only_these_keys_are_applied_in_the_platforms_name_and_never_by_force() {
        let (client, asked) = argocd();
        tried(&client).await.unwrap().carry_out().await.unwrap();
        let patches = asked.lock().unwrap().clone();
        let patches: Vec<_> = patches.iter().filter(|one| one.method == Method::PATCH).collect();
        assert_eq!(patches.len(), 2, "one that tries it out, and one that counts");
        for patch in patches {
            assert!(patch.path.contains("fieldManager=tiphys-prod"), "{}", patch.path);
            assert!(!patch.path.contains("force=true"), "{}", patch.path);
            let value = encoded(SECRET);
            let expected = json!({
                "webhook.github.secret": value,
                "webhook.gitlab.secret": value,
                "webhook.bitbucketserver.secret": value,
            });
            assert_eq!(patch.body["data"], expected);
        }
    }

    #[tokio::test]
    async fn a_dry_run_shows_that_it_changes_and_not_the_value() {
        let change = tried(&argocd().0).await.unwrap().into_change();
        assert_eq!(change.outcome, Outcome::Changed);
        assert_eq!(change.after["data"]["webhook.github.secret"], "(new)");
        assert_eq!(change.after["data"]["server.secretkey"], "(kept)");
        let shown = format!("{change:?}");
        assert!(!shown.contains(SECRET) && !shown.contains(&encoded(SECRET)), "{shown}");
    }

    #[tokio::test]
    async fn a_value_that_somebody_else_manages_is_a_conflict_without_the_value() {
        let client = client(|asked| match asked.method {
            Method::GET => Answer::Object(json!({ "metadata": { "name": ARGOCD_SECRET } })),
            _ => Answer::refused(409, "conflict with \"kubectl-edit\""),
        });
        let Err(error @ IntentError::Conflict(_)) = tried(&client).await else {
            unreachable!("a conflict")
        };
        let told = format!("{:?} {error:?}", error.explain());
        assert!(told.contains("kubectl-edit"), "{told}");
        assert!(!told.contains(SECRET) && !told.contains(&encoded(SECRET)), "{told}");
    }
}
