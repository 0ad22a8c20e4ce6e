//! Alterations of several steps beside writers, stopped anywhere.

use super::*;

const INDEXES: &str = "SELECT index_name FROM information_schema.statistics WHERE table_name = 'c'";

/// A node with four sessions, a parent table and a child table.
fn filled_node(seed: u64) -> Node {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..5).for_each(|connection| node.open(connection, false));
    node.execute(4, &["CREATE DATABASE d", "CREATE TABLE d.p (id INT PRIMARY KEY)"]);
    node.execute(4, &["CREATE TABLE d.c (id INT PRIMARY KEY, pid INT, v INT)", "INSERT INTO d.p VALUES (1), (2)"]);
    node.execute(4, &["INSERT INTO d.c VALUES (1, 1, 1), (2, 2, 2), (3, 1, 3), (4, 2, 4)"]);
    node.shuffle(seed);
    node
}

#[test]
fn an_alteration_that_is_stopped_anywhere_takes_effect_as_a_whole_or_not_at_all() {
    const ADD: &str = "ALTER TABLE d.c ADD UNIQUE KEY u (v), ADD CONSTRAINT k FOREIGN KEY (pid) REFERENCES d.p (id)";
    for is_lost in [false, true] {
        let mut undone = 0;
        for stop in (0..).step_by(7) {
            let mut node = filled_node(stop);
            node.begin_query(1, ADD);
            node.begin_query(3, "UPDATE d.c SET v = v + 10 WHERE id = 1");
            let is_over = (0..stop).any(|_| !node.step());
            if is_lost {
                node.send(1, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(1) }));
            } else {
                node.execute(2, &["KILL QUERY 1"]);
            }
            node.run();
            assert_eq!(node.rows(3), Vec::<String>::new());
            let count = node.query(2, INDEXES).len();
            assert!([1, 3].contains(&count), "stopped after {stop}: {count} indexes");
            if !is_lost {
                let expected = if count == 3 { None } else { Some("#70100Query execution was interrupted".to_owned()) };
                assert_eq!(node.rows(1).first().cloned(), expected, "stopped after {stop}");
            }
            undone += usize::from(count == 1);
            // The alteration keeps nobody out any longer.
            node.execute(3, &["INSERT INTO d.c VALUES (9, 1, 9)"]);
            assert_eq!(node.resources_held(), if is_lost { 3 } else { 4 }, "only sessions hold resources");
            if is_over {
                assert_eq!(count, 3);
                break;
            }
        }
        assert!(undone > 5, "{undone}");
    }
}

