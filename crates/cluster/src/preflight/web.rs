//! Asking servers on the web: one GET at a time, certificates verified.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::{PATIENCE, silence};
use crate::agent;
use crate::error::chain;

/// No answer that is read is longer.
const LONGEST: usize = 64 * 1024;

/// A client that trusts the system's authorities, and perhaps some more.
pub(super) struct Web {
    tls: Arc<ClientConfig>,
}

/// What a server answers; its body only where that was asked for.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Who asked without credentials, or with wrong ones, is told one of these.
    pub(super) fn is_refusal(&self) -> bool {
        [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND]
            .contains(&self.status)
    }
}

/// What is read of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    Head,
    Everything,
}

impl Web {
    /// `authority`: certificates in PEM.
    pub(super) fn trusting(authority: Option<&str>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        // What the system has and cannot be used is nobody's fault here.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        for certificate in
            authority.iter().flat_map(|pem| CertificateDer::pem_slice_iter(pem.as_bytes()))
        {
            let added = certificate
                .map_err(|error| chain(&error))
                .and_then(|certificate| roots.add(certificate).map_err(|error| chain(&error)));
            added.map_err(|why| format!("`ca.crt` cannot be used: {why}"))?;
        }
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Web { tls: Arc::new(config) })
    }

    /// Redirects are not followed. Credentials are never sent without encryption.
    pub(super) async fn get(
        &self,
        url: &str,
        authorization: Option<&SecretString>,
        read: Read,
    ) -> Result<Answer, String> {
        let asked = self.ask(url, authorization, read);
        timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(silence()))
    }

    async fn ask(
        &self,
        url: &str,
        authorization: Option<&SecretString>,
        read: Read,
    ) -> Result<Answer, String> {
        let uri: Uri = url.parse().map_err(|error| format!("no address: {error}"))?;
        let host = uri.host().ok_or("an address without a host")?.to_owned();
        let encrypted = uri.scheme_str() == Some("https");
        if authorization.is_some() && !encrypted {
            return Err("credentials are not sent without encryption".to_owned());
        }
        let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let request = request(&uri, &host, authorization)?;
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let stream =
            TcpStream::connect((name.as_str(), port)).await.map_err(|error| error.to_string())?;
        if !encrypted {
            return send(stream, request, read).await;
        }
        let name = ServerName::try_from(name).map_err(|error| chain(&error))?;
        let connector = TlsConnector::from(self.tls.clone());
        let stream = connector.connect(name, stream).await.map_err(|error| chain(&error))?;
        send(stream, request, read).await
    }
}

fn request(
    uri: &Uri,
    host: &str,
    authorization: Option<&SecretString>,
) -> Result<Request<Empty<Bytes>>, String> {
    let authority = uri.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::get(path)
        .header(header::HOST, authority)
        .header(header::USER_AGENT, agent::PROGRAM)
        .body(Empty::new())
        .map_err(|error| format!("no address: {error}"))?;
    if let Some(secret) = authorization {
        // The error would not print it either.
        let mut value = HeaderValue::from_str(secret.expose_secret())
            .map_err(|_| "the credentials have characters that cannot be sent".to_owned())?;
        value.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
    Ok(request)
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Empty<Bytes>>,
    read: Read,
) -> Result<Answer, String> {
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| chain(&error))?;
    // Ends with this: nobody is left waiting for a server that hangs.
    let mut driving = JoinSet::new();
    driving.spawn(connection);
    let answer: Response<Incoming> =
        sender.send_request(request).await.map_err(|error| chain(&error))?;
    let (head, body) = answer.into_parts();
    let body = match read {
        Read::Head => Bytes::new(),
        Read::Everything => {
            let body = Limited::new(body, LONGEST).collect().await;
            body.map_err(|error| error.to_string())?.to_bytes()
        }
    };
    Ok(Answer { status: head.status, headers: head.headers, body })
}

/// The header of a login with name and password.
pub(super) fn basic(username: &str, password: &SecretString) -> SecretString {
    let pair = SecretString::from(format!("{username}:{}", password.expose_secret()));
    format!("Basic {}", STANDARD.encode(pair.expose_secret())).into()
}

/// What to do about a server that does not answer as it should.
pub(super) fn advice(why: &str) -> &'static str {
    if why.contains("certificate") {
        "put the authority's certificate into `ca.crt` beside the credentials, or repair the server"
    } else {
        "check the address in the platform file, name resolution, proxies and firewalls"
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_get_carries_host_and_path() {
        let (ours, mut theirs) = duplex(4096);
        let uri: Uri = "https://quay.io:8443/v2/?a=b".parse().unwrap();
        let header = basic("me", &"hunter2".to_owned().into());
        let request = request(&uri, "quay.io", Some(&header)).unwrap();
        assert!(!format!("{request:?}").contains("Basic"), "{request:?}");
        let server = async {
            let mut bytes = vec![0; 4096];
            let count = theirs.read(&mut bytes).await.unwrap();
            let answer = b"HTTP/1.1 401 no\r\ncontent-length: 3\r\n\r\nyes";
            theirs.write_all(answer).await.unwrap();
            String::from_utf8_lossy(&bytes[..count]).into_owned()
        };
        let (answer, told) = tokio::join!(send(ours, request, Read::Everything), server);
        let answer = answer.unwrap();
        assert!(answer.is_refusal());
        assert_eq!(&*answer.body, b"yes");
        assert!(told.starts_with("GET /v2/?a=b HTTP/1.1\r\n"), "{told}");
        assert!(told.contains("host: quay.io:8443\r\n"), "{told}");
        assert!(told.contains("authorization: Basic bWU6aHVudGVyMg==\r\n"), "{told}");
    }

    #[tokio::test]
    async fn credentials_are_not_sent_without_encryption() {
        let web = Web::trusting(None).unwrap();
        let header = basic("me", &"hunter2".to_owned().into());
        let answer = web.get("http://127.0.0.1:1/", Some(&header), Read::Head).await;
        assert!(answer.is_err_and(|why| why.contains("without encryption")));
    }

    #[tokio::test]
    async fn nobody_there_is_told() {
        let web = Web::trusting(None).unwrap();
        let answer = web.get("https://127.0.0.1:1/", None, Read::Head).await;
        assert!(answer.is_err_and(|why| why.contains("refused")));
        assert!(
            Web::trusting(Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
                .is_err()
        );
    }
}
