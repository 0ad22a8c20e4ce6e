//! Hot path, budget 120 instructions a command in and 60 an answer out: no copy of a command that came alone, no allocation.
//! The block recv: owns the client connections of its thread, their framing and logins. In: socket events, answers of sql.
//! Out: commands to sql, packets to sockets. It never waits for anything and never looks into a statement.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use junctor_kernel::{Address, Buffer, Context, Directory, Duration, Outbox, SocketId, Time, WorldEvent, WorldRequest};
use junctor_model::id::ConnectionId;
use junctor_signals::Module;
use junctor_signals::client_command::*;
use junctor_signals::counter::{RecvCounters, counter_rows};
use junctor_signals::inbox::{RecvSignal, Signal, SqlSignal};
use junctor_signals::read_status::*;
use junctor_wire::reply::Greeting;
use junctor_wire::{LOGIN_PAYLOAD_BYTES_MAX, SALT_BYTES, VERSION, frame};

use super::auth::{
    Accounts, Authenticated, Handshake, HandshakeStep, Peer, Refusal, emit_too_many_connections, salt_from_random,
};
use super::wire::capability::Capabilities;
use super::wire::command::Command;
use super::wire::error::ProtocolError;
use super::wire::packet::{HANDSHAKE_PAYLOAD_BYTES_MAX, PacketReader, PacketWriter, patch_sequences};
use super::wire::reply::ErrorReply;
use crate::native::{NATIVE_LISTENER, emit_refusal, log_in};

/// Bytes of commands that may wait behind one that is under way, before the socket is not read any more.
const PENDING_BYTES_MAX: usize = 64 * 1024;
/// Default collation told in the greeting: utf8mb4_0900_ai_ci.
const GREETING_CHARACTER_SET: u8 = 255;
const QUIT: u8 = 0x01;
const CHANGE_USER: u8 = 0x11;

/// What the connections of a recv block agree on.
#[derive(Clone, Debug)]
pub struct RecvSettings {
    /// What the greeting says.
    pub server_version: Arc<str>,
    /// Who may log in.
    pub accounts: Arc<Accounts>,
    /// Connections of this block at once.
    pub connections_max: usize,
    /// Bytes of one command.
    pub max_allowed_packet: usize,
    /// How long a login may take.
    pub login_timeout: Duration,
}

/// The block.
#[derive(Debug)]
pub struct RecvBlock {
    settings: RecvSettings,
    connections: Vec<Option<Box<Connection>>>,
    /// Connections whose next part is asked for at the end of the turn.
    asking: Vec<SocketId>,
    /// Logins that began, in their order, and when they must be done. Some have ended meanwhile.
    logins: VecDeque<(Time, SocketId)>,
    login_timer_runs: bool,
    count: usize,
    next_number: u32,
    recv_instances: u32,
    sql_instances: u16,
    local_sql: Option<u16>,
    counted: RecvCounters,
}

#[derive(Debug)]
struct Connection {
    socket: SocketId,
    id: ConnectionId,
    sql: Address,
    reader: PacketReader,
    stage: Stage,
    /// A session exists at sql.
    has_session: bool,
    handshake: Handshake,
    peer: IpAddr,
    capabilities: Capabilities,
    /// Number of the next packet of the answer.
    sequence: u8,
    /// A command is at sql.
    busy: bool,
    /// The output is above its mark; the next part is asked for when it is below again, otherwise at the end of the turn.
    blocked: bool,
    part_wanted: bool,
    /// The next command begins when the output is below its mark again.
    next_wanted: bool,
    reading_paused: bool,
    /// Bytes received while a command was under way; in the native protocol all that are not done with.
    pending: Buffer,
    /// Of a connection of the native protocol: its challenge, and how much of `pending` is done with.
    native: Option<NativeLink>,
}

#[derive(Clone, Copy, Debug)]
struct NativeLink {
    salt: [u8; SALT_BYTES],
    position: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The client has not proved yet who it is, or is proving to be somebody else (COM_CHANGE_USER).
    Login,
    /// Logged in; a session exists at sql.
    Ready,
    /// Being closed: what comes is ignored.
    Closing,
}

