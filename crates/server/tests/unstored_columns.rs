//! Virtual columns that are added without touching the rows
//! (`docs/decisions/0076-unstored-virtual-columns.md`): every statement answers as with a copy, which stores
//! their values.

use junctor::{MemoryStream, Node, Protocol};
use junctor_bench::mysql::Connection;

type Session = Connection<MemoryStream>;

/// Rows as text, or the number of the error, with the warnings.
type Answer = (Result<Vec<Vec<Option<String>>>, u16>, Vec<Vec<Option<String>>>);

const TABLE: &str = "(id INT PRIMARY KEY, a INT, c VARCHAR(20), t DATETIME DEFAULT '2020-01-02 03:04:05', \
                     k INT DEFAULT 1, KEY (k)) PARTITION BY KEY (id) PARTITIONS 3";
const ADDED: &str = "ADD COLUMN v INT AS (a + 10) VIRTUAL, ADD COLUMN w BIGINT AS (id * 2) AFTER id, \
                     ADD COLUMN s VARCHAR(30) AS (CONCAT('x ', c)), \
                     ADD COLUMN l CHAR(3) CHARACTER SET latin1 AS (LEFT(c, 3)), \
                     ADD COLUMN j JSON AS (JSON_OBJECT('a', a)), ADD COLUMN d DATE AS (DATE(t)), \
                     ADD COLUMN e ENUM('p', 'q') AS (IF(a > 2, 'p', 'q')), ADD COLUMN n DECIMAL(10, 4) AS (v / 4), \
                     ADD COLUMN f FLOAT AS (a * 1.5) FIRST, ADD COLUMN i INT AS (v - 1) INVISIBLE";

