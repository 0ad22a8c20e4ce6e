//! `attacks`: the throughput of served clients while others attack the server.
//!
//! Each phase measures the clients without and with its attack, in turns, and takes the medians:
//!
//! - `flood`: connections that are closed without a login, as many a second as `--rate` says;
//! - `half-open`: 5,000 connections that never answer the greeting;
//! - `passwords`: 1,000 logins with a wrong password, at once;
//! - `unread`: 100 clients that ask for many rows and read none.
//!
//! Client, attacker and server share the machine. The attack against MariaDB shows what that alone costs.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use crate::connections::raise_file_limit;
use crate::mysql::Connection;
use crate::process::{JunctorOptions, Server, start_junctor, start_mariadb};
use crate::report::{Verdict, print_verdicts};
use crate::{Failure, Outcome};

const HALF_OPEN: usize = 5000;
const PASSWORDS: usize = 1000;
const UNREAD: usize = 100;
/// Connections of the flood that are open at a time. The server accepts and greets them meanwhile.
const FLOOD_OPEN: usize = 256;
/// Turns without and with the attack.
const TURNS: usize = 3;
/// Number of the error for a wrong password.
const ACCESS_DENIED: u16 = 1045;

/// Options of `attacks`.
#[derive(Debug, clap::Args)]
pub struct AttacksOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Attack MariaDB instead
    #[arg(long)]
    mariadb: bool,
    /// Connections a second of the flood
    #[arg(long, default_value_t = 10_000)]
    rate: u32,
    /// Served clients
    #[arg(long, default_value_t = 2)]
    clients: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Run only this attack
    #[arg(long)]
    only: Option<String>,
}

/// An attack: it lasts until the flag is set, and returns what it came to.
type Attack = fn(&AttacksOptions, SocketAddr, &AtomicBool) -> Outcome<String>;

const ATTACKS: [(&str, Attack); 4] =
    [("flood", flood), ("half-open", half_open), ("passwords", passwords), ("unread", unread)];

/// Measures each attack, and prints the ratios.
///
/// # Errors
/// Clients keep less than half of their throughput, a new client is not served, or a server does not start.
pub fn run(options: &AttacksOptions) -> Outcome<()> {
    raise_file_limit(HALF_OPEN as u64 + 2000)?;
    let mut verdicts = Vec::new();
    for (name, attack) in ATTACKS {
        if options.only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let server = match options.mariadb {
            true => start_mariadb(&["--max-connections=10000"])?,
            false => start_junctor(&JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() })?,
        };
        let ratio = phase(options, &server, name, attack)?;
        server.stop()?;
        // The loss, because a verdict has a maximum.
        verdicts.push(Verdict { what: format!("loss by {name}"), allowed_max: 0.5, measured: 1.0 - ratio });
    }
    match print_verdicts(&verdicts) {
        0 => Ok(()),
        _ => Err(Failure::new("an attack takes more than half of the throughput of served clients")),
    }
}

