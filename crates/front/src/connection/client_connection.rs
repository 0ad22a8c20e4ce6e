//! Hot path: at most 60 instructions per command, not counting framing; no copy of a command that arrived
//! alone.
//!
//! One connection: turns received bytes into commands, one at a time.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::atomic::Ordering;

use junctor_kernel::transport::security::Encryption;
use junctor_kernel::{Address, Buffer, Context, Duration, Outbox, SocketId, Time, WorldRequest, require};
use junctor_model::access::AccountName;
use junctor_model::error::ErrorCode;
use junctor_model::id::ConnectionId;
use junctor_signals::client_command::*;
use junctor_signals::connection_limits::{CountedSession, ExceededLimit, LoginEnd};
use junctor_signals::inbox::{Signal, SqlSignal};
use junctor_signals::journal::{Journal, LogEvent, LogKind, LoggedClient, cut};

use super::block::RecvSettings;
use super::login_queue::LoginQueue;
use crate::account::{Peer, Refusal};
use crate::protocol::{Input, LinkContext, LoggedIn};
use crate::protocol_table::Link;

/// Maximum number of received bytes that wait while a command runs. Beyond it, the socket is not read until
/// the command is done, so TCP slows the client down.
const WAITING_BYTES_MAX: usize = 64 * 1024;

/// Bytes that TLS adds to a short answer, at most.
const TLS_RECORD_BYTES: usize = 64;

/// The resources that an event handler may use.
pub(super) struct RecvTurn<'a, 'c> {
    pub settings: &'a RecvSettings,
    /// Connections that have not logged in, and checks of passwords.
    pub logins: &'a mut LoginQueue,
    pub context: &'a mut Context<'c>,
    pub outbox: &'a mut Outbox<Signal>,
}

impl<'a> RecvTurn<'a, '_> {
    /// The resources of a link. Only logins look at most of them.
    #[inline]
    fn link_context<'l>(
        &self,
        peer: &'l Peer,
        encryption: Option<&'l dyn Encryption>,
        out: &'l mut Buffer,
    ) -> LinkContext<'l>
    where
        'a: 'l,
    {
        LinkContext {
            accounts: &self.settings.accounts,
            security: self.settings.security.as_deref(),
            private_required: &self.settings.secure_transport_required,
            peer,
            encryption,
            now_us: self.context.wall_clock_us,
            out,
        }
    }

    /// Continues the login of a connection after this time, or after the longest time of a login.
    fn delay(&mut self, socket: SocketId, milliseconds: u64) {
        let delay = Duration::from_millis(milliseconds).min(self.settings.login_timeout());
        let at = self.context.turn_start.plus(delay);
        self.logins.delays.insert((at, socket));
    }
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
    /// The connection's TLS. Boxed and rare, so that connections without it stay small.
    pub encryption: Option<Box<dyn Encryption>>,
    /// The account of the session; `None` before the first login.
    pub account: Option<Box<AccountName>>,
    pub flow: Flow,
    /// The address under which the connection counts, which may be none; `None` until it counts.
    pub counted_address: Option<Option<IpAddr>>,
    /// The session, as it counts.
    pub session: Option<CountedSession>,
    /// When the login must have ended: that of the connect, or of the last COM_CHANGE_USER.
    pub login_deadline: Time,
    /// The time of the connection's entry in the queue of deadlines, if it has one.
    pub queued_deadline: Option<Time>,
    /// How the login would end if the connection ended now.
    pub login_end: LoginEnd,
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
    /// A balancer must name the client first.
    pub awaits_header: bool,
    /// The connection came through the extra port.
    pub is_extra: bool,
    /// The sql block is executing a command, or is opening the session.
    pub is_busy: bool,
    /// The client's password is being checked.
    pub is_checking: bool,
    /// The session is in the login of COM_CHANGE_USER.
    pub is_changing_user: bool,
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
        (self.is_busy && !self.awaits_input) || self.is_checking
    }
}

