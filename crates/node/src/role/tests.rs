//! All blocks of a node in one thread, with signals passed one at a time: interleaved commands of several sessions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::placement::{PlacementPlan, ThreadConfig, Topology};
use junctor_front::Protocol;
use junctor_front::account::Accounts;
use junctor_kernel::simulated::{Delivery, InFlight};
use junctor_kernel::{
    Address, Directory, Host, LoadBoard, NodeId, NodeLayout, Random, SocketId, ThreadSeat, Time, WorldEvent,
    WorldRequest,
};
use junctor_model::id::ConnectionId;
use junctor_signals::Module;
use junctor_signals::client_command::*;
use junctor_signals::inbox::{RecvSignal, Signal, SqlSignal};

use super::{NodeHost, Shared};
use crate::NodeConfig;

mod alterations;
mod several_statements;
mod status;

const NODE: NodeId = NodeId(1);

struct Node {
    directory: Arc<Directory>,
    hosts: Vec<NodeHost>,
    delivery: Delivery<Signal>,
    answers: BTreeMap<ConnectionId, VecDeque<Vec<u8>>>,
    /// Whether answers go to recv, which has sockets then.
    has_sockets: bool,
    /// Bytes that recv has sent to sockets.
    sent_bytes: usize,
    closed_sockets: usize,
}

impl Node {
    fn new(thread_config: &str, config: NodeConfig) -> Node {
        junctor_kernel::invariant::panic_on_failure();
        let parsed = ThreadConfig::parse(thread_config).expect("the configuration is valid");
        let plan = PlacementPlan::from_thread_config(&parsed, &Topology::uniform(4), true).expect("a plan");
        let layout = NodeLayout::from(&plan);
        let config = NodeConfig { total_memory_bytes: Some(64 << 20), ..config };
        let shared = Arc::new(Shared::new(&config, Accounts::with_local_root(), &plan).expect("memory"));
        let directory = Arc::new(Directory::new(NODE, &layout).expect("the layout is valid"));
        let loads = Arc::new(LoadBoard::new(layout.threads.len()));
        let mut node = Node {
            directory: Arc::clone(&directory),
            hosts: Vec::new(),
            delivery: Delivery::new(),
            answers: BTreeMap::new(),
            has_sockets: false,
            sent_bytes: 0,
            closed_sockets: 0,
        };
        for (thread, seat) in layout.threads.iter().enumerate() {
            for &(module, instance) in &seat.modules {
                let address = directory.address(module, instance);
                node.delivery.add_block(address, &layout, 1).expect("the layout is valid");
            }
            let seat = ThreadSeat {
                node: NODE,
                thread: thread as u16,
                name: seat.name.clone(),
                modules: seat.modules.clone(),
                directory: Arc::clone(&directory),
                loads: Arc::clone(&loads),
                seed: thread as u64,
            };
            node.hosts.push(NodeHost::new(&seat, &shared));
        }
        node.run();
        node
    }

    /// From now on signals are delivered in an order drawn from the seed.
    fn shuffle(&mut self, seed: u64) {
        self.delivery.random = Some(Random::new(seed));
    }

    /// Delivers until no signal is in flight.
    fn run(&mut self) {
        while self.step() {}
    }

    /// Delivers one signal. False when none is in flight.
    fn step(&mut self) -> bool {
        let Some(InFlight { to, from, signal }) = self.delivery.take_next() else { return false };
        if !self.has_sockets
            && let Signal::Recv(RecvSignal::CommandReply(reply)) = signal
        {
            let answer = (!reply.packets.is_empty()).then_some(reply.packets);
            self.answers.entry(reply.connection).or_default().extend(answer);
            return true;
        }
        let thread = self.directory.thread_of(to.module, to.instance).expect("the block exists");
        let host = &mut self.hosts[usize::from(thread)];
        let requests = self.delivery.handle(to, |context, outbox| host.handle(to, from, signal, context, outbox));
        for request in requests {
            match request {
                WorldRequest::SendBytes { bytes, .. } => self.sent_bytes += bytes.len(),
                WorldRequest::CloseSocket { .. } => self.closed_sockets += 1,
                _ => {}
            }
        }
        true
    }

    fn send_world(&mut self, to: Address, event: WorldEvent) {
        self.delivery.send(to, to, Signal::World(event));
    }

    /// Moves time on; the timers of the sql blocks and of main fire once, at the end.
    fn pass(&mut self, seconds: u64) {
        self.delivery.now = Time(self.delivery.now.0 + seconds * 1_000_000_000);
        for instance in 0..self.directory.instances(Module::Sql) {
            let sql = self.directory.address(Module::Sql, instance);
            self.send_world(sql, WorldEvent::Timer { token: 0 });
        }
        let main = self.directory.address(Module::Main, 0);
        self.send_world(main, WorldEvent::Timer { token: 1 });
        self.run();
    }

