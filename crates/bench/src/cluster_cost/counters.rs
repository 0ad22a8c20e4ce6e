//! The counters of all nodes of a cluster, and their increase for each operation of a load.

use std::ops::Sub;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Server, measure};
use crate::{Failure, Outcome};

/// Time after which a node shows the newest figures of its log.
const REFRESH: Duration = Duration::from_millis(200);
/// The figures of an idle cluster are those of this time.
const IDLE: Duration = Duration::from_millis(1500);

/// Counts since the start of the processes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Seconds since some moment.
    pub seconds: f64,
    /// Signals between nodes, and the frames and bytes that carried them.
    pub signals: f64,
    pub frames: f64,
    pub bytes: f64,
    /// Calls that sync the log files of the data nodes, and the records of commits in them.
    pub syncs: f64,
    pub records: f64,
    /// CPU time of all processes in microseconds, in user and kernel mode.
    pub user_us: f64,
    pub system_us: f64,
    /// How often a thread of a node went to sleep.
    pub sleeps: f64,
}

impl Sub for Counters {
    type Output = Counters;

    fn sub(self, before: Counters) -> Counters {
        self.with(&before, |now, then| now - then)
    }
}

impl Counters {
    /// Reads all counters. `has_links` says whether the nodes are a cluster.
    ///
    /// # Errors
    /// A node does not answer, or a process has ended.
    pub fn read(nodes: &[Server], has_links: bool, begin: Instant) -> Outcome<Counters> {
        let mut all = Counters { seconds: begin.elapsed().as_secs_f64(), ..Counters::default() };
        // First the CPU time: the questions below need some.
        for node in nodes {
            let (user, system) = measure::cpu_time_by_mode(node.process_id())?;
            all.user_us += user.as_secs_f64() * 1e6;
            all.system_us += system.as_secs_f64() * 1e6;
            all.sleeps +=
                measure::thread_times(node.process_id())?.iter().map(|thread| thread.sleeps as f64).sum::<f64>();
        }
        if has_links {
            let of_links = "SELECT SUM(sent_signals), SUM(sent_frames), SUM(sent_bytes) FROM junctor_info.links";
            [all.signals, all.frames, all.bytes] = numbers(&nodes[0], of_links)?;
        }
        thread::sleep(REFRESH);
        for node in nodes {
            // Only data nodes have a log. A management node serves no clients.
            let of_log = "SELECT COALESCE(SUM(syncs), 0), COALESCE(SUM(records), 0), 0 FROM junctor_info.logspaces";
            if let Ok([syncs, records, _]) = numbers(node, of_log) {
                all.syncs += syncs;
                all.records += records;
            }
        }
        Ok(all)
    }

    fn with(&self, other: &Counters, act: impl Fn(f64, f64) -> f64) -> Counters {
        Counters {
            seconds: act(self.seconds, other.seconds),
            signals: act(self.signals, other.signals),
            frames: act(self.frames, other.frames),
            bytes: act(self.bytes, other.bytes),
            syncs: act(self.syncs, other.syncs),
            records: act(self.records, other.records),
            user_us: act(self.user_us, other.user_us),
            system_us: act(self.system_us, other.system_us),
            sleeps: act(self.sleeps, other.sleeps),
        }
    }

    /// CPU time in microseconds.
    pub fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }

    /// The counts of a second without a load: leases, reports of the log, ticks of the voters.
    ///
    /// # Errors
    /// As [`Counters::read`].
    pub fn of_idle_second(nodes: &[Server], has_links: bool, begin: Instant) -> Outcome<Counters> {
        let before = Counters::read(nodes, has_links, begin)?;
        thread::sleep(IDLE);
        let counted = Counters::read(nodes, has_links, begin)? - before;
        Ok(counted.with(&counted, |count, _| count / counted.seconds))
    }

    /// The counts for each operation, less the counts of the time without a load. CPU time, syncs and sleeps
    /// are not reduced: under load they serve operations.
    pub fn of_each(&self, operations: u64, idle: &Counters) -> Counters {
        let operations = operations.max(1) as f64;
        let each = |counted: f64, idle: f64| (counted - idle * self.seconds).max(0.0) / operations;
        let plain = self.with(self, |count, _| count / operations);
        Counters {
            signals: each(self.signals, idle.signals),
            frames: each(self.frames, idle.frames),
            bytes: each(self.bytes, idle.bytes),
            ..plain
        }
    }
}

fn numbers(server: &Server, query: &str) -> Outcome<[f64; 3]> {
    let rows = server.connect()?.query(query)?.rows;
    let number = |column: usize| rows.first()?.get(column)?.as_deref()?.parse().ok();
    match [number(0), number(1), number(2)] {
        [Some(first), Some(second), Some(third)] => Ok([first, second, third]),
        _ => Err(Failure::new(format!("{query} is {rows:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_without_a_load_is_taken_off() {
        let idle = Counters { seconds: 1.0, frames: 10.0, user_us: 100.0, ..Counters::default() };
        let all = Counters { seconds: 2.0, frames: 120.0, user_us: 5000.0, system_us: 1000.0, ..Counters::default() };
        let each = all.of_each(20, &idle);
        assert_eq!((each.frames, each.cpu_us()), (5.0, 300.0));
        assert_eq!((all - idle).frames, 110.0);
    }
}
