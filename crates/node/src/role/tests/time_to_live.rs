//! Rows that expire: they are invisible at once, make room for new ones, and are purged in the background.

use super::*;

const TABLE: &str = "CREATE TABLE d.t (id INT PRIMARY KEY, u INT UNIQUE, v INT, created DATETIME(6)) \
                     COMMENT 'NDB_TABLE=TTL=10@created'";

fn node_with_table(thread_config: &str) -> Node {
    let mut node = Node::new(thread_config, NodeConfig::default());
    (1..4).for_each(|connection| node.open(connection, false));
    node.advance_seconds(1_000);
    node.execute(1, &["CREATE DATABASE d", TABLE]);
    node
}

fn status(node: &mut Node, name: &str) -> u64 {
    let text = format!("SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = '{name}'");
    node.query(1, &text)[0].parse().expect("a number")
}

/// The rows that exist, expired or not.
fn stored(node: &mut Node) -> Vec<String> {
    node.execute(1, &["ALTER TABLE d.t COMMENT 'NDB_TABLE=TTL=OFF'"]);
    let rows = node.query(1, "SELECT id FROM d.t ORDER BY id");
    node.execute(1, &["ALTER TABLE d.t COMMENT 'NDB_TABLE=TTL=10@created'"]);
    rows
}

#[test]
fn rows_disappear_when_they_expire_and_are_purged_later() {
    for threads in [ONE_THREAD, TWO_RECV_THREADS] {
        let mut node = node_with_table(threads);
        node.execute(1, &["SET GLOBAL ttl_purge_batch_rows = 2"]);
        node.execute(1, &["INSERT INTO d.t VALUES (1, 1, 0, NOW(6)), (2, 2, 0, NOW(6)), (3, 3, 0, NOW(6))"]);
        node.execute(1, &["INSERT INTO d.t VALUES (4, 4, 0, NULL), (5, 5, 0, NOW(6) + INTERVAL 60 SECOND)"]);
        node.advance_seconds(9);
        assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), ["5"]);
        node.advance_seconds(1);
        assert_eq!(node.query(1, "SELECT id FROM d.t ORDER BY id"), ["4", "5"]);
        assert_eq!(node.query(2, "SELECT COUNT(*) FROM d.t WHERE u = 2"), ["0"]);
        assert_eq!(stored(&mut node), ["1", "2", "3", "4", "5"]);
        // One batch of two rows, one of the last row, and the end of the round.
        for (_, purged) in [(0, 2), (1, 3), (2, 3)] {
            node.fire_timers();
            assert_eq!(status(&mut node, "Ttl_rows_purged"), purged);
        }
        assert_eq!(status(&mut node, "Ttl_purge_rounds"), 1);
        assert_eq!(stored(&mut node), ["4", "5"]);
        node.advance_seconds(70);
        (0..4).for_each(|_| node.fire_timers());
        assert_eq!(stored(&mut node), ["4"]);
        // Their unique entries are gone, too.
        node.execute(1, &["INSERT INTO d.t VALUES (9, 1, 0, NULL)", "UPDATE d.t SET u = 2 WHERE id = 9"]);
        let held = |host: &NodeHost| host.sql().map_or(0, |sql| sql.held().iter().map(|(_, count)| count).sum());
        let sessions: usize = node.hosts.iter().map(held).sum();
        assert_eq!(sessions, 3, "only the sessions of clients are left");
    }
}

#[test]
fn the_purge_finds_its_rows_by_an_index_too() {
    for column in ["DATETIME", "DATETIME(3)", "TIMESTAMP NULL", "TIMESTAMP(6) NULL"] {
        let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
        (1..4).for_each(|connection| node.open(connection, false));
        node.advance_seconds(20_000);
        let table = format!(
            "CREATE TABLE d.t (id INT PRIMARY KEY, created {column}, KEY (created)) COMMENT 'NDB_TABLE=TTL=10@created'"
        );
        node.execute(1, &["CREATE DATABASE d", "SET GLOBAL ttl_purge_batch_rows = 3", &table]);
        node.execute(1, &["SET GLOBAL time_zone = '+05:00'"]);
        for seconds in 0..20 {
            node.execute(
                1,
                &[&format!("INSERT INTO d.t VALUES ({seconds}, UTC_TIMESTAMP() - INTERVAL {seconds} SECOND)")],
            );
        }
        node.execute(1, &["INSERT INTO d.t VALUES (50, NULL)"]);
        assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), ["11"], "{column}");
        (0..8).for_each(|_| node.fire_timers());
        assert_eq!(status(&mut node, "Ttl_rows_purged"), 10, "{column}");
        assert_eq!(stored(&mut node).len(), 11, "{column}");
    }
}

