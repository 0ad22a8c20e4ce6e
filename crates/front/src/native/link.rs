//! Hot path: at most 40 instructions per received request; no copy of a request that arrived in one piece.
//!
//! The frames and logins of one connection.

use junctor_kernel::Buffer;
use junctor_wire::reply::{self, Greeting};
use junctor_wire::{Frame, LOGIN_PAYLOAD_BYTES_MAX, VERSION, frame};

use super::login::LoginExchange;
use crate::account::Refusal;
use crate::protocol::{Input, LinkContext, LinkOpening, ProtocolLink};

/// The frame layer of one connection.
#[derive(Debug)]
pub(crate) struct Link {
    /// `None` after the login.
    login: Option<Box<LoginExchange>>,
    command_bytes_max: usize,
}

impl ProtocolLink for Link {
    fn open(opening: &LinkOpening<'_>, out: &mut Vec<u8>) -> Link {
        let LinkOpening { connection, peer, challenge, server_version, command_bytes_max, .. } = *opening;
        Greeting { version: VERSION, connection: connection.0, salt: challenge, server_version }.encode(out);
        Link { login: Some(Box::new(LoginExchange::new(peer, challenge))), command_bytes_max }
    }

    fn encode_refused_connection(refusal: &Refusal, out: &mut Vec<u8>) {
        encode_refusal(refusal, out);
    }

    fn awaits_login(&self) -> bool {
        self.login.is_some()
    }

    #[inline]
    fn next_input(&mut self, bytes: &[u8], context: &mut LinkContext<'_>) -> (usize, Input) {
        let Some((kind, length)) = frame::decode_header(bytes) else { return (0, Input::Incomplete) };
        let longest = if self.login.is_none() { self.command_bytes_max } else { LOGIN_PAYLOAD_BYTES_MAX };
        // Only rows continue in a second frame, so a request cannot have the maximum length.
        if length > longest || length >= frame::PAYLOAD_BYTES_MAX {
            encode_refusal(&packet_too_large(), context.out);
            return (0, Input::Close);
        }
        let frame_bytes = frame::HEADER_BYTES + length;
        if bytes.len() < frame_bytes {
            return (0, Input::Incomplete);
        }
        let input = match &mut self.login {
            // The kind, the last byte of the header, belongs to the request.
            None => Input::Command(frame::HEADER_BYTES - 1..frame_bytes),
            Some(login) => {
                let request = Frame { kind, payload: &bytes[frame::HEADER_BYTES..frame_bytes] };
                let input = login.on_request(request, context);
                self.note(input)
            }
        };
        (frame_bytes, input)
    }

    fn continue_login(&mut self, context: &mut LinkContext<'_>) -> Input {
        match &mut self.login {
            Some(login) => {
                let input = login.go_on(context);
                self.note(input)
            }
            None => Input::Close,
        }
    }

    /// Frames have no sequence numbers, so nothing must be completed.
    #[inline]
    fn finish_answer(&mut self, _packets: &mut Buffer, _is_unsolicited: bool) {}
}

impl Link {
    /// Ends the exchange once the client has logged in.
    fn note(&mut self, input: Input) -> Input {
        if matches!(input, Input::LoggedIn(_)) {
            self.login = None;
        }
        input
    }
}

/// Appends the reason why a connection is refused or ended. It is not the reply to a request, so its number
/// is 0.
pub(super) fn encode_refusal(refusal: &Refusal, out: &mut Vec<u8>) {
    reply::encode_failed(0, refusal.errno, refusal.sqlstate, &refusal.message, out);
}

fn packet_too_large() -> Refusal {
    let message = "Got a packet bigger than 'max_allowed_packet' bytes".into();
    Refusal { errno: 1153, sqlstate: *b"08S01", message, user: None }
}