impl Connection {
    /// Handles bytes that the socket received.
    pub fn on_received(&mut self, mut bytes: Buffer, turn: &mut RecvTurn<'_, '_>) {
        if self.encryption.is_some() {
            bytes = self.decrypt(&bytes, turn);
            if bytes.is_empty() {
                self.note_half_record(turn);
                return turn.context.buffers.give(bytes);
            }
        }
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
        } else if self.encryption.is_some() {
            self.note_half_record(turn);
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
    fn dispatch(&mut self, mut bytes: Buffer, mut position: usize, turn: &mut RecvTurn<'_, '_>) {
        while !self.flow.is_occupied() && !self.flow.is_closing {
            let start = position;
            let mut out = Buffer::new();
            let mut context = turn.link_context(&self.peer, self.encryption.as_deref(), &mut out);
            let (consumed, input) = self.link.next_input(&bytes[position..], &mut context);
            position += consumed;
            require!(position <= bytes.len(), "a protocol consumes no more than it was given");
            if !out.is_empty() {
                self.send(out, turn.context, turn.outbox);
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
                Input::Handled => self.note_login_step(turn),
                Input::StartTls => {
                    self.encryption = turn.settings.security.as_ref().and_then(|security| security.accept());
                    if self.encryption.is_none() {
                        self.close(turn);
                        continue;
                    }
                    let plain = self.decrypt(&bytes[position..], turn);
                    turn.context.buffers.give(std::mem::replace(&mut bytes, plain));
                    position = 0;
                }
                Input::LoggedIn(login) => self.open_session(*login, turn),
                Input::Checking => {
                    self.flow.is_checking = true;
                    self.note_login_step(turn);
                    turn.logins.checks.push_back(self.socket);
                }
                Input::Delayed(milliseconds) => {
                    self.flow.is_checking = true;
                    self.note_login_step(turn);
                    turn.delay(self.socket, milliseconds);
                }
                Input::Refused(refusal) => self.refuse_login(&refusal, turn),
                Input::Close => self.close(turn),
                Input::Incomplete => break,
            }
        }
        if position < bytes.len() || self.link.is_within_message() {
            self.note_half_command(turn);
        }
        if position == bytes.len() || self.flow.is_closing {
            return turn.context.buffers.give(bytes);
        }
        (self.received, self.position) = (bytes, position);
        self.pause_if_full(turn);
    }

    /// Half a record of TLS is a part of a command, too.
    #[cold]
    fn note_half_record(&mut self, turn: &mut RecvTurn<'_, '_>) {
        if self.encryption.as_ref().is_some_and(|encryption| encryption.has_half_record()) {
            self.note_half_command(turn);
        }
    }

    /// Tells the session that a command, or a part of a file, has arrived in part. The session then bounds
    /// the silence of the client until the rest arrives.
    #[cold]
    fn note_half_command(&mut self, turn: &mut RecvTurn<'_, '_>) {
        if self.flow.has_session && !self.flow.is_occupied() && !self.flow.is_closing {
            let signal = NoteHalfCommand { connection: self.id };
            turn.outbox.send(self.sql, Signal::Sql(SqlSignal::NoteHalfCommand(signal)));
        }
    }

    /// The login of COM_CHANGE_USER gets a deadline of its own at its first step.
    #[cold]
    fn note_login_step(&mut self, turn: &mut RecvTurn<'_, '_>) {
        if !self.flow.has_session || self.flow.is_changing_user || !self.link.awaits_login() {
            return;
        }
        self.flow.is_changing_user = true;
        self.login_deadline = turn.context.turn_start.plus(turn.settings.login_timeout());
        // An earlier entry is put back with the new deadline when its time comes.
        if self.queued_deadline.is_none_or(|queued| queued > self.login_deadline) {
            self.queued_deadline = Some(self.login_deadline);
            turn.logins.push(self.login_deadline, self.socket);
            turn.logins.start_timer(turn.context.turn_start, turn.outbox);
        }
    }

    /// Takes the next step of the check of a password. Returns whether more steps follow.
    pub fn continue_check(&mut self, turn: &mut RecvTurn<'_, '_>) -> bool {
        if !self.flow.is_checking || self.flow.is_closing {
            return false;
        }
        let mut out = Buffer::new();
        let mut context = turn.link_context(&self.peer, self.encryption.as_deref(), &mut out);
        let input = self.link.continue_login(&mut context);
        if !out.is_empty() {
            self.send(out, turn.context, turn.outbox);
        }
        match input {
            Input::Checking => return true,
            Input::Delayed(milliseconds) => {
                turn.delay(self.socket, milliseconds);
                return false;
            }
            Input::LoggedIn(login) => self.open_session(*login, turn),
            Input::Refused(refusal) => self.refuse_login(&refusal, turn),
            _ => self.close(turn),
        }
        self.flow.is_checking = false;
        false
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

    /// Closes the connection of a client that got the error already.
    #[cold]
    fn refuse_login(&mut self, refusal: &Refusal, turn: &mut RecvTurn<'_, '_>) {
        if refusal.errno != Refusal::BAD_HANDSHAKE {
            self.login_end = LoginEnd::Refused;
        }
        if refusal.errno == ErrorCode::AccountLocked.errno() {
            turn.settings.limits.counts().locked.fetch_add(1, Ordering::Relaxed);
        }
        let user = refusal.user.as_deref().unwrap_or("");
        self.audit(&turn.settings.journal, turn.context, (user, "refused", refusal.errno), &refusal.message);
        self.log_command(&turn.settings.journal, turn.context, "Connect", (user, &refusal.message));
        self.close(turn);
    }

    /// Records an event of the connection in the audit log: its user, its name and its error number.
    #[cold]
    pub fn audit(&self, journal: &Journal, context: &Context<'_>, event: (&str, &'static str, u16), text: &str) {
        if !journal.is_on(LogKind::Audit) {
            return;
        }
        let (user, name, errno) = event;
        let client =
            LoggedClient { connection: self.id.0, user: user.into(), host: self.peer.to_string().into_boxed_str() };
        let event = LogEvent::Audit(client, name, errno, cut(text.as_bytes()));
        journal.write(context.wall_clock_us, event);
    }

    /// Records in the general log that a client has logged in or left.
    #[cold]
    pub fn log_command(
        &self,
        journal: &Journal,
        context: &Context<'_>,
        command: &'static str,
        (user, text): (&str, &str),
    ) {
        if journal.is_on(LogKind::General) {
            let client =
                LoggedClient { connection: self.id.0, user: user.into(), host: self.peer.to_string().into_boxed_str() };
            journal.write(context.wall_clock_us, LogEvent::Command(client, command, cut(text.as_bytes())));
        }
    }

    /// Counts the session of a client that has logged in. If that is one too many, the client gets the error
    /// in place of the answer to its login.
    fn count_session(&mut self, user: &str, turn: &mut RecvTurn<'_, '_>) -> bool {
        if self.peer.is_internal() {
            return true;
        }
        let before = self.session.take();
        if let Some(session) = &before {
            turn.settings.limits.log_out(session);
        }
        let refusal = match turn.settings.limits.log_in(self.peer.network_address(), user, self.flow.is_extra) {
            Ok(session) => {
                self.session = Some(session);
                let way = match (self.peer.is_unix_socket(), &self.encryption) {
                    (true, _) => "over a Unix socket",
                    (false, Some(_)) => "over TLS",
                    (false, None) => "without TLS",
                };
                self.audit(&turn.settings.journal, turn.context, (user, "connect", 0), way);
                let command = if before.is_some() { "Change user" } else { "Connect" };
                let text = format!("{user}@{} {way}", self.peer);
                self.log_command(&turn.settings.journal, turn.context, command, (user, &text));
                return true;
            }
            Err(ExceededLimit::User) => Refusal::too_many_user_connections(user),
            Err(_) => Refusal::too_many_connections(),
        };
        let mut packets = Buffer::new();
        self.link.protocol().encode_refused_connection(&refusal, &mut packets);
        self.link.finish_answer(&mut packets, false);
        self.send(packets, turn.context, turn.outbox);
        self.refuse_login(&refusal, turn);
        false
    }

    fn open_session(&mut self, login: LoggedIn, turn: &mut RecvTurn<'_, '_>) {
        if let Some(before) = self.account.replace(Box::new(login.account.clone())) {
            turn.settings.accounts.end_connection(&before);
        }
        if !self.count_session(&login.user, turn) {
            return;
        }
        self.flow.is_busy = true;
        let login = Login {
            user: login.user.into_boxed_str(),
            host: self.peer.to_string().into_boxed_str(),
            account: login.account,
            is_expired: login.is_expired,
            database: login.database.map(String::into_boxed_str),
            capabilities: login.capabilities,
            character_set: login.character_set,
            protocol: self.link.protocol().number(),
            tls: self.encryption.as_ref().and_then(|encryption| encryption.agreed()),
            is_extra: self.flow.is_extra,
        };
        turn.logins.pending -= usize::from(!self.flow.has_session);
        self.flow.is_changing_user = false;
        let signal = OpenSession {
            connection: self.id,
            reply_to: turn.context.own_address,
            socket: self.socket,
            reset: self.flow.has_session,
            login: Box::new(login),
        };
        self.flow.has_session = true;
        turn.outbox.send(self.sql, Signal::Sql(SqlSignal::OpenSession(signal)));
    }

    /// Asks the session for the next part of its answer.
    pub fn request_part(&self, outbox: &mut Outbox<Signal>) {
        let signal = ContinueCommand { connection: self.id };
        outbox.send(self.sql, Signal::Sql(SqlSignal::ContinueCommand(signal)));
    }

    /// Sends bytes to the client.
    #[inline]
    pub fn send(&mut self, bytes: Buffer, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        match self.encryption {
            None => outbox.request(WorldRequest::SendBytes { socket: self.socket, bytes }),
            Some(_) => self.send_encrypted(bytes, context, outbox),
        }
    }

    /// Closes the socket once all queued output is written.
    pub fn close(&mut self, turn: &mut RecvTurn<'_, '_>) {
        self.flow.is_closing = true;
        if let Some(encryption) = &mut self.encryption {
            encryption.close();
            self.write_encrypted(0, turn.context, turn.outbox);
        }
        turn.outbox.request(WorldRequest::CloseSocket { socket: self.socket });
    }

    #[cold]
    fn send_encrypted(&mut self, bytes: Buffer, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let length = bytes.len();
        if let Some(encryption) = &mut self.encryption {
            encryption.send(&bytes);
        }
        context.buffers.give(bytes);
        self.write_encrypted(length, context, outbox);
    }

    /// Sends what the encryption has to write: records of `length` plain bytes, or of its handshake.
    fn write_encrypted(&mut self, length: usize, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let Some(encryption) = &mut self.encryption else { return };
        let mut bytes = context.buffers.take(length + TLS_RECORD_BYTES);
        encryption.write(&mut bytes);
        match bytes.is_empty() {
            true => context.buffers.give(bytes),
            false => outbox.request(WorldRequest::SendBytes { socket: self.socket, bytes }),
        }
    }

    /// The plain bytes in received ones. Ends the connection if they are no TLS.
    #[cold]
    fn decrypt(&mut self, received: &[u8], turn: &mut RecvTurn<'_, '_>) -> Buffer {
        let mut plain = turn.context.buffers.take(received.len());
        if self.flow.is_closing {
            return plain;
        }
        let Some(encryption) = &mut self.encryption else { return plain };
        let outcome = encryption.receive(received, &mut plain);
        self.write_encrypted(0, turn.context, turn.outbox);
        if outcome.is_err() {
            plain.clear();
            self.close(turn);
        }
        plain
    }

    pub fn append_received(&mut self, bytes: Buffer, turn: &mut RecvTurn<'_, '_>) {
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
