use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;
use crate::directory::NodeLayout;
use crate::limit::KernelLimits;
use crate::module::ModuleId;
use crate::scheduler::load::LoadBoard;
use crate::scheduler::send::{SendAssistance, SendSettings};
use crate::scheduler::spin::{SpinMethod, SpinSettings};
use crate::toy::{ECHO, PLAYER, STARTER};
use crate::toy::{ToyHost, ToyPlan};

mod sending;
mod delegation;
mod link_sockets;
mod links;

/// The counts of each thread's blocks, available when the thread has ended.
#[derive(Clone, Default)]
pub(super) struct Ended(Arc<Mutex<Vec<ToyHost>>>);

impl Ended {
    pub(super) fn hosts(&self) -> std::sync::MutexGuard<'_, Vec<ToyHost>> {
        self.0.lock().unwrap()
    }
}

/// Passes its host on when the thread drops it.
pub(super) struct Watched {
    host: Option<ToyHost>,
    ended: Ended,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.ended.0.lock().unwrap().extend(self.host.take());
    }
}

impl crate::block::Host<crate::toy::ToySignal> for Watched {
    fn handle(
        &mut self,
        endpoints: crate::block::Endpoints,
        signal: crate::toy::ToySignal,
        context: &mut crate::context::Context<'_>,
        outbox: &mut crate::outbox::Outbox<crate::toy::ToySignal>,
    ) {
        self.host.as_mut().unwrap().handle(endpoints, signal, context, outbox);
    }
}

pub(super) fn start(layout: &NodeLayout, plan: ToyPlan, limits: KernelLimits) -> (RunningNode, Ended) {
    start_with(layout, plan, limits, NodeOptions::default())
}

/// Starts a node with these spin and send options.
fn start_with(layout: &NodeLayout, plan: ToyPlan, limits: KernelLimits, options: NodeOptions) -> (RunningNode, Ended) {
    let ended = Ended::default();
    let options = NodeOptions {
        listeners: vec![Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))],
        data_folder: std::env::temp_dir().join(format!("junctor-kernel-{}", std::process::id())),
        pin: false,
        limits,
        seed: Some(1),
        ..options
    };
    let shared = ended.clone();
    let make_host = move |assignment| Watched { host: Some(ToyHost::new(assignment, plan)), ended: shared.clone() };
    (Node::start_linked(layout, options, make_host).unwrap(), ended)
}

pub(super) fn total(ended: &Ended, count: impl Fn(&ToyHost) -> u64) -> u64 {
    ended.0.lock().unwrap().iter().map(count).sum()
}

fn echo(address: SocketAddr, length: usize) {
    let sent: Vec<u8> = (0..length).map(|byte| (byte % 251) as u8).collect();
    let mut stream = TcpStream::connect(address).unwrap();
    let mut writer = stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        let bytes = &sent;
        scope.spawn(move || writer.write_all(bytes).unwrap());
        let mut received = vec![0; length];
        stream.read_exact(&mut received).unwrap();
        assert!(received == sent, "the echo differs");
    });
    stream.write_all(b"quit\n").unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"quit\n");
}

fn echoes_over(layout: &NodeLayout) {
    for assistance in SendAssistance::ALL {
        echoes_sent(layout, sending(assistance));
    }
}

fn sending(assistance: SendAssistance) -> NodeOptions {
    NodeOptions { send: SendSettings { assistance, delay_us_max: 0 }, ..NodeOptions::default() }
}

/// Returns the threads' spin times afterwards, in microseconds.
fn echoes_spinning(layout: &NodeLayout, spin: SpinSettings) -> Vec<u64> {
    let loads = echoes_sent(layout, NodeOptions { spin, ..NodeOptions::default() });
    (0..).map_while(|thread| loads.thread(thread)).map(|load| load.spin_ns / 1_000).collect()
}

/// Runs echoes and returns the load figures afterwards.
fn echoes_sent(layout: &NodeLayout, options: NodeOptions) -> Arc<LoadBoard> {
    let (node, ended) = start_with(layout, ToyPlan::default(), KernelLimits::default(), options);
    let address = node.local_addresses()[0].unwrap();
    let loads = node.loads().clone();
    for length in [1, 100, 16 << 10, (16 << 10) + 1, 3 << 20] {
        echo(address, length);
    }
    assert!(node.stop(), "the node came to rest");
    assert_eq!(total(&ended, |host| u64::from(host.opened)), 5);
    assert_eq!(total(&ended, |host| u64::from(host.closed)), 5);
    loads
}

