//! Queries whose rows exceed their memory: they have the answers of queries in memory, and whatever ends
//! them, nothing of their memory, their files and their temporary space is left.

use junctor_kernel::FileError;

use super::*;

const ROWS: usize = 900;
const SMALL: &str = "SET tmp_table_size = 65536";

fn node() -> Node {
    node_of(NodeConfig::default())
}

/// A node with two tables and temporary files.
fn node_of(config: NodeConfig) -> Node {
    let temporary_files = Some(("/temporary".to_owned(), "/temporary/query-".to_owned()));
    with_tables(Node::new(TWO_RECV_THREADS, NodeConfig { temporary_files, ..config }))
}

pub(super) fn with_tables(mut node: Node) -> Node {
    node.delivery.returns_files = true;
    (1..3).for_each(|connection| node.open(connection, false));
    node.execute(2, &["CREATE DATABASE d"]);
    for (table, divisor) in [("t", 7), ("u", 11)] {
        node.execute(
            2,
            &[&format!("CREATE TABLE d.{table} (id INT PRIMARY KEY, k INT, g INT, s VARCHAR(200), KEY (g))")],
        );
        let row = |id: usize| {
            let k = if id.is_multiple_of(50) { "NULL".to_owned() } else { (id * id % (ROWS / 2)).to_string() };
            format!("({id}, {k}, {}, CONCAT(REPEAT('x', {}), '{}'))", id % divisor, 60 + id % 20, id * 31 % 997)
        };
        let rows: Vec<String> = (0..ROWS).map(row).collect();
        for part in rows.chunks(500) {
            node.execute(2, &[&format!("INSERT INTO d.{table} VALUES {}", part.join(","))]);
        }
    }
    for connection in [1, 2] {
        node.execute(connection, &["USE d", "SET group_concat_max_len = 10000000"]);
    }
    node
}

impl Node {
    /// The sum of a counter of the sql blocks.
    pub(super) fn sql_counted(&mut self, name: &str) -> u64 {
        let text = format!("SELECT SUM(`value`) FROM junctor_info.counters WHERE name = '{name}' AND module = 'sql'");
        self.query(2, &text)[0].parse().expect("a number")
    }

    /// Checks that no query has memory, temporary space or a file.
    pub(super) fn assert_nothing_left(&self, about: &dyn std::fmt::Debug) {
        let resources = &self.shared.settings.query_resources;
        assert_eq!((resources.memory(), resources.space()), (0, 0), "{about:?}");
        assert!(self.files.is_unused(), "{about:?}");
    }
}

