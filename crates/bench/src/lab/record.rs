//! One measurement, in the form in which `--json` writes it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::client::Tally;
use super::routing_figures::RoutingFigures;
use super::thread_figures::ThreadFigures;
use super::workload::{Clients, ComparedFigure, Workload};

/// Percentiles of the latencies, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: f64,
    /// Longest latency.
    pub max: f64,
}

/// A measurement of a setup on a workload.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// Name of the workload.
    pub workload: &'static str,
    /// Name of the setup.
    pub setup: &'static str,
    /// Number of the repetition, from 0.
    pub repetition: u32,
    /// Number of clients.
    pub clients: u32,
    /// Measured time in seconds.
    pub seconds: f64,
    /// Operations with correct answers.
    pub operations: u64,
    /// Operations per second.
    pub operations_per_second: f64,
    /// Operations per second in each phase. A workload without phases has one value.
    pub phase_operations_per_second: Vec<f64>,
    /// Transactions that a deadlock or a timeout rolled back. They do not count as operations.
    pub undone: u64,
    /// Latencies of the operations.
    pub latency_us: Latency,
    /// Share of all CPUs that other programs used during the measurement, in per cent. It should be close to
    /// zero.
    pub others_cpu_percent: f64,
    /// CPU time of the node per operation, in microseconds.
    pub cpu_us_per_operation: f64,
    /// Signals and events that crossed from one thread of the node to another, per operation.
    pub hand_overs_per_operation: f64,
    /// Context switches of the node's threads, voluntary and not, per operation.
    pub context_switches_per_operation: f64,
    /// Figures of each thread of the node, the busiest first.
    pub threads: Vec<ThreadFigures>,
    /// Which threads ran reads; empty unless routing is adaptive.
    pub routing: Vec<RoutingFigures>,
}

impl Record {
    /// Creates a record from the sum of all clients and the figures of the threads.
    pub fn new(
        (workload, setup, repetition): (&Workload, &'static str, u32),
        clients: u32,
        seconds: f64,
        tally: Tally,
        (threads, routing): (Vec<ThreadFigures>, Vec<RoutingFigures>),
    ) -> Record {
        let latency = |per_mille| tally.latencies.percentile_us(per_mille);
        let operations = tally.latencies.count();
        let operations_per_second = operations as f64 / seconds;
        let for_each = |sum: f64| if operations == 0 { 0.0 } else { sum / operations_per_second };
        let sum = |figure: fn(&ThreadFigures) -> f64| threads.iter().map(figure).sum::<f64>();
        let switches = sum(|thread| thread.voluntary_switches_per_second + thread.involuntary_switches_per_second);
        let phase_seconds = seconds / workload.phases.len() as f64;
        Record {
            workload: workload.name,
            setup,
            repetition,
            clients,
            seconds,
            operations,
            operations_per_second,
            phase_operations_per_second: tally
                .phase_operations
                .iter()
                .map(|count| *count as f64 / phase_seconds)
                .collect(),
            undone: tally.undone,
            others_cpu_percent: 0.0,
            latency_us: Latency {
                p50: latency(500),
                p95: latency(950),
                p99: latency(990),
                p99_9: latency(999),
                max: latency(1000),
            },
            cpu_us_per_operation: for_each(sum(|thread| thread.cpu_percent * 1e4)),
            hand_overs_per_operation: for_each(sum(|thread| thread.hand_overs_per_second.unwrap_or(0.0))),
            context_switches_per_operation: for_each(switches),
            threads,
            routing,
        }
    }

    /// The figure by which setups are compared. Higher is better.
    pub fn figure(&self, judged: ComparedFigure) -> f64 {
        match judged {
            ComparedFigure::Throughput => self.operations_per_second,
            // The operations per second of one client if each took the median latency.
            ComparedFigure::MedianLatency if self.latency_us.p50 > 0.0 => 1e6 / self.latency_us.p50,
            ComparedFigure::MedianLatency => 0.0,
        }
    }
}

/// Number of clients of a workload if the laboratory has `all`.
pub fn clients_of(workload: &Workload, all: u32) -> u32 {
    match workload.clients {
        Clients::All | Clients::Crowded => all,
        Clients::One => 1,
    }
}

/// The records of one workload by setup, each in the order of repetitions.
pub fn by_setup<'a>(records: &'a [Record], workload: &str) -> BTreeMap<&'static str, Vec<&'a Record>> {
    let mut setups: BTreeMap<&'static str, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.workload == workload) {
        setups.entry(record.setup).or_default().push(record);
    }
    for all in setups.values_mut() {
        all.sort_by_key(|record| record.repetition);
    }
    setups
}

#[cfg(test)]
mod tests {
    use super::super::workload::WORKLOADS;
    use super::*;

    #[test]
    fn shares_of_threads_become_costs_of_operations() {
        let thread = ThreadFigures {
            cpu_percent: 50.0,
            hand_overs_per_second: Some(300.0),
            voluntary_switches_per_second: 40.0,
            involuntary_switches_per_second: 10.0,
            ..ThreadFigures::default()
        };
        let mut tally = Tally { phase_operations: vec![4], undone: 1, ..Tally::default() };
        [400, 100, 200, 300].into_iter().for_each(|latency_ns| tally.latencies.add(latency_ns));
        let record = Record::new((&WORKLOADS[1], "ldm", 0), 2, 2.0, tally, (vec![thread.clone(), thread], Vec::new()));
        assert_eq!((record.operations_per_second, record.latency_us.p50, record.latency_us.max), (2.0, 0.2, 0.4));
        assert_eq!((record.cpu_us_per_operation, record.hand_overs_per_operation), (500_000.0, 300.0));
        assert_eq!((record.context_switches_per_operation, record.phase_operations_per_second[0]), (50.0, 2.0));
        assert_eq!(record.figure(ComparedFigure::MedianLatency), 5_000_000.0);
    }
}
