//! The certificates of a lab: one authority, what it signs, and the key for service accounts.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::error::LabError;
use crate::home::Home;

/// Makes all certificates unless they are there.
pub(crate) fn make(home: &Home, addresses: &[IpAddr]) -> Result<(), LabError> {
    if home.path("pki/service-accounts.key").exists() {
        return Ok(());
    }
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "tiphys-lab");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority = params.self_signed(&key)?;
    home.write("pki/ca.crt", authority.pem())?;
    let issuer = Issuer::new(params, key);

    let names = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ];
    let mut server = CertificateParams::new(names.map(str::to_owned).to_vec())?;
    server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    server.subject_alt_names.extend(addresses.iter().map(|address| SanType::IpAddress(*address)));
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    sign(home, "apiserver", &server, &issuer)?;
    // It listens on the same addresses.
    sign(home, "registry", &server, &issuer)?;
    let mut nats = server.clone();
    nats.subject_alt_names = vec![SanType::DnsName("nats.argo-events".try_into()?)];
    sign(home, "nats", &nats, &issuer)?;

    let mut client = CertificateParams::new(Vec::new())?;
    client.distinguished_name.push(DnType::CommonName, "kube-apiserver-kubelet-client");
    client.distinguished_name.push(DnType::OrganizationName, "system:masters");
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    sign(home, "kubelet-client", &client, &issuer)?;

    // Written last: it tells that the others are whole.
    let key = KeyPair::generate()?;
    home.write("pki/service-accounts.pub", key.public_key_pem())?;
    home.write("pki/service-accounts.key", key.serialize_pem())?;
    Ok(())
}

fn sign(
    home: &Home,
    name: &str,
    params: &CertificateParams,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<(), LabError> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    home.write(&format!("pki/{name}.crt"), certificate.pem())?;
    home.write(&format!("pki/{name}.key"), key.serialize_pem())?;
    Ok(())
}
