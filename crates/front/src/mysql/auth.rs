//! Logins: who may connect, from where, and with which proof. The method is `mysql_native_password`: the server keeps
//! SHA1(SHA1(password)), the client sends SHA1(password) masked with SHA1(challenge, kept hash).
//!
//! [`Handshake`] is the state machine from the greeting to a session, and again for COM_CHANGE_USER. It gets payloads and
//! appends packets to a buffer of the caller.

pub mod account;

pub use account::{Account, Accounts, PasswordHash, Peer, password_proof, salt_from_random};

use super::wire::authentication_switch::AuthenticationSwitch;
use super::wire::capability::Capabilities;
use super::wire::change_user::ChangeUser;
use super::wire::connect_attributes::ConnectAttributes;
use super::wire::greeting::{Greeting, NATIVE_PASSWORD, SALT_BYTES};
use super::wire::handshake_response::{ClientAnswer, HandshakeResponse};
use super::wire::packet::PacketWriter;
use super::wire::reply::{ErrorReply, cut_between_characters};
use super::wire::status::StatusFlags;

/// Most bytes of a user name; a longer one is nobody's.
pub const USER_NAME_BYTES_MAX: usize = 96;

/// Most bytes of a database name; a longer one does not exist.
pub const DATABASE_NAME_BYTES_MAX: usize = 256;

/// What came of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandshakeStep {
    /// A packet was appended; the client's next packet must have this sequence number.
    Replied {
        /// The sequence number to expect.
        expected_sequence: u8,
    },
    /// The client is who it says. Nothing was appended: the OK packet is due once the database is found.
    Authenticated(Box<Authenticated>),
    /// The client is not let in. Its error packet was appended; the connection closes when that is sent.
    Refused(Refusal),
}

/// A client that proved who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticated {
    /// User name.
    pub user: String,
    /// Database to start in, if any; whether it exists is for the caller to find out.
    pub database: Option<String>,
    /// What both sides can do.
    pub capabilities: Capabilities,
    /// Number of the collation the client wants; `None` keeps the connection's.
    pub charset: Option<u16>,
    /// What the client says about itself, encoded; see [`ConnectAttributes::new`].
    pub attributes: Vec<u8>,
    /// Sequence number of the packet that ends the login.
    pub reply_sequence: u8,
}

/// Why a client was not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// MySQL error number.
    pub errno: u16,
    /// SQLSTATE that goes with it.
    pub sqlstate: [u8; 5],
    /// The text the client got.
    pub message: String,
}

/// The login of one connection.
#[derive(Debug)]
pub struct Handshake {
    salt: [u8; SALT_BYTES],
    peer: Peer,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The greeting is out.
    Greeted,
    /// The client was asked to prove its password by our method.
    Switched(Box<Claim>),
    /// The login has an outcome.
    Finished,
}

/// Who a client says it is, before it is believed.
#[derive(Debug)]
struct Claim {
    user: Vec<u8>,
    database: Vec<u8>,
    capabilities: Capabilities,
    charset: Option<u16>,
    attributes: Vec<u8>,
}

impl Handshake {
    /// The login of a client at `peer`, challenged with `salt` (see [`salt_from_random`]). The same salt is kept by the
    /// session for COM_CHANGE_USER.
    pub const fn new(peer: Peer, salt: [u8; SALT_BYTES]) -> Self {
        Self { salt, peer, state: State::Greeted }
    }

    /// Appends the greeting, the first packet of the connection. The answer has sequence number 1.
    pub fn greeting(&self, connection_id: u32, server_version: &str, charset: u8, out: &mut Vec<u8>) {
        let greeting = Greeting {
            server_version: server_version.as_bytes(),
            connection_id,
            salt: self.salt,
            capabilities: Capabilities::SERVER,
            charset,
            status: StatusFlags::AUTOCOMMIT,
            plugin: NATIVE_PASSWORD,
        };
        PacketWriter::new(out, 0).packet(|out| greeting.emit(out));
    }

    /// Takes a payload of the client, whose last packet had number `sequence`, and appends the answer to `out`.
    pub fn on_packet(&mut self, payload: &[u8], sequence: u8, accounts: &Accounts, out: &mut Vec<u8>) -> HandshakeStep {
        match std::mem::replace(&mut self.state, State::Finished) {
            State::Greeted => match ClientAnswer::parse(payload) {
                Ok(ClientAnswer::Response(response)) => self.on_response(&response, sequence, accounts, out),
                Ok(ClientAnswer::TlsRequest) => refuse(
                    1043,
                    *b"08S01",
                    "Bad handshake: TLS is not supported by this server, connect without it".into(),
                    sequence,
                    out,
                ),
                Ok(ClientAnswer::TooOld) => refuse_old_client(sequence, out),
                Err(_) => refuse(1043, *b"08S01", "Bad handshake".into(), sequence, out),
            },
            State::Switched(claim) => self.decide(*claim, payload, sequence, accounts, out),
            State::Finished => refuse(1043, *b"08S01", "Bad handshake".into(), sequence, out),
        }
    }

