//! `connections`: measures the memory of idle connections, and checks the reply to one connection too many.

use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::mysql::Connection;
use crate::process::{JunctorOptions, start_junctor, start_mariadb};
use crate::report::{Verdict, print_verdicts};
use crate::{Failure, Outcome};

/// ER_CON_COUNT_ERROR, "Too many connections".
const TOO_MANY_CONNECTIONS: u16 = 1040;
const SMALL_LIMIT: usize = 20;

/// Options of `connections`.
#[derive(Debug, clap::Args)]
pub struct ConnectionsOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Number of idle connections
    #[arg(long, default_value_t = 5000)]
    count: usize,
    /// Maximum mebibytes that they may add to the memory of the server
    #[arg(long, value_name = "MIB", default_value_t = 40.0)]
    mebibytes_max: f64,
    /// Run against MariaDB instead, to verify the measurement
    #[arg(long)]
    mariadb: bool,
}

/// Measures and prints the memory, then exceeds the limit of connections.
///
/// # Errors
/// The connections need too much memory, a refusal is wrong, or a server does not start.
pub fn run(options: &ConnectionsOptions) -> Outcome<()> {
    raise_file_limit(options.count as u64 + 100)?;
    let junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    let start = |limit: usize| {
        let limit = limit.to_string();
        if options.mariadb {
            start_mariadb(&[&format!("--max-connections={limit}"), "--extra-max-connections=1"])
        } else {
            start_junctor(&junctor.with_arguments(&["--max-connections", &limit]))
        }
    };
    let server = start(options.count + 10)?;
    // The first connections allocate memory that the server allocates only once, so they are not measured.
    let mut idle: Vec<Connection> = (0..8).map(|_| server.connect()).collect::<Outcome<_>>()?;
    idle[0].query("SELECT 1")?;
    let before = server.resident_bytes()?;
    for _ in 0..options.count {
        idle.push(server.connect()?);
    }
    let growth = server.resident_bytes()?.saturating_sub(before) as f64 / f64::from(1 << 20);
    println!(
        "{} idle connections: {growth:.1} MiB, {:.2} KiB each",
        options.count,
        growth * 1024.0 / options.count as f64
    );
    for connection in idle.iter_mut().step_by(500) {
        connection.query("SELECT 1")?;
    }
    drop(idle);
    server.stop()?;
    let server = start(SMALL_LIMIT)?;
    check_refusal(&server)?;
    server.stop()?;
    let memory =
        Verdict { what: "MiB of idle connections".into(), allowed_max: options.mebibytes_max, measured: growth };
    match print_verdicts(&[memory]) {
        0 => Ok(()),
        _ => Err(Failure::new("idle connections use too much memory")),
    }
}

/// Checks that one connection too many gets error 1040, that open connections keep working, and that closing
/// one admits another.
fn check_refusal(server: &crate::process::Server) -> Outcome<()> {
    let mut held = Vec::new();
    let refusal = loop {
        match Connection::open(server.address, "") {
            Ok(connection) => held.push(connection),
            Err(error) => break error,
        }
        if held.len() > SMALL_LIMIT + 1 {
            return Err(Failure::new(format!("{} connections with a limit of {SMALL_LIMIT}", held.len())));
        }
    };
    if refusal.errno() != TOO_MANY_CONNECTIONS || held.len() < SMALL_LIMIT {
        return Err(Failure::new(format!("connection {} of {SMALL_LIMIT} got {refusal}", held.len() + 1)));
    }
    held[0].query("SELECT 1")?;
    held.pop();
    // The server handles COM_QUIT some time after this program has sent it, so try repeatedly.
    let given_again = (0..10_000).any(|_| Connection::open(server.address, "").is_ok());
    println!("connection {} of {SMALL_LIMIT}: {refusal}", held.len() + 2);
    if given_again { Ok(()) } else { Err(Failure::new("no connection is accepted after another has closed")) }
}

/// Raises the limit of open files of this process and of the servers that it starts.
///
/// # Errors
/// The hard limit is lower and this user cannot raise it.
pub fn raise_file_limit(files: u64) -> Outcome<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return Ok(());
    }
    let maximum = limit.maximum.map(|maximum| maximum.max(files));
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum })?)
}
