//! How bytes get to Argo CD's API server: through a port-forward to one of its pods, with TLS
//! that is verified against the certificate we were given.

use std::future::Future;
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
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use tiphys_cluster::forward::{forward, ready_pod};
use tiphys_cluster::{ClusterError, Kind, chain};

/// argocd-server's own port in its pods.
const PORT: u16 = 8080;
const SELECTOR: &str = "app.kubernetes.io/name=argocd-server";

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
}

#[derive(Clone)]
pub enum Security {
    /// Argo CD was told to serve without TLS.
    Plain,
    Tls(Arc<ClientConfig>),
}

impl Security {
    /// TLS that trusts this certificate, or what this authority has signed.
    pub fn trusting(pem: &[u8]) -> Result<Self, ClusterError> {
        let bad = |why: String| {
            ClusterError::new(Kind::Configuration, "Argo CD's certificate cannot be used", why)
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| bad(chain(&error)))?;
            roots.add(certificate).map_err(|error| bad(chain(&error)))?;
        }
        if roots.is_empty() {
            return Err(bad("there is no certificate in it".to_owned()));
        }
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Security::Tls(Arc::new(config)))
    }
}

impl Endpoint {
    #[must_use]
    pub fn new(client: Client, namespace: &str, security: Security) -> Self {
        let pods = Api::namespaced(client, namespace);
        Endpoint { pods, namespace: namespace.into(), security }
    }

    pub(super) fn base(&self) -> Arc<str> {
        let scheme = match self.security {
            Security::Plain => "http",
            Security::Tls(_) => "https",
        };
        format!("{scheme}://{}", self.host()).into()
    }

    /// One of the names that Argo CD puts in its own certificate.
    fn host(&self) -> String {
        format!("argocd-server.{}.svc", self.namespace)
    }

    async fn connect(self) -> Result<Stream, ClusterError> {
        let what = "Argo CD's API server cannot be reached";
        let unreachable = |why: String| ClusterError::new(Kind::Unreachable, what, why);
        let ready = ready_pod(&self.pods, SELECTOR, what).await?;
        let name = ready.and_then(|pod| pod.metadata.name).ok_or_else(|| {
            unreachable(format!("no pod with label {SELECTOR} is ready in {}", self.namespace))
        })?;
        let stream = forward(&self.pods, &name, PORT, what).await?.stream;
        match &self.security {
            Security::Plain => Ok(Stream::Plain(stream)),
            Security::Tls(config) => {
                let name = ServerName::try_from(self.host())
                    .map_err(|error| unreachable(chain(&error)))?;
                let connector = TlsConnector::from(config.clone());
                let stream = connector
                    .connect(name, stream)
                    .await
                    .map_err(|error| unreachable(chain(&error)))?;
                Ok(Stream::Tls(Box::new(stream)))
            }
        }
    }
}

impl tower_service::Service<Uri> for Endpoint {
    type Response = TokioIo<Stream>;
    type Error = ClusterError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ClusterError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClusterError>> {
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
    ) -> Poll<std::io::Result<()>> {
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
    ) -> Poll<std::io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