impl RecvBlock {
    /// The block of recv instance `own`.
    pub fn new(own: Address, directory: &Directory, settings: RecvSettings) -> RecvBlock {
        let sql_instances = directory.instances(Module::Sql).max(1);
        let beside = |instance: &u16| directory.share_thread((Module::Recv, own.instance), (Module::Sql, *instance));
        RecvBlock {
            settings,
            connections: Vec::new(),
            asking: Vec::new(),
            logins: VecDeque::new(),
            login_timer_runs: false,
            count: 0,
            next_number: u32::from(own.instance) + 1,
            recv_instances: u32::from(directory.instances(Module::Recv).max(1)),
            sql_instances,
            local_sql: (0..sql_instances).find(beside),
            counted: RecvCounters::default(),
        }
    }

    /// Takes one signal.
    pub fn handle(&mut self, signal: RecvSignal, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.counted.signals += 1;
        match signal {
            RecvSignal::CommandReply(reply) => self.on_command_reply(reply, context, outbox),
            RecvSignal::ReadStatus(request) => self.on_read_status(request, context, outbox),
        }
    }

    /// Takes one event of the world.
    pub fn on_world(&mut self, event: WorldEvent, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.counted.signals += 1;
        match event {
            WorldEvent::SocketOpened { socket, peer, listener } => {
                self.on_opened(socket, peer.ip(), listener == NATIVE_LISTENER, context, outbox);
            }
            WorldEvent::Received { socket, bytes } => self.on_received(socket, bytes, context, outbox),
            WorldEvent::SocketClosed { socket, .. } => self.on_closed(socket, context, outbox),
            WorldEvent::SendBlocked { socket } => {
                if let Some(connection) = find(&mut self.connections, socket) {
                    connection.blocked = true;
                }
            }
            WorldEvent::SendDrained { socket } => {
                if let Some(connection) = find(&mut self.connections, socket) {
                    connection.blocked = false;
                    if std::mem::take(&mut connection.part_wanted) {
                        connection.ask_for_part(outbox);
                    }
                    if std::mem::take(&mut connection.next_wanted) {
                        connection.begin_next(&self.settings, context, outbox);
                    }
                }
            }
            WorldEvent::Timer { .. } => self.on_login_timer(context, outbox),
            _ => {}
        }
    }

    /// Asks for the next parts of long answers: one a turn, since a socket that takes no more is only known of after what
    /// was sent in a turn is written.
    pub fn end_turn(&mut self, outbox: &mut Outbox<Signal>) {
        for socket in self.asking.drain(..) {
            if let Some(connection) = find(&mut self.connections, socket).filter(|connection| !connection.blocked)
                && std::mem::take(&mut connection.part_wanted)
            {
                connection.ask_for_part(outbox);
            }
        }
    }

    /// Connections at this moment.
    pub fn connection_count(&self) -> usize {
        self.count
    }

    /// Answers with the rows of `junctor_info.counters`, the only table that it knows rows of.
    fn on_read_status(&mut self, request: ReadStatus, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let rows = counter_rows(&self.counted, context.own, context.thread());
        let reply = ReadStatusReply { operation: request.operation, rows };
        outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
    }

    fn on_opened(
        &mut self,
        socket: SocketId,
        peer: IpAddr,
        is_native: bool,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let mut packets = context.buffers.take(512);
        if self.count >= self.settings.connections_max {
            self.counted.connections_refused += 1;
            match is_native {
                true => emit_refusal(&too_many_connections(), &mut packets),
                false => emit_too_many_connections(&mut packets),
            }
            outbox.request(WorldRequest::SendBytes { socket, bytes: packets });
            outbox.request(WorldRequest::CloseSocket { socket });
            return;
        }
        self.counted.connections += 1;
        let mut random = [0; 20];
        context.random.bytes(&mut random);
        let id = ConnectionId(self.next_number);
        self.next_number = self.next_number.wrapping_add(self.recv_instances);
        let sql = self.local_sql.unwrap_or((id.0 % u32::from(self.sql_instances)) as u16);
        let salt = salt_from_random(random);
        let handshake = Handshake::new(Peer::new(peer), salt);
        let server_version = &*self.settings.server_version;
        match is_native {
            true => Greeting { version: VERSION, connection: id.0, salt, server_version }.emit(&mut packets),
            false => handshake.greeting(id.0, server_version, GREETING_CHARACTER_SET, &mut packets),
        }
        outbox.request(WorldRequest::SendBytes { socket, bytes: packets });
        let connection = Connection {
            socket,
            id,
            sql: Address::new(context.own.node, Module::Sql, sql),
            reader: PacketReader::new(1, HANDSHAKE_PAYLOAD_BYTES_MAX.min(self.settings.max_allowed_packet)),
            stage: Stage::Login,
            has_session: false,
            handshake,
            peer,
            capabilities: Capabilities::NONE,
            sequence: 0,
            busy: false,
            blocked: false,
            part_wanted: false,
            next_wanted: false,
            reading_paused: false,
            pending: Buffer::new(),
            native: is_native.then_some(NativeLink { salt, position: 0 }),
        };
        let index = socket.index() as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        self.connections[index] = Some(Box::new(connection));
        self.count += 1;
        self.begin_login(socket, context, outbox);
    }

