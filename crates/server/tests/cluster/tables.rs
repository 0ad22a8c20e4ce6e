//! Tables in a cluster: rows that every node sees, and that survive its end.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use junctor_bench::mysql::Connection;

use super::nodes::{Cluster, wait_until};

/// Two data nodes and a management node that votes.
const ROLES: [&str; 3] = ["data,sql", "data,sql", "management"];

#[test]
fn nodes_without_data_serve_clients() {
    let mut cluster = Cluster::new("sql", &["data", "data", "management", "sql", "sql"], "");
    cluster.start_serving([4, 5]);
    let mut four = cluster.session(4);
    let mut five = cluster.session(5);
    four.query("CREATE DATABASE d").expect("a database");
    five.query(
        "CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b INT, UNIQUE (b)) PARTITION BY KEY (a) PARTITIONS 4",
    )
    .expect("a table");
    for row in 1..=20 {
        let session = if row % 2 == 0 { &mut four } else { &mut five };
        session.query(&format!("INSERT INTO d.t (b) VALUES ({row})")).expect("a row");
        for session in [&mut four, &mut five] {
            let rows = session.query("SELECT COUNT(*), SUM(b) FROM d.t").expect("a result").rows;
            assert_eq!(rows[0][0], Some(row.to_string()), "a commit that was acknowledged is visible everywhere");
        }
    }
    // A lock of a session whose node ends is free again.
    five.query("BEGIN").expect("a transaction");
    five.query("UPDATE d.t SET b = 100 WHERE a = 1").expect("a change");
    five.query("UPDATE d.t SET b = 102 WHERE a = 2").expect("a change");
    let seen = five.query("SELECT b FROM d.t WHERE a = 1").expect("its own change");
    assert_eq!(seen.rows[0][0].as_deref(), Some("100"));
    cluster.kill(5);
    four.query("UPDATE d.t SET b = b + 1000").expect("the locks are free");
    assert_eq!(value(&mut cluster, 4, "SELECT SUM(b) FROM d.t"), Some("20210".to_owned()));
    cluster.start(5);
    cluster.await_address(5);
    assert_eq!(value(&mut cluster, 5, "SELECT SUM(b) FROM d.t"), Some("20210".to_owned()));
    four.query("ALTER TABLE d.t ALTER COLUMN b SET DEFAULT 7").expect("an alteration without rows");
    cluster.session(5).query("DROP TABLE d.t").expect("the other node knows the table");
    let error = four.query("SELECT * FROM d.t").expect_err("it is gone");
    assert!(format!("{error:?}").contains("1146"), "{error:?}");
}

#[test]
fn a_statement_at_a_lost_node_gets_an_answer() {
    let mut cluster = Cluster::new("under-way", &["data,sql", "data,sql", "management", "sql"], "");
    cluster.start_serving([2, 4]);
    cluster.await_address(1);
    let mut holder = cluster.session(2);
    holder.query("CREATE DATABASE d").expect("a database");
    holder.query("CREATE TABLE d.t (a INT PRIMARY KEY, b INT) PARTITION BY KEY (a) PARTITIONS 8").expect("a table");
    let rows: Vec<String> = (1..=40).map(|row| format!("({row}, {row})")).collect();
    holder.query(&format!("INSERT INTO d.t VALUES {}", rows.join(","))).expect("rows");
    // Node 4 runs its statements at node 1.
    let [mut commits, mut ends, mut reads] = [(); 3].map(|()| cluster.session(4));
    for (session, row) in [(&mut commits, 1), (&mut ends, 2), (&mut reads, 3)] {
        session.query("BEGIN").expect("a transaction");
        session.query(&format!("UPDATE d.t SET b = 0 WHERE a = {row}")).expect("a change");
    }
    holder.query("BEGIN").expect("a transaction");
    holder.query("UPDATE d.t SET b = b WHERE a > 30").expect("locks");
    let waiting = ["BEGIN", "SET autocommit = 1"].map(|first| {
        let mut session = cluster.session(4);
        std::thread::spawn(move || {
            session.query(first).expect("no tables");
            let error = session.query("UPDATE d.t SET b = b + 1 WHERE a > 20").expect_err("its node is lost");
            (session, format!("{error:?}"))
        })
    });
    wait_until("both wait", || {
        let waits =
            value(&mut cluster, 1, "SELECT COUNT(DISTINCT waiting_transaction_id) FROM junctor_info.lock_waits");
        (waits.as_deref() == Some("2")).then_some(())
    });
    cluster.kill(1);
    let [explicit, alone] = waiting.map(|thread| thread.join().expect("an answer"));
    assert!(explicit.1.contains("1213"), "{}", explicit.1);
    assert!(alone.1.contains("1180"), "nobody asks for its commit any more: {}", alone.1);
    let error = format!("{:?}", commits.query("COMMIT").expect_err("its changes are lost"));
    assert!(error.contains("1213"), "{error}");
    ends.query("ROLLBACK").expect("it is rolled back");
    let error = format!("{:?}", reads.query("SELECT SUM(b) FROM d.t").expect_err("its changes are lost"));
    assert!(error.contains("1213"), "{error}");
    drop(holder);
    for mut session in [explicit.0, alone.0, commits, ends, reads] {
        retry(&mut session, "UPDATE d.t SET b = b + 1");
    }
    let sum = (820 + 5 * 40).to_string();
    assert_eq!(value(&mut cluster, 4, "SELECT SUM(b) FROM d.t"), Some(sum));
}

