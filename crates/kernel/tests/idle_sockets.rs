//! Memory of a connection that was used and is now silent. Alone in its process, because it measures the
//! process.
#![cfg(not(any(loom, shuttle)))]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use junctor_kernel::real::{Node, NodeOptions};
use junctor_kernel::{
    Context, Endpoints, Host, ModuleId, NodeLayout, Outbox, Priority, Signal, SignalClass, WorldEvent, WorldRequest,
};

const CONNECTIONS: usize = 400;
const BYTES_EACH_MAX: usize = 2 << 10;

struct World(WorldEvent);

impl Signal for World {
    fn class(&self) -> SignalClass {
        SignalClass::Deferrable
    }

    fn priority(&self) -> Priority {
        Priority::Normal
    }

    fn emit_max(&self) -> u16 {
        0
    }

    fn name(&self) -> &'static str {
        "World"
    }

    fn number(&self) -> u16 {
        0
    }

    fn from_world(event: WorldEvent) -> Self {
        Self(event)
    }
}

/// Returns every byte in a buffer of its own, as a front end does.
struct Echo;

impl Host<World> for Echo {
    fn handle(&mut self, _: Endpoints, signal: World, context: &mut Context<'_>, outbox: &mut Outbox<World>) {
        if let WorldEvent::Received { socket, bytes } = signal.0 {
            let mut answer = context.buffers.take(bytes.len());
            answer.extend_from_slice(&bytes);
            context.buffers.give(bytes);
            outbox.request(WorldRequest::SendBytes { socket, bytes: answer });
        }
    }
}

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

fn talk(stream: &mut TcpStream) {
    let mut answer = [0; 4];
    stream.write_all(b"ping").unwrap();
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"ping");
}

#[test]
fn an_idle_connection_uses_less_than_two_kibibytes() {
    let listeners = vec![Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))];
    let options = NodeOptions { listeners, pin: false, ..NodeOptions::default() };
    let layout = NodeLayout::new(&[&[(ModuleId::SOCKETS, 0)]]);
    let node = Node::start(&layout, options, |_| Echo).unwrap();
    let address = node.local_addresses()[0].unwrap();
    // The first connections fill pools and tables, which are not counted.
    let connect = || {
        let mut stream = TcpStream::connect(address).unwrap();
        talk(&mut stream);
        stream
    };
    let first: Vec<TcpStream> = (0..40).map(|_| connect()).collect();
    let before = resident_bytes();
    let others: Vec<TcpStream> = (0..CONNECTIONS).map(|_| connect()).collect();
    let growth = resident_bytes().saturating_sub(before);
    assert!(growth < CONNECTIONS * BYTES_EACH_MAX, "{} bytes a connection", growth / CONNECTIONS);
    drop((first, others));
    assert!(node.stop());
}
