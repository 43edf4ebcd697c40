//! Whether a service answers a GET with the status that is expected.

use std::sync::Arc;

use http::{Request, header};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tiphys_model::criterion::HttpCriterion;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error as TlsError, SignatureScheme,
};

use super::route::{Connection, Stream};
use tiphys_model::chain;

pub(super) async fn ask(
    connection: Connection,
    wanted: &HttpCriterion,
    host: &str,
) -> Result<(), String> {
    let Connection { stream, refused } = connection;
    let answered = if wanted.tls {
        match encrypted(stream, host).await {
            Ok(stream) => get(stream, wanted, host).await,
            Err(error) => Err(error),
        }
    } else {
        get(stream, wanted, host).await
    };
    match answered {
        Ok(status) if status == wanted.expect => Ok(()),
        Ok(status) => Err(format!("it answers {status}, expected {}", wanted.expect)),
        Err(error) => {
            let refused = Connection { stream: Box::new(tokio::io::empty()), refused };
            Err(refused.refusal().await.unwrap_or(error))
        }
    }
}

/// The status; the rest of the answer does not matter.
async fn get(
    stream: impl Stream + 'static,
    wanted: &HttpCriterion,
    host: &str,
) -> Result<u16, String> {
    let request = Request::get(&wanted.path)
        .header(header::HOST, format!("{host}:{}", wanted.port))
        .header(header::USER_AGENT, "tiphys")
        .body(Empty::<Bytes>::new())
        .map_err(|error| format!("invalid path: {error}"))?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| chain(&error))?;
    // Ends with this: nobody is left waiting for a server that hangs.
    let mut driving = JoinSet::new();
    driving.spawn(connection);
    let answer = sender.send_request(request).await.map_err(|error| chain(&error))?;
    Ok(answer.status().as_u16())
}

async fn encrypted(stream: Box<dyn Stream>, host: &str) -> Result<impl Stream + 'static, String> {
    let name = ServerName::try_from(host.to_owned()).map_err(|error| chain(&error))?;
    let config = ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map_err(|error| chain(&error))
}

/// Accepts every certificate, as a kubelet does in its probes: nothing secret is sent, only a
/// status is read, and authorities that were made in the cluster are known nowhere else.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