fn value(cluster: &mut Cluster, node: u8, query: &str) -> Option<String> {
    cluster.session(node).query(query).expect("a result").rows[0][0].clone()
}

#[test]
fn both_nodes_see_the_same_rows_and_a_restart_keeps_them() {
    let mut cluster = Cluster::new("tables", &ROLES, "");
    cluster.start_serving([1, 2]);
    let mut one = cluster.session(1);
    let mut two = cluster.session(2);
    one.query("CREATE DATABASE d").expect("a database");
    two.query(
        "CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b INT, UNIQUE (b)) PARTITION BY KEY (a) PARTITIONS 4",
    )
    .expect("a table");
    for row in 1..=20 {
        let session = if row % 2 == 0 { &mut one } else { &mut two };
        session.query(&format!("INSERT INTO d.t (b) VALUES ({row})")).expect("a row");
        for node in 1..=2 {
            let count = value(&mut cluster, node, "SELECT COUNT(*) FROM d.t");
            assert_eq!(count, Some(row.to_string()), "a commit that was acknowledged is visible everywhere");
        }
    }
    let error = two.query("INSERT INTO d.t (b) VALUES (7)").expect_err("a duplicate");
    assert!(format!("{error:?}").contains("1062"), "{error:?}");
    one.query("BEGIN").expect("a transaction");
    one.query("UPDATE d.t SET b = b + 100").expect("an update");
    assert_eq!(value(&mut cluster, 2, "SELECT SUM(b) FROM d.t"), Some("210".to_owned()));
    one.query("COMMIT").expect("a commit");
    assert_eq!(value(&mut cluster, 2, "SELECT SUM(b) FROM d.t"), Some("2210".to_owned()));
    // A backup records these rows in several steps.
    one.query("CREATE TABLE d.long_one (a INT PRIMARY KEY, b VARCHAR(200))").expect("a table");
    let rows: Vec<String> = (1..=3000).map(|row| format!("({row}, REPEAT('x', 200))")).collect();
    two.query(&format!("INSERT INTO d.long_one VALUES {}", rows.join(","))).expect("rows");
    one.query("UPDATE d.long_one SET b = 'y' WHERE a % 3 = 0").expect("rows");
    two.query("DELETE FROM d.long_one WHERE a % 5 = 0").expect("rows");
    drop((one, two));

    // Without the management node and one data node, nobody can evict a node.
    [3, 1, 2].into_iter().for_each(|node| cluster.kill(node));
    cluster.start_serving([1, 2]);
    for node in 1..=2 {
        assert_eq!(value(&mut cluster, node, "SELECT SUM(b) FROM d.t WHERE b < 1000"), Some("2210".to_owned()));
        let long = "SELECT CONCAT(COUNT(*), ' ', SUM(LENGTH(b))) FROM d.long_one";
        assert_eq!(value(&mut cluster, node, long), Some(format!("2400 {}", 800 + 1600 * 200)));
        let insert = format!("INSERT INTO d.t (b) VALUES ({})", 1000 * u32::from(node));
        cluster.session(node).query(&insert).expect("a row");
    }
    for node in 1..=2 {
        assert_eq!(value(&mut cluster, node, "SELECT SUM(b) FROM d.t"), Some("5210".to_owned()));
        assert_eq!(value(&mut cluster, node, "SELECT COUNT(*) FROM d.t WHERE b = 2000"), Some("1".to_owned()));
    }
}

