//! The login exchange, from the greeting to a verified identity; also used for COM_CHANGE_USER. The account
//! decides on the authentication method. A client that starts with another method is asked to switch.
//!
//! [`Handshake`] is a state machine that does no I/O: it takes payloads, and appends packets to the caller's
//! buffer. The methods are:
//!
//! - `mysql_native_password`: one proof;
//! - `caching_sha2_password` ([`caching_sha2`]): one proof if the server has seen the password since its
//!   start, otherwise the password itself over TLS or encrypted with the server's RSA key.

mod caching_sha2;

use junctor_kernel::transport::security::{Agreed, ClientSecurity, Encryption};
use junctor_model::access::AccountName;
use junctor_model::password::caching_sha2::CACHING_SHA2_PASSWORD;

use super::wire::authentication_switch::AuthenticationSwitch;
use super::wire::capability::Capabilities;
use super::wire::change_user::ChangeUser;
use super::wire::connect_attributes::ConnectAttributes;
use super::wire::greeting::{Greeting, NATIVE_PASSWORD};
use super::wire::handshake_response::{ClientAnswer, HandshakeResponse};
use super::wire::packet::PacketWriter;
use super::wire::reply::ErrorReply;
use super::wire::status::StatusFlags;
use crate::account::{self, Accounts, Candidate, Challenge, Conditions, Credential, PasswordChecks, Peer, Refusal};
use crate::protocol::LinkOpening;

/// The outcome of one payload from the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandshakeStep {
    /// A packet was appended; the client's next packet must have this sequence number.
    Replied {
        /// The sequence number to expect.
        expected_sequence: u8,
    },
    /// The client proved its identity. Nothing was appended: the caller sends the OK packet once it has found
    /// the database.
    Authenticated(Box<Authenticated>),
    /// The client sent its password, whose check takes several steps of [`Handshake::continue_check`].
    Checking,
    /// The answer follows after this number of milliseconds, by [`Handshake::continue_check`].
    Delayed(u64),
    /// The connection continues with TLS, in which the client repeats its answer to the greeting.
    StartTls,
    /// The login failed and its error packet was appended. The connection closes once that packet is sent.
    Refused(Refusal),
}

/// A client that proved its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticated {
    /// User name.
    pub user: String,
    /// The initial default database, if any. The caller must check that it exists.
    pub database: Option<String>,
    /// The account of the user.
    pub account: AccountName,
    /// Whether the session may only change its password.
    pub is_expired: bool,
    /// The capabilities of both sides.
    pub capabilities: Capabilities,
    /// Level of zstd that the client asks for; 0 if none.
    pub zstd_level: u8,
    /// Id of the collation that the client asked for; `None` keeps the connection's collation.
    pub charset: Option<u16>,
    /// The client's description of itself, encoded; see [`ConnectAttributes::new`].
    pub attributes: Vec<u8>,
    /// Sequence number of the packet that ends the login.
    pub reply_sequence: u8,
}

impl Authenticated {
    /// The attributes by name.
    pub fn attributes(&self) -> ConnectAttributes<'_> {
        ConnectAttributes::new(&self.attributes).unwrap_or_default()
    }
}

/// The resources of a login step.
#[derive(Debug)]
pub struct LoginContext<'a> {
    /// The accounts of the server.
    pub accounts: &'a Accounts,
    /// TLS and the key for passwords; `None` if the node has none.
    pub security: Option<&'a dyn ClientSecurity>,
    /// Whether every login needs a private connection.
    pub is_private_required: bool,
    /// Whether nobody between client and server can read the connection.
    pub is_private: bool,
    /// Whether the connection has TLS.
    pub has_tls: bool,
    /// The parameters of the connection's TLS; `None` without TLS.
    pub tls: Option<Agreed>,
    /// The connection's TLS, for the names in the client's certificate.
    pub encryption: Option<&'a dyn Encryption>,
    /// The time in microseconds since 1970.
    pub now_us: u64,
    /// Sequence number of the client's last packet. The reply has the next number.
    pub sequence: u8,
    /// The packets of the reply are appended here.
    pub out: &'a mut Vec<u8>,
}

/// The login of one connection.
#[derive(Debug)]
pub struct Handshake {
    challenge: Challenge,
    peer: Peer,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The greeting was sent.
    Greeted,
    /// The client was asked to switch to the account's method, and must send its proof.
    Switched(Box<Claim>),
    /// The client was asked for its password. The flag tells whether it got the key to encrypt it.
    AwaitsPassword(Box<Claim>, bool),
    /// The client's password is being checked.
    Checking(Box<Checking>),
    /// The outcome is known, and the answer is delayed.
    Delayed(Box<Delayed>),
    /// The login succeeded or failed.
    Finished,
}

/// The identity that a client claims, before it is verified.
#[derive(Debug)]
struct Claim {
    user: Vec<u8>,
    database: Vec<u8>,
    capabilities: Capabilities,
    zstd_level: u8,
    charset: Option<u16>,
    attributes: Vec<u8>,
    /// Whether the client has sent a password or its proof.
    has_password: bool,
    candidate: Candidate,
}