/// Measures one attack. Returns the ratio of the throughputs with and without it.
fn phase(options: &AttacksOptions, server: &Server, name: &str, attack: Attack) -> Outcome<f64> {
    let (mut before, mut during, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
    throughput(options, server.address)?;
    for _ in 0..TURNS {
        before.push(throughput(options, server.address)?);
        let is_over = AtomicBool::new(false);
        let (rate, outcome) = thread::scope(|scope| -> Outcome<(f64, String)> {
            let attacker = scope.spawn(|| attack(options, server.address, &is_over));
            let rate = throughput(options, server.address);
            let begin = Instant::now();
            let newcomer = Connection::open(server.address, "").and_then(|mut client| client.query("SELECT 1"));
            let waited = begin.elapsed().as_secs_f64();
            is_over.store(true, Ordering::Relaxed);
            let outcome = attacker.join().map_err(|_| Failure::new("the attacker failed"))??;
            newcomer.map_err(|error| Failure::new(format!("a new client during {name}: {error}")))?;
            Ok((rate?, format!("{outcome}, a new client served after {waited:.1} s")))
        })?;
        during.push(rate);
        outcomes.push(outcome);
    }
    let (before, during) = (median(&mut before), median(&mut during));
    let (ratio, memory) = (during / before, server.resident_bytes()? >> 20);
    println!("{name}: {}", outcomes.join("; "));
    println!("  clients {before:.0} -> {during:.0} statements a second, ratio {ratio:.2}; the server has {memory} MiB");
    Ok(ratio)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Statements a second of the served clients.
fn throughput(options: &AttacksOptions, address: SocketAddr) -> Outcome<f64> {
    let mut clients: Vec<_> = (0..options.clients).map(|_| Connection::open(address, "")).collect::<Result<_, _>>()?;
    let (count, until) = (AtomicU64::new(0), Instant::now() + Duration::from_secs_f64(options.seconds));
    thread::scope(|scope| {
        let workers: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                scope.spawn(|| -> Outcome<()> {
                    while Instant::now() < until {
                        client.query("SELECT 1")?;
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        for worker in workers {
            worker.join().map_err(|_| Failure::new("a client failed"))??;
        }
        Ok(count.load(Ordering::Relaxed) as f64 / options.seconds)
    })
}

/// Begins a connection without waiting for it. Closing it resets it, so that no port stays taken.
fn begin_connection(address: SocketAddr) -> Outcome<OwnedFd> {
    let stream =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
    match connect(&stream, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(stream),
        Err(error) => Err(error.into()),
    }
}

/// Whether the server has sent something.
fn is_greeted(stream: &OwnedFd) -> bool {
    let mut byte = [0];
    rustix::net::recv(stream, &mut byte, rustix::net::RecvFlags::PEEK).is_ok_and(|(count, _)| count > 0)
}

fn flood(options: &AttacksOptions, address: SocketAddr, is_over: &AtomicBool) -> Outcome<String> {
    let (mut open, start) = (VecDeque::new(), Instant::now());
    let (mut count, mut skipped, mut greeted, mut failed) = (0u64, 0u64, 0u64, 0u64);
    while !is_over.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_secs_f64() * f64::from(options.rate)) as u64;
        // An attacker that had no CPU for a while makes up for at most 20 ms.
        skipped += due.saturating_sub(u64::from(options.rate) / 50).saturating_sub(count + skipped);
        while count + skipped < due {
            count += 1;
            match begin_connection(address) {
                Ok(stream) => open.push_back(stream),
                Err(_) => failed += 1,
            }
            if open.len() > FLOOD_OPEN {
                greeted += u64::from(open.pop_front().is_some_and(|stream| is_greeted(&stream)));
            }
        }
        thread::sleep(Duration::from_micros(500));
    }
    let seconds = start.elapsed().as_secs_f64();
    let attempts = (count as f64 / seconds).round();
    Ok(format!("{attempts} attempts a second, {:.0} greeted, {failed} failed", greeted as f64 / seconds))
}

fn half_open(_: &AttacksOptions, address: SocketAddr, is_over: &AtomicBool) -> Outcome<String> {
    let mut open = Vec::new();
    for _ in 0..HALF_OPEN {
        open.push(begin_connection(address)?);
        if open.len().is_multiple_of(64) {
            thread::sleep(Duration::from_millis(1));
        }
    }
    wait_for(is_over);
    let greeted = open.iter().filter(|stream| is_greeted(stream)).count();
    Ok(format!("{HALF_OPEN} half-open, {greeted} greeted"))
}

fn passwords(_: &AttacksOptions, address: SocketAddr, is_over: &AtomicBool) -> Outcome<String> {
    // CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION and CLIENT_PLUGIN_AUTH, and a proof of no password.
    let mut login = [&[0u8, 0x82, 8, 0][..], &[0; 4], &[45], &[0; 23], b"root\0\x14"].concat();
    login.extend_from_slice(&[7; 20]);
    login.extend_from_slice(b"mysql_native_password\0");
    let packet = [&(login.len() as u32).to_le_bytes()[..3], &[1], &login].concat();
    let mut streams = Vec::new();
    for _ in 0..PASSWORDS {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(&packet)?;
        stream.set_nonblocking(true)?;
        streams.push((stream, Vec::new(), false));
    }
    let (mut refused, start) = (0, Instant::now());
    while !is_over.load(Ordering::Relaxed) {
        streams.retain_mut(|(stream, received, has_answered)| {
            let mut bytes = [0; 512];
            match stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => received.extend_from_slice(&bytes[..count]),
                Err(_) => {}
            }
            // The greeting, a request to switch the method, and then the error.
            let (packets, is_refused) = packets_of(received);
            if packets == 2 && !is_refused && !*has_answered {
                let proof = [&[20, 0, 0, 3][..], &[7; 20]].concat();
                let _ = stream.write_all(&proof);
                *has_answered = true;
            }
            refused += usize::from(is_refused);
            !is_refused
        });
        thread::sleep(Duration::from_millis(5));
    }
    Ok(format!("{refused} of {PASSWORDS} refused within {:.1} s", start.elapsed().as_secs_f64()))
}

/// The number of whole packets, and whether the last is the error of a wrong password.
fn packets_of(mut received: &[u8]) -> (usize, bool) {
    let (mut count, mut is_refused) = (0, false);
    while let Some((&[a, b, c, _], rest)) = received.split_first_chunk::<4>() {
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        let Some((payload, after)) = rest.split_at_checked(length).filter(|_| length > 0) else { break };
        is_refused = matches!(payload, [0xFF, low, high, ..] if u16::from_le_bytes([*low, *high]) == ACCESS_DENIED);
        (count, received) = (count + 1, after);
    }
    (count, is_refused)
}

fn unread(_: &AttacksOptions, address: SocketAddr, is_over: &AtomicBool) -> Outcome<String> {
    let text = b"\x03SELECT REPEAT('x', 60000) FROM information_schema.COLLATIONS a, information_schema.COLLATIONS b";
    let packet = [&(text.len() as u32).to_le_bytes()[..3], &[0], &text[..]].concat();
    let mut streams = Vec::new();
    for _ in 0..UNREAD {
        let mut stream = Connection::open(address, "")?.into_stream()?;
        stream.write_all(&packet)?;
        streams.push(stream);
    }
    wait_for(is_over);
    Ok(format!("{} clients that read nothing", streams.len()))
}

fn wait_for(is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(5));
    }
}
