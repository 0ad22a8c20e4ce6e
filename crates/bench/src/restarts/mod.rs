//! `restarts`: the time from the start of a server with data to its first answer, beside MariaDB on the same
//! disk. Both servers hold the same sysbench table. They take turns: clients update rows, then the server is
//! stopped or killed and started again. For Junctor, the command also prints the time and the processor time
//! of each phase of its starts.
//!
//! In reading order: [`side`] (a server with its data folder), [`phases`] (what Junctor says of its start).

mod phases;
mod side;

use std::fs;
use std::path::PathBuf;

use phases::Phase;
use side::{Restart, Side};

use crate::process::{JunctorOptions, TemporaryFolder};
use crate::report::{Table, Verdict, print_verdicts};
use crate::statistics::median;
use crate::{Failure, Outcome};

/// Maximum processor time of a row that is loaded from a checkpoint and indexed, in microseconds: 2 million
/// rows a second and core.
const LOAD_US_MAX: f64 = 0.5;
/// Maximum time in which an operation of the log is replayed, in the time in which it was written.
const REPLAY_RATIO_MAX: f64 = 0.2;
/// Writing this word drops clean pages, directory entries and inodes from the operating system's cache.
const DROP_CACHES: (&str, &str) = ("/proc/sys/vm/drop_caches", "3");

/// Options of `restarts`.
#[derive(Clone, Debug, clap::Args)]
pub struct RestartsOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Rows of the table
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    rows: u64,
    /// Memory of the node, and size of MariaDB's buffer pool
    #[arg(long, value_name = "SIZE", default_value = "5G")]
    total_memory: String,
    /// Lines of the node's configuration file, such as "NoOfFragmentLogFiles = 4"
    #[arg(long, value_name = "LINE")]
    setting: Vec<String>,
    /// Clients that update rows before each stop
    #[arg(long, default_value_t = 16)]
    clients: usize,
    /// Seconds of updates before each stop
    #[arg(long, value_name = "S", default_value_t = 8)]
    seconds: u64,
    /// Runs of each kind; the servers alternate
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Also measure starts with an empty page cache of the operating system; needs root
    #[arg(long)]
    drop_caches: bool,
    /// Measure Junctor alone
    #[arg(long)]
    only_junctor: bool,
    /// Folder of the data, which is kept and used again [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Stop,
    Kill,
}

/// A kind of restart: how the server ends, and whether the operating system's page cache is empty afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    end: End,
    is_cold: bool,
}

impl Kind {
    fn name(self) -> String {
        let end = match self.end {
            End::Stop => "SIGTERM",
            End::Kill => "SIGKILL amid updates",
        };
        format!("{end}{}", if self.is_cold { ", empty page cache" } else { "" })
    }
}

/// Fills the tables if they do not exist, measures all kinds of restarts, and prints tables in Markdown.
///
/// # Errors
/// A missed target, or a server fails.
pub fn run(options: &RestartsOptions) -> Outcome<()> {
    let temporary = TemporaryFolder::new("restarts")?;
    let folder = options.folder.clone().unwrap_or_else(|| temporary.path().to_owned());
    fs::create_dir_all(&folder)?;
    let mut sides = vec![Side::junctor(options, &folder)?];
    if !options.only_junctor {
        sides.push(Side::mariadb(options, &folder)?);
    }
    for side in &mut sides {
        side.fill(options.rows)?;
    }
    let mut kinds = Vec::new();
    for is_cold in [false, true].into_iter().take(1 + usize::from(options.drop_caches)) {
        kinds.extend([End::Stop, End::Kill].map(|end| Kind { end, is_cold }));
    }
    let mut restarts: Vec<Vec<Vec<Restart>>> = vec![vec![Vec::new(); sides.len()]; kinds.len()];
    for round in 0..options.rounds as usize {
        for (number, kind) in kinds.iter().enumerate() {
            for turn in 0..sides.len() {
                let side = (turn + round) % sides.len();
                let restart = sides[side].restart(options, *kind)?;
                eprintln!("{}, {}: {restart}", sides[side].name(), kind.name());
                restarts[number][side].push(restart);
            }
        }
    }
    println!("{}", restart_table(&kinds, &restarts));
    println!("{}", phase_table(&kinds, &restarts));
    let missed = print_verdicts(&verdicts(&restarts));
    for side in sides {
        side.stop()?;
    }
    if missed > 0 { Err(Failure::new(format!("{missed} targets are missed"))) } else { Ok(()) }
}

