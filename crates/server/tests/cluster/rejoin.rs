//! Nodes that return to a cluster with tables, and copy all rows.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use junctor_bench::mysql::Connection;
use junctor_kernel::Random;

use super::nodes::{Cluster, Row, poll, wait_until};

/// Two data nodes and a management node that votes.
const ROLES: [&str; 3] = ["data,sql", "data,sql", "management"];

fn is_serving(rows: &[Row]) -> bool {
    rows[..2].iter().all(|row| row.state == "SERVING")
}

fn is_durable(rows: &[Row]) -> bool {
    is_serving(rows) && rows[..2].iter().all(|row| row.is_durable)
}

/// Runs a statement again as long as a change of the membership makes it fail.
pub fn retry(session: &mut Connection<TcpStream>, statement: &str) {
    wait_until(statement, || match session.query(statement) {
        Ok(_) => Some(()),
        Err(error) => {
            let text = format!("{error:?}");
            assert!(text.contains("1213") || text.contains("1296"), "{statement}: {text}");
            None
        }
    });
}

/// What all tables have, by primary keys and by the unique index.
fn figures(cluster: &mut Cluster, node: u8) -> Vec<String> {
    let mut session = cluster.session(node);
    let queries = [
        "SELECT CONCAT(COUNT(*), ' ', SUM(a), ' ', SUM(b), ' ', SUM(LENGTH(c))) FROM d.t",
        "SELECT COUNT(*) FROM d.t WHERE b BETWEEN 1 AND 1000000",
        "SELECT a FROM d.t WHERE b = 4321",
        "SELECT COUNT(*) FROM d.t WHERE c = 'open'",
        "SELECT CONCAT(COUNT(*), ' ', SUM(LENGTH(b))) FROM d.long_one",
    ];
    let figure = |query: &&str| format!("{:?}", session.query(query).expect("a result").rows);
    queries.iter().map(figure).collect()
}

fn filled(name: &str) -> Cluster {
    filled_cluster(name, &ROLES, "", 1)
}

fn filled_cluster(name: &str, roles: &[&str], settings: &str, client: u8) -> Cluster {
    let mut cluster = Cluster::new(name, roles, settings);
    cluster.start_serving([client; 2]);
    let mut session = cluster.session(client);
    session.query("CREATE DATABASE d").expect("a database");
    session
        .query(
            "CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b INT, c VARCHAR(100), UNIQUE (b)) PARTITION BY \
             KEY (a) PARTITIONS 8",
        )
        .expect("a table");
    session.query("CREATE TABLE d.long_one (a INT PRIMARY KEY, b LONGTEXT)").expect("a table");
    for first in 0..10 {
        let rows: Vec<String> = (1..=500).map(|row| format!("({}, 'row {row}')", first * 500 + row)).collect();
        session.query(&format!("INSERT INTO d.t (b, c) VALUES {}", rows.join(","))).expect("rows");
    }
    session.query("INSERT INTO d.long_one VALUES (1, REPEAT('x', 300000)), (2, NULL)").expect("rows");
    cluster
}

