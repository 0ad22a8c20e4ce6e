mod client_tls;

use std::sync::Arc;

use junctor_kernel::NodeId;
use junctor_kernel::transport::hello::Refusal;
use junctor_kernel::transport::security::{Encryption, LinkSecurity, SecurityFault};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::certificate::{Certificate, create_authority, issue, name_of};
use crate::session::Tls;

const CERTIFICATE: Refusal = Refusal::Certificate;

fn tls(authority: &Certificate, node: u8) -> Tls {
    let own = issue("test", &authority.key, NodeId(node)).unwrap();
    Tls::new(&authority.certificate, &own.certificate, &own.key).unwrap()
}

fn authority() -> Certificate {
    create_authority("test").unwrap()
}

/// A connection between two sessions; end 0 made it.
struct Wire {
    ends: [Box<dyn Encryption>; 2],
    plain: [Vec<u8>; 2],
    /// All bytes that crossed.
    crossed: Vec<u8>,
}

impl Wire {
    fn new(one: &Tls, two: &Tls, to: u8) -> Self {
        let ends = [one.connect(NodeId(to)).unwrap(), two.accept().unwrap()];
        Self { ends, plain: Default::default(), crossed: Vec::new() }
    }

    /// What an end has to write.
    fn output(&mut self, end: usize) -> Vec<u8> {
        let mut output = Vec::new();
        self.ends[end].write(&mut output);
        output
    }

    /// Carries bytes until neither end has any. The fault names its end.
    fn settle(&mut self) -> Result<(), (usize, SecurityFault)> {
        loop {
            let mut is_quiet = true;
            for end in 0..2 {
                let output = self.output(end);
                self.crossed.extend_from_slice(&output);
                is_quiet &= output.is_empty();
                // Records arrive in pieces.
                for piece in output.chunks(100) {
                    let received = self.ends[1 - end].receive(piece, &mut self.plain[1 - end]);
                    received.map_err(|fault| (1 - end, fault))?;
                }
            }
            if is_quiet {
                return Ok(());
            }
        }
    }

    /// The fault that ends the connection, and the one that the other end then learns.
    fn faults(&mut self) -> (usize, SecurityFault, Option<SecurityFault>) {
        let (end, fault) = self.settle().unwrap_err();
        let last = self.output(end);
        let told = self.ends[1 - end].receive(&last, &mut self.plain[1 - end]);
        (end, fault, told.err())
    }
}

fn own(refusal: Refusal) -> SecurityFault {
    SecurityFault { refusal, is_own: true }
}

#[test]
fn both_ends_prove_their_nodes_and_exchange_encrypted_bytes() {
    let authority = authority();
    let mut wire = Wire::new(&tls(&authority, 1), &tls(&authority, 2), 2);
    // The first bytes wait for the end of the handshake.
    wire.ends[0].send(b"hello of node 1");
    wire.settle().unwrap();
    assert_eq!(wire.plain[1], b"hello of node 1");
    let long: Vec<u8> = (0..300_000_u32).map(|byte| (byte % 251) as u8).collect();
    wire.ends[1].send(&long);
    wire.settle().unwrap();
    assert_eq!(wire.plain[0], long);
    assert!(wire.ends[0].is_with(NodeId(2)) && wire.ends[1].is_with(NodeId(1)));
    assert!(!wire.ends[0].is_with(NodeId(1)) && !wire.ends[1].is_with(NodeId(12)));
    let crossed = wire.crossed;
    assert!(!crossed.windows(15).any(|bytes| bytes == b"hello of node 1" || bytes == &long[..15]));
}

#[test]
fn nobody_is_proven_during_the_handshake() {
    let authority = authority();
    let mut wire = Wire::new(&tls(&authority, 1), &tls(&authority, 2), 2);
    let first = wire.output(0);
    wire.ends[1].receive(&first, &mut Vec::new()).unwrap();
    assert!(!wire.ends[0].is_with(NodeId(2)) && !wire.ends[1].is_with(NodeId(1)));
}

