mod caching_sha2;

use std::sync::atomic::Ordering;

use junctor_kernel::transport::security::Encryption;
use junctor_model::access::{
    AccessControl, AccountDefinition, AccountName, Authentication, AuthenticationMethod, TlsRequirement,
};
use junctor_wire::proof::password_proof;
use proptest::prelude::*;

use super::{Handshake, HandshakeStep, LoginContext};
use crate::account::{Account, Accounts, Peer, Refusal};
use crate::connection::test_encryption::TestEncryption;
use crate::mysql::Link;
use crate::mysql::wire::authentication_switch::AuthenticationSwitch;
use crate::mysql::wire::capability::Capabilities;
use crate::mysql::wire::change_user::ChangeUser;
use crate::mysql::wire::connect_attributes::{ConnectAttributes, put_attribute};
use crate::mysql::wire::greeting::{Greeting, NATIVE_PASSWORD, SALT_BYTES};
use crate::mysql::wire::handshake_response::HandshakeResponse;
use crate::mysql::wire::reply::ErrorReply;
use crate::protocol::{LinkOpening, ProtocolLink};
use junctor_model::id::ConnectionId;
use junctor_model::password::caching_sha2::CACHING_SHA2_PASSWORD;

const SALT: [u8; SALT_BYTES] = *b"abcdefghijklmnopqrst";

fn local() -> Peer {
    Peer::new([127, 0, 0, 1].into())
}

fn remote() -> Peer {
    Peer::new([10, 1, 2, 3].into())
}

fn accounts() -> Accounts {
    let mut accounts = Accounts::with_local_root();
    accounts.insert("anna", Account::with_password(b"secret"));
    accounts.insert("near", Account::with_password(b"secret").loopback_only());
    accounts
}

fn login<'a>(user: &'a str, proof: &'a [u8]) -> HandshakeResponse<'a> {
    HandshakeResponse {
        capabilities: Capabilities::SERVER | Capabilities::MULTI_STATEMENTS | Capabilities::SESSION_TRACK,
        packet_bytes_max: 0,
        charset: 45,
        user: user.as_bytes(),
        auth_response: proof,
        database: b"test",
        plugin: Some(NATIVE_PASSWORD),
        attributes: ConnectAttributes::default(),
        zstd_level: 0,
    }
}

fn answer(peer: Peer, response: &HandshakeResponse<'_>, out: &mut Vec<u8>) -> (Handshake, HandshakeStep) {
    let mut payload = Vec::new();
    response.encode(&mut payload);
    let mut handshake = Handshake::new(peer, SALT);
    let step = take(&mut handshake, &payload, 1, out);
    (handshake, step)
}

/// A context of a connection without TLS.
fn context<'a>(accounts: &'a Accounts, sequence: u8, out: &'a mut Vec<u8>) -> LoginContext<'a> {
    LoginContext {
        tls: None,
        encryption: None,
        now_us: 0,
        accounts,
        security: None,
        is_private_required: false,
        is_private: false,
        has_tls: false,
        sequence,
        out,
    }
}

/// Passes a packet from the client to the handshake.
fn take(handshake: &mut Handshake, payload: &[u8], sequence: u8, out: &mut Vec<u8>) -> HandshakeStep {
    handshake.on_packet(payload, &mut context(&accounts(), sequence, out))
}

fn change(handshake: &mut Handshake, command: &ChangeUser<'_>, out: &mut Vec<u8>) -> HandshakeStep {
    handshake.on_change_user(command, Capabilities::SERVER, &mut context(&accounts(), 0, out))
}

/// The error number and text of a refusal, which must also have been sent as packet `sequence`.
fn refused(step: HandshakeStep, out: &[u8], sequence: u8) -> (u16, String) {
    let HandshakeStep::Refused(refusal) = step else { panic!("refused, not {step:?}") };
    assert_eq!(out[3], sequence);
    let sent = ErrorReply::parse(&out[4..]).unwrap();
    assert_eq!((sent.errno, sent.sqlstate), (refusal.errno, refusal.sqlstate));
    assert_eq!(sent.message, refusal.message.as_bytes());
    (refusal.errno, refusal.message)
}

fn is_authenticated(peer: Peer, user: &str, proof: &[u8]) -> bool {
    let mut out = Vec::new();
    let (_, step) = answer(peer, &login(user, proof), &mut out);
    matches!(step, HandshakeStep::Authenticated(_))
}

