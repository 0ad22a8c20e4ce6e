//! Nodes that stop in order, by SIGTERM.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use junctor_bench::mysql::{ClientError, Connection};
use rustix::process::Signal;

use super::nodes::{Cluster, Row, wait_until};

/// Two data nodes, a management node that votes, and a node without data.
const ROLES: [&str; 4] = ["data,sql", "data,sql", "management", "sql"];

fn is_whole(rows: &[Row]) -> bool {
    rows[..2].iter().all(|row| row.state == "SERVING" && row.is_durable) && rows[2].state == "CONNECTED"
}

/// Clients that add 1 to counters, each to its own.
struct Writers {
    threads: Vec<JoinHandle<(Vec<String>, Duration)>>,
    is_over: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
}

impl Writers {
    fn begin(addresses: &[SocketAddr], is_transaction: bool) -> Writers {
        let (is_over, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let begin = |(id, address): (usize, &SocketAddr)| {
            let (address, is_over, acknowledged) = (*address, is_over.clone(), acknowledged.clone());
            std::thread::spawn(move || write(address, id, is_transaction, (&is_over, &acknowledged)))
        };
        let threads = addresses.iter().enumerate().map(begin).collect();
        Writers { threads, is_over, acknowledged }
    }

    fn await_progress(&self) {
        let before = self.acknowledged.load(Ordering::Relaxed);
        wait_until("the clients go on", || (self.acknowledged.load(Ordering::Relaxed) > before + 50).then_some(()));
    }

    /// Ends the clients, and returns the errors they got and their longest transaction.
    fn end(self) -> (Vec<String>, Duration) {
        self.is_over.store(true, Ordering::Relaxed);
        let ends = self.threads.into_iter().map(|thread| thread.join().expect("a client has not panicked"));
        let (errors, times): (Vec<_>, Vec<_>) = ends.unzip();
        (errors.concat(), times.into_iter().max().unwrap_or_default())
    }
}

/// Writes until all is over or the connection ends. Returns the errors, and the time of the longest
/// transaction.
fn write(
    address: SocketAddr,
    id: usize,
    is_transaction: bool,
    (is_over, acknowledged): (&AtomicBool, &AtomicU64),
) -> (Vec<String>, Duration) {
    let mut session = Connection::open(address, "").expect("root may log in");
    let update = format!("UPDATE d.t SET n = n + 1 WHERE id = {id}");
    let statements: &[&str] = if is_transaction { &["BEGIN", &update, "COMMIT"] } else { &[&update] };
    let (mut errors, mut longest) = (Vec::new(), Duration::ZERO);
    while !is_over.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let result = statements.iter().try_for_each(|statement| session.query(statement).map(drop));
        longest = longest.max(begin.elapsed());
        match result {
            Ok(()) => _ = acknowledged.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                errors.push(format!("{error:?}"));
                if session.query("SELECT 1").is_err() {
                    break;
                }
            }
        }
    }
    (errors, longest)
}

fn filled(name: &str) -> Cluster {
    let mut cluster = Cluster::new(name, &ROLES, "");
    cluster.start_serving([1, 4]);
    let mut session = cluster.session(1);
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO d.t VALUES (0,0),(1,0),(2,0)",
    ] {
        session.query(statement).expect(statement);
    }
    cluster.await_rows(1, "the cluster is whole", is_whole);
    cluster
}

fn sum(cluster: &mut Cluster, at: u8) -> u64 {
    let result = cluster.session(at).query("SELECT SUM(n) FROM d.t").expect("a sum");
    result.rows[0][0].as_deref().and_then(|text| text.parse().ok()).expect("a number")
}

#[test]
fn clients_of_a_node_without_data_get_their_answers_before_it_stops() {
    let mut cluster = filled("stop-sql");
    let mut written = 0;
    for is_transaction in [false, true, false] {
        let address = cluster.address(4);
        let writers = Writers::begin(&[address; 3], is_transaction);
        writers.await_progress();
        cluster.signal(4, Signal::TERM);
        let status = cluster.await_end(4);
        assert!(status.success(), "{status}: {}", cluster.log(4));
        let acknowledged = Arc::clone(&writers.acknowledged);
        let (errors, longest) = writers.end();
        assert!(errors.iter().all(|error| !error.contains("1180")), "{errors:?}");
        written += acknowledged.load(Ordering::Relaxed);
        let found = sum(&mut cluster, 1);
        // The node stops what runs for longer.
        let cut = if longest >= Duration::from_millis(900) { 3 } else { 0 };
        assert!((written..=written + cut).contains(&found), "{found}, {written} acknowledged, {longest:?}, {errors:?}");
        written = found;
        cluster.start(4);
        cluster.await_address(4);
    }
}

#[test]
fn an_open_transaction_is_rolled_back_and_its_client_hears_the_end_of_the_connection() {
    let mut cluster = filled("stop-open");
    let mut session = cluster.session(4);
    for statement in ["BEGIN", "UPDATE d.t SET n = 5 WHERE id = 1"] {
        session.query(statement).expect(statement);
    }
    cluster.signal(4, Signal::TERM);
    let status = cluster.await_end(4);
    assert!(status.success(), "{status}: {}", cluster.log(4));
    // An unread error would not fit the statement.
    let error = session.query("COMMIT").expect_err("the node has ended");
    assert!(matches!(error, ClientError::Io(_)), "{error:?}");
    cluster.session(1).query("UPDATE d.t SET n = n + 1 WHERE id = 1").expect("no lock is left");
    assert_eq!(sum(&mut cluster, 1), 1);
}

#[test]
fn every_node_stops_in_order_and_the_cluster_starts_again_with_all_rows() {
    let mut cluster = filled("stop-all");
    cluster.session(4).query("UPDATE d.t SET n = 7").expect("an update");
    for _ in 0..2 {
        (1..=4).for_each(|node| cluster.signal(node, Signal::TERM));
        for node in 1..=4 {
            let status = cluster.await_end(node);
            assert!(status.success(), "node {node}: {status}: {}", cluster.log(node));
        }
        cluster.start_serving([1, 4]);
        cluster.await_rows(1, "the cluster is whole", is_whole);
        assert_eq!(sum(&mut cluster, 4), 21);
    }
}

#[test]
fn a_data_node_that_stops_leaves_first_and_loses_nothing() {
    let mut cluster = filled("stop-data");
    let mut before = 0;
    for node in [2, 1] {
        let address = cluster.address(4);
        let writers = Writers::begin(&[address; 3], false);
        writers.await_progress();
        cluster.signal(node, Signal::TERM);
        let status = cluster.await_end(node);
        assert!(status.success(), "{status}: {}", cluster.log(node));
        writers.await_progress();
        let acknowledged = Arc::clone(&writers.acknowledged);
        let (errors, _) = writers.end();
        let left = format!("node {node}: leaves, because it stops");
        assert!((1..=3).any(|at| cluster.log(at).contains(&left)), "{}", cluster.folder().display());
        // The next epoch rolls back what is committing at that moment.
        let is_expected = |error: &String| ["1180", "1213", "1296"].iter().any(|errno| error.contains(errno));
        assert!(errors.iter().all(is_expected), "{errors:?}");
        let unknown = errors.iter().filter(|error| error.contains("1180")).count() as u64;
        let (least, found) = (before + acknowledged.load(Ordering::Relaxed), sum(&mut cluster, 4));
        assert!((least..=least + unknown).contains(&found), "{found}, {least} acknowledged, {errors:?}");
        before = found;
        cluster.start(node);
        cluster.await_rows(4, "the cluster is whole", is_whole);
    }
}