    /// Every timer that was started fires once, without time moving on.
    fn fire_timers(&mut self) {
        let timers: BTreeSet<(Address, u64)> = self.delivery.take_timers().into_iter().collect();
        for (block, token) in timers {
            self.send_world(block, WorldEvent::Timer { token });
        }
        self.run();
    }

    /// What sessions and the data plane hold, by name; all 0 when nobody is connected.
    fn held(&self) -> usize {
        let of_sql = |host: &NodeHost| host.sql().map_or(0, |sql| sql.held().iter().map(|(_, count)| count).sum());
        let open = |host: &NodeHost| host.tc().map_or(0, |tc| tc.transactions_open());
        let named = |host: &NodeHost| host.main().map_or(0, |main| main.user_locks_held().0 + main.table_locks_held());
        self.hosts.iter().map(|host| of_sql(host) + open(host) + named(host)).sum::<usize>()
    }

    /// Ends the turn of every thread.
    fn end_turn(&mut self) {
        let own = self.directory.address(Module::Recv, 0);
        let hosts = &mut self.hosts;
        self.delivery.handle(own, |context, outbox| hosts.iter_mut().for_each(|host| host.end_turn(context, outbox)));
    }

    fn receive(&mut self, event: WorldEvent) {
        let recv = self.directory.address(Module::Recv, 0);
        self.send_world(recv, event);
        self.run();
    }

    fn sql(&self, connection: u32) -> Address {
        let instances = u32::from(self.directory.instances(Module::Sql));
        self.directory.address(Module::Sql, (connection % instances) as u16)
    }

    fn send(&mut self, connection: u32, signal: SqlSignal) {
        let recv = self.directory.address(Module::Recv, 0);
        self.delivery.send(self.sql(connection), recv, Signal::Sql(signal));
    }

    /// Opens a session, or with `reset` begins it anew.
    fn open(&mut self, connection: u32, reset: bool) {
        let login = Login {
            user: "root".into(),
            host: "localhost".into(),
            database: None,
            // CLIENT_PROTOCOL_41.
            capabilities: 0x200,
            character_set: 45,
            protocol: Protocol::MySql.number(),
        };
        let signal = OpenSession {
            connection: ConnectionId(connection),
            reply_to: self.directory.address(Module::Recv, 0),
            socket: SocketId::new(0, connection, 0),
            reset,
            login: Box::new(login),
        };
        self.send(connection, SqlSignal::OpenSession(signal));
        self.run();
        assert_eq!(self.answer(connection).map(|answer| answer[4]), Some(0), "OK");
    }

    /// Sends a command without waiting for anything.
    fn begin(&mut self, connection: u32, command: &[u8]) {
        let bytes = command.to_vec();
        let end = bytes.len() as u32;
        let command = ExecuteCommand { connection: ConnectionId(connection), bytes, start: 0, end };
        self.send(connection, SqlSignal::ExecuteCommand(command));
    }

    fn begin_query(&mut self, connection: u32, text: &str) {
        self.begin(connection, &[&[3], text.as_bytes()].concat());
    }

    /// The packets of the oldest answer that was not taken.
    fn answer(&mut self, connection: u32) -> Option<Vec<u8>> {
        self.answers.get_mut(&ConnectionId(connection))?.pop_front()
    }

    /// The rows of an answer with one column of less than 251 bytes; an error is one row.
    fn rows(&mut self, connection: u32) -> Vec<String> {
        let answer = self.answer(connection).expect("the command was answered");
        let mut packets = Vec::new();
        let mut rest = answer.as_slice();
        while let Some((header, after)) = rest.split_first_chunk::<4>() {
            let (payload, after) = after.split_at(usize::from(header[0]) | usize::from(header[1]) << 8);
            packets.push(payload);
            rest = after;
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match packets.as_slice() {
            [[0, ..]] => Vec::new(),
            [[0xff, _, _, message @ ..]] => vec![text(message)],
            [_, _, _, rows @ .., _] => rows.iter().map(|row| text(&row[1..])).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn query(&mut self, connection: u32, text: &str) -> Vec<String> {
        self.begin_query(connection, text);
        self.run();
        self.rows(connection)
    }

    /// Runs statements that answer OK.
    fn execute(&mut self, connection: u32, statements: &[&str]) {
        for statement in statements {
            assert_eq!(self.query(connection, statement), Vec::<String>::new(), "{statement}");
        }
    }
}

const FOLDED: &str = "recv={count=1},ldm={count=0},main={count=0},io={count=0}";
const RECEIVERS: &str = "recv={count=2},ldm={count=0},main={count=0}";

#[test]
fn who_waits_for_admission_is_let_in_when_a_session_is_begun_anew() {
    let mut node = Node::new(FOLDED, NodeConfig { transactions_max: 1, ..NodeConfig::default() });
    node.open(1, false);
    node.open(2, false);
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)"]);
    node.execute(1, &["BEGIN", "INSERT INTO d.t VALUES (1)"]);
    node.begin_query(2, "SELECT 7");
    node.run();
    assert_eq!(node.answer(2), None, "the transaction with locks has the only ticket");
    node.open(1, true);
    assert_eq!(node.rows(2), ["7"]);
    assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), ["0"]);
}

