//! TLS sessions, and those between nodes: TLS 1.3 with certificates at both ends.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use junctor_kernel::NodeId;
use junctor_kernel::transport::hello::Refusal;
use junctor_kernel::transport::security::{Agreed, CertificateNames, Encryption, LinkSecurity, SecurityFault};
use rustls::client::{Resumption, verify_server_name};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, CipherSuite, ClientConfig, ClientConnection, Connection, Error, ProtocolVersion, RootCertStore,
    ServerConfig, ServerConnection,
};

use crate::certificate::name_of;
use crate::distinguished_name::names_in;

/// TLS for the links of a node.
#[derive(Clone, Debug)]
pub struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Tls {
    /// TLS with the node's own certificate, for other nodes whose certificates are of the same authority. All
    /// three are PEM.
    ///
    /// # Errors
    /// A text is no certificate or private key, or the key does not belong to the certificate.
    pub fn new(authority: &str, certificate: &str, key: &str) -> Result<Self, Error> {
        let damaged = |error: rustls::pki_types::pem::Error| Error::General(error.to_string());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).map_err(damaged)?)?;
        let roots = Arc::new(roots);
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(damaged)?];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(damaged)?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let versions = &[&rustls::version::TLS13];

        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)?
            .with_root_certificates(roots.clone())
            .with_client_auth_cert(chain.clone(), key.clone_key())?;
        // Connections live long. A resumed session would skip the certificates, and tickets are bytes that
        // follow the handshake when the connection changes its thread.
        client.resumption = Resumption::disabled();

        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone())
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)?;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }
}

impl LinkSecurity for Tls {
    fn connect(&self, node: NodeId) -> Option<Box<dyn Encryption>> {
        let name = ServerName::try_from(name_of(node)).ok()?;
        let connection = ClientConnection::new(self.client.clone(), name).ok()?;
        Some(Box::new(Session::new(Connection::Client(connection))))
    }

    fn accept(&self) -> Option<Box<dyn Encryption>> {
        let connection = ServerConnection::new(self.server.clone()).ok()?;
        Some(Box::new(Session::new(Connection::Server(connection))))
    }
}

/// The session of one connection.
pub(crate) struct Session {
    connection: Connection,
    records: RecordMeter,
    /// Counts the end of the handshake, once.
    finished: Option<Arc<AtomicU64>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Session(..)")
    }
}

impl Session {
    pub(crate) fn new(mut connection: Connection) -> Self {
        // Links bound what they send, and everything is taken out at once.
        connection.set_buffer_limit(None);
        Self { connection, records: RecordMeter::default(), finished: None }
    }

    /// A session that counts the end of its handshake.
    pub(crate) fn counted(connection: Connection, finished: &Arc<AtomicU64>) -> Self {
        Self { finished: Some(Arc::clone(finished)), ..Self::new(connection) }
    }
}

impl Encryption for Session {
    fn receive(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), SecurityFault> {
        self.records.take(bytes);
        while !bytes.is_empty() {
            let taken = self.connection.read_tls(&mut bytes);
            let state = self.connection.process_new_packets().map_err(|error| fault(&error))?;
            if !self.connection.is_handshaking()
                && let Some(finished) = self.finished.take()
            {
                finished.fetch_add(1, Ordering::Relaxed);
            }
            let length = state.plaintext_bytes_to_read();
            if length > 0 {
                let start = plain.len();
                plain.resize(start + length, 0);
                let read = self.connection.reader().read_exact(&mut plain[start..]);
                read.map_err(|_| UNENCRYPTED)?;
            }
            if !matches!(taken, Ok(1..)) {
                return Err(UNENCRYPTED);
            }
        }
        Ok(())
    }

    fn has_half_record(&self) -> bool {
        self.records.is_within()
    }

    fn send(&mut self, plain: &[u8]) {
        // Memory takes all bytes. A session that is over sends nothing more.
        let _ = self.connection.writer().write_all(plain);
    }

    fn write(&mut self, output: &mut Vec<u8>) {
        while self.connection.wants_write() {
            // A vector takes all bytes.
            let _ = self.connection.write_tls(output);
        }
    }

