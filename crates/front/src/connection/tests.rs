//! The recv block without sockets or sessions: the tests send its events and answer its commands.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use junctor_kernel::simulated::Delivery;
use junctor_kernel::{
    Address, Directory, Duration, NodeId, NodeLayout, SocketCloseReason, SocketId, WorldEvent, WorldRequest, invariant,
};
use junctor_signals::Module;
use junctor_signals::client_command::*;
use junctor_signals::connection_limits::{ConnectionLimit, ConnectionLimits};
use junctor_signals::inbox::{RecvSignal, Signal, SqlSignal};
use junctor_signals::recover_log::OpenToClients;
use junctor_wire::request::Login;
use junctor_wire::{Request, VERSION};

use super::block::DELAY_TIMER;
use super::test_encryption::{HALF_RECORD, TestEncryption};
use super::{Networks, RecvBlock, RecvSettings};
use crate::account::{Accounts, Claim, Conditions, Peer};
use crate::protocol_table::{EXTRA_LISTENER, Protocol};

const SOCKET: SocketId = SocketId::new(0, 0, 0);

/// CLIENT_PROTOCOL_41 and CLIENT_SECURE_CONNECTION; user root, no password.
fn mysql_login() -> Vec<u8> {
    let payload = [&[0, 0x82, 0, 0][..], &[0; 28], b"root\0\0"].concat();
    [&[payload.len() as u8, 0, 0, 1][..], &payload].concat()
}

/// The login of user root without a password.
fn login(protocol: Protocol) -> Vec<u8> {
    match protocol {
        Protocol::Native => {
            let mut login = Vec::new();
            assert!(Login { version: VERSION, user: "root", proof: b"", database: "" }.encode(&mut login));
            login
        }
        Protocol::MySql => mysql_login(),
    }
}

struct Recv {
    block: RecvBlock,
    delivery: Delivery<Signal>,
    own: Address,
    /// Requests of the block that no test has checked yet.
    requests: Vec<WorldRequest>,
}

impl Recv {
    /// A block with one connection that speaks `protocol`.
    fn new(protocol: Protocol) -> Recv {
        let mut recv = Recv::recovering();
        recv.open_to_clients();
        recv.open(SOCKET, protocol);
        recv
    }

    /// A block of a node that recovers its data.
    fn recovering() -> Recv {
        invariant::panic_on_failure();
        let layout = NodeLayout::new(&[&[(Module::Recv, 0)], &[(Module::Sql, 0)]]);
        let directory = Directory::new(NodeId(1), &layout).expect("a layout");
        let own = directory.address(Module::Recv, 0);
        let mut delivery = Delivery::new();
        delivery.add_block(own, &layout, 1).expect("a layout");
        delivery.in_flight.clear();
        let settings = RecvSettings {
            ids: (0, u32::MAX),
            server_version: "8.0".into(),
            accounts: Arc::new(Accounts::with_local_root()),
            security: None,
            secure_transport_required: Arc::default(),
            journal: Arc::default(),
            limits: Arc::new(ConnectionLimits::new(1)),
            logins_max: 2,
            proxy_networks: Networks::parse("192.0.2.0/24").expect("a network"),
            max_allowed_packet: 1 << 20,
            readiness: Arc::default(),
        };
        Recv { block: RecvBlock::new(own, &directory, settings), delivery, own, requests: Vec::new() }
    }

    fn open_to_clients(&mut self) {
        let (block, signal) = (&mut self.block, RecvSignal::OpenToClients(OpenToClients {}));
        self.delivery.handle(self.own, |context, outbox| block.handle(signal, context, outbox));
    }

    /// A block with one connection that has logged in, and whose session has no command yet.
    fn with_session(protocol: Protocol) -> Recv {
        let mut recv = Recv::new(protocol);
        recv.receive(&login(protocol));
        let opening = recv.next_signal();
        assert!(matches!(opening, Some(SqlSignal::OpenSession(_))), "{opening:?}");
        recv.answer(b"", AfterReply::NextCommand);
        recv.requests.clear();
        recv
    }

    fn world(&mut self, event: WorldEvent) {
        let block = &mut self.block;
        let requests = self.delivery.handle(self.own, |context, outbox| block.on_world(event, context, outbox));
        self.requests.extend(requests);
    }

