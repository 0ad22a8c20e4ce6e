//! Statistics decide how a query is executed, and never its rows: queries have the same answers without
//! statistics, with those of quite different rows, and with those of their own rows.

use junctor::{MemoryStream, Node, Protocol};
use junctor_bench::mysql::Connection;

const QUERIES: [&str; 17] = [
    "SELECT a.id, b.id FROM a, b WHERE a.id = b.a AND a.k = 3",
    "SELECT a.id, b.id FROM a JOIN b ON a.k = b.k WHERE b.v BETWEEN 10 AND 20 AND a.id < 50",
    "SELECT a.k, COUNT(*), SUM(b.v) FROM a LEFT JOIN b ON b.a = a.id AND b.v > 40 GROUP BY a.k",
    "SELECT id FROM a WHERE k IN (SELECT k FROM b WHERE v < 15)",
    "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE v > 5 AND k IS NOT NULL)",
    "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.a = a.id)",
    "SELECT id, (SELECT COUNT(*) FROM b WHERE b.a = a.id) FROM a WHERE s LIKE 's1%'",
    "SELECT id FROM a WHERE k > (SELECT AVG(v) FROM b WHERE b.k = a.k)",
    "SELECT x.id, y.id FROM a x, a y, b WHERE x.k = y.k AND y.id = b.a AND b.v = 7 AND x.id < y.id",
    "SELECT COUNT(*) FROM a, b, a c WHERE a.id = b.a AND b.k = c.k AND c.id % 7 = 0 AND a.s <> 's2'",
    "SELECT a.s, MAX(b.v) FROM a JOIN b USING (k) WHERE a.s IN ('s1', 's3', 's9') GROUP BY a.s",
    "SELECT COUNT(*) FROM b WHERE k IS NULL AND a IN (SELECT id FROM a WHERE k >= 2)",
    "SELECT a.id FROM a JOIN b ON b.a = a.id AND b.k = a.k WHERE (a.k = 1 AND b.v > 3) OR (a.k = 2 AND b.v < 90)",
    "SELECT COUNT(*) FROM a LEFT JOIN b ON a.k = b.k WHERE b.id IS NULL",
    "SELECT id FROM b WHERE a = 3 AND k = 1 AND v < 50",
    "SELECT id FROM b WHERE a < 40 AND v IN (7, 8, 9)",
    "SELECT b.id FROM b JOIN a ON a.id = b.a WHERE b.a BETWEEN 2 AND 30 AND b.v = 7",
];

type Session = Connection<MemoryStream>;

fn run(session: &mut Session, text: &str) {
    session.query(text).unwrap_or_else(|error| panic!("{text}: {error}"));
}

fn answers(session: &mut Session) -> Vec<Vec<Vec<Option<String>>>> {
    let answer = |query: &&str| {
        let mut rows = session.query(query).unwrap_or_else(|error| panic!("{query}: {error}")).rows;
        rows.sort();
        rows
    };
    QUERIES.iter().map(answer).collect()
}

/// Replaces the rows of both tables by rows of a sequence without an order.
fn fill(session: &mut Session, (rows_of_a, rows_of_b): (u64, u64), values: u64) {
    run(session, "DELETE FROM a");
    run(session, "DELETE FROM b");
    let mut state = values;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut insert = |table: &str, rows: Vec<String>| {
        for part in rows.chunks(200) {
            run(session, &format!("INSERT INTO {table} VALUES {}", part.join(", ")));
        }
    };
    let nullable = |value: u64| if value == 0 { "NULL".to_owned() } else { value.to_string() };
    let of_a = |id| format!("({id}, {}, 's{}')", nullable(next(values)), next(12));
    insert("a", (0..rows_of_a).map(of_a).collect());
    let of_b = |id| {
        let (of_a, k, v) = (next(2 * rows_of_a), nullable(next(values)), next(100));
        format!("({id}, {of_a}, {k}, {v})")
    };
    insert("b", (0..rows_of_b).map(of_b).collect());
}

#[test]
fn wrong_statistics_change_no_answer() {
    let node = Node::builder().total_memory_bytes(64 << 20).cpu_count_max(2).max_connections(8).start();
    let node = node.expect("the node starts");
    let mut session = Connection::log_in_over(node.stream(Protocol::MySql).expect("there is room"), "");
    let session = session.as_mut().expect("root may log in");
    for text in [
        "SET GLOBAL innodb_stats_auto_recalc = OFF",
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE a (id INT PRIMARY KEY, k INT, s VARCHAR(10), KEY (k))",
        "CREATE TABLE b (id INT PRIMARY KEY, a INT, k INT, v INT, KEY (a, k), KEY (v))",
    ] {
        run(session, text);
    }
    // Many different values in few rows, few in many, and a table that is nearly empty.
    let shapes = [((40, 2000), 1000), ((1500, 30), 4), ((300, 300), 7), ((1, 900), 2)];
    for (rows, values) in shapes {
        fill(session, rows, values);
        let without = answers(session);
        for (other, of_others) in shapes {
            fill(session, other, of_others);
            run(session, "ANALYZE TABLE a, b");
            fill(session, rows, values);
            assert_eq!(answers(session), without, "{rows:?} with the statistics of {other:?}");
        }
        run(session, "ALTER TABLE a COMMENT 'without statistics'");
        run(session, "ALTER TABLE b COMMENT 'without statistics'");
    }
}
