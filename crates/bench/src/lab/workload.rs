//! The workloads, in a table that is easy to extend. Each is a mix of operations, or several mixes that
//! alternate every second.

use super::operation::Operation;

/// Duration of a phase in seconds.
pub const PHASE_S: u64 = 1;

/// An operation and its weight in the mix.
pub type Share = (u32, Operation);

/// Number of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// All clients of the laboratory.
    All,
    /// A single client.
    One,
    /// All clients of the laboratory on one recv thread. Every other recv thread has the same number of idle
    /// connections.
    Crowded,
}

/// The figure by which setups are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedFigure {
    /// Operations per second.
    Throughput,
    /// Median latency of an operation.
    MedianLatency,
}

/// A workload of the laboratory.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Name in reports.
    pub name: &'static str,
    /// Description for people.
    pub meaning: &'static str,
    /// Number of clients.
    pub clients: Clients,
    /// The figure by which setups are compared.
    pub judged: ComparedFigure,
    /// One mix, or the mixes that alternate.
    pub phases: &'static [&'static [Share]],
}

const LISTS: &[Share] = &[(1, Operation::Keys(100))];
const LONG_LISTS: &[Share] = &[(1, Operation::Keys(500))];
const SUMS: &[Share] = &[(1, Operation::Sum(5_000))];
const POINTS: &[Share] = &[(1, Operation::Point)];
const RANGES: &[Share] = &[(1, Operation::Range)];
const FILTERED_RANGES: &[Share] = &[(1, Operation::FilteredRange)];
const TRANSACTIONS: &[Share] = &[(1, Operation::Transaction)];
const UPDATES: &[Share] = &[(2, Operation::UpdateIndexed), (2, Operation::UpdateOther), (1, Operation::Point)];
const HOT: &[Share] = &[(8, Operation::SinglePartitionKeys(10)), (2, Operation::SinglePartitionUpdate)];

/// All workloads.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "in_list",
        meaning: "batches of 100 key lookups, as an IN list",
        clients: Clients::All,
        judged: ComparedFigure::Throughput,
        phases: &[LISTS],
    },
    Workload {
        name: "point",
        meaning: "single key lookups",
        clients: Clients::All,
        judged: ComparedFigure::Throughput,
        phases: &[POINTS],
    },
    Workload {
        name: "range",
        meaning: "range scans of 100 rows that return all",
        clients: Clients::All,
        judged: ComparedFigure::Throughput,
        phases: &[RANGES],
    },
    Workload {
        name: "range_filter",
        meaning: "range scans of 100 rows with a filter that returns one",
        clients: Clients::All,
        judged: ComparedFigure::Throughput,
        phases: &[FILTERED_RANGES],
    },
    Workload {
        name: "oltp_rw",
        meaning: "the transaction of sysbench's oltp_read_write",
        clients: Clients::All,
        judged: ComparedFigure::Throughput,
        phases: &[TRANSACTIONS],
    },
    Workload {
        name: "update",
        meaning: "two updates of an indexed column, two of another and one lookup of five statements",
        clients: Clients::All,
        judged: ComparedFigure::Throughput,
        phases: &[UPDATES],
    },
    Workload {
        name: "hot_partition",
        meaning: "lists of 10 keys and updates of a table with a single partition, 4 to 1",
        clients: Clients::All,
        judged: ComparedFigure::Throughput,
        phases: &[HOT],
    },
    Workload {
        name: "crowded",
        meaning: "sums over 5,000 rows of clients that all came to the same recv thread",
        clients: Clients::Crowded,
        judged: ComparedFigure::Throughput,
        phases: &[SUMS],
    },
    Workload {
        name: "one_client",
        meaning: "single key lookups of one client alone",
        clients: Clients::One,
        judged: ComparedFigure::MedianLatency,
        phases: &[POINTS],
    },
    Workload {
        name: "changing",
        meaning: "batches of 500 key lookups and sums over 5,000 rows take turns each second, clients as in crowded",
        clients: Clients::Crowded,
        judged: ComparedFigure::Throughput,
        phases: &[LONG_LISTS, SUMS],
    },
];

impl Workload {
    /// Returns the phase at a time in nanoseconds after the start of the measurement. The warm-up belongs to
    /// the last phase.
    pub fn phase_at(&self, since_start_ns: Option<u64>) -> usize {
        let last = self.phases.len() - 1;
        since_start_ns.map_or(last, |time| (time / (PHASE_S * 1_000_000_000)) as usize % self.phases.len())
    }

    /// Seconds to measure if `wanted` are requested, rounded up to whole rounds of all phases.
    pub fn seconds(&self, wanted: f64) -> f64 {
        if self.phases.len() == 1 {
            return wanted;
        }
        let round = (self.phases.len() as u64 * PHASE_S) as f64;
        (wanted / round).ceil().max(1.0) * round
    }

    /// Maps a number from 0 to [`shares`] - 1 to an operation of a phase.
    pub fn operation(&self, phase: usize, mut number: u32) -> Operation {
        let mix = self.phases[phase];
        for (share, operation) in mix {
            match number.checked_sub(*share) {
                None => return *operation,
                Some(rest) => number = rest,
            }
        }
        mix[0].1
    }
}

/// The sum of the weights of a mix.
pub fn total_share(mix: &[Share]) -> u32 {
    mix.iter().map(|(share, _)| share).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> &'static Workload {
        WORKLOADS.iter().find(|workload| workload.name == name).expect("a workload of that name")
    }

    #[test]
    fn phases_take_turns_each_second_and_begin_at_the_start() {
        let changing = named("changing");
        let seconds = [None, Some(0), Some(999_999_999), Some(1_000_000_000), Some(3_500_000_000), Some(4_000_000_000)];
        let phases = seconds.map(|time| changing.phase_at(time));
        assert_eq!(phases, [1, 0, 0, 1, 1, 0]);
        assert_eq!(named("point").phase_at(Some(5_000_000_000)), 0);
    }

    #[test]
    fn a_changing_workload_runs_whole_rounds() {
        let changing = named("changing");
        assert_eq!([0.2, 2.0, 5.0].map(|wanted| changing.seconds(wanted)), [2.0, 2.0, 6.0]);
        assert_eq!(named("point").seconds(0.2), 0.2);
    }

    #[test]
    fn operations_are_drawn_in_their_shares() {
        let update = named("update");
        let all: Vec<Operation> =
            (0..total_share(update.phases[0])).map(|number| update.operation(0, number)).collect();
        let count = |operation| all.iter().filter(|other| **other == operation).count();
        assert_eq!([Operation::UpdateIndexed, Operation::UpdateOther, Operation::Point].map(count), [2, 2, 1]);
    }

    #[test]
    fn every_workload_has_a_unique_name_and_operations() {
        for (place, workload) in WORKLOADS.iter().enumerate() {
            assert!(WORKLOADS[..place].iter().all(|other| other.name != workload.name));
            assert!(workload.phases.iter().all(|mix| total_share(mix) > 0));
        }
    }
}