    fn open(&mut self, socket: SocketId, protocol: Protocol) {
        self.open_from(socket, Ipv4Addr::LOCALHOST, protocol.number());
    }

    fn open_from(&mut self, socket: SocketId, address: Ipv4Addr, listener: u16) {
        let peer = SocketAddr::from((address, 4000)).into();
        self.world(WorldEvent::SocketOpened { socket, peer, listener });
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.receive_on(SOCKET, bytes);
    }

    fn receive_on(&mut self, socket: SocketId, bytes: &[u8]) {
        self.world(WorldEvent::Received { socket, bytes: bytes.to_vec() });
    }

    /// The sockets that the block has asked to close since the last call.
    fn closed(&mut self) -> Vec<SocketId> {
        let taken = std::mem::take(&mut self.requests);
        let closed = taken.into_iter().filter_map(|request| match request {
            WorldRequest::CloseSocket { socket } => Some(socket),
            _ => None,
        });
        closed.collect()
    }

    fn answer(&mut self, packets: &[u8], after: AfterReply) {
        let connection = junctor_model::id::ConnectionId(1);
        let reply = CommandReply { connection, socket: SOCKET, packets: packets.to_vec(), after };
        let block = &mut self.block;
        let signal = RecvSignal::CommandReply(reply);
        let requests = self.delivery.handle(self.own, |context, outbox| block.handle(signal, context, outbox));
        self.requests.extend(requests);
    }

    fn next_signal(&mut self) -> Option<SqlSignal> {
        match self.delivery.take_next()?.signal {
            Signal::Sql(signal) => Some(signal),
            other => panic!("{other:?}"),
        }
    }

    /// The payload of the next command for the session.
    fn next_command(&mut self) -> Option<Vec<u8>> {
        match self.next_signal()? {
            SqlSignal::ExecuteCommand(command) => {
                Some(command.bytes[command.start as usize..command.end as usize].to_vec())
            }
            other => panic!("{other:?}"),
        }
    }

    /// The bytes sent to the socket since the last call.
    fn sent(&mut self) -> Vec<u8> {
        let taken = std::mem::take(&mut self.requests);
        let bytes = |request| match request {
            WorldRequest::SendBytes { bytes, .. } => bytes,
            _ => Vec::new(),
        };
        taken.into_iter().flat_map(bytes).collect()
    }
}

/// A command as it is sent in each protocol, and its payload.
fn command(protocol: Protocol, number: u8) -> (Vec<u8>, Vec<u8>) {
    match protocol {
        Protocol::MySql => (vec![2, 0, 0, 0, 3, number], vec![3, number]),
        Protocol::Native => {
            let mut bytes = Vec::new();
            assert!(Request::Ping.encode(u32::from(number), &mut bytes));
            let payload = bytes[3..].to_vec();
            (bytes, payload)
        }
    }
}

#[test]
fn every_protocol_is_found_by_its_number() {
    for protocol in Protocol::ALL {
        assert_eq!(Protocol::from_number(protocol.number()), Some(*protocol));
    }
    assert_eq!(Protocol::from_number(Protocol::ALL.len() as u16), None);
}

#[test]
fn pipelined_commands_reach_the_session_one_at_a_time() {
    for &protocol in Protocol::ALL {
        let mut recv = Recv::with_session(protocol);
        let commands: Vec<_> = (1..4).map(|number| command(protocol, number)).collect();
        let stream: Vec<u8> = commands.iter().flat_map(|(bytes, _)| bytes).copied().collect();
        // The last command arrives in two pieces.
        let (first, second) = stream.split_at(stream.len() - 2);
        recv.receive(first);
        recv.receive(second);
        for (_, payload) in &commands {
            assert_eq!(recv.next_command().as_ref(), Some(payload), "{protocol:?}");
            assert_eq!(recv.next_command(), None, "{protocol:?}");
            recv.answer(b"", AfterReply::NextCommand);
        }
        assert_eq!(recv.next_command(), None);
    }
}