#[test]
fn the_purge_is_off_with_an_interval_of_zero() {
    let mut node = node_with_table(ONE_THREAD);
    node.execute(1, &["SET GLOBAL ttl_purge_interval = 0", "INSERT INTO d.t VALUES (1, 1, 0, NOW(6))"]);
    node.advance_seconds(20);
    (0..4).for_each(|_| node.fire_timers());
    assert_eq!(status(&mut node, "Ttl_rows_purged"), 0);
    node.execute(1, &["SET GLOBAL ttl_purge_interval = 5"]);
    (0..4).for_each(|_| node.fire_timers());
    assert_eq!(status(&mut node, "Ttl_rows_purged"), 1);
    // Without such a table nothing is left to do.
    node.execute(1, &["DROP TABLE d.t"]);
    (0..4).for_each(|_| node.fire_timers());
    assert!(node.delivery.take_timers().iter().all(|(_, token)| *token != 0x0070_7572_6765));
}

#[test]
fn the_purge_leaves_locked_rows_alone() {
    let mut node = node_with_table(ONE_THREAD);
    node.execute(1, &["INSERT INTO d.t VALUES (1, 1, 0, NOW(6)), (2, 2, 0, NOW(6))"]);
    node.execute(2, &["BEGIN"]);
    assert_eq!(node.query(2, "SELECT id FROM d.t WHERE id = 1 FOR UPDATE"), ["1"]);
    node.advance_seconds(20);
    (0..4).for_each(|_| node.fire_timers());
    assert_eq!(status(&mut node, "Ttl_rows_purged"), 1);
    // The time of a statement counts, not that of the transaction.
    assert_eq!(node.query(2, "SELECT COUNT(*) FROM d.t WHERE id = 1"), ["0"]);
    node.execute(2, &["COMMIT"]);
    (0..4).for_each(|_| node.fire_timers());
    assert_eq!(status(&mut node, "Ttl_rows_purged"), 2);
}

#[test]
fn of_two_inserts_over_an_expired_row_one_succeeds_whatever_the_purge_does() {
    for seed in 0..60 {
        let mut node = node_with_table(TWO_RECV_THREADS);
        node.execute(1, &["INSERT INTO d.t VALUES (1, 1, 0, NOW(6)), (2, 2, 0, NOW(6)), (3, 3, 0, NOW(6))"]);
        node.advance_seconds(20);
        node.shuffle(seed);
        node.begin_query(1, "INSERT INTO d.t VALUES (1, 2, 1, NOW(6))");
        node.begin_query(2, "INSERT INTO d.t VALUES (3, 2, 2, NOW(6))");
        for _ in 0..4 {
            for (block, token) in node.delivery.take_timers() {
                node.send_world(block, WorldEvent::Timer { token });
            }
            (0..20).for_each(|_| _ = node.step());
        }
        node.run();
        let answers = [node.rows(1), node.rows(2)];
        let failed: Vec<&String> = answers.iter().flatten().collect();
        let is_expected = |message: &&String| message.contains("Duplicate entry '2' for key 't.u'");
        let is_deadlock = |message: &&String| message.contains("Deadlock");
        assert_eq!(failed.len(), 1, "seed {seed}: {answers:?}");
        assert!(failed.iter().all(|message| is_expected(message) || is_deadlock(message)), "seed {seed}: {failed:?}");
        assert_eq!(node.query(3, "SELECT v FROM d.t WHERE u = 2").len(), 1, "seed {seed}");
        assert_eq!(node.query(3, "SELECT COUNT(*) FROM d.t"), ["1"], "seed {seed}");
        (0..6).for_each(|_| node.fire_timers());
        assert_eq!(stored(&mut node).len(), 1, "seed {seed}");
        assert_eq!(node.query(3, "SELECT COUNT(*) FROM d.t"), ["1"], "seed {seed}");
    }
}

#[test]
fn a_statement_has_one_time_for_all_of_its_rows() {
    let mut node = node_with_table(TWO_RECV_THREADS);
    let rows: Vec<String> = (0..600).map(|id| format!("({id}, {id}, 0, NOW(6))")).collect();
    node.execute(1, &[&format!("INSERT INTO d.t VALUES {}", rows.join(","))]);
    node.advance_seconds(9);
    node.begin_query(1, "SELECT COUNT(*) FROM d.t a JOIN d.t b ON a.u = b.u");
    (0..8).for_each(|_| _ = node.step());
    node.delivery.now = Time(node.delivery.now.0 + 5_000_000_000);
    node.run();
    assert_eq!(node.rows(1), ["600"]);
    assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), ["0"]);
}