#[test]
fn certificates_of_another_authority_are_refused() {
    let (authority, other) = (authority(), authority());
    let mut wire = Wire::new(&tls(&authority, 1), &tls(&other, 2), 2);
    let told = Some(SecurityFault { refusal: CERTIFICATE, is_own: false });
    assert_eq!(wire.faults(), (0, own(CERTIFICATE), told));
    // A node that trusts both authorities gets as far as showing its certificate.
    let stranger = issue("test", &other.key, NodeId(1)).unwrap();
    let stranger = Tls::new(&authority.certificate, &stranger.certificate, &stranger.key).unwrap();
    let mut wire = Wire::new(&stranger, &tls(&authority, 2), 2);
    wire.ends[0].send(b"hello");
    assert_eq!(wire.faults(), (1, own(CERTIFICATE), told));
    assert!(wire.plain[1].is_empty());
}

#[test]
fn a_certificate_stands_for_one_node() {
    let authority = authority();
    // Node 3 listens at the address of node 2.
    let mut wire = Wire::new(&tls(&authority, 1), &tls(&authority, 3), 2);
    assert_eq!(wire.faults().1, own(CERTIFICATE));
    // Node 3 connects; its hello cannot be that of node 1.
    let mut wire = Wire::new(&tls(&authority, 3), &tls(&authority, 2), 2);
    wire.settle().unwrap();
    assert!(wire.ends[1].is_with(NodeId(3)) && !wire.ends[1].is_with(NodeId(1)));
}

#[test]
fn a_node_without_a_certificate_is_refused() {
    let authority = authority();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name_of(NodeId(2))).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut server = tls(&authority, 2).accept().unwrap();
    let fault = loop {
        let mut output = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut output).unwrap();
        }
        if let Err(fault) = server.receive(&output, &mut Vec::new()) {
            break fault;
        }
        let mut answer = Vec::new();
        server.write(&mut answer);
        client.read_tls(&mut answer.as_slice()).unwrap();
        client.process_new_packets().unwrap();
    };
    assert_eq!(fault, own(CERTIFICATE));
}

#[test]
fn bytes_that_are_not_encrypted_are_refused_at_both_ends() {
    let authority = authority();
    for end in 0..2 {
        let mut wire = Wire::new(&tls(&authority, 1), &tls(&authority, 2), 2);
        let received = wire.ends[end].receive(b"JNL\x01\x01\0\x44\0 and more of a plain hello", &mut wire.plain[end]);
        assert_eq!(received, Err(own(Refusal::Unencrypted)), "end {end}");
        assert!(wire.plain[end].is_empty());
    }
}

#[test]
fn a_damaged_record_ends_the_session() {
    let authority = authority();
    let (one, two) = (tls(&authority, 1), tls(&authority, 2));
    for bit in [5 * 8, 6 * 8 + 3, 50 * 8 + 7] {
        let mut wire = Wire::new(&one, &two, 2);
        wire.settle().unwrap();
        wire.ends[0].send(&[7; 100]);
        let mut record = wire.output(0);
        record[bit / 8] ^= 1 << (bit % 8);
        let received = wire.ends[1].receive(&record, &mut wire.plain[1]);
        assert_eq!(received, Err(own(Refusal::Unencrypted)), "bit {bit}");
        assert!(wire.plain[1].is_empty());
    }
}

#[test]
fn a_damaged_certificate_or_a_foreign_key_is_no_setting() {
    let authority = authority();
    let [one, two] = [1, 2].map(|node| issue("test", &authority.key, NodeId(node)).unwrap());
    assert!(Tls::new(&authority.certificate, &one.certificate, &two.key).is_err());
    assert!(Tls::new("nothing", &one.certificate, &one.key).is_err());
    assert!(Tls::new(&authority.certificate, &one.certificate[..100], &one.key).is_err());
}
