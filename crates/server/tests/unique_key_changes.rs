//! UPDATE and DELETE by a unique key: their results, the partitions that they reach, and races with
//! transactions that move the key to another row.

#![allow(clippy::disallowed_methods, reason = "clients have threads of their own")]

use std::thread::{JoinHandle, spawn};

use junctor::{MemoryStream, Node, Protocol};
use junctor_bench::mysql::Connection;

type Session = Connection<MemoryStream>;

fn node() -> Node {
    let builder = Node::builder().total_memory_bytes(64 << 20).cpu_count_max(2);
    let node = builder.start().expect("the node starts");
    let mut session = session(&node);
    run(&mut session, "CREATE DATABASE d");
    for (table, method) in [("d.sorted", ""), ("d.hashed", "USING HASH")] {
        run(
            &mut session,
            &format!(
                "CREATE TABLE {table} (id INT PRIMARY KEY, u INT, v INT, s VARCHAR(20), UNIQUE KEY (u) {method}) \
                 PARTITION BY KEY (id) PARTITIONS 8"
            ),
        );
        run(&mut session, &format!("INSERT INTO {table} VALUES (1, 10, 0, 'a'), (2, 20, 0, 'b'), (3, NULL, 0, 'c')"));
    }
    node
}

fn session(node: &Node) -> Session {
    Connection::log_in_over(node.stream(Protocol::MySql).expect("there is room"), "").expect("root may log in")
}

/// The number of affected rows.
fn run(session: &mut Session, text: &str) -> u64 {
    session.query(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).affected_rows
}

fn value(session: &mut Session, text: &str) -> String {
    session.query_value(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).unwrap_or_else(|| "NULL".into())
}

/// Runs a statement that has to wait for a lock, in a thread.
fn run_waiting(node: &Node, mut session: Session, text: String) -> JoinHandle<(u64, Session)> {
    let thread = spawn(move || {
        let rows = run(&mut session, &text);
        (rows, session)
    });
    await_lock_wait(node);
    thread
}

/// Returns once a transaction waits for a lock.
fn await_lock_wait(node: &Node) {
    let mut watcher = session(node);
    while value(&mut watcher, "SELECT COUNT(*) FROM junctor_info.lock_waits") == "0" {}
}

const TABLES: [&str; 2] = ["d.sorted", "d.hashed"];

#[test]
fn the_row_with_the_key_changes_if_it_satisfies_the_whole_condition() {
    let node = node();
    let mut session = session(&node);
    for table in TABLES {
        assert_eq!(run(&mut session, &format!("UPDATE {table} SET v = v + 1 WHERE u = 10")), 1);
        assert_eq!(run(&mut session, &format!("UPDATE {table} SET v = v + 1 WHERE u = 10 AND v = 0")), 0);
        assert_eq!(run(&mut session, &format!("UPDATE {table} SET v = 7, u = 11 WHERE u = 10 AND s = 'a'")), 1);
        assert_eq!(run(&mut session, &format!("UPDATE {table} SET v = 9 WHERE u = 10")), 0);
        assert_eq!(run(&mut session, &format!("UPDATE {table} SET v = 9 WHERE u = NULL")), 0);
        assert_eq!(run(&mut session, &format!("UPDATE {table} SET v = 9 WHERE u = 'x'")), 0);
        assert_eq!(run(&mut session, &format!("UPDATE {table} SET v = 8 WHERE u = 11.0 LIMIT 1")), 1);
        let duplicate = session.query(&format!("UPDATE {table} SET u = 20 WHERE u = 11")).expect_err("20 exists");
        assert_eq!(duplicate.errno(), 1062);
        assert_eq!(run(&mut session, &format!("UPDATE IGNORE {table} SET u = 20 WHERE u = 11")), 0);
        let update = session.prepare(&format!("UPDATE {table} SET v = ? WHERE u = ?")).expect("it is good");
        assert_eq!(session.execute(update, &[5, 20]).expect("it is prepared").affected_rows, 1);
        assert_eq!(session.execute(update, &[5, 21]).expect("it is prepared").affected_rows, 0);
        let rows = format!("SELECT SUM(id * 100 + u * 10 + v) FROM {table} WHERE u > 0");
        assert_eq!(value(&mut session, &rows), (100 + 110 + 8 + 200 + 200 + 5).to_string());
        assert_eq!(value(&mut session, &format!("DELETE FROM {table} WHERE u = 20 ORDER BY v RETURNING s")), "b");
        assert_eq!(run(&mut session, &format!("DELETE FROM {table} WHERE u = 20")), 0);
        assert_eq!(value(&mut session, &format!("SELECT COUNT(*) FROM {table}")), "2");
    }
}

