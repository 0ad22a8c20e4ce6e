//! Costs of signals between two nodes on loopback, in one process. Run `cargo build --release --example
//! link_hop -p junctor-kernel`, then `target/release/examples/link_hop <kind> <hops> <signals in flight>`.
//! Kinds: `link` (signals of 120 bytes go back and forth between two nodes), `tcp` (messages of the same size
//! go back and forth between two threads over a bare connection), `start` (only the start of the nodes).
//! `perf stat -e instructions` of two numbers of hops gives the instructions of a hop.
#![allow(clippy::disallowed_methods, reason = "it measures time, and one end of a bare connection needs a thread")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use junctor_kernel::real::{LinkOptions, Node, NodeOptions, RunningNode};
use junctor_kernel::transport::board::LinkNews;
use junctor_kernel::transport::hello::ClusterKey;
use junctor_kernel::{
    Address, BufferPool, Context, DecodeError, EncodeError, Endpoints, Host, ModuleId, NodeId, NodeLayout, Outbox,
    Priority, Signal, SignalClass, WireSignal, WorldEvent, WorldRequest,
};

const PLAYER: ModuleId = ModuleId::new(3);

/// Bytes of a message of `tcp`: those of a frame with one signal.
const MESSAGE_BYTES: usize = 48 + 12 + 112;

enum Ping {
    World,
    Link(LinkNews),
    Hop([u64; 14]),
}

impl Signal for Ping {
    fn class(&self) -> SignalClass {
        SignalClass::Deferrable
    }

    fn priority(&self) -> Priority {
        Priority::Normal
    }

    fn emit_max(&self) -> u16 {
        1
    }

    fn name(&self) -> &'static str {
        "Ping"
    }

    fn number(&self) -> u16 {
        match self {
            Self::World => 0,
            Self::Hop(_) => 1,
            Self::Link(_) => 2,
        }
    }

    fn from_world(_event: WorldEvent) -> Self {
        Self::World
    }

    fn from_link(news: LinkNews) -> Option<Self> {
        Some(Self::Link(news))
    }
}

impl WireSignal for Ping {
    type Encoder = ();
    type Decoder = ();

    const VERSIONS: std::ops::RangeInclusive<u16> = 1..=1;

    fn layouts(version: u16) -> u64 {
        u64::from(version)
    }

    fn encoder(_version: u16) {}

    fn decoder(_version: u16) {}

    fn encode(&self, _link: &mut (), out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let Self::Hop(words) = self else { return Err(EncodeError::TooLong) };
        for word in words {
            out.extend_from_slice(&word.to_le_bytes());
        }
        Ok(())
    }

    fn decode(_link: &mut (), bytes: &[u8], _buffers: &mut BufferPool) -> Result<Self, DecodeError> {
        let mut words = [0; 14];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        if bytes.len() == 112 { Ok(Self::Hop(words)) } else { Err(DecodeError::Truncated) }
    }

    fn is_for(&self, module: ModuleId) -> bool {
        module == PLAYER
    }
}

struct Player {
    hops_left: u64,
    begins: u64,
    began: Option<Instant>,
    hops: u64,
}

impl Host<Ping> for Player {
    fn handle(&mut self, endpoints: Endpoints, signal: Ping, _context: &mut Context<'_>, outbox: &mut Outbox<Ping>) {
        match signal {
            Ping::World => outbox.request(WorldRequest::EndLinks),
            Ping::Link(LinkNews::Up { node, .. }) => {
                self.began = Some(Instant::now());
                for number in 0..self.begins {
                    outbox.send(Address::new(node, PLAYER, 0), Ping::Hop([number; 14]));
                }
                if self.begins > 0 && self.hops == 0 {
                    outbox.request(WorldRequest::Stop);
                }
            }
            Ping::Link(_) => {}
            Ping::Hop(words) if self.hops_left > 0 => {
                self.hops_left -= 1;
                outbox.send(endpoints.from, Ping::Hop(words));
            }
            Ping::Hop(_) => {
                if let Some(began) = self.began.take() {
                    report("link", self.hops, self.begins, began.elapsed());
                }
                outbox.request(WorldRequest::Stop);
            }
        }
    }
}

fn report(kind: &str, hops: u64, batch: u64, elapsed: Duration) {
    let round_ns = elapsed.as_nanos() as u64 * 2 * batch / hops.max(1);
    println!("{kind}: {hops} hops, {batch} in flight: round trip {round_ns} ns");
}

fn listen() -> std::io::Result<(Arc<TcpListener>, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    Ok((Arc::new(listener), address))
}

fn start(node: u8, listener: Arc<TcpListener>, peer: SocketAddr, hops: u64, begins: u64) -> RunningNode {
    let links = LinkOptions {
        cluster: 1,
        key: ClusterKey([1; 32]),
        incarnation: 1,
        listener,
        peers: vec![(NodeId(3 - node), peer)],
        channels: 1,
        watcher: (PLAYER, 0),
        introduction: Arc::new([]),
        security: None,
        figures: Default::default(),
    };
    let options = NodeOptions { node: NodeId(node), pin: false, links: Some(links), ..NodeOptions::default() };
    let layout = NodeLayout::new(&[&[(ModuleId::SOCKETS, 0), (PLAYER, 0)]]);
    let make_host =
        move |_| Player { hops_left: if node == 1 { hops / 2 } else { u64::MAX }, begins, began: None, hops };
    match Node::start_linked(&layout, options, make_host) {
        Ok(node) => node,
        Err(error) => panic!("cannot start: {error}"),
    }
}

fn over_links(hops: u64, batch: u64) -> std::io::Result<()> {
    let ((one, one_at), (two, two_at)) = (listen()?, listen()?);
    let second = start(2, two, one_at, hops, 0);
    let first = start(1, one, two_at, hops, batch);
    let before = cpu_time();
    first.wait_for_stop_request();
    print_cpu(hops, cpu_time().saturating_sub(before));
    first.stop();
    second.stop();
    Ok(())
}

/// `batch` messages go back and forth together, with one system call for all of them.
fn over_tcp(hops: u64, batch: u64) -> std::io::Result<()> {
    let (listener, address) = listen()?;
    let length = MESSAGE_BYTES * batch as usize;
    let rounds = hops / 2 / batch;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut bytes = vec![0; length];
        for _ in 0..rounds {
            stream.read_exact(&mut bytes)?;
            stream.write_all(&bytes)?;
        }
        Ok(())
    });
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut bytes = vec![0; length];
    let (before, began) = (cpu_time(), Instant::now());
    for _ in 0..rounds {
        stream.write_all(&bytes)?;
        stream.read_exact(&mut bytes)?;
    }
    report("tcp", hops, batch, began.elapsed());
    print_cpu(hops, cpu_time().saturating_sub(before));
    echo.join().unwrap_or(Ok(()))
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "link".to_owned());
    let hops: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(200_000);
    let batch: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    match kind.as_str() {
        "tcp" => over_tcp(hops, batch),
        "start" => over_links(0, batch),
        _ => over_links(hops, batch),
    }
}

fn print_cpu(hops: u64, spent: Duration) {
    println!("{} ns of CPU a hop", spent.as_nanos() / u128::from(hops.max(1)));
}

/// CPU time of the process, to 10 ms: fields 14 and 15 of its stat line, counted after the name in brackets.
fn cpu_time() -> Duration {
    let line = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = line.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
