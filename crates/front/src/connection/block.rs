//! Hot path: at most 60 instructions per received command and 60 per sent answer, not counting framing; no
//! allocation.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;

use junctor_kernel::transport::security::ClientSecurity;
use junctor_kernel::{
    Address, Buffer, Context, Directory, Duration, Outbox, SocketId, WorldEvent, WorldRequest, require,
};
use junctor_model::id::ConnectionId;
use junctor_signals::Module;
use junctor_signals::client_command::*;
use junctor_signals::connection_limits::{ConnectionLimits, ExceededLimit, LoginEnd};
use junctor_signals::counter::{RecvCounters, counter_rows};
use junctor_signals::inbox::{RecvSignal, Signal, SqlSignal};
use junctor_signals::journal::{Journal, LogEvent, Severity};
use junctor_signals::read_status::*;

use super::client_connection::{Connection, Flow, RecvTurn};
use super::login_queue::LoginQueue;
use super::networks::Networks;
use super::proxy_header::{self, ProxyHeader};
use crate::account::{Accounts, CHALLENGE_BYTES, Peer, Refusal, challenge_from_random};
use crate::protocol::LinkOpening;
use crate::protocol_table::{INTERNAL_LISTENER, Link, Protocol};

/// The settings that all connections of a recv block share.
#[derive(Clone, Debug)]
pub struct RecvSettings {
    /// Version text of the greeting.
    pub server_version: Arc<str>,
    /// The users who may log in.
    pub accounts: Arc<Accounts>,
    /// TLS for clients; `None` refuses it.
    pub security: Option<Arc<dyn ClientSecurity>>,
    /// The variable `require_secure_transport`.
    pub secure_transport_required: Arc<AtomicBool>,
    /// Takes what the logs record.
    pub journal: Arc<Journal>,
    /// Which connections the node admits.
    pub limits: Arc<ConnectionLimits>,
    /// Maximum number of connections of this block that have not logged in. One more takes the place of the
    /// oldest of them.
    pub logins_max: usize,
    /// Connections from these networks begin with a header of the PROXY protocol.
    pub proxy_networks: Networks,
    /// Maximum length of a command in bytes. A longer command ends its connection with error 1153.
    pub max_allowed_packet: usize,
    /// Whether the node has recovered its data. Until then every connection is refused with error 3168.
    pub readiness: Arc<Readiness>,
    /// Connection ids are above the first number, and at most the second one. The nodes of a cluster have ids
    /// of their own.
    pub ids: (u32, u32),
}

impl RecvSettings {
    /// `connect_timeout`. A connection that takes longer to log in is closed without an answer.
    pub(super) fn login_timeout(&self) -> Duration {
        Duration::from_seconds(self.limits.login_timeout_s())
    }
}

/// Tokens of timers.
pub(super) const LOGIN_TIMER: u64 = 0;
pub(super) const CHECK_TIMER: u64 = 1;
pub(super) const DELAY_TIMER: u64 = 2;

/// Whether the node has opened to clients, which stays so until its process ends. The recv blocks set this
/// shared flag and read it. The thread that starts the node waits for it.
#[derive(Debug)]
pub struct Readiness {
    is_open: AtomicBool,
    /// The thread that starts the node, and sleeps until the node is open.
    starter: Thread,
}

impl Readiness {
    /// The readiness of a closed node. `open` wakes the calling thread, which starts the node.
    pub fn new() -> Readiness {
        Readiness { is_open: AtomicBool::new(false), starter: std::thread::current() }
    }

    /// Opens the node to clients.
    pub fn open(&self) {
        self.is_open.store(true, Ordering::Release);
        self.starter.unpark();
    }

    /// Whether the node is open to clients.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }
}

impl Default for Readiness {
    fn default() -> Readiness {
        Readiness::new()
    }
}

/// The state of a recv block.
#[derive(Debug)]
pub struct RecvBlock {
    pub(super) settings: RecvSettings,
    /// Indexed by the socket's index.
    pub(super) connections: Vec<Option<Box<Connection>>>,
    /// Connections that request the next part of an answer at the end of the turn.
    wanting_part: Vec<SocketId>,
    pub(super) logins: LoginQueue,
    count: usize,
    ids: ConnectionIds,
    sql_instances: u16,
    /// The sql block of this thread, if it has one. It gets all sessions of this block, so that commands
    /// cross no thread.
    local_sql: Option<u16>,
    counted: RecvCounters,
}