#[test]
fn a_transaction_that_has_only_read_keeps_nobody_out() {
    let mut node = Node::new(FOLDED, NodeConfig { transactions_max: 1, ..NodeConfig::default() });
    (1..4).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"]);
    for reader in [1, 2] {
        node.execute(reader, &["SET autocommit = 0"]);
        assert_eq!(node.query(reader, "SELECT id FROM d.t"), ["1"]);
    }
    node.execute(3, &["BEGIN", "UPDATE d.t SET id = 2"]);
    node.begin_query(1, "SELECT id FROM d.t");
    node.run();
    assert_eq!(node.answer(1), None, "now somebody holds locks");
    node.execute(3, &["COMMIT"]);
    assert_eq!(node.rows(1), ["1"], "the snapshot outlives the wait");
}

#[test]
fn a_read_by_a_unique_index_is_of_one_moment_at_every_isolation_level() {
    let levels = ["REPEATABLE READ", "READ COMMITTED"];
    for (level, seed) in levels.into_iter().flat_map(|level| (0..40).map(move |seed| (level, seed))) {
        let mut node = Node::new(RECEIVERS, NodeConfig::default());
        (1..4).for_each(|connection| node.open(connection, false));
        node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, u INT UNIQUE)"]);
        node.execute(1, &["INSERT INTO d.t VALUES (0, 10)", "BEGIN", "DELETE FROM d.t WHERE id = 0"]);
        node.execute(1, &["INSERT INTO d.t VALUES (1, 10)"]);
        let isolation = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
        for reader in [2, 3] {
            node.execute(reader, &[&isolation]);
        }
        node.execute(3, &["BEGIN"]);
        node.shuffle(seed);
        node.begin_query(1, "COMMIT");
        for reader in [2, 3] {
            node.begin_query(reader, "SELECT id FROM d.t WHERE u = 10");
        }
        node.run();
        for reader in [2, 3] {
            assert_eq!(node.rows(reader).len(), 1, "{level}, seed {seed}, reader {reader}");
        }
        let held = |host: &NodeHost| host.sql().map_or(0, |sql| sql.held().iter().map(|(_, count)| count).sum());
        node.execute(3, &["COMMIT"]);
        let sessions: usize = node.hosts.iter().map(held).sum();
        assert_eq!(sessions, 3, "sessions are all that is held");
    }
}

#[test]
fn numbers_at_hand_that_another_session_took_itself_are_not_given() {
    let mut node = Node::new(RECEIVERS, NodeConfig::default());
    node.open(1, false);
    node.open(2, false);
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)"]);
    node.execute(1, &["INSERT INTO d.t (v) VALUES (1)"]);
    node.execute(2, &["INSERT INTO d.t (id, v) VALUES (2, 2), (3, 2), (4, 2)"]);
    node.execute(1, &["INSERT INTO d.t (v) VALUES (3)", "INSERT INTO d.t (v) VALUES (4)"]);
    assert_eq!(node.query(2, "SELECT COUNT(*) FROM d.t"), ["6"]);
    // A row that gives itself a number that is taken is refused.
    let refused = node.query(1, "INSERT INTO d.t (id, v) VALUES (2, 9)");
    assert_eq!(refused, ["#23000Duplicate entry '2' for key 't.PRIMARY'"]);
}

#[test]
fn a_long_answer_goes_out_in_one_part_a_turn_and_stops_when_its_socket_is_full() {
    let mut node = Node::new(FOLDED, NodeConfig::default());
    node.open(9, false);
    node.execute(9, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, p VARCHAR(1000))"]);
    for batch in 0..40 {
        let rows: Vec<String> = (0..100).map(|row| format!("({}, REPEAT('x', 1000))", batch * 100 + row)).collect();
        node.execute(9, &[&format!("INSERT INTO d.t VALUES {}", rows.join(","))]);
    }
    node.has_sockets = true;
    let socket = SocketId::new(0, 1, 0);
    node.receive(WorldEvent::SocketOpened { socket, peer: "127.0.0.1:1".parse().expect("an address"), listener: 0 });
    // CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION and CLIENT_TRANSACTIONS; user root, no password.
    let mut login = vec![0, 0, 0, 1, 0, 0xa2, 0, 0, 0, 0, 0, 1, 45];
    login.extend_from_slice(&[0; 23]);
    login.extend_from_slice(b"root\0\0");
    login[0] = login.len() as u8 - 4;
    node.receive(WorldEvent::Received { socket, bytes: login });
    let query = b"\x11\0\0\0\x03SELECT * FROM d.t";
    let query = [&[query.len() as u8 - 4], &query[1..]].concat();
    let before = node.sent_bytes;
    node.receive(WorldEvent::Received { socket, bytes: query });
    let mut parts = vec![node.sent_bytes - before];
    for turn in 0..60 {
        let before = node.sent_bytes;
        if turn == 3 {
            node.receive(WorldEvent::SendBlocked { socket });
        }
        if turn == 6 {
            assert_eq!(parts[4..], [0, 0, 0], "nothing is asked for while the socket is full");
            node.receive(WorldEvent::SendDrained { socket });
        }
        node.end_turn();
        node.run();
        parts.push(node.sent_bytes - before);
    }
    assert!(parts.iter().all(|part| *part < 400_000), "{parts:?}");
    assert!(parts.iter().sum::<usize>() > 4_000_000 && parts.last() == Some(&0), "{parts:?}");
}

