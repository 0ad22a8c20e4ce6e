//! Output that moves between the owner of a socket and helpers, in any order of their turns.

use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use mio::{Events, Poll};

use crate::address::NodeId;
use crate::buffer::BufferPool;
use crate::context::{Duration, Time};
use crate::directory::{Directory, NodeLayout};
use crate::envelope::SocketParcel;
use crate::limit::KernelLimits;
use crate::module::ModuleId;
use crate::random::Random;
use crate::real::foreign_output::{BATCH_BYTES_MAX, ForeignOutput};
use crate::real::memory_stream::{Acceptor, Bell};
use crate::real::sending::{AtomicSendSettings, Sending};
use crate::real::socket::{NodeSockets, OutputCounts, Sockets};
use crate::real::socket_counts::SocketCounts;
use crate::scheduler::load::{LoadBoard, LoadMeter, ThreadLoad, ThreadState, Usage};
use crate::scheduler::run::Services;
use crate::scheduler::send::{DELAY_BYTES_MAX, KEEP_MAX, SendAssistance, SendSettings, SendState};
use crate::toy::{ECHO, IDLE, PLAYER, STARTER};
use crate::world::{SocketCloseReason, SocketId, WorldEvent, WorldRequest};

const ALWAYS: SendSettings = SendSettings { assistance: SendAssistance::Always, delay_us_max: 0 };

/// An owner and a helper. The test takes their turns one by one.
struct Pair {
    sockets: Sockets,
    poll: Poll,
    sending: Sending,
    helper: ForeignOutput,
    /// In flight to the helper, and back.
    parcels: [Vec<SocketParcel>; 2],
    buffers: BufferPool,
    events: Vec<WorldEvent>,
    clients: Vec<Client>,
    now: Time,
}

struct Client {
    stream: TcpStream,
    socket: SocketId,
    sent: Vec<u8>,
    received: Vec<u8>,
    ended: bool,
}

/// No client connects.
struct NoBell;

impl Bell for NoBell {
    fn ring(&self) {}
}

fn layout() -> NodeLayout {
    layout_of(&[&[(ModuleId::SOCKETS, 0)], &[(STARTER, 0)]])
}

/// A layout in which threads with nothing but STARTER and IDLE seldom have work.
fn layout_of(threads: &[&[(ModuleId, u16)]]) -> NodeLayout {
    let mut layout = NodeLayout::new(threads);
    for thread in &mut layout.threads {
        thread.is_mostly_idle = thread.modules.iter().all(|(module, _)| [STARTER, IDLE].contains(module));
    }
    layout
}

impl Pair {
    fn new(layout: &NodeLayout, loads: LoadBoard, settings: SendSettings, clients: usize, now: Time) -> Pair {
        let directory = Arc::new(Directory::new(NodeId(1), layout).unwrap());
        let poll = Poll::new().unwrap();
        let counts = Arc::new(SocketCounts(vec![0.into()]));
        let own = directory.address(ModuleId::SOCKETS, 0);
        let registry = poll.registry().try_clone().unwrap();
        let mut sending = Sending::new(&directory, 0, Arc::new(loads));
        let acceptor = Arc::new(Acceptor::new(0, Box::new(NoBell)));
        let sockets =
            Sockets::new(own, NodeSockets { directory, limits: KernelLimits::default(), counts }, registry, acceptor);
        let helper = ForeignOutput::default();
        sending.adjust(now, &AtomicSendSettings::new(&settings), &sockets.output_counts, &helper);
        let buffers = BufferPool::new(1 << 20);
        let mut pair = Pair {
            sockets,
            poll,
            sending,
            helper,
            parcels: Default::default(),
            buffers,
            events: Vec::new(),
            clients: Vec::new(),
            now,
        };
        (0..clients).for_each(|_| pair.connect());
        pair
    }

    fn connect(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        self.with(|pair, services| pair.sockets.adopt(accepted, peer.into(), 0, services));
        let Some(WorldEvent::SocketOpened { socket, .. }) = self.events.pop() else { panic!("it was not opened") };
        self.clients.push(Client { stream, socket, sent: Vec::new(), received: Vec::new(), ended: false });
    }

