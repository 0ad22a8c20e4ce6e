//! SLEEP, BENCHMARK and user-level locks in statements with tables: one call for each row.

use super::*;

/// A node with sessions from 1 on, and a table of three rows in their database.
fn node_with_table(placement: &str, sessions: u32) -> Node {
    let mut node = Node::new(placement, NodeConfig::default());
    (1..=sessions).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d"]);
    (1..=sessions).for_each(|connection| node.execute(connection, &["USE d"]));
    node.execute(1, &["CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)"]);
    node
}

#[test]
fn sleep_is_called_for_each_row_and_holds_nobody_up() {
    for (statement, sleeps, rows) in [
        ("SELECT SLEEP(1) FROM t", 3, &["0", "0", "0"][..]),
        ("SELECT SLEEP(1) FROM t LIMIT 2", 2, &["0", "0"]),
        ("SELECT SLEEP(1) FROM t LIMIT 1 OFFSET 2", 1, &["0"]),
        ("SELECT id FROM t WHERE id < 3 AND SLEEP(1) = 0 ORDER BY id", 2, &["1", "2"]),
        ("SELECT IF(id = 2, SLEEP(1), id) FROM t ORDER BY id", 1, &["1", "0", "3"]),
        ("SELECT CASE WHEN v > 15 THEN SLEEP(1) + 5 ELSE 9 END FROM t ORDER BY id", 2, &["9", "5", "5"]),
        ("SELECT d.s FROM (SELECT SLEEP(1) AS s, id FROM t) AS d WHERE d.id > 1", 3, &["0", "0"]),
        ("SELECT v + (SELECT SLEEP(1)) FROM t WHERE id = 3", 1, &["30"]),
        ("SELECT SLEEP(1) AS s FROM t HAVING s = 0", 3, &["0", "0", "0"]),
        ("SELECT SUM(v) + SLEEP(1) FROM t", 1, &["60"]),
        ("SELECT IF(FALSE, SLEEP(1), 'no')", 0, &["no"]),
        ("VALUES ROW(SLEEP(1)), ROW(2 + SLEEP(1))", 2, &["0", "2"]),
        ("SELECT CONCAT(SLEEP(1), '/', SLEEP(1))", 2, &["0/0"]),
        ("SELECT @n := @n + 1 + SLEEP(1) FROM t", 3, &["1", "2", "3"]),
    ] {
        let mut node = node_with_table(TWO_RECV_THREADS, 2);
        node.execute(1, &["SET @n = 0"]);
        node.begin_query(1, statement);
        node.run();
        for sleep in 0..sleeps {
            assert_eq!(node.answer(1), None, "{statement}: sleep {sleep}");
            assert_eq!(node.query(2, "SELECT COUNT(*) FROM t"), ["3"]);
            node.advance_seconds(1);
        }
        assert_eq!(node.rows(1), rows, "{statement}");
        assert_eq!(node.resources_held(), 2, "{statement}: only sessions hold resources");
    }
}

#[test]
fn changes_call_once_for_each_row() {
    let mut node = node_with_table(TWO_RECV_THREADS, 1);
    node.execute(1, &["CREATE TABLE c (id INT PRIMARY KEY, v INT)"]);
    for statement in [
        "INSERT INTO c SELECT id, SLEEP(1) FROM t",
        "UPDATE t SET v = v + SLEEP(1) + 1",
        "DELETE FROM c WHERE SLEEP(1) = 0",
    ] {
        node.begin_query(1, statement);
        node.run();
        for _ in 0..3 {
            assert_eq!(node.answer(1), None, "{statement}");
            node.advance_seconds(1);
        }
        assert_eq!(node.rows(1), Vec::<String>::new(), "{statement}");
    }
    assert_eq!(node.query(1, "SELECT GROUP_CONCAT(v ORDER BY id) FROM t"), ["11,21,31"]);
    assert_eq!(node.query(1, "SELECT COUNT(*) FROM c"), ["0"]);
    assert_eq!(node.resources_held(), 1);
}

