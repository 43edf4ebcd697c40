//! The token that a client acts with. It may be rotated while it is used.

use std::sync::{Arc, PoisonError, RwLock};

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use secrecy::{ExposeSecret, SecretString};

#[derive(Clone)]
pub(super) struct Token(Arc<Shared>);

struct Shared {
    now: RwLock<SecretString>,
    /// Where a newer one is found.
    source: Option<(Api<Secret>, String)>,
}

impl Token {
    pub(super) fn new(token: SecretString) -> Self {
        Token(Arc::new(Shared { now: RwLock::new(token), source: None }))
    }

    pub(super) fn renewing_from(&self, secrets: Api<Secret>, name: &str) -> Self {
        let source = Some((secrets, name.to_owned()));
        Token(Arc::new(Shared { now: RwLock::new(self.now()), source }))
    }

    pub(super) fn now(&self) -> SecretString {
        self.0.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads it again after `refused` was refused; whether there is another one by now. Who cannot
    /// read it goes on with what it has, and is refused with it.
    pub(super) async fn renew(&self, refused: &SecretString) -> bool {
        let Some((secrets, name)) = &self.0.source else { return false };
        let Ok(Some(secret)) = secrets.get_opt(name).await else { return false };
        let found = secret.data.and_then(|mut data| data.remove("token"));
        let Some(found) = found.and_then(|token| String::from_utf8(token.0).ok()) else {
            return false;
        };
        self.replace(refused, found.into())
    }

    /// Of several that were refused at once, the first has replaced it for all.
    fn replace(&self, refused: &SecretString, found: SecretString) -> bool {
        let is_another = refused.expose_secret() != found.expose_secret();
        if is_another {
            *self.0.now.write().unwrap_or_else(PoisonError::into_inner) = found;
        }
        is_another
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_token_is_a_new_one_and_all_clones_have_it() {
        let token = Token::new("old".into());
        let clone = token.clone();
        let old = SecretString::from("old");
        assert!(!token.replace(&old, "old".into()));
        assert!(token.replace(&old, "new".into()));
        assert_eq!(clone.now().expose_secret(), "new");
        assert!(clone.replace(&old, "new".into()), "refused at the same time, and renewed since");
    }
}