/// A password that is being checked.
#[derive(Debug)]
struct Checking {
    claim: Claim,
    checks: PasswordChecks,
    /// Sequence number of the packet with the password.
    sequence: u8,
}

/// A login whose answer is delayed, because others have failed.
#[derive(Debug)]
struct Delayed {
    claim: Claim,
    is_proven: bool,
    /// Sequence number before the answer's.
    sequence: u8,
}

impl Handshake {
    /// A login of a client at `peer`. The connection reuses `challenge` for COM_CHANGE_USER, as MySQL does.
    pub const fn new(peer: Peer, challenge: Challenge) -> Self {
        Self { challenge, peer, state: State::Greeted }
    }

    /// Appends the greeting, the first packet of the connection. The client's answer has sequence number 1.
    pub(crate) fn greeting(&self, opening: &LinkOpening<'_>, charset: u8, out: &mut Vec<u8>) {
        let greeting = Greeting {
            server_version: opening.server_version.as_bytes(),
            connection_id: opening.connection.0,
            salt: self.challenge,
            capabilities: match opening.offers_tls {
                true => Capabilities::SERVER | Capabilities::SSL,
                false => Capabilities::SERVER,
            },
            charset,
            status: StatusFlags::AUTOCOMMIT,
            plugin: CACHING_SHA2_PASSWORD.as_bytes(),
        };
        PacketWriter::new(out, 0).packet(|out| greeting.encode(out));
    }

    /// Handles a payload of the client and appends the reply.
    pub fn on_packet(&mut self, payload: &[u8], context: &mut LoginContext<'_>) -> HandshakeStep {
        // A failed login stays finished: each connection has one attempt.
        match std::mem::replace(&mut self.state, State::Finished) {
            State::Greeted => match ClientAnswer::parse(payload) {
                Ok(ClientAnswer::Response(response)) => self.on_response(&response, context),
                Ok(ClientAnswer::TlsRequest) if context.has_tls => {
                    refuse(Refusal::bad_handshake("Bad handshake"), context)
                }
                Ok(ClientAnswer::TlsRequest) if context.security.is_some() => {
                    self.state = State::Greeted;
                    HandshakeStep::StartTls
                }
                Ok(ClientAnswer::TlsRequest) => {
                    let message = "Bad handshake: this server has no TLS, connect without it";
                    refuse(Refusal::bad_handshake(message), context)
                }
                Ok(ClientAnswer::TooOld) => refuse_old_client(context),
                Err(_) => refuse(Refusal::bad_handshake("Bad handshake"), context),
            },
            State::Switched(claim) => self.on_proof(*claim, payload, context),
            State::AwaitsPassword(claim, has_key) => self.on_password((claim, has_key), payload, context),
            // The connection reads nothing during a check.
            State::Checking(_) | State::Delayed(_) | State::Finished => {
                refuse(Refusal::bad_handshake("Bad handshake"), context)
            }
        }
    }

    /// Starts the login of COM_CHANGE_USER on a connection that negotiated `capabilities`. After
    /// [`HandshakeStep::Replied`], the client's answer goes to [`Handshake::on_packet`].
    pub fn on_change_user(
        &mut self,
        change_user: &ChangeUser<'_>,
        capabilities: Capabilities,
        context: &mut LoginContext<'_>,
    ) -> HandshakeStep {
        let claim = Claim {
            user: change_user.user.to_vec(),
            database: change_user.database.to_vec(),
            capabilities,
            zstd_level: 0,
            charset: change_user.charset,
            attributes: change_user.attributes.as_bytes().to_vec(),
            has_password: !is_empty_proof(change_user.auth_response),
            candidate: context.accounts.candidate(change_user.user, self.peer),
        };
        self.on_claim(claim, change_user.plugin, change_user.auth_response, context)
    }

    fn on_response(&mut self, response: &HandshakeResponse<'_>, context: &mut LoginContext<'_>) -> HandshakeStep {
        if !response.capabilities.contains(Capabilities::SECURE_CONNECTION) {
            return refuse_old_client(context);
        }
        if response.capabilities.contains(Capabilities::SSL) && !context.has_tls {
            return refuse(Refusal::bad_handshake("Bad handshake"), context);
        }
        if context.is_private_required && !context.is_private {
            return refuse(Refusal::insecure_transport(), context);
        }
        let claim = Claim {
            user: response.user.to_vec(),
            database: response.database.to_vec(),
            capabilities: response.capabilities & Capabilities::SERVER,
            zstd_level: response.zstd_level,
            charset: Some(u16::from(response.charset)),
            attributes: response.attributes.as_bytes().to_vec(),
            has_password: !is_empty_proof(response.auth_response),
            candidate: context.accounts.candidate(response.user, self.peer),
        };
        self.on_claim(claim, response.plugin, response.auth_response, context)
    }

