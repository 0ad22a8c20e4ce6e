//! Throughput of writers during a checkpoint, against that without. A window is split into slots by whether a
//! round of a checkpoint was running. A second node has settings under which it begins a round so seldom that
//! most windows have none. Windows of both nodes alternate, which shows the total cost of checkpoints.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{CheckpointsOptions, rounds};
use crate::event_load::client::EventLoad;
use crate::event_load::work::Work;
use crate::fill::fill_over;
use crate::mysql::Connection;
use crate::process::{Server, start_junctor};
use crate::report::{Table, Verdict};
use crate::statistics::{Interval, median, ratio_interval};
use crate::{Failure, Outcome};

/// Maximum throughput without a checkpoint, in that during one. The reciprocal of 0.9.
const SLOWDOWN_MAX: f64 = 1.0 / 0.9;
/// Windows with less time in rounds, or outside of them, are not compared, in seconds.
const COMPARED_S_MIN: f64 = 0.2;
const WORKS: [Work; 2] = [Work::Update, Work::ReadWrite];
/// A node with these settings begins a round after 512 MiB of log. It keeps as much in files to use again, so
/// that it does not create files meanwhile.
const SELDOM: [&str; 2] = ["TimeBetweenLocalCheckpoints = 31", "NoOfFragmentLogFiles = 32"];
const SLOT: Duration = Duration::from_millis(20);
const FILL_CONNECTIONS: usize = 4;

/// Ended operations and the time in which they ended, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Part {
    operations: u64,
    seconds: f64,
}

impl Part {
    fn add(&mut self, operations: u64, seconds: f64) {
        self.operations += operations;
        self.seconds += seconds;
    }

    fn per_s(self) -> f64 {
        self.operations as f64 / self.seconds
    }
}

/// A window: what ended while a round was running, and what ended without one.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    during: Part,
    without: Part,
    p99_us: f64,
    /// Bytes and milliseconds of the rounds that ended in the window.
    written_bytes: u64,
    round_ms: u64,
}

/// Measures the throughput of all works.
///
/// # Errors
/// A server fails.
pub fn run(options: &CheckpointsOptions) -> Outcome<Vec<Verdict>> {
    let servers = [start_junctor(&options.junctor(&[]))?, start_junctor(&options.junctor(&SELDOM))?];
    for server in &servers {
        server.execute(&["CREATE DATABASE sbtest"])?;
        fill_over(server, options.rows, FILL_CONNECTIONS)?;
    }
    let columns = ["operation, node", "per s", "in rounds", "without", "ratio", "p99 us", "s in rounds", "MB/s"];
    let mut table = Table::new(&columns);
    let (mut verdicts, mut run) = (Vec::new(), 0);
    for work in WORKS {
        let mut windows = [const { Vec::new() }; 2];
        for round in 0..options.windows as usize {
            for turn in 0..servers.len() {
                let side = (turn + round) % servers.len();
                run = u8::wrapping_add(run, 1);
                windows[side].push(measure(options, &servers[side], work, run)?);
            }
        }
        for (windows, node) in windows.iter().zip(["default settings", "seldom"]) {
            table.row(row(&format!("{}, {node}", work.name()), windows));
        }
        let [default, _] = &windows;
        verdicts.push(verdict(work, default));
    }
    println!("{table}");
    for server in servers {
        server.stop()?;
    }
    Ok(verdicts)
}

fn measure(options: &CheckpointsOptions, server: &Server, work: Work, run: u8) -> Outcome<Window> {
    let load = EventLoad::of_clients(server.address, work, options.clients, options.rows);
    let load = EventLoad { time: Duration::from_secs(options.seconds), run, ..load };
    let ended = AtomicU64::new(0);
    let mut connection = server.connect()?;
    thread::scope(|scope| {
        let report = scope.spawn(|| load.run_counted(|| Ok(Duration::ZERO), &ended));
        thread::sleep(load.warm_up);
        let window = watch(&mut connection, &ended, load.time);
        let report = report.join().map_err(|_| Failure::new("a thread of the load panicked"))??;
        let p99_us = report.latencies.percentile_us(990);
        window.map(|window| Window { p99_us, ..window })
    })
}