/// Queries whose answer is one short value. Each writes to its temporary file.
pub(super) const QUERIES: &[&str] = &[
    // Sorts.
    "SELECT MD5(GROUP_CONCAT(id)) FROM (SELECT id FROM t JOIN u USING (id) ORDER BY t.s, id DESC LIMIT 100000) q",
    "SELECT MD5(GROUP_CONCAT(id)) FROM (SELECT t.id FROM t, u WHERE t.k = u.k ORDER BY u.s, t.id LIMIT 500, 700) q",
    // Groups.
    "SELECT CONCAT(COUNT(*), '-', SUM(CRC32(CONCAT_WS('|', s, c, k, m, d)))) FROM (SELECT t.s, COUNT(*) c, \
     SUM(u.k) k, MIN(u.s) m, COUNT(DISTINCT u.g) d FROM t JOIN u ON t.g = u.g WHERE u.id < 100 GROUP BY t.s) q",
    "SELECT CONCAT(COUNT(*), '-', SUM(CRC32(CONCAT_WS('|', g, s, c, k, r)))) FROM (SELECT t.g, t.s, COUNT(*) c, \
     AVG(u.k) k, GROUPING(t.s) r FROM t LEFT JOIN u ON t.id = u.id GROUP BY t.g, t.s WITH ROLLUP) q",
    // DISTINCT and set operations.
    "SELECT CONCAT(COUNT(*), '-', SUM(CRC32(CONCAT_WS('|', s, k)))) FROM (SELECT DISTINCT t.s, u.k FROM t JOIN u ON \
     t.k = u.k) q",
    "SELECT CONCAT(COUNT(*), '-', SUM(CRC32(s))) FROM (SELECT s FROM t UNION SELECT s FROM u WHERE id > 300) q",
    "SELECT CONCAT(COUNT(*), '-', SUM(CRC32(s))) FROM (SELECT s FROM t INTERSECT SELECT s FROM u WHERE id > 300) q",
    "SELECT CONCAT(COUNT(*), '-', SUM(CRC32(s))) FROM (SELECT s FROM t EXCEPT SELECT s FROM u WHERE id > 300) q",
    "SELECT CONCAT(COUNT(*), '-', SUM(CRC32(s))) FROM (SELECT s FROM t INTERSECT ALL SELECT s FROM u WHERE id > 300) q",
    "SELECT CONCAT(COUNT(*), '-', SUM(CRC32(s))) FROM (SELECT s FROM t EXCEPT ALL SELECT s FROM u WHERE id > 300) q",
    // Joins.
    "SELECT CONCAT(COUNT(*), '-', SUM(CRC32(CONCAT_WS('|', t.id, u.id, u.s)))) FROM t JOIN u ON t.k = u.k AND \
     LENGTH(t.s) > LENGTH(u.s)",
    "SELECT CONCAT(COUNT(*), '-', SUM(CRC32(CONCAT_WS('|', t.id, u.id, u.s)))) FROM t LEFT JOIN u ON t.k = u.k + 3 \
     AND u.g <> 4",
    "SELECT CONCAT(COUNT(*), '-', SUM(CRC32(CONCAT_WS('|', t.id, u.id, u.s)))) FROM (SELECT * FROM t WHERE id < 30) t \
     LEFT JOIN u ON t.s > u.s AND t.g < u.g",
    "SELECT CONCAT(COUNT(*), '-', SUM(id)) FROM t WHERE CONCAT(s, 'y') IN (SELECT CONCAT(s, 'y') FROM u WHERE g <> 3)",
    "SELECT CONCAT(COUNT(*), '-', SUM(id)) FROM t WHERE id < 300 AND NOT EXISTS (SELECT 1 FROM u WHERE CONCAT(u.s, u.g) = \
     CONCAT(t.s, t.g))",
    "SELECT CONCAT(COUNT(*), '-', SUM(id)) FROM t WHERE id < 50 AND CONCAT(s, g) NOT IN (SELECT CONCAT(s, g) FROM u)",
    // Recursion.
    "WITH RECURSIVE n AS (SELECT id, s, 0 d FROM t UNION ALL SELECT id, s, d + 1 FROM n WHERE d < 3 AND id % 3 > d) \
     SELECT CONCAT(COUNT(*), '-', SUM(CRC32(CONCAT_WS('|', id, s, d)))) FROM n",
    // A window over sorted rows.
    "SELECT CONCAT(COUNT(*), '-', SUM(CRC32(CONCAT_WS('|', id, r, v)))) FROM (SELECT t.id, ROW_NUMBER() OVER \
     (PARTITION BY t.g ORDER BY u.s, t.id) r, LAG(u.s) OVER (ORDER BY t.id, u.id) v FROM t JOIN u ON t.k = u.k) q",
];

#[test]
fn queries_beyond_their_memory_have_the_same_answers() {
    let mut node = node();
    for text in QUERIES {
        let expected = node.query(1, text);
        node.assert_nothing_left(&text);
        let files = node.sql_counted("temporary_files");
        node.execute(1, &[SMALL]);
        assert_eq!(node.query(1, text), expected, "{text}");
        node.assert_nothing_left(&text);
        assert!(node.sql_counted("temporary_files") > files, "{text}");
        node.execute(1, &["SET tmp_table_size = DEFAULT"]);
        assert_eq!(node.query(1, text), expected, "{text}");
    }
    let status = "SELECT SUM(VARIABLE_VALUE) > 0 FROM performance_schema.session_status WHERE VARIABLE_NAME = \
                  'Created_tmp_files'";
    assert_eq!(node.query(1, status), ["1"]);
    assert_eq!(node.resources_held(), 2, "only sessions hold resources");
}

