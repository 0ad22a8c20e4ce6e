//! Metadata locks: LOCK TABLES, and schema changes that wait for transactions.

use super::*;

#[test]
fn locked_tables_keep_the_sessions_of_every_sql_block_out() {
    for seed in 0..20 {
        let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
        (1..6).for_each(|connection| node.open(connection, false));
        node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
        node.execute(1, &["INSERT INTO d.t VALUES (1, 0)"]);
        node.shuffle(seed);
        // The lock waits for the transaction that has used the table.
        node.execute(2, &["BEGIN", "UPDATE d.t SET v = 1"]);
        node.begin_query(1, "LOCK TABLES d.t WRITE");
        node.run();
        assert_eq!(node.answer(1), None);
        node.execute(2, &["COMMIT"]);
        assert_eq!(node.rows(1), Vec::<String>::new());
        for waiting in [2, 3] {
            node.begin_query(waiting, "SELECT v FROM d.t");
        }
        node.run();
        assert_eq!((node.answer(2), node.answer(3)), (None, None));
        node.execute(1, &["UPDATE d.t SET v = v + 1"]);
        node.execute(4, &["KILL QUERY 3"]);
        assert_eq!(node.rows(3), ["#70100Query execution was interrupted"]);
        node.execute(1, &["UNLOCK TABLES"]);
        assert_eq!(node.rows(2), ["2"], "seed {seed}");
        // Read locks are shared.
        node.execute(1, &["LOCK TABLES d.t READ"]);
        node.execute(2, &["LOCK TABLES d.t READ"]);
        assert_eq!(node.query(3, "SELECT v FROM d.t"), ["2"]);
        node.begin_query(3, "UPDATE d.t SET v = v + 1");
        node.begin_query(4, "LOCK TABLES d.t WRITE");
        node.run();
        assert_eq!((node.answer(3), node.answer(4)), (None, None));
        node.execute(1, &["UNLOCK TABLES"]);
        assert_eq!((node.answer(3), node.answer(4)), (None, None));
        node.send(2, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(2) }));
        node.run();
        assert_eq!(node.rows(4), Vec::<String>::new());
        node.execute(5, &["KILL 4"]);
        assert_eq!(node.rows(3), Vec::<String>::new());
        assert_eq!(node.query(5, "SELECT v FROM d.t"), ["3"]);
        assert_eq!(node.resources_held(), 3, "only sessions hold resources");
    }
}

#[test]
fn no_cycle_of_waits_for_rows_and_tables_forms() {
    for seed in 0..40 {
        let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
        (1..5).for_each(|connection| node.open(connection, false));
        node.execute(4, &["CREATE DATABASE d", "CREATE TABLE d.a (id INT PRIMARY KEY, n INT)"]);
        node.execute(4, &["CREATE TABLE d.b (id INT PRIMARY KEY, n INT)"]);
        node.execute(4, &["INSERT INTO d.a VALUES (1, 0)", "INSERT INTO d.b VALUES (1, 0)"]);
        node.shuffle(seed);
        node.execute(1, &["BEGIN"]);
        assert_eq!(node.query(1, "SELECT n FROM d.a"), ["0"]);
        // The change waits for session 1, which waits for a row of session 2, which waits for the change.
        node.begin_query(3, "ALTER TABLE d.a ADD INDEX n (n)");
        node.run();
        node.execute(2, &["BEGIN", "UPDATE d.b SET n = 2"]);
        let mut waits = [(1, "UPDATE d.b SET n = n + 1"), (2, "UPDATE d.a SET n = 2")];
        if seed % 2 == 0 {
            waits.reverse();
        }
        node.begin_query(waits[0].0, waits[0].1);
        if seed % 4 < 2 {
            node.run();
        }
        node.begin_query(waits[1].0, waits[1].1);
        node.run();
        assert_eq!(node.rows(2), Vec::<String>::new(), "seed {seed}: the transaction that others wait for goes on");
        assert_eq!((node.answer(1), node.answer(3)), (None, None));
        node.execute(2, &["COMMIT"]);
        assert_eq!(node.rows(1), Vec::<String>::new(), "seed {seed}");
        assert_eq!(node.answer(3), None);
        node.execute(1, &["COMMIT"]);
        assert_eq!(node.rows(3), Vec::<String>::new(), "seed {seed}");
        assert_eq!(
            (node.query(4, "SELECT n FROM d.a"), node.query(4, "SELECT n FROM d.b")),
            (vec!["2".into()], vec!["3".into()])
        );
        assert_eq!(node.resources_held(), 4, "only sessions hold resources");
    }
}

/// The statements of sessions 3 and 4, which begin in this order while a transaction uses the table.
const WAITING: &[(&str, &str)] = &[
    ("ALTER TABLE d.t MODIFY a INT AFTER c", "CREATE INDEX i ON d.t (b, c)"),
    ("ALTER TABLE d.t DROP a", "ALTER TABLE d.t ADD UNIQUE i (b, c)"),
    ("ALTER TABLE d.t DROP a", "ALTER TABLE d.t ADD COLUMN x INT FIRST, ADD KEY i (b, c)"),
    ("ALTER TABLE d.t MODIFY a VARCHAR(9)", "ALTER TABLE d.t MODIFY b BIGINT, ADD INDEX i (b, c)"),
    ("TRUNCATE TABLE d.t", "ALTER TABLE d.t MODIFY b BIGINT, ADD INDEX i (b, c)"),
    ("ALTER TABLE d.t MODIFY a VARCHAR(9)", "ALTER TABLE d.t ADD FOREIGN KEY i (b, c) REFERENCES d.p (b, c)"),
];