#[test]
fn user_level_locks_are_taken_row_by_row() {
    let mut node = node_with_table(TWO_RECV_THREADS, 3);
    node.execute(2, &["DO GET_LOCK('lock 2', 0)"]);
    node.begin_query(1, "SELECT GET_LOCK(CONCAT('lock ', id), 5) FROM t ORDER BY id");
    node.run();
    assert_eq!(node.answer(1), None);
    assert_eq!(node.query(3, "SELECT CONCAT(IS_USED_LOCK('lock 1'), IS_FREE_LOCK('lock 3'))"), ["11"]);
    node.execute(2, &["DO RELEASE_LOCK('lock 2')"]);
    assert_eq!(node.rows(1), ["1", "1", "1"]);
    assert_eq!(node.query(1, "SELECT IS_USED_LOCK(CONCAT('lock ', id)) FROM t"), ["1", "1", "1"]);
    assert_eq!(node.query(3, "SELECT IS_FREE_LOCK(CONCAT('lock ', id)) FROM t"), ["0", "0", "0"]);
    assert_eq!(node.query(1, "SELECT RELEASE_LOCK(CONCAT('lock ', id)) FROM t WHERE id > 1"), ["1", "1"]);
    let refused = node.query(1, "SELECT GET_LOCK(IF(id = 1, '', 'ok'), 1) FROM t ORDER BY id");
    assert!(refused[0].starts_with("#42000Incorrect user-level lock name ''"), "{refused:?}");
    assert_eq!(node.query(1, "SELECT RELEASE_ALL_LOCKS() FROM t WHERE id = 1"), ["1"]);
    assert_eq!(node.resources_held(), 3);
}

#[test]
fn a_call_in_a_statement_of_a_table_can_be_stopped() {
    for statement in [
        "SELECT SLEEP(100) FROM t",
        "SELECT id FROM t WHERE SLEEP(100)",
        "INSERT INTO t SELECT id + 10, SLEEP(100) FROM t",
        "UPDATE t SET v = SLEEP(100)",
        "SELECT SLEEP(100) FROM t WHERE id = 1 INTO @into",
        "SELECT SLEEP(100) FROM t FOR UPDATE",
    ] {
        let mut node = node_with_table(TWO_RECV_THREADS, 3);
        node.begin_query(1, statement);
        node.run();
        assert_eq!(node.answer(1), None, "{statement}");
        node.execute(2, &["KILL QUERY 1"]);
        assert_eq!(node.rows(1), ["#70100Query execution was interrupted"], "{statement}");
        assert_eq!(node.query(1, "SELECT GROUP_CONCAT(v ORDER BY id) FROM t"), ["10,20,30"], "{statement}");
        assert_eq!(node.resources_held(), 3, "{statement}");
        node.begin_query(3, statement);
        node.run();
        node.send(3, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(3) }));
        node.run();
        assert_eq!(node.resources_held(), 2, "{statement}: a session that ends waits for nothing");
        assert_eq!(node.query(1, "SELECT GROUP_CONCAT(v ORDER BY id) FROM t"), ["10,20,30"], "{statement}");
    }
}

#[test]
fn a_call_in_a_statement_of_a_table_counts_for_the_time_limit() {
    let mut node = node_with_table(TWO_RECV_THREADS, 2);
    node.execute(1, &["SET max_execution_time = 2000"]);
    for statement in ["SELECT SLEEP(100) FROM t", "SELECT GET_LOCK('held', 100) FROM t"] {
        node.execute(2, &["DO GET_LOCK('held', 0)"]);
        node.begin_query(1, statement);
        node.run();
        for _ in 0..2 {
            assert_eq!(node.answer(1), None, "{statement}");
            node.advance_seconds(1);
            node.fire_timers();
        }
        let expected = "#HY000Query execution was interrupted, maximum statement execution time exceeded";
        assert_eq!(node.rows(1), [expected], "{statement}");
    }
    assert_eq!(node.query(2, "SELECT RELEASE_ALL_LOCKS()"), ["2"], "it was got twice");
}