#[test]
fn a_client_that_does_not_read_has_no_further_command_begun() {
    let mut node = Node::new(FOLDED, NodeConfig::default());
    node.has_sockets = true;
    let socket = SocketId::new(0, 1, 0);
    node.receive(WorldEvent::SocketOpened { socket, peer: "127.0.0.1:1".parse().expect("an address"), listener: 0 });
    let mut login = vec![0, 0, 0, 1, 0, 0xa2, 0, 0, 0, 0, 0, 1, 45];
    login.extend_from_slice(&[0; 23]);
    login.extend_from_slice(b"root\0\0");
    login[0] = login.len() as u8 - 4;
    node.receive(WorldEvent::Received { socket, bytes: login });
    node.run();
    let ping = || WorldEvent::Received { socket, bytes: vec![1, 0, 0, 0, 14] };
    let before = node.sent_bytes;
    node.receive(ping());
    node.run();
    let answer = node.sent_bytes - before;
    assert!(answer > 0);
    node.receive(WorldEvent::SendBlocked { socket });
    let before = node.sent_bytes;
    for _ in 0..3 {
        node.receive(ping());
        node.end_turn();
        node.run();
    }
    assert_eq!(node.sent_bytes, before, "nothing is begun while the socket is full");
    node.receive(WorldEvent::SendDrained { socket });
    node.run();
    assert_eq!(node.sent_bytes - before, 3 * answer);
}

const PROCESSES: &str = "SELECT CONCAT(ID, ' ', COMMAND, ' ', STATE, ' ', IFNULL(INFO, '-')) \
                         FROM information_schema.PROCESSLIST ORDER BY ID";

#[test]
fn kill_reaches_the_sessions_of_every_sql_block() {
    for seed in 0..20 {
        let mut node = Node::new(RECEIVERS, NodeConfig::default());
        (1..6).for_each(|connection| node.open(connection, false));
        node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
        node.execute(1, &["INSERT INTO d.t VALUES (1, 0), (2, 0)", "BEGIN", "UPDATE d.t SET v = 1 WHERE id = 1"]);
        node.execute(2, &["BEGIN", "UPDATE d.t SET v = 2 WHERE id = 2"]);
        node.shuffle(seed);
        for waiting in [2, 3] {
            node.begin_query(waiting, "UPDATE d.t SET v = v + 10 WHERE id = 1");
        }
        node.run();
        assert_eq!((node.answer(2), node.answer(3)), (None, None));
        let seen = node.query(5, PROCESSES);
        assert!(seen[0].starts_with("1 Sleep  "), "{seen:?}");
        assert_eq!(seen[1], "2 Query executing UPDATE d.t SET v = v + 10 WHERE id = 1");
        assert!(seen[4].starts_with("5 Query executing SELECT CONCAT"), "{seen:?}");
        for (connection, killer) in [(2, 4), (3, 5)] {
            node.execute(killer, &[&format!("KILL QUERY {connection}")]);
            assert_eq!(node.rows(connection), ["#70100Query execution was interrupted"], "seed {seed}");
        }
        // The transaction goes on without the statement, and an idle session takes no notice.
        node.execute(4, &["KILL QUERY 1", "KILL QUERY 2"]);
        node.execute(2, &["COMMIT"]);
        assert_eq!(node.query(4, "KILL 77"), ["#HY000Unknown thread id: 77"]);
        node.execute(4, &["KILL CONNECTION 1"]);
        assert_eq!(node.query(5, "SELECT v FROM d.t ORDER BY id"), ["0", "2"], "its transaction is undone");
        node.execute(3, &["UPDATE d.t SET v = v + 10 WHERE id = 1"]);
        assert_eq!(node.query(4, "KILL 1"), ["#HY000Unknown thread id: 1"]);
        node.begin_query(2, "KILL QUERY CONNECTION_ID()");
        node.run();
        assert_eq!(node.rows(2), ["#70100Query execution was interrupted"]);
        assert_eq!(node.query(2, "SELECT COUNT(*) FROM information_schema.PROCESSLIST"), ["4"]);
        assert_eq!(node.held(), 4, "sessions are all that is held");
    }
}

