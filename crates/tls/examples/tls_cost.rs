//! The cost of encryption between nodes. Run `cargo run --release -p junctor-tls --example tls_cost`. Prints
//! CPU time of both ends together: of a handshake, and of frames of several sizes from plain bytes to plain
//! bytes, without sockets.

use std::time::Duration;

use junctor_kernel::NodeId;
use junctor_kernel::transport::security::{Encryption, LinkSecurity};
use junctor_tls::certificate::{create_authority, issue};
use junctor_tls::session::Tls;

type Ends = [Box<dyn Encryption>; 2];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let authority = create_authority("cost")?;
    let tls = |node| -> Result<Tls, Box<dyn std::error::Error>> {
        let own = issue("cost", &authority.key, NodeId(node))?;
        Ok(Tls::new(&authority.certificate, &own.certificate, &own.key)?)
    };
    let (one, two) = (tls(1)?, tls(2)?);
    let connect = || -> Option<Ends> {
        let mut ends = [one.connect(NodeId(2))?, two.accept()?];
        while carry(&mut ends, 0) | carry(&mut ends, 1) > 0 {}
        Some(ends)
    };
    let (handshakes, before) = (500, cpu_time());
    for _ in 0..handshakes {
        connect();
    }
    let spent = cpu_time().saturating_sub(before);
    println!("handshake: {} us", spent.as_micros() / handshakes);
    let mut ends = connect().ok_or("no session")?;
    for (bytes, frames) in [(200, 2_000_000_u32), (2_000, 500_000), (32 << 10, 60_000)] {
        let frame = vec![7; bytes];
        let before = cpu_time();
        for _ in 0..frames {
            ends[0].send(&frame);
            carry(&mut ends, 0);
        }
        let spent = cpu_time().saturating_sub(before);
        println!("frame of {bytes} bytes: {} ns", spent.as_nanos() / u128::from(frames));
    }
    Ok(())
}

/// Carries what an end has to write to the other. Returns the number of bytes.
fn carry(ends: &mut Ends, end: usize) -> usize {
    let (mut crossing, mut plain) = (Vec::with_capacity(40 << 10), Vec::with_capacity(40 << 10));
    ends[end].write(&mut crossing);
    if ends[1 - end].receive(&crossing, &mut plain).is_err() {
        println!("the session is over");
    }
    crossing.len()
}

/// CPU time of the process, to 10 ms: fields 14 and 15 of its stat line, counted after the name in brackets.
fn cpu_time() -> Duration {
    let line = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = line.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