/// The columns of the index that the second statement makes.
const COLUMNS_OF_INDEX: &str =
    "SELECT column_name FROM information_schema.statistics WHERE index_name = 'i' ORDER BY seq_in_index";

/// A node with a table that session 1 uses in a transaction, and with two statements that wait for it.
fn node_with_waiting(seed: u64, (first, second): (&str, &str)) -> Node {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..6).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a INT, b INT, c INT)"]);
    node.execute(1, &["CREATE TABLE d.p (b INT, c INT, PRIMARY KEY (b, c))", "INSERT INTO d.p VALUES (3, 4)"]);
    node.execute(1, &["INSERT INTO d.t VALUES (1, 2, 3, 4)"]);
    node.shuffle(seed);
    node.execute(1, &["BEGIN"]);
    assert_eq!(node.query(1, "SELECT a FROM d.t"), ["2"]);
    for (connection, statement) in [(3, first), (4, second)] {
        node.begin_query(connection, statement);
        node.run();
        assert_eq!(node.answer(connection), None, "{statement}");
    }
    node
}

#[test]
fn an_alteration_that_waited_for_another_one_starts_again_with_the_new_definition() {
    for seed in 0..10 {
        for statements in WAITING {
            let mut node = node_with_waiting(seed, *statements);
            node.execute(1, &["COMMIT"]);
            for connection in [3, 4] {
                assert_eq!(node.rows(connection), Vec::<String>::new(), "seed {seed}: {statements:?}");
            }
            assert_eq!(node.query(2, COLUMNS_OF_INDEX), ["b", "c"], "seed {seed}: {statements:?}");
            assert_eq!(node.resources_held(), 5, "only sessions hold resources");
        }
    }
}

#[test]
fn an_alteration_that_starts_again_can_be_killed() {
    let mut outcomes = [0, 0];
    for seed in 0..60 {
        for statements in WAITING {
            let mut node = node_with_waiting(seed, *statements);
            node.begin_query(1, "COMMIT");
            (0..seed * 5).for_each(|_| {
                node.step();
            });
            node.execute(2, &["KILL QUERY 4"]);
            node.run();
            assert_eq!(node.rows(1), Vec::<String>::new());
            assert_eq!(node.rows(3), Vec::<String>::new(), "seed {seed}: {statements:?}");
            let is_killed = match &node.rows(4)[..] {
                [] => false,
                [error] if error == "#70100Query execution was interrupted" => true,
                other => panic!("seed {seed}: {statements:?}: {other:?}"),
            };
            outcomes[usize::from(is_killed)] += 1;
            let columns = node.query(2, COLUMNS_OF_INDEX);
            assert_eq!(columns.len(), if is_killed { 0 } else { 2 }, "seed {seed}: {statements:?}");
            assert_eq!(node.resources_held(), 5, "only sessions hold resources");
        }
    }
    assert!(outcomes.iter().all(|count| *count > 10), "{outcomes:?}");
}

#[test]
fn a_reader_that_begins_to_write_a_table_which_is_copied_loses_its_transaction_and_not_the_time() {
    let (mut lost, mut first) = (0, 0);
    for seed in 0..60 {
        let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
        (1..4).for_each(|connection| node.open(connection, false));
        node.execute(3, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
        node.execute(3, &["CREATE TABLE d.other (id INT PRIMARY KEY, v INT)", "INSERT INTO d.other VALUES (1, 0)"]);
        node.execute(3, &["INSERT INTO d.t VALUES (1, 0), (2, 0)"]);
        node.shuffle(seed);
        node.execute(1, &["BEGIN", "UPDATE d.other SET v = 1"]);
        assert_eq!(node.query(1, "SELECT SUM(v) FROM d.t"), ["0"]);
        node.begin_query(2, "ALTER TABLE d.t MODIFY COLUMN v BIGINT");
        (0..seed * 5).for_each(|_| {
            node.step();
        });
        node.begin_query(1, "UPDATE d.t SET v = v + 1");
        node.run();
        let written = node.rows(1);
        match written.first() {
            None => {
                first += 1;
                assert_eq!(node.answer(2), None, "the writer precedes the alteration");
                node.execute(1, &["COMMIT"]);
            }
            Some(error) => {
                lost += 1;
                assert!(error.starts_with("#40001Deadlock found"), "{error}");
            }
        }
        assert_eq!(node.rows(2), Vec::<String>::new(), "seed {seed}");
        let expected = if written.is_empty() { ["1", "2"] } else { ["0", "0"] };
        assert_eq!(node.query(1, "SELECT v FROM d.other"), [expected[0]], "seed {seed}");
        assert_eq!(node.query(3, "SELECT SUM(v) FROM d.t"), [expected[1]]);
        assert_eq!(node.resources_held(), 3, "only sessions hold resources");
    }
    assert!(lost > 10 && first > 10, "{lost} lost, {first} first");
}