#[test]
fn an_update_of_many_rows_is_stopped_in_the_middle_and_undone() {
    for seed in 0..10 {
        let mut node = Node::new(RECEIVERS, NodeConfig::default());
        (1..3).for_each(|connection| node.open(connection, false));
        node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT, u INT UNIQUE)"]);
        let rows: Vec<String> = (0..2000).map(|id| format!("({id}, 0, {id})")).collect();
        node.execute(1, &[&format!("INSERT INTO d.t VALUES {}", rows.join(","))]);
        if seed % 2 == 0 {
            node.execute(1, &["BEGIN"]);
        }
        node.begin_query(1, "UPDATE d.t SET v = 1, u = u + 10000");
        node.shuffle(seed);
        (0..8 + seed).for_each(|_| assert!(node.step()));
        assert_eq!(node.answer(1), None, "it takes longer");
        node.execute(2, &["KILL QUERY 1"]);
        assert_eq!(node.rows(1), ["#70100Query execution was interrupted"], "seed {seed}");
        assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t WHERE v = 0 AND u < 10000"), ["2000"]);
        node.execute(1, &["COMMIT", "UPDATE d.t SET v = 2"]);
        assert_eq!(node.held(), 2, "sessions are all that is held");
    }
}

#[test]
fn the_wait_of_a_client_that_left_ends_at_once() {
    let mut node = Node::new(RECEIVERS, NodeConfig::default());
    (1..4).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
    node.execute(1, &["INSERT INTO d.t VALUES (1, 0), (2, 0)", "BEGIN", "UPDATE d.t SET v = 1 WHERE id = 1"]);
    node.execute(2, &["BEGIN", "UPDATE d.t SET v = 2 WHERE id = 2"]);
    node.begin_query(2, "UPDATE d.t SET v = 2 WHERE id = 1");
    node.run();
    node.send(2, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(2) }));
    node.run();
    node.execute(3, &["UPDATE d.t SET v = 3 WHERE id = 2"]);
    node.execute(1, &["COMMIT"]);
    assert_eq!(node.query(3, "SELECT v FROM d.t ORDER BY id"), ["1", "3"]);
    assert_eq!(node.held(), 2, "sessions are all that is held");
}

#[test]
fn a_global_value_is_that_of_every_sql_block() {
    let mut node = Node::new(RECEIVERS, NodeConfig::default());
    (1..3).for_each(|connection| node.open(connection, false));
    node.execute(1, &["SET GLOBAL wait_timeout = 77, GLOBAL sort_buffer_size = 100000"]);
    for connection in [1, 2] {
        assert_eq!(node.query(connection, "SELECT @@global.wait_timeout"), ["77"]);
        assert_eq!(node.query(connection, "SELECT @@wait_timeout"), ["28800"]);
    }
    for connection in [3, 4] {
        node.open(connection, false);
        assert_eq!(node.query(connection, "SELECT @@sort_buffer_size + @@wait_timeout"), ["100077"]);
    }
    node.execute(2, &["SET GLOBAL wait_timeout = DEFAULT"]);
    assert_eq!(node.query(1, "SELECT @@global.wait_timeout"), ["28800"]);
}

#[test]
fn sessions_that_wait_for_too_long_are_ended_with_their_transactions() {
    let mut node = Node::new(RECEIVERS, NodeConfig::default());
    (1..4).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
    node.execute(1, &["INSERT INTO d.t VALUES (1, 0)", "SET wait_timeout = 10"]);
    node.execute(2, &["SET transaction_timeout_s = 5", "BEGIN", "UPDATE d.t SET v = 1"]);
    node.pass(0);
    node.pass(4);
    assert_eq!((node.answer(1), node.answer(2)), (None, None));
    // One transaction after the other is not one transaction.
    node.execute(2, &["COMMIT", "BEGIN", "UPDATE d.t SET v = 2"]);
    node.pass(2);
    node.pass(3);
    assert_eq!(node.answer(2), None);
    node.begin_query(3, "UPDATE d.t SET v = v + 10");
    node.run();
    node.pass(2);
    let farewell = node.rows(2);
    let text = "#70100The transaction was open for longer than transaction_timeout_s (5) allows";
    assert_eq!((farewell, node.rows(3)), (vec![text.to_owned()], Vec::new()));
    assert_eq!(node.query(3, "SELECT v FROM d.t"), ["11"]);
    let farewell = node.rows(1);
    assert!(farewell[0].starts_with("#HY000The client was disconnected by the server because of inactivity"));
    assert_eq!(node.query(3, PROCESSES).len(), 1);
    assert_eq!(node.held(), 1, "a session is all that is held");
}