/// Generates connection ids. They are distinct among the recv blocks of the node, because each block counts
/// in steps of the number of recv blocks.
#[derive(Debug)]
struct ConnectionIds {
    first: u32,
    next: u32,
    last: u32,
    recv_instances: u32,
    /// The numbers have wrapped around, so an old connection may still have the next one.
    has_wrapped: bool,
}

/// A socket that a client has just opened.
struct Opened {
    socket: SocketId,
    peer: Peer,
    protocol: Protocol,
    is_extra: bool,
}

impl RecvBlock {
    /// Creates the block of recv instance `own`.
    pub fn new(own: Address, directory: &Directory, settings: RecvSettings) -> RecvBlock {
        // The last sql blocks, those of work threads, have no sessions of their own.
        let sql_instances = (directory.instances(Module::Sql) - directory.instances(Module::Work)).max(1);
        let (below, last_id) = settings.ids;
        let first_id = below + u32::from(own.instance) + 1;
        let is_local = |instance: &u16| directory.share_thread((Module::Recv, own.instance), (Module::Sql, *instance));
        RecvBlock {
            settings,
            connections: Vec::new(),
            wanting_part: Vec::new(),
            logins: LoginQueue::default(),
            count: 0,
            ids: ConnectionIds {
                first: first_id,
                next: first_id,
                last: last_id,
                recv_instances: u32::from(directory.instances(Module::Recv).max(1)),
                has_wrapped: false,
            },
            sql_instances,
            local_sql: (0..sql_instances).find(is_local),
            counted: RecvCounters::default(),
        }
    }

    /// Handles one signal.
    pub fn handle(&mut self, signal: RecvSignal, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.counted.signals += 1;
        match signal {
            RecvSignal::CommandReply(reply) => self.on_command_reply(reply, context, outbox),
            RecvSignal::OpenToClients(_) => self.settings.readiness.open(),
            RecvSignal::ReadStatus(request) => self.on_read_status(request, context, outbox),
        }
        self.start_check_timer(outbox);
    }

    /// Handles one event of a socket or timer.
    pub fn on_world(&mut self, event: WorldEvent, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.counted.signals += 1;
        match event {
            WorldEvent::SocketOpened { socket, peer, listener } => {
                let protocol = Protocol::of_listener(listener);
                require!(protocol.is_some(), "listener {listener} is that of a protocol");
                if let Some((protocol, is_extra)) = protocol {
                    let peer = match listener {
                        INTERNAL_LISTENER => Peer::internal(),
                        _ => Peer::from(&peer),
                    };
                    let opened = Opened { socket, peer, protocol, is_extra };
                    self.on_opened(opened, context, outbox);
                }
            }
            WorldEvent::Received { socket, bytes } => self.on_received(socket, bytes, context, outbox),
            WorldEvent::SocketClosed { socket, .. } => self.on_closed(socket, context, outbox),
            WorldEvent::SendBlocked { socket } => {
                if let Some(connection) = find(&mut self.connections, socket) {
                    connection.flow.is_output_blocked = true;
                }
            }
            WorldEvent::SendDrained { socket } => self.on_send_drained(socket, context, outbox),
            WorldEvent::Timer { token: LOGIN_TIMER } => self.on_login_timer(context, outbox),
            WorldEvent::Timer { token: DELAY_TIMER } => self.on_delay_timer(context, outbox),
            WorldEvent::Timer { .. } => self.on_check_timer(context, outbox),
            _ => {}
        }
        self.start_check_timer(outbox);
        self.start_delay_timer(context.turn_start, outbox);
    }

    /// Requests the next parts of long answers. Only at the end of the turn, after the turn's output is
    /// written, does the block know which sockets are full.
    pub fn before_publish(&mut self, outbox: &mut Outbox<Signal>) {
        for socket in self.wanting_part.drain(..) {
            if let Some(connection) = find(&mut self.connections, socket)
                && !connection.flow.is_output_blocked
                && std::mem::take(&mut connection.flow.wants_part)
            {
                connection.request_part(outbox);
            }
        }
    }

