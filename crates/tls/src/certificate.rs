//! The certificate authority of a cluster, and the certificates that it issues to nodes.
//!
//! A certificate names its node in its subject alternative names, as `node-ID.junctor`. Certificates have no
//! useful end of validity by themselves: a node is excluded by its eviction and by a new authority, not by a
//! date on which a cluster would fall silent.

use junctor_kernel::NodeId;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, Error, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// A certificate and its private key, both in PEM.
#[derive(Clone)]
pub struct Certificate {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// The name in the authority of certificates for clients.
const CLIENTS: &str = "clients";

/// The names by which clients on this machine reach the server.
const LOCAL_NAMES: &[&str] = &["localhost", "127.0.0.1", "::1"];

/// The name of a node in its certificate.
pub fn name_of(node: NodeId) -> String {
    format!("node-{}.junctor", node.0)
}

/// Makes the authority of a new cluster.
///
/// # Errors
/// The system has no random bytes, or the cluster's name is not printable ASCII.
pub fn create_authority(cluster: &str) -> Result<Certificate, Error> {
    let key = KeyPair::generate()?;
    let certificate = authority(cluster)?.self_signed(&key)?;
    Ok(Certificate { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Makes the certificate of a node of the cluster whose authority has this private key.
///
/// # Errors
/// The key is not a private key in PEM.
pub fn issue(cluster: &str, authority_key: &str, node: NodeId) -> Result<Certificate, Error> {
    let issuer = Issuer::new(authority(cluster)?, KeyPair::from_pem(authority_key)?);
    let mut parameters = CertificateParams::new(vec![name_of(node)])?;
    parameters.distinguished_name.push(DnType::CommonName, name_of(node));
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // A node accepts connections of some nodes and makes connections to others.
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    parameters.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = parameters.signed_by(&key, &issuer)?;
    Ok(Certificate { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Makes a certificate of a server that clients connect to, or of a client. The server's is valid for this
/// machine's own names.
///
/// # Errors
/// The key is not a private key in PEM.
pub fn issue_for_clients(authority_key: &str, is_server: bool) -> Result<Certificate, Error> {
    let issuer = Issuer::new(authority(CLIENTS)?, KeyPair::from_pem(authority_key)?);
    let (names, common_name, purpose) = match is_server {
        true => (LOCAL_NAMES, "Junctor server", ExtendedKeyUsagePurpose::ServerAuth),
        false => (&[][..], "Junctor client", ExtendedKeyUsagePurpose::ClientAuth),
    };
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut parameters = CertificateParams::new(names)?;
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![purpose];
    parameters.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = parameters.signed_by(&key, &issuer)?;
    Ok(Certificate { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Makes the authority of a node's certificates for clients.
///
/// # Errors
/// The system has no random bytes.
pub fn create_authority_for_clients() -> Result<Certificate, Error> {
    create_authority(CLIENTS)
}

fn authority(cluster: &str) -> Result<CertificateParams, Error> {
    let mut parameters = CertificateParams::new(Vec::new())?;
    parameters.distinguished_name.push(DnType::CommonName, format!("Junctor cluster {cluster}"));
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    Ok(parameters)
}
