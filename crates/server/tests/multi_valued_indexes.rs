//! Multi-valued indexes: queries that use them find what the others find, whatever the rows went through.

#![allow(clippy::disallowed_methods, reason = "clients have threads of their own")]

use junctor::{MemoryStream, Node, NodeBuilder, Protocol};
use junctor_bench::mysql::Connection;

type Session = Connection<MemoryStream>;

fn node_builder() -> NodeBuilder {
    Node::builder().total_memory_bytes(64 << 20).cpu_count_max(2)
}

fn node() -> Node {
    node_builder().start().expect("the node starts")
}

fn session(node: &Node) -> Session {
    Connection::log_in_over(node.stream(Protocol::MySql).expect("there is room"), "").expect("root may log in")
}

/// Random numbers of a fixed sequence.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len() as u64) as usize]
    }

    /// An array, now and then one scalar or nothing.
    fn array(&mut self, scalars: &[&str]) -> String {
        match self.below(8) {
            0 => self.of(scalars).to_owned(),
            1 => "[]".to_owned(),
            _ => {
                let count = 1 + self.below(5);
                let elements: Vec<&str> = (0..count).map(|_| self.of(scalars)).collect();
                format!("[{}]", elements.join(", "))
            }
        }
    }

    fn document(&mut self) -> String {
        match self.below(12) {
            0 => "NULL".to_owned(),
            1 => "'{}'".to_owned(),
            _ => format!(
                r#"'{{"n": {}, "t": {}, "d": {}}}'"#,
                self.array(&NUMBERS),
                self.array(&TEXTS),
                self.array(&DECIMALS)
            ),
        }
    }

    fn condition(&mut self) -> String {
        let (path, scalars) = match self.below(3) {
            0 => ("n", &NUMBERS[..]),
            1 => ("t", &TEXTS[..]),
            _ => ("d", &DECIMALS[..]),
        };
        let scalars: Vec<&str> = scalars.iter().chain(&STRANGERS).copied().collect();
        let own = match self.below(8) {
            0..=2 => format!("{} MEMBER OF (j->'$.{path}')", self.of(&scalars).replace('"', "'")),
            3..=4 => format!("JSON_CONTAINS(j->'$.{path}', '{}')", self.array(&scalars)),
            5 => format!("JSON_OVERLAPS('{}', j->'$.{path}')", self.array(&scalars)),
            _ => format!("JSON_OVERLAPS(j->'$.{path}', '{}')", self.array(&scalars)),
        };
        match self.below(6) {
            0 => format!("{own} AND a = {}", self.below(4)),
            1 => format!("{own} AND a IN (1, 2, 3) AND b > {}", self.below(3)),
            2 => format!("a = {} AND {own} AND b = {}", self.below(4), self.below(3)),
            _ => own,
        }
    }
}

/// Numbers that the index of integers can have, in several forms.
const NUMBERS: [&str; 12] =
    ["0", "1", "2", "3", "-4", "1.0", "2.0", "3e0", "9007199254740993", "-9007199254740992", "255", "256"];