    /// The number of open connections.
    pub fn connection_count(&self) -> usize {
        self.count
    }

    /// Replies with rows of `junctor_info.counters`, the only status table to which recv contributes.
    fn on_read_status(&mut self, request: ReadStatus, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let rows = counter_rows(&self.counted, context.own_address, context.thread());
        let reply = ReadStatusReply { operation: request.operation, rows };
        outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
    }

    fn on_opened(&mut self, opened: Opened, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let Opened { socket, peer, protocol, is_extra } = opened;
        let mut greeting = context.buffers.take(512);
        let awaits_header = self.settings.proxy_networks.contains(peer);
        let admitted = match self.settings.readiness.is_open() {
            false => Err(Refusal::recovering()),
            // Its client is not known yet.
            true if awaits_header => Ok(None),
            true => admit(&self.settings.limits, peer, is_extra).map(Some),
        };
        let counted_address = match admitted {
            Ok(counted) => counted,
            Err(refusal) => {
                self.counted.connections_refused += 1;
                log_refused(&self.settings.journal, peer, &refusal, context);
                protocol.encode_refused_connection(&refusal, &mut greeting);
                outbox.request(WorldRequest::SendBytes { socket, bytes: greeting });
                outbox.request(WorldRequest::CloseSocket { socket });
                return;
            }
        };
        self.displace_login(context, outbox);
        self.counted.connections += 1;
        let mut random = [0; CHALLENGE_BYTES];
        context.random.secret(&mut random);
        let id = self.ids.next_free(&self.connections);
        let sql = self.local_sql.unwrap_or((id.0 % u32::from(self.sql_instances)) as u16);
        let opening = LinkOpening {
            connection: id,
            peer,
            challenge: challenge_from_random(random),
            server_version: &self.settings.server_version,
            command_bytes_max: self.settings.max_allowed_packet,
            offers_tls: self.settings.security.is_some(),
        };
        let link = Link::open(protocol, &opening, &mut greeting);
        if awaits_header {
            // The greeting follows the header, to a link that knows the client.
            greeting.clear();
        }
        let login_deadline = context.turn_start.plus(self.settings.login_timeout());
        let connection = Connection {
            socket,
            id,
            peer,
            sql: Address::new(context.own_address.node, Module::Sql, sql),
            link,
            encryption: None,
            account: None,
            flow: Flow { awaits_header, is_extra, ..Flow::default() },
            counted_address,
            session: None,
            login_deadline,
            queued_deadline: Some(login_deadline),
            login_end: LoginEnd::Broken,
            received: Buffer::new(),
            position: 0,
        };
        match greeting.is_empty() {
            true => context.buffers.give(greeting),
            false => outbox.request(WorldRequest::SendBytes { socket, bytes: greeting }),
        }
        self.add_connection(connection);
        self.logins.push(login_deadline, socket);
        self.logins.start_timer(context.turn_start, outbox);
    }

    /// Reads the header of a balancer. Once it is complete, the connection is that of the client it names.
    #[cold]
    fn on_header_bytes(
        &mut self,
        socket: SocketId,
        bytes: Buffer,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let mut random = [0; CHALLENGE_BYTES];
        context.random.secret(&mut random);
        let mut turn = RecvTurn { settings: &self.settings, logins: &mut self.logins, context, outbox };
        let Some(connection) = find(&mut self.connections, socket) else { return };
        connection.append_received(bytes, &mut turn);
        let (length, client) = match proxy_header::read(&connection.received) {
            ProxyHeader::Complete { length, client } => (length, client),
            ProxyHeader::Incomplete => return,
            ProxyHeader::Malformed => return connection.close(&mut turn),
        };
        connection.position = length;
        if let Some(client) = client {
            connection.peer = Peer::new(client);
        }
        connection.flow.awaits_header = false;
        let mut greeting = turn.context.buffers.take(512);
        match admit(&self.settings.limits, connection.peer, connection.flow.is_extra) {
            Ok(counted) => connection.counted_address = Some(counted),
            Err(refusal) => {
                self.counted.connections_refused += 1;
                log_refused(&self.settings.journal, connection.peer, &refusal, turn.context);
                connection.link.protocol().encode_refused_connection(&refusal, &mut greeting);
                connection.login_end = LoginEnd::Refused;
                connection.send(greeting, turn.context, turn.outbox);
                return connection.close(&mut turn);
            }
        }
        let opening = LinkOpening {
            connection: connection.id,
            peer: connection.peer,
            challenge: challenge_from_random(random),
            server_version: &self.settings.server_version,
            command_bytes_max: self.settings.max_allowed_packet,
            offers_tls: self.settings.security.is_some(),
        };
        connection.link = Link::open(connection.link.protocol(), &opening, &mut greeting);
        connection.send(greeting, turn.context, turn.outbox);
        connection.start_next_command(&mut turn);
    }