#[test]
fn an_echo_works_on_one_thread() {
    echoes_over(&NodeLayout::new(&[&[(ModuleId::SOCKETS, 0), (ECHO, 0)]]));
}

#[test]
fn an_echo_returns_over_several_threads_with_sockets() {
    echoes_over(&NodeLayout::new(&[&[(ModuleId::SOCKETS, 0)], &[(ModuleId::SOCKETS, 1)], &[(ECHO, 0)]]));
}

#[test]
fn an_echo_returns_through_send_threads() {
    let threads: &[&[(ModuleId, u16)]] =
        &[&[(ModuleId::SOCKETS, 0)], &[(ModuleId::SOCKETS, 1)], &[(ECHO, 0)], &[(ModuleId::SEND, 0)]];
    echoes_over(&NodeLayout::new(threads));
}

#[test]
fn an_echo_returns_from_threads_that_spin() {
    let layout = NodeLayout::new(&[&[(ModuleId::SOCKETS, 0)], &[(ModuleId::SOCKETS, 1)], &[(ECHO, 0)]]);
    assert_eq!(echoes_spinning(&layout, SpinMethod::Static.settings(50)), [50; 3]);
    for method in SpinMethod::ALL {
        let spins = echoes_spinning(&layout, method.settings(0));
        assert!(spins.iter().all(|spin_us| *spin_us <= 500), "{spins:?}");
    }
}

#[test]
fn a_nosend_thread_writes_for_nobody_and_others_write_for_it() {
    let threads: &[&[(ModuleId, u16)]] = &[&[(ModuleId::SOCKETS, 0)], &[(ECHO, 0)], &[(PLAYER, 0)]];
    let mut layout = NodeLayout::new(threads);
    let writes = |layout: &NodeLayout, assistance| {
        let loads = echoes_sent(layout, sending(assistance));
        [0, 1, 2]
            .map(|thread| loads.sending().thread(thread).unwrap())
            .map(|status| (status.own_writes, status.other_writes))
    };
    let [(own, 0), (0, 0), (0, 0)] = writes(&layout, SendAssistance::Never) else { panic!("each writes its own") };
    assert!(own > 0);
    layout.threads[1].nosend = true;
    let [(_, 0), (0, 0), (0, others)] = writes(&layout, SendAssistance::Always) else { panic!("only PLAYER may help") };
    assert!(others > 0);
    layout.threads[2].nosend = true;
    let [(own, 0), (0, 0), (0, 0)] = writes(&layout, SendAssistance::Always) else { panic!("nobody may help") };
    assert!(own > 0);
}

#[test]
fn every_one_of_many_waiting_clients_gets_its_answer() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 400;
    let with_sender: &[&[(ModuleId, u16)]] = &[&[(ModuleId::SOCKETS, 0), (ECHO, 0)], &[(ModuleId::SEND, 0)]];
    let without: &[&[(ModuleId, u16)]] = &[&[(ModuleId::SOCKETS, 0)], &[(ECHO, 0)], &[(STARTER, 0)]];
    for (threads, assistance) in [(with_sender, SendAssistance::Never), (without, SendAssistance::Always)] {
        let layout = NodeLayout::new(threads);
        let (node, _) = start_with(&layout, ToyPlan::default(), KernelLimits::default(), sending(assistance));
        let (address, loads) = (node.local_addresses()[0].unwrap(), node.loads().clone());
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                scope.spawn(move || {
                    let mut stream = TcpStream::connect(address).unwrap();
                    for round in 0..ROUNDS {
                        let sent = [(client * ROUNDS + round) as u8; 24];
                        stream.write_all(&sent).unwrap();
                        let mut received = [0; 24];
                        stream.read_exact(&mut received).unwrap();
                        assert_eq!(received, sent);
                    }
                });
            }
        });
        assert!(node.stop(), "the node came to rest");
        assert!(loads.sending().thread(0).unwrap().handed_over > 0);
    }
}