const TEXTS: [&str; 9] = [r#""a""#, r#""b""#, r#""A""#, r#""a ""#, r#""""#, r#""ab""#, r#""1""#, "1", r#""é""#];
const DECIMALS: [&str; 8] = ["0.5", "1.25", "1.256", "1.255", "2", "-3.75", "100", "1e2"];
/// Values that no row has.
const STRANGERS: [&str; 6] = ["null", "7.5", r#""none""#, "9007199254740992.0", "true", "12345678901234567890"];

const TABLE: &str = "CREATE TABLE d.t (id INT PRIMARY KEY, a INT, b INT, j JSON, KEY n ((CAST(j->'$.n' AS SIGNED ARRAY))), \
                     KEY t (a, (CAST(j->'$.t' AS CHAR(4) ARRAY)), b), KEY d ((CAST(j->'$.d' AS DECIMAL(8, 2) ARRAY)), a)) \
                     PARTITION BY KEY (id) PARTITIONS 3";

fn ids(session: &mut Session, hint: &str, condition: &str) -> Vec<String> {
    let (condition, lock) = condition.split_once(" FOR UPDATE").map_or((condition, ""), |it| (it.0, "FOR UPDATE"));
    let text = format!("SELECT id FROM d.t {hint} WHERE {condition} ORDER BY id {lock}");
    let answer = session.query(&text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    answer.rows.iter().map(|row| row[0].clone().expect("an id is not null")).collect()
}

#[test]
fn an_index_finds_what_a_scan_finds() {
    let node = node();
    let mut session = session(&node);
    let mut snapshot = self::session(&node);
    session.query("CREATE DATABASE d").expect("it is new");
    session.query(TABLE).expect("it is good");
    let mut draw = Draw(7);
    let mut served = 0;
    for round in 0..60 {
        if round % 10 == 0 {
            snapshot.query("ROLLBACK").expect("it is good");
            snapshot.query("START TRANSACTION WITH CONSISTENT SNAPSHOT").expect("it is good");
        }
        session.query("BEGIN").expect("it is good");
        for _ in 0..20 {
            let (id, document) = (draw.below(40), draw.document());
            let text = match draw.below(6) {
                0 => format!("DELETE FROM d.t WHERE id = {id}"),
                1 => format!("UPDATE d.t SET j = {document}, b = b + 1 WHERE {} LIMIT 3", draw.condition()),
                2 => format!("UPDATE d.t SET a = {} WHERE {}", draw.below(4), draw.condition()),
                _ => {
                    let (a, b) = (draw.below(4), draw.below(3));
                    format!("REPLACE INTO d.t VALUES ({id}, {a}, {b}, {document})")
                }
            };
            session.query(&text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        }
        session.query(if draw.below(3) == 0 { "ROLLBACK" } else { "COMMIT" }).expect("it is good");
        for _ in 0..20 {
            let condition = draw.condition();
            for reader in [&mut session, &mut snapshot] {
                let found = ids(reader, "", &condition);
                assert_eq!(found, ids(reader, "IGNORE INDEX (n, t, d)", &condition), "{condition}");
            }
            let locked = ids(&mut session, "", &format!("{condition} FOR UPDATE")).len();
            let counted = format!("SELECT COUNT(*) FROM d.t WHERE {condition}");
            assert_eq!(session.query_value(&counted).expect("it is good"), Some(locked.to_string()), "{condition}");
            let plan = session.query(&format!("EXPLAIN SELECT id FROM d.t WHERE {condition}")).expect("it is good");
            served += u32::from(plan.rows[0][6].as_deref().is_some_and(|key| ["n", "t", "d"].contains(&key)));
        }
    }
    assert!(served > 500, "{served} conditions were served by an index");
}

#[test]
fn a_locking_read_returns_each_row_once() {
    let node = node();
    let mut session = session(&node);
    session.query("CREATE DATABASE d").expect("it is new");
    session.query(TABLE).expect("it is good");
    session
        .query(r#"INSERT INTO d.t VALUES (1, 1, 1, '{"n": [1, 2, 3]}'), (2, 1, 1, '{"n": [2, 3]}')"#)
        .expect("it is good");
    let read = "SELECT id FROM d.t WHERE JSON_OVERLAPS(j->'$.n', '[1, 2, 3, 4]') ORDER BY id FOR UPDATE";
    assert_eq!(session.query(read).expect("it is good").rows.len(), 2);
    let update = "UPDATE d.t SET b = b + 1, j = JSON_SET(j, '$.n[0]', 9) WHERE JSON_OVERLAPS(j->'$.n', '[1, 2, 3, 4]')";
    assert_eq!(session.query(update).expect("it is good").affected_rows, 2);
    assert_eq!(session.query_value("SELECT SUM(b) FROM d.t").expect("it is good").as_deref(), Some("4"));
    let unchanged = "UPDATE d.t SET b = 2 WHERE JSON_OVERLAPS(j->'$.n', '[1, 2, 3, 4]')";
    assert_eq!(session.query(unchanged).expect("it is good").affected_rows, 0);
    let delete = "DELETE FROM d.t WHERE JSON_OVERLAPS(j->'$.n', '[9, 2, 3]')";
    assert_eq!(session.query(delete).expect("it is good").affected_rows, 2);
}

#[test]
fn too_many_elements_are_refused() {
    let node = node();
    let mut session = session(&node);
    session.query("CREATE DATABASE d").expect("it is new");
    session.query(TABLE).expect("it is good");
    let insert = |count: u32| {
        let elements: Vec<String> = (0..count).map(|element| element.to_string()).collect();
        format!(r#"REPLACE INTO d.t VALUES (1, 1, 1, '{{"n": [{}]}}')"#, elements.join(","))
    };
    session.query(&insert(8192)).expect("that many are allowed");
    assert_eq!(ids(&mut session, "", "8191 MEMBER OF (j->'$.n')"), ["1"]);
    assert_eq!(session.query(&insert(8193)).expect_err("they are too many").errno(), 3905);
    assert_eq!(session.query(&insert(3)).expect("few are allowed").affected_rows, 2);
    assert_eq!(ids(&mut session, "", "8191 MEMBER OF (j->'$.n')"), [""; 0]);
    let long: Vec<String> = (0..8000).map(|element| (1_000_000_000_000_000_000u64 + element).to_string()).collect();
    let text = format!(r#"REPLACE INTO d.t VALUES (1, 1, 1, '{{"n": [{}]}}')"#, long.join(","));
    assert_eq!(session.query(&text).expect_err("they are too long").errno(), 3906);
}

#[test]
fn a_restart_and_an_alteration_keep_the_entries() {
    let folder = format!("{}/multi_valued", env!("CARGO_TARGET_TMPDIR"));
    let _ = std::fs::remove_dir_all(&folder);
    let start = || node_builder().data_directory(&folder).start().expect("the node starts");
    let mut draw = Draw(11);
    let mut conditions: Vec<String> = (0..60).map(|_| draw.condition()).collect();
    conditions
        .extend(["1 MEMBER OF (j->'$.n')", "JSON_OVERLAPS(j->'$.t', '[\"a\", \"b\"]') AND a = 1"].map(String::from));
    let node = start();
    let mut session = session(&node);
    session.query("CREATE DATABASE d").expect("it is new");
    session.query(TABLE).expect("it is good");
    for id in 0..200 {
        let text = format!("INSERT INTO d.t VALUES ({id}, {}, {}, {})", draw.below(4), draw.below(3), draw.document());
        session.query(&text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    }
    session.query("UPDATE d.t SET j = JSON_SET(j, '$.n', JSON_ARRAY(id, 1)) WHERE id % 3 = 0").expect("it is good");
    session.query("DELETE FROM d.t WHERE id % 7 = 0").expect("it is good");
    let found = |session: &mut Session| -> Vec<Vec<String>> {
        conditions.iter().map(|condition| ids(session, "", condition)).collect()
    };
    let expected: Vec<Vec<String>> =
        conditions.iter().map(|condition| ids(&mut session, "IGNORE INDEX (n, t, d)", condition)).collect();
    assert_eq!(found(&mut session), expected);
    drop(session);
    assert!(node.stop());
    let node = start();
    let mut session = self::session(&node);
    assert_eq!(found(&mut session), expected);
    for alteration in ["ADD COLUMN more INT FIRST", "ENGINE = InnoDB", "DROP INDEX n, DROP INDEX t", "MODIFY a BIGINT"]
    {
        session
            .query(&format!("ALTER TABLE d.t {alteration}"))
            .unwrap_or_else(|error| panic!("{alteration}: {error:?}"));
        if alteration.starts_with("DROP") {
            session
                .query("ALTER TABLE d.t ADD INDEX t (a, (CAST(j->'$.t' AS CHAR(4) ARRAY)), b)")
                .expect("the rows have such elements");
            session.query("CREATE INDEX n ON d.t ((CAST(j->'$.n' AS SIGNED ARRAY)))").expect("the rows have numbers");
            session.query("CREATE INDEX again ON d.t (b, (CAST(j->'$.n' AS SIGNED ARRAY)))").expect("it is good");
        }
        assert_eq!(found(&mut session), expected, "{alteration}");
    }
    drop(session);
    assert!(node.stop());
    std::fs::remove_dir_all(&folder).expect("the node has ended");
}

#[test]
fn a_locking_read_keeps_new_elements_out() {
    let node = node();
    let (mut reader, mut writer) = (session(&node), session(&node));
    reader.query("CREATE DATABASE d").expect("it is new");
    reader.query(TABLE).expect("it is good");
    reader.query(r#"INSERT INTO d.t VALUES (1, 1, 1, '{"n": [1]}'), (2, 1, 1, '{"n": [7]}')"#).expect("it is good");
    writer.query("SET innodb_lock_wait_timeout = 1").expect("it is good");
    reader.query("BEGIN").expect("it is good");
    let read = "SELECT id FROM d.t WHERE JSON_OVERLAPS(j->'$.n', '[1, 5]') FOR UPDATE";
    assert_eq!(reader.query(read).expect("it is good").rows.len(), 1);
    for (text, waits) in [
        (r#"INSERT INTO d.t VALUES (3, 1, 1, '{"n": [4, 6]}')"#, false),
        (r#"INSERT INTO d.t VALUES (4, 1, 1, '{"n": [4, 5]}')"#, true),
        (r#"UPDATE d.t SET j = '{"n": [7, 8]}' WHERE id = 2"#, false),
        (r#"UPDATE d.t SET j = '{"n": [5, 7]}' WHERE id = 2"#, true),
    ] {
        match writer.query(text) {
            Ok(_) => assert!(!waits, "{text}"),
            Err(error) => assert_eq!((error.errno(), waits), (1205, true), "{text}"),
        }
    }
    reader.query("COMMIT").expect("it is good");
    assert_eq!(ids(&mut reader, "", "5 MEMBER OF (j->'$.n')"), [""; 0]);
}
