//! All blocks of a node in one thread, with signals delivered one at a time: interleaved commands of several
//! sessions. `Node` is the harness; each file has one topic.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::placement::{PlacementPlan, ThreadConfig, Topology};
use junctor_front::Protocol;
use junctor_front::account::Accounts;
use junctor_kernel::simulated::{Delivery, InFlight};
use junctor_kernel::{
    Address, Directory, Endpoints, FileLane, Host, LoadBoard, NodeId, NodeLayout, PeerAddress, Random, SocketId,
    ThreadAssignment, Time, WorldEvent, WorldRequest,
};
use junctor_model::id::ConnectionId;
use junctor_signals::Module;
use junctor_signals::client_command::*;
use junctor_signals::inbox::{RecvSignal, Signal, SqlSignal};

use self::server_files::FileDouble;
use super::{NodeHost, Shared};
use crate::NodeConfig;

mod account;
mod admission;
mod alteration;
mod auto_increment;
mod composite_keys;
mod connection;
mod cursor;
mod foreign_key;
mod hinted_variables;
mod interrupt;
mod lend_session;
mod load;
mod metadata_lock;
mod multi_statement;
mod own_tables;
mod server_files;
mod session_call;
mod slow_partition;
mod spill;
mod statement_digests;
mod statistics;
mod status;
mod steps;
mod time_to_live;
mod track;
mod transaction;
mod user_lock;

const NODE: NodeId = NodeId(1);

struct Node {
    shared: Arc<Shared>,
    directory: Arc<Directory>,
    hosts: Vec<NodeHost>,
    delivery: Delivery<Signal>,
    files: FileDouble,
    answers: BTreeMap<ConnectionId, VecDeque<Vec<u8>>>,
    /// Connections whose session awaits a part of a file.
    awaits_file: BTreeSet<ConnectionId>,
    /// Whether answers go to recv, which then has sockets, instead of to `answers`.
    has_sockets: bool,
    /// Bytes that recv has sent to sockets.
    sent_bytes: usize,
    closed_sockets: usize,
}

impl Node {
    fn new(thread_config: &str, config: NodeConfig) -> Node {
        Node::prepared(thread_config, config, |_| {})
    }

    /// A node whose shared state `prepare` changes before any block exists.
    fn prepared(thread_config: &str, config: NodeConfig, prepare: fn(&Shared)) -> Node {
        junctor_kernel::invariant::panic_on_failure();
        let parsed = ThreadConfig::parse(thread_config).expect("the configuration is valid");
        let plan = PlacementPlan::from_thread_config(&parsed, &Topology::uniform(4), true).expect("a plan");
        let layout = NodeLayout::from(&plan);
        let config = NodeConfig { total_memory_bytes: Some(64 << 20), ..config };
        let shared = Arc::new(Shared::new(&config, Accounts::with_local_root(), &plan).expect("memory"));
        prepare(&shared);
        let directory = Arc::new(Directory::new(NODE, &layout).expect("the layout is valid"));
        let loads = Arc::new(LoadBoard::new(layout.threads.len()));
        let mut node = Node {
            shared: Arc::clone(&shared),
            directory: Arc::clone(&directory),
            hosts: Vec::new(),
            delivery: Delivery::new(),
            files: FileDouble::default(),
            answers: BTreeMap::new(),
            awaits_file: BTreeSet::new(),
            has_sockets: false,
            sent_bytes: 0,
            closed_sockets: 0,
        };
        for (thread, assignment) in layout.threads.iter().enumerate() {
            for &(module, instance) in &assignment.modules {
                let address = directory.address(module, instance);
                node.delivery.add_block(address, &layout, 1).expect("the layout is valid");
            }
            let assignment = ThreadAssignment {
                node: NODE,
                thread: thread as u16,
                name: assignment.name.clone(),
                modules: assignment.modules.clone(),
                directory: Arc::clone(&directory),
                loads: Arc::clone(&loads),
                seed: thread as u64,
            };
            node.hosts.push(NodeHost::new(&assignment, &shared));
        }
        node.run();
        node
    }

    /// From now on, delivers signals in a random order that the seed determines.
    fn shuffle(&mut self, seed: u64) {
        self.delivery.random = Some(Random::new(seed));
    }

    /// Delivers until no signal is in flight.
    fn run(&mut self) {
        while self.step() {}
    }

    /// Delivers one signal. False if none is in flight.
    fn step(&mut self) -> bool {
        let next = self.delivery.take_next();
        let is_any = next.is_some();
        next.into_iter().for_each(|next| self.deliver(next));
        is_any
    }

    fn deliver(&mut self, InFlight { to, from, signal }: InFlight<Signal>) {
        if !self.has_sockets
            && let Signal::Recv(RecvSignal::CommandReply(reply)) = signal
        {
            if reply.after == AfterReply::AwaitInput {
                self.awaits_file.insert(reply.connection);
            }
            let answer = (!reply.packets.is_empty()).then_some(reply.packets);
            self.answers.entry(reply.connection).or_default().extend(answer);
            return;
        }
        let thread = self.directory.thread_of(to.module, to.instance).expect("the block exists");
        let host = &mut self.hosts[usize::from(thread)];
        let endpoints = Endpoints { to, from };
        let requests = self.delivery.handle(to, |context, outbox| host.handle(endpoints, signal, context, outbox));
        for request in requests {
            match request {
                WorldRequest::SendBytes { bytes, .. } => self.sent_bytes += bytes.len(),
                WorldRequest::CloseSocket { .. } => self.closed_sockets += 1,
                request if matches!(request.file_lane(), Some(FileLane::Outside | FileLane::Temporary)) => {
                    let done = self.files.carry_out(request);
                    match self.files.is_held {
                        true => self.files.held.push((to, done)),
                        false => self.send_world(to, done),
                    }
                }
                _ => {}
            }
        }
    }

