//! A system with two nodes: Junctor, MariaDB with Galera, or Apache Ignite.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::time::Duration;

use super::super::load::{Load, Operation};
use super::super::options::{ClusterCostOptions, Shape};
use crate::fill::{fill, sums, write_rows};
use crate::process::galera::{Galera, start_galera};
use crate::process::ignite::{Ignite, start_ignite};
use crate::process::{Cluster, Server, TemporaryFolder, measure, start_cluster};
use crate::{Failure, Outcome};

/// Time that the clients of Ignite may need beyond that of a load.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// Filling a table may take so long.
const FILL_MAX: Duration = Duration::from_secs(600);
/// The clients of Ignite keep a part of each row, within the memory of their process.
const ROWS_OF_IGNITE_MAX: u64 = 1_000_000;

/// How clients name their rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Sql,
    Key,
}

/// The processes.
pub enum System {
    Junctor(Cluster),
    Galera(Galera),
    Ignite(Ignite),
}

/// A running system with the table of sysbench.
pub struct Peer {
    name: String,
    pub system: System,
    /// The node of Ignite that was started first, which leads the other.
    oldest: usize,
    rows: u64,
}

/// Figures of a load.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub conflicts: u64,
    /// CPU time of the nodes with data for an operation.
    pub cpu_us: f64,
}

/// The node that is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The one that all clients use. Clients of Ignite use both: then it is the oldest node.
    Used,
    Other,
}

impl Peer {
    /// Starts a cluster of Junctor with this `commit_durability`.
    ///
    /// # Errors
    /// It does not start.
    pub fn junctor(options: &ClusterCostOptions, durability: &str) -> Outcome<Peer> {
        let options = ClusterCostOptions { durability: durability.into(), ..options.clone() };
        let cluster = start_cluster(&options.cluster(Shape::TwoTier))?;
        Peer::of_mysql(format!("Junctor, {durability}"), System::Junctor(cluster), options.rows)
    }