#[test]
fn a_sort_of_one_table_begins_again_with_a_file() {
    let mut node = node();
    for text in [
        "SELECT s FROM t ORDER BY s DESC, id LIMIT 800, 60",
        "SELECT /*+ SET_VAR(time_zone = '+00:00') */ s FROM t ORDER BY s DESC, id LIMIT 800, 60",
        "SELECT DISTINCT s FROM t ORDER BY s LIMIT 700, 60",
        "SELECT id FROM t WHERE g = 3 OR id > 40 ORDER BY s, id LIMIT 750, 60",
        "EXECUTE p",
    ] {
        node.execute(1, &["PREPARE p FROM 'SELECT s FROM t ORDER BY s, id LIMIT 800, 60'"]);
        let expected = node.query(1, text);
        assert!(expected.len() > 20, "{expected:?}");
        for begin in ["DO 0", "START TRANSACTION"] {
            let files = node.sql_counted("temporary_files");
            node.execute(1, &[SMALL, begin]);
            assert_eq!(node.query(1, text), expected, "{text}");
            assert!(node.sql_counted("temporary_files") > files, "{text}");
            node.execute(1, &["COMMIT", "SET tmp_table_size = DEFAULT"]);
            node.assert_nothing_left(&text);
            let files = node.sql_counted("temporary_files");
            assert_eq!(node.query(1, text), expected, "{text}");
            assert_eq!(node.sql_counted("temporary_files"), files, "{text}");
        }
    }
    node.execute(1, &["DEALLOCATE PREPARE p"]);
    let few = "SELECT s FROM t ORDER BY s, id LIMIT 10";
    node.execute(1, &[SMALL]);
    let files = node.sql_counted("temporary_files");
    assert_eq!(node.query(1, few).len(), 10);
    assert_eq!(node.sql_counted("temporary_files"), files, "few rows need no file");
    assert_eq!(node.resources_held(), 2, "only sessions hold resources");
}

#[test]
fn explain_analyze_shows_what_an_operator_has_written() {
    let mut node = node();
    let text = "EXPLAIN ANALYZE SELECT t.id FROM t JOIN u ON t.k = u.k ORDER BY u.s";
    node.execute(1, &[SMALL]);
    node.begin_query(1, text);
    node.run();
    let answer = String::from_utf8_lossy(&node.answer(1).expect("an answer")).into_owned();
    assert!(answer.contains("(spills="), "{answer}");
}

/// The queries that are stopped: a sort, groups, a set operation, a join by key and one without.
pub(super) fn stopped_queries() -> impl Iterator<Item = &'static str> {
    [0, 2, 7, 10, 12].into_iter().map(|number| QUERIES[number])
}

#[test]
fn a_stop_at_any_moment_leaves_nothing() {
    let mut node = node();
    node.execute(1, &[SMALL]);
    let mut killed = 0;
    for text in stopped_queries() {
        for steps in (0..300).step_by(60).chain((300..3000).step_by(700)) {
            node.begin_query(1, text);
            (0..steps).for_each(|_| _ = node.step());
            let is_over = node.answers.get(&ConnectionId(1)).is_some_and(|answers| !answers.is_empty());
            node.begin_query(2, "KILL QUERY 1");
            node.run();
            node.answer(2);
            killed += usize::from(node.rows(1)[0].contains("Query execution was interrupted"));
            node.assert_nothing_left(&(text, steps));
            assert_eq!(node.resources_held(), 2, "{text} after {steps} steps");
            if is_over {
                break;
            }
        }
    }
    assert!(killed > 15, "{killed} statements");
}