    /// Starts the login of COM_CHANGE_USER on a connection that negotiated `capabilities`; if the step is
    /// [`HandshakeStep::Replied`], the client's answer goes to [`Handshake::on_packet`].
    pub fn on_change_user(
        &mut self,
        change_user: &ChangeUser<'_>,
        capabilities: Capabilities,
        sequence: u8,
        accounts: &Accounts,
        out: &mut Vec<u8>,
    ) -> HandshakeStep {
        let claim = Claim {
            user: change_user.user.to_vec(),
            database: change_user.database.to_vec(),
            capabilities,
            charset: change_user.charset,
            attributes: change_user.attributes.as_bytes().to_vec(),
        };
        self.prove(claim, change_user.plugin, change_user.authentication, sequence, accounts, out)
    }

    fn on_response(
        &mut self,
        response: &HandshakeResponse<'_>,
        sequence: u8,
        accounts: &Accounts,
        out: &mut Vec<u8>,
    ) -> HandshakeStep {
        if !response.capabilities.contains(Capabilities::SECURE_CONNECTION) {
            return refuse_old_client(sequence, out);
        }
        let claim = Claim {
            user: response.user.to_vec(),
            database: response.database.to_vec(),
            capabilities: response.capabilities & Capabilities::SERVER,
            charset: Some(u16::from(response.charset)),
            attributes: response.attributes.as_bytes().to_vec(),
        };
        self.prove(claim, response.plugin, response.authentication, sequence, accounts, out)
    }

    /// Judges the proof if it was made by our method, else asks for one. Clients that do not name methods use ours.
    fn prove(
        &mut self,
        claim: Claim,
        plugin: Option<&[u8]>,
        proof: &[u8],
        sequence: u8,
        accounts: &Accounts,
        out: &mut Vec<u8>,
    ) -> HandshakeStep {
        if plugin.is_none_or(|plugin| plugin == NATIVE_PASSWORD) {
            self.state = State::Finished;
            return self.decide(claim, proof, sequence, accounts, out);
        }
        self.state = State::Switched(Box::new(claim));
        let request = AuthenticationSwitch { plugin: NATIVE_PASSWORD, salt: &self.salt };
        let mut writer = PacketWriter::new(out, sequence.wrapping_add(1));
        writer.packet(|out| request.emit(out));
        HandshakeStep::Replied { expected_sequence: writer.sequence() }
    }

    fn decide(
        &self,
        claim: Claim,
        proof: &[u8],
        sequence: u8,
        accounts: &Accounts,
        out: &mut Vec<u8>,
    ) -> HandshakeStep {
        let claimed = (claim.user.as_slice(), proof, claim.database.as_slice());
        let (user, database) = match judge(accounts, self.peer, &self.salt, claimed) {
            Ok(judged) => judged,
            Err(Refusal { errno, sqlstate, message }) => return refuse(errno, sqlstate, message, sequence, out),
        };
        HandshakeStep::Authenticated(Box::new(Authenticated {
            user,
            database,
            capabilities: claim.capabilities,
            charset: claim.charset,
            attributes: claim.attributes,
            reply_sequence: sequence.wrapping_add(1),
        }))
    }
}

/// Judges what a client says of itself: user, proof and database. Gives the user and the database, if any; whether that exists is
/// for the caller to find out.
///
/// Errors: 1045, and 1049 for a name that no database can have.
pub(crate) fn judge(
    accounts: &Accounts,
    peer: Peer,
    salt: &[u8; SALT_BYTES],
    (name, proof, database): (&[u8], &[u8], &[u8]),
) -> Result<(String, Option<String>), Refusal> {
    let user = String::from_utf8_lossy(cut_between_characters(name, USER_NAME_BYTES_MAX)).into_owned();
    if !accounts.admits(name, peer, salt, proof) {
        let using_password = if proof.is_empty() { "NO" } else { "YES" };
        let message = format!("Access denied for user '{user}'@'{peer}' (using password: {using_password})");
        return Err(Refusal { errno: 1045, sqlstate: *b"28000", message });
    }
    match std::str::from_utf8(database) {
        Ok("") => Ok((user, None)),
        Ok(text) if text.len() <= DATABASE_NAME_BYTES_MAX => Ok((user, Some(text.to_owned()))),
        _ => {
            let shown = String::from_utf8_lossy(cut_between_characters(database, DATABASE_NAME_BYTES_MAX));
            Err(Refusal { errno: 1049, sqlstate: *b"42000", message: format!("Unknown database '{shown}'") })
        }
    }
}

impl Authenticated {
    /// The attributes by name.
    pub fn attributes(&self) -> ConnectAttributes<'_> {
        ConnectAttributes::new(&self.attributes).unwrap_or_default()
    }
}

/// Appends error 1040, the whole conversation with a client that is one too many.
pub fn emit_too_many_connections(out: &mut Vec<u8>) {
    let reply = ErrorReply { errno: 1040, sqlstate: *b"08004", message: b"Too many connections" };
    PacketWriter::new(out, 0).packet(|out| reply.emit(out));
}

fn refuse_old_client(sequence: u8, out: &mut Vec<u8>) -> HandshakeStep {
    let message =
        "Client does not support authentication protocol requested by server; consider upgrading MySQL client";
    refuse(1251, *b"08004", message.into(), sequence, out)
}

fn refuse(errno: u16, sqlstate: [u8; 5], message: String, sequence: u8, out: &mut Vec<u8>) -> HandshakeStep {
    let reply = ErrorReply { errno, sqlstate, message: message.as_bytes() };
    PacketWriter::new(out, sequence.wrapping_add(1)).packet(|out| reply.emit(out));
    HandshakeStep::Refused(Refusal { errno, sqlstate, message })
}

#[cfg(test)]
mod tests;