#[test]
fn a_login_that_takes_too_long_is_given_up() {
    let mut node = Node::new(FOLDED, NodeConfig::default());
    node.has_sockets = true;
    let socket = SocketId::new(0, 1, 0);
    node.receive(WorldEvent::SocketOpened { socket, peer: "127.0.0.1:1".parse().expect("an address"), listener: 0 });
    for (seconds, closed) in [(9, 0), (1, 1)] {
        node.delivery.now = Time(node.delivery.now.0 + seconds * 1_000_000_000);
        node.receive(WorldEvent::Timer { token: 0 });
        assert_eq!(node.closed_sockets, closed);
    }
}

#[test]
fn user_level_locks_are_those_of_the_whole_node() {
    for seed in 0..20 {
        let mut node = Node::new(RECEIVERS, NodeConfig::default());
        (1..5).for_each(|connection| node.open(connection, false));
        node.shuffle(seed);
        assert_eq!(node.query(1, "SELECT GET_LOCK('Name', 10)"), ["1"]);
        assert_eq!(node.query(1, "SELECT CONCAT(GET_LOCK('name', 0), GET_LOCK('other', 0))"), ["11"]);
        node.begin_query(2, "SELECT GET_LOCK('NAME', 10)");
        node.run();
        assert_eq!(node.answer(2), None);
        assert_eq!(node.query(3, "SELECT IS_USED_LOCK('name') + IS_FREE_LOCK('name') * 100"), ["1"]);
        assert_eq!(node.query(3, "SELECT IS_FREE_LOCK('free')"), ["1"]);
        assert_eq!(node.query(3, "SELECT RELEASE_LOCK('name')"), ["0"]);
        assert_eq!(node.query(3, "SELECT IFNULL(RELEASE_LOCK('free'), 'nobody')"), ["nobody"]);
        assert_eq!(node.query(3, "SELECT GET_LOCK('name', 0)"), ["0"]);
        assert_eq!(node.query(1, "SELECT RELEASE_LOCK('name')"), ["1"]);
        assert_eq!(node.answer(2), None, "it was got twice");
        node.execute(1, &["DO RELEASE_LOCK('name')"]);
        assert_eq!(node.rows(2), ["1"]);
        // The circle is closed by the request that is refused.
        node.begin_query(1, "SELECT GET_LOCK('name', 100)");
        node.run();
        let refused = node.query(2, "SELECT GET_LOCK('other', 100)");
        assert!(refused[0].starts_with("#HY000Deadlock found when trying to get user-level lock"), "{refused:?}");
        node.execute(4, &["KILL QUERY 1"]);
        assert_eq!(node.rows(1), ["#70100Query execution was interrupted"]);
        node.begin_query(1, "SET @got = GET_LOCK('name', -1)");
        node.begin_query(3, "SELECT GET_LOCK('name', 2)");
        node.begin_query(4, "SELECT GET_LOCK('other', 50)");
        node.run();
        node.pass(2);
        assert_eq!((node.rows(3), node.answer(1)), (vec!["0".to_owned()], None));
        // What ends gives everything back, and waits no more.
        node.send(2, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(2) }));
        node.run();
        assert_eq!(node.rows(1), Vec::<String>::new());
        assert_eq!(node.query(1, "SELECT @got"), ["1"]);
        node.execute(3, &["KILL 1"]);
        assert_eq!(node.rows(4), ["1"], "seed {seed}");
        assert_eq!(node.query(4, "SELECT RELEASE_ALL_LOCKS()"), ["1"]);
        assert_eq!(node.held(), 2, "sessions are all that is held");
    }
}

#[test]
fn a_statement_that_is_wrong_gets_no_user_level_lock() {
    let mut node = Node::new(FOLDED, NodeConfig::default());
    node.open(1, false);
    let wrong = [
        ("SELECT GET_LOCK('a', 1), no_such_column", "#42S22Unknown column 'no_such_column' in 'field list'"),
        ("SELECT GET_LOCK('a')", "#42000Incorrect parameter count in the call to native function 'GET_LOCK'"),
        ("SELECT GET_LOCK('', 1)", "#42000Incorrect user-level lock name ''."),
        ("SELECT GET_LOCK(NULL, 1)", "#42000Incorrect user-level lock name 'NULL'."),
        ("DO GET_LOCK(REPEAT('a', 65), 1)", "#42000Incorrect user-level lock name"),
        ("DO GET_LOCK(GET_LOCK('a', 1), 1)", "#42000This version of Junctor doesn't yet support 'GET_LOCK here'"),
    ];
    for (statement, error) in wrong {
        let answer = node.query(1, statement);
        assert!(answer[0].starts_with(error), "{statement}: {answer:?}");
        assert_eq!(node.query(1, "SELECT IS_FREE_LOCK('a')"), ["1"]);
    }
    node.execute(1, &["DO GET_LOCK(REPEAT('a', 64), 1), 1 + 1"]);
    assert_eq!(node.query(1, "SELECT RELEASE_ALL_LOCKS()"), ["1"]);
}