#[test]
fn only_the_partition_of_the_row_is_written() {
    let node = node();
    let mut session = session(&node);
    let writes = "SELECT SUM(value) FROM junctor_info.counters WHERE module = 'ldm' AND name = 'writes'";
    for table in TABLES {
        let before: u64 = value(&mut session, writes).parse().expect("it is a number");
        assert_eq!(run(&mut session, &format!("UPDATE {table} SET v = v + 1 WHERE u = 20")), 1);
        let after: u64 = value(&mut session, writes).parse().expect("it is a number");
        assert_eq!(after - before, 1, "{table}");
        let explained = session.query(&format!("EXPLAIN DELETE FROM {table} WHERE u = 20")).expect("it is good").rows;
        let shown: Vec<_> = [3, 4, 6].iter().map(|column| explained[0][*column].as_deref().unwrap_or("NULL")).collect();
        assert_eq!(shown, ["NULL", "const", "u"]);
    }
}

#[test]
fn a_change_follows_a_key_that_moves_to_another_row_while_it_waits() {
    let node = node();
    let mut mover = session(&node);
    for table in TABLES {
        for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
            run(&mut mover, &format!("UPDATE {table} SET v = 0, u = id * 10 WHERE id < 3"));
            let mut changer = session(&node);
            run(&mut changer, &format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}"));
            run(&mut changer, "BEGIN");
            run(&mut mover, "BEGIN");
            assert_eq!(run(&mut mover, &format!("UPDATE {table} SET u = 15 WHERE id = 1")), 1);
            assert_eq!(run(&mut mover, &format!("UPDATE {table} SET u = 10 WHERE id = 2")), 1);
            let waiting = run_waiting(&node, changer, format!("UPDATE {table} SET v = v + 1 WHERE u = 10"));
            run(&mut mover, "COMMIT");
            let (rows, mut changer) = waiting.join().expect("it does not fail");
            assert_eq!(rows, 1, "{table} {isolation}");
            run(&mut changer, "COMMIT");
            assert_eq!(value(&mut mover, &format!("SELECT SUM(v * id) FROM {table}")), "2", "{table} {isolation}");
        }
    }
}

