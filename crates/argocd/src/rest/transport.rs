//! How bytes get to Argo CD's API server: through a port-forward to one of its pods, or to the address
//! that the platform file names.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Client;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::{InvalidDnsNameError, ServerName};

use tiphys_cluster::RequestError;
use tiphys_cluster::forward::ForwardError;
use tiphys_model::api_server::ServerAddress;
use tiphys_model::{Exit, Explain, Explanation, chain};

use super::certificate::{self, CertificateError};
use super::pods::{PodError, ServerPods};
use super::stream::{Duplex, Stream};

/// What is said when it cannot be connected to.
pub(super) const UNREACHABLE: &str = "cannot reach Argo CD's API server";

pub(super) type Http = hyper_util::client::legacy::Client<Endpoint, Full<Bytes>>;

pub(super) fn http(endpoint: Endpoint) -> Http {
    // Connections are kept: a port-forward and a handshake cost more than a request.
    hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(endpoint)
}

/// Where Argo CD's API server is.
#[derive(Clone)]
pub struct Endpoint {
    place: Place,
    /// Argo CD's own.
    namespace: Arc<str>,
    security: Security,
    /// What all paths begin with: Argo CD's `server.rootpath`.
    path: Arc<str>,
}

#[derive(Clone)]
enum Place {
    Cluster(Box<ServerPods>),
    Address(ServerAddress),
}