#[test]
fn signals_timers_and_files_work_across_threads_and_a_block_stops_the_node() {
    let layout = NodeLayout::new(&[
        &[(STARTER, 0), (PLAYER, 0), (ModuleId::SOCKETS, 0)],
        &[(PLAYER, 1), (ECHO, 0)],
        &[(PLAYER, 2)],
    ]);
    let plan = ToyPlan {
        balls: 100,
        hops: 100,
        numbered: 500,
        ticks: 3,
        writes_file: true,
        stops: true,
        ..ToyPlan::default()
    };
    for ring_slots in [4, 0] {
        let limits = KernelLimits { ring_slots, high_ring_slots: 4, stall_ns: 20_000, ..KernelLimits::default() };
        let (node, ended) = start(&layout, plan, limits);
        node.wait_for_stop_request();
        assert!(node.stop(), "the node came to rest");
        assert_eq!(total(&ended, |host| host.balls_handled), 30_000);
        assert_eq!(total(&ended, |host| u64::from(host.balls_ended)), 300);
        let hosts = ended.0.lock().unwrap();
        let read = hosts.iter().find_map(|host| host.file_read.as_deref());
        assert_eq!(read, Some(b"hello file".as_slice()));
        assert!(hosts.iter().all(|host| host.stopping));
        assert!(hosts.iter().flat_map(|host| host.numbers.values()).all(|&next| next == 500));
    }
}

#[test]
fn a_connection_beyond_the_maximum_is_closed_and_slots_are_reused() {
    let limits = KernelLimits { sockets_max: 2, ..KernelLimits::default() };
    let (node, ended) = start(&NodeLayout::new(&[&[(ModuleId::SOCKETS, 0), (ECHO, 0)]]), ToyPlan::default(), limits);
    let address = node.local_addresses()[0].unwrap();
    let talk = |stream: &mut TcpStream| {
        let mut answer = [0; 4];
        let asked = stream.write_all(b"ping").and_then(|()| stream.read_exact(&mut answer));
        asked.is_ok() && &answer == b"ping"
    };
    let mut first = TcpStream::connect(address).unwrap();
    let mut second = TcpStream::connect(address).unwrap();
    assert!(talk(&mut first) && talk(&mut second));
    let mut third = TcpStream::connect(address).unwrap();
    assert!(!talk(&mut third));
    drop(first);
    // The node may notice the end of the first connection only after the next one arrived, which it then
    // refuses.
    let again = (0..1_000).any(|_| talk(&mut TcpStream::connect(address).unwrap()));
    assert!(again && talk(&mut second));
    node.stop();
    assert!(total(&ended, |host| u64::from(host.opened)) >= 3);
}

#[test]
fn a_client_that_does_not_read_blocks_its_sender_and_frees_it_by_reading() {
    const LENGTH: usize = 16 << 20;
    let limits = KernelLimits { send_high_water_bytes: 64 << 10, send_low_water_bytes: 16 << 10, ..Default::default() };
    for layout in [
        NodeLayout::new(&[&[(ModuleId::SOCKETS, 0), (ECHO, 0)]]),
        NodeLayout::new(&[&[(ModuleId::SOCKETS, 0), (ECHO, 0)], &[(ModuleId::SEND, 0)]]),
        NodeLayout::new(&[&[(ModuleId::SOCKETS, 0), (ECHO, 0)], &[(STARTER, 0)]]),
    ] {
        let (node, ended) = start_with(&layout, ToyPlan::default(), limits.clone(), sending(SendAssistance::Always));
        let mut stream = TcpStream::connect(node.local_addresses()[0].unwrap()).unwrap();
        stream.write_all(&vec![7; LENGTH]).unwrap();
        let mut received = vec![0; LENGTH];
        stream.read_exact(&mut received).unwrap();
        // Send before the close: an answer made now is written only after a helper has returned the earlier
        // output.
        stream.write_all(&[7]).unwrap();
        stream.read_exact(&mut received[..1]).unwrap();
        drop(stream);
        assert!(node.stop());
        let (blocked, drained) =
            (total(&ended, |host| u64::from(host.blocked)), total(&ended, |host| u64::from(host.drained)));
        assert!(blocked > 0 && blocked == drained, "blocked {blocked} times, drained {drained} times");
    }
}

#[test]
fn a_layout_without_sockets_cannot_listen() {
    let options =
        NodeOptions { listeners: vec![Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))], ..NodeOptions::default() };
    let layout = NodeLayout::new(&[&[(ECHO, 0)]]);
    let result = Node::start(&layout, options, |assignment| ToyHost::new(assignment, ToyPlan::default()));
    assert!(matches!(result, Err(StartError::NoSocketThread)));
}
