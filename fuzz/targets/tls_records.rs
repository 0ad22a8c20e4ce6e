//! TLS records: whatever arrives at the acceptor of client connections, in place of a ClientHello, edited into
//! an honest handshake or behind it, the session goes on or ends. It gives out no plain bytes that an honest
//! client has not sent, and keeps and answers no more bytes than it got. The first byte chooses where the rest
//! goes, and the size of the pieces.
#![no_main]

use std::sync::{Arc, OnceLock};

use junctor_kernel::transport::security::{ClientSecurity, Encryption};
use junctor_tls::client_tls::{CertificateFiles, ClientTls};
use libfuzzer_sys::fuzz_target;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};

/// The longest answer of an acceptor: its certificates, its part of the key exchange, and an alert.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Takes every certificate.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

fn client(is_old: bool) -> ClientConnection {
    static CONFIGS: OnceLock<[Arc<ClientConfig>; 2]> = OnceLock::new();
    let make = |versions: &[&'static rustls::SupportedProtocolVersion]| {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).expect("versions");
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone));
        Arc::new(builder.with_no_client_auth())
    };
    let configs = CONFIGS.get_or_init(|| [make(&[&rustls::version::TLS13]), make(&[&rustls::version::TLS12])]);
    let name = ServerName::try_from("localhost").expect("a name");
    ClientConnection::new(Arc::clone(&configs[usize::from(is_old)]), name).expect("a session")
}

fn server() -> Box<dyn Encryption> {
    static SECURITY: OnceLock<ClientTls> = OnceLock::new();
    let open = || ClientTls::open(None, CertificateFiles::default()).expect("certificates");
    SECURITY.get_or_init(open).accept().expect("a session")
}

/// The server's end, and what came out of it.
struct Acceptor {
    session: Box<dyn Encryption>,
    plain: Vec<u8>,
    is_over: bool,
}

impl Acceptor {
    fn receive(&mut self, bytes: &[u8], piece: usize) -> Vec<u8> {
        let mut answer = Vec::new();
        for piece in bytes.chunks(piece) {
            if !self.is_over {
                self.is_over = self.session.receive(piece, &mut self.plain).is_err();
            }
            self.session.write(&mut answer);
        }
        assert!(answer.len() <= ANSWER_BYTES_MAX, "an answer of {} bytes", answer.len());
        answer
    }
}

/// A handshake in which each three bytes of `edits` change a byte of what the client sends.
fn handshake(is_old: bool, edits: &[u8], piece: usize) -> Acceptor {
    let (mut client, mut edits) = (client(is_old), edits);
    let mut acceptor = Acceptor { session: server(), plain: Vec::new(), is_over: false };
    for _ in 0..4 {
        let mut flight = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut flight).expect("memory takes all bytes");
        }
        while let Some(([low, high, change], rest)) = edits.split_first_chunk::<3>() {
            let at = usize::from(u16::from_le_bytes([*low, *high]));
            // The top bit leaves the edit to the next flight.
            if at >= 1 << 15 {
                edits = rest;
                break;
            }
            match flight.len() {
                0 => break,
                length => flight[at % length] ^= change,
            }
            edits = rest;
        }
        let mut answer: &[u8] = &acceptor.receive(&flight, piece);
        while !answer.is_empty() && client.read_tls(&mut answer).is_ok() {
            if client.process_new_packets().is_err() {
                return acceptor;
            }
        }
    }
    acceptor
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&how, bytes)) = bytes.split_first() else { return };
    let (is_old, piece) = (how & 4 != 0, usize::from(how >> 3) * 8 + 1);
    match how & 3 {
        0 | 3 => {
            let mut acceptor = Acceptor { session: server(), plain: Vec::new(), is_over: false };
            acceptor.receive(bytes, piece);
            assert!(acceptor.plain.is_empty(), "a stranger has sent plain bytes");
        }
        1 => {
            let acceptor = handshake(is_old, bytes, piece);
            assert!(acceptor.plain.is_empty(), "an edited handshake has plain bytes");
        }
        _ => {
            let mut acceptor = handshake(is_old, &[], usize::MAX);
            assert!(acceptor.session.agreed().is_some(), "an honest handshake ends well");
            acceptor.receive(bytes, piece);
            assert!(acceptor.plain.is_empty(), "forged records have plain bytes");
        }
    }
});
