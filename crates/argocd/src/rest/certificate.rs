//! How Argo CD's API server is known: by the very certificate that `tiphys configure` has found or the
//! platform file gives, or by the authority that came with it.
//!
//! The certificate alone would not do: one that a public authority has signed names no authority that
//! we were given, and one for a public name does not have the name that we call it by.

use std::sync::Arc;

use tiphys_model::{Exit, Explain, Explanation, chain};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{self, CryptoProvider};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::VerifierBuilderError;
use tokio_rustls::rustls::{self, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// The authorities that this machine trusts. Some of its certificates may be unusable; without any, every
/// server is unknown, and says so.
#[must_use]
pub fn authorities_of_this_machine() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// A certificate that nothing can be verified with.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum CertificateError {
    Unreadable(#[from] pem::Error),
    Unusable(#[from] rustls::Error),
    Unverifiable(#[from] VerifierBuilderError),
    None,
}

impl Explain for CertificateError {
    fn explain(&self) -> Explanation {
        let why = match self {
            CertificateError::Unreadable(error) => chain(error),
            CertificateError::Unusable(error) => chain(error),
            CertificateError::Unverifiable(error) => chain(error),
            CertificateError::None => "it contains no certificate".to_owned(),
        };
        Explanation::new(Exit::Configuration, "cannot use Argo CD's certificate", why)
    }
}

#[derive(Debug)]
pub(super) struct Verifier {
    known: Vec<CertificateDer<'static>>,
    signed: Arc<WebPkiServerVerifier>,
}

impl Verifier {
    pub(super) fn trusting(pem: &[u8]) -> Result<Self, CertificateError> {
        let known = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>()?;
        let mut roots = RootCertStore::empty();
        for certificate in &known {
            roots.add(certificate.clone())?;
        }
        if roots.is_empty() {
            return Err(CertificateError::None);
        }
        let provider: Arc<CryptoProvider> = Arc::new(crypto::ring::default_provider());
        let signed = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build()?;
        Ok(Verifier { known, signed })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.known.iter().any(|known| known == shown) {
            return Ok(ServerCertVerified::assertion());
        }
        self.signed.verify_server_cert(shown, intermediates, name, ocsp_response, now)
    }

    // Whoever shows a certificate has to sign with its key, also if it is the one we know.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

    use super::*;

    struct Authority(CertifiedIssuer<'static, KeyPair>);

    impl Authority {
        fn new() -> Self {
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
        }

        fn sign(&self, name: &str) -> (CertificateDer<'static>, String) {
            let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            let key = KeyPair::generate().unwrap();
            let certificate = params.signed_by(&key, &self.0).unwrap();
            (certificate.der().clone(), certificate.pem())
        }
    }

    fn knows(pem: &str, shown: &CertificateDer<'_>) -> bool {
        let verifier = Verifier::trusting(pem.as_bytes()).unwrap();
        let name = ServerName::try_from("argocd-server.argocd.svc").unwrap();
        verifier.verify_server_cert(shown, &[], &name, &[], UnixTime::now()).is_ok()
    }

    #[test]
    fn a_certificate_is_known_by_itself_or_by_its_authority_and_our_name() {
        let authority = Authority::new();
        let (public, pem) = authority.sign("argocd.example.org");
        assert!(knows(&pem, &public), "whatever its name and whoever has signed it");
        let (other, _) = authority.sign("argocd.example.org");
        assert!(!knows(&pem, &other), "another one of the same name and authority");
        let both = format!("{pem}{}", authority.0.pem());
        let (inner, _) = authority.sign("argocd-server.argocd.svc");
        assert!(knows(&both, &inner), "a renewed one");
        assert!(!knows(&both, &other), "the name of another server");
        let (stranger, _) = Authority::new().sign("argocd-server.argocd.svc");
        assert!(!knows(&both, &stranger));
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        assert!(matches!(Verifier::trusting(b""), Err(CertificateError::None)));
        let torn = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(Verifier::trusting(torn), Err(CertificateError::Unusable(_))));
    }
}
