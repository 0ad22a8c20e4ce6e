use std::sync::Arc;

use junctor_kernel::transport::security::{ClientSecurity, Encryption, SecurityStatus};
use junctor_model::password::caching_sha2::{StoredPassword, proof_of_password};
use junctor_wire::proof::password_proof;

use super::super::{Handshake, HandshakeStep, LoginContext};
use crate::account::{Account, Accounts, Credential, Peer};
use crate::mysql::wire::authentication_switch::AuthenticationSwitch;
use crate::mysql::wire::capability::Capabilities;
use crate::mysql::wire::connect_attributes::ConnectAttributes;
use crate::mysql::wire::greeting::{NATIVE_PASSWORD, SALT_BYTES};
use crate::mysql::wire::handshake_response::HandshakeResponse;

const SALT: [u8; SALT_BYTES] = *b"abcdefghijklmnopqrst";
const CACHING_SHA2: &[u8] = b"caching_sha2_password";

/// A key that encrypts by inverting all bits.
#[derive(Debug)]
struct Inverting;

impl ClientSecurity for Inverting {
    fn status(&self) -> SecurityStatus {
        SecurityStatus::default()
    }

    fn accept(&self) -> Option<Box<dyn Encryption>> {
        None
    }

    fn public_key(&self) -> Option<Arc<str>> {
        Some("the key".into())
    }

    fn decrypt(&self, encrypted: &[u8]) -> Option<Vec<u8>> {
        Some(encrypted.iter().map(|byte| !byte).collect())
    }

    fn reload(&self) -> Result<(), String> {
        Ok(())
    }
}

fn accounts() -> Accounts {
    let mut accounts = Accounts::with_local_root();
    let stored = StoredPassword::of_password(b"secret", [7; 20]);
    accounts.insert("bert", Account::with_credential(Credential::CachingSha2(stored)));
    accounts.insert("near", Account::with_credential(Credential::CachingSha2(stored)).loopback_only());
    accounts
}

/// A client, and the connection that it has.
struct Client<'a> {
    user: &'a str,
    password: &'a [u8],
    /// The method that the client starts with.
    plugin: &'a [u8],
    is_private: bool,
    has_key: bool,
}

const BERT: Client<'static> =
    Client { user: "bert", password: b"secret", plugin: CACHING_SHA2, is_private: true, has_key: true };

/// What a login came to: the user's name or the error, and the ways that it took.
type Outcome = (Result<String, u16>, Vec<&'static str>);

impl Client<'_> {
    fn proof(&self, plugin: &[u8]) -> Vec<u8> {
        match (plugin, self.password) {
            (_, []) => Vec::new(),
            (NATIVE_PASSWORD, password) => password_proof(password, &SALT).to_vec(),
            (_, password) => proof_of_password(password, &SALT).to_vec(),
        }
    }

    /// Logs in, as a driver does.
    fn log_in(&self, accounts: &Accounts, peer: Peer) -> Outcome {
        let mut handshake = Handshake::new(peer, SALT);
        let response = HandshakeResponse {
            capabilities: Capabilities::SERVER,
            packet_bytes_max: 0,
            charset: 45,
            user: self.user.as_bytes(),
            auth_response: &self.proof(self.plugin),
            database: b"",
            plugin: Some(self.plugin),
            attributes: ConnectAttributes::default(),
            zstd_level: 0,
        };
        let mut payload = Vec::new();
        response.encode(&mut payload);
        let (mut sequence, mut ways) = (1, Vec::new());
        let mut asked_for_key = false;
        loop {
            let mut out = Vec::new();
            let mut context = LoginContext {
                tls: None,
                encryption: None,
                now_us: 0,
                accounts,
                security: if self.has_key { Some(&Inverting) } else { None },
                is_private_required: false,
                is_private: self.is_private,
                has_tls: self.is_private,
                sequence,
                out: &mut out,
            };
            let mut step = handshake.on_packet(&payload, &mut context);
            while step == HandshakeStep::Checking {
                step = handshake.continue_check(&mut context);
            }
            match step {
                HandshakeStep::Delayed(milliseconds) => {
                    panic!("no login was wrong, and the answer waits {milliseconds} ms")
                }
                HandshakeStep::Authenticated(authenticated) => {
                    if out.get(4..) == Some(&[1, 3]) {
                        ways.push("fast");
                        assert_eq!((out[3], authenticated.reply_sequence), (sequence + 1, sequence + 2));
                    } else {
                        assert_eq!((out.len(), authenticated.reply_sequence), (0, sequence + 1));
                    }
                    return (Ok(authenticated.user), ways);
                }
                HandshakeStep::Refused(refusal) => {
                    // In a fast login, the acceptance of the proof comes first.
                    let fast = if out.get(4..6) == Some(&[1, 3]) { 6 } else { 0 };
                    assert_eq!((out[fast + 3], out[fast + 4]), (sequence + 1 + u8::from(fast > 0), 0xFF));
                    return (Err(refusal.errno), ways);
                }
                HandshakeStep::Replied { expected_sequence } => {
                    assert_eq!((out[3], expected_sequence), (sequence + 1, sequence + 2));
                    sequence = expected_sequence;
                }
                HandshakeStep::StartTls | HandshakeStep::Checking => panic!("{step:?}"),
            }
            let with_zero = [self.password, &[0]].concat();
            payload = match &out[4..] {
                [0xFE, ..] => {
                    ways.push("switched");
                    self.proof(AuthenticationSwitch::parse(&out[4..]).unwrap().plugin)
                }
                [1, 4] if self.is_private => {
                    ways.push("password");
                    with_zero
                }
                [1, 4] => {
                    asked_for_key = true;
                    vec![2]
                }
                [1, key @ ..] if asked_for_key => {
                    assert_eq!(key, b"the key");
                    ways.push("encrypted");
                    with_zero.iter().zip(SALT.iter().cycle()).map(|(byte, mask)| !(byte ^ mask)).collect()
                }
                other => panic!("{other:?}"),
            };
        }
    }
}