#[test]
fn a_transaction_that_fills_the_memory_fails_by_statements_and_gives_everything_back() {
    let mut node = Node::new(RECEIVERS, NodeConfig::default());
    node.open(1, false);
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, p VARCHAR(8000))"]);
    let insert = |batch: usize| {
        let rows: Vec<String> = (0..100).map(|row| format!("({}, REPEAT('x', 7900))", batch * 100 + row)).collect();
        format!("INSERT INTO d.t VALUES {}", rows.join(","))
    };
    let mut filled = Vec::new();
    for _ in 0..2 {
        node.execute(1, &["BEGIN"]);
        let full = (0..1000).find(|batch| {
            let answer = node.query(1, &insert(*batch));
            assert!(answer.first().is_none_or(|error| error.starts_with("#HY000The table 't' is full")), "{answer:?}");
            !answer.is_empty()
        });
        let batches = full.expect("there is an end of the memory");
        let count = (batches * 100).to_string();
        assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), [count.as_str()], "the statement alone is undone");
        node.execute(1, &["DELETE FROM d.t WHERE id < 50", "ROLLBACK"]);
        assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), ["0"]);
        filled.push(batches);
    }
    assert!(filled[0] > 20 && filled[0] == filled[1], "{filled:?}");
}

#[test]
fn locked_tables_keep_the_sessions_of_every_sql_block_out() {
    for seed in 0..20 {
        let mut node = Node::new(RECEIVERS, NodeConfig::default());
        (1..6).for_each(|connection| node.open(connection, false));
        node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
        node.execute(1, &["INSERT INTO d.t VALUES (1, 0)"]);
        node.shuffle(seed);
        // Who has used the table is waited for.
        node.execute(2, &["BEGIN", "UPDATE d.t SET v = 1"]);
        node.begin_query(1, "LOCK TABLES d.t WRITE");
        node.run();
        assert_eq!(node.answer(1), None);
        node.execute(2, &["COMMIT"]);
        assert_eq!(node.rows(1), Vec::<String>::new());
        for waiting in [2, 3] {
            node.begin_query(waiting, "SELECT v FROM d.t");
        }
        node.run();
        assert_eq!((node.answer(2), node.answer(3)), (None, None));
        node.execute(1, &["UPDATE d.t SET v = v + 1"]);
        node.execute(4, &["KILL QUERY 3"]);
        assert_eq!(node.rows(3), ["#70100Query execution was interrupted"]);
        node.execute(1, &["UNLOCK TABLES"]);
        assert_eq!(node.rows(2), ["2"], "seed {seed}");
        // Readers share.
        node.execute(1, &["LOCK TABLES d.t READ"]);
        node.execute(2, &["LOCK TABLES d.t READ"]);
        assert_eq!(node.query(3, "SELECT v FROM d.t"), ["2"]);
        node.begin_query(3, "UPDATE d.t SET v = v + 1");
        node.begin_query(4, "LOCK TABLES d.t WRITE");
        node.run();
        assert_eq!((node.answer(3), node.answer(4)), (None, None));
        node.execute(1, &["UNLOCK TABLES"]);
        assert_eq!((node.answer(3), node.answer(4)), (None, None));
        node.send(2, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(2) }));
        node.run();
        assert_eq!(node.rows(4), Vec::<String>::new());
        node.execute(5, &["KILL 4"]);
        assert_eq!(node.rows(3), Vec::<String>::new());
        assert_eq!(node.query(5, "SELECT v FROM d.t"), ["3"]);
        assert_eq!(node.held(), 3, "sessions are all that is held");
    }
}