#[test]
fn a_certificate_is_read_only_for_accounts_that_require_its_names() {
    let specified = |issuer: Option<&str>, subject: Option<&str>| {
        let (issuer, subject) = (issuer.map(Into::into), subject.map(Into::into));
        TlsRequirement::Specified { cipher: None, issuer, subject }
    };
    for (tls, is_admitted, reads) in [
        (TlsRequirement::None, true, 0),
        (TlsRequirement::X509, true, 0),
        (specified(Some("/CN=ca"), None), true, 1),
        (specified(None, Some("/CN=u")), true, 1),
        (specified(None, Some("/CN=other")), false, 1),
    ] {
        let authentication = Authentication::without_password(AuthenticationMethod::MysqlNativePassword);
        let account = AccountDefinition { authentication, tls: tls.clone(), ..AccountDefinition::default() };
        let mut access = AccessControl::default();
        access.put(AccountName::new("u", "%"), account);
        let accounts = Accounts::new(access.into());
        let (mut payload, mut out, encryption) = (Vec::new(), Vec::new(), TestEncryption::default());
        login("u", b"").encode(&mut payload);
        let mut context = context(&accounts, 1, &mut out);
        context.encryption = Some(&encryption);
        (context.tls, context.has_tls) = (encryption.agreed(), true);
        let step = Handshake::new(remote(), SALT).on_packet(&payload, &mut context);
        assert_eq!(matches!(step, HandshakeStep::Authenticated(_)), is_admitted, "{tls:?}");
        assert_eq!(encryption.certificate_reads.load(Ordering::Relaxed), reads, "{tls:?}");
    }
}

#[test]
fn the_greeting_is_the_first_packet_and_carries_the_salt() {
    let mut out = Vec::new();
    for (offers_tls, capabilities) in [(false, Capabilities::SERVER), (true, Capabilities::SERVER | Capabilities::SSL)]
    {
        out.clear();
        let opening = LinkOpening {
            connection: ConnectionId(7),
            peer: local(),
            challenge: SALT,
            server_version: "8.0.36-junctor",
            command_bytes_max: 1,
            offers_tls,
        };
        Handshake::new(local(), SALT).greeting(&opening, 255, &mut out);
        assert_eq!(out[..4], [out.len() as u8 - 4, 0, 0, 0]);
        let greeting = Greeting::parse(&out[4..]).unwrap();
        assert_eq!((greeting.connection_id, greeting.salt, greeting.charset), (7, SALT, 255));
        assert_eq!((greeting.capabilities, greeting.plugin), (capabilities, CACHING_SHA2_PASSWORD.as_bytes()));
    }
}

#[test]
fn the_right_password_logs_in_with_the_common_capabilities() {
    let proof = password_proof(b"secret", &SALT);
    let mut attributes = Vec::new();
    put_attribute(&mut attributes, b"program_name", b"mysql");
    let attributes = ConnectAttributes::new(&attributes).unwrap();
    let mut out = Vec::new();
    let (_, step) = answer(remote(), &HandshakeResponse { attributes, ..login("anna", &proof) }, &mut out);
    let HandshakeStep::Authenticated(authenticated) = step else { panic!("authenticated, not {step:?}") };
    assert_eq!((authenticated.user.as_str(), authenticated.database.as_deref()), ("anna", Some("test")));
    assert_eq!(authenticated.capabilities, Capabilities::SERVER);
    assert_eq!((authenticated.charset, authenticated.reply_sequence), (Some(45), 2));
    assert_eq!(authenticated.attributes().iter().next(), Some((&b"program_name"[..], &b"mysql"[..])));
    assert!(out.is_empty(), "the OK packet waits for the database");
}

#[test]
fn everything_but_the_right_password_is_denied() {
    let right = password_proof(b"secret", &SALT);
    let mut flipped = right.clone();
    flipped[19] ^= 1;
    for (user, proof, using) in [
        ("anna", password_proof(b"Secret", &SALT), "YES"),
        ("anna", password_proof(b"secret", b"another.challenge.20"), "YES"),
        ("anna", flipped, "YES"),
        ("anna", right[..19].to_vec(), "YES"),
        ("anna", vec![0], "YES"),
        ("anna", Vec::new(), "NO"),
        ("nobody", right.clone(), "YES"),
        ("nobody", Vec::new(), "NO"),
        ("", Vec::new(), "NO"),
    ] {
        let mut out = Vec::new();
        let (_, step) = answer(local(), &login(user, &proof), &mut out);
        let expected = format!("Access denied for user '{user}'@'localhost' (using password: {using})");
        assert_eq!(refused(step, &out, 2), (1045, expected));
    }
}