#[test]
fn the_end_of_a_connection_leaves_nothing() {
    for text in stopped_queries() {
        for steps in [150, 900] {
            let mut node = node();
            node.execute(1, &[SMALL]);
            node.begin_query(1, text);
            (0..steps).for_each(|_| _ = node.step());
            node.send(1, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(1) }));
            node.run();
            node.assert_nothing_left(&(text, steps));
            assert_eq!(node.resources_held(), 1, "{text} after {steps} steps");
        }
    }
}

#[test]
fn a_time_limit_ends_a_query_that_writes() {
    let mut node = node();
    node.execute(1, &[SMALL, "SET max_execution_time = 1000"]);
    for text in stopped_queries() {
        node.begin_query(1, text);
        node.files.is_held = true;
        node.run();
        node.delivery.now = Time(node.delivery.now.0 + 2_000_000_000);
        node.files.is_held = false;
        for (to, done) in std::mem::take(&mut node.files.held) {
            node.send_world(to, done);
        }
        node.run();
        let answer = node.rows(1);
        assert!(answer[0].contains("maximum statement execution time exceeded"), "{answer:?}");
        node.assert_nothing_left(&text);
    }
}

#[test]
fn an_error_of_the_file_ends_the_query() {
    let mut node = node();
    node.execute(1, &[SMALL]);
    for text in stopped_queries() {
        for (kind, error, expected) in [
            ("open", FileError::Denied, "Can't create/write to file '/temporary/query-' (OS errno 13"),
            ("open", FileError::TooManyOpen, "Can't create/write to file '/temporary/query-' (OS errno 24"),
            ("write", FileError::System(5), "Error writing file '/temporary/query-' (OS errno 5"),
            ("write", FileError::DiskFull, "The table '/temporary/query-' is full"),
            ("read", FileError::System(5), "Error reading file '/temporary/query-' (OS errno 5"),
        ] {
            node.files.failing = Some((kind, error));
            let answer = node.query(1, text);
            assert!(answer[0].contains(expected), "{text}: {answer:?}");
            node.files.failing = None;
            node.assert_nothing_left(&(text, kind));
        }
        // The name stays until the end.
        node.files.failing = Some(("delete", FileError::Denied));
        assert!(!node.query(1, text)[0].starts_with('#'), "{text}");
        node.files.failing = None;
        node.files.content.clear();
        assert_eq!(node.resources_held(), 2, "{text}");
    }
}

#[test]
fn an_error_of_any_request_leaves_nothing() {
    let mut node = node();
    node.execute(1, &[SMALL]);
    for text in stopped_queries() {
        let expected = node.query(1, text);
        let mut failures = 0;
        for good in (0..5).chain((5..400).step_by(60)) {
            node.files.failing_after = Some(good);
            let answer = node.query(1, text);
            (node.files.failing_after, node.files.failing) = (None, None);
            node.assert_nothing_left(&(text, good));
            assert_eq!(node.resources_held(), 2, "{text} after {good} requests");
            if answer == expected {
                break;
            }
            assert!(answer[0].contains("(OS errno 5"), "{text}: {answer:?}");
            failures += 1;
        }
        assert!(failures > 3, "{text}: {failures} failures");
    }
}

#[test]
fn state_beyond_the_maximum_leaves_nothing() {
    let config = NodeConfig { sort_memory_bytes_max: 40_000, ..NodeConfig::default() };
    let mut node = node_of(config);
    node.execute(1, &["SET tmp_table_size = 1024"]);
    let mut refused = 0;
    for text in QUERIES {
        refused += usize::from(node.query(1, text)[0].contains("Out of memory"));
        node.assert_nothing_left(&text);
    }
    let texts = "SELECT LENGTH(GROUP_CONCAT(t.s)) FROM t JOIN u ON t.id = u.id";
    assert!(node.query(1, texts)[0].contains("Out of memory"));
    node.assert_nothing_left(&texts);
    assert!(refused < QUERIES.len() / 2, "{refused} of {} queries", QUERIES.len());
}

