//! Figures of each thread of a node: from the operating system, from the node, and from hardware counters.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

use super::counter::{Counts, Kind, ThreadCounters};
use crate::Outcome;
use crate::failure::Explain;
use crate::mysql::Connection;

/// The totals of a thread at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadState {
    /// Name that the node gave it.
    pub name: String,
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Figures that the node reports: microseconds executing, sending, spinning and sleeping, then numbers of
    /// signals, turns and hand-overs. Empty for threads without a scheduler.
    pub account: Vec<u64>,
}

const ACCOUNT: [&str; 7] =
    ["executing_us", "sending_us", "spinning_us", "sleeping_us", "signals", "turns", "hand_overs"];

/// The figures of a thread in one measurement.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ThreadFigures {
    /// Name that the node gave it.
    pub name: String,
    /// CPU time, in per cent of the time.
    pub cpu_percent: f64,
    /// Time spent spinning, in per cent; `None` for threads without a scheduler.
    pub spin_percent: Option<f64>,
    /// Time asleep, in per cent.
    pub sleep_percent: Option<f64>,
    /// Signals handled per second.
    pub signals_per_second: Option<f64>,
    /// Signals and events from other threads per second.
    pub hand_overs_per_second: Option<f64>,
    /// Voluntary context switches per second.
    pub voluntary_switches_per_second: f64,
    /// Involuntary context switches per second.
    pub involuntary_switches_per_second: f64,
    /// Instructions per cycle in user mode; not available without hardware counters.
    pub instructions_per_cycle: Option<f64>,
    /// Cycles in user mode per nanosecond of CPU time. It is below the clock rate by the kernel's share.
    pub gigahertz: Option<f64>,
    /// Hardware counters per 1,000 instructions, by name; only those that are available.
    pub per_thousand_instructions: BTreeMap<&'static str, f64>,
}

/// Measures all threads of a process over a period, with hardware counters.
pub struct ThreadSampler {
    process_id: u32,
    counters: BTreeMap<u32, ThreadCounters>,
    before: BTreeMap<u32, ThreadState>,
}

impl ThreadSampler {
    /// Starts the measurement.
    ///
    /// # Errors
    /// The process has ended, or the node refuses a statement.
    pub fn begin(process_id: u32, connection: &mut Connection) -> Outcome<ThreadSampler> {
        let before = read(process_id, connection)?;
        let counters = before.keys().map(|thread| (*thread, ThreadCounters::start(*thread))).collect();
        Ok(ThreadSampler { process_id, counters, before })
    }

    /// Ends the measurement after `seconds`. Returns the figures of each thread, the busiest first.
    ///
    /// # Errors
    /// The process has ended, or the node refuses a statement.
    pub fn end(mut self, seconds: f64, connection: &mut Connection) -> Outcome<Vec<ThreadFigures>> {
        let counts: BTreeMap<u32, Counts> =
            self.counters.iter_mut().map(|(thread, counters)| (*thread, counters.read())).collect();
        let after = read(self.process_id, connection)?;
        let none = ([None; Kind::ALL.len()], ThreadState::default());
        let mut threads: Vec<ThreadFigures> = after
            .iter()
            .map(|(id, state)| {
                let before = self.before.get(id).unwrap_or(&none.1);
                difference(before, state, counts.get(id).unwrap_or(&none.0), seconds)
            })
            .collect();
        threads.sort_by(|one, other| other.cpu_percent.total_cmp(&one.cpu_percent));
        Ok(threads)
    }
}

fn difference(before: &ThreadState, after: &ThreadState, counts: &Counts, seconds: f64) -> ThreadFigures {
    let a_second = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds;
    let account = |name: &str| {
        let place = ACCOUNT.iter().position(|known| *known == name)?;
        Some(a_second(*before.account.get(place)?, *after.account.get(place)?))
    };
    let percent = |name: &str| account(name).map(|microseconds| microseconds / 1e4);
    let count = |kind: Kind| counts[kind as usize];
    let cpu_ns = after.cpu_ns.saturating_sub(before.cpu_ns) as f64;
    let instructions = count(Kind::Instructions).filter(|count| *count > 0.0);
    let cycles = count(Kind::Cycles).filter(|count| *count > 0.0);
    let of_instructions = |kind: &Kind| Some((kind.name(), count(*kind)? / instructions? * 1000.0));
    ThreadFigures {
        name: after.name.clone(),
        cpu_percent: a_second(before.cpu_ns, after.cpu_ns) / 1e7,
        spin_percent: percent("spinning_us"),
        sleep_percent: percent("sleeping_us"),
        signals_per_second: account("signals"),
        hand_overs_per_second: account("hand_overs"),
        voluntary_switches_per_second: a_second(before.voluntary_switches, after.voluntary_switches),
        involuntary_switches_per_second: a_second(before.involuntary_switches, after.involuntary_switches),
        instructions_per_cycle: instructions.zip(cycles).map(|(instructions, cycles)| instructions / cycles),
        gigahertz: cycles.filter(|_| cpu_ns > 0.0).map(|cycles| cycles / cpu_ns),
        per_thousand_instructions: Kind::ALL[2..].iter().filter_map(of_instructions).collect(),
    }
}

