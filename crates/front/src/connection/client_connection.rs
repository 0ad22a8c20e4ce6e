//! Hot path: at most 60 instructions per command, not counting framing; no copy of a command that arrived
//! alone.
//!
//! One connection: turns received bytes into commands, one at a time.

use std::ops::Range;

use junctor_kernel::{Address, Buffer, Context, Outbox, SocketId, WorldRequest, require};
use junctor_model::id::ConnectionId;
use junctor_signals::client_command::*;
use junctor_signals::inbox::{Signal, SqlSignal};

use super::block::RecvSettings;
use crate::account::Peer;
use crate::protocol::{Input, LinkContext, LoggedIn};
use crate::protocol_table::Link;

/// Maximum number of received bytes that wait while a command runs. Beyond it, the socket is not read until
/// the command is done, so TCP slows the client down.
const WAITING_BYTES_MAX: usize = 64 * 1024;

/// The resources that an event handler may use.
pub(super) struct RecvTurn<'a, 'c> {
    pub settings: &'a RecvSettings,
    pub context: &'a mut Context<'c>,
    pub outbox: &'a mut Outbox<Signal>,
}

/// One client connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub socket: SocketId,
    pub id: ConnectionId,
    pub peer: Peer,
    /// The sql block of the session.
    pub sql: Address,
    pub link: Link,
    pub flow: Flow,
    /// Received bytes; those before `position` are consumed. The buffer is released while it is empty, so an
    /// idle connection holds no memory.
    pub received: Buffer,
    pub position: usize,
}

/// Flow control between the client and its session.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// A session exists at the sql block.
    pub has_session: bool,
    /// The sql block is executing a command, or is opening the session.
    pub is_busy: bool,
    /// The session awaits the next part of a file, which arrives like a command.
    pub awaits_input: bool,
    /// The connection is being closed: received bytes are ignored.
    pub is_closing: bool,
    /// The socket reported that its output has exceeded the high-water mark. Cleared when the output has
    /// fallen below the low-water mark.
    pub is_output_blocked: bool,
    /// The session must be asked for the next part of the answer: at the end of the turn, or when the output
    /// is no longer blocked.
    pub wants_part: bool,
    /// The next command starts when the output is no longer blocked.
    pub wants_next_command: bool,
    pub is_reading_paused: bool,
}

impl Flow {
    /// Whether the session must answer before it takes anything from the client.
    pub fn is_occupied(&self) -> bool {
        self.is_busy && !self.awaits_input
    }
}

impl Connection {
    /// Handles bytes that the socket received.
    pub fn on_received(&mut self, bytes: Buffer, turn: &mut RecvTurn<'_, '_>) {
        if self.flow.is_occupied() || self.flow.is_output_blocked {
            self.flow.wants_next_command |= !self.flow.is_occupied();
            self.append_received(bytes, turn);
            return self.pause_if_full(turn);
        }
        if self.received.is_empty() {
            return self.dispatch(bytes, 0, turn);
        }
        self.append_received(bytes, turn);
        self.dispatch_received(turn);
    }

    /// Starts the next command if it has been received.
    pub fn start_next_command(&mut self, turn: &mut RecvTurn<'_, '_>) {
        if !self.received.is_empty() {
            self.dispatch_received(turn);
        }
        if self.flow.is_reading_paused && !self.is_full() {
            self.flow.is_reading_paused = false;
            turn.outbox.request(WorldRequest::ResumeReading { socket: self.socket });
        }
    }

    fn dispatch_received(&mut self, turn: &mut RecvTurn<'_, '_>) {
        let (bytes, position) = (std::mem::take(&mut self.received), std::mem::take(&mut self.position));
        self.dispatch(bytes, position, turn);
    }