#[test]
fn a_node_that_returns_copies_all_rows_and_serves_alone_later() {
    let mut cluster = filled("rejoin");
    for (lost, left) in [(2, 1), (1, 2)] {
        cluster.kill(lost);
        let mut session = cluster.session(left);
        retry(&mut session, "UPDATE d.t SET c = 'changed' WHERE a % 7 = 0");
        retry(&mut session, "DELETE FROM d.t WHERE a % 11 = 0");
        for _ in 0..20 {
            retry(&mut session, "INSERT INTO d.t (b, c) SELECT MAX(b) + 1, 'new' FROM d.t");
        }
        session.query("BEGIN").expect("a transaction");
        session.query("UPDATE d.t SET c = 'open' WHERE a BETWEEN 100 AND 200").expect("a change");
        cluster.start(lost);
        // Writes go on during the copy.
        let is_over = Arc::new(AtomicBool::new(false));
        let writer = {
            let (mut session, is_over) = (cluster.session(left), Arc::clone(&is_over));
            std::thread::spawn(move || {
                let mut count = 0;
                while !is_over.load(Ordering::Relaxed) {
                    retry(
                        &mut session,
                        &format!("UPDATE d.t SET c = 'during {count}' WHERE a % 401 = {}", count % 401),
                    );
                    retry(&mut session, &format!("DELETE FROM d.t WHERE a = {}", 1000 + count * 3));
                    retry(&mut session, "INSERT INTO d.t (b, c) VALUES (NULL, 'during')");
                    count += 1;
                }
                count
            })
        };
        cluster.await_rows(left, "the node serves", is_serving);
        cluster.await_rows(left, "its disk counts", is_durable);
        // The transaction was open before the node returned. The mark of the disk begins an epoch, which
        // rolls back what commits at that moment.
        if let Err(error) = session.query("COMMIT") {
            assert!(format!("{error:?}").contains("1213"), "{error:?}");
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(writer.join().expect("no write fails") > 0);
        cluster.await_address(lost);
        let expected = figures(&mut cluster, left);
        assert_eq!(figures(&mut cluster, lost), expected, "the copy has the same rows");
        let mut session = cluster.session(lost);
        retry(&mut session, "UPDATE d.t SET c = 'both' WHERE a % 13 = 1");
    }
    let expected = figures(&mut cluster, 1);
    cluster.kill(2);
    assert_eq!(figures(&mut cluster, 1), expected, "the node that copied last has all rows");
    [1, 3].into_iter().for_each(|node| cluster.kill(node));
    cluster.start_serving([1, 2]);
    for node in 1..=2 {
        assert_eq!(figures(&mut cluster, node), expected, "the disks have all rows");
    }
}

/// A client that inserts rows through a node without data, which survives the loss of data nodes.
struct Writer {
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Vec<u32>>,
}

impl Writer {
    /// Returns the rows whose commits were acknowledged in the end.
    fn begin(cluster: &mut Cluster, node: u8, first: u32) -> Writer {
        let is_over = Arc::new(AtomicBool::new(false));
        let (mut session, ends) = (cluster.session(node), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let mut acknowledged = Vec::new();
            let mut row = first;
            while !ends.load(Ordering::Relaxed) {
                row += 1;
                let insert = format!("INSERT INTO d.t (a, b, c) VALUES ({row}, {row}, 'written')");
                match session.query(&insert) {
                    Ok(_) => acknowledged.push(row),
                    Err(error) => {
                        let text = format!("{error:?}");
                        let is_expected = ["1213", "1296", "1180"].iter().any(|code| text.contains(code));
                        assert!(is_expected, "{text}");
                    }
                }
                // A row that changes and one that goes away during the copy.
                let _ = session.query(&format!("UPDATE d.t SET c = CONCAT('row ', {row}) WHERE a = {}", row % 5000));
                let _ = session.query(&format!("DELETE FROM d.t WHERE a = {}", 100 + row % 4900));
            }
            acknowledged
        });
        Writer { is_over, thread }
    }

    fn end(self) -> Vec<u32> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("only expected errors")
    }
}

/// Checks that a node has all of these rows, and returns what it has.
fn check_rows(cluster: &mut Cluster, node: u8, acknowledged: &[u32]) -> Vec<String> {
    let result = cluster.session(node).query("SELECT a FROM d.t WHERE a > 1000000 ORDER BY a").expect("a result");
    let found: Vec<u32> =
        result.rows.iter().map(|row| row[0].as_ref().map_or(0, |a| a.parse().expect("a number"))).collect();
    let lost: Vec<&u32> = acknowledged.iter().filter(|row| found.binary_search(row).is_err()).collect();
    assert!(lost.is_empty(), "node {node} has lost {lost:?}");
    figures(cluster, node)
}

