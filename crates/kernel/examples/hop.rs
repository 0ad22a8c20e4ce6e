//! Counts instructions of signals. Run `cargo build --release --example hop -p junctor-kernel`, then
//! `valgrind --tool=callgrind target/release/examples/hop <kind> <hops>` for two numbers of hops. The
//! difference in instructions divided by the difference in hops is the cost of one hop. Kinds: `local` (a
//! signal to a block of the same thread), `hop` (a signal to another thread, in batches of 16, both ends),
//! `start` (only the start of the node).
//!
//! Further arguments: microseconds to spin (0), signals in flight at a time (16).
//!
//! Measured with rustc 1.95 and a signal of 120 bytes, including the handler's 45 instructions: `local` 179;
//! `hop` 315 in batches of 16, which includes each batch's share of the turn with its sleep and wake-up.
//! Three moves of an envelope of 128 bytes take 52.

use std::time::Duration;

use junctor_kernel::real::{Node, NodeOptions};
use junctor_kernel::{
    Address, Context, Endpoints, Host, ModuleId, NodeLayout, Outbox, Priority, Signal, SignalClass, WorldEvent,
    WorldRequest,
};

const ECHO: ModuleId = ModuleId::new(2);
const PLAYER: ModuleId = ModuleId::new(3);

enum Ping {
    World(WorldEvent),
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
            Self::World(_) => 0,
            Self::Hop(_) => 1,
        }
    }

    fn from_world(event: WorldEvent) -> Self {
        Self::World(event)
    }
}

struct Player {
    hops_left: u64,
    partner: Address,
    begins: u64,
}

impl Host<Ping> for Player {
    fn handle(&mut self, _: Endpoints, signal: Ping, _context: &mut Context<'_>, outbox: &mut Outbox<Ping>) {
        match signal {
            Ping::World(WorldEvent::Started) => {
                for number in 0..self.begins {
                    outbox.send(self.partner, Ping::Hop([number; 14]));
                }
            }
            Ping::World(_) => {}
            Ping::Hop(mut words) => {
                words[0] += 1;
                if self.hops_left == 0 {
                    outbox.request(WorldRequest::Stop);
                } else {
                    self.hops_left -= 1;
                    outbox.send(self.partner, Ping::Hop(words));
                }
            }
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "hop".to_owned());
    let hops: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let spin_us = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let batch: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(16);
    let local: &[&[(ModuleId, u16)]] = &[&[(ECHO, 0), (PLAYER, 0)]];
    let apart: &[&[(ModuleId, u16)]] = &[&[(ECHO, 0)], &[(PLAYER, 0)]];
    let mut layout = NodeLayout::new(if kind == "local" { local } else { apart });
    for thread in &mut layout.threads {
        thread.spin_us = spin_us;
    }
    let (hops, is_local) = (if kind == "start" { 0 } else { hops }, kind == "local");
    let options = NodeOptions { pin: false, ..NodeOptions::default() };
    let node = Node::start(&layout, options, move |assignment| {
        let partner = if assignment.thread == 0 { PLAYER } else { ECHO };
        let begins = if assignment.thread == 0 { batch } else { 0 };
        // Locally one player acts as both blocks and sees every hop.
        let hops_left = if is_local { hops } else { hops / 2 };
        Player { hops_left, partner: assignment.directory.address(partner, 0), begins }
    });
    match node {
        Ok(node) => {
            let start = cpu_time();
            node.wait_for_stop_request();
            let spent = cpu_time().saturating_sub(start);
            node.stop();
            println!("{kind}: {hops} hops, {} ns of CPU each", spent.as_nanos() / u128::from(hops.max(1)));
        }
        Err(error) => println!("cannot start: {error}"),
    }
}

/// CPU time of the process, to 10 ms: fields 14 and 15 of its stat line, counted after the name in brackets.
fn cpu_time() -> Duration {
    let line = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = line.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
