//! Requests to servers outside the cluster, over TLS that is verified.

use std::time::Duration;

use http::{HeaderMap, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use secrecy::{ExposeSecret, SecretString};
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use tiphys_argocd::rest::authorities_of_this_machine;
use tiphys_cluster::agent;
use tiphys_cluster::encoded;
use tiphys_model::chain;

const MOST_REDIRECTS: usize = 5;
/// How long one answer may take, with all of its body.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(60);
/// The same for a little that is posted: who does that has other work to do.
const POST_TIMEOUT: Duration = Duration::from_secs(5);
/// What a server says to something that was posted. More is an error.
const MOST_ANSWER: usize = 1 << 20;

/// A client that knows the authorities of this machine, and one more if it is given.
pub struct Https {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// What a server has answered.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// What is said to a server about who asks.
#[derive(Clone)]
pub enum Authorization {
    Basic { username: String, password: SecretString },
    Bearer(SecretString),
}

impl Authorization {
    /// It is never printed with the request.
    fn header(&self) -> Result<header::HeaderValue, Unanswered> {
        let text = match self {
            Authorization::Basic { username, password } => {
                let both = format!("{username}:{}", password.expose_secret());
                format!("Basic {}", encoded(both))
            }
            Authorization::Bearer(token) => format!("Bearer {}", token.expose_secret()),
        };
        let unfit = |_| "the token contains characters that a request cannot carry".to_owned();
        let mut value = header::HeaderValue::try_from(text).map_err(unfit)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// What a request says beside its address, and how much of an answer is read.
#[derive(Clone, Copy)]
struct Ask<'a> {
    accept: Option<&'a str>,
    authorization: Option<&'a Authorization>,
    /// JSON to post; nothing is posted without it.
    body: Option<&'a str>,
    most_bytes: usize,
}

/// Why there is no answer, in words.
pub type Unanswered = String;

impl Https {
    /// `authority` is one or more certificates in PEM.
    pub fn new(authority: Option<&str>) -> Result<Self, Unanswered> {
        let mut roots = authorities_of_this_machine();
        for certificate in CertificateDer::pem_slice_iter(authority.unwrap_or_default().as_bytes())
        {
            let certificate = certificate.map_err(|error| chain(&error))?;
            roots.add(certificate).map_err(|error| chain(&error))?;
        }
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_only()
            .enable_http1()
            .build();
        Ok(Https { client: Client::builder(TokioExecutor::new()).build(connector) })
    }

    /// As [`Self::get`], but only the status and headers matter: no body is read.
    pub async fn look(
        &self,
        url: &str,
        authorization: Option<&Authorization>,
    ) -> Result<Answer, Unanswered> {
        self.get(url, None, authorization, 0).await
    }

    /// A GET that follows redirects. Credentials are sent again only if the redirect stays on the
    /// same server.
    pub async fn get(
        &self,
        url: &str,
        accept: Option<&str>,
        authorization: Option<&Authorization>,
        most_bytes: usize,
    ) -> Result<Answer, Unanswered> {
        let ask = Ask { accept, authorization, body: None, most_bytes };
        within(DOWNLOAD_TIMEOUT, self.follow(url, ask)).await
    }

    /// Posts JSON. Redirects are not followed: they lead to something else than what was to be changed.
    pub async fn post(
        &self,
        url: &str,
        authorization: &Authorization,
        body: &str,
    ) -> Result<Answer, Unanswered> {
        let uri: Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
        let authorization = Some(authorization);
        let ask = Ask { accept: None, authorization, body: Some(body), most_bytes: MOST_ANSWER };
        within(POST_TIMEOUT, self.exchange(&uri, ask)).await
    }

    async fn follow(&self, url: &str, ask: Ask<'_>) -> Result<Answer, Unanswered> {
        let mut uri: Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
        let first = uri.authority().cloned();
        for _ in 0..=MOST_REDIRECTS {
            let known = uri.authority() == first.as_ref();
            let authorization = ask.authorization.filter(|_| known);
            let answer = self.exchange(&uri, Ask { authorization, ..ask }).await?;
            let to = answer.headers.get(header::LOCATION).and_then(|place| place.to_str().ok());
            match to {
                Some(to) if answer.status.is_redirection() => uri = joined(&uri, to)?,
                _ => return Ok(answer),
            }
        }
        Err(format!("{url} redirects more than {MOST_REDIRECTS} times"))
    }

    async fn exchange(&self, uri: &Uri, ask: Ask<'_>) -> Result<Answer, Unanswered> {
        let method = if ask.body.is_some() { Method::POST } else { Method::GET };
        let mut request =
            Request::builder().method(method).uri(uri).header(header::USER_AGENT, agent::PROGRAM);
        if let Some(accept) = ask.accept {
            request = request.header(header::ACCEPT, accept);
        }
        if let Some(authorization) = ask.authorization {
            request = request.header(header::AUTHORIZATION, authorization.header()?);
        }
        if ask.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = Bytes::copy_from_slice(ask.body.unwrap_or_default().as_bytes());
        let request = request.body(Full::new(body)).map_err(|error| chain(&error))?;
        let answer = self.client.request(request).await.map_err(|error| chain(&error))?;
        let (head, body) = answer.into_parts();
        // Of an answer that leads elsewhere, only where to counts.
        let body = if ask.most_bytes == 0 || head.status.is_redirection() {
            Bytes::new()
        } else {
            let body = Limited::new(body, ask.most_bytes).collect().await;
            body.map_err(|error| chain(&*error))?.to_bytes()
        };
        Ok(Answer { status: head.status, headers: head.headers, body })
    }
}

async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, Unanswered>>,
) -> Result<T, Unanswered> {
    let late = |_| format!("no answer within {} s", limit.as_secs());
    tokio::time::timeout(limit, answer).await.map_err(late)?
}

/// Where a redirect leads: a whole address, or a path on the same server.
fn joined(from: &Uri, to: &str) -> Result<Uri, Unanswered> {
    let whole = match (to.starts_with('/'), from.authority()) {
        (true, Some(authority)) => format!("https://{authority}{to}"),
        _ => to.to_owned(),
    };
    whole.parse().map_err(|error| format!("invalid redirect to {to}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_followed_to_paths_and_to_other_servers() {
        let from: Uri = "https://a.example/x/y".parse().unwrap();
        assert_eq!(joined(&from, "/z").unwrap(), "https://a.example/z");
        assert_eq!(joined(&from, "https://b.example/z").unwrap(), "https://b.example/z");
        assert!(joined(&from, "https:// ").is_err());
    }

    #[test]
    fn who_asks_is_never_printed() {
        let password = SecretString::from("hunter2");
        let basic = Authorization::Basic { username: "u".to_owned(), password };
        let value = basic.header().unwrap();
        assert_eq!(value, "Basic dTpodW50ZXIy");
        assert_eq!(format!("{value:?}"), "Sensitive");
    }
}