    /// Reads messages from `bytes` at `position` until one is a command. Keeps the bytes after it.
    fn dispatch(&mut self, bytes: Buffer, mut position: usize, turn: &mut RecvTurn<'_, '_>) {
        while !self.flow.is_occupied() && !self.flow.is_closing {
            let start = position;
            let mut out = Buffer::new();
            let mut context = LinkContext { accounts: &turn.settings.accounts, out: &mut out };
            let (consumed, input) = self.link.next_input(&bytes[position..], &mut context);
            position += consumed;
            require!(position <= bytes.len(), "a protocol consumes no more than it was given");
            if !out.is_empty() {
                turn.outbox.request(WorldRequest::SendBytes { socket: self.socket, bytes: out });
            }
            match input {
                Input::Command(payload) => {
                    let payload = start + payload.start..start + payload.end;
                    if position == bytes.len() {
                        // The command is the last message, so the buffer itself goes to the session and no
                        // byte is copied.
                        return self.forward(bytes, payload, turn);
                    }
                    let mut command = turn.context.buffers.take(payload.len());
                    command.extend_from_slice(&bytes[payload]);
                    self.forward_whole(command, turn);
                }
                Input::AssembledCommand(command) => self.forward_whole(command, turn),
                Input::Handled => {}
                Input::LoggedIn(login) => self.open_session(*login, turn),
                Input::Close => self.close(turn.outbox),
                Input::Incomplete => break,
            }
        }
        if position == bytes.len() || self.flow.is_closing {
            return turn.context.buffers.give(bytes);
        }
        (self.received, self.position) = (bytes, position);
        self.pause_if_full(turn);
    }

    fn forward_whole(&mut self, command: Buffer, turn: &mut RecvTurn<'_, '_>) {
        let payload = 0..command.len();
        self.forward(command, payload, turn);
    }

    fn forward(&mut self, bytes: Buffer, payload: Range<usize>, turn: &mut RecvTurn<'_, '_>) {
        require!(self.flow.has_session, "a command follows the opening of its session");
        require!(payload.end <= bytes.len(), "a command's payload lies in its buffer");
        if std::mem::take(&mut self.flow.awaits_input) {
            let (start, end) = (payload.start as u32, payload.end as u32);
            let signal = ReceiveFile { connection: self.id, bytes, start, end };
            return turn.outbox.send(self.sql, Signal::Sql(SqlSignal::ReceiveFile(signal)));
        }
        self.flow.is_busy = true;
        let signal =
            ExecuteCommand { connection: self.id, bytes, start: payload.start as u32, end: payload.end as u32 };
        turn.outbox.send(self.sql, Signal::Sql(SqlSignal::ExecuteCommand(signal)));
    }

    fn open_session(&mut self, login: LoggedIn, turn: &mut RecvTurn<'_, '_>) {
        self.flow.is_busy = true;
        let login = Login {
            user: login.user.into_boxed_str(),
            host: self.peer.to_string().into_boxed_str(),
            database: login.database.map(String::into_boxed_str),
            capabilities: login.capabilities,
            character_set: login.character_set,
            protocol: self.link.protocol().number(),
        };
        let signal = OpenSession {
            connection: self.id,
            reply_to: turn.context.own_address,
            socket: self.socket,
            reset: std::mem::replace(&mut self.flow.has_session, true),
            login: Box::new(login),
        };
        turn.outbox.send(self.sql, Signal::Sql(SqlSignal::OpenSession(signal)));
    }

    /// Asks the session for the next part of its answer.
    pub fn request_part(&self, outbox: &mut Outbox<Signal>) {
        let signal = ContinueCommand { connection: self.id };
        outbox.send(self.sql, Signal::Sql(SqlSignal::ContinueCommand(signal)));
    }

    /// Closes the socket once all queued output is written.
    pub fn close(&mut self, outbox: &mut Outbox<Signal>) {
        self.flow.is_closing = true;
        outbox.request(WorldRequest::CloseSocket { socket: self.socket });
    }

    fn append_received(&mut self, bytes: Buffer, turn: &mut RecvTurn<'_, '_>) {
        if self.received.is_empty() {
            self.received = bytes;
            return;
        }
        // Once more than half is consumed, moving the unread bytes to the front copies fewer bytes than it
        // frees.
        if self.position > self.received.len() / 2 {
            self.received.drain(..self.position);
            self.position = 0;
        }
        self.received.extend_from_slice(&bytes);
        turn.context.buffers.give(bytes);
    }

    fn pause_if_full(&mut self, turn: &mut RecvTurn<'_, '_>) {
        if self.is_full() && !self.flow.is_reading_paused {
            self.flow.is_reading_paused = true;
            turn.outbox.request(WorldRequest::PauseReading { socket: self.socket });
        }
    }

    /// Whether the bytes that wait behind a command exceed their maximum. Bytes of an incomplete command do
    /// not count, because reading must go on until it is complete.
    fn is_full(&self) -> bool {
        let waits = self.flow.is_occupied() || self.flow.is_output_blocked;
        waits && self.received.len() - self.position >= WAITING_BYTES_MAX
    }
}
