//! The token that a client acts with. It may be rotated while it is used.

use std::sync::{Arc, PoisonError, RwLock};

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use secrecy::{ExposeSecret, SecretString};

#[derive(Clone)]
pub(super) struct Token(Arc<Held>);

struct Held {
    now: RwLock<SecretString>,
    /// Where a newer one is found.
    source: Option<(Api<Secret>, String)>,
}

impl Token {
    pub(super) fn new(token: SecretString) -> Self {
        Token(Arc::new(Held { now: RwLock::new(token), source: None }))
    }

    pub(super) fn renewing_from(&self, secrets: Api<Secret>, name: &str) -> Self {
        let source = Some((secrets, name.to_owned()));
        Token(Arc::new(Held { now: RwLock::new(self.now()), source }))
    }

    pub(super) fn now(&self) -> SecretString {
        self.0.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads it again; whether there is a new one. Who cannot read it goes on with what it has,
    /// and is refused with it.
    pub(super) async fn renew(&self) -> bool {
        let Some((secrets, name)) = &self.0.source else { return false };
        let Ok(Some(secret)) = secrets.get_opt(name).await else { return false };
        let found = secret.data.and_then(|mut data| data.remove("token"));
        let Some(found) = found.and_then(|token| String::from_utf8(token.0).ok()) else {
            return false;
        };
        self.replace(found.into())
    }

    fn replace(&self, found: SecretString) -> bool {
        let mut now = self.0.now.write().unwrap_or_else(PoisonError::into_inner);
        let differs = now.expose_secret() != found.expose_secret();
        if differs {
            *now = found;
        }
        differs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_token_is_a_new_one_and_all_clones_have_it() {
        let token = Token::new("old".into());
        let clone = token.clone();
        assert!(!token.replace("old".into()));
        assert!(token.replace("new".into()));
        assert_eq!(clone.now().expose_secret(), "new");
    }
}
