//! The latency of a single connection, compared with an echo server that sends the same number of bytes, and
//! the CPU use of an idle server.

use std::thread;
use std::time::{Duration, Instant};

use super::client::EventLoad;
use super::record::Record;
use super::work::Work;
use crate::compare::start_echo;
use crate::load::{LIST, Load, POINT, Until};
use crate::process::Server;
use crate::report::{Table, Verdict};
use crate::statistics::median;
use crate::sysbench::StatementMode;
use crate::{Failure, Outcome};

/// Maximum ratio of a single connection's p99.9 latency to that of the echo server.
const TAIL_RATIO_MAX: f64 = 1.5;
/// Maximum CPU use of an idle server, in per cent of one CPU.
const IDLE_PERCENT_MAX: f64 = 0.5;
/// The spin method that the target for the idle server applies to.
const IDLE_TARGET: &str = "CostBasedSpinning";
const TAIL_TARGET: &str = "LatencyOptimisedSpinning";

/// Name of a spin method, and the SQL statements that select it.
pub type SpinSetup = (&'static str, &'static [&'static str]);

/// Durations and sizes of the measurement.
#[derive(Clone, Debug)]
pub struct SingleConnectionOptions {
    /// Measured time of each run.
    pub time: Duration,
    /// Time before the measurement.
    pub warm_up: Duration,
    /// Time over which the idle server is measured.
    pub idle_time: Duration,
    /// Runs of each server.
    pub repetitions: u32,
    /// Number of rows of the table.
    pub rows: u64,
}

/// The results of the measurement.
pub struct SingleConnectionReport {
    /// Table of all figures.
    pub table: Table,
    /// Targets with the measured figures.
    pub verdicts: Vec<Verdict>,
    /// One record per run.
    pub records: Vec<Record>,
}

const PER_MILLES: [u64; 4] = [500, 950, 990, 999];

/// Measures one connection with each spin method, and the echo server, in turn; then the idle server.
///
/// # Errors
/// A server fails.
pub fn measure(
    server: &Server,
    spinning: &[SpinSetup],
    options: &SingleConnectionOptions,
    run: &mut u8,
) -> Outcome<SingleConnectionReport> {
    let echo = start_echo(&recorded_answer(server, options.rows)?)?;
    let sides = spinning.len() + 1;
    let mut samples: Vec<Vec<[f64; 6]>> = vec![Vec::new(); sides];
    let mut records = Vec::new();
    for repetition in 0..options.repetitions {
        for turn in 0..sides {
            let side = (turn + repetition as usize) % sides;
            let spinning = spinning.get(side);
            if let Some((_, statements)) = spinning {
                server.execute(statements)?;
            }
            *run = run.wrapping_add(1);
            let figures = sample(spinning.map_or(&echo, |_| server), spinning.is_some(), options, *run)?;
            records.push(record(spinning.map_or("echo", |(name, _)| name), repetition, figures));
            samples[side].push(figures);
        }
    }
    let mut table = Table::new(&[
        "one connection",
        "operations/s",
        "p50 us",
        "p95 us",
        "p99 us",
        "p99.9 us",
        "CPU us/operation",
        "idle per cent",
    ]);
    let medians: Vec<[f64; 6]> = samples
        .iter()
        .map(|runs| std::array::from_fn(|figure| median(&runs.iter().map(|run| run[figure]).collect::<Vec<_>>())))
        .collect();
    let mut verdicts = Vec::new();
    for (side, figures) in medians.iter().enumerate() {
        let name = spinning.get(side).map_or("echo", |(name, _)| name);
        let mut cells = vec![name.to_string()];
        cells.extend(figures.iter().map(|figure| format!("{figure:.1}")));
        if let Some((_, statements)) = spinning.get(side) {
            server.execute(statements)?;
            let idle = idle_percent(server, options.idle_time)?;
            cells.push(format!("{idle:.3}"));
            records.push(vec![("work", "idle".into()), ("spinning", name.into()), ("idle_percent", idle.into())]);
            if name == IDLE_TARGET {
                let what = format!("per cent of one CPU used by an idle server, {name}");
                verdicts.push(Verdict { what, allowed_max: IDLE_PERCENT_MAX, measured: idle });
            }
        }
        table.row(cells);
    }
    let of = |wanted: &str| spinning.iter().position(|(name, _)| *name == wanted).map(|side| medians[side]);
    let tail = TAIL_COLUMN;
    for (side, (name, _)) in spinning.iter().enumerate() {
        if *name == TAIL_TARGET || spinning.len() == 1 {
            let what = format!("p99.9 of one connection to that of the echo, {name}");
            let measured = medians[side][tail] / medians[spinning.len()][tail];
            verdicts.push(Verdict { what, allowed_max: TAIL_RATIO_MAX, measured });
        }
    }
    if let (Some(quick), Some(without_spinning)) = (of(TAIL_TARGET), of(NO_SPINNING)) {
        for (figure, name) in [(1, "median"), (3, "p99")] {
            let what = format!("{name} of one connection, {TAIL_TARGET} to {NO_SPINNING}");
            verdicts.push(Verdict { what, allowed_max: 1.0, measured: quick[figure] / without_spinning[figure] });
        }
    }
    Ok(SingleConnectionReport { table, verdicts, records })
}

/// Name of the spin method that never spins.
pub const NO_SPINNING: &str = "no spinning";
const TAIL_COLUMN: usize = 4;

/// Measures operations per second, four latency percentiles, and the CPU time per operation. Times are in
/// microseconds.
fn sample(server: &Server, is_database: bool, options: &SingleConnectionOptions, run: u8) -> Outcome<[f64; 6]> {
    let load = EventLoad {
        address: server.address,
        is_database,
        connections: 1,
        threads: 1,
        work: Work::PointText,
        rows: options.rows,
        warm_up: options.warm_up,
        time: options.time,
        run,
    };
    let report = load.run(|| server.cpu_time())?;
    let [p50, p95, p99, tail] = PER_MILLES.map(|per_mille| report.latencies.percentile_us(per_mille));
    Ok([report.per_s, p50, p95, p99, tail, report.server_cpu_us])
}

fn record(side: &str, repetition: u32, figures: [f64; 6]) -> Record {
    let names = ["operations_per_second", "p50_us", "p95_us", "p99_us", "p999_us", "server_cpu_us"];
    let mut record =
        vec![("work", "one connection".into()), ("spinning", side.into()), ("repetition", repetition.into())];
    record.extend(names.into_iter().zip(figures.map(serde_json::Value::from)));
    record
}

/// Records a reply of the server, for the echo server to send.
///
/// # Errors
/// A server fails.
pub fn recorded_answer(server: &Server, rows: u64) -> Outcome<Vec<u8>> {
    let load = Load {
        address: server.address,
        is_database: true,
        first: &[],
        connections: 1,
        mode: StatementMode::Text,
        keys: 1,
        point: POINT,
        list: LIST,
        rows,
        until: Until::Statements(1),
        seed: 1,
    };
    load.record()
}

/// CPU use of a server without load, in per cent of one CPU.
fn idle_percent(server: &Server, time: Duration) -> Outcome<f64> {
    // Let the server finish the work that the last statement left behind, such as purge.
    thread::sleep(Duration::from_secs(1));
    let (before, start) = (server.cpu_time()?, Instant::now());
    thread::sleep(time);
    let used = server.cpu_time()?.checked_sub(before).ok_or_else(|| Failure::new("CPU time went backwards"))?;
    Ok(used.as_secs_f64() * 100.0 / start.elapsed().as_secs_f64())
}
