//! TLS between the driver and a node.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::version::TLS12;
use rustls::{
    ClientConfig, ClientConnection, DEFAULT_VERSIONS, DigitallySignedStruct, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};

use junctor_wire::{Reply, next_frame, reply};

use super::error::{Error, Result};
use super::transport::Transport;

/// Maximum number of plain bytes that are encrypted at a time, so that a long request is not in memory twice.
const PIECE_BYTES: usize = 64 * 1024;

/// How strictly the driver checks the certificate of a node.
#[derive(Clone, Copy, Debug)]
pub enum Verification<'a> {
    /// Nothing, as MySQL's `REQUIRED`. A listener learns nothing, but an attacker between driver and node can
    /// pass for the node.
    None,
    /// One of these authorities, in PEM, issued it, as `VERIFY_CA`.
    Authority(&'a [u8]),
    /// As [`Verification::Authority`], and it is for this host name or address, as `VERIFY_IDENTITY`.
    Identity(&'a [u8], &'a str),
}

/// TLS for connections of the driver. Copies share their contents.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tls {
    /// TLS 1.2 and 1.3 for nodes whose certificates fulfil `verification`.
    ///
    /// # Errors
    /// 2026 if the authorities are no certificates, or the name is none.
    pub fn new(verification: Verification<'_>) -> Result<Tls> {
        Tls::build(verification, None, DEFAULT_VERSIONS)
    }

    /// As [`Tls::new`], with TLS 1.2 only.
    ///
    /// # Errors
    /// As [`Tls::new`].
    pub fn only_1_2(verification: Verification<'_>) -> Result<Tls> {
        Tls::build(verification, None, &[&TLS12])
    }

    /// As [`Tls::new`], with a certificate of the client and its private key, both in PEM, for accounts that
    /// demand one.
    ///
    /// # Errors
    /// As [`Tls::new`]; 2026 also if the key is not that of the certificate.
    pub fn with_certificate(verification: Verification<'_>, certificate: &[u8], key: &[u8]) -> Result<Tls> {
        Tls::build(verification, Some((certificate, key)), DEFAULT_VERSIONS)
    }

    fn build(
        verification: Verification<'_>,
        shown: Option<(&[u8], &[u8])>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<Tls> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let (authorities, name) = match verification {
            Verification::None => (None, None),
            Verification::Authority(authorities) => (Some(roots(authorities)?), None),
            Verification::Identity(authorities, name) => {
                let name =
                    ServerName::try_from(name.to_owned()).map_err(|_| Error::tls(&format!("no name: {name}")))?;
                (Some(roots(authorities)?), Some(name))
            }
        };
        let verifier = Verifier { authorities, checks_name: name.is_some(), algorithms };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(|error| Error::tls(&error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match shown {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| Error::tls(&error))?;
                let built = builder.with_client_auth_cert(certificates(certificate)?, key);
                built.map_err(|error| Error::tls(&error))?
            }
        };
        // A resumed session would outlive new certificates.
        config.resumption = Resumption::disabled();
        config.enable_sni = name.is_some();
        let any_name = || ServerName::from(rustls::pki_types::IpAddr::from(std::net::IpAddr::from([0; 4])));
        Ok(Tls { config: Arc::new(config), name: name.unwrap_or_else(any_name) })
    }

    /// Performs the handshake over a transport on which the node expects it.
    pub(crate) async fn connect(&self, transport: Box<dyn Transport>) -> Result<TlsTransport> {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let mut session = session.map_err(|error| Error::tls(&error))?;
        // The transport takes everything out after each piece.
        session.set_buffer_limit(None);
        let (records, plain) = (Vec::new(), Vec::new());
        let (has_heard, is_closed) = (false, false);
        let mut encrypted = TlsTransport { transport, session, records, taken: 0, plain, has_heard, is_closed };
        let outcome = std::future::poll_fn(|context| encrypted.poll_handshake(context)).await;
        outcome.map_err(|error| Error::tls(&error))?;
        Ok(encrypted)
    }
}

fn roots(authorities: &[u8]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(authorities)? {
        roots.add(authority).map_err(|error| Error::tls(&error))?;
    }
    Ok(roots)
}

fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(text)
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| Error::tls(&error))?;
    match certificates.is_empty() {
        true => Err(Error::tls(&"the text has no certificate in PEM")),
        false => Ok(certificates),
    }
}

/// Checks a node's certificate as far as the mode demands. The node always proves that it has the key of its
/// certificate.
#[derive(Debug)]
struct Verifier {
    authorities: Option<RootCertStore>,
    checks_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        if let Some(authorities) = &self.authorities {
            let certificate = ParsedCertificate::try_from(certificate)?;
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, authorities, intermediates, now, algorithms)?;
            if self.checks_name {
                verify_server_name(&certificate, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// An encrypted transport.
pub(crate) struct TlsTransport {
    transport: Box<dyn Transport>,
    session: ClientConnection,
    /// Records that the inner transport has not sent. It may have sent a part of them, so nothing is added.
    records: Vec<u8>,
    /// Number of bytes of the current buffer that are encrypted already.
    taken: usize,
    /// Plain bytes that have arrived.
    plain: Vec<u8>,
    /// Bytes of the node have arrived.
    has_heard: bool,
    /// The node has ended the session.
    is_closed: bool,
}

/// Why a node begins no TLS, if its first bytes are an error. Records of TLS begin in another way.
fn refusal(bytes: &[u8]) -> Option<String> {
    let (frame, _) = next_frame(bytes).filter(|(frame, _)| frame.kind == reply::kind::FAILED)?;
    match Reply::parse(frame) {
        Ok((_, Reply::Failed { message, .. })) => Some(message.to_owned()),
        _ => None,
    }
}

impl TlsTransport {
    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_flush(context))?;
            if !self.session.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            let bytes = ready!(self.transport.poll_receive(context))?;
            if !std::mem::replace(&mut self.has_heard, true)
                && let Some(why) = refusal(&bytes)
            {
                return Poll::Ready(Err(io::Error::other(why)));
            }
            if let Err(error) = self.on_received(bytes) {
                // The node learns why, if its socket takes the bytes at once.
                let _ = self.poll_flush(context);
                return Poll::Ready(Err(error));
            }
        }
    }

    /// Sends all records that the session has made.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.records.is_empty() {
                while self.session.wants_write() {
                    self.session.write_tls(&mut self.records)?;
                }
            }
            if self.records.is_empty() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.transport.poll_send(context, &mut self.records))?;
        }
    }

    /// Takes records, and keeps their plain bytes. Empty bytes are the end of the stream.
    fn on_received(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        if bytes.is_empty() {
            // Without the end of the session, whoever stands between could have cut it off.
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the node closed the connection"));
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() && !self.is_closed {
            // The session has room, because its plain bytes are taken out each time.
            if self.session.read_tls(&mut rest)? == 0 {
                break;
            }
            let state = self.session.process_new_packets();
            let state = state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let (start, length) = (self.plain.len(), state.plaintext_bytes_to_read());
            self.is_closed = state.peer_has_closed();
            self.plain.resize(start + length, 0);
            self.session.reader().read_exact(&mut self.plain[start..])?;
        }
        self.transport.recycle_buffer(bytes);
        Ok(())
    }
}

impl Transport for TlsTransport {
    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &mut Vec<u8>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_flush(context))?;
            if self.taken == bytes.len() {
                break;
            }
            let end = bytes.len().min(self.taken + PIECE_BYTES);
            self.session.writer().write_all(&bytes[self.taken..end])?;
            self.taken = end;
        }
        self.taken = 0;
        bytes.clear();
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        loop {
            if !self.plain.is_empty() || self.is_closed {
                return Poll::Ready(Ok(std::mem::take(&mut self.plain)));
            }
            // The answer to a change of keys.
            if let Poll::Ready(Err(error)) = self.poll_flush(context) {
                return Poll::Ready(Err(error));
            }
            let bytes = ready!(self.transport.poll_receive(context))?;
            self.on_received(bytes)?;
        }
    }

    fn is_private(&self) -> bool {
        true
    }

    fn take_buffer(&mut self, bytes: usize) -> Vec<u8> {
        self.transport.take_buffer(bytes)
    }

    fn recycle_buffer(&mut self, bytes: Vec<u8>) {
        self.transport.recycle_buffer(bytes);
    }
}