    fn send_world(&mut self, to: Address, event: WorldEvent) {
        self.delivery.send(to, to, Signal::World(event));
    }

    /// Advances time. The timers of the sql blocks and of main expire once, at the end.
    fn advance_seconds(&mut self, seconds: u64) {
        self.delivery.now = Time(self.delivery.now.0 + seconds * 1_000_000_000);
        for instance in 0..self.directory.instances(Module::Sql) {
            let sql = self.directory.address(Module::Sql, instance);
            self.send_world(sql, WorldEvent::Timer { token: 0 });
        }
        let main = self.directory.address(Module::Main, 0);
        self.send_world(main, WorldEvent::Timer { token: 1 });
        self.run();
    }

    /// Lets every started timer expire once, without advancing time.
    fn fire_timers(&mut self) {
        let timers: BTreeSet<(Address, u64)> = self.delivery.take_timers().into_iter().collect();
        for (block, token) in timers {
            self.send_world(block, WorldEvent::Timer { token });
        }
        self.run();
    }

    /// The number of resources that sessions and the data plane hold; 0 when nobody is connected.
    fn resources_held(&self) -> usize {
        let of_sql = |host: &NodeHost| host.sql().map_or(0, |sql| sql.held().iter().map(|(_, count)| count).sum());
        let open = |host: &NodeHost| host.tc().map_or(0, |tc| tc.transactions_open());
        let named = |host: &NodeHost| {
            host.main().map_or(0, |main| {
                let alterations: usize = main.held_by_alterations().iter().map(|(_, count)| count).sum();
                main.user_locks_held().0 + main.table_locks_held() + alterations
            })
        };
        self.hosts.iter().map(|host| of_sql(host) + open(host) + named(host)).sum::<usize>()
    }

    /// Ends the turn of every thread.
    fn before_publish(&mut self) {
        let own = self.directory.address(Module::Recv, 0);
        let hosts = &mut self.hosts;
        self.delivery
            .handle(own, |context, outbox| hosts.iter_mut().for_each(|host| host.before_publish(context, outbox)));
    }

    fn receive(&mut self, event: WorldEvent) {
        let recv = self.directory.address(Module::Recv, 0);
        self.send_world(recv, event);
        self.run();
    }

    fn sql(&self, connection: u32) -> Address {
        let instances = self.directory.instances(Module::Sql) - self.directory.instances(Module::Work);
        let instances = u32::from(instances);
        self.directory.address(Module::Sql, (connection % instances) as u16)
    }

    fn send(&mut self, connection: u32, signal: SqlSignal) {
        let recv = self.directory.address(Module::Recv, 0);
        self.delivery.send(self.sql(connection), recv, Signal::Sql(signal));
    }

    /// Opens a session, or with `reset` replaces it.
    fn open(&mut self, connection: u32, reset: bool) {
        // CLIENT_PROTOCOL_41 and CLIENT_LOCAL_FILES.
        self.log_in(connection, reset, (0x280, false));
    }

    /// Opens a session with these capabilities.
    fn open_with(&mut self, connection: u32, capabilities: u32) {
        self.log_in(connection, false, (capabilities, false));
    }

    /// Opens a session through the extra port.
    fn open_extra(&mut self, connection: u32) {
        self.log_in(connection, false, (0x280, true));
    }

    fn log_in(&mut self, connection: u32, reset: bool, (capabilities, is_extra): (u32, bool)) {
        let login = Login {
            user: "root".into(),
            account: junctor_model::access::AccountName::new("root", "localhost"),
            is_expired: false,
            host: "localhost".into(),
            database: None,
            capabilities,
            character_set: 45,
            protocol: Protocol::MySql.number(),
            tls: None,
            is_extra,
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

    /// Sends a command without delivering anything.
    fn begin(&mut self, connection: u32, command: &[u8]) {
        let bytes = command.to_vec();
        let end = bytes.len() as u32;
        let command = ExecuteCommand { connection: ConnectionId(connection), bytes, start: 0, end };
        self.send(connection, SqlSignal::ExecuteCommand(command));
    }

    fn begin_query(&mut self, connection: u32, text: &str) {
        self.begin(connection, &[&[3], text.as_bytes()].concat());
    }

    /// Takes the packets of the oldest answer.
    fn answer(&mut self, connection: u32) -> Option<Vec<u8>> {
        self.answers.get_mut(&ConnectionId(connection))?.pop_front()
    }

    /// Takes the rows of an answer with one column of less than 251 bytes. An error counts as one row.
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

const ONE_THREAD: &str = "recv={count=1},ldm={count=0},main={count=0},io={count=0}";
const TWO_RECV_THREADS: &str = "recv={count=2},ldm={count=0},main={count=0}";

#[test]
fn a_global_value_is_that_of_every_sql_block() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
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