#[test]
fn a_copy_computes_columns_and_checks_rows_that_others_write() {
    const ALTER: &str = "ALTER TABLE d.c ADD COLUMN g INT AS (v * 2), ADD KEY (g), ADD CHECK (v < 12)";
    let (mut failed, mut refused) = (0, 0);
    for seed in 0..40 {
        let mut node = filled_node(seed);
        node.begin_query(1, ALTER);
        (0..seed * 5).for_each(|_| {
            node.step();
        });
        node.begin_query(3, "UPDATE d.c SET v = v + 10 WHERE id IN (1, 2)");
        node.run();
        let altered = node.rows(1);
        let updated = node.rows(3);
        let columns = node.query(2, "SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'c'");
        match (altered.first(), updated.first()) {
            // The update comes after the alteration, which refuses its row.
            (None, Some(error)) => {
                assert!(error.contains("'c_chk_1' is violated"), "{error}");
                refused += 1;
                assert_eq!(columns, ["4"]);
                assert_eq!(node.query(2, "SELECT COUNT(*) FROM d.c WHERE g > 0 AND g = v * 2"), ["4"]);
                assert_eq!(node.query(2, "SELECT SUM(v) FROM d.c"), ["10"]);
            }
            (Some(error), None) => {
                assert!(error.contains("'c_chk_1' is violated"), "{error}");
                failed += 1;
                assert_eq!(columns, ["3"]);
                assert_eq!(node.query(2, "SELECT SUM(v) FROM d.c"), ["30"]);
            }
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    assert!(failed > 0 && refused > 0, "{failed} failed, {refused} refused");
}

#[test]
fn a_duplicate_that_a_writer_may_remove_fails_the_alteration_or_is_gone() {
    let mut failed = 0;
    for seed in 0..40 {
        let mut node = filled_node(seed);
        node.execute(4, &["UPDATE d.c SET v = 1 WHERE id = 4"]);
        node.begin_query(1, "CREATE UNIQUE INDEX u ON d.c (v)");
        for _ in 0..seed * 2 {
            node.step();
        }
        node.begin_query(3, "UPDATE d.c SET v = 4 WHERE id = 4");
        node.run();
        let (answer, written) = (node.rows(1), node.rows(3));
        assert_eq!(written, Vec::<String>::new(), "seed {seed}");
        let indexes = node.query(2, INDEXES).len();
        if answer.is_empty() {
            assert_eq!(indexes, 2);
            assert_eq!(node.query(2, "INSERT INTO d.c VALUES (9, 1, 4)"), ["#23000Duplicate entry '4' for key 'c.u'"]);
        } else {
            assert_eq!((answer, indexes), (vec!["#23000Duplicate entry '1' for key 'c.u'".to_owned()], 1));
            failed += 1;
        }
        assert_eq!(node.query(2, "SELECT id FROM d.c WHERE v = 4"), ["4"]);
        assert_eq!(node.resources_held(), 4, "only sessions hold resources");
    }
    assert!((1..40).contains(&failed), "{failed}");
}

/// The rows that main gets with a signal.
fn rows_of(InFlight { to, signal, .. }: &InFlight<Signal>) -> usize {
    let Signal::Sql(signal) = signal else { return 0 };
    match signal {
        _ if to.module != Module::Main => 0,
        SqlSignal::ReadRowsReply(reply) => reply.rows as usize,
        SqlSignal::ExecuteStatementReply(reply) if !reply.outputs.is_empty() => reply.matched as usize,
        _ => 0,
    }
}

#[test]
fn no_turn_of_main_gets_more_rows_than_a_batch_while_an_index_is_filled() {
    for primary in ["PRIMARY KEY (id)", "PRIMARY KEY (id) USING HASH"] {
        let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
        (1..4).for_each(|connection| node.open(connection, false));
        node.execute(1, &["CREATE DATABASE d", &format!("CREATE TABLE d.t (id INT, v INT, {primary})")]);
        let insert = |first: u32| {
            let values: Vec<String> = (first..first + 1000).map(|id| format!("({id}, {id})")).collect();
            format!("INSERT INTO d.t VALUES {}", values.join(","))
        };
        node.execute(1, &[&insert(0), &insert(1000)]);
        node.begin_query(1, "ALTER TABLE d.t ADD UNIQUE KEY u (v)");
        let (mut rows_max, mut rows, mut next) = (0, 0, 2000);
        while let Some(signal) = node.delivery.take_next() {
            let count = rows_of(&signal);
            (rows_max, rows) = (rows_max.max(count), rows + count);
            node.deliver(signal);
            // Other rows follow all the time while the first ones are read.
            if count > 0 && next < 8000 && (next == 2000 || node.answer(2).is_some()) {
                node.begin_query(2, &insert(next));
                next += 1000;
            }
        }
        assert_eq!(node.rows(1), Vec::<String>::new());
        assert!(rows_max <= 256 && rows >= 4000, "at most {rows_max} of {rows} rows: {primary}");
        assert!(next >= 4000, "{next}");
        let refused = node.query(3, "INSERT INTO d.t VALUES (9000, 77)");
        assert_eq!(refused, ["#23000Duplicate entry '77' for key 't.u'"]);
        assert_eq!(node.query(3, "SELECT COUNT(DISTINCT v) FROM d.t"), [next.to_string()]);
    }
}