#[test]
fn root_without_a_password_may_log_in_only_locally() {
    assert!(is_authenticated(local(), "root", b""));
    assert!(is_authenticated(Peer::new("::1".parse().unwrap()), "root", b""));
    assert!(is_authenticated(Peer::new("::ffff:127.0.0.1".parse().unwrap()), "root", b""));
    let mut out = Vec::new();
    let (_, step) = answer(remote(), &login("root", b""), &mut out);
    let expected = "Access denied for user 'root'@'10.1.2.3' (using password: NO)";
    assert_eq!(refused(step, &out, 2), (1045, expected.to_owned()));
}

#[test]
fn an_account_can_be_restricted_to_this_machine() {
    let proof = password_proof(b"secret", &SALT);
    assert!(is_authenticated(local(), "near", &proof));
    assert!(!is_authenticated(remote(), "near", &proof));
}

#[test]
fn a_client_with_another_method_is_asked_to_switch() {
    for plugin in [&b"caching_sha2_password"[..], b""] {
        let mut out = Vec::new();
        let response = HandshakeResponse { plugin: Some(plugin), ..login("anna", &[7; 32]) };
        let (mut handshake, step) = answer(remote(), &response, &mut out);
        assert_eq!(step, HandshakeStep::Replied { expected_sequence: 3 });
        assert_eq!(out[3], 2);
        let request = AuthenticationSwitch::parse(&out[4..]).unwrap();
        assert_eq!((request.plugin, request.salt), (NATIVE_PASSWORD, &SALT[..]));
        out.clear();
        let step = take(&mut handshake, &password_proof(b"secret", &SALT), 3, &mut out);
        let HandshakeStep::Authenticated(authenticated) = step else { panic!("authenticated, not {step:?}") };
        assert_eq!((authenticated.user.as_str(), authenticated.reply_sequence), ("anna", 4));
    }
}

#[test]
fn a_client_with_an_unknown_method_is_asked_to_switch_although_the_account_has_no_password() {
    let mut out = Vec::new();
    let response = HandshakeResponse { plugin: Some(b"dummy_fallback_auth"), ..login("root", b"") };
    let (mut handshake, step) = answer(local(), &response, &mut out);
    assert!(matches!(step, HandshakeStep::Replied { expected_sequence: 3 }));
    let request = AuthenticationSwitch::parse(&out[4..]).unwrap();
    assert_eq!(request.plugin, NATIVE_PASSWORD);
    out.clear();
    assert!(matches!(take(&mut handshake, b"", 3, &mut out), HandshakeStep::Authenticated(_)));
}

#[test]
fn a_wrong_password_after_the_switch_is_denied() {
    let mut out = Vec::new();
    let response = HandshakeResponse { plugin: Some(b"caching_sha2_password"), ..login("anna", b"") };
    let (mut handshake, _) = answer(remote(), &response, &mut out);
    out.clear();
    let step = take(&mut handshake, b"", 3, &mut out);
    let expected = "Access denied for user 'anna'@'10.1.2.3' (using password: NO)";
    assert_eq!(refused(step, &out, 4), (1045, expected.to_owned()));
    out.clear();
    let step = take(&mut handshake, &password_proof(b"secret", &SALT), 5, &mut out);
    assert_eq!(refused(step, &out, 6).0, 1043, "one guess for each connection");
}

#[test]
fn a_client_without_a_method_uses_ours() {
    let capabilities = Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION;
    let proof = password_proof(b"secret", &SALT);
    let response = HandshakeResponse { capabilities, plugin: None, database: b"", ..login("anna", &proof) };
    let (_, step) = answer(remote(), &response, &mut Vec::new());
    let HandshakeStep::Authenticated(authenticated) = step else { panic!("authenticated, not {step:?}") };
    assert_eq!((authenticated.capabilities, authenticated.database), (capabilities, None));
}

