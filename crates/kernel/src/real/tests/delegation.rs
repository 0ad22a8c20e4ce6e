//! Delegated turns, in which a thread works for a sleeping one, with real threads, sockets and sleep.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::address::Address;
use crate::block::{Endpoints, Host};
use crate::buffer::Buffer;
use crate::context::{Context, Duration, Time};
use crate::directory::{Directory, ThreadAssignment};
use crate::file_buffer::FileBuffer;
use crate::outbox::Outbox;
use crate::toy::{ECHO, PLAYER, ToySignal};
use crate::world::{FileId, FileLane, FileMode, FileOutcome, SocketId, WorldEvent, WorldRequest};

/// Sends a few bytes and waits for their echo, `rounds` times.
fn ping(address: SocketAddr, rounds: usize) {
    let mut stream = TcpStream::connect(address).unwrap();
    for round in 0..rounds {
        let sent = [round as u8; 24];
        stream.write_all(&sent).unwrap();
        let mut received = [0; 24];
        stream.read_exact(&mut received).unwrap();
        assert_eq!(received, sent);
    }
}

/// Number of turns that the load figures of each thread must show before the test evaluates the figures.
const TURNS: u64 = 200;

/// Number of rounds after which a client no longer waits for the figures.
const ROUNDS_MAX: usize = 1_000_000;

/// Whether the file module is the thread's only module. These tests use no files, so such a thread has too
/// few turns.
fn only_io(layout: &NodeLayout, thread: u16) -> bool {
    layout.threads[usize::from(thread)].modules == [(ModuleId::FILES, 0)]
}

/// Runs `clients` clients until each thread has had [`TURNS`] turns, delegated or not. Each client waits for
/// the echo before it sends again. Returns the number of delegated turns of each thread.
fn delegated_turns(layout: &NodeLayout, clients: usize, limits: KernelLimits) -> Vec<u64> {
    let (node, _) = start(layout, ToyPlan::default(), limits);
    let (address, loads) = (node.local_addresses()[0].unwrap(), node.loads().clone());
    let totals = || {
        (0..loads.len() as u16)
            .filter(|thread| !only_io(layout, *thread))
            .map(|thread| loads.thread(thread).unwrap().total)
    };
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut rounds = 0;
                while rounds < ROUNDS_MAX && totals().any(|total| total.turns + total.delegated_turns < TURNS) {
                    ping(address, 100);
                    rounds += 100;
                }
            });
        }
    });
    assert!(totals().all(|total| total.turns + total.delegated_turns >= TURNS));
    let turns = totals().map(|total| total.delegated_turns).collect();
    assert!(node.stop(), "the node came to rest");
    turns
}

#[test]
fn a_sender_runs_the_turn_of_a_sleeping_thread() {
    let layout = NodeLayout::new(&[&[(ModuleId::SOCKETS, 0)], &[(ECHO, 0)], &[(ModuleId::FILES, 0)]]);
    let turns = delegated_turns(&layout, 1, KernelLimits::default());
    assert!(turns[1] > 0, "{turns:?}");
}

#[test]
fn files_do_not_prevent_delegated_turns() {
    for files in [&[(ECHO, 0)][..], &[(ECHO, 0), (ModuleId::FILES, 0)]] {
        let layout = NodeLayout::new(&[&[(ModuleId::SOCKETS, 0)], files]);
        let turns = delegated_turns(&layout, 1, KernelLimits::default());
        assert!(turns[1] > 0, "{turns:?}");
    }
}

#[test]
fn threads_that_run_each_others_turns_lose_no_signal() {
    let layout = NodeLayout::new(&[
        &[(ModuleId::SOCKETS, 0), (PLAYER, 0)],
        &[(ModuleId::SOCKETS, 1), (PLAYER, 1)],
        &[(ECHO, 0), (PLAYER, 2)],
        &[(ModuleId::FILES, 0)],
    ]);
    for ring_slots in [4, 0] {
        let limits = KernelLimits { ring_slots, ..KernelLimits::default() };
        let turns = delegated_turns(&layout, 8, limits);
        assert!(turns.iter().sum::<u64>() > 0, "{turns:?}");
    }
}

