//! Runs point selects in one MySQL session, over a socket or an in-memory connection:
//! `round_trips [tcp|memory] [COUNT] [SPIN_US]`.
//!
//! To measure the instructions of a round trip (both sides, without the operating system), run it under
//! `valgrind --tool=callgrind` with two counts. Divide the difference of the instructions by the difference
//! of the counts.
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use junctor::{Node, Protocol};
use junctor_bench::mysql::Connection;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let transport = arguments.next().unwrap_or_else(|| "memory".into());
    let count: u32 = arguments.next().unwrap_or_else(|| "100000".into()).parse()?;
    let spin = Duration::from_micros(arguments.next().unwrap_or_else(|| "0".into()).parse()?);
    let node = Node::builder()
        .total_memory_bytes(64 << 20)
        .thread_config("recv={count=1},ldm={count=0},main={count=0},io={count=0}")
        .listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .start()?;
    if transport == "tcp" {
        let address = node.address().ok_or("the node does not listen")?;
        return select(Connection::open(address, "")?, count, &transport);
    }
    let mut stream = node.stream(Protocol::MySql)?;
    stream.set_spin(spin);
    select(Connection::log_in_over(stream, "")?, count, &transport)
}

fn select<S: Read + Write>(mut session: Connection<S>, count: u32, transport: &str) -> Result<(), Box<dyn Error>> {
    session.query("CREATE DATABASE shop")?;
    session.query("CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(120))")?;
    for id in 0..100 {
        session.query(&format!("INSERT INTO shop.item VALUES ({id}, REPEAT('x', 120))"))?;
    }
    let start = Instant::now();
    for round in 0..count {
        let rows = session.query(&format!("SELECT name FROM shop.item WHERE id = {}", round % 100))?.rows;
        assert_eq!(rows.len(), 1);
    }
    let elapsed = start.elapsed();
    println!("{transport}: {:.0} round trips a second", f64::from(count) / elapsed.as_secs_f64());
    Ok(())
}