    /// Verifies the proof if it was made with the account's method. Otherwise asks the client to switch to
    /// that method. A client that names no method uses `mysql_native_password`.
    fn on_claim(
        &mut self,
        mut claim: Claim,
        plugin: Option<&[u8]>,
        proof: &[u8],
        context: &mut LoginContext<'_>,
    ) -> HandshakeStep {
        if claim.candidate.credential == Credential::NoPassword {
            let is_known = plugin.is_none_or(|it| it == NATIVE_PASSWORD || it == CACHING_SHA2_PASSWORD.as_bytes());
            if is_empty_proof(proof) && is_known {
                return self.decide(claim, true, context);
            }
            // The answers must not reveal that the account has no password.
            if !is_empty_proof(proof) {
                claim.candidate.become_decoy();
            }
        }
        if claim.candidate.credential == Credential::Socket {
            return self.decide(claim, true, context);
        }
        // A client that cannot load the method of the greeting names a placeholder (`dummy_fallback_auth`),
        // and accepts nothing but a switch.
        let method = match claim.candidate.credential {
            Credential::Native(_) | Credential::NoPassword | Credential::Socket => NATIVE_PASSWORD,
            Credential::CachingSha2(_) => CACHING_SHA2_PASSWORD.as_bytes(),
        };
        match plugin {
            Some(plugin) if plugin == method => return self.on_proof(claim, proof, context),
            None if method == NATIVE_PASSWORD => return self.on_proof(claim, proof, context),
            None => return refuse_old_client(context),
            Some(_) => {}
        }
        self.state = State::Switched(Box::new(claim));
        let request = AuthenticationSwitch { plugin: method, salt: &self.challenge };
        let mut writer = PacketWriter::new(context.out, context.sequence.wrapping_add(1));
        writer.packet(|out| request.encode(out));
        HandshakeStep::Replied { expected_sequence: writer.sequence() }
    }

    /// Verifies a proof that was made with the account's method.
    fn on_proof(&mut self, claim: Claim, proof: &[u8], context: &mut LoginContext<'_>) -> HandshakeStep {
        match claim.candidate.credential {
            Credential::Native(_) | Credential::Socket => {
                let proven = account::accepts_native(&claim.candidate, &self.challenge, proof);
                self.decide(Claim { has_password: !proof.is_empty(), ..claim }, proven, context)
            }
            Credential::CachingSha2(_) => self.on_fast_proof(claim, proof, context),
            Credential::NoPassword => self.decide(claim, is_empty_proof(proof), context),
        }
    }

    /// Decides on the login, at once or after a delay.
    fn decide(&mut self, claim: Claim, is_proven: bool, context: &mut LoginContext<'_>) -> HandshakeStep {
        let delay_ms = context.accounts.delay_ms(&claim.candidate, &claim.user);
        if delay_ms == 0 {
            return self.finish(claim, is_proven, context);
        }
        self.state = State::Delayed(Box::new(Delayed { claim, is_proven, sequence: context.sequence }));
        HandshakeStep::Delayed(delay_ms)
    }

    fn finish(&self, claim: Claim, is_proven: bool, context: &mut LoginContext<'_>) -> HandshakeStep {
        let handles_expired = claim.capabilities.contains(Capabilities::EXPIRED_PASSWORDS);
        let encryption = context.encryption.filter(|_| claim.candidate.requires_names());
        let certificate = encryption.and_then(|encryption| encryption.certificate_names());
        let conditions = Conditions { now_us: context.now_us, tls: context.tls, certificate, handles_expired };
        let claimed = account::Claim { user: &claim.user, has_password: claim.has_password, database: &claim.database };
        match context.accounts.admit(&claim.candidate, self.peer, claimed, (is_proven, &conditions)) {
            Err(refusal) => refuse(refusal, context),
            Ok(admission) => HandshakeStep::Authenticated(Box::new(Authenticated {
                user: admission.user,
                database: admission.database,
                account: admission.account,
                is_expired: admission.is_expired,
                capabilities: claim.capabilities,
                zstd_level: claim.zstd_level,
                charset: claim.charset,
                attributes: claim.attributes,
                reply_sequence: context.sequence.wrapping_add(1),
            })),
        }
    }
}

/// Whether a proof is that of no password. `caching_sha2_password` sends its terminating zero.
fn is_empty_proof(proof: &[u8]) -> bool {
    matches!(proof, [] | [0])
}

/// Appends the error packet of a refusal with this sequence number.
pub(super) fn encode_refusal(refusal: &Refusal, sequence: u8, out: &mut Vec<u8>) {
    let reply = ErrorReply { errno: refusal.errno, sqlstate: refusal.sqlstate, message: refusal.message.as_bytes() };
    PacketWriter::new(out, sequence).packet(|out| reply.encode(out));
}

fn refuse_old_client(context: &mut LoginContext<'_>) -> HandshakeStep {
    let message =
        "Client does not support authentication protocol requested by server; consider upgrading MySQL client";
    refuse(Refusal { errno: 1251, sqlstate: *b"08004", message: message.into(), user: None }, context)
}

fn refuse(refusal: Refusal, context: &mut LoginContext<'_>) -> HandshakeStep {
    encode_refusal(&refusal, context.sequence.wrapping_add(1), context.out);
    HandshakeStep::Refused(refusal)
}

#[cfg(test)]
mod tests;
