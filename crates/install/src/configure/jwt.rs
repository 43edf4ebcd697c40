//! Tokens of Argo CD's accounts, as its own API makes them: HS256 over a few claims, with the
//! key that its API server keeps in `argocd-secret`.
//!
//! A token is worth something only while its id is registered with its account.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

const ISSUER: &str = "argocd";
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
/// How far this machine's clock may be ahead of the API server's.
const CLOCK_MARGIN: i64 = 300;

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    iss: String,
    sub: String,
    iat: i64,
    #[serde(default)]
    nbf: i64,
    #[serde(rename = "jti")]
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exp: Option<i64>,
}

impl Claims {
    /// A token that does not expire; it is revoked.
    pub(super) fn new(account: &str, id: String, now: i64) -> Self {
        Claims {
            iss: ISSUER.to_owned(),
            sub: format!("{account}:apiKey"),
            iat: now,
            nbf: now - CLOCK_MARGIN,
            id,
            exp: None,
        }
    }

    pub(super) fn is_for(&self, account: &str) -> bool {
        // Without the word behind the colon, Argo CD takes it for the same.
        self.iss == ISSUER && self.sub.strip_suffix(":apiKey").unwrap_or(&self.sub) == account
    }

    pub(super) fn has_expired(&self, now: i64) -> bool {
        self.exp.is_some_and(|end| end <= now)
    }
}

/// The key that Argo CD's API server signs with.
pub(super) struct SigningKey(hmac::Key);

impl SigningKey {
    pub(super) fn new(bytes: &[u8]) -> Self {
        SigningKey(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    pub(super) fn sign(&self, claims: &Claims) -> SecretString {
        let claims = serde_json::to_vec(claims).expect("claims are texts and numbers");
        let signed = format!("{}.{}", BASE64.encode(HEADER), BASE64.encode(claims));
        let signature = hmac::sign(&self.0, signed.as_bytes());
        format!("{signed}.{}", BASE64.encode(signature)).into()
    }

    /// What a token says, if this key has signed it.
    pub(super) fn verify(&self, token: &SecretString) -> Option<Claims> {
        let (signed, signature) = token.expose_secret().rsplit_once('.')?;
        let signature = BASE64.decode(signature).ok()?;
        hmac::verify(&self.0, signed.as_bytes(), &signature).ok()?;
        let (_, claims) = signed.split_once('.')?;
        serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_what_the_standard_says() {
        // RFC 7515, A.1: the standard's own key and text.
        let key = BASE64
            .decode(
                "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow",
            )
            .unwrap();
        let text = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        let signature = hmac::sign(&SigningKey::new(&key).0, text.as_bytes());
        assert_eq!(BASE64.encode(signature), "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
    }

    #[test]
    fn a_token_says_what_argo_cd_asks_for() {
        let key = SigningKey::new(b"key");
        let token = key.sign(&Claims::new("tiphys", "prod.1".to_owned(), 1_800_000_000));
        let parts: Vec<&str> = token.expose_secret().split('.').collect();
        let text = |part: &str| String::from_utf8(BASE64.decode(part).unwrap()).unwrap();
        assert_eq!(text(parts[0]), r#"{"alg":"HS256","typ":"JWT"}"#);
        assert_eq!(
            text(parts[1]),
            r#"{"iss":"argocd","sub":"tiphys:apiKey","iat":1800000000,"nbf":1799999700,"jti":"prod.1"}"#
        );
    }

    #[test]
    fn only_the_key_that_signed_it_knows_a_token() {
        let claims = Claims::new("tiphys", "prod.1".to_owned(), 1_800_000_000);
        let key = SigningKey::new(b"key");
        let token = key.sign(&claims);
        assert_eq!(key.verify(&token), Some(claims.clone()));
        assert_eq!(SigningKey::new(b"another").verify(&token), None);
        for broken in ["", "a", "a.b", "a.b.c", &format!("x{}", token.expose_secret())] {
            assert_eq!(key.verify(&broken.to_owned().into()), None, "{broken}");
        }
        assert!(claims.is_for("tiphys") && !claims.is_for("tiphys-teardown"));
    }

    #[test]
    fn a_token_cannot_be_printed() {
        let token = SigningKey::new(b"key").sign(&Claims::new("tiphys", "1".to_owned(), 0));
        assert!(!format!("{token:?}").contains('.'));
    }
}
