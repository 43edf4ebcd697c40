//! Base64, as the data of Secrets and HTTP's basic authentication have it.

use base64::Engine;

pub fn encoded(bytes: impl AsRef<[u8]>) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