#[test]
fn a_subquery_whose_groups_exceed_the_maximum_runs_for_single_values() {
    let text = "SELECT CONCAT(COUNT(*), '-', SUM(n)) FROM (SELECT id, (SELECT COUNT(*) FROM u WHERE u.s = t.s) n \
                FROM t WHERE id < 100) q";
    let expected = node().query(1, text);
    let config = NodeConfig { sort_memory_bytes_max: 40_000, ..NodeConfig::default() };
    let mut node = node_of(config);
    node.execute(1, &["SET tmp_table_size = 1024"]);
    assert_eq!(node.query(1, text), expected);
    node.assert_nothing_left(&text);
}

#[test]
fn damage_to_the_file_is_found() {
    let mut node = node();
    node.execute(1, &[SMALL]);
    for text in stopped_queries() {
        node.files.damages = true;
        let answer = node.query(1, text);
        assert!(answer[0].contains("a record is damaged"), "{text}: {answer:?}");
        node.files.damages = false;
        node.assert_nothing_left(&text);
    }
}

#[test]
fn temporary_space_and_memory_have_limits() {
    let mut node = node();
    node.execute(1, &[SMALL, "SET GLOBAL temptable_max_mmap = 262144"]);
    let refused: Vec<_> = stopped_queries().map(|text| node.query(1, text)).collect();
    let full = |answer: &Vec<String>| answer[0].contains("The table '/temporary/query-' is full");
    assert!(refused.iter().filter(|answer| full(answer)).count() > 2, "{refused:?}");
    node.assert_nothing_left(&"temptable_max_mmap");
    node.execute(1, &["SET GLOBAL temptable_max_mmap = 0"]);
    for text in stopped_queries() {
        assert!(node.query(1, text)[0].contains("Out of memory"), "{text}");
        node.assert_nothing_left(&text);
    }
    let mut node = with_tables(Node::new(TWO_RECV_THREADS, NodeConfig::default()));
    node.execute(1, &[SMALL]);
    for text in stopped_queries() {
        assert!(node.query(1, text)[0].contains("Out of memory"), "{text}");
        node.assert_nothing_left(&text);
    }
}

#[test]
fn the_process_list_shows_that_a_query_writes() {
    let mut node = node();
    node.execute(1, &[SMALL]);
    node.files.is_held = true;
    node.begin_query(1, QUERIES[0]);
    node.run();
    let state = "SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = 1";
    assert_eq!(node.query(2, state), ["writing temporary files"]);
    while let Some((to, done)) = node.files.held.pop() {
        node.send_world(to, done);
        node.run();
    }
    assert!(!node.rows(1)[0].is_empty());
}

/// Statements that write what a query finds.
const CHANGES: [&str; 2] = [
    "INSERT INTO c SELECT t.id, u.s FROM t JOIN u ON t.k = u.k ORDER BY u.s, t.id FOR UPDATE",
    "UPDATE t JOIN (SELECT id, s FROM u ORDER BY s, id LIMIT 800) u ON t.s = u.s SET t.g = t.g + 1",
];

#[test]
fn a_change_that_waits_for_its_query_takes_no_steps_and_ends_by_kill() {
    let mut node = node();
    node.open(3, false);
    node.execute(2, &["CREATE TABLE c (id INT, s VARCHAR(200))", "BEGIN", "UPDATE t SET k = 1 WHERE id = 5"]);
    for (waits_for, text) in [("lock", CHANGES[0]), ("lock", CHANGES[1]), ("file", CHANGES[0]), ("file", CHANGES[1])] {
        if waits_for == "file" {
            node.execute(1, &[SMALL]);
            node.execute(2, &["COMMIT"]);
            node.files.is_held = true;
        }
        node.begin_query(1, text);
        let steps = (0..50_000).take_while(|_| node.step()).count();
        assert!(steps < 50_000, "{text} waits for its {waits_for}");
        assert_eq!(node.answer(1), None, "{text} waits for its {waits_for}");
        node.execute(3, &["KILL QUERY 1"]);
        assert_eq!(node.rows(1), ["#70100Query execution was interrupted"], "{text} waits for its {waits_for}");
        node.files.is_held = false;
        for (to, done) in std::mem::take(&mut node.files.held) {
            node.send_world(to, done);
        }
        node.run();
        node.assert_nothing_left(&text);
    }
    assert_eq!(node.query(1, "SELECT COUNT(*) FROM c"), ["0"]);
    for text in CHANGES {
        node.execute(1, &[text]);
        node.assert_nothing_left(&text);
    }
    assert!(node.query(1, "SELECT COUNT(*) FROM c")[0].len() > 3);
    assert_eq!(node.resources_held(), 3, "only sessions hold resources");
}

