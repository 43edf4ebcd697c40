//! The tokens of the platform: kept while they are valid, otherwise replaced.

use ring::rand::SecureRandom;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tiphys_model::{Exit, Explain, Explanation, Platform};

use super::jwt::{Claims, SigningKey};
use super::keys::Server;
use tiphys_cluster::encoded;
use tiphys_cluster::names::Purpose;

/// The key of `argocd-secret` with the tokens of an account.
pub(super) fn registry_key(purpose: Purpose) -> String {
    format!("accounts.{}.tokens", purpose.account())
}

/// Why there is no good token.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum TokenError {
    /// The tokens of an account are not a list.
    Unreadable {
        purpose: Purpose,
        source: serde_json::Error,
    },
    NoRandomness,
}

impl Explain for TokenError {
    fn explain(&self) -> Explanation {
        match self {
            TokenError::Unreadable { purpose, source } => {
                let key = registry_key(*purpose);
                Explanation::new(
                    Exit::Configuration,
                    format!("cannot read the tokens of Argo CD's account `{}`", purpose.account()),
                    format!("`{key}` in the Secret argocd-secret is not a list: {source}"),
                )
                .hint(format!("remove `{key}` (this revokes the tokens), then run this again"))
            }
            TokenError::NoRandomness => Explanation::new(
                Exit::Failed,
                "cannot create a token",
                "the operating system returned no random numbers",
            ),
        }
    }
}

/// A token, and the tokens that its account has with it.
pub(super) struct Token {
    pub(super) token: SecretString,
    /// The new list of the account's tokens, if there has to be one.
    pub(super) registry: Option<String>,
}

/// What is needed to tell whether a token is good, and to make one.
pub(super) struct TokenIssuer<'a> {
    pub(super) platform: &'a Platform,
    pub(super) key: &'a SigningKey,
    pub(super) now: i64,
}

impl TokenIssuer<'_> {
    /// The token that the platform has, or a new one. `registered` is what `argocd-secret` says.
    pub(super) fn token(
        &self,
        purpose: Purpose,
        held: Option<SecretString>,
        registered: Option<&[u8]>,
    ) -> Result<Token, TokenError> {
        let mut registry = registry(purpose, registered)?;
        if let Some(token) = held
            && self.is_good(purpose, &token, &registry)
        {
            return Ok(Token { token, registry: None });
        }
        // Earlier ones of this platform are in nobody's hands that we know of.
        let prefix = prefix(self.platform);
        registry.retain(|entry| !id(entry).is_some_and(|id| id.starts_with(&prefix)));
        self.add(purpose, registry)
    }

    /// A new token beside those that there are, which stay good until they are revoked.
    pub(super) fn another(
        &self,
        purpose: Purpose,
        registered: Option<&[u8]>,
    ) -> Result<Token, TokenError> {
        self.add(purpose, registry(purpose, registered)?)
    }

    fn add(&self, purpose: Purpose, mut registry: Vec<Value>) -> Result<Token, TokenError> {
        let new = format!("{}{}", prefix(self.platform), random()?);
        registry.push(json!({ "id": new, "iat": self.now }));
        Ok(Token {
            token: self.key.sign(&Claims::new(purpose.account(), new, self.now)),
            registry: Some(Value::Array(registry).to_string()),
        })
    }

    /// The tokens of an account without those of this platform but one: the list, if it differs.
    pub(super) fn only(
        &self,
        purpose: Purpose,
        kept: &SecretString,
        registered: Option<&[u8]>,
    ) -> Result<Option<String>, TokenError> {
        let Some(claims) = self.key.verify(kept) else { return Ok(None) };
        let mut registry = registry(purpose, registered)?;
        let all = registry.len();
        let prefix = prefix(self.platform);
        registry.retain(|entry| {
            !id(entry).is_some_and(|id| id.starts_with(&prefix) && id != claims.id)
        });
        Ok((registry.len() != all).then(|| Value::Array(registry).to_string()))
    }

    /// As Argo CD judges it: signed with its key, for this account, not expired, not revoked.
    fn is_good(&self, purpose: Purpose, token: &SecretString, registry: &[Value]) -> bool {
        let Some(claims) = self.key.verify(token) else { return false };
        claims.is_for(purpose.account())
            && !claims.has_expired(self.now)
            && registry.iter().any(|entry| id(entry) == Some(&claims.id))
    }
}