/// Answers each echo a millisecond later, by a timer that it starts when the echo arrives.
struct DelayedEcho {
    directory: Arc<Directory>,
    waiting: Option<(Address, SocketId, Buffer)>,
    due: Time,
    /// Timers that fired within half a second, and all timers.
    fired: Arc<Mutex<(u32, u32)>>,
}

impl Host<ToySignal> for DelayedEcho {
    fn handle(
        &mut self,
        Endpoints { to, from }: Endpoints,
        signal: ToySignal,
        context: &mut Context<'_>,
        outbox: &mut Outbox<ToySignal>,
    ) {
        match signal {
            ToySignal::World(WorldEvent::Received { socket, bytes }) => {
                outbox.send(self.directory.address(ECHO, 0), ToySignal::Echo(socket, bytes));
            }
            ToySignal::Echo(socket, bytes) => {
                assert_eq!(to.module, ECHO);
                let after = Duration::from_millis(1);
                self.due = context.turn_start.plus(after);
                outbox.request(WorldRequest::StartTimer { after, token: 1 });
                self.waiting = Some((from, socket, bytes));
            }
            ToySignal::World(WorldEvent::Timer { .. }) => {
                let mut fired = self.fired.lock().unwrap();
                fired.0 += u32::from(context.turn_start.since(self.due) < Duration::from_millis(500));
                fired.1 += 1;
                if let Some((from, socket, bytes)) = self.waiting.take() {
                    outbox.send(from, ToySignal::EchoReply(socket, bytes));
                }
            }
            ToySignal::EchoReply(socket, bytes) => outbox.request(WorldRequest::SendBytes { socket, bytes }),
            _ => {}
        }
    }
}

#[test]
fn a_timer_started_in_a_delegated_turn_fires_in_time() {
    // A thread publishes its load figures every 50 ms. The rounds take at least 100 ms.
    const ROUNDS: u32 = 100;
    let layout = NodeLayout::new(&[&[(ModuleId::SOCKETS, 0)], &[(ECHO, 0)], &[(ModuleId::FILES, 0)]]);
    let fired = Arc::new(Mutex::new((0, 0)));
    let shared = fired.clone();
    let make_host = move |assignment: ThreadAssignment| DelayedEcho {
        directory: assignment.directory.clone(),
        waiting: None,
        due: Time(0),
        fired: shared.clone(),
    };
    let options = NodeOptions {
        listeners: vec![Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))],
        pin: false,
        ..NodeOptions::default()
    };
    let node = Node::start(&layout, options, make_host).unwrap();
    ping(node.local_addresses()[0].unwrap(), ROUNDS as usize);
    let (in_time, all) = *fired.lock().unwrap();
    // A thread sleeps for a second at most. If it ignored the timer, all timers would fire too late.
    assert!(all == ROUNDS && in_time >= ROUNDS / 2, "{in_time} of {all} timers in time");
    assert!(node.loads().thread(1).unwrap().total.delegated_turns > 0);
    assert!(node.stop(), "the node came to rest");
}

#[test]
fn handed_over_output_is_written_by_the_helper() {
    let layout =
        NodeLayout::new(&[&[(ModuleId::SOCKETS, 0), (ECHO, 0)], &[(ModuleId::SEND, 0)], &[(ModuleId::FILES, 0)]]);
    let (node, _) = start_with(&layout, ToyPlan::default(), KernelLimits::default(), sending(SendAssistance::Always));
    let (address, loads) = (node.local_addresses()[0].unwrap(), node.loads().clone());
    let written = || loads.sending().thread(1).unwrap().other_writes;
    let mut rounds = 0;
    while rounds < ROUNDS_MAX && written() < TURNS {
        ping(address, 100);
        rounds += 100;
    }
    assert!(written() >= TURNS);
    assert_eq!(loads.thread(1).unwrap().total.delegated_turns, 0);
    assert!(node.stop(), "the node came to rest");
}

