//! The options of `cluster-cost`.

use std::path::PathBuf;
use std::time::Duration;

use crate::process::{ClusterOptions, JunctorOptions};

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Messages, bytes, syncs and CPU time of each commit
    Commits,
    /// Messages that wait for one another until a commit is acknowledged
    Hops,
    /// Latency of commits at half of the greatest throughput
    Latency,
    /// CPU time of sysbench's `oltp_read_write` and of reads, compared with a node alone
    Sysbench,
    /// Throughput over 1, 2 and 4 connections between replicas
    Sockets,
    /// MariaDB with Galera and Apache Ignite beside it: throughput, latency, gaps of service after kills
    Peers,
}

/// Options of `cluster-cost`.
#[derive(Clone, Debug, clap::Args)]
pub struct ClusterCostOptions {
    /// Binary of the nodes [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    pub junctor: Option<PathBuf>,
    /// The parts [default: all]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub parts: Vec<Part>,
    /// Measured seconds of a run
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Runs of each side; the sides alternate
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Rows of the table
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1000..=10_000_000))]
    pub rows: u64,
    /// Connections of a load
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=256))]
    pub clients: u32,
    /// How often each of the two nodes of each system is killed beside those of other makers
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub kills: u32,
    /// Nodes that only serve clients, of the cluster in three tiers
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub sql_nodes: u8,
    /// CPUs of a data node of the cluster; the node alone has twice as many
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub node_cpus: u32,
    /// `commit_durability` of the nodes, disk or memory; the part peers has both
    #[arg(long, default_value = "memory")]
    pub durability: String,
    /// By how many milliseconds each message is delayed when hops are counted
    #[arg(long, value_name = "MS", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=8))]
    pub delay_ms: u64,
}

/// The sides that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A node alone, with its data on disk.
    Alone,
    /// Two data nodes with a replica each, which serve clients.
    TwoTier,
    /// The same, and clients at other nodes.
    ThreeTier,
}

impl Shape {
    pub fn name(self) -> &'static str {
        match self {
            Shape::Alone => "a node alone",
            Shape::TwoTier => "2 replicas",
            Shape::ThreeTier => "2 replicas, clients at SQL nodes",
        }
    }
}

impl ClusterCostOptions {
    /// Whether a part is wanted.
    pub fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    /// The time of a run.
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// A node that keeps its data on disk, for so many CPUs.
    fn node_of(&self, cpus: u32) -> JunctorOptions {
        let settings = vec![
            format!("commit_durability = {:?}", self.durability),
            format!("NumCPUs = {cpus}"),
            "TotalMemory = \"1G\"".into(),
            "cpu_binding = false".into(),
        ];
        JunctorOptions { binary: self.junctor.clone(), is_durable: true, settings, ..JunctorOptions::default() }
    }

    /// A node alone, for the CPUs of both data nodes.
    pub fn node(&self) -> JunctorOptions {
        self.node_of(2 * self.node_cpus)
    }

    /// A cluster of this shape.
    pub fn cluster(&self, shape: Shape) -> ClusterOptions {
        ClusterOptions {
            junctor: self.node_of(self.node_cpus),
            data_nodes: 2,
            replicas: 2,
            sql_nodes: if shape == Shape::ThreeTier { self.sql_nodes } else { 0 },
            sockets: 1,
            delay: Duration::ZERO,
        }
    }
}
