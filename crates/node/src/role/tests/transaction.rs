//! Interleaved transactions: what they read, and what they give back.

use super::*;

#[test]
fn a_read_by_a_unique_index_uses_one_snapshot_at_every_isolation_level() {
    let levels = ["REPEATABLE READ", "READ COMMITTED"];
    for (level, seed) in levels.into_iter().flat_map(|level| (0..40).map(move |seed| (level, seed))) {
        let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
        (1..4).for_each(|connection| node.open(connection, false));
        node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, u INT UNIQUE)"]);
        node.execute(1, &["INSERT INTO d.t VALUES (0, 10)", "BEGIN", "DELETE FROM d.t WHERE id = 0"]);
        node.execute(1, &["INSERT INTO d.t VALUES (1, 10)"]);
        let isolation = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
        for reader in [2, 3] {
            node.execute(reader, &[&isolation]);
        }
        node.execute(3, &["BEGIN"]);
        node.shuffle(seed);
        node.begin_query(1, "COMMIT");
        for reader in [2, 3] {
            node.begin_query(reader, "SELECT id FROM d.t WHERE u = 10");
        }
        node.run();
        for reader in [2, 3] {
            assert_eq!(node.rows(reader).len(), 1, "{level}, seed {seed}, reader {reader}");
        }
        let held = |host: &NodeHost| host.sql().map_or(0, |sql| sql.held().iter().map(|(_, count)| count).sum());
        node.execute(3, &["COMMIT"]);
        let sessions: usize = node.hosts.iter().map(held).sum();
        assert_eq!(sessions, 3, "only sessions hold resources");
    }
}

#[test]
fn held_auto_increment_numbers_that_another_session_inserted_are_skipped() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    node.open(1, false);
    node.open(2, false);
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)"]);
    node.execute(1, &["INSERT INTO d.t (v) VALUES (1)"]);
    node.execute(2, &["INSERT INTO d.t (id, v) VALUES (2, 2), (3, 2), (4, 2)"]);
    node.execute(1, &["INSERT INTO d.t (v) VALUES (3)", "INSERT INTO d.t (v) VALUES (4)"]);
    assert_eq!(node.query(2, "SELECT COUNT(*) FROM d.t"), ["6"]);
    // A row with an explicit number that is taken is refused.
    let refused = node.query(1, "INSERT INTO d.t (id, v) VALUES (2, 9)");
    assert_eq!(refused, ["#23000Duplicate entry '2' for key 't.PRIMARY'"]);
}

#[test]
fn a_transaction_that_exhausts_memory_fails_per_statement_and_frees_everything() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    node.open(1, false);
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, p VARCHAR(8000))"]);
    let insert = |batch: usize| {
        let rows: Vec<String> = (0..100).map(|row| format!("({}, REPEAT('x', 7900))", batch * 100 + row)).collect();
        format!("INSERT INTO d.t VALUES {}", rows.join(","))
    };
    let mut filled = Vec::new();
    for _ in 0..2 {
        node.execute(1, &["BEGIN"]);
        let full = (0..1000).find(|batch| {
            let answer = node.query(1, &insert(*batch));
            assert!(answer.first().is_none_or(|error| error.starts_with("#HY000The table 't' is full")), "{answer:?}");
            !answer.is_empty()
        });
        let batches = full.expect("there is an end of the memory");
        let count = (batches * 100).to_string();
        assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), [count.as_str()], "the statement alone is undone");
        node.execute(1, &["DELETE FROM d.t WHERE id < 50", "ROLLBACK"]);
        assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), ["0"]);
        filled.push(batches);
    }
    assert!(filled[0] > 20 && filled[0] == filled[1], "{filled:?}");
}

#[test]
fn ranges_of_a_descending_primary_key_are_locked_against_new_rows() {
    for (key, range) in
        [("a", "a > 100"), ("a DESC", "a > 100"), ("a, b DESC", "a = 150 AND b > 100"), ("a DESC, b", "a = 150")]
    {
        let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
        (1..4).for_each(|connection| node.open(connection, false));
        let table = format!("CREATE TABLE d.t (a INT, b INT, PRIMARY KEY ({key}))");
        node.execute(1, &["CREATE DATABASE d", &table, "INSERT INTO d.t VALUES (1, 1), (200, 200)"]);
        for (locking, new) in [(range, 150), ("a = 160 AND b = 160", 160)] {
            let query = format!("SELECT a FROM d.t WHERE {locking} FOR UPDATE");
            node.execute(1, &["BEGIN"]);
            node.query(1, &query);
            node.execute(2, &["INSERT INTO d.t VALUES (2, 2)", "DELETE FROM d.t WHERE a = 2"]);
            node.begin_query(3, &format!("INSERT INTO d.t VALUES ({new}, {new})"));
            node.run();
            assert_eq!(node.answer(3), None, "PRIMARY KEY ({key}), {locking}");
            node.execute(1, &["COMMIT"]);
            node.run();
            assert!(node.answer(3).is_some());
            assert_eq!(node.query(1, &format!("SELECT COUNT(*) FROM d.t WHERE a = {new}")), ["1"]);
        }
    }
}
