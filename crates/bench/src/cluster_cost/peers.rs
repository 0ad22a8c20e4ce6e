//! MariaDB with Galera beside the cluster, in turns: throughput, latency, CPU time, and the gap of service
//! after SIGKILL of a node with data.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::load::{Load, LoadReport, Operation};
use super::options::{ClusterCostOptions, Shape};
use crate::Outcome;
use crate::cluster_kill::longest_gap;
use crate::fill::fill;
use crate::mysql::Connection;
use crate::process::galera::{Galera, start_galera};
use crate::process::{Cluster, Server, measure, start_cluster};
use crate::random::Random;
use crate::report::Table;
use crate::statistics::median;

/// Load before the kill, and after it.
const BEFORE: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(12);
/// A client goes to another node after this time without an answer.
const ANSWER_MAX: Duration = Duration::from_secs(20);
const RETRY_PAUSE: Duration = Duration::from_millis(2);

enum Peer {
    Junctor(Cluster),
    Galera(Galera),
}

impl Peer {
    fn name(&self) -> &'static str {
        match self {
            Peer::Junctor(_) => "Junctor",
            Peer::Galera(_) => "MariaDB with Galera",
        }
    }

    /// The nodes with data, which serve clients.
    fn data(&self) -> &[Server] {
        match self {
            Peer::Junctor(cluster) => cluster.data(),
            Peer::Galera(galera) => &galera.nodes,
        }
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.data().iter().map(|server| server.address).collect()
    }

    /// The arbitrators are left out: they need next to nothing.
    fn cpu_us(&self) -> Outcome<f64> {
        let times = self.data().iter().map(|server| measure::cpu_time_by_mode(server.process_id()));
        times.map(|times| times.map(|(user, system)| (user + system).as_secs_f64() * 1e6)).sum()
    }

    /// Kills the first node. In the cluster of Junctor it often has the sequencer.
    fn kill_first(&mut self) -> Outcome<()> {
        match self {
            Peer::Junctor(cluster) => cluster.kill_first(),
            Peer::Galera(galera) => galera.nodes.remove(0).kill(),
        }
    }
}

/// Measures all, and prints tables.
///
/// # Errors
/// A cluster fails.
pub fn run(options: &ClusterCostOptions) -> Outcome<()> {
    // Galera acknowledges a commit once all nodes have its writes in memory.
    let arguments = ["--innodb-buffer-pool-size=512M", "--innodb-log-file-size=256M"];
    let peers =
        [Peer::Junctor(start_cluster(&options.cluster(Shape::TwoTier))?), Peer::Galera(start_galera(&arguments)?)];
    for peer in &peers {
        let first = &peer.data()[0];
        first.execute(&["CREATE DATABASE sbtest"])?;
        fill(first, options.rows)?;
    }
    let mut table = Table::new(&["operation", "clients", "", "per s", "p50 us", "p99 us", "conflicts", "CPU us"]);
    for operation in [Operation::Select, Operation::Update, Operation::Transfer] {
        for clients in [1, options.clients] {
            let mut runs = [const { Vec::new() }; 2];
            for _ in 0..options.rounds {
                for (peer, runs) in peers.iter().zip(&mut runs) {
                    let load = Load {
                        at: peer.addresses(),
                        operation,
                        clients,
                        rows: options.rows,
                        time: options.time(),
                        per_s: None,
                    };
                    let before = peer.cpu_us()?;
                    let report = load.run()?;
                    let each = (peer.cpu_us()? - before) / report.operations.max(1) as f64;
                    runs.push((report, each));
                }
            }
            for (peer, runs) in peers.iter().zip(&runs) {
                let of =
                    |figure: &dyn Fn(&(LoadReport, f64)) -> f64| median(&runs.iter().map(figure).collect::<Vec<_>>());
                let mut cells = vec![operation.name().to_owned(), clients.to_string(), peer.name().into()];
                cells.push(format!("{:.0}", of(&|run| run.0.per_s)));
                cells.extend([500, 990].map(|part| format!("{:.0}", of(&|run| run.0.latencies.percentile_us(part)))));
                cells.push(runs.iter().map(|run| run.0.conflicts).sum::<u64>().to_string());
                cells.push(format!("{:.1}", of(&|run| run.1)));
                table.row(cells);
            }
        }
    }
    println!("{table}");
    let mut gaps = Table::new(&["SIGKILL of a node with data", "quiet ms", "gap ms"]);
    for peer in peers {
        let name = peer.name();
        let [quiet, gap] = gap(options, peer)?;
        let milliseconds = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e3);
        gaps.row(vec![name.into(), milliseconds(quiet), milliseconds(gap)]);
    }
    println!("{gaps}");
    Ok(())
}

/// The longest time without an acknowledged update before a node is killed, and after it.
fn gap(options: &ClusterCostOptions, mut peer: Peer) -> Outcome<[Duration; 2]> {
    let (is_over, times) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let addresses = peer.addresses();
    thread::scope(|scope| {
        for client in 0..options.clients {
            let (is_over, times, addresses) = (&is_over, &times, &addresses);
            scope.spawn(move || update_until(client, (addresses, options.rows), is_over, times));
        }
        thread::sleep(BEFORE);
        let killed = Instant::now();
        let result = peer.kill_first();
        thread::sleep(AFTER);
        is_over.store(true, Ordering::SeqCst);
        let mut times = std::mem::take(&mut *times.lock().expect("no client has panicked"));
        times.sort_unstable();
        result?;
        let quiet = longest_gap(&times, killed - BEFORE / 2, killed);
        Ok([quiet.min(BEFORE / 2), longest_gap(&times, killed, killed + AFTER)])
    })
}

/// Updates rows of the client's own, and goes to another node when its node fails.
fn update_until(
    client: u32,
    (addresses, rows): (&[SocketAddr], u64),
    is_over: &AtomicBool,
    times: &Mutex<Vec<(Instant, u32)>>,
) {
    let mut random = Random::new(client.into());
    let mut place = client as usize;
    let mut session: Option<Connection> = None;
    while !is_over.load(Ordering::SeqCst) {
        let Some(open) = &mut session else {
            session = open_within(addresses[place % addresses.len()]);
            if session.is_none() {
                place += 1;
                thread::sleep(RETRY_PAUSE);
            }
            continue;
        };
        match Operation::Update.run(open, rows, &mut random) {
            Ok(()) => times.lock().expect("no client has panicked").push((Instant::now(), client)),
            Err(error) if error.errno() == 1213 => {}
            Err(_) => {
                session = None;
                place += 1;
                thread::sleep(RETRY_PAUSE);
            }
        }
    }
}

fn open_within(address: SocketAddr) -> Option<Connection> {
    let stream = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(500)).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(ANSWER_MAX)).ok()?;
    Connection::log_in_over(stream, "sbtest").ok()
}
