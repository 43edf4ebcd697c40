//! The platform's part of an Argo CD that is already there: projects, root app, accounts, their
//! rights and their tokens.
//!
//! Everything is tried out on the API server first, so that nothing is changed if something
//! cannot be. What is as it should be is not written again.

mod changes;
mod check;
mod commit_status;
mod deploy_loop;
mod events;
mod given_token;
mod hold_policy;
mod intent;
mod jwt;
mod keys;
mod left_out;
mod namespaces;
pub(crate) mod objects;
mod projects;
mod push;
mod removal;
mod remove;
mod repositories;
mod retry;
mod rights;
mod roles;
mod rotate;
mod schedules;
mod sets_policy;
pub mod stored_file;
mod tokens;
mod triggers;
mod trust;
mod webhook;

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use kube::Client;
use serde_json::{Map, Value, json};
use tiphys_argocd::installation::{self, InstallationError};
use tiphys_argocd::platform_file::PlatformFiles;
use tiphys_model::namespaces::ALL as OWN_NAMESPACES;
use tiphys_model::{Exit, Explain, Explanation, Platform};

use crate::mounted::Mounted;
pub use check::DesiredError;
pub use commit_status::CommitStatusError;
pub use given_token::GivenToken;
use given_token::given_token;
pub use intent::IntentError;
use intent::{How, Intent};
use keys::ARGOCD_SECRET;
pub use keys::KeysError;
pub use left_out::LeftOut;
use left_out::left_out_because;
pub use namespaces::{Namespaces, namespaces};
use objects::Desired;
pub use push::PushError;
#[cfg(test)]
pub(crate) use push::tests::{objects_of_webhook, pushed};
pub use remove::{RemoveError, remove};
pub use retry::TokenUpdateError;
use retry::again;
pub use roles::{Grants, grants};
pub use rotate::rotate;
use tiphys_cluster::names::{FIELD_MANAGER, Purpose, SYSTEM_NAMESPACE};
use tiphys_cluster::{RequestError, encoded};
pub use tokens::TokenError;
use tokens::TokenIssuer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Apply,
    /// Only says what it would do.
    DryRun,
}

/// One object, and what became of it or would become of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub kind: String,
    pub name: String,
    pub namespace: String,
    pub outcome: Outcome,
    /// For people: without bookkeeping, and without the values of Secrets.
    pub before: Option<Value>,
    pub after: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Created,
    Changed,
    Unchanged,
    /// It was there, and the platform file has it no more.
    Removed,
}

impl Outcome {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Created => "created",
            Outcome::Changed => "changed",
            Outcome::Unchanged => "unchanged",
            Outcome::Removed => "removed",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)?;
        if self.namespace.is_empty() { Ok(()) } else { write!(f, " in {}", self.namespace) }
    }
}

/// What became of the platform's part of Argo CD.
#[derive(Debug, Clone, PartialEq)]
pub struct Configured {
    pub changes: Vec<Change>,
    /// Objects beside Argo CD's namespace that the cluster or the caller's rights do not allow.
    pub left_out: Vec<LeftOut>,
    /// Set if somebody else hands out the token that deploys.
    pub given_token: Option<GivenToken>,
}