#[test]
fn a_command_may_arrive_byte_by_byte() {
    for &protocol in Protocol::ALL {
        let mut recv = Recv::with_session(protocol);
        let (bytes, payload) = command(protocol, 7);
        let (last, before) = bytes.split_last().expect("a command has bytes");
        for byte in before {
            recv.receive(&[*byte]);
            assert!(
                matches!(recv.next_signal(), Some(SqlSignal::NoteHalfCommand(_))),
                "the session bounds the silence"
            );
            assert!(recv.next_signal().is_none());
        }
        recv.receive(&[*last]);
        assert_eq!(recv.next_command(), Some(payload));
        assert!(recv.next_signal().is_none());
    }
}

#[test]
fn half_a_record_of_tls_is_a_part_of_a_command() {
    for &protocol in Protocol::ALL {
        let mut recv = Recv::with_session(protocol);
        recv.block.connections[0].as_mut().expect("a connection").encryption =
            Some(Box::new(TestEncryption::default()));
        let (mut bytes, payload) = command(protocol, 7);
        bytes.push(HALF_RECORD);
        recv.receive(&bytes);
        assert_eq!(recv.next_command(), Some(payload));
        assert!(recv.next_signal().is_none(), "the session is busy");
        recv.answer(b"", AfterReply::NextCommand);
        assert!(matches!(recv.next_signal(), Some(SqlSignal::NoteHalfCommand(_))));
        recv.receive(&[HALF_RECORD]);
        assert!(matches!(recv.next_signal(), Some(SqlSignal::NoteHalfCommand(_))));
        recv.receive(&bytes[..bytes.len() - 1]);
        assert!(recv.next_command().is_some());
        recv.answer(b"", AfterReply::NextCommand);
        assert!(recv.next_signal().is_none());
    }
}

#[test]
fn a_client_with_too_many_unread_bytes_is_not_read_until_its_answer_is_sent() {
    let mut recv = Recv::with_session(Protocol::MySql);
    let (bytes, _) = command(Protocol::MySql, 1);
    recv.receive(&bytes);
    recv.receive(&bytes.repeat(20_000));
    assert!(matches!(recv.requests[..], [WorldRequest::PauseReading { .. }]), "{:?}", recv.requests);
    recv.requests.clear();
    for _ in 0..20_000 {
        assert!(recv.next_command().is_some());
        recv.answer(b"", AfterReply::NextCommand);
    }
    assert!(matches!(recv.requests[..], [WorldRequest::ResumeReading { .. }]), "{:?}", recv.requests);
}

#[test]
fn no_further_command_starts_while_a_client_does_not_read() {
    for &protocol in Protocol::ALL {
        let mut recv = Recv::with_session(protocol);
        let (bytes, payload) = command(protocol, 1);
        recv.world(WorldEvent::SendBlocked { socket: SOCKET });
        recv.receive(&bytes);
        assert_eq!(recv.next_command(), None);
        recv.world(WorldEvent::SendDrained { socket: SOCKET });
        assert_eq!(recv.next_command(), Some(payload));
    }
}

#[test]
fn packet_numbers_continue_those_of_the_command_or_begin_at_zero() {
    let two_packets = [1, 0, 0, 0, 7, 1, 0, 0, 0, 8];
    let mut recv = Recv::with_session(Protocol::MySql);
    let (bytes, _) = command(Protocol::MySql, 1);
    recv.receive(&bytes);
    recv.answer(&two_packets[..5], AfterReply::MoreParts);
    recv.answer(&two_packets, AfterReply::NextCommand);
    assert_eq!(recv.sent(), [1, 0, 0, 1, 7, 1, 0, 0, 2, 7, 1, 0, 0, 3, 8]);
    recv.answer(&two_packets, AfterReply::Close);
    assert_eq!(recv.sent(), [1, 0, 0, 0, 7, 1, 0, 0, 1, 8]);
}

#[test]
fn a_connection_beyond_the_maximum_is_refused_in_its_protocol() {
    for &protocol in Protocol::ALL {
        let mut recv = Recv::with_session(protocol);
        recv.requests.clear();
        recv.open(SocketId::new(0, 1, 0), protocol);
        assert!(matches!(recv.requests[..], [WorldRequest::SendBytes { .. }, WorldRequest::CloseSocket { .. }]));
        assert!(recv.sent().ends_with(b"Too many connections"), "{protocol:?}");
        assert_eq!(recv.block.connection_count(), 1);
    }
}

