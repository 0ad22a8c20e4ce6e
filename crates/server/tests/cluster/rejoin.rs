//! Nodes that return to a cluster with tables, and copy all rows.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use junctor_bench::mysql::Connection;

use super::nodes::{Cluster, Row, wait_until};

/// Two data nodes and a management node that votes.
const ROLES: [&str; 3] = ["data,sql", "data,sql", "management"];

fn is_serving(rows: &[Row]) -> bool {
    rows[..2].iter().all(|row| row.state == "SERVING")
}

fn is_durable(rows: &[Row]) -> bool {
    is_serving(rows) && rows[..2].iter().all(|row| row.is_durable)
}

/// Runs a statement again as long as a change of the membership makes it fail.
fn retry(session: &mut Connection<TcpStream>, statement: &str) {
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
    let mut cluster = Cluster::new(name, &ROLES, "");
    cluster.start_serving([1, 2]);
    let mut session = cluster.session(1);
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
        session.query("COMMIT").expect("a transaction that was open before the node returned");
        cluster.await_rows(left, "its disk counts", is_durable);
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