/// The number of rounds of each test that kills nodes.
pub fn rounds() -> u64 {
    std::env::var("JUNCTOR_REJOINS").ok().and_then(|text| text.parse().ok()).unwrap_or(2)
}

/// Kills nodes during a copy: the one that copies, one that others copy from, the one with the sequencer.
#[test]
fn nodes_that_die_during_a_copy_lose_nothing() {
    let mut cluster =
        filled_cluster("rejoin-kills", &["data", "data", "data", "management", "sql"], "NoOfReplicas = 3", 5);
    let is_whole = |rows: &[Row]| rows[..3].iter().all(|row| row.state == "SERVING" && row.is_durable);
    let mut acknowledged = Vec::new();
    let mut random = Random::new(rounds());
    for round in 0..rounds() {
        let writer = Writer::begin(&mut cluster, 5, 1_000_000 + 100_000 * round as u32);
        let copies = 1 + random.below(3) as u8;
        cluster.kill(copies);
        let life = cluster.await_rows(5, "it is evicted", |rows| rows[usize::from(copies) - 1].state != "SERVING")
            [usize::from(copies) - 1]
            .incarnation;
        cluster.start(copies);
        let is_back = |rows: &[Row]| {
            let row = &rows[usize::from(copies) - 1];
            row.incarnation > life && (row.state == "JOINING" || row.state == "SERVING")
        };
        cluster.await_rows(5, "it returns", is_back);
        let second = 1 + random.below(3) as u8;
        cluster.kill(second);
        cluster.start(second);
        cluster.await_rows(5, "all serve", is_whole);
        acknowledged.extend(writer.end());
    }
    let all: Vec<Vec<String>> = [5].into_iter().map(|node| check_rows(&mut cluster, node, &acknowledged)).collect();
    // Each voter serves alone what all have, as long as most of the voters 4, 1 and 2 are there.
    cluster.kill(1);
    assert_eq!(check_rows(&mut cluster, 5, &acknowledged), all[0]);
    cluster.await_rows(5, "it is evicted", |rows| rows[0].state != "SERVING");
    cluster.kill(3);
    assert_eq!(check_rows(&mut cluster, 5, &acknowledged), all[0]);
    cluster.await_rows(5, "it is evicted", |rows| rows[2].state != "SERVING");
    cluster.start(1);
    cluster.await_rows(5, "it is back", |rows| rows[0].state == "SERVING" && rows[0].is_durable);
    cluster.kill(2);
    assert_eq!(check_rows(&mut cluster, 5, &acknowledged), all[0]);
}

/// The only node with all rows dies while the other one copies them. Its disk has them.
#[test]
fn a_copy_ends_with_the_last_node_that_has_all_rows() {
    let mut cluster = filled_cluster("rejoin-source", &["data", "data", "management", "sql"], "", 4);
    let mut acknowledged = Vec::new();
    for round in 0..rounds() {
        let (source, copies) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
        let writer = Writer::begin(&mut cluster, 4, 1_000_000 + 100_000 * round as u32);
        cluster.kill(copies);
        cluster.await_rows(4, "it is evicted", |rows| rows[usize::from(copies) - 1].state != "SERVING");
        cluster.start(copies);
        let is_back = |rows: &[Row]| ["JOINING", "SERVING"].contains(&&*rows[usize::from(copies) - 1].state);
        cluster.await_rows(4, "it returns", is_back);
        cluster.kill(source);
        cluster.start(source);
        // A supervisor starts a node again that ends because its group is lost.
        let whole = poll(std::time::Duration::from_millis(10), || {
            cluster.start_ended();
            is_durable(&cluster.rows(4)).then_some(())
        });
        assert!(whole.is_some(), "all serve; the logs are in {}", cluster.folder().display());
        acknowledged.extend(writer.end());
        let expected = check_rows(&mut cluster, 4, &acknowledged);
        assert_eq!(check_rows(&mut cluster, 4, &acknowledged), expected);
    }
}