    /// From now on the login of a connection may take so long and no longer.
    fn begin_login(&mut self, socket: SocketId, context: &Context<'_>, outbox: &mut Outbox<Signal>) {
        self.logins.push_back((context.now.plus(self.settings.login_timeout), socket));
        self.start_login_timer(context, outbox);
    }

    fn start_login_timer(&mut self, context: &Context<'_>, outbox: &mut Outbox<Signal>) {
        if let Some((deadline, _)) = self.logins.front()
            && !self.login_timer_runs
        {
            self.login_timer_runs = true;
            outbox.request(WorldRequest::StartTimer { after: deadline.since(context.now), token: 0 });
        }
    }

    /// Closes connections that have not logged in in time.
    fn on_login_timer(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.login_timer_runs = false;
        while let Some((_, socket)) = self.logins.pop_front_if(|(deadline, _)| *deadline <= context.now) {
            if let Some(connection) = find(&mut self.connections, socket)
                && connection.stage == Stage::Login
            {
                connection.close(outbox);
            }
        }
        self.start_login_timer(context, outbox);
    }

    fn on_closed(&mut self, socket: SocketId, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let Some(slot) = self.connections.get_mut(socket.index() as usize) else { return };
        if slot.as_ref().is_none_or(|connection| connection.socket != socket) {
            return;
        }
        if let Some(connection) = slot.take() {
            self.count -= 1;
            context.buffers.give(connection.pending);
            if connection.has_session {
                let signal = CloseSession { connection: connection.id };
                outbox.send(connection.sql, Signal::Sql(SqlSignal::CloseSession(signal)));
            }
        }
    }

    fn on_received(&mut self, socket: SocketId, bytes: Buffer, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.counted.bytes_received += bytes.len() as u64;
        match find(&mut self.connections, socket) {
            None => context.buffers.give(bytes),
            Some(connection) if connection.busy || connection.blocked => {
                connection.next_wanted |= !connection.busy;
                connection.keep_pending(bytes, context, outbox);
            }
            Some(connection) => connection.take_bytes(bytes, &self.settings, context, outbox),
        }
    }

    fn on_command_reply(&mut self, reply: CommandReply, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let CommandReply { connection: id, socket, mut packets, after } = reply;
        let Some(connection) = find(&mut self.connections, socket).filter(|connection| connection.id == id) else {
            context.buffers.give(packets);
            return;
        };
        if packets.is_empty() {
            context.buffers.give(packets);
        } else {
            if !connection.busy {
                // What comes between two commands is numbered as MySQL numbers it.
                connection.sequence = 0;
            }
            self.counted.bytes_sent += packets.len() as u64;
            if connection.native.is_none() {
                connection.sequence = patch_sequences(&mut packets, connection.sequence);
            }
            outbox.request(WorldRequest::SendBytes { socket: connection.socket, bytes: packets });
        }
        match after {
            AfterReply::MoreParts => {
                connection.part_wanted = true;
                self.asking.push(connection.socket);
            }
            AfterReply::Close => connection.close(outbox),
            AfterReply::NextCommand => {
                connection.busy = false;
                connection.part_wanted = false;
                if connection.blocked {
                    connection.next_wanted = true;
                } else {
                    connection.begin_next(&self.settings, context, outbox);
                }
            }
        }
    }
}

