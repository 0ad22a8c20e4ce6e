//! Temporary tables and CREATE TABLE ... SELECT: nothing of them remains, however they end.

use super::*;

const PARTITIONS: &str = "SELECT COUNT(*) FROM junctor_info.memoryusage";

fn node() -> Node {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..4).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, u INT UNIQUE)"]);
    let rows: Vec<String> = (0..1500).map(|id| format!("({id}, {id})")).collect();
    node.execute(1, &[&format!("INSERT INTO d.t VALUES {}", rows.join(","))]);
    node
}

#[test]
fn temporary_tables_end_with_their_session_or_its_reset() {
    for seed in 0..10 {
        let mut node = node();
        let before = node.query(3, PARTITIONS);
        node.shuffle(seed);
        node.execute(1, &["CREATE TEMPORARY TABLE d.t (a INT UNIQUE)", "INSERT INTO d.t VALUES (1)", "BEGIN"]);
        node.execute(1, &["INSERT INTO d.t VALUES (2)", "CREATE TEMPORARY TABLE d.x AS SELECT * FROM d.t"]);
        node.execute(2, &["CREATE TEMPORARY TABLE d.t AS SELECT id FROM d.t WHERE id < 7"]);
        assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), ["2"]);
        assert_eq!(node.query(2, "SELECT COUNT(*) FROM d.t"), ["7"]);
        assert_eq!(node.query(3, "SELECT COUNT(*) FROM d.t"), ["1500"]);
        // COM_RESET_CONNECTION, with an open transaction.
        node.begin(1, &[0x1f]);
        node.run();
        assert!(node.answer(1).is_some());
        assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), ["1500"]);
        assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.x"), ["#42S02Table 'd.x' doesn't exist"]);
        node.execute(1, &["CREATE TEMPORARY TABLE d.t (b INT)"]);
        node.send(1, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(1) }));
        node.send(2, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(2) }));
        node.run();
        assert_eq!(node.query(3, PARTITIONS), before, "seed {seed}");
        assert_eq!(node.resources_held(), 1, "only sessions hold resources");
    }
}

#[test]
fn a_table_of_a_query_that_is_stopped_in_any_step_leaves_nothing() {
    let mut stopped = 0;
    for steps in (0..).step_by(3) {
        let mut node = node();
        let before = node.query(3, PARTITIONS);
        node.begin_query(1, "CREATE TABLE d.n (PRIMARY KEY (id), UNIQUE (u)) AS SELECT * FROM d.t");
        node.shuffle(steps);
        for _ in 0..steps {
            node.step();
        }
        let is_over = node.answer(1).is_some();
        if is_over {
            break;
        }
        let leaves = steps % 2 == 0;
        match leaves {
            true => node.send(1, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(1) })),
            false => node.execute(2, &["KILL QUERY 1"]),
        }
        node.run();
        let rows = node.query(3, "SELECT COUNT(*) FROM d.n");
        if rows == ["1500"] {
            assert!(node.query(3, PARTITIONS) > before);
            node.execute(3, &["DROP TABLE d.n"]);
        } else {
            assert_eq!(rows, ["#42S02Table 'd.n' doesn't exist"], "after {steps} steps");
            stopped += 1;
        }
        assert_eq!(node.query(3, PARTITIONS), before, "after {steps} steps");
        assert_eq!(node.resources_held(), if leaves { 2 } else { 3 }, "only sessions hold resources");
    }
    assert!(stopped > 5, "{stopped}");
}

#[test]
fn an_alteration_of_a_temporary_table_that_is_stopped_in_any_step_leaves_the_old_one_or_nothing() {
    let mut stopped = 0;
    for steps in (0..).step_by(7) {
        let mut node = node();
        let before = node.query(3, PARTITIONS);
        node.execute(1, &["CREATE TEMPORARY TABLE d.t (PRIMARY KEY (id), UNIQUE (u)) AS SELECT * FROM d.t"]);
        node.begin_query(1, "ALTER TABLE d.t ADD COLUMN c INT DEFAULT 5, DROP PRIMARY KEY, ADD UNIQUE (id, u)");
        node.shuffle(steps);
        for _ in 0..steps {
            node.step();
        }
        let is_over = node.answer(1).is_some();
        if steps % 2 == 0 {
            node.send(1, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(1) }));
            node.run();
        } else {
            if !is_over {
                node.execute(2, &["KILL QUERY 1"]);
                node.run();
                assert!(node.answer(1).is_some());
            }
            match &*node.query(1, "SELECT c FROM d.t WHERE id = 3") {
                [row] if row == "5" => {}
                [row] if row.contains("Unknown column") => stopped += 1,
                other => panic!("{other:?} after {steps} steps"),
            }
            assert_eq!(node.query(1, "SELECT CONCAT(COUNT(*), ' ', SUM(id)) FROM d.t"), ["1500 1124250"]);
            node.execute(1, &["DROP TEMPORARY TABLE d.t"]);
        }
        assert_eq!(node.query(3, PARTITIONS), before, "after {steps} steps");
        assert_eq!(node.query(3, "SELECT COUNT(*) FROM d.t"), ["1500"]);
        if is_over {
            break;
        }
    }
    assert!(stopped > 5, "{stopped}");
}

#[test]
fn a_name_that_is_taken_meanwhile_is_refused_at_the_end() {
    let mut refused = 0;
    for steps in (0..60).step_by(4) {
        let mut node = node();
        let before = node.query(3, PARTITIONS);
        node.begin_query(1, "CREATE TABLE d.n AS SELECT * FROM d.t");
        for _ in 0..steps {
            node.step();
        }
        if node.answer(1).is_some() {
            break;
        }
        node.begin_query(2, "CREATE TABLE d.n (other INT)");
        node.run();
        let answers = [node.rows(1), node.rows(2)];
        let exists = ["#42S01Table 'n' already exists"];
        assert!((answers[0] == exists) != (answers[1] == exists), "{answers:?}");
        refused += u32::from(answers[0] == exists);
        node.execute(3, &["DROP TABLE d.n"]);
        assert_eq!(node.query(3, PARTITIONS), before, "after {steps} steps");
    }
    assert!(refused > 0);
}
