use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::end::connection;
use super::*;
use crate::buffer::{Buffer, BufferPool};
use crate::directory::NodeLayout;
use crate::limit::KernelLimits;
use crate::module::ModuleId;
use crate::random::Random;
use crate::real::ConnectError;
use crate::real::tests::{start, total};
use crate::toy::ECHO;
use crate::toy::ToyPlan;

/// Counts the rings of a bell or the wake-ups of a client.
#[derive(Default)]
struct Count(AtomicU32);

impl Count {
    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

struct CountingBell(Arc<Count>);

impl Bell for CountingBell {
    fn ring(&self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Both ends of a connection without a node.
struct Pair {
    client: MemoryStream,
    node: NodeEnd,
    acceptor: Arc<Acceptor>,
    rung: Arc<Count>,
    woken: Arc<Count>,
    waker: Waker,
    buffers: BufferPool,
}

fn pair(limits: &KernelLimits) -> Pair {
    let (rung, woken) = (Arc::<Count>::default(), Arc::<Count>::default());
    let acceptor = Arc::new(Acceptor::new(1, Box::new(CountingBell(rung.clone()))));
    let (client, node) = connection(&acceptor, 0, limits);
    let waker = Waker::from(woken.clone());
    Pair { client, node, acceptor, rung, woken, waker, buffers: BufferPool::new(1 << 20) }
}

impl Pair {
    /// Examines ready connections as the owning thread does. Returns whether there were any.
    fn take_ready_streams(&mut self) -> bool {
        let mut slots = Vec::new();
        self.acceptor.take_ready(&mut slots);
        self.node.announce_space();
        slots == [0]
    }

    fn read(&mut self) -> Option<Buffer> {
        self.node.read(16 << 10, &mut self.buffers)
    }

    fn hand_over(&mut self, queue: &mut VecDeque<Buffer>) -> HandOver {
        let mut bytes = queue.iter().map(Vec::len).sum();
        let result = self.node.hand_over(queue, &mut bytes);
        assert_eq!(bytes, queue.iter().map(Vec::len).sum::<usize>());
        NodeEnd::fence_before_wake();
        self.node.wake_client();
        result
    }
}

#[test]
fn a_buffer_is_passed_without_a_copy_and_wakes_the_node_once_until_it_takes_the_ready_list() {
    let mut pair = pair(&KernelLimits::default());
    let bytes = b"select".to_vec();
    let address = bytes.as_ptr();
    pair.client.try_send(bytes).unwrap();
    pair.client.try_send(b"more".to_vec()).unwrap();
    pair.client.try_send(Buffer::new()).unwrap();
    assert_eq!(pair.rung.get(), 1);
    assert!(pair.take_ready_streams() && !pair.take_ready_streams());
    let read = pair.read().unwrap();
    assert_eq!((read.as_ptr(), read.as_slice()), (address, b"select".as_slice()));
    assert!(pair.node.has_input());
    assert_eq!(pair.read().unwrap(), b"more");
    assert!(!pair.node.has_input() && pair.read().is_none() && !pair.node.is_ended());
    pair.client.try_send(b"again".to_vec()).unwrap();
    assert_eq!(pair.rung.get(), 2);
    let mut queue = VecDeque::from([b"abc".to_vec()]);
    let address = queue[0].as_ptr();
    assert_eq!(pair.hand_over(&mut queue), HandOver::All);
    let received = pair.client.try_receive().unwrap().unwrap();
    assert_eq!((received.as_ptr(), received.as_slice()), (address, b"abc".as_slice()));
    assert_eq!(pair.client.try_receive(), Ok(None));
}

#[test]
fn a_buffer_too_long_for_one_read_is_read_in_parts() {
    let mut pair = pair(&KernelLimits::default());
    let sent: Vec<u8> = (0..100_000).map(|byte| (byte % 251) as u8).collect();
    pair.client.try_send(sent.clone()).unwrap();
    let mut received = Vec::new();
    while pair.node.has_input() {
        let part = pair.read().unwrap();
        assert!(part.len() <= 16 << 10);
        received.extend(part);
    }
    assert!(received == sent, "the bytes differ");
}

#[test]
fn a_client_without_space_waits_until_the_node_reads() {
    let limits = KernelLimits { stream_buffers_max: 4, ..KernelLimits::default() };
    let mut pair = pair(&limits);
    for byte in 0..4 {
        pair.client.try_send(vec![byte]).unwrap();
    }
    assert_eq!(pair.client.try_send(vec![4]), Err(TrySendError::Full(vec![4])));
    let mut bytes = vec![4];
    let waker = pair.waker.clone();
    assert_eq!(pair.client.poll_send(&mut Context::from_waker(&waker), &mut bytes), Poll::Pending);
    assert_eq!(bytes, [4]);
    assert!(pair.take_ready_streams());
    assert_eq!(pair.woken.get(), 0, "there is no space yet");
    for byte in 0..4 {
        assert_eq!(pair.read().unwrap(), [byte]);
    }
    assert_eq!(pair.woken.get(), 1);
    assert_eq!(pair.client.poll_send(&mut Context::from_waker(&waker), &mut bytes), Poll::Ready(Ok(())));
    assert_eq!((bytes, pair.read()), (Vec::new(), Some(vec![4])));
}

#[test]
fn a_client_that_registers_too_late_is_woken_through_the_ready_list() {
    let mut pair = pair(&KernelLimits { stream_bytes_max: 10, ..KernelLimits::default() });
    pair.client.try_send(vec![0; 10]).unwrap();
    assert!(pair.take_ready_streams());
    let mut bytes = vec![1];
    let waker = pair.waker.clone();
    assert!(pair.client.poll_send(&mut Context::from_waker(&waker), &mut bytes).is_pending());
    // The node reads without having seen that the client waits, as if the flag were still on its way.
    assert_eq!(pair.read().unwrap().len(), 10);
    assert!(pair.take_ready_streams());
    assert_eq!(pair.woken.get(), 1);
    assert!(pair.client.poll_send(&mut Context::from_waker(&waker), &mut bytes).is_ready());
}

#[test]
fn each_direction_is_bounded_in_bytes_and_buffers() {
    let limits = KernelLimits { stream_bytes_max: 1000, ..KernelLimits::default() };
    let mut pair = pair(&limits);
    pair.client.try_send(vec![0; 999]).unwrap();
    pair.client.try_send(vec![0; 5000]).unwrap();
    assert!(matches!(pair.client.try_send(vec![0]), Err(TrySendError::Full(_))));
    let mut queue = VecDeque::from(vec![vec![0; 400]; 5]);
    assert_eq!(pair.hand_over(&mut queue), HandOver::Full);
    assert_eq!(queue.len(), 2);
    assert_eq!(pair.hand_over(&mut queue), HandOver::Full);
}

#[test]
fn a_node_without_space_is_notified_when_the_client_reads() {
    let limits = KernelLimits { stream_buffers_max: 4, ..KernelLimits::default() };
    let mut pair = pair(&limits);
    let mut queue: VecDeque<Buffer> = (0..6).map(|byte| vec![byte]).collect();
    assert_eq!(pair.hand_over(&mut queue), HandOver::Full);
    assert!(!pair.node.has_space_or_registers());
    let rung = pair.rung.get();
    for byte in 0..4 {
        assert_eq!(pair.client.receive().unwrap(), [byte]);
    }
    assert_eq!(pair.rung.get(), rung + 1);
    assert!(pair.take_ready_streams() && pair.node.has_space_or_registers());
    assert_eq!(pair.hand_over(&mut queue), HandOver::All);
    assert_eq!((pair.client.receive(), pair.client.receive()), (Some(vec![4]), Some(vec![5])));
}

#[test]
fn a_client_that_waits_for_bytes_is_woken_once() {
    let mut pair = pair(&KernelLimits::default());
    let waker = pair.waker.clone();
    let mut context = Context::from_waker(&waker);
    assert_eq!(pair.client.poll_receive(&mut context), Poll::Pending);
    pair.hand_over(&mut VecDeque::from([b"one".to_vec()]));
    pair.hand_over(&mut VecDeque::from([b"two".to_vec()]));
    assert_eq!(pair.woken.get(), 1);
    assert_eq!(pair.client.poll_receive(&mut context), Poll::Ready(Some(b"one".to_vec())));
    assert_eq!(pair.client.poll_receive(&mut context), Poll::Ready(Some(b"two".to_vec())));
    assert_eq!(pair.client.poll_receive(&mut context), Poll::Pending);
    drop(pair.node);
    assert_eq!(pair.woken.get(), 2);
    assert_eq!(pair.client.poll_receive(&mut context), Poll::Ready(None));
}

#[test]
fn a_waker_that_is_replaced_is_not_woken() {
    let mut pair = pair(&KernelLimits::default());
    let earlier = Arc::<Count>::default();
    assert!(pair.client.poll_receive(&mut Context::from_waker(&Waker::from(earlier.clone()))).is_pending());
    let waker = pair.waker.clone();
    assert!(pair.client.poll_receive(&mut Context::from_waker(&waker)).is_pending());
    pair.hand_over(&mut VecDeque::from([b"abc".to_vec()]));
    assert_eq!((earlier.get(), pair.woken.get()), (0, 1));
}

#[test]
fn bytes_in_flight_when_a_side_closes_still_arrive() {
    let mut first = pair(&KernelLimits::default());
    first.client.try_send(b"last words".to_vec()).unwrap();
    drop(first.client);
    assert!(first.node.has_input() && !first.node.is_ended());
    assert_eq!(first.node.read(16 << 10, &mut first.buffers).unwrap(), b"last words");
    assert!(first.node.has_input(), "the end is news, too");
    assert!(first.node.read(16 << 10, &mut first.buffers).is_none() && first.node.is_ended());
    let (mut queue, mut bytes) = (VecDeque::from([b"unheard".to_vec()]), 7);
    assert_eq!(first.node.hand_over(&mut queue, &mut bytes), HandOver::Broken);

    let mut second = pair(&KernelLimits::default());
    second.hand_over(&mut VecDeque::from([b"goodbye".to_vec()]));
    drop(second.node);
    assert_eq!(second.client.try_send(b"too late".to_vec()), Err(TrySendError::Closed(b"too late".to_vec())));
    assert_eq!(second.client.try_receive(), Ok(Some(b"goodbye".to_vec())));
    assert_eq!(second.client.try_receive(), Err(StreamClosed));
    assert_eq!((second.client.receive(), second.client.receive_within(Duration::ZERO)), (None, Err(StreamClosed)));
}

#[test]
fn a_wait_with_a_time_limit_ends() {
    let mut pair = pair(&KernelLimits::default());
    assert_eq!(pair.client.receive_within(Duration::from_millis(1)), Ok(None));
    pair.client.set_spin(Duration::from_micros(50));
    assert_eq!(pair.client.receive_within(Duration::from_millis(1)), Ok(None));
}

fn layouts() -> [NodeLayout; 4] {
    [
        NodeLayout::new(&[&[(ModuleId::SOCKETS, 0), (ECHO, 0)]]),
        NodeLayout::new(&[&[(ModuleId::SOCKETS, 0)], &[(ModuleId::SOCKETS, 1)], &[(ECHO, 0)]]),
        NodeLayout::new(&[&[(ModuleId::SOCKETS, 0)], &[(ModuleId::SOCKETS, 1)], &[(ECHO, 0)], &[(ModuleId::SEND, 0)]]),
        NodeLayout::new(&[&[(ModuleId::SOCKETS, 0), (ModuleId::SEND, 0)], &[(ECHO, 0)]]),
    ]
}

/// Sends random bytes in buffers of random sizes and compares what comes back.
fn echo_randomly(stream: MemoryStream, seed: u64, bytes: usize) {
    let (mut sender, mut receiver) = stream.split();
    let byte_at = |position: usize| (position as u64 ^ seed).to_le_bytes()[0] ^ (position >> 8) as u8;
    std::thread::scope(|scope| {
        let sending = scope.spawn(move || {
            let mut random = Random::new(seed);
            let mut sent = 0;
            while sent < bytes {
                let most = [1, 20, 300, 16 << 10, 70_000][random.below(5) as usize];
                let length = (1 + random.below(most) as usize).min(bytes - sent);
                sender.send((sent..sent + length).map(byte_at).collect()).unwrap();
                sent += length;
            }
            sender.send(b"quit\n".to_vec()).unwrap();
            sender
        });
        let mut received = 0;
        let mut end = Vec::new();
        while let Some(part) = receiver.receive() {
            for byte in part {
                if received < bytes {
                    assert_eq!(byte, byte_at(received), "at {received}");
                    received += 1;
                } else {
                    end.push(byte);
                }
            }
        }
        assert_eq!((received, end.as_slice()), (bytes, b"quit\n".as_slice()));
        drop(sending.join());
    });
}

#[test]
fn echoes_return_complete_and_in_order_in_every_layout() {
    for layout in layouts() {
        let limits = KernelLimits { stream_buffers_max: 8, stream_bytes_max: 50_000, ..KernelLimits::default() };
        let (node, ended) = start(&layout, ToyPlan::default(), limits);
        std::thread::scope(|scope| {
            for seed in 0..8 {
                let connector = node.connector();
                scope.spawn(move || echo_randomly(connector.connect(0).unwrap(), seed, 1 << 20));
            }
        });
        assert!(node.stop(), "the node came to rest");
        assert_eq!(total(&ended, |host| u64::from(host.opened)), 8);
        assert_eq!(total(&ended, |host| u64::from(host.closed)), 8);
    }
}

#[test]
fn connections_spread_over_threads_and_their_slots_are_reused() {
    let limits = KernelLimits { sockets_max: 150, ..KernelLimits::default() };
    let (node, ended) = start(&layouts()[1], ToyPlan::default(), limits);
    // The node may not have noticed yet that the earlier connections ended.
    let connect = |_| {
        let tries = (0..1_000_000).map(|_| node.connect(7));
        tries.inspect(|_| std::thread::yield_now()).find_map(Result::ok).unwrap()
    };
    for _ in 0..3 {
        let mut streams: Vec<MemoryStream> = (0..100).map(connect).collect();
        for stream in &mut streams {
            stream.send(b"ping".to_vec()).unwrap();
        }
        for stream in &mut streams {
            assert_eq!(stream.receive().unwrap(), b"ping");
        }
        drop(streams);
    }
    assert!(node.stop());
    let hosts = ended.hosts();
    let opened: Vec<u32> = hosts.iter().map(|host| host.opened).filter(|&opened| opened > 0).collect();
    assert_eq!(opened.iter().sum::<u32>(), 300);
    assert!(opened.len() == 2 && opened.iter().all(|&opened| opened >= 100), "{opened:?}");
    assert!(hosts.iter().map(|host| host.closed).sum::<u32>() >= 200);
}

#[test]
fn a_client_that_does_not_read_blocks_its_sender_and_frees_it_by_reading() {
    const LENGTH: usize = 16 << 20;
    let limits = KernelLimits { send_high_water_bytes: 64 << 10, send_low_water_bytes: 16 << 10, ..Default::default() };
    for layout in layouts() {
        let (node, ended) = start(&layout, ToyPlan::default(), limits.clone());
        let mut stream = node.connect(0).unwrap();
        stream.write_all(&vec![7; LENGTH]).unwrap();
        let mut received = vec![0; LENGTH];
        stream.read_exact(&mut received).unwrap();
        drop(stream);
        assert!(node.stop() && received.iter().all(|&byte| byte == 7));
        let (blocked, drained) =
            (total(&ended, |host| u64::from(host.blocked)), total(&ended, |host| u64::from(host.drained)));
        assert!(blocked > 0 && blocked == drained, "blocked {blocked} times, drained {drained} times");
    }
}

#[test]
fn sockets_and_in_memory_connections_coexist_and_share_one_maximum() {
    let limits = KernelLimits { sockets_max: 2, ..KernelLimits::default() };
    let (node, _) = start(&layouts()[0], ToyPlan::default(), limits);
    let mut socket = TcpStream::connect(node.local_addresses()[0].unwrap()).unwrap();
    let mut answer = [0; 4];
    socket.write_all(b"ping").and_then(|()| socket.read_exact(&mut answer)).unwrap();
    let mut stream = node.connect(0).unwrap();
    assert_eq!(node.connect(0).err(), Some(ConnectError::TooMany));
    for _ in 0..1000 {
        stream.write_all(b"pong").unwrap();
        socket.write_all(b"ping").and_then(|()| socket.read_exact(&mut answer)).unwrap();
        assert_eq!(&answer, b"ping");
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"pong");
    }
    drop(stream);
    // The node may not have noticed yet that the first connection ended.
    let connects_again = |_| {
        std::thread::yield_now();
        node.connect(0).is_ok()
    };
    assert!((0..1_000_000).any(connects_again));
}

#[test]
fn a_busy_in_memory_connection_does_not_starve_sockets() {
    let (node, _) = start(&layouts()[0], ToyPlan::default(), KernelLimits::default());
    let (mut sender, mut receiver) = node.connect(0).unwrap().split();
    std::thread::scope(|scope| {
        let flood = scope.spawn(move || while sender.send(vec![1; 100]).is_ok() {});
        let drain = scope.spawn(move || while receiver.receive().is_some() {});
        let mut socket = TcpStream::connect(node.local_addresses()[0].unwrap()).unwrap();
        let mut answer = [0; 4];
        for _ in 0..20 {
            socket.write_all(b"ping").and_then(|()| socket.read_exact(&mut answer)).unwrap();
            assert_eq!(&answer, b"ping");
        }
        drop(node);
        flood.join().unwrap();
        drain.join().unwrap();
    });
}

#[test]
fn a_stop_ends_open_connections_and_refuses_new_ones() {
    for layout in layouts() {
        let (node, _) = start(&layout, ToyPlan::default(), KernelLimits::default());
        let connector = node.connector();
        let mut streams: Vec<MemoryStream> = (0..10).map(|_| node.connect(0).unwrap()).collect();
        for stream in &mut streams {
            stream.send(b"hello".to_vec()).unwrap();
            assert_eq!(stream.receive().unwrap(), b"hello");
        }
        std::thread::scope(|scope| {
            let mut waiting = streams.pop().unwrap();
            let waiter = scope.spawn(move || waiting.receive());
            assert!(node.stop(), "the node came to rest");
            assert_eq!(waiter.join().unwrap(), None);
        });
        for mut stream in streams {
            assert_eq!(stream.send(b"more".to_vec()), Err(StreamClosed));
            assert_eq!(stream.receive(), None);
        }
        assert_eq!(connector.connect(0).err(), Some(ConnectError::Stopping));
    }
}

#[test]
fn a_node_without_sockets_accepts_no_connections() {
    let layout = NodeLayout::new(&[&[(ECHO, 0)]]);
    let options = crate::real::NodeOptions { pin: false, ..Default::default() };
    let make_host = |assignment| crate::toy::ToyHost::new(assignment, ToyPlan::default());
    let node = crate::real::Node::start(&layout, options, make_host).unwrap();
    assert_eq!(node.connect(0).err(), Some(ConnectError::NoSocketThread));
}