#[test]
fn user_variables_see_the_rows_of_a_join_in_its_order() {
    let text = "SELECT MD5(GROUP_CONCAT(CONCAT(id, '-', n) ORDER BY n)) FROM (SELECT t.id, @n := @n + 1 AS n FROM \
                (SELECT id, k FROM t ORDER BY id LIMIT 10000) t STRAIGHT_JOIN u ON t.k = u.k) q";
    let mut node = node();
    node.execute(1, &["SET @n = 0"]);
    let expected = node.query(1, text);
    node.execute(1, &["SET @n = 0", SMALL]);
    assert_eq!(node.query(1, text), expected);
    node.assert_nothing_left(&text);
}

#[test]
fn groups_whose_texts_exceed_the_memory_are_divided() {
    let text = "SELECT CONCAT(COUNT(*), '-', SUM(CRC32(x)), '-', SUM(d)) FROM (SELECT GROUP_CONCAT(u.s ORDER BY u.id) x, \
                COUNT(DISTINCT u.g) d FROM t JOIN u ON t.k = u.k GROUP BY t.s) q";
    let expected = node().query(1, text);
    let mut node = node_of(NodeConfig { sort_memory_bytes_max: 100_000, ..NodeConfig::default() });
    node.execute(1, &[SMALL]);
    assert_eq!(node.query(1, text), expected);
    node.assert_nothing_left(&text);
}

#[test]
fn a_sort_that_begins_again_has_the_warnings_of_one_run() {
    let text = "SELECT s FROM t WHERE id / g IS NULL OR id >= 0 ORDER BY s, id LIMIT 800, 60";
    let mut node = node();
    for memory in ["SET tmp_table_size = DEFAULT", SMALL] {
        node.execute(1, &[memory]);
        assert_eq!(node.query(1, text).len(), 60);
        assert_eq!(node.query(1, "SHOW COUNT(*) WARNINGS"), ["129"], "{memory}");
    }
}

#[test]
fn a_group_that_no_row_needs_cannot_fail_its_query() {
    let mut node = node();
    node.execute(1, &["CREATE TABLE w (k INT, x DOUBLE)", "INSERT INTO w VALUES (-1, 1.7e308), (-1, 1.7e308), (5, 2)"]);
    let text = "SELECT CONCAT(COUNT(*), '-', SUM(n)) FROM (SELECT (SELECT SUM(x) FROM w WHERE w.k = t.id) n FROM t) q";
    assert!(node.query(1, "SELECT SUM(x) FROM w")[0].starts_with('#'), "the sum exceeds its type");
    assert_eq!(node.query(1, text), ["900-2"]);
}

#[test]
fn a_subquery_is_not_grouped_if_the_condition_of_its_view_may_warn() {
    let mut node = node();
    for (condition, is_grouped) in [("g > 1", true), ("id / g > 1", false)] {
        let view = format!("CREATE OR REPLACE VIEW v AS SELECT id, k FROM u WHERE {condition}");
        node.execute(1, &[&view]);
        let explain = "EXPLAIN FORMAT=TREE SELECT (SELECT SUM(id) FROM v WHERE v.k = t.id) FROM t";
        assert_eq!(node.query(1, explain)[0].contains("all at once"), is_grouped, "{condition}");
    }
}