/// Answers each echo once a block is written and synced.
struct SyncedEcho {
    directory: Arc<Directory>,
    file: Option<FileId>,
    waiting: Option<(Address, SocketId, Buffer)>,
    /// Syncs whose answer the worker of the lane has handled itself.
    handled_by_worker: Arc<AtomicU64>,
}

impl SyncedEcho {
    fn sync(file: FileId, outbox: &mut Outbox<ToySignal>) {
        let bytes = FileBuffer::from(&[1; 16][..]);
        outbox.request(WorldRequest::WriteFile { file, offset: 0, bytes, token: 0 });
        outbox.request(WorldRequest::SyncFile { file, token: 0 });
    }
}

impl Host<ToySignal> for SyncedEcho {
    fn handle(
        &mut self,
        Endpoints { from, .. }: Endpoints,
        signal: ToySignal,
        _context: &mut Context<'_>,
        outbox: &mut Outbox<ToySignal>,
    ) {
        match signal {
            ToySignal::World(WorldEvent::Received { socket, bytes }) => {
                outbox.send(self.directory.address(ECHO, 0), ToySignal::Echo(socket, bytes));
            }
            ToySignal::Echo(socket, bytes) => {
                self.waiting = Some((from, socket, bytes));
                match self.file {
                    Some(file) => Self::sync(file, outbox),
                    None => {
                        let (path, mode, lane) = ("synced-echo".into(), FileMode::CreateEmpty, FileLane::Log);
                        outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: false, token: 0 });
                    }
                }
            }
            ToySignal::World(WorldEvent::FileDone { result, .. }) => match result.unwrap() {
                FileOutcome::Opened { file, .. } => {
                    self.file = Some(file);
                    Self::sync(file, outbox);
                }
                FileOutcome::Synced => {
                    let by_worker = std::thread::current().name() == Some("io-log");
                    self.handled_by_worker.fetch_add(u64::from(by_worker), Ordering::Relaxed);
                    if let Some((from, socket, bytes)) = self.waiting.take() {
                        outbox.send(from, ToySignal::EchoReply(socket, bytes));
                    }
                }
                _ => {}
            },
            ToySignal::EchoReply(socket, bytes) => outbox.request(WorldRequest::SendBytes { socket, bytes }),
            _ => {}
        }
    }
}

#[test]
fn the_worker_of_the_log_runs_the_turn_of_a_thread_that_sleeps_until_its_sync_has_ended() {
    let layouts = [
        NodeLayout::new(&[&[(ModuleId::SOCKETS, 0), (ECHO, 0)], &[(ModuleId::FILES, 0)]]),
        NodeLayout::new(&[&[(ModuleId::SOCKETS, 0)], &[(ECHO, 0)], &[(ModuleId::FILES, 0)]]),
    ];
    for layout in layouts {
        let handled = Arc::new(AtomicU64::new(0));
        let shared = handled.clone();
        let make_host = move |assignment: ThreadAssignment| SyncedEcho {
            directory: assignment.directory.clone(),
            file: None,
            waiting: None,
            handled_by_worker: shared.clone(),
        };
        let folder = std::env::temp_dir().join(format!("junctor-delegation-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let options = NodeOptions {
            listeners: vec![Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))],
            data_folder: folder.clone(),
            pin: false,
            ..NodeOptions::default()
        };
        let node = Node::start(&layout, options, make_host).unwrap();
        let mut rounds = 0;
        while rounds < ROUNDS_MAX && handled.load(Ordering::Relaxed) < TURNS {
            ping(node.local_addresses()[0].unwrap(), 100);
            rounds += 100;
        }
        assert!(handled.load(Ordering::Relaxed) >= TURNS);
        assert!(node.stop(), "the node came to rest");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