    fn add_connection(&mut self, connection: Connection) {
        let index = connection.socket.index() as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        require!(self.connections[index].is_none(), "the kernel closes a socket before it uses its index again");
        self.connections[index] = Some(Box::new(connection));
        self.count += 1;
        self.logins.pending += 1;
    }

    fn on_closed(&mut self, socket: SocketId, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let Some(slot) = self.connections.get_mut(socket.index() as usize) else { return };
        // A refused connection has no record, and its socket index may have belonged to an older connection.
        if slot.as_ref().is_none_or(|connection| connection.socket != socket) {
            return;
        }
        if let Some(connection) = slot.take() {
            self.count -= 1;
            self.logins.pending -= usize::from(!connection.flow.has_session);
            let end = if connection.flow.has_session { LoginEnd::LoggedIn } else { connection.login_end };
            self.settings.limits.close(connection.counted_address.flatten(), end);
            if connection.flow.has_session && !connection.flow.is_closing {
                self.settings.limits.counts().aborted_clients.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(session) = &connection.session {
                self.settings.limits.log_out(session);
                connection.audit(&self.settings.journal, context, (session.user(), "disconnect", 0), "");
                connection.log_command(&self.settings.journal, context, "Quit", (session.user(), ""));
            }
            context.buffers.give(connection.received);
            if let Some(account) = &connection.account {
                self.settings.accounts.end_connection(account);
            }
            if connection.flow.is_checking {
                self.logins.end_delay(socket);
            }
            if connection.flow.has_session {
                let signal = CloseSession { connection: connection.id };
                outbox.send(connection.sql, Signal::Sql(SqlSignal::CloseSession(signal)));
            }
        }
    }

    fn on_received(&mut self, socket: SocketId, bytes: Buffer, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.counted.bytes_received += bytes.len() as u64;
        match find(&mut self.connections, socket) {
            None => context.buffers.give(bytes),
            Some(connection) if !connection.flow.has_session => self.on_login_bytes(socket, bytes, context, outbox),
            Some(connection) => {
                connection.on_received(
                    bytes,
                    &mut RecvTurn { settings: &self.settings, logins: &mut self.logins, context, outbox },
                );
            }
        }
    }

    /// Bytes of a connection that has not logged in.
    #[cold]
    fn on_login_bytes(
        &mut self,
        socket: SocketId,
        bytes: Buffer,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(connection) = find(&mut self.connections, socket) else { return };
        if connection.flow.awaits_header {
            return match connection.flow.is_closing {
                true => context.buffers.give(bytes),
                false => self.on_header_bytes(socket, bytes, context, outbox),
            };
        }
        let mut turn = RecvTurn { settings: &self.settings, logins: &mut self.logins, context, outbox };
        connection.on_received(bytes, &mut turn);
    }

    fn on_send_drained(&mut self, socket: SocketId, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let Some(connection) = find(&mut self.connections, socket) else { return };
        connection.flow.is_output_blocked = false;
        if std::mem::take(&mut connection.flow.wants_part) {
            connection.request_part(outbox);
        }
        if std::mem::take(&mut connection.flow.wants_next_command) {
            connection.start_next_command(&mut RecvTurn {
                settings: &self.settings,
                logins: &mut self.logins,
                context,
                outbox,
            });
        }
    }

    fn on_command_reply(&mut self, reply: CommandReply, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let CommandReply { connection: id, socket, mut packets, after } = reply;
        let Some(connection) = find(&mut self.connections, socket).filter(|connection| connection.id == id) else {
            // The client has disconnected; CloseSession is on its way.
            context.buffers.give(packets);
            return;
        };
        let is_unsolicited = !connection.flow.is_busy;
        require!(
            !is_unsolicited || after == AfterReply::Close,
            "a session that answers no command ends its connection"
        );
        if packets.is_empty() {
            context.buffers.give(packets);
        } else {
            self.counted.bytes_sent += packets.len() as u64;
            connection.link.finish_answer(&mut packets, is_unsolicited);
            connection.send(packets, context, outbox);
        }
        match after {
            AfterReply::MoreParts => {
                connection.flow.wants_part = true;
                self.wanting_part.push(socket);
            }
            AfterReply::AwaitInput => {
                connection.link.await_file();
                connection.flow.awaits_input = true;
                connection.start_next_command(&mut RecvTurn {
                    settings: &self.settings,
                    logins: &mut self.logins,
                    context,
                    outbox,
                });
            }
            // The client reads nothing, so its output would never be written.
            AfterReply::Close if connection.flow.is_output_blocked => {
                connection.flow.is_closing = true;
                outbox.request(WorldRequest::AbortSocket { socket });
            }
            AfterReply::Close => {
                connection.close(&mut RecvTurn { settings: &self.settings, logins: &mut self.logins, context, outbox })
            }
            AfterReply::NextCommand => {
                connection.flow.is_busy = false;
                connection.flow.awaits_input = false;
                // If KILL has ended this answer early, its next part must not be requested.
                connection.flow.wants_part = false;
                if connection.flow.is_output_blocked {
                    connection.flow.wants_next_command = true;
                } else {
                    connection.start_next_command(&mut RecvTurn {
                        settings: &self.settings,
                        logins: &mut self.logins,
                        context,
                        outbox,
                    });
                }
            }
        }
    }
}

impl ConnectionIds {
    fn next_free(&mut self, connections: &[Option<Box<Connection>>]) -> ConnectionId {
        loop {
            let id = ConnectionId(self.next);
            let next = self.next.checked_add(self.recv_instances).filter(|next| *next <= self.last);
            self.next = next.unwrap_or_else(|| {
                // Counting on modulo 2^32 could produce the ids of another recv block, so restart.
                self.has_wrapped = true;
                self.first
            });
            // KILL and the session are found by the connection id, so no two connections may share one.
            // Before the numbers wrap, no search is needed.
            let is_taken = || connections.iter().flatten().any(|connection| connection.id == id);
            if !self.has_wrapped || !is_taken() {
                return id;
            }
        }
    }
}

/// Writes to the error log that a connection was refused before its login.
#[cold]
fn log_refused(journal: &Journal, peer: Peer, refusal: &Refusal, context: &Context<'_>) {
    let line = format!("Connection from '{peer}' refused with error {}: {}", refusal.errno, refusal.message);
    journal.write(context.wall_clock_us, LogEvent::Line(Severity::Warning, line.into_boxed_str()));
}

/// Counts a new connection. Returns the address under which it counts.
fn admit(limits: &ConnectionLimits, peer: Peer, is_extra: bool) -> Result<Option<IpAddr>, Refusal> {
    if peer.is_internal() {
        return Ok(None);
    }
    let address = peer.network_address();
    let refusal = |limit| match limit {
        ExceededLimit::Errors => Refusal::host_blocked(peer),
        ExceededLimit::Address(maximum) => Refusal::too_many_address_connections(peer, maximum),
        ExceededLimit::Sessions | ExceededLimit::User => Refusal::too_many_connections(),
    };
    limits.open(address, is_extra).map(|()| address).map_err(refusal)
}

pub(super) fn find(connections: &mut [Option<Box<Connection>>], socket: SocketId) -> Option<&mut Connection> {
    connections.get_mut(socket.index() as usize)?.as_deref_mut().filter(|connection| connection.socket == socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_start_again_at_the_first_one_of_their_instance() {
        let mut ids =
            ConnectionIds { first: 2, next: u32::MAX - 1, last: u32::MAX, recv_instances: 3, has_wrapped: false };
        assert_eq!(
            [ids.next_free(&[]), ids.next_free(&[]), ids.next_free(&[])],
            [u32::MAX - 1, 2, 5].map(ConnectionId)
        );
        assert!(ids.has_wrapped);
    }
}