/// The data node whose main runs schema changes, by the log.
fn sequencer(cluster: &Cluster) -> u8 {
    wait_until("a membership", || cluster.log(1).rsplit_once("sequencer ")?.1.lines().next()?.trim().parse().ok())
}

/// Runs an autocommit statement again as long as the loss of a node makes it fail.
fn retry(session: &mut Connection<TcpStream>, statement: &str) {
    wait_until(statement, || match session.query(statement) {
        Ok(_) => Some(()),
        Err(error) => {
            let text = format!("{error:?}");
            assert!(text.contains("1213") || text.contains("1296"), "{text}");
            None
        }
    });
}

#[test]
fn a_node_goes_on_with_all_rows_when_the_other_one_is_lost() {
    let mut cluster = Cluster::new("lost", &ROLES, "");
    cluster.start_serving([1, 2]);
    let mut one = cluster.session(1);
    one.query("CREATE DATABASE d").expect("a database");
    one.query("CREATE TABLE d.t (a INT PRIMARY KEY, b INT, UNIQUE (b)) PARTITION BY KEY (a) PARTITIONS 8")
        .expect("a table");
    let mut two = cluster.session(2);
    for row in 1..=40 {
        let session = if row % 2 == 0 { &mut one } else { &mut two };
        session.query(&format!("INSERT INTO d.t VALUES ({row}, {row})")).expect("a row");
    }
    // Node 2 dies with a transaction that has locked all rows, of which it owns half.
    two.query("BEGIN").expect("a transaction");
    two.query("UPDATE d.t SET b = b + 1000").expect("an update");
    cluster.kill(2);
    retry(&mut one, "UPDATE d.t SET b = b + 100");
    assert_eq!(value(&mut cluster, 1, "SELECT SUM(b) FROM d.t"), Some((820 + 40 * 100).to_string()));
    for row in 41..=60 {
        retry(&mut one, &format!("INSERT INTO d.t VALUES ({row}, {row})"));
    }
    one.query("BEGIN").expect("a transaction");
    one.query("DELETE FROM d.t WHERE a > 50").expect("rows");
    one.query("COMMIT").expect("a commit");
    assert_eq!(value(&mut cluster, 1, "SELECT COUNT(*) FROM d.t WHERE b IS NOT NULL"), Some("50".to_owned()));
    // The disk of node 1 has all rows.
    [3, 1].into_iter().for_each(|node| cluster.kill(node));
    [3, 1].into_iter().for_each(|node| cluster.start(node));
    cluster.await_address(1);
    let sum = wait_until("node 1 serves", || {
        let result = cluster.session(1).query("SELECT COUNT(*), SUM(b) FROM d.t").ok()?;
        Some(format!("{:?}", result.rows[0]))
    });
    assert!(sum.contains("50") && sum.contains(&(820 + 40 * 100 + (41..=50).sum::<i32>()).to_string()), "{sum}");
}

#[test]
fn a_node_goes_on_when_the_node_with_the_sequencer_is_lost() {
    let mut cluster = Cluster::new("sequencer", &ROLES, "");
    cluster.start_serving([1, 2]);
    let sequencer = sequencer(&cluster);
    let left = 3 - sequencer;
    let mut session = cluster.session(sequencer);
    session.query("CREATE DATABASE d").expect("a database");
    session
        .query("CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b INT) PARTITION BY KEY (a) PARTITIONS 8")
        .expect("a table");
    let mut other = cluster.session(left);
    for row in 1..=20 {
        let session = if row % 2 == 0 { &mut session } else { &mut other };
        session.query(&format!("INSERT INTO d.t (b) VALUES ({row})")).expect("a row");
    }
    session.query("BEGIN").expect("a transaction");
    session.query("UPDATE d.t SET b = b + 1000").expect("an update");
    cluster.kill(sequencer);
    retry(&mut other, "UPDATE d.t SET b = b + 100");
    for row in 21..=1200 {
        retry(&mut other, &format!("INSERT INTO d.t (b) VALUES ({row})"));
    }
    let figures = "SELECT CONCAT(COUNT(*), ' ', SUM(b)) FROM d.t";
    assert_eq!(value(&mut cluster, left, figures), Some(format!("1200 {}", 20 * 100 + 1200 * 1201 / 2)));
    // A change of the schema waits for the lost node, and is refused.
    let refused = other.query("CREATE TABLE d.u (a INT PRIMARY KEY)").expect_err("a node is missing");
    assert!(format!("{refused:?}").contains("1296"), "{refused:?}");
}

