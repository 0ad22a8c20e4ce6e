//! Alterations that fill indexes, check rows or copy them, in a cluster that goes on or loses nodes.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use junctor_bench::mysql::Connection;
use junctor_kernel::Random;

use super::nodes::{Cluster, Row, wait_until};
use super::rejoin::retry;

/// Two data nodes, a management node that votes, and a node without data, which survives.
const ROLES: [&str; 4] = ["data,sql", "data,sql", "management", "sql"];
const CLIENT: u8 = 4;

/// Alterations of `d.t`, each with a text that SHOW CREATE TABLE has afterwards and not before.
const ALTERATIONS: [(&str, &str); 9] = [
    ("ADD UNIQUE u (c)", "UNIQUE KEY `u`"),
    ("ADD INDEX i (c, b)", "KEY `i`"),
    ("ADD COLUMN d INT NOT NULL DEFAULT 7", "`d` int"),
    ("MODIFY b BIGINT UNSIGNED NOT NULL", "`b` bigint"),
    ("CONVERT TO CHARACTER SET latin1", "latin1"),
    ("ADD CONSTRAINT k FOREIGN KEY (p) REFERENCES d.parent (id)", "CONSTRAINT `k`"),
    ("DROP PRIMARY KEY, ADD KEY (a), ADD PRIMARY KEY (b)", "PRIMARY KEY (`b`)"),
    ("PARTITION BY KEY (b) PARTITIONS 3", "PARTITIONS 3"),
    ("DROP COLUMN d, ADD COLUMN e VARCHAR(20) AS (CONCAT(c, 'x')) STORED", "`e` varchar"),
];

fn is_whole(rows: &[Row]) -> bool {
    rows[..2].iter().all(|row| row.state == "SERVING" && row.is_durable)
}

fn filled(name: &str) -> Cluster {
    let mut cluster = Cluster::new(name, &ROLES, "");
    cluster.start_serving([1, CLIENT]);
    cluster.await_rows(CLIENT, "the cluster is whole", is_whole);
    let mut session = cluster.session(CLIENT);
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.parent (id INT PRIMARY KEY)",
        "INSERT INTO d.parent VALUES (0), (1), (2), (3), (4)",
        "CREATE TABLE d.t (a INT AUTO_INCREMENT PRIMARY KEY, b INT NOT NULL, c VARCHAR(100), p INT, UNIQUE (b)) \
         PARTITION BY KEY (a) PARTITIONS 4",
    ] {
        session.query(statement).expect(statement);
    }
    for first in 0..6 {
        let row = |row: u32| format!("({0}, 'row {0}', {1})", first * 500 + row, row % 5);
        let rows: Vec<String> = (1..=500).map(row).collect();
        session.query(&format!("INSERT INTO d.t (b, c, p) VALUES {}", rows.join(","))).expect("rows");
    }
    cluster
}

/// Clients that insert, change and delete rows of their own.
struct Writers {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<(Vec<u32>, Vec<String>)>>,
}

impl Writers {
    fn begin(addresses: &[SocketAddr], first: u32) -> Writers {
        let is_over = Arc::new(AtomicBool::new(false));
        let begin = |(position, address): (u32, SocketAddr)| {
            let is_over = is_over.clone();
            std::thread::spawn(move || write(address, first + position * 100_000, &is_over))
        };
        let threads = (0..).zip(addresses.iter().copied()).map(begin).collect();
        Writers { is_over, threads }
    }

    /// Ends the clients. Returns the acknowledged rows, and the errors.
    fn end(self) -> (Vec<u32>, Vec<String>) {
        self.is_over.store(true, Ordering::Relaxed);
        let ends = self.threads.into_iter().map(|thread| thread.join().expect("a client has not panicked"));
        let (rows, errors): (Vec<_>, Vec<_>) = ends.unzip();
        (rows.concat(), errors.concat())
    }
}