fn find(connections: &mut [Option<Box<Connection>>], socket: SocketId) -> Option<&mut Connection> {
    connections.get_mut(socket.index() as usize)?.as_deref_mut().filter(|connection| connection.socket == socket)
}

/// What a payload turned out to be, once the borrow of the bytes that it lies in has ended.
enum Found {
    /// A command that lies in the received bytes.
    InPlace(std::ops::Range<usize>),
    /// A command that was put together from several receptions.
    Assembled(Buffer),
    /// Handled here.
    Handled,
    /// No whole payload is left.
    Nothing,
}

impl Connection {
    /// Takes received bytes while no command is under way, up to the end of the first command.
    fn take_bytes(
        &mut self,
        bytes: Buffer,
        settings: &RecvSettings,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        if self.native.is_some() {
            return self.take_frames(bytes, settings, context, outbox);
        }
        let mut position = 0;
        while !self.busy && self.stage != Stage::Closing {
            match self.next_payload(&bytes, &mut position, settings, context, outbox) {
                Found::Handled => {}
                Found::Nothing => break,
                Found::InPlace(payload) if position == bytes.len() => {
                    self.forward(bytes, payload, outbox);
                    return;
                }
                Found::InPlace(payload) => {
                    let mut command = context.buffers.take(payload.len());
                    command.extend_from_slice(&bytes[payload]);
                    let whole = 0..command.len();
                    self.forward(command, whole, outbox);
                }
                Found::Assembled(command) => {
                    let whole = 0..command.len();
                    self.forward(command, whole, outbox);
                }
            }
        }
        if position < bytes.len() && self.stage != Stage::Closing {
            let mut rest = context.buffers.take(bytes.len() - position);
            rest.extend_from_slice(&bytes[position..]);
            self.keep_pending(rest, context, outbox);
        }
        context.buffers.give(bytes);
    }

    fn next_payload(
        &mut self,
        bytes: &[u8],
        position: &mut usize,
        settings: &RecvSettings,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) -> Found {
        let mut input = &bytes[*position..];
        let was_idle = self.reader.is_idle();
        let packet = match self.reader.next_packet(&mut input) {
            Ok(Some(packet)) => packet,
            Ok(None) => {
                *position = bytes.len() - input.len();
                return Found::Nothing;
            }
            Err(error) => {
                let sequence = self.reader.failure_sequence();
                self.refuse(error, sequence, context, outbox);
                *position = bytes.len();
                return Found::Handled;
            }
        };
        let end = bytes.len() - input.len();
        *position = end;
        let (payload, sequence) = (packet.payload, packet.sequence);
        if self.stage == Stage::Ready {
            match payload.first() {
                Some(&QUIT) => {
                    self.close(outbox);
                    return Found::Handled;
                }
                Some(&CHANGE_USER) => {
                    let payload = payload.to_vec();
                    self.change_user(&payload, sequence, settings, context, outbox);
                    return Found::Handled;
                }
                _ => {}
            }
            self.sequence = sequence.wrapping_add(1);
            let lies_here = was_idle && bytes[..end].ends_with(payload) && payload.len() < end;
            return if lies_here {
                Found::InPlace(end - payload.len()..end)
            } else {
                let mut command = context.buffers.take(payload.len());
                command.extend_from_slice(payload);
                Found::Assembled(command)
            };
        }
        let payload = payload.to_vec();
        self.log_in(&payload, sequence, settings, context, outbox);
        Found::Handled
    }

    fn forward(&mut self, bytes: Buffer, payload: std::ops::Range<usize>, outbox: &mut Outbox<Signal>) {
        self.busy = true;
        let signal =
            ExecuteCommand { connection: self.id, bytes, start: payload.start as u32, end: payload.end as u32 };
        outbox.send(self.sql, Signal::Sql(SqlSignal::ExecuteCommand(signal)));
    }