/// Changes rows with statements that are transactions by themselves, until all is over. Returns how often
/// each row was changed, and the errors.
fn change_rows(mut session: Connection<TcpStream>, first: u32, is_over: &AtomicBool) -> (u32, Vec<String>) {
    let (mut changes, mut errors) = (0, Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        let statements = [
            format!("UPDATE d.t SET b = b + 1 WHERE a = {first}"),
            format!("UPDATE d.t SET b = b + 1 WHERE a BETWEEN {} AND {}", first + 1, first + 9),
            format!("INSERT INTO d.u SELECT a + {} * 1000, b FROM d.t WHERE a = {first}", changes + 1),
            format!("SELECT SUM(b) FROM d.t WHERE a BETWEEN {first} AND {}", first + 9),
        ];
        for statement in &statements {
            if let Err(error) = session.query(statement) {
                errors.push(format!("{statement}: {error:?}"));
            }
        }
        changes += 1;
    }
    (changes, errors)
}

#[test]
fn statements_that_are_not_committed_run_again_when_a_node_is_lost() {
    let mut cluster = Cluster::new("run-again", &["data,sql", "data,sql", "management", "sql"], "");
    cluster.start_serving([1, 4]);
    let is_whole = |rows: &[super::nodes::Row]| rows[..2].iter().all(|row| row.state == "SERVING" && row.is_durable);
    cluster.await_rows(4, "the cluster is whole", is_whole);
    cluster.await_address(2);
    let mut session = cluster.session(1);
    session.query("CREATE DATABASE d").expect("a database");
    for table in ["t", "u"] {
        let create = format!("CREATE TABLE d.{table} (a INT PRIMARY KEY, b INT) PARTITION BY KEY (a) PARTITIONS 8");
        session.query(&create).expect("a table");
    }
    let rows: Vec<String> = (1..=40).map(|row| format!("({row}, 0)")).collect();
    session.query(&format!("INSERT INTO d.t VALUES {}", rows.join(","))).expect("rows");
    let mut expected = [0; 4];
    // Node 4 runs its statements at node 1. In the second round, the node with the sequencer is lost.
    for (lost, clients) in [(2, &[1, 4][..]), (1, &[2][..])] {
        let is_over = Arc::new(AtomicBool::new(false));
        let begin = |(position, node): (usize, &u8)| {
            let (session, is_over) = (cluster.session(*node), is_over.clone());
            let place = position + usize::from(lost == 1) * 2;
            (place, std::thread::spawn(move || change_rows(session, 1 + 10 * place as u32, &is_over)))
        };
        let writers: Vec<_> = clients.iter().enumerate().map(begin).collect();
        cluster.kill(lost);
        cluster.await_rows(clients[0], "it is evicted", |rows| rows[usize::from(lost) - 1].state != "SERVING");
        cluster.start(lost);
        cluster.await_rows(clients[0], "it is back", is_whole);
        cluster.await_address(lost);
        is_over.store(true, Ordering::Relaxed);
        for (place, writer) in writers {
            let (changes, errors) = writer.join().expect("a client has not panicked");
            assert!(errors.is_empty(), "{errors:?}");
            expected[place] = changes;
        }
    }
    for node in [1, 2, 4] {
        for (place, changes) in expected.iter().enumerate() {
            let rows = format!("a BETWEEN {} AND {}", 1 + 10 * place, 10 + 10 * place);
            let counts = value(&mut cluster, node, &format!("SELECT GROUP_CONCAT(DISTINCT b) FROM d.t WHERE {rows}"));
            assert_eq!(counts, Some(changes.to_string()), "each change happened once");
            let copied = format!("SELECT COUNT(*) FROM d.u WHERE a % 1000 = {}", 1 + 10 * place);
            assert_eq!(value(&mut cluster, node, &copied), Some(changes.to_string()), "each row was copied once");
        }
    }
}
