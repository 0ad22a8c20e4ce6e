//! Hot path: at most 40 instructions per received request; no copy of a request that arrived in one piece.
//!
//! The frames and logins of one connection.

use junctor_kernel::Buffer;
use junctor_wire::reply::{self, Greeting};
use junctor_wire::request::{Login, kind};
use junctor_wire::{LOGIN_PAYLOAD_BYTES_MAX, VERSION, frame};

use crate::account::{Challenge, Claim, Peer, Refusal};
use crate::protocol::{Input, LinkContext, LinkOpening, LoggedIn, ProtocolLink};

/// Collation of the session, as MySQL's id: utf8mb4_0900_ai_ci. The protocol supports only UTF-8.
const CHARACTER_SET: u16 = 255;

/// The frame layer of one connection.
#[derive(Debug)]
pub(crate) struct Link {
    is_logged_in: bool,
    peer: Peer,
    challenge: Challenge,
    command_bytes_max: usize,
}

impl ProtocolLink for Link {
    fn open(opening: &LinkOpening<'_>, out: &mut Vec<u8>) -> Link {
        let LinkOpening { connection, peer, challenge, server_version, command_bytes_max, .. } = *opening;
        Greeting { version: VERSION, connection: connection.0, salt: challenge, server_version }.encode(out);
        Link { is_logged_in: false, peer, challenge, command_bytes_max }
    }

    fn encode_refused_connection(refusal: &Refusal, out: &mut Vec<u8>) {
        encode_refusal(refusal, out);
    }

    fn awaits_login(&self) -> bool {
        !self.is_logged_in
    }

    #[inline]
    fn next_input(&mut self, bytes: &[u8], context: &mut LinkContext<'_>) -> (usize, Input) {
        let Some((_, length)) = frame::decode_header(bytes) else { return (0, Input::Incomplete) };
        let longest = if self.is_logged_in { self.command_bytes_max } else { LOGIN_PAYLOAD_BYTES_MAX };
        // Only rows continue in a second frame, so a request cannot have the maximum length.
        if length > longest || length >= frame::PAYLOAD_BYTES_MAX {
            encode_refusal(&packet_too_large(), context.out);
            return (0, Input::Close);
        }
        let frame_bytes = frame::HEADER_BYTES + length;
        if bytes.len() < frame_bytes {
            return (0, Input::Incomplete);
        }
        // The kind, the last byte of the header, belongs to the request.
        let request = frame::HEADER_BYTES - 1..frame_bytes;
        let input = match self.is_logged_in {
            true => Input::Command(request),
            false => self.log_in(&bytes[request], context),
        };
        (frame_bytes, input)
    }

    /// Frames have no sequence numbers, so nothing must be completed.
    #[inline]
    fn finish_answer(&mut self, _packets: &mut Buffer, _is_unsolicited: bool) {}
}

impl Link {
    #[cold]
    fn log_in(&mut self, request: &[u8], context: &mut LinkContext<'_>) -> Input {
        match self.verify(request, context) {
            Ok(login) => {
                self.is_logged_in = true;
                Input::LoggedIn(Box::new(login))
            }
            Err(refusal) => {
                encode_refusal(&refusal, context.out);
                Input::Refused(Box::new(refusal))
            }
        }
    }

    fn verify(&self, request: &[u8], context: &LinkContext<'_>) -> Result<LoggedIn, Refusal> {
        let login = match request {
            [kind::LOGIN, payload @ ..] => Login::parse(payload).ok(),
            _ => None,
        };
        let login = login.ok_or_else(|| Refusal::bad_handshake("Bad handshake"))?;
        if login.version != VERSION {
            let message = format!(
                "Bad handshake: the client speaks version {} of the native protocol, the server version {VERSION}",
                login.version
            );
            return Err(Refusal::bad_handshake(message));
        }
        if context.is_private_required && !context.is_private {
            return Err(Refusal::insecure_transport());
        }
        if self.peer.is_internal() {
            let user = login.user.to_owned();
            return Ok(LoggedIn { user, database: None, capabilities: 0, character_set: CHARACTER_SET });
        }
        let has_password = !login.proof.is_empty();
        let claim = Claim { user: login.user.as_bytes(), has_password, database: login.database.as_bytes() };
        let (user, database) = context.accounts.verify(self.peer, (&self.challenge, login.proof), claim)?;
        Ok(LoggedIn { user, database, capabilities: 0, character_set: CHARACTER_SET })
    }
}

/// Appends the reason why a connection is refused or ended. It is not the reply to a request, so its number
/// is 0.
fn encode_refusal(refusal: &Refusal, out: &mut Vec<u8>) {
    reply::encode_failed(0, refusal.errno, refusal.sqlstate, &refusal.message, out);
}

fn packet_too_large() -> Refusal {
    let message = "Got a packet bigger than 'max_allowed_packet' bytes".into();
    Refusal { errno: 1153, sqlstate: *b"08S01", message, user: None }
}
