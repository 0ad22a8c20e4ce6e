//! The login exchange, from the greeting to a verified identity; also used for COM_CHANGE_USER. The only
//! authentication method is `mysql_native_password`. A client that starts with another method is asked to
//! switch.
//!
//! [`Handshake`] is a state machine that does no I/O: it takes payloads, and appends packets to the caller's
//! buffer.

use super::wire::authentication_switch::AuthenticationSwitch;
use super::wire::capability::Capabilities;
use super::wire::change_user::ChangeUser;
use super::wire::connect_attributes::ConnectAttributes;
use super::wire::greeting::{Greeting, NATIVE_PASSWORD};
use super::wire::handshake_response::{ClientAnswer, HandshakeResponse};
use super::wire::packet::PacketWriter;
use super::wire::reply::ErrorReply;
use super::wire::status::StatusFlags;
use crate::account::{self, Accounts, Challenge, Peer, Refusal};

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
    /// The capabilities of both sides.
    pub capabilities: Capabilities,
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
    /// The client was asked to switch to our method, and must send its proof.
    Switched(Box<Claim>),
    /// The login succeeded or failed.
    Finished,
}

/// The identity that a client claims, before it is verified.
#[derive(Debug)]
struct Claim {
    user: Vec<u8>,
    database: Vec<u8>,
    capabilities: Capabilities,
    charset: Option<u16>,
    attributes: Vec<u8>,
}

impl Handshake {
    /// A login of a client at `peer`. The connection reuses `challenge` for COM_CHANGE_USER, as MySQL does.
    pub const fn new(peer: Peer, challenge: Challenge) -> Self {
        Self { challenge, peer, state: State::Greeted }
    }

    /// Appends the greeting, the first packet of the connection. The client's answer has sequence number 1.
    pub fn greeting(&self, connection_id: u32, server_version: &str, charset: u8, out: &mut Vec<u8>) {
        let greeting = Greeting {
            server_version: server_version.as_bytes(),
            connection_id,
            salt: self.challenge,
            capabilities: Capabilities::SERVER,
            charset,
            status: StatusFlags::AUTOCOMMIT,
            plugin: NATIVE_PASSWORD,
        };
        PacketWriter::new(out, 0).packet(|out| greeting.encode(out));
    }

    /// Handles a payload of the client and appends the reply.
    pub fn on_packet(&mut self, payload: &[u8], context: &mut LoginContext<'_>) -> HandshakeStep {
        // A failed login stays finished: each connection has one attempt.
        match std::mem::replace(&mut self.state, State::Finished) {
            State::Greeted => match ClientAnswer::parse(payload) {
                Ok(ClientAnswer::Response(response)) => self.on_response(&response, context),
                Ok(ClientAnswer::TlsRequest) => {
                    let message = "Bad handshake: TLS is not supported by this server, connect without it";
                    refuse(Refusal::bad_handshake(message), context)
                }
                Ok(ClientAnswer::TooOld) => refuse_old_client(context),
                Err(_) => refuse(Refusal::bad_handshake("Bad handshake"), context),
            },
            State::Switched(claim) => self.decide(*claim, payload, context),
            State::Finished => refuse(Refusal::bad_handshake("Bad handshake"), context),
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
            charset: change_user.charset,
            attributes: change_user.attributes.as_bytes().to_vec(),
        };
        self.verify_proof(claim, change_user.plugin, change_user.auth_response, context)
    }

    fn on_response(&mut self, response: &HandshakeResponse<'_>, context: &mut LoginContext<'_>) -> HandshakeStep {
        if !response.capabilities.contains(Capabilities::SECURE_CONNECTION) {
            return refuse_old_client(context);
        }
        let claim = Claim {
            user: response.user.to_vec(),
            database: response.database.to_vec(),
            capabilities: response.capabilities & Capabilities::SERVER,
            charset: Some(u16::from(response.charset)),
            attributes: response.attributes.as_bytes().to_vec(),
        };
        self.verify_proof(claim, response.plugin, response.auth_response, context)
    }

    /// Verifies the proof if it was made with our method. Otherwise asks the client to switch to our method.
    /// A client that names no method uses ours.
    fn verify_proof(
        &mut self,
        claim: Claim,
        plugin: Option<&[u8]>,
        proof: &[u8],
        context: &mut LoginContext<'_>,
    ) -> HandshakeStep {
        if plugin.is_none_or(|plugin| plugin == NATIVE_PASSWORD) {
            self.state = State::Finished;
            return self.decide(claim, proof, context);
        }
        self.state = State::Switched(Box::new(claim));
        let request = AuthenticationSwitch { plugin: NATIVE_PASSWORD, salt: &self.challenge };
        let mut writer = PacketWriter::new(context.out, context.sequence.wrapping_add(1));
        writer.packet(|out| request.encode(out));
        HandshakeStep::Replied { expected_sequence: writer.sequence() }
    }

    fn decide(&self, claim: Claim, proof: &[u8], context: &mut LoginContext<'_>) -> HandshakeStep {
        let claimed = account::Claim { user: &claim.user, proof, database: &claim.database };
        match context.accounts.verify(self.peer, &self.challenge, claimed) {
            Err(refusal) => refuse(refusal, context),
            Ok((user, database)) => HandshakeStep::Authenticated(Box::new(Authenticated {
                user,
                database,
                capabilities: claim.capabilities,
                charset: claim.charset,
                attributes: claim.attributes,
                reply_sequence: context.sequence.wrapping_add(1),
            })),
        }
    }
}

/// Appends the error packet of a refusal with this sequence number.
pub(super) fn encode_refusal(refusal: &Refusal, sequence: u8, out: &mut Vec<u8>) {
    let reply = ErrorReply { errno: refusal.errno, sqlstate: refusal.sqlstate, message: refusal.message.as_bytes() };
    PacketWriter::new(out, sequence).packet(|out| reply.encode(out));
}

fn refuse_old_client(context: &mut LoginContext<'_>) -> HandshakeStep {
    let message =
        "Client does not support authentication protocol requested by server; consider upgrading MySQL client";
    refuse(Refusal { errno: 1251, sqlstate: *b"08004", message: message.into() }, context)
}

fn refuse(refusal: Refusal, context: &mut LoginContext<'_>) -> HandshakeStep {
    encode_refusal(&refusal, context.sequence.wrapping_add(1), context.out);
    HandshakeStep::Refused(refusal)
}

#[cfg(test)]
mod tests;