/// What is left of an account's tokens without the platform's, none or some; nothing at all if
/// the platform has none there.
pub(super) fn without(
    platform: &Platform,
    purpose: Purpose,
    registered: Option<&[u8]>,
) -> Result<Option<Value>, TokenError> {
    let mut registry = registry(purpose, registered)?;
    let all = registry.len();
    let prefix = prefix(platform);
    registry.retain(|entry| !id(entry).is_some_and(|id| id.starts_with(&prefix)));
    if registry.len() == all {
        return Ok(None);
    }
    Ok(Some(Value::Array(registry)))
}

/// A list of tokens as `argocd-secret` has it: none rather than an empty one.
pub(super) fn written(list: &Value) -> Value {
    let none = list.as_array().is_some_and(Vec::is_empty);
    if none { Value::Null } else { encoded(list.to_string()).into() }
}

/// Whose tokens are ours to make: others are handed out by Argo CD's administrators.
pub(super) fn own_purposes(platform: &Platform) -> impl Iterator<Item = Purpose> {
    let is_own = |purpose: &Purpose| purpose.given_token_secret(platform).is_none();
    Purpose::ALL.into_iter().filter(is_own)
}

/// What the ids of a platform's tokens begin with. Platforms have no dot in their names, and a
/// colon would mean something in the path of Argo CD's API, so that nobody could revoke them.
fn prefix(platform: &Platform) -> String {
    format!("{}.", platform.name)
}

fn id(entry: &Value) -> Option<&str> {
    entry.get("id")?.as_str()
}

/// Entries are kept as they are, whatever else a later Argo CD may say in them.
fn registry(purpose: Purpose, text: Option<&[u8]>) -> Result<Vec<Value>, TokenError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Vec::new()) };
    serde_json::from_slice(text).map_err(|source| TokenError::Unreadable { purpose, source })
}

/// 128 bits, as hexadecimal digits.
fn random() -> Result<String, TokenError> {
    let mut bytes = [0; 16];
    let filled = ring::rand::SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| TokenError::NoRandomness)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The Secret with a token, unless that is elsewhere, and with how Argo CD's API server is reached.
pub(super) fn secret(
    platform: &Platform,
    purpose: Purpose,
    token: Option<&SecretString>,
    server: &Server,
) -> Value {
    let mut data = json!({});
    if let Some(token) = token {
        data["token"] = encoded(token.expose_secret()).into();
    }
    if let Some(certificate) = &server.certificate {
        data["ca.crt"] = encoded(certificate).into();
    }
    if !server.path.is_empty() {
        data["path"] = encoded(&server.path).into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": super::objects::metadata(platform, &purpose.secret(platform)),
        "type": "Opaque",
        "data": data,
    })
}

#[cfg(test)]
mod tests {
    use tiphys_model::SecretName;

    use super::*;
    use crate::configure::objects::tests::platform;

    const NOW: i64 = 1_800_000_000;

    fn ids(registry: &str) -> Vec<String> {
        let entries: Vec<Value> = serde_json::from_str(registry).unwrap();
        entries.iter().map(|entry| id(entry).unwrap().to_owned()).collect()
    }