    /// Runs `action` with the services of either thread; parcels go to the other.
    fn with<R>(&mut self, action: impl FnOnce(&mut Pair, &mut Services<'_>) -> R) -> R {
        let mut buffers = std::mem::replace(&mut self.buffers, BufferPool::new(0));
        let (mut events, mut parcels) = (Vec::new(), Vec::new());
        let mut services = Services { buffers: &mut buffers, events: &mut events, parcels: &mut parcels };
        let result = action(self, &mut services);
        self.buffers = buffers;
        self.events.extend(events.into_iter().map(|(_, event)| event));
        for (thread, parcel) in parcels {
            self.parcels[usize::from(thread == 0)].push(parcel);
        }
        result
    }

    fn send(&mut self, client: usize, length: usize) {
        let client = &mut self.clients[client];
        let bytes: Vec<u8> = (client.sent.len()..client.sent.len() + length).map(|at| (at * 7 % 251) as u8).collect();
        client.sent.extend_from_slice(&bytes);
        let socket = client.socket;
        self.with(|pair, services| pair.sockets.carry_out(WorldRequest::SendBytes { socket, bytes }, services));
    }

    fn close(&mut self, client: usize) {
        let socket = self.clients[client].socket;
        self.with(|pair, services| pair.sockets.carry_out(WorldRequest::CloseSocket { socket }, services));
    }

    fn hand_over(&mut self, is_idle: bool) {
        self.with(|pair, services| pair.sockets.hand_over(&mut pair.sending, is_idle, pair.now, services));
    }

    fn write(&mut self) {
        self.with(|pair, services| pair.sockets.write_output(services));
    }

    fn help(&mut self, state: SendState, is_idle: bool) {
        for parcel in std::mem::take(&mut self.parcels[0]) {
            let SocketParcel::WriteOutput(loan) = parcel else { panic!("{parcel:?}") };
            self.helper.take(loan, self.now);
        }
        self.with(|pair, services| pair.helper.write_output(state, is_idle, pair.now, services));
    }

    fn take_back(&mut self) {
        for parcel in std::mem::take(&mut self.parcels[1]) {
            let SocketParcel::OutputReturned(loan) = parcel else { panic!("{parcel:?}") };
            self.with(|pair, services| pair.sockets.take_back(loan, services));
        }
    }

    /// Reports to the owner which sockets take bytes again.
    fn poll(&mut self) {
        let mut events = Events::with_capacity(16);
        self.poll.poll(&mut events, Some(std::time::Duration::ZERO)).unwrap();
        events.iter().for_each(|event| self.sockets.on_ready(event.token().0, false, event.is_writable(), false));
    }

    fn read(&mut self, client: usize, most: usize) {
        let client = &mut self.clients[client];
        let mut bytes = vec![0; most];
        match client.stream.read(&mut bytes) {
            Ok(0) => client.ended = true,
            Ok(length) => client.received.extend_from_slice(&bytes[..length]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }

    fn closings(&self) -> Vec<(SocketId, SocketCloseReason)> {
        let reason = |event: &WorldEvent| match event {
            WorldEvent::SocketClosed { socket, reason } => Some((*socket, *reason)),
            _ => None,
        };
        self.events.iter().filter_map(reason).collect()
    }
}

#[test]
fn bytes_keep_their_order_while_writers_take_turns_in_any_order() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let mut pair = Pair::new(&layout(), LoadBoard::new(2), ALWAYS, 3, Time(0));
        for _ in 0..300 {
            let client = random.below(3) as usize;
            match random.below(9) {
                0 => pair.send(client, 1 + random.below(200_000) as usize),
                1 => pair.send(client, 1 + random.below(100) as usize),
                2 => pair.hand_over(random.one_in(2)),
                3 => pair.write(),
                4 => pair.help(SendState::Light, false),
                5 => pair.help(SendState::from_number(random.below(4) as u8), random.one_in(2)),
                6 => pair.take_back(),
                7 => pair.poll(),
                _ => pair.read(client, 1 + random.below(200_000) as usize),
            }
        }
        (0..3).for_each(|client| pair.close(client));
        while pair.clients.iter().any(|client| !client.ended) {
            pair.hand_over(true);
            pair.help(SendState::Light, true);
            pair.take_back();
            pair.poll();
            (0..3).for_each(|client| pair.read(client, 1 << 20));
        }
        for client in &pair.clients {
            assert!(client.received == client.sent, "seed {seed}");
        }
        assert!(pair.sockets.is_written() && pair.sockets.output_counts.handed_over > 0 && pair.helper.writes > 0);
        assert!(pair.closings().iter().all(|(_, reason)| *reason == SocketCloseReason::Own));
        assert_eq!(pair.closings().len(), 3);
    }
}

#[test]
fn output_queued_while_a_helper_writes_follows_the_helpers_output() {
    let mut pair = Pair::new(&layout(), LoadBoard::new(2), ALWAYS, 1, Time(0));
    pair.send(0, 100);
    pair.hand_over(false);
    pair.send(0, 100);
    assert!(!pair.sockets.has_output(), "nobody may write it now");
    pair.write();
    pair.help(SendState::Light, false);
    pair.read(0, 1_000);
    assert_eq!(pair.clients[0].received.len(), 100);
    pair.take_back();
    assert!(pair.sockets.has_output());
    pair.write();
    pair.read(0, 1_000);
    assert!(pair.clients[0].received == pair.clients[0].sent);
}

#[test]
fn a_socket_closed_while_a_helper_writes_ends_after_its_last_byte() {
    let mut pair = Pair::new(&layout(), LoadBoard::new(2), ALWAYS, 1, Time(0));
    pair.send(0, 100);
    pair.hand_over(false);
    pair.send(0, 50);
    pair.close(0);
    assert!(pair.closings().is_empty());
    pair.help(SendState::Light, false);
    pair.take_back();
    assert!(pair.closings().is_empty(), "there is more to write");
    pair.hand_over(false);
    pair.help(SendState::Light, false);
    pair.take_back();
    assert_eq!(pair.closings(), [(pair.clients[0].socket, SocketCloseReason::Own)]);
    pair.read(0, 1_000);
    pair.read(0, 1_000);
    assert!(pair.clients[0].ended && pair.clients[0].received.len() == 150);
}

#[test]
fn a_slot_is_reused_only_when_its_output_is_back() {
    let mut pair = Pair::new(&layout(), LoadBoard::new(2), ALWAYS, 1, Time(0));
    pair.send(0, 100);
    pair.hand_over(false);
    pair.clients[0].stream.shutdown(Shutdown::Both).unwrap();
    // More than the queue may hold, so the owner wants to close immediately.
    let too_much = KernelLimits::default().send_bytes_max;
    pair.send(0, too_much);
    pair.clients[0].sent.clear();
    pair.connect();
    assert_ne!(pair.clients[0].socket.index(), pair.clients[1].socket.index());
    pair.help(SendState::Light, false);
    pair.take_back();
    assert_eq!(pair.closings(), [(pair.clients[0].socket, SocketCloseReason::OutputFull)]);
    pair.connect();
    assert_eq!(pair.clients[0].socket.index(), pair.clients[2].socket.index());
    assert_ne!(pair.clients[0].socket, pair.clients[2].socket);
}

#[test]
fn a_slow_reader_delays_only_itself() {
    let mut pair = Pair::new(&layout(), LoadBoard::new(2), ALWAYS, 2, Time(0));
    pair.send(0, 8 << 20);
    pair.hand_over(false);
    pair.help(SendState::Light, false);
    while pair.helper.has_output() {
        pair.help(SendState::Light, false);
    }
    pair.take_back();
    pair.send(1, 10);
    pair.hand_over(false);
    pair.help(SendState::Light, false);
    pair.read(1, 100);
    assert_eq!(pair.clients[1].received.len(), 10);
    assert!(!pair.helper.has_output() && !pair.sockets.is_written());
    while pair.clients[0].received.len() < 8 << 20 {
        pair.read(0, 1 << 20);
        pair.take_back();
        pair.poll();
        pair.hand_over(false);
        pair.help(SendState::Light, false);
    }
    pair.take_back();
    assert!(pair.clients[0].received == pair.clients[0].sent && pair.sockets.is_written());
}

#[test]
fn a_socket_that_becomes_writable_while_a_helper_has_its_output_is_not_forgotten() {
    const LENGTH: usize = 24 << 20;
    let mut pair = Pair::new(&layout(), LoadBoard::new(2), ALWAYS, 1, Time(0));
    pair.send(0, LENGTH);
    for _ in 0..1_000 {
        pair.hand_over(true);
        pair.help(SendState::Light, true);
        let before = pair.clients[0].received.len();
        while {
            let so_far = pair.clients[0].received.len();
            pair.read(0, 1 << 20);
            pair.clients[0].received.len() > so_far
        } {}
        // The event arrives before the output is back.
        pair.poll();
        pair.take_back();
        pair.poll();
        if pair.sockets.is_written() {
            break;
        }
        assert!(pair.clients[0].received.len() > before, "it stands still");
    }
    assert_eq!(pair.clients[0].received.len(), LENGTH);
}

#[test]
fn a_busy_helper_writes_one_batch_before_sleeping_and_all_old_ones_but_an_overloaded_helper_none() {
    let mut pair = Pair::new(&layout(), LoadBoard::new(2), ALWAYS, 3, Time(0));
    (0..3).for_each(|client| pair.send(client, 10));
    pair.hand_over(false);
    pair.help(SendState::Medium, false);
    assert_eq!(pair.helper.writes, 0);
    pair.help(SendState::High, true);
    assert_eq!(pair.helper.writes, 1);
    pair.now = Time(KEEP_MAX.0);
    pair.help(SendState::Medium, false);
    assert_eq!(pair.helper.writes, 3, "all that waited long");
    pair.take_back();
    pair.send(0, 10);
    pair.hand_over(false);
    pair.help(SendState::Overload, true);
    assert_eq!((pair.helper.writes, pair.helper.refused), (3, 1));
    pair.take_back();
    (0..3).for_each(|client| pair.read(client, 100));
    assert!(pair.clients.iter().all(|client| client.received == client.sent), "the owner writes what was refused");
}

#[test]
fn a_helper_writes_a_bounded_part_of_a_batch_per_turn_and_queues_the_rest_last() {
    // More in one buffer, as with a large value, and more in many.
    for buffers in [1, 96] {
        let mut pair = Pair::new(&layout(), LoadBoard::new(2), ALWAYS, 2, Time(0));
        (0..buffers).for_each(|_| pair.send(0, (24 << 20) / buffers));
        pair.hand_over(false);
        pair.help(SendState::Light, false);
        assert!(pair.helper.has_output(), "the rest of it");
        pair.send(1, 10);
        pair.hand_over(false);
        let mut written = pair.helper.bytes;
        assert_eq!(written, BATCH_BYTES_MAX as u64);
        for turn in 0.. {
            // A reader that takes everything written immediately.
            (0..4).for_each(|_| pair.read(0, 1 << 20));
            pair.help(SendState::Light, false);
            assert!(pair.helper.bytes - written <= BATCH_BYTES_MAX as u64 + 10);
            written = pair.helper.bytes;
            if turn == 0 {
                pair.read(1, 10);
                assert_eq!(pair.clients[1].received.len(), 10, "it need not wait for the long one");
            }
            if !pair.helper.has_output() {
                break;
            }
        }
        pair.take_back();
        while !pair.sockets.is_written() || pair.clients[0].received.len() < pair.clients[0].sent.len() {
            pair.poll();
            pair.write();
            pair.read(0, 1 << 20);
        }
        assert!(pair.clients[0].received == pair.clients[0].sent, "{buffers}");
    }
}

#[test]
fn a_helper_that_becomes_overloaded_returns_partly_written_batches() {
    let mut pair = Pair::new(&layout(), LoadBoard::new(2), ALWAYS, 1, Time(0));
    pair.send(0, 2 * BATCH_BYTES_MAX);
    pair.hand_over(false);
    pair.help(SendState::Light, false);
    let received = pair.helper.bytes as usize;
    assert!((1..=BATCH_BYTES_MAX).contains(&received));
    pair.help(SendState::Overload, false);
    pair.take_back();
    while pair.clients[0].received.len() < 2 * BATCH_BYTES_MAX {
        pair.read(0, 1 << 20);
        pair.poll();
        pair.write();
    }
    assert!(pair.clients[0].received == pair.clients[0].sent && pair.sockets.is_written());
}

/// The helpers of each of two threads with sockets, first and after a second decision. The arguments are
/// thousandths of the last 50 ms that three other threads (STARTER, PLAYER, ECHO) wrote and executed.
fn helpers(written_and_executed: [[u64; 2]; 3]) -> [Vec<u16>; 2] {
    let modules = [(ModuleId::SOCKETS, 0), (ModuleId::SOCKETS, 1), (STARTER, 0), (PLAYER, 0), (ECHO, 0)];
    let threads = modules.map(|module| [module]);
    let directory = Directory::new(NodeId(1), &layout_of(&threads.each_ref().map(|modules| modules.as_slice())));
    let load = |[written, executed]: [u64; 2]| {
        let (sending_ns, executing_ns) = (written * 50_000, executed * 50_000);
        let sleeping_ns = 50_000_000 - sending_ns - executing_ns;
        let moment = Usage { sending_ns, executing_ns, sleeping_ns, ..Usage::default() };
        ThreadLoad { moment, ..ThreadLoad::default() }
    };
    let loads = [[0, 900]; 2].into_iter().chain(written_and_executed).map(load).collect::<Vec<_>>();
    let (loads, directory) = (Arc::new(LoadBoard::of(&loads)), directory.unwrap());
    let (word, counts, foreign_output) =
        (AtomicSendSettings::new(&ALWAYS), OutputCounts::default(), ForeignOutput::default());
    [0, 1].map(|thread| {
        let mut sending = Sending::new(&directory, thread, Arc::clone(&loads));
        sending.adjust(Time(0), &word, &counts, &foreign_output);
        let first = sending.helper_for(0, Time(0)).unwrap();
        sending.adjust(Time(0), &word, &counts, &foreign_output);
        let count = u32::from(loads.sending().thread(thread).unwrap().helpers);
        std::iter::once(first).chain((0..count).map(|index| sending.helper_for(index, Time(0)).unwrap())).collect()
    })
}

#[test]
fn threads_with_sockets_share_helpers_and_skip_saturated_ones() {
    // STARTER has the least work of its own.
    assert_eq!(helpers([[0, 0]; 3]), [[2, 2], [2, 2]]);
    assert_eq!(helpers([[860, 0], [0, 0], [0, 0]]), [[3, 3], [4, 4]], "main writes already");
    // STARTER writes for most of the time that its own work leaves it, although not for most of all time.
    assert_eq!(helpers([[450, 500], [0, 0], [0, 0]]), [[3, 3], [4, 4]]);
    // If all of them write, two more help. If all have work of their own, that is no reason for more.
    assert_eq!(helpers([[860, 0]; 3]), [vec![2, 2, 3, 4], vec![2, 2, 4, 3]]);
    assert_eq!(helpers([[0, 860]; 3]), [[2, 2], [2, 2]]);
}

#[test]
fn output_is_delayed_until_it_is_large_or_old_or_the_thread_is_idle() {
    let settings = SendSettings { delay_us_max: 100, ..ALWAYS };
    let threads: Vec<[(ModuleId, u16); 1]> =
        [ModuleId::SOCKETS, STARTER, IDLE, ECHO, PLAYER, ModuleId::SEND].map(|module| [(module, 0)]).into();
    let layout = layout_of(&threads.iter().map(|modules| modules.as_slice()).collect::<Vec<_>>());
    let start = Time(0).plus(Duration::from_millis(1_000));
    let busy = || {
        let loads = Arc::new(LoadBoard::new(6));
        for thread in 0..6 {
            let mut meter = LoadMeter::new(loads.clone(), thread, Time(0));
            meter.enter(ThreadState::Sending, Time(0));
            meter.enter(ThreadState::Executing, start);
        }
        Arc::into_inner(loads).unwrap()
    };
    let mut pair = Pair::new(&layout, busy(), settings, 4, start);
    assert_eq!(pair.sending.delay().as_micros(), 100);
    pair.send(0, 100);
    pair.send(1, DELAY_BYTES_MAX);
    pair.hand_over(false);
    assert_eq!((pair.sockets.output_counts.handed_over, pair.sockets.output_counts.delayed), (1, 1));
    pair.send(0, 100);
    pair.now = start.plus(Duration::from_micros(99));
    pair.hand_over(false);
    assert_eq!(pair.sockets.output_counts.handed_over, 1);
    pair.now = start.plus(Duration::from_micros(100));
    pair.hand_over(false);
    assert_eq!(pair.sockets.output_counts.handed_over, 2);
    pair.send(2, 100);
    pair.hand_over(false);
    assert!(pair.sockets.has_output());
    pair.hand_over(true);
    assert!(!pair.sockets.has_output() && pair.sockets.output_counts.handed_over == 3);
}
