//! Tests of the sockets of links: each event of a connection reaches its link.

use std::net::{TcpListener, TcpStream};

use mio::{Events, Poll};

use super::*;
use crate::address::{Address, NodeId};
use crate::block::Priority;
use crate::buffer::BufferPool;
use crate::clock::Clock;
use crate::context::Time;
use crate::directory::{Directory, ThreadAssignment};
use crate::envelope::AcceptedLink;
use crate::outbox::Outbox;
use crate::real::link_socket::LinkPorts;
use crate::real::memory_stream::{Acceptor, Bell};
use crate::real::socket::{NodeSockets, Sockets};
use crate::real::socket_counts::SocketCounts;
use crate::scheduler::run::{Engine, connect_threads};
use crate::toy::ToySignal;
use crate::transport::board::{LinkBoard, LinkRoutes};
use crate::transport::hello::ClusterKey;
use crate::transport::link::HELLO_MAX;
use crate::transport::thread_links::{LinkInput, LinkSockets, Transport};
use crate::turn_clock::TurnClock;

/// No client connects.
struct NoBell;

impl Bell for NoBell {
    fn ring(&self) {}
}

/// The events that the links of the thread received.
#[derive(Default)]
struct Got {
    hellos: u32,
    bytes: usize,
    closed: u32,
    answered: u32,
}

/// Counts its input, and sends nothing.
struct Recorder(Arc<Mutex<Got>>, Vec<(Address, Priority)>);

impl Transport<ToySignal> for Recorder {
    fn receive(&mut self, input: LinkInput<'_>, _: Time, _: &mut Outbox<ToySignal>, _: &mut BufferPool) {
        let mut got = self.0.lock().unwrap();
        match input {
            LinkInput::Hello(..) => got.hellos += 1,
            LinkInput::Bytes(_, bytes) => got.bytes += bytes.len(),
            LinkInput::Closed(..) => got.closed += 1,
            LinkInput::Answered(_) => got.answered += 1,
            LinkInput::Refused(..) => unreachable!("these links are not encrypted"),
        }
    }

    fn work(&mut self, _: Time, outbox: &mut Outbox<ToySignal>, _: &mut BufferPool, _: &mut dyn LinkSockets) {
        outbox.set_link_work(false);
    }

    fn due(&self) -> Time {
        Time(u64::MAX)
    }

    fn take_sent(&mut self) -> &mut Vec<(Address, Priority)> {
        &mut self.1
    }
}

/// One thread with sockets for links. The test takes its turns.
struct Thread {
    sockets: Sockets,
    engine: Engine<ToySignal, ToyHost>,
    poll: Poll,
    got: Arc<Mutex<Got>>,
    address: SocketAddr,
    /// The listener of node 2, which accepts nothing.
    other: Option<TcpListener>,
}