fn local() -> Peer {
    Peer::new([127, 0, 0, 1].into())
}

fn remote() -> Peer {
    Peer::new([10, 1, 2, 3].into())
}

#[test]
fn the_password_is_sent_once_and_proven_afterwards() {
    for (is_private, way) in [(true, "password"), (false, "encrypted")] {
        let accounts = accounts();
        let client = Client { is_private, ..BERT };
        assert_eq!(client.log_in(&accounts, remote()), (Ok("bert".into()), vec![way]));
        assert_eq!(client.log_in(&accounts, remote()), (Ok("bert".into()), vec!["fast"]));
        let other_method = Client { plugin: NATIVE_PASSWORD, ..client };
        assert_eq!(other_method.log_in(&accounts, remote()), (Ok("bert".into()), vec!["switched", "fast"]));
    }
}

#[test]
fn a_wrong_password_is_denied_in_both_ways() {
    let accounts = accounts();
    let wrong = Client { password: b"Secret", ..BERT };
    assert_eq!(wrong.log_in(&accounts, remote()), (Err(1045), vec!["password"]));
    assert!(BERT.log_in(&accounts, remote()).0.is_ok());
    // The server knows the password by now, and its answers do not show that.
    assert_eq!(wrong.log_in(&accounts, remote()), (Err(1045), vec!["password"]));
    let none = Client { password: b"", ..BERT };
    assert_eq!(none.log_in(&accounts, remote()), (Err(1045), vec![]));
    let long = Client { password: &[b'x'; 300], ..BERT };
    assert_eq!(long.log_in(&accounts, remote()), (Err(1045), vec!["password"]));
}

#[test]
fn the_answers_do_not_reveal_which_users_exist() {
    let accounts = accounts();
    let outcome = (Err(1045), vec!["password"]);
    for user in ["bert", "nobody", "root", "near", ""] {
        let client = Client { user, password: b"guess", ..BERT };
        assert_eq!(client.log_in(&accounts, remote()), outcome, "{user}");
    }
    // The right password from a forbidden address.
    assert_eq!(Client { user: "near", ..BERT }.log_in(&accounts, remote()), outcome);
    assert!(Client { user: "near", ..BERT }.log_in(&accounts, local()).0.is_ok());
    assert_eq!(Client { user: "near", ..BERT }.log_in(&accounts, remote()).0, Err(1045));
}

#[test]
fn without_a_key_the_password_needs_a_private_connection() {
    let accounts = accounts();
    let client = Client { is_private: false, has_key: false, ..BERT };
    assert_eq!(client.log_in(&accounts, remote()).0, Err(1045));
    assert!(Client { has_key: false, ..BERT }.log_in(&accounts, remote()).0.is_ok());
    // A proof needs no key.
    assert_eq!(client.log_in(&accounts, remote()), (Ok("bert".into()), vec!["fast"]));
}

#[test]
fn a_changed_password_ends_the_fast_way_of_the_old_one() {
    let mut accounts = accounts();
    assert!(BERT.log_in(&accounts, remote()).0.is_ok());
    let stored = StoredPassword::of_password(b"new", [9; 20]);
    accounts.insert("bert", Account::with_credential(Credential::CachingSha2(stored)));
    assert_eq!(BERT.log_in(&accounts, remote()), (Err(1045), vec!["password"]));
    let new = Client { password: b"new", ..BERT };
    assert_eq!(new.log_in(&accounts, remote()), (Ok("bert".into()), vec!["password"]));
    assert_eq!(new.log_in(&accounts, remote()), (Ok("bert".into()), vec!["fast"]));
}

#[test]
fn root_without_a_password_needs_no_proof_with_any_method() {
    for plugin in [CACHING_SHA2, NATIVE_PASSWORD] {
        let root = Client { user: "root", password: b"", plugin, ..BERT };
        assert_eq!(root.log_in(&accounts(), local()), (Ok("root".into()), vec![]));
        assert_eq!(root.log_in(&accounts(), remote()).0, Err(1045));
    }
}