#[test]
fn an_old_snapshot_does_not_hide_the_key() {
    let node = node();
    let (mut old, mut other) = (session(&node), session(&node));
    for table in TABLES {
        run(&mut old, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
        assert_eq!(value(&mut old, &format!("SELECT COUNT(*) FROM {table} WHERE u = 10")), "1");
        run(&mut other, &format!("UPDATE {table} SET u = u + 1 WHERE id = 1"));
        assert_eq!(run(&mut old, &format!("UPDATE {table} SET v = 3 WHERE u = 11")), 1);
        assert_eq!(run(&mut old, &format!("UPDATE {table} SET u = 12 WHERE u = 11")), 1);
        // The transaction sees its own change.
        assert_eq!(run(&mut old, &format!("UPDATE {table} SET v = 4 WHERE u = 12 AND v = 3")), 1);
        assert_eq!(value(&mut old, &format!("SELECT u FROM {table} WHERE id = 2")), "20");
        run(&mut old, "COMMIT");
    }
}

#[test]
fn a_missing_key_is_protected_as_the_isolation_level_demands() {
    let node = node();
    for table in TABLES {
        for (isolation, errno) in [("READ COMMITTED", 0), ("REPEATABLE READ", 1205), ("SERIALIZABLE", 1205)] {
            let (mut first, mut second) = (session(&node), session(&node));
            run(&mut first, &format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}"));
            run(&mut second, "SET SESSION innodb_lock_wait_timeout = 1");
            run(&mut first, "BEGIN");
            assert_eq!(run(&mut first, &format!("UPDATE {table} SET v = 1 WHERE u = 99")), 0);
            let inserted = second.query(&format!("INSERT INTO {table} VALUES (9, 99, 0, '')"));
            assert_eq!(inserted.err().map_or(0, |error| error.errno()), errno, "{table} {isolation}");
            run(&mut first, "ROLLBACK");
            run(&mut second, &format!("DELETE FROM {table} WHERE id = 9"));
            // The statement waits for a key that another transaction is inserting.
            run(&mut second, "BEGIN");
            run(&mut second, &format!("INSERT INTO {table} VALUES (9, 99, 0, '')"));
            let waiting = run_waiting(&node, first, format!("UPDATE {table} SET v = 1 WHERE u = 99"));
            run(&mut second, "COMMIT");
            assert_eq!(waiting.join().expect("it does not fail").0, 1, "{table} {isolation}");
            assert_eq!(run(&mut second, &format!("DELETE FROM {table} WHERE u = 99")), 1);
        }
    }
}

#[test]
fn a_change_that_waits_can_be_killed() {
    let node = node();
    let mut holder = session(&node);
    for table in TABLES {
        let mut waiter = session(&node);
        let id = value(&mut waiter, "SELECT CONNECTION_ID()");
        run(&mut holder, "BEGIN");
        run(&mut holder, &format!("UPDATE {table} SET v = 1 WHERE id = 1"));
        let text = format!("UPDATE {table} SET v = 2 WHERE u = 10");
        let thread = spawn(move || {
            let errno = waiter.query(&text).expect_err("it is killed").errno();
            (errno, value(&mut waiter, "SELECT 1"))
        });
        await_lock_wait(&node);
        run(&mut session(&node), &format!("KILL QUERY {id}"));
        assert_eq!(thread.join().expect("it does not fail"), (1317, "1".to_owned()));
        run(&mut holder, "ROLLBACK");
    }
}

#[test]
fn a_row_that_fails_another_condition_stays_for_every_type_of_key() {
    let types = [
        ("DOUBLE", "-0.0"),
        ("FLOAT", "1.5"),
        ("DECIMAL(20,5)", "-12.50000"),
        ("BIGINT UNSIGNED", "18446744073709551615"),
        ("BIT(12)", "b'101'"),
        ("YEAR", "1999"),
        ("DATE", "'2024-02-29'"),
        ("TIME(3)", "'-10:11:12.345'"),
        ("DATETIME(6)", "'2024-02-29 10:11:12.000001'"),
        ("TIMESTAMP", "'2024-02-29 10:11:12'"),
        ("ENUM('a','b')", "'b'"),
        ("SET('a','b','c')", "'a,c'"),
        ("CHAR(10)", "'äB'"),
        ("VARCHAR(20) COLLATE utf8mb4_bin", "'x\\0y'"),
        ("VARCHAR(20) CHARACTER SET latin1", "'ü'"),
        ("BINARY(4)", "x'00ff0000'"),
        ("VARBINARY(300)", "REPEAT(x'00ff', 100)"),
    ];
    let node = node();
    let mut session = session(&node);
    for (column_type, written) in types {
        for index in ["UNIQUE KEY (u) USING HASH", "UNIQUE KEY (u DESC, w)", "UNIQUE KEY (w, u)"] {
            run(
                &mut session,
                &format!(
                    "CREATE TABLE d.typed (id INT PRIMARY KEY, u {column_type}, v INT, w INT, {index}) \
                     PARTITION BY KEY (id) PARTITIONS 8"
                ),
            );
            run(&mut session, &format!("INSERT INTO d.typed VALUES (1, {written}, 2, 3)"));
            let mut change = |rest: &str| {
                run(&mut session, &format!("UPDATE d.typed SET v = v + 1 WHERE u = {written} AND w = 3 AND {rest}"))
            };
            let changed = ["v = 5", "v = 2", "v = 3 AND RAND() >= 0", "v = 4 AND RAND() < 0"].map(&mut change);
            assert_eq!(changed, [0, 1, 1, 0], "{column_type} {index}");
            run(&mut session, "DROP TABLE d.typed");
        }
    }
}

#[test]
fn every_change_finds_a_key_that_always_exists() {
    const CHANGES: u64 = 300;
    let node = node();
    for table in TABLES {
        let mut mover = session(&node);
        run(&mut mover, &format!("UPDATE {table} SET v = 0, u = NULL"));
        run(&mut mover, &format!("UPDATE {table} SET u = 5 WHERE id = 1"));
        let changers: Vec<_> = (0..2)
            .map(|_| {
                let mut session = session(&node);
                spawn(move || {
                    let text = format!("UPDATE {table} SET v = v + 1 WHERE u = 5");
                    (0..CHANGES).map(|_| run(&mut session, &text)).sum::<u64>()
                })
            })
            .collect();
        let mut row = 1;
        while changers.iter().any(|changer| !changer.is_finished()) {
            let next = row % 3 + 1;
            run(&mut mover, "BEGIN");
            run(&mut mover, &format!("UPDATE {table} SET u = NULL WHERE id = {row}"));
            run(&mut mover, &format!("UPDATE {table} SET u = 5 WHERE id = {next}"));
            run(&mut mover, "COMMIT");
            row = next;
        }
        let changed: u64 = changers.into_iter().map(|changer| changer.join().expect("it does not fail")).sum();
        assert_eq!(changed, 2 * CHANGES, "{table}");
        assert_eq!(value(&mut mover, &format!("SELECT SUM(v) FROM {table}")), changed.to_string());
    }
}