impl Thread {
    fn new() -> Self {
        let layout = NodeLayout::new(&[&[(ModuleId::SOCKETS, 0), (PLAYER, 0)]]);
        let directory = Arc::new(Directory::new(NodeId(1), &layout).unwrap());
        let (poll, limits) = (Poll::new().unwrap(), KernelLimits::default());
        let own = directory.address(ModuleId::SOCKETS, 0);
        let counts = Arc::new(SocketCounts(vec![0.into()]));
        let node = NodeSockets { directory: directory.clone(), limits: limits.clone(), counts };
        let registry = poll.registry().try_clone().unwrap();
        let mut sockets = Sockets::new(own, node, registry, Arc::new(Acceptor::new(0, Box::new(NoBell))));
        let assignment = ThreadAssignment {
            node: NodeId(1),
            thread: 0,
            name: "links".into(),
            modules: layout.threads[0].modules.clone(),
            directory,
            loads: Arc::new(LoadBoard::new(1)),
            seed: 1,
        };
        let host = ToyHost::new(assignment.clone(), ToyPlan::default());
        let rings = connect_threads(1, &limits).remove(0);
        let turn_clock = TurnClock::real(Clock::start());
        let mut engine = Engine::new(assignment, host, rings, &limits, (Time(0), turn_clock));
        let (got, routes) = (Arc::new(Mutex::new(Got::default())), Arc::new(LinkRoutes::new(vec![0])));
        let recorder = Box::new(Recorder(got.clone(), Vec::new()));
        engine.set_links(Some(recorder), routes.clone(), Arc::new(LinkBoard::new()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let options = LinkOptions {
            cluster: 1,
            key: ClusterKey([1; 32]),
            incarnation: 1,
            listener: Arc::new(listener.try_clone().unwrap()),
            peers: vec![(NodeId(2), other.local_addr().unwrap())],
            channels: 1,
            watcher: (PLAYER, 0),
            introduction: Arc::new([]),
            security: None,
            figures: Default::default(),
        };
        let ports = LinkPorts::new(&options, routes, 0).unwrap();
        sockets.set_links(ports, Some(mio::net::TcpListener::from_std(listener))).unwrap();
        engine.work_links(Time(0), &mut sockets);
        Self { sockets, engine, poll, got, address, other: Some(other) }
    }

    /// A connection that has said its hello.
    fn connect(&mut self) -> TcpStream {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let accepted = listener.accept().unwrap().0;
        accepted.set_nonblocking(true).unwrap();
        self.sockets.adopt_link(AcceptedLink { stream: accepted, message: vec![0; 8], encryption: None });
        self.take_input();
        assert_eq!(self.got.lock().unwrap().hellos, 1);
        stream
    }

    /// Passes on what the poll reports; waits for a report.
    fn poll(&mut self) {
        let mut events = Events::with_capacity(16);
        self.poll.poll(&mut events, None).unwrap();
        for event in &events {
            let is_closed = event.is_read_closed() || event.is_error();
            self.sockets.on_ready(event.token().0, event.is_readable(), event.is_writable(), is_closed);
        }
    }

    /// Takes turns as long as there is input.
    fn take_input(&mut self) {
        while self.sockets.has_input() {
            self.sockets.take_input(&mut self.engine);
        }
        let mut sockets = self.sockets.slots.iter().filter_map(|slot| slot.socket.as_ref());
        assert!(sockets.all(|socket| !socket.readable), "a thread without input waits for the poll");
    }
}

#[test]
fn bytes_that_one_read_leaves_are_read_without_another_event() {
    const LENGTH: usize = 400_000;
    let mut thread = Thread::new();
    let mut stream = thread.connect();
    std::thread::scope(|scope| {
        scope.spawn(|| stream.write_all(&vec![7; LENGTH]).unwrap());
        while thread.got.lock().unwrap().bytes < LENGTH {
            thread.poll();
            thread.take_input();
        }
    });
}

#[test]
fn the_end_of_a_connection_is_seen_behind_its_last_bytes() {
    let mut thread = Thread::new();
    let mut stream = thread.connect();
    stream.write_all(b"bytes").unwrap();
    drop(stream);
    thread.poll();
    thread.take_input();
    let got = thread.got.lock().unwrap();
    assert_eq!((got.bytes, got.closed), (5, 1));
}

#[test]
fn a_stopping_thread_reads_its_links() {
    let mut thread = Thread::new();
    let mut stream = thread.connect();
    stream.write_all(b"bytes").unwrap();
    thread.poll();
    thread.sockets.stop_reading();
    thread.take_input();
    assert_eq!(thread.got.lock().unwrap().bytes, 5);
}

#[test]
fn a_system_answers_for_a_process_that_accepts_nothing_and_not_for_one_that_is_gone() {
    let mut thread = Thread::new();
    // The end of the process ends the first connection, too.
    for (answered, closed) in [(1, 0), (1, 2)] {
        LinkSockets::probe(&mut thread.sockets, NodeId(2)).expect("a socket");
        thread.poll();
        thread.take_input();
        let got = thread.got.lock().unwrap();
        assert_eq!((got.answered, got.closed), (answered, closed));
        drop(thread.other.take());
    }
}

#[test]
fn a_connection_without_a_hello_is_closed_in_time() {
    let mut thread = Thread::new();
    let mut stream = TcpStream::connect(thread.address).unwrap();
    thread.poll();
    thread.take_input();
    assert!(thread.engine.has_link_work(), "the new deadline counts");
    let close = |thread: &mut Thread, now: Time| {
        let Thread { sockets, engine, .. } = thread;
        engine.with_services(|services| sockets.close_links(now, services))
    };
    let deadline = Time(0).plus(HELLO_MAX);
    assert_eq!(close(&mut thread, Time(0)), deadline);
    assert_eq!(close(&mut thread, deadline), Time(u64::MAX));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    thread.take_input();
}