#[test]
fn unsupported_clients_are_refused_with_a_reason() {
    let mut out = Vec::new();
    let tls = HandshakeResponse { capabilities: Capabilities::SERVER | Capabilities::SSL, ..login("anna", b"") };
    assert_eq!(refused(answer(local(), &tls, &mut out).1, &out, 2).0, 1043);
    out.clear();
    // The first 32 bytes alone ask for TLS.
    let mut request = Vec::new();
    tls.encode(&mut request);
    let step = take(&mut Handshake::new(local(), SALT), &request[..32], 1, &mut out);
    let (errno, message) = refused(step, &out, 2);
    assert!(errno == 1043 && message.contains("has no TLS"));
    for capabilities in [Capabilities::SECURE_CONNECTION, Capabilities::PROTOCOL_41] {
        out.clear();
        let old = HandshakeResponse { capabilities, ..login("anna", b"") };
        assert_eq!(refused(answer(local(), &old, &mut out).1, &out, 2).0, 1251);
    }
}

#[test]
fn impossible_names_are_refused_and_truncated_in_the_message() {
    let mut out = Vec::new();
    let long = "ü".repeat(5000);
    let (errno, message) = refused(answer(local(), &login(&long, b""), &mut out).1, &out, 2);
    assert!(errno == 1045 && message.len() < 200);
    for database in [long.as_bytes(), b"\xff\xfe"] {
        out.clear();
        let (_, step) = answer(local(), &HandshakeResponse { database, ..login("root", b"") }, &mut out);
        let (errno, message) = refused(step, &out, 2);
        assert!(errno == 1049 && message.len() < 300);
    }
}

#[test]
fn a_change_of_user_is_a_login_with_the_same_salt() {
    let proof = password_proof(b"secret", &SALT);
    let change_user = ChangeUser {
        user: b"anna",
        auth_response: &proof,
        database: b"",
        charset: None,
        plugin: Some(NATIVE_PASSWORD),
        attributes: ConnectAttributes::default(),
    };
    let mut handshake = Handshake::new(remote(), SALT);
    let mut out = Vec::new();
    let step = change(&mut handshake, &change_user, &mut out);
    let HandshakeStep::Authenticated(authenticated) = step else { panic!("authenticated, not {step:?}") };
    assert_eq!((authenticated.user.as_str(), authenticated.reply_sequence), ("anna", 1));
    assert_eq!((authenticated.charset, authenticated.database), (None, None));

    let other = ChangeUser { plugin: Some(b"caching_sha2_password"), ..change_user };
    let step = change(&mut handshake, &other, &mut out);
    assert_eq!(step, HandshakeStep::Replied { expected_sequence: 2 });
    let step = take(&mut handshake, &proof, 2, &mut out);
    assert!(matches!(step, HandshakeStep::Authenticated(_)));

    let wrong = ChangeUser { auth_response: b"", ..change_user };
    out.clear();
    let step = change(&mut handshake, &wrong, &mut out);
    assert_eq!(refused(step, &out, 1).0, 1045);
}

#[test]
fn a_connection_beyond_the_maximum_gets_its_error_before_the_greeting() {
    let mut out = Vec::new();
    <Link as ProtocolLink>::encode_refused_connection(&Refusal::too_many_connections(), &mut out);
    assert_eq!(out, b"\x1d\0\0\0\xff\x10\x04#08004Too many connections");
}

proptest! {
    #[test]
    fn no_bytes_log_in_without_the_password(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..4),
        capabilities: u32,
    ) {
        let mut accounts = Accounts::empty();
        accounts.insert("anna", Account::with_password(b"secret"));
        let mut handshake = Handshake::new(local(), SALT);
        let mut out = Vec::new();
        for (payload, sequence) in payloads.iter().zip((1..).step_by(2)) {
            let mut bytes = capabilities.to_le_bytes().to_vec();
            bytes.extend_from_slice(&[0; 28]);
            bytes.extend_from_slice(b"anna\0");
            bytes.extend_from_slice(payload);
            for payload in [payload, &bytes] {
                let step = handshake.on_packet(payload, &mut context(&accounts, sequence, &mut out));
                prop_assert!(!matches!(step, HandshakeStep::Authenticated(_)));
            }
        }
    }
}