    #[test]
    fn a_good_token_is_kept_and_any_other_is_replaced() {
        let (platform, key) = (platform("prod"), SigningKey::new(b"key"));
        let mint = TokenIssuer { platform: &platform, key: &key, now: NOW };
        let first = mint.token(Purpose::Deploy, None, None).unwrap();
        let registry = first.registry.unwrap();
        assert_eq!(ids(&registry).len(), 1);
        assert!(ids(&registry)[0].starts_with("prod."));
        let held = || Some(first.token.clone());

        let again = mint.token(Purpose::Deploy, held(), Some(registry.as_bytes())).unwrap();
        assert_eq!(again.registry, None);
        assert_eq!(again.token.expose_secret(), first.token.expose_secret());

        let another_key = SigningKey::new(b"rotated");
        let rotated = TokenIssuer { key: &another_key, ..mint };
        let mint = TokenIssuer { platform: &platform, key: &key, now: NOW };
        let replaced = [
            ("revoked", mint.token(Purpose::Deploy, held(), Some(b"[]"))),
            ("never registered", mint.token(Purpose::Deploy, held(), None)),
            ("lost", mint.token(Purpose::Deploy, None, Some(registry.as_bytes()))),
            (
                "of another account",
                mint.token(Purpose::Teardown, held(), Some(registry.as_bytes())),
            ),
            ("with an old key", rotated.token(Purpose::Deploy, held(), Some(registry.as_bytes()))),
        ];
        for (case, token) in replaced {
            let token = token.unwrap();
            assert_ne!(token.token.expose_secret(), first.token.expose_secret(), "{case}");
            // The old one is not left behind.
            let new = ids(&token.registry.unwrap());
            assert_eq!((new.len(), new == ids(&registry)), (1, false), "{case}");
        }
    }

    #[test]
    fn a_rotation_keeps_the_old_one_until_the_new_one_is_in_place() {
        let (platform, key) = (platform("prod"), SigningKey::new(b"key"));
        let mint = TokenIssuer { platform: &platform, key: &key, now: NOW };
        let others = br#"[{"id":"prod.old","iat":1},{"id":"other.1","iat":1}]"#;
        let new = mint.another(Purpose::Deploy, Some(others)).unwrap();
        let both = new.registry.unwrap();
        assert_eq!(ids(&both).len(), 3);
        let left = mint.only(Purpose::Deploy, &new.token, Some(both.as_bytes())).unwrap().unwrap();
        assert_eq!(ids(&left).len(), 2);
        assert!(left.contains("other.1") && !left.contains("prod.old"));
        assert_eq!(mint.only(Purpose::Deploy, &new.token, Some(left.as_bytes())).unwrap(), None);
    }

    #[test]
    fn the_tokens_of_others_stay() {
        let (platform, key) = (platform("prod"), SigningKey::new(b"key"));
        let mint = TokenIssuer { platform: &platform, key: &key, now: NOW };
        let others = br#"[{"id":"prod-2.1","iat":1},{"id":"by-hand","iat":2,"exp":3,"more":true}]"#;
        let token = mint.token(Purpose::Deploy, None, Some(others)).unwrap();
        let registry = token.registry.unwrap();
        assert_eq!(ids(&registry).len(), 3);
        assert!(registry.contains(r#""more":true"#));
    }

    #[test]
    fn a_platform_takes_back_its_own_tokens_only() {
        let platform = platform("prod");
        let left = |text: &str| without(&platform, Purpose::Deploy, Some(text.as_bytes())).unwrap();
        assert_eq!(left(r#"[{"id":"prod.1","iat":1}]"#), Some(json!([])));
        assert_eq!(left(r#"[{"id":"prod-2.1"}]"#), None);
        let both = left(r#"[{"id":"prod.1"},{"id":"other.1"},{"id":"prod.2"}]"#);
        assert_eq!(both, Some(json!([{ "id": "other.1" }])));
        assert_eq!(without(&platform, Purpose::Deploy, None).unwrap(), None);
    }

    #[test]
    fn a_token_that_others_hand_out_is_not_made_here() {
        let mut platform = platform("prod");
        platform.argocd.server.token_secret = Some(SecretName::parse("handed-out").unwrap());
        assert_eq!(own_purposes(&platform).collect::<Vec<_>>(), [Purpose::Teardown]);
        let server = Server { certificate: None, path: "/argocd".to_owned() };
        let secret = secret(&platform, Purpose::Deploy, None, &server);
        assert_eq!(secret["data"], json!({ "path": encoded("/argocd") }));
        assert_eq!(written(&json!([])), Value::Null);
        assert_eq!(written(&json!([1])), json!(encoded("[1]")));
    }

    #[test]
    fn what_cannot_be_read_is_not_overwritten() {
        let (platform, key) = (platform("prod"), SigningKey::new(b"key"));
        let mint = TokenIssuer { platform: &platform, key: &key, now: NOW };
        let error = mint.token(Purpose::Deploy, None, Some(b"{")).err().unwrap();
        assert_eq!(error.explain().exit, Exit::Configuration);
    }
}