fn of(restarts: &[Restart], figure: impl Fn(&Restart) -> f64) -> f64 {
    median(&restarts.iter().map(figure).collect::<Vec<_>>())
}

fn restart_table(kinds: &[Kind], restarts: &[Vec<Vec<Restart>>]) -> Table {
    let columns = ["end of the server", "first answer s", "MariaDB", "CPU s", "MariaDB", "stop s", "MariaDB"];
    let mut table = Table::new(&columns);
    for (kind, sides) in kinds.iter().zip(restarts) {
        let mut cells = vec![kind.name()];
        let figures: [fn(&Restart) -> f64; 3] =
            [|restart| restart.answer_s, |restart| restart.cpu_s, |restart| restart.end_s];
        for figure in figures.into_iter().take(if kind.end == End::Stop { 3 } else { 2 }) {
            cells.extend((0..2).map(|side| match sides.get(side) {
                Some(restarts) => format!("{:.2}", of(restarts, figure)),
                None => "-".to_owned(),
            }));
        }
        table.row(cells);
    }
    table
}

/// The phases of Junctor's starts. The figures are medians.
fn phase_table(kinds: &[Kind], restarts: &[Vec<Vec<Restart>>]) -> Table {
    let mut table =
        Table::new(&["phase", "end of the server", "ms", "user ms", "kernel ms", "rows", "MB", "rows/s", "MB/s"]);
    for (kind, sides) in kinds.iter().zip(restarts) {
        let names: Vec<String> = sides[0]
            .first()
            .map(|first| first.phases.iter().map(|phase| phase.name.clone()).collect())
            .unwrap_or_default();
        for name in names {
            let figure = |figure: fn(&Phase) -> f64| of(&sides[0], |restart| restart.phase(&name).map_or(0.0, figure));
            let ms = figure(|phase| phase.ms);
            let (rows, bytes) = (figure(|phase| phase.rows), figure(|phase| phase.bytes));
            if ms < 1.0 {
                continue;
            }
            let rate = |number: f64| if number > 0.0 { format!("{number:.0}") } else { "-".to_owned() };
            table.row(vec![
                name.clone(),
                kind.name(),
                format!("{ms:.0}"),
                format!("{:.0}", figure(|phase| phase.user_ms)),
                format!("{:.0}", figure(|phase| phase.kernel_ms)),
                rate(rows),
                rate(bytes / 1e6),
                rate(rows * 1000.0 / ms),
                rate(bytes / 1000.0 / ms),
            ]);
        }
    }
    table
}

/// The figures of all starts of Junctor together.
fn verdicts(restarts: &[Vec<Vec<Restart>>]) -> [Verdict; 2] {
    let all: Vec<&Restart> = restarts.iter().filter_map(|sides| sides.first()).flatten().collect();
    let sum = |figure: fn(&Restart) -> f64| all.iter().map(|restart| figure(restart)).sum::<f64>();
    let rows = sum(Restart::loaded_rows);
    let user_us = sum(Restart::load_user_us) / rows;
    [
        Verdict {
            what: format!("CPU us of a row that is loaded and indexed ({user_us:.2} in user mode)"),
            allowed_max: LOAD_US_MAX,
            measured: sum(Restart::load_cpu_us) / rows,
        },
        Verdict {
            what: "time to replay the log by time to write it".into(),
            allowed_max: REPLAY_RATIO_MAX,
            measured: sum(Restart::replay_s) / sum(Restart::write_s),
        },
    ]
}

fn junctor_options(options: &RestartsOptions) -> JunctorOptions {
    let junctor = JunctorOptions {
        binary: options.junctor.clone(),
        is_durable: true,
        settings: options.setting.clone(),
        ready_time_max_s: 600,
        ..JunctorOptions::default()
    };
    junctor.with_arguments(&["--total-memory", &options.total_memory])
}