/// Counts the operations of slots. A slot in which a round begins or ends does not count.
fn watch(connection: &mut Connection, ended: &AtomicU64, time: Duration) -> Outcome<Window> {
    let mut window = Window::default();
    let mut look = || -> Outcome<_> {
        let round = rounds::last(connection)?.unwrap_or_default();
        Ok((round, Instant::now(), ended.load(Ordering::Relaxed)))
    };
    let mut last = look()?;
    let end = Instant::now() + time;
    while Instant::now() < end {
        thread::sleep(SLOT);
        let now = look()?;
        let (was, is) = (&last.0, &now.0);
        if (was.generation, was.is_running) == (is.generation, is.is_running) {
            let part = if is.is_running { &mut window.during } else { &mut window.without };
            part.add(now.2 - last.2, (now.1 - last.1).as_secs_f64());
        } else if !is.is_running {
            window.written_bytes += is.written_bytes;
            window.round_ms += is.duration_ms;
        }
        last = now;
    }
    Ok(window)
}

fn sum(windows: &[Window], part: impl Fn(&Window) -> Part) -> Part {
    let mut sum = Part::default();
    windows.iter().map(part).for_each(|part| sum.add(part.operations, part.seconds));
    sum
}

fn row(name: &str, windows: &[Window]) -> Vec<String> {
    let (during, without) = (sum(windows, |window| window.during), sum(windows, |window| window.without));
    let all = Part { operations: during.operations + without.operations, seconds: during.seconds + without.seconds };
    let per_s = |part: Part| if part.seconds > 0.0 { format!("{:.0}", part.per_s()) } else { "-".to_owned() };
    let bytes: u64 = windows.iter().map(|window| window.written_bytes).sum();
    let ms: u64 = windows.iter().map(|window| window.round_ms).sum();
    vec![
        name.to_owned(),
        per_s(all),
        per_s(during),
        per_s(without),
        ratios(windows).map_or("-".to_owned(), |ratio| format!("{:.2}", 1.0 / ratio.mean)),
        format!("{:.0}", median(&windows.iter().map(|window| window.p99_us).collect::<Vec<_>>())),
        format!("{:.1} of {:.0}", during.seconds, all.seconds),
        if ms > 0 { format!("{:.0}", bytes as f64 / 1000.0 / ms as f64) } else { "-".to_owned() },
    ]
}

/// Throughput without a round by that during one, over the windows that have both.
fn ratios(windows: &[Window]) -> Option<Interval> {
    let is_compared = |part: Part| part.seconds >= COMPARED_S_MIN && part.operations > 0;
    let compared = windows.iter().filter(|window| is_compared(window.during) && is_compared(window.without));
    ratio_interval(&compared.map(|window| window.without.per_s() / window.during.per_s()).collect::<Vec<_>>())
}

fn verdict(work: Work, windows: &[Window]) -> Verdict {
    let interval = ratios(windows);
    let range = interval.map(|interval| format!(" ({:.2} to {:.2})", interval.low, interval.high));
    Verdict {
        what: format!("{}: throughput without by that during a round{}", work.name(), range.unwrap_or_default()),
        allowed_max: SLOWDOWN_MAX,
        measured: interval.map_or(f64::NAN, |interval| interval.mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_with_both_kinds_of_slots_are_compared() {
        let part = |operations, seconds| Part { operations, seconds };
        let window = |during, without| Window { during, without, ..Window::default() };
        let windows = [
            window(part(80, 2.0), part(100, 2.0)),
            window(part(1, 0.1), part(900, 1.0)),
            window(part(40, 1.0), part(50, 1.0)),
        ];
        let verdict = verdict(Work::Update, &windows);
        assert!((verdict.measured - 50.0 / 40.0).abs() < 1e-9, "{}", verdict.measured);
        assert!(!verdict.is_met());
    }
}