#[test]
fn benchmark_of_a_row_takes_steps() {
    let mut node = node_with_table(ONE_THREAD, 1);
    assert_eq!(node.query(1, "SELECT BENCHMARK(1000, MD5(v)) + id FROM t ORDER BY id"), ["1", "2", "3"]);
    assert_eq!(node.query(1, "SELECT CONCAT(BENCHMARK(100, v), '/', BENCHMARK(0, v)) FROM t WHERE id = 1"), ["0/0"]);
    assert_eq!(node.query(1, "SELECT IFNULL(BENCHMARK(-1, v), 'null') FROM t WHERE id = 1"), ["null"]);
    assert_eq!(node.query(1, "SELECT BENCHMARK(100, 1 / 0) FROM t WHERE id = 1"), ["0"]);
    assert_eq!(node.query(1, "SELECT @@warning_count"), ["100"], "of all steps");
    let refused = node.query(1, "SELECT BENCHMARK(2, SLEEP(1)) FROM t");
    assert!(refused[0].starts_with("#42000This version of Junctor doesn't yet support"), "{refused:?}");
}

#[test]
fn other_places_of_calls_are_refused() {
    let mut node = node_with_table(ONE_THREAD, 1);
    for statement in [
        "SELECT SUM(SLEEP(1)) FROM t",
        "SELECT id FROM t ORDER BY SLEEP(1)",
        "SELECT (SELECT SLEEP(1) FROM t LIMIT 1)",
        "SELECT COUNT(*) FROM t LEFT JOIN t AS o ON SLEEP(1)",
        "INSERT INTO t VALUES (1, 1) ON DUPLICATE KEY UPDATE v = SLEEP(1)",
    ] {
        let refused = node.query(1, statement);
        let last = refused.last().expect("the statement was answered");
        assert!(last.starts_with("#42000This version of Junctor doesn't yet support"), "{statement}: {refused:?}");
    }
    assert_eq!(node.resources_held(), 1);
}

#[test]
fn values_of_an_insert_assign_and_wait_in_their_order() {
    let mut node = node_with_table(TWO_RECV_THREADS, 1);
    node.execute(1, &["CREATE TABLE n (id INT PRIMARY KEY, v VARCHAR(20), w DOUBLE)", "SET @r = 4"]);
    node.execute(
        1,
        &["INSERT INTO n VALUES (@r := @r + 1, CONCAT('r', @r), @r), (@r := @r + 1, 'x', @r / 4), (1, NULL, 2)"],
    );
    assert_eq!(node.query(1, "SELECT CONCAT_WS('/', id, v, w) FROM n ORDER BY id"), ["1/2", "5/r5/5", "6/x/1.5"]);
    assert_eq!(node.query(1, "SELECT @r"), ["6"]);
    node.execute(1, &["REPLACE INTO n SET id = (@k := 6), v = (SELECT COUNT(*) FROM t), w = 1e3"]);
    assert_eq!(node.query(1, "SELECT CONCAT_WS('/', @k, id, v, w) FROM n WHERE id = 6"), ["6/6/3/1000"]);
    node.execute(
        1,
        &["INSERT INTO n VALUES (@k := 6, 'a', 1) ON DUPLICATE KEY UPDATE v = VALUES(v), w = w + VALUES(w)"],
    );
    assert_eq!(node.query(1, "SELECT CONCAT_WS('/', id, v, w) FROM n WHERE id = 6"), ["6/a/1001"]);
    node.begin_query(1, "INSERT INTO n VALUES (10 + SLEEP(1), 'after', 0), (11, GET_LOCK('l', 0), SLEEP(1))");
    node.run();
    for _ in 0..2 {
        assert_eq!(node.answer(1), None, "it waits before any row is inserted");
        node.advance_seconds(1);
    }
    assert!(node.answer(1).is_some(), "all calls have returned");
    assert_eq!(
        node.query(1, "SELECT CONCAT_WS('/', id, v, w, RELEASE_LOCK('l')) FROM n WHERE id >= 10 ORDER BY id"),
        ["10/after/0/1", "11/1/0"]
    );
    for statement in [
        "INSERT INTO n VALUES (20, @k := 'a', w + (@k := 1))",
        "INSERT INTO n VALUES (20, 'a', 1) ON DUPLICATE KEY UPDATE w = (@k := 2)",
    ] {
        let refused = node.query(1, statement).concat();
        assert!(refused.contains("doesn't yet support"), "{statement}: {refused}");
    }
}
