//! How bytes get to Argo CD's API server: through a port-forward to one of its pods, with TLS
//! that is verified against the certificate we were given.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::{InvalidDnsNameError, ServerName};

use tiphys_cluster::RequestError;
use tiphys_cluster::forward::{ForwardError, forward, ready_pod};
use tiphys_model::{Exit, Explain, Explanation, chain};

use super::certificate::{self, CertificateError};

/// argocd-server's own port in its pods.
const PORT: u16 = 8080;
/// As its own manifests label it, and its Helm chart under whatever name.
const SELECTORS: [&str; 2] = [
    "app.kubernetes.io/name=argocd-server",
    "app.kubernetes.io/part-of=argocd,app.kubernetes.io/component=server",
];

/// What is said when it cannot be connected to.
const UNREACHABLE: &str = "Argo CD's API server cannot be reached";

pub(super) type Http = hyper_util::client::legacy::Client<Endpoint, Full<Bytes>>;

pub(super) fn http(endpoint: Endpoint) -> Http {
    // Connections are kept: a port-forward and a handshake cost more than a request.
    hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(endpoint)
}

/// Where Argo CD's API server is.
#[derive(Clone)]
pub struct Endpoint {
    pods: Api<Pod>,
    namespace: Arc<str>,
    security: Security,
    /// What all paths begin with: Argo CD's `server.rootpath`.
    path: Arc<str>,
}

/// An error connecting to Argo CD's API server.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum EndpointError {
    NoPod { namespace: Arc<str> },
    Name(#[from] InvalidDnsNameError),
    Handshake(#[from] io::Error),
    Forward(#[from] ForwardError),
    Request(#[from] RequestError),
}

impl Explain for EndpointError {
    fn explain(&self) -> Explanation {
        let why = match self {
            EndpointError::NoPod { namespace } => {
                let [ours, charts] = SELECTORS;
                format!("no pod with the label {ours}, or {charts}, is ready in {namespace}")
            }
            EndpointError::Name(error) => chain(error),
            EndpointError::Handshake(error) => {
                return Explanation::new(Exit::Unreachable, UNREACHABLE, chain(error)).hint(
                    "if Argo CD's certificate has changed, run `tiphys configure` again with the same \
                     platform file",
                );
            }
            EndpointError::Forward(error) => return error.explain(),
            EndpointError::Request(error) => return error.explain(),
        };
        Explanation::new(Exit::Unreachable, UNREACHABLE, why)
    }
}

#[derive(Clone)]
pub enum Security {
    /// Argo CD was told to serve without TLS.
    Plain,
    Tls(Arc<ClientConfig>),
}

impl Security {
    /// TLS that trusts this very certificate, whatever name is in it, or what this authority has
    /// signed for the name that Argo CD's API server has in its cluster.
    pub fn trusting(pem: &[u8]) -> Result<Self, CertificateError> {
        let verifier = Arc::new(certificate::Verifier::trusting(pem)?);
        let config = ClientConfig::builder().dangerous().with_custom_certificate_verifier(verifier);
        Ok(Security::Tls(Arc::new(config.with_no_client_auth())))
    }
}

impl Endpoint {
    #[must_use]
    pub fn new(client: Client, namespace: &str, security: Security) -> Self {
        let pods = Api::namespaced(client, namespace);
        Endpoint { pods, namespace: namespace.into(), security, path: "".into() }
    }

    /// The same below a path, which begins with a slash.
    #[must_use]
    pub fn below(self, path: &str) -> Self {
        Endpoint { path: path.into(), ..self }
    }

    pub(super) fn base(&self) -> Arc<str> {
        let scheme = match self.security {
            Security::Plain => "http",
            Security::Tls(_) => "https",
        };
        format!("{scheme}://{}{}", self.host(), self.path).into()
    }

    /// One of the names that Argo CD puts in its own certificate.
    fn host(&self) -> String {
        format!("argocd-server.{}.svc", self.namespace)
    }

    async fn ready_pod(&self) -> Result<String, EndpointError> {
        for selector in SELECTORS {
            let ready = ready_pod(&self.pods, selector, UNREACHABLE).await?;
            if let Some(name) = ready.and_then(|pod| pod.metadata.name) {
                return Ok(name);
            }
        }
        Err(EndpointError::NoPod { namespace: self.namespace.clone() })
    }

    async fn connect(self) -> Result<Stream, EndpointError> {
        let name = self.ready_pod().await?;
        let stream = forward(&self.pods, &name, PORT, UNREACHABLE).await?.stream;
        match &self.security {
            Security::Plain => Ok(Stream::Plain(stream)),
            Security::Tls(config) => {
                let name = ServerName::try_from(self.host())?;
                let stream = TlsConnector::from(config.clone()).connect(name, stream).await?;
                Ok(Stream::Tls(Box::new(stream)))
            }
        }
    }
}

impl tower_service::Service<Uri> for Endpoint {
    type Response = TokioIo<Stream>;
    type Error = EndpointError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, EndpointError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), EndpointError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let endpoint = self.clone();
        Box::pin(async move { endpoint.connect().await.map(TokioIo::new) })
    }
}

pub enum Stream {
    Plain(DuplexStream),
    Tls(Box<TlsStream<DuplexStream>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