#[test]
fn a_login_that_takes_too_long_closes_its_connection() {
    for &protocol in Protocol::ALL {
        for is_logged_in in [false, true] {
            let mut recv = if is_logged_in { Recv::with_session(protocol) } else { Recv::new(protocol) };
            recv.requests.clear();
            recv.delivery.now = recv.delivery.now.plus(Duration::from_seconds(11));
            recv.world(WorldEvent::Timer { token: 0 });
            assert_eq!(recv.requests.len(), usize::from(!is_logged_in), "{protocol:?}");
        }
    }
}

#[test]
fn a_new_connect_timeout_applies_to_later_connections() {
    let mut recv = Recv::new(Protocol::MySql);
    let later = SocketId::new(0, 1, 0);
    recv.block.settings.limits.set(ConnectionLimit::LoginSeconds, 3);
    recv.open(later, Protocol::MySql);
    assert_eq!(recv.delivery.take_timers().len(), 2, "the timer of the later connection ends first");
    recv.delivery.now = recv.delivery.now.plus(Duration::from_seconds(3));
    recv.world(WorldEvent::Timer { token: 0 });
    assert_eq!(recv.closed(), [later]);
    recv.delivery.now = recv.delivery.now.plus(Duration::from_seconds(7));
    recv.world(WorldEvent::Timer { token: 0 });
    assert_eq!(recv.closed(), [SOCKET]);
}

#[test]
fn a_session_that_ends_does_not_wait_for_a_client_that_does_not_read() {
    for is_blocked in [false, true] {
        let mut recv = Recv::with_session(Protocol::MySql);
        recv.receive(&command(Protocol::MySql, 1).0);
        recv.answer(b"\x01\0\0\0x", AfterReply::MoreParts);
        if is_blocked {
            recv.world(WorldEvent::SendBlocked { socket: SOCKET });
        }
        recv.requests.clear();
        recv.answer(b"", AfterReply::Close);
        let is_aborted = matches!(recv.requests[..], [WorldRequest::AbortSocket { socket: SOCKET }]);
        let is_closed = matches!(recv.requests[..], [WorldRequest::CloseSocket { socket: SOCKET }]);
        assert_eq!((is_aborted, is_closed), (is_blocked, !is_blocked));
    }
}

#[test]
#[should_panic(expected = "answers no command")]
fn an_answer_without_a_command_stops_the_node() {
    Recv::with_session(Protocol::Native).answer(b"", AfterReply::NextCommand);
}

#[test]
fn a_client_of_a_node_that_recovers_is_refused_until_the_data_is_there() {
    for &protocol in Protocol::ALL {
        let mut recv = Recv::recovering();
        recv.open(SOCKET, protocol);
        assert!(matches!(recv.requests[..], [WorldRequest::SendBytes { .. }, WorldRequest::CloseSocket { .. }]));
        assert!(String::from_utf8_lossy(&recv.sent()).contains("it recovers its data"), "{protocol:?}");
        assert_eq!(recv.block.connection_count(), 0);
        recv.open_to_clients();
        recv.open(SocketId::new(0, 1, 0), protocol);
        assert_eq!(recv.block.connection_count(), 1);
    }
}