    /// Begins with what has come meanwhile, after a command or when the client has taken enough of the answers.
    fn begin_next(&mut self, settings: &RecvSettings, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        if !self.pending.is_empty() {
            let pending = if self.native.is_some() { Buffer::new() } else { std::mem::take(&mut self.pending) };
            self.take_bytes(pending, settings, context, outbox);
        }
        if self.reading_paused && !self.is_full() {
            self.reading_paused = false;
            outbox.request(WorldRequest::ResumeReading { socket: self.socket });
        }
    }

    fn keep_pending(&mut self, bytes: Buffer, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.append_pending(bytes, context);
        if self.is_full() && !self.reading_paused {
            self.reading_paused = true;
            outbox.request(WorldRequest::PauseReading { socket: self.socket });
        }
    }

    /// Whether more bytes wait behind the command under way than may.
    fn is_full(&self) -> bool {
        let done_with = self.native.map_or(0, |link| link.position);
        (self.busy || self.blocked) && self.pending.len() - done_with >= PENDING_BYTES_MAX
    }

    /// As `take_bytes`, of the native protocol.
    fn take_frames(
        &mut self,
        bytes: Buffer,
        settings: &RecvSettings,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        self.append_pending(bytes, context);
        let Some(mut link) = self.native else { return };
        while !self.busy && self.stage != Stage::Closing {
            let rest = &self.pending[link.position..];
            let Some((_, length)) = frame::head(rest) else { break };
            let longest =
                if self.stage == Stage::Ready { settings.max_allowed_packet } else { LOGIN_PAYLOAD_BYTES_MAX };
            // A full frame would go on in the next one, which no request does.
            if length > longest || length >= frame::PAYLOAD_BYTES_MAX {
                self.refuse_native(&packet_too_large(), context, outbox);
                break;
            }
            let frame_bytes = frame::HEAD_BYTES + length;
            if rest.len() < frame_bytes {
                break;
            }
            // A request begins with its kind, the last byte of the frame's head.
            let request = link.position + frame::HEAD_BYTES - 1..link.position + frame_bytes;
            if self.stage == Stage::Login {
                let payload = self.pending[request.clone()].to_vec();
                self.log_in_native(&payload, &link, settings, context, outbox);
            } else if request.end == self.pending.len() && link.position == 0 {
                let bytes = std::mem::take(&mut self.pending);
                // What was done with before has been taken out, perhaps just now.
                self.native = Some(link);
                self.forward(bytes, request, outbox);
                return;
            } else {
                let mut command = context.buffers.take(request.len());
                command.extend_from_slice(&self.pending[request.clone()]);
                let whole = 0..command.len();
                self.forward(command, whole, outbox);
            }
            link.position = request.end;
        }
        if link.position == self.pending.len() || self.stage == Stage::Closing {
            context.buffers.give(std::mem::take(&mut self.pending));
            link.position = 0;
        }
        self.native = Some(link);
    }

    /// Puts received bytes behind those that are not done with.
    fn append_pending(&mut self, bytes: Buffer, context: &mut Context<'_>) {
        if self.pending.is_empty() {
            if let Some(link) = &mut self.native {
                link.position = 0;
            }
            context.buffers.give(std::mem::replace(&mut self.pending, bytes));
            return;
        }
        if let Some(link) = &mut self.native
            && link.position > self.pending.len() / 2
            && !bytes.is_empty()
        {
            self.pending.drain(..link.position);
            link.position = 0;
        }
        self.pending.extend_from_slice(&bytes);
        context.buffers.give(bytes);
    }

    fn log_in_native(
        &mut self,
        request: &[u8],
        link: &NativeLink,
        settings: &RecvSettings,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let (kind, payload) = request.split_first().map_or((0, request), |(kind, payload)| (*kind, payload));
        match log_in(kind, payload, (Peer::new(self.peer), &link.salt), &settings.accounts) {
            Err(refusal) => self.refuse_native(&refusal, context, outbox),
            Ok(login) => {
                let login = Login {
                    user: login.user.into_boxed_str(),
                    host: self.host(),
                    database: login.database.map(String::into_boxed_str),
                    capabilities: 0,
                    character_set: u16::from(GREETING_CHARACTER_SET),
                    is_native: true,
                };
                self.send_opening(login, context, outbox);
            }
        }
    }

