//! Hot path: at most 40 instructions per received request; no copy of a request that arrived in one piece.
//!
//! The frames and logins of one connection.

use junctor_kernel::Buffer;
use junctor_model::access::AccountName;
use junctor_wire::reply::{self, Greeting};
use junctor_wire::request::{Login, kind};
use junctor_wire::{LOGIN_PAYLOAD_BYTES_MAX, VERSION, frame};

use crate::account::{Admission, Challenge, Claim, Conditions, Peer, Refusal};
use crate::protocol::{Input, LinkContext, LinkOpening, LoggedIn, ProtocolLink};

/// Collation of the session, as MySQL's id: utf8mb4_0900_ai_ci. The protocol supports only UTF-8.
const CHARACTER_SET: u16 = 255;

/// The frame layer of one connection.
#[derive(Debug)]
pub(crate) struct Link {
    is_logged_in: bool,
    /// The request of a login whose answer is delayed, because others have failed.
    delayed: Option<Box<[u8]>>,
    peer: Peer,
    challenge: Challenge,
    command_bytes_max: usize,
}

impl ProtocolLink for Link {
    fn open(opening: &LinkOpening<'_>, out: &mut Vec<u8>) -> Link {
        let LinkOpening { connection, peer, challenge, server_version, command_bytes_max, .. } = *opening;
        Greeting { version: VERSION, connection: connection.0, salt: challenge, server_version }.encode(out);
        Link { is_logged_in: false, delayed: None, peer, challenge, command_bytes_max }
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

    fn continue_login(&mut self, context: &mut LinkContext<'_>) -> Input {
        match self.delayed.take() {
            Some(request) => self.decide(&request, context),
            None => Input::Close,
        }
    }

    /// Frames have no sequence numbers, so nothing must be completed.
    #[inline]
    fn finish_answer(&mut self, _packets: &mut Buffer, _is_unsolicited: bool) {}
}

impl Link {
    #[cold]
    fn log_in(&mut self, request: &[u8], context: &mut LinkContext<'_>) -> Input {
        let login = match self.claimed(request, context) {
            Ok(login) => login,
            Err(refusal) => return refuse(&refusal, context),
        };
        if self.peer.is_internal() {
            return self.decide(request, context);
        }
        let candidate = context.accounts.candidate(login.user.as_bytes(), self.peer);
        match context.accounts.delay_ms(&candidate, self.peer, login.user.as_bytes()) {
            0 => self.decide(request, context),
            delay_ms => {
                self.delayed = Some(request.into());
                Input::Delayed(delay_ms)
            }
        }
    }

    fn decide(&mut self, request: &[u8], context: &mut LinkContext<'_>) -> Input {
        match self.verify(request, context) {
            Ok(login) => {
                self.is_logged_in = true;
                Input::LoggedIn(Box::new(login))
            }
            Err(refusal) => refuse(&refusal, context),
        }
    }

    fn verify(&self, request: &[u8], context: &LinkContext<'_>) -> Result<LoggedIn, Refusal> {
        let login = self.claimed(request, context)?;
        if self.peer.is_internal() {
            let (user, account) = (login.user.to_owned(), AccountName::internal());
            let (is_expired, character_set) = (false, CHARACTER_SET);
            return Ok(LoggedIn { user, database: None, account, is_expired, capabilities: 0, character_set });
        }
        let has_password = !login.proof.is_empty();
        let claim = Claim { user: login.user.as_bytes(), has_password, database: login.database.as_bytes() };
        let conditions = Conditions { now_us: context.now_us, tls: context.tls, handles_expired: true };
        let admission = context.accounts.verify(self.peer, (&self.challenge, login.proof), claim, &conditions)?;
        let Admission { user, database, account, is_expired } = admission;
        Ok(LoggedIn { user, database, account, is_expired, capabilities: 0, character_set: CHARACTER_SET })
    }

    fn claimed<'r>(&self, request: &'r [u8], context: &LinkContext<'_>) -> Result<Login<'r>, Refusal> {
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
        Ok(login)
    }
}

/// Appends the reason why a connection is refused or ended. It is not the reply to a request, so its number
/// is 0.
fn encode_refusal(refusal: &Refusal, out: &mut Vec<u8>) {
    reply::encode_failed(0, refusal.errno, refusal.sqlstate, &refusal.message, out);
}

fn refuse(refusal: &Refusal, context: &mut LinkContext<'_>) -> Input {
    encode_refusal(refusal, context.out);
    Input::Refused(Box::new(refusal.clone()))
}

fn packet_too_large() -> Refusal {
    let message = "Got a packet bigger than 'max_allowed_packet' bytes".into();
    Refusal { errno: 1153, sqlstate: *b"08S01", message, user: None }
}