#[test]
fn logins_that_hang_give_way_to_new_ones_and_take_no_place_of_a_session() {
    for &protocol in Protocol::ALL {
        let mut recv = Recv::new(protocol);
        // Two connections may be in their logins. The third takes the place of the first.
        let sockets = [SOCKET, SocketId::new(0, 1, 0), SocketId::new(0, 2, 0)];
        recv.open(sockets[1], protocol);
        assert_eq!(recv.closed(), []);
        recv.open(sockets[2], protocol);
        assert_eq!(recv.closed(), [SOCKET], "{protocol:?}");
        recv.world(WorldEvent::SocketClosed { socket: SOCKET, reason: SocketCloseReason::Own });
        assert_eq!(recv.block.connection_count(), 2);
        let counts = recv.block.settings.limits.counts();
        assert_eq!(counts.displaced.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn ten_thousand_connections_that_never_log_in_leave_bounded_state() {
    let mut recv = Recv::recovering();
    recv.open_to_clients();
    for number in 0..10_000 {
        let socket = SocketId::new(0, number % 64, number / 64);
        recv.open(socket, Protocol::MySql);
        for socket in recv.closed() {
            recv.world(WorldEvent::SocketClosed { socket, reason: SocketCloseReason::Own });
        }
    }
    assert_eq!(recv.block.connection_count(), 2);
}

#[test]
fn a_login_byte_by_byte_ends_at_the_same_deadline() {
    let mut recv = Recv::new(Protocol::MySql);
    for byte in &mysql_login()[..20] {
        recv.receive(&[*byte]);
        recv.delivery.now = recv.delivery.now.plus(Duration::from_millis(490));
        recv.world(WorldEvent::Timer { token: 0 });
    }
    assert_eq!(recv.closed(), [], "9.8 seconds");
    recv.delivery.now = recv.delivery.now.plus(Duration::from_millis(490));
    recv.world(WorldEvent::Timer { token: 0 });
    assert_eq!(recv.closed(), [SOCKET]);
}

/// COM_CHANGE_USER to a user of whom the server asks another proof.
fn change_user() -> Vec<u8> {
    let payload = b"\x11nobody\0\0\0\x2D\0mysql_native_password\0";
    [&[payload.len() as u8, 0, 0, 0][..], payload].concat()
}

#[test]
fn a_change_of_the_user_has_a_deadline_of_its_own() {
    for seconds in [4, 60] {
        let mut recv = Recv::new(Protocol::MySql);
        // With CLIENT_PLUGIN_AUTH, so that the client can be asked for another proof.
        let payload = [&[0, 0x82, 8, 0][..], &[0; 28], b"root\0\0mysql_native_password\0"].concat();
        recv.receive(&[&[payload.len() as u8, 0, 0, 1][..], &payload].concat());
        assert!(matches!(recv.next_signal(), Some(SqlSignal::OpenSession(_))));
        recv.answer(b"", AfterReply::NextCommand);
        let pass = |recv: &mut Recv, milliseconds| {
            recv.delivery.now = recv.delivery.now.plus(Duration::from_millis(milliseconds));
            recv.world(WorldEvent::Timer { token: 0 });
        };
        pass(&mut recv, seconds * 1000);
        recv.receive(&change_user());
        assert!(recv.next_signal().is_none(), "the client must send a proof");
        // The deadline of the connect passes meanwhile.
        pass(&mut recv, 6_100);
        pass(&mut recv, 3_800);
        assert_eq!(recv.closed(), [], "after {seconds} s");
        pass(&mut recv, 100);
        assert_eq!(recv.closed(), [SOCKET], "after {seconds} s");
    }
}

#[test]
fn very_many_changes_of_the_user_leave_one_entry() {
    let mut recv = Recv::with_session(Protocol::MySql);
    for _ in 0..1000 {
        recv.receive(&change_user_to_root());
        assert!(matches!(recv.next_signal(), Some(SqlSignal::OpenSession(_))));
        recv.answer(b"", AfterReply::NextCommand);
    }
    assert!(recv.block.logins.waiting_count() <= 1, "{}", recv.block.logins.waiting_count());
}

/// COM_CHANGE_USER to root, who needs no proof.
fn change_user_to_root() -> Vec<u8> {
    let payload = b"\x11root\0\0\0\x2D\0mysql_native_password\0";
    [&[payload.len() as u8, 0, 0, 0][..], payload].concat()
}

#[test]
fn a_native_login_reveals_no_account_without_a_password() {
    let answers = ["root", "nobody"].map(|user| {
        let mut recv = Recv::new(Protocol::Native);
        recv.sent();
        let mut login = Vec::new();
        assert!(Login { version: VERSION, user, proof: &[7; 20], database: "" }.encode(&mut login));
        recv.receive(&login);
        recv.sent()
    });
    assert_eq!(answers[0], answers[1], "the node asks both for a proof");
    assert!(!answers[0].is_empty());
}

#[test]
fn after_very_many_wrong_passwords_the_right_one_is_admitted_at_the_deadline() {
    for &protocol in Protocol::ALL {
        let mut recv = Recv::new(protocol);
        let accounts = Arc::clone(&recv.block.settings.accounts);
        let peer = Peer::new(Ipv4Addr::LOCALHOST.into());
        let conditions = Conditions::default();
        for _ in 0..1000 {
            let claim = Claim { user: b"root", has_password: true, database: b"" };
            let candidate = accounts.candidate(b"root", peer);
            accounts.admit(&candidate, peer, claim, (false, &conditions)).expect_err("a wrong password");
        }
        recv.receive(&login(protocol));
        recv.delivery.now = recv.delivery.now.plus(Duration::from_millis(9_900));
        recv.world(WorldEvent::Timer { token: 0 });
        recv.world(WorldEvent::Timer { token: DELAY_TIMER });
        assert!(recv.next_signal().is_none(), "{protocol:?}: the answer is delayed");
        recv.delivery.now = recv.delivery.now.plus(Duration::from_millis(100));
        recv.world(WorldEvent::Timer { token: 0 });
        let opening = recv.next_signal();
        assert!(matches!(opening, Some(SqlSignal::OpenSession(_))), "{protocol:?}: {opening:?}");
        assert_eq!(recv.closed(), [], "{protocol:?}");
    }
}

#[test]
fn the_extra_port_lets_an_administrator_in_when_all_connections_are_taken() {
    let mut recv = Recv::with_session(Protocol::MySql);
    let socket = SocketId::new(0, 1, 0);
    recv.open_from(socket, Ipv4Addr::LOCALHOST, EXTRA_LISTENER);
    recv.receive_on(socket, &mysql_login());
    match recv.next_signal() {
        Some(SqlSignal::OpenSession(opening)) => assert!(opening.login.is_extra && !opening.reset),
        other => panic!("{other:?}"),
    }
    recv.requests.clear();
    recv.open_from(SocketId::new(0, 2, 0), Ipv4Addr::LOCALHOST, EXTRA_LISTENER);
    assert!(recv.sent().ends_with(b"Too many connections"), "extra_max_connections is 1");
}

#[test]
fn a_session_beyond_the_limit_of_its_user_gets_an_error_in_place_of_ok() {
    let mut recv = Recv::recovering();
    recv.block.settings.limits = Arc::new(ConnectionLimits::new(10));
    recv.open_to_clients();
    let limits = recv.block.settings.limits.clone();
    limits.set(ConnectionLimit::UserSessions, 1);
    let first = limits.log_in(None, "root", false).expect("the first session");
    recv.open(SOCKET, Protocol::MySql);
    recv.requests.clear();
    recv.receive(&mysql_login());
    let sent = recv.sent();
    assert_eq!((sent[3], sent[4], u16::from_le_bytes([sent[5], sent[6]])), (2, 0xFF, 1203));
    assert!(recv.next_signal().is_none());
    recv.world(WorldEvent::SocketClosed { socket: SOCKET, reason: SocketCloseReason::Own });
    limits.log_out(&first);
    assert_eq!(limits.sessions(), (0, 0));
}

#[test]
fn a_balancer_names_the_client_before_the_greeting() {
    let balancer = Ipv4Addr::new(192, 0, 2, 7);
    for &protocol in Protocol::ALL {
        let mut recv = Recv::recovering();
        recv.open_to_clients();
        recv.open_from(SOCKET, balancer, protocol.number());
        assert_eq!(recv.sent(), b"", "the greeting follows the header");
        recv.receive(b"PROXY TCP4 203.0.113.9 192");
        assert_eq!(recv.sent(), b"");
        recv.receive(b".0.2.7 5000 3306\r\n");
        assert!(!recv.sent().is_empty(), "{protocol:?}");
        let peer = recv.block.connections[0].as_ref().expect("a connection").peer;
        assert_eq!(peer.to_string(), "203.0.113.9");
    }
}

#[test]
fn bytes_of_a_balancer_that_are_no_header_end_its_connection() {
    let mut recv = Recv::recovering();
    recv.open_to_clients();
    recv.open_from(SOCKET, Ipv4Addr::new(192, 0, 2, 7), Protocol::MySql.number());
    recv.receive(&mysql_login());
    assert_eq!(recv.closed(), [SOCKET]);
    recv.receive(&mysql_login());
    assert!(recv.next_signal().is_none(), "nothing is read after that");
}

#[test]
fn a_header_from_elsewhere_is_no_login() {
    let mut recv = Recv::recovering();
    recv.open_to_clients();
    recv.open_from(SOCKET, Ipv4Addr::new(198, 51, 100, 7), Protocol::MySql.number());
    recv.requests.clear();
    recv.receive(b"PROXY TCP4 203.0.113.9 192.0.2.7 5000 3306\r\n");
    assert!(!recv.closed().is_empty());
}
