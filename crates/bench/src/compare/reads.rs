//! Point selects and IN lists from our own load client, on both databases and the echo server.

use std::fs;
use std::time::Duration;

use super::{CompareOptions, Pair};
use crate::echo;
use crate::load::{LIST, Load, POINT, Until};
use crate::process::junctor::start_with_ready_line;
use crate::process::server::command_killed_with_parent;
use crate::process::{Server, TemporaryFolder};
use crate::report::Table;
use crate::statistics::median;
use crate::sysbench::StatementMode;
use crate::{Failure, Outcome};

/// Keys per IN list.
pub const LIST_KEYS: u32 = 100;

/// The measured servers.
pub const SIDES: [&str; 3] = ["Junctor", "MariaDB", "echo"];

/// One kind of read, measured on Junctor, MariaDB and the echo server, in this order.
pub struct Read {
    /// How statements are sent.
    pub mode: StatementMode,
    /// Keys per statement.
    pub keys: u32,
    /// Figures of each server.
    pub sides: [Figures; 3],
}

/// Medians over the repetitions.
#[derive(Clone, Copy, Default)]
pub struct Figures {
    /// Statements per second.
    pub per_s: f64,
    /// 95th percentile of the latencies, in microseconds.
    pub p95_us: f64,
    /// CPU time of the server per statement, in microseconds.
    pub cpu_us: f64,
}

impl Figures {
    /// The median of each figure.
    pub fn medians(samples: &[Figures]) -> Figures {
        let of = |figure: fn(&Figures) -> f64| median(&samples.iter().map(figure).collect::<Vec<_>>());
        Figures { per_s: of(|f| f.per_s), p95_us: of(|f| f.p95_us), cpu_us: of(|f| f.cpu_us) }
    }
}

/// Measures all kinds of reads, alternating between the servers.
///
/// # Errors
/// A server fails, or rows are missing in answers.
pub fn measure(pair: &Pair, options: &CompareOptions) -> Outcome<Vec<Read>> {
    let mut reads = Vec::new();
    for keys in [1, LIST_KEYS] {
        for mode in [StatementMode::Text, StatementMode::Prepared] {
            let load = Load {
                address: pair.junctor.address,
                is_database: true,
                first: &[],
                connections: options.threads,
                mode,
                keys,
                point: POINT,
                list: LIST,
                rows: options.rows,
                until: Until::Elapsed(Duration::from_secs(options.seconds)),
                seed: 11,
            };
            let echo = start_echo(&load.record()?)?;
            let mut samples: [Vec<Figures>; 3] = Default::default();
            for repetition in 0..options.repetitions {
                for turn in 0..3 {
                    // Each server goes first, second and last equally often.
                    let side = (turn + repetition as usize) % 3;
                    let server = [&pair.junctor, &pair.mariadb, &echo][side];
                    samples[side].push(sample(server, &load, side < 2)?);
                }
            }
            reads.push(Read { mode, keys, sides: samples.map(|samples| Figures::medians(&samples)) });
        }
    }
    Ok(reads)
}

fn sample(server: &Server, load: &Load, is_database: bool) -> Outcome<Figures> {
    let load = Load { address: server.address, is_database, ..load.clone() };
    let before = server.cpu_time()?;
    let report = load.run()?;
    let cpu = server.cpu_time()? - before;
    // A list may name a key twice, but its row is returned once, so accept a tenth fewer rows than keys.
    let enough = report.statements * u64::from(load.keys) * 9 / 10;
    if report.statements == 0 || report.rows < enough {
        let what = format!("{}: {} rows in {} answers", server.name, report.rows, report.statements);
        return Err(Failure::new(what));
    }
    let cpu_us = cpu.as_secs_f64() * 1e6 / report.statements as f64;
    Ok(Figures { per_s: report.per_s, p95_us: report.p95_us, cpu_us })
}

/// Starts an echo server that answers each request with `reply`.
///
/// # Errors
/// The server does not start.
pub fn start_echo(reply: &[u8]) -> Outcome<Server> {
    start(reply, false)
}

/// Starts an echo server that writes a block to a file and syncs it before each of these replies.
///
/// # Errors
/// The server does not start.
pub fn start_echo_with_sync(reply: &[u8]) -> Outcome<Server> {
    start(reply, true)
}

fn start(reply: &[u8], syncs: bool) -> Outcome<Server> {
    let folder = TemporaryFolder::new("echo")?;
    let file = folder.path().join("reply");
    fs::write(&file, reply)?;
    let program = std::env::current_exe()?;
    let mut command = command_killed_with_parent(&program.to_string_lossy());
    command.args(["echo", "--reply"]).arg(&file);
    if syncs {
        command.arg("--sync").arg(folder.path().join("blocks"));
    }
    start_with_ready_line("echo", command, echo::READY, folder, 10)
}

/// Prints all figures as a table.
pub fn table(reads: &[Read]) -> Table {
    let columns = [
        "own client",
        "side",
        "statements/s",
        "p95 us",
        "CPU us/statement",
        "CPU us/key",
        "CPU to MariaDB",
        "CPU to echo",
    ];
    let mut table = Table::new(&columns);
    for read in reads {
        let [_, mariadb, echo] = read.sides;
        for (name, side) in SIDES.iter().zip(read.sides) {
            let what = if read.keys == 1 { "point select".into() } else { format!("IN list of {}", read.keys) };
            table.row(vec![
                format!("{what}, {}", read.mode.name()),
                (*name).into(),
                format!("{:.0}", side.per_s),
                format!("{:.0}", side.p95_us),
                format!("{:.2}", side.cpu_us),
                format!("{:.2}", side.cpu_us / f64::from(read.keys)),
                format!("{:.2}", side.cpu_us / mariadb.cpu_us),
                format!("{:.2}", side.cpu_us / echo.cpu_us),
            ]);
        }
    }
    table
}
