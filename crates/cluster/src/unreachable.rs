//! Requests that got no answer: from which cluster, and why.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use kube::Client;
use tiphys_model::chain;

use crate::connect::Target;
use crate::layer::layered;

/// A request that got no answer.
#[derive(Debug)]
pub(crate) struct Unreachable {
    cluster: Arc<Cluster>,
    pub(crate) reason: Reason,
}

#[derive(Debug)]
struct Cluster {
    target: Target,
    /// Of the kubeconfig; a pod needs none.
    place: Option<String>,
}

impl Unreachable {
    pub(crate) fn server(&self) -> &str {
        &self.cluster.target.server
    }
}

/// Why, as far as one can act on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    Refused,
    TimedOut,
    NoRoute,
    UnknownHost,
    /// What is wrong with the server's certificate.
    Certificate(String),
    Other(String),
}

impl Reason {
    fn of(error: &(dyn Error + 'static)) -> Reason {
        let said = chain(error);
        let mut cause = Some(error);
        while let Some(inner) = cause {
            match inner.downcast_ref::<io::Error>().map(io::Error::kind) {
                Some(io::ErrorKind::ConnectionRefused) => return Reason::Refused,
                Some(io::ErrorKind::TimedOut) => return Reason::TimedOut,
                Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
                    return Reason::NoRoute;
                }
                _ => cause = inner.source(),
            }
        }
        // Neither resolvers nor TLS have a kind of their own.
        if said.contains("dns error") {
            return Reason::UnknownHost;
        }
        if let Some((_, certificate)) = said.split_once("invalid peer certificate: ") {
            return Reason::Certificate(certificate.to_owned());
        }
        Reason::Other(said)
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Reason::Refused => {
                "check that the API server is running and that the kubeconfig has the right address \
                 and port"
            }
            Reason::TimedOut | Reason::NoRoute => {
                "check that the cluster is up, and check VPN, proxy and firewall"
            }
            Reason::UnknownHost => {
                "check the server's name in the kubeconfig, and check DNS and VPN"
            }
            Reason::Certificate(_) => {
                "check `certificate-authority-data` and the server's name in the kubeconfig; fetch a \
                 new kubeconfig if the cluster was recreated"
            }
            Reason::Other(_) => {
                "check that the cluster is up and that the kubeconfig has the right address"
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Refused => f.write_str("connection refused"),
            Reason::TimedOut => f.write_str("connection timed out"),
            Reason::NoRoute => f.write_str("no route to host"),
            Reason::UnknownHost => f.write_str("host name not found"),
            Reason::Certificate(why) => write!(f, "the server's certificate is not trusted: {why}"),
            Reason::Other(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cluster { target, place } = &*self.cluster;
        match (&target.context, place) {
            (Some(context), Some(place)) => {
                write!(f, "{} (context `{context}` of {place})", self.reason)
            }
            _ => write!(f, "{} (the cluster that this runs in)", self.reason),
        }
    }
}

impl Error for Unreachable {}

/// The same client, whose failed requests say which cluster did not answer.
pub(crate) fn addressed(client: &Client, target: Target, place: Option<String>) -> Client {
    let cluster = Arc::new(Cluster { target, place });
    layered(client, move |client, request| {
        let cluster = cluster.clone();
        async move {
            client.send(request).await.map_err(|error| match error {
                kube::Error::Service(source) if is_transport(&*source) => {
                    let reason = Reason::of(&*source);
                    kube::Error::Service(Box::new(Unreachable { cluster, reason }))
                }
                error => error,
            })
        }
    })
}

/// A failing credential plugin says nothing about the connection.
fn is_transport(error: &(dyn Error + 'static)) -> bool {
    !error.is::<kube::client::AuthError>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Wrapped {
        text: &'static str,
        source: io::Error,
    }

    #[test]
    fn reasons_are_told_apart() {
        let reason = |text, source| Reason::of(&Wrapped { text, source });
        let kind = |kind: io::ErrorKind| reason("tcp connect error", kind.into());
        assert_eq!(kind(io::ErrorKind::ConnectionRefused), Reason::Refused);
        assert_eq!(kind(io::ErrorKind::TimedOut), Reason::TimedOut);
        let lookup = io::Error::other("failed to lookup address information");
        assert_eq!(reason("dns error", lookup), Reason::UnknownHost);
        let certificate = io::Error::other("invalid peer certificate: UnknownIssuer");
        let untrusted = Reason::Certificate("UnknownIssuer".to_owned());
        assert_eq!(reason("client error (Connect)", certificate), untrusted);
        assert_eq!(reason("tls", io::Error::other("odd")), Reason::Other("tls: odd".to_owned()));
    }
}
