//! Hot path: at most 80 instructions per received command and 30 per sent packet; no copy of a command that
//! arrived in one piece.
//!
//! The packets and logins of one connection.

use super::compression::{Algorithm, Compression};
use super::login::{Handshake, HandshakeStep, LoginContext, encode_refusal};
use super::wire::capability::Capabilities;
use super::wire::change_user::ChangeUser;
use super::wire::command::code;
use super::wire::error::ProtocolError;
use super::wire::packet::{HANDSHAKE_PAYLOAD_BYTES_MAX, PacketReader, PacketWriter, patch_sequences};
use super::wire::reply::ErrorReply;
use junctor_kernel::Buffer;
use zeroize::Zeroizing;

use crate::account::Refusal;
use crate::protocol::{Input, LinkContext, LinkOpening, LoggedIn, ProtocolLink};

/// Default collation in the greeting: utf8mb4_0900_ai_ci.
const GREETING_CHARACTER_SET: u8 = 255;

/// The packet layer of one MySQL connection: framing and login.
#[derive(Debug)]
pub(crate) struct Link {
    reader: PacketReader,
    /// Whether commands are expected. Otherwise a login is in progress, the first one or that of
    /// COM_CHANGE_USER.
    is_logged_in: bool,
    /// Sequence number of the next packet of the answer.
    sequence: u8,
    /// Whether the next packet is a part of a file. Its numbers continue those of the answer.
    awaits_file: bool,
    capabilities: Capabilities,
    handshake: Handshake,
    command_bytes_max: usize,
    /// Set from the first login on, if client and server agreed on it.
    compression: Option<Box<Compression>>,
}

impl ProtocolLink for Link {
    fn open(opening: &LinkOpening<'_>, out: &mut Vec<u8>) -> Link {
        let handshake = Handshake::new(opening.peer, opening.challenge);
        handshake.greeting(opening, GREETING_CHARACTER_SET, out);
        Link {
            // The client's reply to the greeting continues its sequence numbers. Before the login, a smaller
            // payload limit applies.
            reader: PacketReader::new(1, HANDSHAKE_PAYLOAD_BYTES_MAX.min(opening.command_bytes_max)),
            is_logged_in: false,
            sequence: 0,
            awaits_file: false,
            capabilities: Capabilities::NONE,
            handshake,
            command_bytes_max: opening.command_bytes_max,
            compression: None,
        }
    }

    fn encode_refused_connection(refusal: &Refusal, out: &mut Vec<u8>) {
        encode_refusal(refusal, 0, out);
    }

    fn awaits_login(&self) -> bool {
        !self.is_logged_in
    }

    fn is_within_message(&self) -> bool {
        !self.reader.is_idle()
    }

    #[inline]
    fn next_input(&mut self, bytes: &[u8], context: &mut LinkContext<'_>) -> (usize, Input) {
        if self.compression.is_some() {
            return self.next_compressed_input(bytes, context);
        }
        let mut rest = bytes;
        let packet = match self.reader.next_packet(&mut rest) {
            Ok(Some(packet)) => packet,
            // The reader has copied the beginning of an incomplete payload, so all bytes are consumed.
            Ok(None) => return (bytes.len() - rest.len(), Input::Incomplete),
            Err(error) => {
                encode_protocol_error(error, self.reader.failure_sequence(), context.out);
                return (bytes.len(), Input::Close);
            }
        };
        let consumed = bytes.len() - rest.len();
        let (payload, sequence) = (packet.payload, packet.sequence);
        if is_for_session(self.is_logged_in, self.awaits_file, payload.first()) {
            let (is_assembled, payload_bytes) = (packet.is_assembled, payload.len());
            self.before_command(sequence);
            let input = match is_assembled {
                true => Input::AssembledCommand(self.reader.take_assembled()),
                false => Input::Command(consumed - payload_bytes..consumed),
            };
            return (consumed, input);
        }
        // Copied, because the payload may lie in the reader, which the login changes. It may be a password.
        let payload = Zeroizing::new(payload.to_vec());
        (consumed, self.on_login_packet(&payload, sequence, context))
    }

    fn continue_login(&mut self, context: &mut LinkContext<'_>) -> Input {
        let mut login = login_context(context, 0);
        let step = self.handshake.continue_check(&mut login);
        let sequence = login.sequence;
        self.frame_output(context.out);
        self.after_step(step, sequence)
    }

    fn await_file(&mut self) {
        self.awaits_file = true;
        self.reader.expect_sequence(self.sequence);
    }

    #[inline]
    fn finish_answer(&mut self, packets: &mut Buffer, is_unsolicited: bool) {
        if is_unsolicited {
            // MySQL numbers packets that it sends between two commands from 0.
            self.sequence = 0;
        }
        self.sequence = patch_sequences(packets, self.sequence);
        if self.compression.is_some() {
            self.frame_answer(packets, is_unsolicited);
        }
    }
}

impl Link {
    /// Numbers the answer to a command whose last packet has this sequence number.
    #[inline]
    fn before_command(&mut self, sequence: u8) {
        self.sequence = sequence.wrapping_add(1);
        if std::mem::take(&mut self.awaits_file) {
            self.reader.expect_sequence(0);
        }
    }