fn read(process_id: u32, connection: &mut Connection) -> Outcome<BTreeMap<u32, ThreadState>> {
    let accounts = accounts(connection)?;
    let folder = format!("/proc/{process_id}/task");
    let mut threads = BTreeMap::new();
    for entry in fs::read_dir(&folder).explain(&folder)? {
        let path = entry?.path();
        let Some(id) = path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()) else { continue };
        let read = |file: &str| fs::read_to_string(path.join(file));
        // A thread may end between the listing and the reading of its files.
        let (Ok(name), Ok(status)) = (read("comm"), read("status")) else { continue };
        let name = name.trim().to_string();
        let (voluntary_switches, involuntary_switches) = switches(&status);
        let cpu_ns = cpu_ns(&read("schedstat").unwrap_or_default(), &read("stat").unwrap_or_default());
        let account = accounts.get(&name).cloned().unwrap_or_default();
        threads.insert(id, ThreadState { name, cpu_ns, voluntary_switches, involuntary_switches, account });
    }
    Ok(threads)
}

fn accounts(connection: &mut Connection) -> Outcome<BTreeMap<String, Vec<u64>>> {
    let statement = format!("SELECT name, {} FROM junctor_info.threadstat", ACCOUNT.join(", "));
    let rows = connection.query(&statement)?.rows;
    let parse = |row: Vec<Option<String>>| {
        let mut values = row.into_iter().flatten();
        // The operating system keeps only fifteen bytes of a thread name.
        let name: String = values.next()?.chars().take(15).collect();
        Some((name, values.map(|value| value.parse().ok()).collect::<Option<Vec<u64>>>()?))
    };
    Ok(rows.into_iter().filter_map(parse).collect())
}

fn switches(status: &str) -> (u64, u64) {
    let number = |label: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(label))?;
        line.trim().parse().ok()
    };
    (number("voluntary_ctxt_switches:").unwrap_or(0), number("nonvoluntary_ctxt_switches:").unwrap_or(0))
}

/// CPU time in nanoseconds, from the Linux scheduler's statistics, or from clock ticks if the kernel does not
/// keep those.
fn cpu_ns(schedstat: &str, stat: &str) -> u64 {
    let exact = schedstat.split_whitespace().next().and_then(|word| word.parse().ok()).filter(|time| *time > 0);
    let by_ticks = || {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = fields.get(11..13)?.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
        Some(ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second())
    };
    exact.or_else(by_ticks).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_is_more_exact_than_ticks() {
        let stat = "7 (a) b (c)) S 5 7 7 0 -1 0 1 2 3 4 100 20 3 4 20 0 1 0 99";
        assert_eq!(cpu_ns("558452468 1468455 64\n", stat), 558_452_468);
        let of_ticks = 120 * 1_000_000_000 / rustix::param::clock_ticks_per_second();
        assert_eq!([cpu_ns("0 0 0", stat), cpu_ns("", stat), cpu_ns("", "")], [of_ticks, of_ticks, 0]);
    }

    #[test]
    fn voluntary_and_involuntary_switches_are_distinguished() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(switches(status), (12, 3));
    }

    #[test]
    fn figures_are_differences_per_second() {
        let state = |cpu_ns, account: &[u64]| ThreadState {
            name: "recv0".into(),
            cpu_ns,
            voluntary_switches: cpu_ns / 1_000_000,
            involuntary_switches: 0,
            account: account.to_vec(),
        };
        let before = state(1_000_000_000, &[0, 0, 0, 0, 10, 1, 0]);
        let after = state(2_000_000_000, &[100, 0, 500_000, 1_000_000, 30, 5, 8]);
        let mut counts: Counts = [None; Kind::ALL.len()];
        counts[Kind::Instructions as usize] = Some(3e9);
        counts[Kind::Cycles as usize] = Some(2e9);
        counts[Kind::BranchMisses as usize] = Some(6e6);
        let figures = difference(&before, &after, &counts, 2.0);
        assert_eq!((figures.cpu_percent, figures.spin_percent, figures.sleep_percent), (50.0, Some(25.0), Some(50.0)));
        assert_eq!((figures.signals_per_second, figures.hand_overs_per_second), (Some(10.0), Some(4.0)));
        assert_eq!((figures.instructions_per_cycle, figures.gigahertz), (Some(1.5), Some(2.0)));
        assert_eq!(figures.per_thousand_instructions, BTreeMap::from([("branch_misses", 2.0)]));
        let without = difference(&before, &state(1, &[]), &[None; Kind::ALL.len()], 2.0);
        assert_eq!((without.spin_percent, without.instructions_per_cycle), (None, None));
    }
}