/// Statements over the tables `t` of both databases. They run one after the other.
const STATEMENTS: &[&str] = &[
    "SELECT * FROM t ORDER BY id",
    "SELECT *, i FROM t WHERE id IN (1, 3, 5) ORDER BY id",
    "SELECT id, v, s FROM t WHERE id = 2",
    "SELECT id FROM t WHERE v = 11",
    "SELECT id FROM t WHERE v > 10 AND s LIKE 'x%' ORDER BY v DESC",
    "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 2",
    "SELECT DISTINCT e FROM t ORDER BY e",
    "SELECT e + 0, e = 'q' FROM t ORDER BY id",
    "SELECT id FROM t WHERE e = 'p' ORDER BY id",
    "SELECT COUNT(v), COUNT(DISTINCT s), AVG(n), SUM(v), MIN(d), MAX(l) FROM t",
    "SELECT v, COUNT(*), SUM(w), MAX(s) FROM t GROUP BY v ORDER BY v",
    "SELECT v % 2 AS p, SUM(v) FROM t GROUP BY p WITH ROLLUP HAVING SUM(v) > 0 ORDER BY p",
    "SELECT v, a FROM t GROUP BY v",
    "SELECT x.id, y.id FROM t x JOIN t y ON x.v = y.v + 2 ORDER BY 1, 2",
    "SELECT x.id, y.v FROM t x LEFT JOIN t y ON x.id = y.v - 10 ORDER BY 1, 2",
    "SELECT z.v FROM t z NATURAL JOIN (SELECT 11 AS v) o",
    "SELECT id FROM t WHERE v IN (SELECT w + 9 FROM t) ORDER BY id",
    "SELECT id, (SELECT MAX(v) FROM t x WHERE x.w < y.w) FROM t y ORDER BY id",
    "SELECT id, ROW_NUMBER() OVER (PARTITION BY e ORDER BY v DESC, id) FROM t ORDER BY id",
    "SELECT v FROM t UNION SELECT w FROM t ORDER BY 1",
    "WITH q AS (SELECT id, v, s FROM t) SELECT * FROM q WHERE v IS NOT NULL ORDER BY v, id",
    "SELECT JSON_EXTRACT(j, '$.a'), j FROM t ORDER BY id",
    "SELECT id, v FROM t WHERE v BETWEEN 5 AND 13 ORDER BY id FOR UPDATE",
    "SELECT DEFAULT(v) FROM t",
    "SELECT @z := v, @z FROM t ORDER BY id",
    "SELECT * FROM t WHERE t.v = @z",
    "PREPARE p FROM 'SELECT id, v FROM t WHERE v = ? OR s = ? ORDER BY id'",
    "SET @v = 40, @s = 'x five'",
    "EXECUTE p USING @v, @s",
    "INSERT INTO t (id, a, c) VALUES (10, 100, 'ten')",
    "INSERT INTO t (id, a, c) VALUES (11, 100, REPEAT('z', 40))",
    "INSERT INTO t (id, a) VALUES (12, 2147483647)",
    "INSERT INTO t (id, a, v) VALUES (12, 1, 3)",
    "INSERT INTO t (id, a, v) VALUES (12, 1, DEFAULT)",
    "INSERT INTO t (id, a) VALUES (20, 5), (21, 6) RETURNING id, v, w, s",
    "INSERT INTO t (id, a) VALUES (10, 7) ON DUPLICATE KEY UPDATE a = v + VALUES(v) * 2 + VALUES(a)",
    "SELECT id, a, v, n, i FROM t ORDER BY id",
    "INSERT INTO t (id, a) VALUES (10, 7) AS n ON DUPLICATE KEY UPDATE a = n.v * 2 + n.i, c = t.s",
    "INSERT INTO t (id, a) SELECT id + 30, v FROM t WHERE v < 15 ON DUPLICATE KEY UPDATE a = t.v",
    "SELECT id, a, c, v, s FROM t ORDER BY id",
    "DELETE FROM t WHERE v = 16 RETURNING id, v, f",
    "UPDATE t SET a = a + 1 WHERE v = 15",
    "SELECT ROW_COUNT()",
    "UPDATE t SET a = v, c = l ORDER BY v LIMIT 2",
    "UPDATE t SET a = 3, c = CONCAT('v', v) WHERE id = 1",
    "UPDATE t SET k = 4, a = 3, c = v, k = k + 1 WHERE id = 3",
    "UPDATE t SET a = v, c = v WHERE id = 2",
    "UPDATE t SET a = a WHERE v IS NULL OR v > 0",
    "SELECT ROW_COUNT()",
    "UPDATE t SET v = 3",
    "UPDATE t SET v = DEFAULT, a = 2 WHERE id = 1",
    "UPDATE t SET a = 2147483640 WHERE id = 3",
    "UPDATE t SET a = a - 1 WHERE 1 / v > 0",
    "UPDATE IGNORE t SET a = 2147483640 WHERE id = 3",
    "UPDATE t SET a = 9 WHERE id = 3",
    "UPDATE t x JOIN t y ON x.id = y.id + 1 SET x.a = y.v + 1, x.c = x.v",
    "UPDATE t SET a = (SELECT MAX(v) FROM (SELECT v FROM t) q) WHERE id = 1",
    "SELECT id, a, c, v, s FROM t ORDER BY id",
    "DELETE x FROM t x JOIN t y ON x.v = y.v AND x.id > y.id",
    "REPLACE INTO t (id, a, c) VALUES (1, 5, 'five')",
    "REPLACE INTO t (id, a, c) VALUES (1, 5, 'five')",
    "SELECT ROW_COUNT()",
    "CHECKSUM TABLE t",
    "CREATE VIEW w AS SELECT id, v, a FROM t WHERE v > 5 WITH CHECK OPTION",
    "SELECT * FROM w ORDER BY id",
    "UPDATE w SET a = a + 20 WHERE v > 10 AND id < 10",
    "UPDATE w SET a = -20 WHERE v > 10 AND id < 10",
    "INSERT INTO w (id, a) VALUES (50, -50)",
    "INSERT INTO w (id, a) VALUES (50, 50)",
    "SELECT * FROM w ORDER BY id",
    "CREATE TABLE s SELECT * FROM t",
    "SELECT * FROM s ORDER BY id",
    "CREATE TABLE o LIKE t",
    "INSERT INTO o (id, a) VALUES (1, 1)",
    "SELECT * FROM o",
    "ANALYZE TABLE t UPDATE HISTOGRAM ON v WITH 4 BUCKETS",
    "SELECT id FROM t WHERE v > 17 ORDER BY id",
    "DELETE FROM t WHERE v > 30 ORDER BY v LIMIT 1",
    "BEGIN",
    "UPDATE t SET a = a + 1",
    "SELECT id, v FROM t WHERE v > 0 ORDER BY id",
    "ROLLBACK",
    "SELECT id, v, (SELECT COUNT(*) FROM t) FROM t ORDER BY id",
    "ALTER TABLE t MODIFY v INT AS (a + 10) VIRTUAL COMMENT 'new', RENAME COLUMN e TO ee, ALGORITHM=INSTANT",
    "ALTER TABLE t DROP COLUMN n, DROP COLUMN l, ALGORITHM=INSTANT",
    "SELECT * FROM t ORDER BY id",
    "INSERT INTO t (id, a) VALUES (60, 3)",
    "UPDATE t SET c = 'changed' WHERE v = 13",
    "SELECT * FROM t ORDER BY id",
    "ALTER TABLE t DROP COLUMN a, ALGORITHM=INSTANT",
    "ALTER TABLE t ADD COLUMN n INT AS (v + k) VIRTUAL AFTER id, ALGORITHM=INSTANT",
    "SELECT * FROM t ORDER BY n, id",
    "SET sql_mode = ''",
    "INSERT INTO t (id, a) VALUES (80, 2147483647)",
    "SELECT * FROM t WHERE id = 80",
    "DELETE FROM t WHERE id = 80",
    "SET sql_mode = DEFAULT",
    "ALTER TABLE t ADD CHECK (v < 1000)",
    "INSERT INTO t (id, a) VALUES (70, 5000)",
    "SELECT * FROM t ORDER BY id",
];

