//! A node alone or a cluster, with the table of sysbench.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::counters::Counters;
use super::load::{Load, LoadReport, Operation};
use super::options::{ClusterCostOptions, Shape};
use crate::Outcome;
use crate::fill::fill;
use crate::process::{Cluster, ClusterOptions, Server, measure, start_cluster, start_junctor};
use crate::sysbench::{StatementMode, SysbenchReport, SysbenchRun};

enum Nodes {
    Alone([Server; 1]),
    Cluster(Cluster),
}

/// A running side.
pub struct Side {
    pub shape: Shape,
    nodes: Nodes,
    begin: Instant,
    rows: u64,
}

/// An operation of a load: how it went, and its costs.
#[derive(Clone)]
pub struct Cost {
    pub report: LoadReport,
    pub each: Counters,
}

impl Side {
    /// Starts the nodes, and fills the table.
    ///
    /// # Errors
    /// They do not start.
    pub fn start(options: &ClusterCostOptions, shape: Shape) -> Outcome<Side> {
        match shape {
            Shape::Alone => {
                let nodes = Nodes::Alone([start_junctor(&options.node())?]);
                Side::filled(options, shape, nodes)
            }
            _ => Side::of_cluster(options, shape, &options.cluster(shape)),
        }
    }

    /// Starts a cluster with these options, and fills the table.
    ///
    /// # Errors
    /// It does not start.
    pub fn of_cluster(options: &ClusterCostOptions, shape: Shape, cluster: &ClusterOptions) -> Outcome<Side> {
        Side::filled(options, shape, Nodes::Cluster(start_cluster(cluster)?))
    }

    fn filled(options: &ClusterCostOptions, shape: Shape, nodes: Nodes) -> Outcome<Side> {
        let side = Side { shape, nodes, begin: Instant::now(), rows: options.rows };
        let first = &side.nodes()[0];
        first.execute(&["CREATE DATABASE sbtest"])?;
        fill(first, options.rows)?;
        Ok(side)
    }

    /// All processes.
    pub fn nodes(&self) -> &[Server] {
        match &self.nodes {
            Nodes::Alone(node) => node,
            Nodes::Cluster(cluster) => &cluster.nodes,
        }
    }

    /// The nodes that clients use.
    pub fn serving(&self) -> &[Server] {
        match &self.nodes {
            Nodes::Alone(node) => node,
            Nodes::Cluster(cluster) if self.shape == Shape::ThreeTier => cluster.sql(),
            Nodes::Cluster(cluster) => cluster.data(),
        }
    }

    fn is_cluster(&self) -> bool {
        matches!(self.nodes, Nodes::Cluster(_))
    }

    /// The counts of a second without a load.
    ///
    /// # Errors
    /// A node does not answer.
    pub fn idle(&self) -> Outcome<Counters> {
        Counters::of_idle_second(self.nodes(), self.is_cluster(), self.begin)
    }

    fn load(&self, operation: Operation, clients: u32, time: Duration) -> Load {
        let at: Vec<SocketAddr> = self.serving().iter().map(|server| server.address).collect();
        Load { at, operation, clients, rows: self.rows, time, per_s: None }
    }

    /// Runs a load in a closed loop, and counts.
    ///
    /// # Errors
    /// A client or a node fails.
    pub fn cost(&self, operation: Operation, clients: u32, time: Duration, idle: &Counters) -> Outcome<Cost> {
        let read = || Counters::read(self.nodes(), self.is_cluster(), self.begin);
        let before = read()?;
        let report = self.load(operation, clients, time).run()?;
        let each = (read()? - before).of_each(report.operations, idle);
        Ok(Cost { report, each })
    }

    /// Runs a load, at a given rate if there is one.
    ///
    /// # Errors
    /// A client fails.
    pub fn run(&self, operation: Operation, clients: u32, time: Duration, per_s: Option<f64>) -> Outcome<LoadReport> {
        Load { per_s, ..self.load(operation, clients, time) }.run()
    }

    /// Runs a script of sysbench at nodes that clients use, at most so many. Returns its report and the CPU
    /// time of all nodes for each event, in microseconds.
    ///
    /// # Errors
    /// sysbench or a node fails.
    pub fn sysbench(
        &self,
        script: &str,
        threads: u32,
        (time_s, nodes_max): (u64, usize),
    ) -> Outcome<(SysbenchReport, f64)> {
        let serving = self.serving().iter().take(nodes_max);
        let hosts: Vec<String> = serving.map(|server| server.address.ip().to_string()).collect();
        let run = SysbenchRun {
            script: script.into(),
            database: "sbtest".into(),
            rows: self.rows,
            threads,
            time_s,
            events: 0,
            mode: StatementMode::Prepared,
            arguments: vec![format!("--mysql-host={}", hosts.join(","))],
        };
        let before = self.cpu_time()?;
        let report = run.run(&self.serving()[0])?;
        let cpu = self.cpu_time()?.saturating_sub(before);
        let each = cpu.as_secs_f64() * 1e6 / report.events.max(1) as f64;
        Ok((report, each))
    }

    fn cpu_time(&self) -> Outcome<Duration> {
        self.nodes()
            .iter()
            .map(|node| {
                let (user, system) = measure::cpu_time_by_mode(node.process_id())?;
                Ok(user + system)
            })
            .sum()
    }
}