/// Why the platform's part of Argo CD is not what it should be.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum ConfigureError {
    Desired(#[from] DesiredError),
    Installation(#[from] InstallationError),
    Intent(#[from] IntentError),
    Push(#[from] PushError),
    CommitStatus(#[from] CommitStatusError),
    Request(#[from] RequestError),
    /// The root app has automated sync.
    Automated {
        /// The root app, in words.
        object: String,
    },
    Tokens(#[from] TokenUpdateError),
}

impl Explain for ConfigureError {
    fn explain(&self) -> Explanation {
        match self {
            ConfigureError::Desired(error) => error.explain(),
            ConfigureError::Installation(error) => error.explain(),
            ConfigureError::Intent(error) => error.explain(),
            ConfigureError::Push(error) => error.explain(),
            ConfigureError::CommitStatus(error) => error.explain(),
            ConfigureError::Request(error) => error.explain(),
            ConfigureError::Automated { object } => Explanation::new(
                Exit::Configuration,
                format!("automated sync is enabled for {object}"),
                "its `spec.syncPolicy.automated` is set, but only a run may sync the root app",
            )
            .hint("remove `spec.syncPolicy.automated`, then run this command again"),
            ConfigureError::Tokens(error) => error.explain(),
        }
    }
}

/// Makes the platform's part of Argo CD what it should be. Without a login for Git, whatever Argo
/// CD knows of the repository stays as it is.
pub async fn configure(
    client: &Client,
    platform: &Platform,
    files: &PlatformFiles,
    mounted: &Mounted,
    mode: Mode,
) -> Result<Configured, ConfigureError> {
    check::check(platform)?;
    installation::check(client, &platform.argocd.namespace).await?;
    let shared = projects::shared(client, platform).await?;
    let mut desired = objects::desired(platform, mounted, &shared);
    let events = events::objects(client, platform, mounted).await?;
    let token = commit_status::object(client, platform, mounted).await?;
    let file = stored_file::object(client, platform, files).await?;
    for object in events.into_iter().chain(token).chain(file) {
        // The Application stays the last one.
        let one = Desired { manager: FIELD_MANAGER.to_owned(), object };
        desired.insert(desired.len().saturating_sub(1), one);
    }
    let (mut intents, mut left_out) = (Vec::new(), Vec::new());
    if let Some(host_keys) = mounted.host_keys()
        && let Some(desired) = trust::host_keys(client, platform, &host_keys).await?
    {
        intents.push(Intent::new(client, desired, How::Merge).await?);
    }
    for desired in desired {
        if let Some(without) = left_out.iter_mut().find(|one: &&mut LeftOut| one.holds(&desired)) {
            without.others += 1;
            continue;
        }
        match tried(client, desired, &intents).await? {
            Ok(intent) => {
                check_manual(intent.change())?;
                intents.push(intent);
            }
            Err(without) => left_out.push(without),
        }
    }
    let webhook = webhook::intent(client, platform, mounted).await?;
    let mut removals = triggers::removals(client, platform).await?;
    removals.extend(commit_status::removal(client, platform).await?);
    let mut tokens = tried_tokens(client, platform).await?;
    if mode == Mode::Apply {
        for intent in &intents {
            intent.carry_out().await?;
        }
        for removal in &removals {
            removal.carry_out().await?;
        }
        let mut attempts = 1;
        while let Err(error) = carry_out(&tokens).await {
            again(&mut attempts, error.into())?;
            tokens = tried_tokens(client, platform).await?;
        }
        // In the Secret whose version the tokens were made for, so after them.
        if let Some(webhook) = &webhook {
            webhook.carry_out().await?;
        }
    }
    let all = intents.into_iter().chain(tokens).chain(webhook);
    let removed = removals.into_iter().map(removal::Removal::into_change);
    let changes = all.map(Intent::into_change).chain(removed).collect();
    Ok(Configured { changes, left_out, given_token: given_token(client, platform).await? })
}

/// Tries an object out. Whoever has rights in the namespaces of Argo CD only can do without what is in
/// none, and without what runs inside the cluster need.
async fn tried(
    client: &Client,
    desired: Desired,
    before: &[Intent],
) -> Result<Result<Intent, LeftOut>, ConfigureError> {
    let namespace = desired.namespace().map(str::to_owned);
    let is_namespace =
        |kind: &str, name: &str| kind == "Namespace" && Some(name) == namespace.as_deref();
    let is_new = before.iter().map(Intent::change).any(|change| {
        is_namespace(&change.kind, &change.name) && change.outcome == Outcome::Created
    });
    let dispensable = match namespace.as_deref() {
        // That of the chart, which may come later.
        None | Some(SYSTEM_NAMESPACE) => Some(desired.object.clone()),
        Some(namespace) if OWN_NAMESPACES.contains(&namespace) => Some(desired.object.clone()),
        Some(_) => None,
    };
    let intent = if is_new {
        Intent::in_new_namespace(client, desired).await
    } else {
        Intent::new(client, desired, How::Apply).await
    };
    match (intent, dispensable) {
        (Err(error), Some(object)) => Ok(Err(left_out_because(&object, error)?)),
        (intent, _) => Ok(Ok(intent?)),
    }
}

/// Somebody else may have let the root app sync by itself. Then it would change its children
/// while no run is there to order them.
fn check_manual(change: &Change) -> Result<(), ConfigureError> {
    let automated = change.after.pointer("/spec/syncPolicy/automated");
    let on = automated.is_some_and(|automated| automated["enabled"] != false);
    if change.kind != "Application" || !on {
        return Ok(());
    }
    Err(ConfigureError::Automated { object: change.to_string() })
}

async fn carry_out(intents: &[Intent]) -> Result<(), IntentError> {
    for intent in intents {
        intent.carry_out().await?;
    }
    Ok(())
}

async fn tried_tokens(
    client: &Client,
    platform: &Platform,
) -> Result<Vec<Intent>, TokenUpdateError> {
    let mut attempts = 1;
    loop {
        match token_intents(client, platform).await {
            Err(error) => again(&mut attempts, error)?,
            intents => return intents,
        }
    }
}

/// In seconds, as tokens say it.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(now).unwrap_or(i64::MAX)
}

/// A token is registered before it is handed out.
async fn token_intents(
    client: &Client,
    platform: &Platform,
) -> Result<Vec<Intent>, TokenUpdateError> {
    let namespace = &platform.argocd.namespace;
    let keys = keys::keys(client, namespace).await?;
    let server = keys::server(client, &platform.argocd, &keys).await?;
    let mint = TokenIssuer { platform, key: &keys.key, now: now() };
    let mut registered = Map::new();
    let mut secrets = Vec::new();
    for purpose in Purpose::ALL {
        let key = tokens::registry_key(purpose);
        if purpose.given_token_secret(platform).is_some() {
            // One that was made before the platform file named another is of no use any more.
            let left = tokens::without(platform, purpose, keys.get(&key))?;
            registered.extend(left.map(|left| (key, tokens::written(&left))));
            secrets.push(tokens::secret(platform, purpose, None, &server));
            continue;
        }
        let held = keys::held_token(client, namespace, &purpose.secret(platform)).await?;
        let token = mint.token(purpose, held, keys.get(&key))?;
        if let Some(registry) = token.registry {
            registered.insert(key, encoded(registry).into());
        }
        secrets.push(tokens::secret(platform, purpose, Some(&token.token), &server));
    }
    let registry = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": ARGOCD_SECRET, "namespace": namespace, "resourceVersion": keys.version,
        },
        "data": registered,
    });
    let manager = || FIELD_MANAGER.to_owned();
    let registry = Desired { manager: manager(), object: registry };
    let mut intents = vec![Intent::new(client, registry, How::Merge).await?];
    for object in secrets {
        intents
            .push(Intent::new(client, Desired { manager: manager(), object }, How::Apply).await?);
    }
    Ok(intents)
}

#[cfg(test)]
mod tests {
    use http::Method;
    use tiphys_cluster::names::EVENTS_NAMESPACE;
    use tiphys_cluster::scripted::{Answer, Server};

    use super::*;

    #[tokio::test]
    async fn in_a_new_namespace_secrets_are_hidden_and_unknown_kinds_left_out() {
        let server = Server::default();
        let client = server.client();
        let desired = |object| Desired { manager: FIELD_MANAGER.to_owned(), object };
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": EVENTS_NAMESPACE } });
        let namespace = Intent::in_new_namespace(&client, desired(namespace)).await.unwrap();
        let before = [namespace];
        let of = |version: &str, kind: &str| {
            let metadata = json!({ "name": "a", "namespace": EVENTS_NAMESPACE });
            json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "data": { "key": "aGk=" } })
        };
        let secret = tried(&client, desired(of("v1", "Secret")), &before).await.unwrap();
        assert_eq!(secret.unwrap().change().after["data"], json!({ "key": "(new)" }));
        server.next(Method::GET, "sensors", Answer::UnknownKind);
        let sensor = of("argoproj.io/v1alpha1", "Sensor");
        let left_out = tried(&client, desired(sensor), &before).await.unwrap().err().unwrap();
        assert_eq!(left_out.to_string(), "Sensor a skipped: the cluster does not have this kind");
    }

    #[test]
    fn a_root_app_that_syncs_by_itself_is_refused() {
        let change = |kind: &str, policy: Value| Change {
            kind: kind.to_owned(),
            name: "prod-root".to_owned(),
            namespace: "argocd".to_owned(),
            outcome: Outcome::Unchanged,
            before: None,
            after: json!({ "spec": { "syncPolicy": policy } }),
        };
        let refused = |change: &Change| check_manual(change).is_err();
        assert!(refused(&change("Application", json!({ "automated": {} }))));
        assert!(refused(&change("Application", json!({ "automated": { "enabled": true } }))));
        assert!(!refused(&change("Application", json!({ "automated": { "enabled": false } }))));
        assert!(!refused(&change("Application", json!({ "retry": {} }))));
        assert!(!refused(&change("AppProject", json!({ "automated": {} }))));
    }
}