    /// Starts MariaDB with Galera. It acknowledges a commit once all nodes have its writes in memory.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn galera(options: &ClusterCostOptions) -> Outcome<Peer> {
        let galera = start_galera(&["--innodb-buffer-pool-size=512M", "--innodb-log-file-size=256M"])?;
        Peer::of_mysql("MariaDB with Galera".into(), System::Galera(galera), options.rows)
    }

    fn of_mysql(name: String, system: System, rows: u64) -> Outcome<Peer> {
        let peer = Peer { name, system, oldest: 0, rows };
        let first = &peer.data()[0];
        first.execute(&["CREATE DATABASE sbtest"])?;
        fill(first, rows)?;
        Ok(peer)
    }

    /// Starts Apache Ignite.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn ignite(options: &ClusterCostOptions) -> Outcome<Peer> {
        let rows = options.rows;
        if rows > ROWS_OF_IGNITE_MAX {
            return Err(Failure::new(format!("its clients take at most {ROWS_OF_IGNITE_MAX} rows")));
        }
        let mut ignite = start_ignite()?;
        let folder = TemporaryFolder::new("rows")?;
        let file = folder.path().join("rows");
        let mut out = BufWriter::new(File::create(&file)?);
        write_rows(&mut out, rows)?;
        out.flush()?;
        ignite.clients.ask(&format!("fill {}", file.display()), FILL_MAX)?;
        Ok(Peer { name: "Apache Ignite".into(), system: System::Ignite(ignite), oldest: 0, rows })
    }

    /// The ways in which clients work.
    pub fn accesses(&self) -> &'static [Access] {
        match self.system {
            System::Ignite(_) => &[Access::Key, Access::Sql],
            _ => &[Access::Sql],
        }
    }

    /// Name in reports.
    pub fn name(&self, access: Access) -> String {
        match (&self.system, access) {
            (System::Ignite(_), Access::Key) => format!("{}, by key", self.name),
            (System::Ignite(_), Access::Sql) => format!("{}, SQL", self.name),
            _ => self.name.clone(),
        }
    }

    /// Name of a node in reports.
    pub fn name_of(&self, victim: Victim) -> &'static str {
        match (&self.system, victim) {
            (System::Ignite(_), Victim::Used) => "the oldest node",
            (System::Ignite(_), Victim::Other) => "the newest node",
            (_, Victim::Used) => "the node of the clients",
            (_, Victim::Other) => "the other node",
        }
    }

    /// Whether an acknowledged update that is lost is an error of this project.
    pub fn is_ours(&self) -> bool {
        matches!(self.system, System::Junctor(_))
    }

    /// The nodes with data, which serve clients.
    fn data(&self) -> &[Server] {
        match &self.system {
            System::Junctor(cluster) => cluster.data(),
            System::Galera(galera) => &galera.nodes,
            System::Ignite(ignite) => &ignite.nodes,
        }
    }

    /// Their addresses, from a node on.
    pub fn addresses(&self, first: usize) -> Vec<SocketAddr> {
        let mut addresses: Vec<SocketAddr> = self.data().iter().map(|server| server.address).collect();
        addresses.rotate_left(first);
        addresses
    }

    /// The arbitrators are left out: they need next to nothing.
    fn cpu_us(&self) -> Outcome<f64> {
        let times = self.data().iter().map(|server| measure::cpu_time_by_mode(server.process_id()));
        times.map(|times| times.map(|(user, system)| (user + system).as_secs_f64() * 1e6)).sum()
    }

    /// Runs a load; `None` if the system cannot do the operation in this way.
    ///
    /// # Errors
    /// A client or a node fails.
    pub fn load(
        &mut self,
        access: Access,
        operation: Operation,
        (clients, time): (u32, Duration),
    ) -> Outcome<Option<Figures>> {
        let before = self.cpu_us()?;
        let at = self.addresses(0);
        let System::Ignite(ignite) = &mut self.system else {
            let report = Load { at, operation, clients, rows: self.rows, time, per_s: None }.run()?;
            let cpu_us = (self.cpu_us()? - before) / report.operations.max(1) as f64;
            let [p50_us, p99_us] = [500, 990].map(|per_mille| report.latencies.percentile_us(per_mille));
            return Ok(Some(Figures { per_s: report.per_s, p50_us, p99_us, conflicts: report.conflicts, cpu_us }));
        };
        let (name, access) = match (operation, access) {
            // Statements of SQL are no part of a transaction there.
            (Operation::Transfer, Access::Sql) => return Ok(None),
            (Operation::Select, _) => ("select", access),
            (Operation::Update, _) => ("update", access),
            (Operation::Transfer, _) => ("transfer", access),
        };
        let access = if access == Access::Key { "key" } else { "sql" };
        let command = format!("load {name} {access} {clients} {}", time.as_millis());
        let answer = ignite.clients.ask(&command, 2 * time + ANSWER_MAX)?;
        let &[count, p50_us, p99_us, operations, conflicts] = answer.as_slice() else {
            return Err(Failure::new(format!("{command}: {answer:?}")));
        };
        let cpu_us = (self.cpu_us()? - before) / operations.max(1) as f64;
        let per_s = count as f64 / time.as_secs_f64();
        Ok(Some(Figures { per_s, p50_us: p50_us as f64, p99_us: p99_us as f64, conflicts, cpu_us }))
    }

    /// Compares what no update changes with what was filled in, at every node.
    ///
    /// # Errors
    /// It differs.
    pub fn check(&mut self) -> Outcome<()> {
        let expected = sums(self.rows).to_vec();
        let mut found = Vec::new();
        if let System::Ignite(ignite) = &mut self.system {
            found.push(ignite.clients.ask("sums", ANSWER_MAX)?);
        } else {
            let query = "SELECT CONCAT(COUNT(*), ' ', SUM(id), ' ', SUM(k)) FROM sbtest.sbtest1";
            for node in self.data() {
                let text = node.connect()?.query_value(query)?.unwrap_or_default();
                found.push(crate::process::ignite::numbers(&text)?);
            }
        }
        match found.iter().all(|found| *found == expected) {
            true => Ok(()),
            false => Err(Failure::new(format!("{}: {found:?} instead of {expected:?}", self.name))),
        }
    }

    /// The node that clients use in this round; the other one is the node that they do not.
    pub fn used(&self, round: u32) -> usize {
        match self.system {
            System::Ignite(_) => self.oldest,
            _ => round as usize % 2,
        }
    }

    /// Starts a node that was killed, and waits until the cluster is whole.
    ///
    /// # Errors
    /// It does not become so.
    pub fn start_again(&mut self, node: usize) -> Outcome<()> {
        match &mut self.system {
            System::Junctor(cluster) => cluster.start_again(node),
            System::Galera(galera) => galera.start_again(node),
            System::Ignite(ignite) => {
                self.oldest = 1 - node;
                ignite.start_again(node)
            }
        }
    }
}