fn node() -> Node {
    Node::builder().total_memory_bytes(64 << 20).cpu_count_max(2).start().expect("the node starts")
}

fn session(node: &Node) -> Session {
    Connection::log_in_over(node.stream(Protocol::MySql).expect("there is room"), "").expect("root may log in")
}

fn run(session: &mut Session, text: &str) {
    session.query(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
}

fn rows(session: &mut Session, text: &str) -> Result<Vec<Vec<Option<String>>>, u16> {
    let mut rows = session.query(text).map(|answer| answer.rows).map_err(|error| error.errno())?;
    // Some answers have the name of the database.
    for value in rows.iter_mut().flatten().flatten() {
        *value = value.replace("in_INSTANT", "in_COPY");
    }
    Ok(rows)
}

fn answer(session: &mut Session, text: &str) -> Answer {
    let answer = rows(session, text);
    // ROW_COUNT() and the like are those of the statement before.
    let is_asked = text.contains("_COUNT()") || answer.is_err();
    let warnings = if is_asked { Vec::new() } else { rows(session, "SHOW WARNINGS").expect("it is a good statement") };
    (answer, warnings)
}

/// Two sessions, each with the table `t` in its database. One adds columns without touching the rows, the
/// other copies them.
fn pair(node: &Node, setup: &[&str], added: &str) -> [Session; 2] {
    ["INSTANT", "COPY"].map(|algorithm| {
        let mut session = session(node);
        run(&mut session, &format!("CREATE DATABASE IF NOT EXISTS in_{algorithm}"));
        run(&mut session, &format!("USE in_{algorithm}"));
        setup.iter().for_each(|text| run(&mut session, text));
        run(&mut session, &format!("ALTER TABLE t {added}, ALGORITHM={algorithm}"));
        session
    })
}

fn definition(session: &mut Session) -> Option<String> {
    rows(session, "SHOW CREATE TABLE t").expect("it exists")[0][1].clone()
}

#[test]
fn statements_answer_as_with_stored_values() {
    let node = node();
    let insert = "INSERT INTO t (id, a, c) VALUES (1, 1, 'one'), (2, NULL, NULL), (3, 3, 'three'), (4, 30, ''), \
                  (5, -5, 'five')";
    let [mut instant, mut copied] = pair(&node, &[&format!("CREATE TABLE t {TABLE}"), insert], ADDED);
    for text in STATEMENTS {
        let answers = [&mut instant, &mut copied].map(|session| answer(session, text));
        assert_eq!(answers[0], answers[1], "{text}");
    }
    assert_eq!(definition(&mut instant), definition(&mut copied));
}

#[test]
fn every_type_has_the_value_that_a_copy_stores() {
    const TYPES: [&str; 20] = [
        "TINYINT",
        "SMALLINT UNSIGNED",
        "INT",
        "BIGINT UNSIGNED",
        "DECIMAL(6, 2)",
        "FLOAT(7, 3)",
        "DOUBLE",
        "BIT(5)",
        "YEAR",
        "DATE",
        "TIME(2)",
        "DATETIME(3)",
        "TIMESTAMP",
        "CHAR(3)",
        "VARCHAR(5) CHARACTER SET latin1",
        "BINARY(4)",
        "BLOB",
        "TEXT",
        "ENUM('one', '7', '')",
        "SET('one', '7')",
    ];
    const EXPRESSIONS: [&str; 14] = [
        "a",
        "a * 1000",
        "-a",
        "a / 3",
        "x",
        "c",
        "CONCAT(c, c)",
        "t",
        "DATE(t)",
        "TIME(t)",
        "IF(a > 1, c, t)",
        "a > 3",
        "HEX(a)",
        "COALESCE(c, a)",
    ];
    let node = node();
    let table = "CREATE TABLE t (id INT PRIMARY KEY, a INT, x DOUBLE, c VARCHAR(20), t DATETIME(4))";
    let insert = "INSERT INTO t VALUES (1, 7, 1e30, 'one', '2021-03-04 05:06:07.8912'), (2, -9, -0.5, '7', NULL), \
                  (3, NULL, NULL, NULL, '1000-01-01'), (4, 2147483647, 127.5, 'sixteen \u{e9}\u{4e2d}', '9999-12-31 23:59:59'), \
                  (5, 0, 0, '', '2001-01-01'), (6, 1999, 20.25, '2020-02-30', '2020-02-29 12:00:00')";
    for data_type in TYPES {
        let added: Vec<String> = EXPRESSIONS
            .iter()
            .enumerate()
            .map(|(number, expression)| format!("ADD COLUMN v{number} {data_type} AS ({expression}) VIRTUAL"))
            .collect();
        let setup = ["SET sql_mode = ''", "SET time_zone = '+03:00'", "DROP TABLE IF EXISTS t", table, insert];
        let [mut instant, mut copied] = pair(&node, &setup, &added.join(", "));
        for (number, expression) in EXPRESSIONS.iter().enumerate() {
            let texts = [
                format!("SELECT id, HEX(v{number}), LENGTH(v{number}) FROM t ORDER BY id"),
                format!("SELECT id FROM t WHERE v{number} > 0 OR v{number} = 'one' ORDER BY v{number}, id"),
                format!("SELECT HEX(v{number}), COUNT(*) FROM t GROUP BY v{number} ORDER BY v{number}"),
            ];
            for text in texts {
                let answers = [&mut instant, &mut copied].map(|session| rows(session, &text));
                assert_eq!(answers[0], answers[1], "{text} of {data_type} AS ({expression})");
            }
        }
    }
}

#[test]
fn an_assignment_that_cannot_read_the_old_value_is_refused() {
    let node = node();
    let setup = [&*format!("CREATE TABLE t {TABLE}"), "INSERT INTO t (id, a, k) VALUES (1, 1, 1)"];
    let [mut instant, _] = pair(&node, &setup, "ADD COLUMN v INT AS (a + 10) VIRTUAL");
    for refused in ["SET a = 5, k = v + a", "SET a = 5, k = v * a + v, c = v", "SET k = 7, a = k, k = v"] {
        assert_eq!(rows(&mut instant, &format!("UPDATE t {refused}")), Err(1235), "{refused}");
    }
    run(&mut instant, "UPDATE t SET a = 5, k = v");
    let stored = |values: [&str; 3]| Ok(vec![values.map(|value| Some(value.to_owned())).to_vec()]);
    assert_eq!(rows(&mut instant, "SELECT a, k, v FROM t"), stored(["5", "11", "15"]));
    run(&mut instant, "UPDATE t SET a = 6, k = v, a = k + a");
    assert_eq!(rows(&mut instant, "SELECT a, k, v FROM t"), stored(["21", "15", "31"]));
}

#[test]
fn a_statement_that_would_grow_without_bound_is_refused() {
    let node = node();
    let setup = [&*format!("CREATE TABLE t {TABLE}"), "INSERT INTO t (id, a) VALUES (1, 1)"];
    let greatest = format!("GREATEST(a{})", ", a".repeat(100));
    let [mut instant, mut copied] = pair(&node, &setup, &format!("ADD COLUMN v INT AS ({greatest}) VIRTUAL"));
    let text = format!("SELECT 1 FROM t WHERE v IN (1{})", ", v".repeat(1_000));
    assert_eq!(rows(&mut instant, &text), Err(1235));
    assert!(rows(&mut copied, &text).is_ok_and(|rows| rows.len() == 1));
    // The limit is one of the statement, whichever of its parts name the column.
    let part = format!("SELECT 1 FROM t WHERE v IN (1{})", ", v".repeat(400));
    assert_eq!(rows(&mut instant, &format!("{part} UNION ALL {part}")), Err(1235));
    assert!(rows(&mut instant, &part).is_ok_and(|rows| rows.len() == 1));
    let doubled = "ALTER TABLE t ADD COLUMN u INT AS (v + v) VIRTUAL, ADD COLUMN w INT AS (u + u) VIRTUAL";
    assert_eq!(rows(&mut instant, &format!("{doubled}, ALGORITHM=INSTANT")), Err(1845));
    run(&mut instant, doubled);
    assert!(rows(&mut instant, &text).is_ok_and(|rows| rows.len() == 1), "the copy has stored the values");
}
