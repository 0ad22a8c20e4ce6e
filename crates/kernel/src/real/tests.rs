use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;
use crate::directory::NodeLayout;
use crate::limit::KernelLimits;
use crate::placement::Module;
use crate::scheduler::spin::{SpinMethod, SpinSettings};
use crate::toy::{ToyHost, ToyPlan};

/// What the blocks of each thread counted, seen when the thread ends.
#[derive(Clone, Default)]
struct Ended(Arc<Mutex<Vec<ToyHost>>>);

/// Gives its host away when the thread drops it.
struct Watched {
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
        to: crate::address::Address,
        from: crate::address::Address,
        signal: crate::toy::ToySignal,
        context: &mut crate::context::Context<'_>,
        outbox: &mut crate::outbox::Outbox<crate::toy::ToySignal>,
    ) {
        self.host.as_mut().unwrap().handle(to, from, signal, context, outbox);
    }
}

fn start(layout: &NodeLayout, plan: ToyPlan, limits: KernelLimits) -> (RunningNode, Ended) {
    start_spinning(layout, plan, limits, SpinSettings::default())
}

fn start_spinning(
    layout: &NodeLayout,
    plan: ToyPlan,
    limits: KernelLimits,
    spin: SpinSettings,
) -> (RunningNode, Ended) {
    let ended = Ended::default();
    let options = NodeOptions {
        spin,
        listeners: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        data_folder: std::env::temp_dir().join(format!("junctor-kernel-{}", std::process::id())),
        pin: false,
        limits,
        seed: Some(1),
        ..NodeOptions::default()
    };
    let shared = ended.clone();
    let make_host = move |seat| Watched { host: Some(ToyHost::new(seat, plan)), ended: shared.clone() };
    (Node::start(layout, options, make_host).unwrap(), ended)
}

fn total(ended: &Ended, count: impl Fn(&ToyHost) -> u64) -> u64 {
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
    echoes_spinning(layout, SpinMethod::Static.settings(0));
}

/// Returns the spin times of the threads after it, in microseconds.
fn echoes_spinning(layout: &NodeLayout, spin: SpinSettings) -> Vec<u64> {
    let (node, ended) = start_spinning(layout, ToyPlan::default(), KernelLimits::default(), spin);
    let address = node.local_addresses()[0];
    for length in [1, 100, 16 << 10, (16 << 10) + 1, 3 << 20] {
        echo(address, length);
    }
    let loads = Arc::clone(node.loads());
    assert!(node.stop(), "the node came to rest");
    assert_eq!(total(&ended, |host| u64::from(host.opened)), 5);
    assert_eq!(total(&ended, |host| u64::from(host.closed)), 5);
    (0..).map_while(|thread| loads.thread(thread)).map(|load| load.spin_ns / 1_000).collect()
}

#[test]
fn an_echo_returns_over_one_thread() {
    echoes_over(&NodeLayout::new(&[&[(Module::Recv, 0), (Module::Tc, 0)]]));
}

#[test]
fn an_echo_returns_over_several_recv_threads() {
    echoes_over(&NodeLayout::new(&[&[(Module::Recv, 0)], &[(Module::Recv, 1)], &[(Module::Tc, 0)]]));
}

#[test]
fn an_echo_returns_through_send_threads() {
    let threads: &[&[(Module, u16)]] =
        &[&[(Module::Recv, 0)], &[(Module::Recv, 1)], &[(Module::Tc, 0)], &[(Module::Send, 0)]];
    echoes_over(&NodeLayout::new(threads));
}

#[test]
fn an_echo_returns_from_threads_that_spin() {
    let layout = NodeLayout::new(&[&[(Module::Recv, 0)], &[(Module::Recv, 1)], &[(Module::Tc, 0)]]);
    assert_eq!(echoes_spinning(&layout, SpinMethod::Static.settings(50)), [50; 3]);
    for method in SpinMethod::ALL {
        let spins = echoes_spinning(&layout, method.settings(0));
        assert!(spins.iter().all(|spin_us| *spin_us <= 500), "{spins:?}");
    }
}

#[test]
fn balls_timers_and_files_work_over_threads_and_the_node_stops_itself() {
    let layout = NodeLayout::new(&[
        &[(Module::Main, 0), (Module::Ldm, 0), (Module::Recv, 0)],
        &[(Module::Ldm, 1), (Module::Tc, 0)],
        &[(Module::Ldm, 2)],
        &[(Module::Io, 0)],
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
fn a_connection_too_many_is_closed_and_places_are_used_again() {
    let limits = KernelLimits { sockets_max: 2, ..KernelLimits::default() };
    let (node, ended) = start(&NodeLayout::new(&[&[(Module::Recv, 0), (Module::Tc, 0)]]), ToyPlan::default(), limits);
    let address = node.local_addresses()[0];
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
    // The node may hear of the end of the first after the next connection, which is then refused.
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
        NodeLayout::new(&[&[(Module::Recv, 0), (Module::Tc, 0)]]),
        NodeLayout::new(&[&[(Module::Recv, 0), (Module::Tc, 0)], &[(Module::Send, 0)]]),
    ] {
        let (node, ended) = start(&layout, ToyPlan::default(), limits.clone());
        let mut stream = TcpStream::connect(node.local_addresses()[0]).unwrap();
        stream.write_all(&vec![7; LENGTH]).unwrap();
        let mut received = vec![0; LENGTH];
        stream.read_exact(&mut received).unwrap();
        drop(stream);
        assert!(node.stop());
        let (blocked, drained) =
            (total(&ended, |host| u64::from(host.blocked)), total(&ended, |host| u64::from(host.drained)));
        assert!(blocked > 0 && blocked == drained, "blocked {blocked} times, drained {drained} times");
    }
}

#[test]
fn a_layout_without_recv_cannot_listen() {
    let options = NodeOptions { listeners: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))], ..NodeOptions::default() };
    let layout = NodeLayout::new(&[&[(Module::Tc, 0)]]);
    let result = Node::start(&layout, options, |seat| ToyHost::new(seat, ToyPlan::default()));
    assert!(matches!(result, Err(StartError::NoRecv)));
}