    fn is_with(&self, node: NodeId) -> bool {
        if self.connection.is_handshaking() {
            return false;
        }
        let certificate = self.connection.peer_certificates().and_then(|chain| chain.first());
        let parsed = certificate.and_then(|certificate| ParsedCertificate::try_from(certificate).ok());
        let name = ServerName::try_from(name_of(node)).ok();
        parsed.zip(name).is_some_and(|(parsed, name)| verify_server_name(&parsed, &name).is_ok())
    }

    fn close(&mut self) {
        self.connection.send_close_notify();
    }

    fn agreed(&self) -> Option<Agreed> {
        let version = match self.connection.protocol_version()? {
            ProtocolVersion::TLSv1_2 => "TLSv1.2",
            ProtocolVersion::TLSv1_3 => "TLSv1.3",
            _ => return None,
        };
        let cipher = cipher_name(self.connection.negotiated_cipher_suite()?.suite());
        Some(Agreed { version, cipher, has_certificate: self.connection.peer_certificates().is_some() })
    }

    fn certificate_names(&self) -> Option<CertificateNames> {
        names_in(self.connection.peer_certificates()?.first()?)
    }
}

/// Follows the headers of records in received bytes, because the library does not tell whether it keeps a
/// part of a record.
#[derive(Debug, Default)]
struct RecordMeter {
    /// Type, version and length.
    header: [u8; 5],
    header_bytes: usize,
    /// Bytes of the current record that have not arrived.
    missing_bytes: usize,
}

impl RecordMeter {
    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let wanted = match self.missing_bytes {
                0 => self.header.len() - self.header_bytes,
                missing => missing,
            };
            let (taken, rest) = bytes.split_at(wanted.min(bytes.len()));
            bytes = rest;
            if self.missing_bytes > 0 {
                self.missing_bytes -= taken.len();
                continue;
            }
            self.header[self.header_bytes..self.header_bytes + taken.len()].copy_from_slice(taken);
            self.header_bytes += taken.len();
            if self.header_bytes == self.header.len() {
                self.header_bytes = 0;
                self.missing_bytes = usize::from(u16::from_be_bytes([self.header[3], self.header[4]]));
            }
        }
    }

    fn is_within(&self) -> bool {
        self.header_bytes > 0 || self.missing_bytes > 0
    }
}

/// OpenSSL's name of a cipher suite. The list has all suites of the provider.
pub(crate) fn cipher_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-ECDSA-CHACHA20-POLY1305",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        _ => "unknown",
    }
}

/// The bytes are not those of a TLS session.
const UNENCRYPTED: SecurityFault = SecurityFault { refusal: Refusal::Unencrypted, is_own: true };

fn fault(error: &Error) -> SecurityFault {
    use rustls::AlertDescription::{
        BadCertificate, CertificateExpired, CertificateRequired, CertificateUnknown, DecryptError, UnknownCA,
    };
    let (refusal, is_own) = match error {
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            (Refusal::Expired, true)
        }
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented => (Refusal::Certificate, true),
        Error::AlertReceived(CertificateExpired) => (Refusal::Expired, false),
        Error::AlertReceived(BadCertificate | CertificateRequired | CertificateUnknown | DecryptError | UnknownCA) => {
            (Refusal::Certificate, false)
        }
        Error::AlertReceived(_) => (Refusal::Unencrypted, false),
        _ => (Refusal::Unencrypted, true),
    };
    SecurityFault { refusal, is_own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_half_until_its_last_byte() {
        let records = [&[23, 3, 3, 0, 2, 1, 2][..], &[21, 3, 3, 0, 0], &[23, 3, 3, 1, 0], &[7; 256]].concat();
        let ends = [0, 7, 12, records.len()];
        for chunk in [1, 2, 3, 100] {
            let (mut meter, mut taken) = (RecordMeter::default(), 0);
            for bytes in records.chunks(chunk) {
                meter.take(bytes);
                taken += bytes.len();
                assert_eq!(meter.is_within(), !ends.contains(&taken), "{taken} in chunks of {chunk}");
            }
        }
    }
}