fn write(address: SocketAddr, first: u32, is_over: &AtomicBool) -> (Vec<u32>, Vec<String>) {
    let mut session = Connection::open(address, "").expect("root may log in");
    let (mut acknowledged, mut errors) = (Vec::new(), Vec::new());
    let mut row = first;
    while !is_over.load(Ordering::Relaxed) {
        row += 1;
        // The row counts once it has its last value.
        let statements = [
            format!("INSERT INTO d.t (b, c, p) VALUES ({row}, 'new {row}', {})", row % 5),
            format!("INSERT INTO d.t (b, c) VALUES ({}, 'gone {row}')", row + 50_000),
            format!("UPDATE d.t SET c = 'written {row}' WHERE b = {row}"),
            format!("DELETE FROM d.t WHERE b = {}", row + 50_000),
        ];
        let failed = statements.iter().find_map(|statement| session.query(statement).err());
        match failed {
            None => acknowledged.push(row),
            Some(error) => errors.push(format!("{error:?}")),
        }
    }
    (acknowledged, errors)
}

/// The data node whose main runs schema changes.
fn sequencer(cluster: &mut Cluster) -> u8 {
    let query = "SELECT node_id FROM junctor_info.nodes WHERE is_sequencer = 1";
    let result = cluster.session(CLIENT).query(query).expect("a status table");
    result.rows[0][0].as_deref().and_then(|id| id.parse().ok()).expect("a node")
}