    /// Reads the next packet of the frames in `bytes`. A frame counts as consumed after its last packet.
    #[cold]
    fn next_compressed_input(&mut self, bytes: &[u8], context: &mut LinkContext<'_>) -> (usize, Input) {
        let mut consumed = 0;
        while let Some(compression) = &mut self.compression {
            let outcome = match compression.content(&bytes[consumed..]) {
                Ok(None) => return (consumed, Input::Incomplete),
                Err(error) => Err(error),
                Ok(Some(content)) => {
                    let mut rest = content;
                    let packet = self.reader.next_packet(&mut rest);
                    let packet = packet.map(|packet| packet.map(|packet| (packet.payload.to_vec(), packet.sequence)));
                    let content_bytes = content.len() - rest.len();
                    consumed += compression.consume(content_bytes);
                    packet
                }
            };
            match outcome {
                Ok(None) => {}
                Ok(Some((payload, sequence)))
                    if is_for_session(self.is_logged_in, self.awaits_file, payload.first()) =>
                {
                    self.before_command(sequence);
                    return (consumed, Input::AssembledCommand(payload));
                }
                Ok(Some((payload, sequence))) => {
                    let payload = Zeroizing::new(payload);
                    let input = self.on_login_packet(&payload, sequence, context);
                    self.frame_output(context.out);
                    return (consumed, input);
                }
                Err(error) => {
                    encode_protocol_error(error, self.reader.failure_sequence(), context.out);
                    self.frame_output(context.out);
                    return (bytes.len(), Input::Close);
                }
            }
        }
        (consumed, Input::Close)
    }

    #[cold]
    fn frame_answer(&mut self, packets: &mut Buffer, is_unsolicited: bool) {
        let Some(compression) = &mut self.compression else { return };
        if is_unsolicited {
            compression.restart_sequence();
        }
        compression.frame(packets);
    }

    /// Puts the link's own packets into frames.
    fn frame_output(&mut self, out: &mut Vec<u8>) {
        if let Some(compression) = &mut self.compression
            && !out.is_empty()
        {
            compression.frame(out);
        }
    }

    /// Begins compression after the first login, if client and server agreed on it.
    fn start_compression(&mut self, agreed: Capabilities, zstd_level: u8) {
        if self.compression.is_none()
            && let Some(algorithm) = Algorithm::agreed(agreed, zstd_level)
        {
            self.reader.ignore_sequence();
            self.compression = Some(Box::new(Compression::new(algorithm)));
        }
    }

    /// Handles COM_QUIT, COM_CHANGE_USER, or a step of a login.
    #[cold]
    fn on_login_packet(&mut self, payload: &[u8], sequence: u8, context: &mut LinkContext<'_>) -> Input {
        let mut login = login_context(context, sequence);
        let step = match payload {
            _ if !self.is_logged_in => self.handshake.on_packet(payload, &mut login),
            [code::CHANGE_USER, body @ ..] => match ChangeUser::parse(body, self.capabilities) {
                Ok(command) => {
                    self.is_logged_in = false;
                    self.handshake.on_change_user(&command, self.capabilities, &mut login)
                }
                Err(error) => {
                    encode_protocol_error(error, sequence.wrapping_add(1), login.out);
                    return Input::Close;
                }
            },
            // COM_QUIT.
            _ => return Input::Close,
        };
        self.after_step(step, sequence)
    }

    /// What follows from a step of a login after the packet with this sequence number.
    fn after_step(&mut self, step: HandshakeStep, sequence: u8) -> Input {
        match step {
            HandshakeStep::Replied { expected_sequence } => {
                self.reader.expect_sequence(expected_sequence);
                Input::Handled
            }
            HandshakeStep::Checking => Input::Checking,
            HandshakeStep::Delayed(milliseconds) => Input::Delayed(milliseconds),
            HandshakeStep::StartTls => {
                self.reader.expect_sequence(sequence.wrapping_add(1));
                Input::StartTls
            }
            HandshakeStep::Refused(refusal) => Input::Refused(Box::new(refusal)),
            HandshakeStep::Authenticated(login) => {
                self.is_logged_in = true;
                self.capabilities = login.capabilities;
                self.sequence = login.reply_sequence;
                self.reader.expect_sequence(0);
                self.reader.set_payload_bytes_max(self.command_bytes_max);
                self.start_compression(login.capabilities, login.zstd_level);
                Input::LoggedIn(Box::new(LoggedIn {
                    user: login.user,
                    database: login.database,
                    account: login.account,
                    is_expired: login.is_expired,
                    capabilities: login.capabilities.bits(),
                    character_set: login.charset.unwrap_or(u16::from(GREETING_CHARACTER_SET)),
                }))
            }
        }
    }
}

/// Whether a payload with this first byte is a command of the session, or a part of a file.
#[inline]
fn is_for_session(is_logged_in: bool, awaits_file: bool, first: Option<&u8>) -> bool {
    is_logged_in && (!matches!(first, Some(&(code::QUIT | code::CHANGE_USER))) || awaits_file)
}

fn login_context<'a>(context: &'a mut LinkContext<'_>, sequence: u8) -> LoginContext<'a> {
    LoginContext {
        accounts: context.accounts,
        security: context.security,
        is_private_required: context.is_private_required(),
        is_private: context.is_private(),
        has_tls: context.has_tls(),
        tls: context.tls(),
        encryption: context.encryption,
        now_us: context.now_us,
        sequence,
        out: context.out,
    }
}

fn encode_protocol_error(error: ProtocolError, sequence: u8, out: &mut Vec<u8>) {
    let reply = ErrorReply::from_protocol_error(error);
    PacketWriter::new(out, sequence).packet(|out| reply.encode(out));
}