    fn refuse_native(&mut self, refusal: &Refusal, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let mut bytes = context.buffers.take(512);
        emit_refusal(refusal, &mut bytes);
        outbox.request(WorldRequest::SendBytes { socket: self.socket, bytes });
        self.close(outbox);
    }

    fn host(&self) -> Box<str> {
        if self.peer.is_loopback() { "localhost".into() } else { self.peer.to_string().into_boxed_str() }
    }

    fn log_in(
        &mut self,
        payload: &[u8],
        sequence: u8,
        settings: &RecvSettings,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let mut packets = context.buffers.take(512);
        let step = self.handshake.on_packet(payload, sequence, &settings.accounts, &mut packets);
        self.after_handshake(step, packets, settings, context, outbox);
    }

    fn change_user(
        &mut self,
        payload: &[u8],
        sequence: u8,
        settings: &RecvSettings,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let command = match Command::parse(payload, self.capabilities) {
            Ok(Command::ChangeUser(command)) => command,
            Ok(_) => return,
            Err(error) => return self.refuse(error, sequence.wrapping_add(1), context, outbox),
        };
        self.stage = Stage::Login;
        let mut packets = context.buffers.take(512);
        let step =
            self.handshake.on_change_user(&command, self.capabilities, sequence, &settings.accounts, &mut packets);
        self.after_handshake(step, packets, settings, context, outbox);
    }

    fn after_handshake(
        &mut self,
        step: HandshakeStep,
        packets: Buffer,
        settings: &RecvSettings,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        if packets.is_empty() {
            context.buffers.give(packets);
        } else {
            outbox.request(WorldRequest::SendBytes { socket: self.socket, bytes: packets });
        }
        match step {
            HandshakeStep::Replied { expected_sequence } => self.reader.expect_sequence(expected_sequence),
            HandshakeStep::Refused(_) => self.close(outbox),
            HandshakeStep::Authenticated(login) => self.open_session(*login, settings, context, outbox),
        }
    }

    fn open_session(
        &mut self,
        login: Authenticated,
        settings: &RecvSettings,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        self.capabilities = login.capabilities;
        self.sequence = login.reply_sequence;
        self.reader.expect_sequence(0);
        self.reader.set_payload_bytes_max(settings.max_allowed_packet);
        let login = Login {
            user: login.user.into_boxed_str(),
            host: self.host(),
            database: login.database.map(String::into_boxed_str),
            capabilities: login.capabilities.bits(),
            character_set: login.charset.unwrap_or(u16::from(GREETING_CHARACTER_SET)),
            is_native: false,
        };
        self.send_opening(login, context, outbox);
    }

    fn send_opening(&mut self, login: Login, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.stage = Stage::Ready;
        self.busy = true;
        let signal = OpenSession {
            connection: self.id,
            reply_to: context.own,
            socket: self.socket,
            reset: std::mem::replace(&mut self.has_session, true),
            login: Box::new(login),
        };
        outbox.send(self.sql, Signal::Sql(SqlSignal::OpenSession(signal)));
    }

    fn refuse(&mut self, error: ProtocolError, sequence: u8, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let mut packets = context.buffers.take(512);
        let reply = ErrorReply::from_protocol_error(error);
        PacketWriter::new(&mut packets, sequence).packet(|out| reply.emit(out));
        outbox.request(WorldRequest::SendBytes { socket: self.socket, bytes: packets });
        self.close(outbox);
    }

    fn ask_for_part(&self, outbox: &mut Outbox<Signal>) {
        let signal = ContinueCommand { connection: self.id };
        outbox.send(self.sql, Signal::Sql(SqlSignal::ContinueCommand(signal)));
    }

    fn close(&mut self, outbox: &mut Outbox<Signal>) {
        self.stage = Stage::Closing;
        outbox.request(WorldRequest::CloseSocket { socket: self.socket });
    }
}

fn too_many_connections() -> Refusal {
    Refusal { errno: 1040, sqlstate: *b"08004", message: "Too many connections".into() }
}

fn packet_too_large() -> Refusal {
    let message = "Got a packet bigger than 'max_allowed_packet' bytes".into();
    Refusal { errno: 1153, sqlstate: *b"08S01", message }
}