fn text_of(session: &mut Connection<TcpStream>, query: &str) -> String {
    let result = session.query(query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    format!("{:?}", result.rows)
}

/// The definition without the next number, which differs by what nodes have in hand.
fn definition(cluster: &mut Cluster, node: u8) -> String {
    let text = text_of(&mut cluster.session(node), "SHOW CREATE TABLE d.t");
    let words = text.split(' ').filter(|word| !word.starts_with("AUTO_INCREMENT="));
    words.collect::<Vec<_>>().join(" ")
}

/// Checks that both data nodes, which read their own replicas, have the same rows, that each index has all of
/// them, and that no acknowledged row is lost.
fn check(cluster: &mut Cluster, acknowledged: &[u32]) {
    let mut seen = Vec::new();
    for node in 1..=2 {
        let mut session = cluster.session(node);
        let rows = session.query("SELECT b FROM d.t WHERE c LIKE 'written%' ORDER BY b").expect("rows").rows;
        let found: Vec<u32> =
            rows.iter().map(|row| row[0].as_ref().map_or(0, |b| b.parse().expect("a number"))).collect();
        let lost: Vec<&u32> = acknowledged.iter().filter(|row| found.binary_search(row).is_err()).collect();
        assert!(lost.is_empty(), "node {node} has lost {lost:?}");
        let mut figures = vec![definition(cluster, node), text_of(&mut session, "CHECKSUM TABLE d.t, d.parent")];
        let indexes = session.query("SHOW INDEX FROM d.t").expect("indexes").rows;
        let names: std::collections::BTreeSet<String> = indexes.iter().filter_map(|row| row[2].clone()).collect();
        let all = text_of(&mut session, "SELECT COUNT(*), SUM(b) FROM d.t");
        for name in &names {
            let query = format!("SELECT COUNT(*), SUM(b) FROM d.t FORCE INDEX (`{name}`) WHERE b > 0 AND c > ''");
            assert_eq!(text_of(&mut session, &query), all, "index {name} at node {node}");
        }
        // Each replica has the rows of all tables, also the entries of unique indexes.
        let rows = "SELECT table_id, SUM(live_rows) FROM junctor_info.memoryusage GROUP BY table_id ORDER BY table_id";
        figures.push(text_of(&mut session, rows));
        // The entries of unique keys are found by their keys.
        figures.push(text_of(&mut session, "SELECT b, c FROM d.t WHERE b IN (1, 777, 3000) ORDER BY b"));
        seen.push(figures);
    }
    assert_eq!(seen[0], seen[1], "the replicas are equal");
}

#[test]
fn rows_are_copied_and_checked_while_clients_write() {
    let mut cluster = filled("alter");
    let mut session = cluster.session(CLIENT);
    let addresses = [1, 2, CLIENT].map(|node| cluster.address(node));
    let mut acknowledged = Vec::new();
    for (round, (alteration, result)) in (1..).zip(ALTERATIONS) {
        let writers = Writers::begin(&addresses, round * 1_000_000);
        let before = definition(&mut cluster, 2);
        assert!(!before.contains(result), "{before}");
        session.query(&format!("ALTER TABLE d.t {alteration}")).expect(alteration);
        let (rows, errors) = writers.end();
        assert!(errors.is_empty(), "{alteration}: {errors:?}");
        acknowledged.extend(rows);
        for node in 1..=2 {
            let after = definition(&mut cluster, node);
            assert!(after.contains(result), "{alteration}: {after}");
        }
        check(&mut cluster, &acknowledged);
    }
    let error = session.query("ALTER TABLE d.t ADD UNIQUE v (p)").expect_err("equal values");
    assert!(format!("{error:?}").contains("1062"), "{error:?}");
    let error = session.query("INSERT INTO d.t (b, c, p) VALUES (4000, 'x', 9)").expect_err("no parent");
    assert!(format!("{error:?}").contains("1452"), "{error:?}");
    check(&mut cluster, &acknowledged);
    // A restart of all nodes finds the same on their disks.
    [3, 1, 2].into_iter().for_each(|node| cluster.kill(node));
    [3, 1, 2].into_iter().for_each(|node| cluster.start(node));
    [1, 2].into_iter().for_each(|node| cluster.await_address(node));
    cluster.await_rows(CLIENT, "the cluster is whole", is_whole);
    check(&mut cluster, &acknowledged);
}

/// Kills a data node in the middle of an alteration: the one whose main runs it, or the other one.
#[test]
fn an_alteration_is_finished_or_undone_when_a_data_node_dies() {
    let mut cluster = filled("alter-kills");
    let mut random = Random::new(7);
    let mut acknowledged = Vec::new();
    for (round, (alteration, result)) in (1..).zip(ALTERATIONS) {
        let sequencer = sequencer(&mut cluster);
        let lost = if round % 2 == 0 { sequencer } else { 3 - sequencer };
        // Clients of the node that survives.
        let writers = Writers::begin(&[cluster.address(CLIENT), cluster.address(3 - lost)], round * 1_000_000);
        // The alteration waits for this transaction, before its rows are filled or in its last step.
        let mut holder = cluster.session(3 - lost);
        holder.query("BEGIN").expect("a transaction");
        holder.query("INSERT INTO d.t (b, c) VALUES (900000, 'held')").expect("a row");
        let mut session = cluster.session(CLIENT);
        let connection = text_of(&mut session, "SELECT CONNECTION_ID()");
        let statement = format!("ALTER TABLE d.t {alteration}");
        let altering = std::thread::spawn(move || session.query(&statement).map(drop).map_err(|it| format!("{it:?}")));
        let number: String = connection.chars().filter(char::is_ascii_digit).collect();
        let begun = format!("SELECT INFO FROM information_schema.processlist WHERE ID = {number}");
        wait_until("the alteration begins", || {
            text_of(&mut cluster.session(CLIENT), &begun).contains("ALTER").then_some(())
        });
        // Statements of another session let some time pass.
        for _ in 0..random.below(60) {
            text_of(&mut holder, "SELECT COUNT(*) FROM d.t");
        }
        cluster.kill(lost);
        cluster.await_rows(CLIENT, "it is evicted", |rows| rows[usize::from(lost) - 1].state != "SERVING");
        // Its changes may have been at the lost node.
        let _ = holder.query("COMMIT");
        let outcome = altering.join().expect("an answer");
        cluster.start(lost);
        cluster.await_rows(CLIENT, "the node is back", is_whole);
        cluster.await_address(lost);
        let (rows, errors) = writers.end();
        let is_expected = |error: &String| ["1213", "1296", "1180"].iter().any(|code| error.contains(code));
        assert!(errors.iter().all(is_expected), "{alteration}: {errors:?}");
        acknowledged.extend(rows);
        match &outcome {
            Ok(()) => assert!(definition(&mut cluster, CLIENT).contains(result), "{alteration}"),
            Err(error) => assert!(is_expected(error), "{alteration}: {error}"),
        }
        let mut session = cluster.session(CLIENT);
        retry(&mut session, "DELETE FROM d.t WHERE b = 900000");
        check(&mut cluster, &acknowledged);
        // An undone alteration leaves nothing in the way of the next one.
        if !definition(&mut cluster, CLIENT).contains(result) {
            retry(&mut session, &format!("ALTER TABLE d.t {alteration}"));
            check(&mut cluster, &acknowledged);
        }
    }
}