/// An error connecting to Argo CD's API server.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum EndpointError {
    Pod(#[from] PodError),
    Name(#[from] InvalidDnsNameError),
    Connect {
        address: ServerAddress,
        source: io::Error,
    },
    Handshake {
        /// None for the server in the cluster.
        address: Option<ServerAddress>,
        source: io::Error,
    },
    Forward(#[from] ForwardError),
    Request(#[from] RequestError),
}

impl Explain for EndpointError {
    fn explain(&self) -> Explanation {
        let unreachable = |why: String| Explanation::new(Exit::Unreachable, UNREACHABLE, why);
        match self {
            EndpointError::Pod(error) => error.explain(),
            EndpointError::Name(error) => unreachable(chain(error)),
            // A run wraps these, and keeps nothing but the reason.
            EndpointError::Connect { address, source } => {
                unreachable(format!("{address} (from `spec.argocd.server`): {}", chain(source)))
            }
            EndpointError::Handshake { address: Some(address), source } => unreachable(format!(
                "TLS with {address}: {}; set `spec.argocd.ca` to the authority that signed its \
                 certificate",
                chain(source)
            )),
            EndpointError::Handshake { address: None, source } => unreachable(chain(source)).hint(
                "if Argo CD's certificate has changed, run `tiphys configure` again with the same \
                 platform file; if it serves without TLS, set `spec.argocd.insecure: true` there",
            ),
            EndpointError::Forward(error) => error.explain(),
            EndpointError::Request(error) => error.explain(),
        }
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
    /// signed for the name that the server is called by.
    pub fn trusting(pem: &[u8]) -> Result<Self, CertificateError> {
        let verifier = Arc::new(certificate::Verifier::trusting(pem)?);
        let config = ClientConfig::builder().dangerous().with_custom_certificate_verifier(verifier);
        Ok(Security::Tls(Arc::new(config.with_no_client_auth())))
    }

    /// TLS that trusts the authorities that this machine trusts.
    #[must_use]
    pub fn public() -> Self {
        let roots = certificate::authorities_of_this_machine();
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Security::Tls(Arc::new(config))
    }
}

impl Endpoint {
    /// The server in the cluster.
    #[must_use]
    pub fn new(client: Client, namespace: &str, security: Security) -> Self {
        let place = Place::Cluster(Box::new(ServerPods::new(client, namespace)));
        Endpoint { place, namespace: namespace.into(), security, path: "".into() }
    }

    /// The server at an address.
    #[must_use]
    pub fn at(address: ServerAddress, namespace: &str, security: Security) -> Self {
        let place = Place::Address(address);
        Endpoint { place, namespace: namespace.into(), security, path: "".into() }
    }

    /// The same below a path, which begins with a slash.
    #[must_use]
    pub fn below(self, path: &str) -> Self {
        Endpoint { path: path.into(), ..self }
    }

    /// Argo CD's own.
    pub(super) fn namespace(&self) -> Arc<str> {
        self.namespace.clone()
    }

    /// What all addresses of requests begin with.
    pub(crate) fn base(&self) -> Arc<str> {
        let scheme = match self.security {
            Security::Plain => "http",
            Security::Tls(_) => "https",
        };
        let host = match &self.place {
            Place::Cluster(pods) => pods.host(),
            Place::Address(address) => address.to_string(),
        };
        format!("{scheme}://{host}{}", self.path).into()
    }

    async fn connect(self) -> Result<Stream, EndpointError> {
        match &self.place {
            Place::Cluster(pods) => self.secure(pods.connect().await?).await,
            Place::Address(address) => {
                let connected = TcpStream::connect((&*address.host, address.port)).await;
                let failed = |source| EndpointError::Connect { address: address.clone(), source };
                self.secure(connected.map_err(failed)?).await
            }
        }
    }

    async fn secure(&self, stream: impl Duplex + 'static) -> Result<Stream, EndpointError> {
        let Security::Tls(config) = &self.security else { return Ok(Stream::new(stream)) };
        let (name, address) = match &self.place {
            Place::Cluster(pods) => (pods.host(), None),
            Place::Address(address) => (address.host.clone(), Some(address.clone())),
        };
        let name = ServerName::try_from(name)?;
        let secured = TlsConnector::from(config.clone()).connect(name, stream).await;
        let secured = secured.map_err(|source| EndpointError::Handshake { address, source })?;
        Ok(Stream::new(secured))
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

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;

    use super::*;

    fn endpoint(host: &str, security: Security) -> Endpoint {
        Endpoint::at(ServerAddress { host: host.to_owned(), port: 443 }, "argocd", security)
    }

    /// What a server with this key says to an endpoint that connects to it.
    async fn greeting(endpoint: Endpoint, key: &CertifiedKey<rcgen::KeyPair>) -> Option<String> {
        let (ours, theirs) = duplex(16 * 1024);
        let private = PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![key.cert.der().clone()], private)
            .unwrap();
        let server = tokio::spawn(async move {
            let mut stream = TlsAcceptor::from(Arc::new(config)).accept(theirs).await?;
            stream.write_all(b"hello").await?;
            stream.shutdown().await
        });
        let connected = endpoint.secure(ours).await;
        let mut said = String::new();
        let read = match connected {
            Ok(mut stream) => stream.read_to_string(&mut said).await.is_ok(),
            Err(error) => {
                assert!(matches!(error, EndpointError::Handshake { address: Some(_), .. }));
                false
            }
        };
        drop(server.await.unwrap());
        read.then_some(said)
    }

    #[tokio::test]
    async fn a_server_at_an_address_is_trusted_by_the_authority_that_is_given() {
        let names = || vec!["argocd.example.org".to_owned(), "2001:db8::1".to_owned()];
        let key = generate_simple_self_signed(names()).unwrap();
        let trusting = |pem: String| Security::trusting(pem.as_bytes()).unwrap();
        for host in ["argocd.example.org", "2001:db8::1"] {
            let known = endpoint(host, trusting(key.cert.pem()));
            assert_eq!(greeting(known, &key).await.as_deref(), Some("hello"), "{host}");
        }
        let other = generate_simple_self_signed(names()).unwrap();
        let unknown = endpoint("argocd.example.org", trusting(other.cert.pem()));
        assert_eq!(greeting(unknown, &key).await, None);
        let public = endpoint("argocd.example.org", Security::public());
        assert_eq!(
            greeting(public, &key).await,
            None,
            "no authority of this machine has signed it"
        );
    }

    #[tokio::test]
    async fn plain_http_is_spoken_only_where_it_is_asked_for() {
        let (ours, mut theirs) = duplex(64);
        let mut stream = endpoint("a", Security::Plain).secure(ours).await.unwrap();
        stream.write_all(b"GET").await.unwrap();
        let mut heard = [0; 3];
        theirs.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"GET");
    }

    #[test]
    fn requests_go_below_the_path_of_the_server() {
        let below = |endpoint: Endpoint| endpoint.below("/argocd").base().to_string();
        assert_eq!(below(endpoint("a.example", Security::Plain)), "http://a.example:443/argocd");
        let secure = endpoint("2001:db8::1", Security::public());
        assert_eq!(below(secure), "https://[2001:db8::1]:443/argocd");
    }
}