#[test]
fn nobody_waits_in_a_circle_of_rows_and_tables() {
    for seed in 0..40 {
        let mut node = Node::new(RECEIVERS, NodeConfig::default());
        (1..5).for_each(|connection| node.open(connection, false));
        node.execute(4, &["CREATE DATABASE d", "CREATE TABLE d.a (id INT PRIMARY KEY, n INT)"]);
        node.execute(4, &["CREATE TABLE d.b (id INT PRIMARY KEY, n INT)"]);
        node.execute(4, &["INSERT INTO d.a VALUES (1, 0)", "INSERT INTO d.b VALUES (1, 0)"]);
        node.shuffle(seed);
        node.execute(1, &["BEGIN"]);
        assert_eq!(node.query(1, "SELECT n FROM d.a"), ["0"]);
        // The change waits for 1, which waits for a row of 2, which waits for the change.
        node.begin_query(3, "ALTER TABLE d.a ADD INDEX n (n)");
        node.run();
        node.execute(2, &["BEGIN", "UPDATE d.b SET n = 2"]);
        let mut waits = [(1, "UPDATE d.b SET n = n + 1"), (2, "UPDATE d.a SET n = 2")];
        if seed % 2 == 0 {
            waits.reverse();
        }
        node.begin_query(waits[0].0, waits[0].1);
        if seed % 4 < 2 {
            node.run();
        }
        node.begin_query(waits[1].0, waits[1].1);
        node.run();
        assert_eq!(node.rows(2), Vec::<String>::new(), "seed {seed}: who is waited for goes first");
        assert_eq!((node.answer(1), node.answer(3)), (None, None));
        node.execute(2, &["COMMIT"]);
        assert_eq!(node.rows(1), Vec::<String>::new(), "seed {seed}");
        assert_eq!(node.answer(3), None);
        node.execute(1, &["COMMIT"]);
        assert_eq!(node.rows(3), Vec::<String>::new(), "seed {seed}");
        assert_eq!(
            (node.query(4, "SELECT n FROM d.a"), node.query(4, "SELECT n FROM d.b")),
            (vec!["2".into()], vec!["3".into()])
        );
        assert_eq!(node.held(), 4, "sessions are all that is held");
    }
}

#[test]
fn a_foreign_key_is_added_while_nobody_writes_to_its_tables() {
    const ADD: &str = "ALTER TABLE d.c ADD UNIQUE KEY u (v), ADD CONSTRAINT k FOREIGN KEY (pid) REFERENCES d.p (id)";
    for seed in 0..20 {
        let mut node = Node::new(RECEIVERS, NodeConfig::default());
        (1..5).for_each(|connection| node.open(connection, false));
        node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.p (id INT PRIMARY KEY, n INT)"]);
        node.execute(1, &["CREATE TABLE d.c (id INT PRIMARY KEY, pid INT, v INT)"]);
        node.execute(1, &["INSERT INTO d.p VALUES (1, 1), (2, 2)", "INSERT INTO d.c VALUES (1, 1, 1), (2, 2, 2)"]);
        node.shuffle(seed);
        // Who has written to the parent is waited for; stopped meanwhile, the alteration leaves nothing.
        node.execute(2, &["BEGIN", "DELETE FROM d.p WHERE id = 2"]);
        node.begin_query(1, ADD);
        node.run();
        assert_eq!(node.answer(1), None);
        assert_eq!(node.query(3, "SELECT v FROM d.c WHERE id = 1"), ["1"], "readers go on");
        node.begin_query(3, "INSERT INTO d.c VALUES (3, 9, 9)");
        node.begin_query(4, "TRUNCATE TABLE d.c");
        node.run();
        assert_eq!((node.answer(3), node.answer(4)), (None, None));
        node.execute(2, &["KILL QUERY 4", "KILL QUERY 1"]);
        assert_eq!(node.rows(1), ["#70100Query execution was interrupted"], "seed {seed}");
        assert_eq!(node.rows(4), ["#70100Query execution was interrupted"], "seed {seed}");
        assert_eq!(node.rows(3), Vec::<String>::new());
        node.execute(
            3,
            &["DELETE FROM d.c WHERE id = 3", "INSERT INTO d.c VALUES (3, 1, 1)", "UPDATE d.c SET v = 3 WHERE id = 3"],
        );
        // The parent is gone when its turn comes.
        node.begin_query(1, ADD);
        node.run();
        node.execute(2, &["COMMIT"]);
        let refused = node.rows(1);
        assert!(refused[0].starts_with("#23000Cannot add or update a child row"), "{refused:?}");
        node.execute(1, &["INSERT INTO d.p VALUES (2, 2)"]);
        node.begin_query(1, ADD);
        for (connection, text) in [(2, "DELETE FROM d.p WHERE id = 2"), (3, "INSERT INTO d.c VALUES (4, 7, 7)")] {
            node.begin_query(connection, text);
        }
        node.run();
        let (added, deleted, inserted) = (node.rows(1), node.rows(2), node.rows(3));
        let is_refused = |answer: &[String]| !answer.is_empty();
        let children = node.query(1, "SELECT pid FROM d.c ORDER BY id");
        // Each of them was before the foreign key or has met it.
        match is_refused(&added) {
            true => assert!(!is_refused(&deleted) || !is_refused(&inserted), "seed {seed}: {added:?}"),
            false => {
                assert!(is_refused(&deleted) && is_refused(&inserted), "seed {seed}: {deleted:?} {inserted:?}");
                assert_eq!(children, ["1", "2", "1"]);
            }
        }
        assert_eq!(node.held(), 4, "sessions are all that is held");
    }
}
