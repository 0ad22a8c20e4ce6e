//! Statements that process many rows, which they do in steps.

use super::*;

const ROWS: usize = 3_000;

/// A node with two sessions and a table whose rows are in another order by `v` than by `id`.
fn filled_node() -> Node {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..3).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.s (id INT PRIMARY KEY, v INT, w INT)"]);
    node.execute(1, &["CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, {}, 0)", id * 7919 % 3001)).collect();
    node.execute(1, &[&format!("INSERT INTO d.s VALUES {}", rows.join(","))]);
    node
}

/// Runs a statement of session 1. Returns its rows and the number of steps that it has requested.
fn rows_and_steps(node: &mut Node, text: &str) -> (Vec<String>, usize) {
    node.begin_query(1, text);
    let mut steps = BTreeSet::new();
    while node.step() {
        let step = |in_flight: &InFlight<Signal>| match &in_flight.signal {
            Signal::Sql(SqlSignal::ContinueStatement(signal)) => Some(signal.step),
            _ => None,
        };
        let requested: Vec<u64> = node.delivery.in_flight.iter().filter_map(step).collect();
        assert!(requested.len() <= 1, "one step at a time");
        steps.extend(requested);
    }
    (node.rows(1), steps.len())
}

#[test]
fn a_locking_query_returns_the_rows_of_a_plain_one_in_several_steps() {
    let mut node = filled_node();
    for query in [
        "SELECT id FROM d.s ORDER BY v DESC",
        "SELECT id FROM d.s WHERE v > 100 ORDER BY v LIMIT 40, 2500",
        "SELECT DISTINCT v % 1000 FROM d.s ORDER BY 1",
        "SELECT id FROM d.s ORDER BY id",
        "SELECT COUNT(DISTINCT v) FROM d.s",
    ] {
        let expected = node.query(1, query);
        for lock in ["FOR UPDATE", "FOR SHARE"] {
            let (rows, steps) = rows_and_steps(&mut node, &format!("{query} {lock}"));
            assert_eq!(rows, expected, "{query} {lock}");
            assert!(expected.len() == 1 || steps >= ROWS / 256, "{query} {lock} took {steps} steps");
        }
    }
    let (mut rows, steps) = rows_and_steps(&mut node, "SELECT id FROM d.s FOR UPDATE");
    rows.sort_by_key(|id| id.parse::<usize>().expect("a number"));
    assert_eq!(rows, (0..ROWS).map(|id| id.to_string()).collect::<Vec<_>>());
    assert!(steps >= ROWS / 256, "{steps} steps");
    assert_eq!(rows_and_steps(&mut node, "SELECT v FROM d.s WHERE id = 1 FOR UPDATE"), (vec!["1917".to_owned()], 0));
    assert_eq!(node.resources_held(), 2, "only sessions hold resources");
}

#[test]
fn a_change_in_the_order_of_its_rows_takes_several_steps() {
    let mut node = filled_node();
    let (_, steps) = rows_and_steps(&mut node, "UPDATE d.s SET w = 1 ORDER BY v LIMIT 2000");
    assert!(steps >= ROWS / 256, "{steps} steps");
    assert_eq!(node.query(1, "SELECT CONCAT(COUNT(*), ' ', MAX(v)) FROM d.s WHERE w = 1"), ["2000 2000"]);
    // Each key is free only if the rows are written in this order.
    let (_, steps) = rows_and_steps(&mut node, "UPDATE d.s SET id = id + 1 ORDER BY id DESC");
    assert!(steps >= ROWS / 256, "{steps} steps");
    assert_eq!(node.query(1, "SELECT CONCAT(MIN(id), ' ', MAX(id)) FROM d.s"), ["1 3000"]);
    node.execute(1, &["UPDATE d.s SET w = 2 LIMIT 1000"]);
    assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.s WHERE w = 2"), ["1000"]);
    let expected = node.query(1, "SELECT v FROM d.s ORDER BY v LIMIT 2500");
    let (rows, steps) = rows_and_steps(&mut node, "DELETE FROM d.s ORDER BY v LIMIT 2500 RETURNING v");
    assert_eq!(rows, expected);
    assert!(steps >= ROWS / 256 + 2500 / 256, "{steps} steps");
    let (rows, steps) = rows_and_steps(&mut node, "DELETE FROM d.s RETURNING v");
    assert_eq!((rows.len(), steps), (500, 1));
    assert_eq!(node.resources_held(), 2, "only sessions hold resources");
}

#[test]
fn rows_that_a_locking_query_returns_are_inserted() {
    for lock in ["FOR UPDATE", "ORDER BY v FOR UPDATE"] {
        let mut node = filled_node();
        node.execute(1, &[&format!("INSERT INTO d.t SELECT id, v FROM d.s {lock}")]);
        assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t JOIN d.s USING (id, v)").len(), 1);
        assert_eq!(node.query(1, "SELECT CONCAT(COUNT(*), ' ', SUM(id)) FROM d.t"), ["3000 4498500"]);
        // The query reads the table that the rows are inserted into.
        node.execute(1, &[&format!("INSERT INTO d.t SELECT id + 10000, v FROM d.t {lock}")]);
        assert_eq!(node.query(1, "SELECT CONCAT(COUNT(*), ' ', MAX(id)) FROM d.t"), ["6000 12999"]);
        assert_eq!(node.resources_held(), 2, "only sessions hold resources");
    }
}

/// Statements that request steps, and the possible counts of rows with `w = 0` after each was stopped.
const STOPPABLE: [(&str, [&str; 2]); 4] = [
    ("SELECT id FROM d.s ORDER BY v FOR UPDATE", ["3000", "3000"]),
    ("SELECT id FROM d.s FOR SHARE", ["3000", "3000"]),
    ("UPDATE d.s SET w = 1 ORDER BY v LIMIT 1000", ["3000", "2000"]),
    ("DELETE FROM d.s ORDER BY v LIMIT 1000 RETURNING id", ["3000", "2000"]),
];

#[test]
fn a_statement_killed_between_steps_fails_or_completes() {
    for (text, counts) in STOPPABLE {
        for steps in (0..400).step_by(53) {
            let mut node = filled_node();
            node.begin_query(1, text);
            (0..steps).for_each(|_| _ = node.step());
            node.begin_query(2, "KILL QUERY 1");
            node.run();
            node.rows(2);
            let answer = node.answer(1).expect("the statement ends");
            let is_killed = answer.windows(7).any(|bytes| bytes == b"Query e");
            let count = node.query(1, "SELECT COUNT(*) FROM d.s WHERE w = 0");
            let expected = if is_killed { counts[0] } else { counts[1] };
            assert_eq!(count, [expected], "{text}, {steps} steps, killed: {is_killed}");
            assert_eq!(node.resources_held(), 2, "only sessions hold resources");
        }
    }
}

#[test]
fn a_client_that_leaves_between_steps_leaves_nothing_behind() {
    for (text, counts) in STOPPABLE {
        for steps in (0..400).step_by(53) {
            let mut node = filled_node();
            node.begin_query(1, text);
            (0..steps).for_each(|_| _ = node.step());
            node.send(1, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(1) }));
            node.run();
            let count = node.query(2, "SELECT COUNT(*) FROM d.s WHERE w = 0");
            assert!(counts.contains(&count[0].as_str()), "{count:?}: {text}, {steps} steps");
            node.execute(2, &["UPDATE d.s SET w = 9"]);
            assert_eq!(node.resources_held(), 1, "only the other session holds resources: {text}, {steps} steps");
        }
    }
}

#[test]
fn explain_analyze_counts_what_the_operators_did() {
    let mut node = filled_node();
    node.execute(1, &["CREATE TABLE d.u (id INT PRIMARY KEY, s INT, KEY (s))"]);
    let rows: Vec<String> = (0..10).map(|id| format!("({id}, {})", id * 100)).collect();
    node.execute(1, &[&format!("INSERT INTO d.u VALUES {}", rows.join(","))]);
    let query = "SELECT COUNT(*) FROM d.u, d.s WHERE s.id = u.s AND s.v >= 0 AND u.id < 5";
    let text = node.query(1, &format!("EXPLAIN ANALYZE {query}")).concat();
    let lines: Vec<&str> = text.lines().collect();
    let line = |begin: &str| {
        let found = lines.iter().find(|line| line.contains(begin));
        *found.unwrap_or_else(|| panic!("no line {begin} in\n{text}"))
    };
    assert!(line("-> Aggregate: count(*)").contains(" rows=1 batches=1 loops=1)"), "{text}");
    assert!(line("-> Hash inner join").contains(" rows=5 "), "{text}");
    assert!(line("-> Index range scan on u using PRIMARY").contains("reads=1 "), "{text}");
    assert!(line("-> Index range scan on s using PRIMARY by a list of keys").contains(" rows=5 "), "{text}");
    assert!(line("-> Table scan on s").contains("(never executed)"), "{text}");
    let subquery = "EXPLAIN ANALYZE SELECT id, (SELECT MAX(v) FROM d.s WHERE s.id = u.s) FROM d.u";
    let text = node.query(1, subquery).concat();
    // The first value is looked up alone, the nine others by lists.
    assert!(text.contains("rows=1 batches=1 loops=1)"), "{text}");
    assert!(text.lines().any(|line| line.contains("by a list of keys") && line.contains(" rows=9 ")), "{text}");
    // The rows of the query are not sent, and it may be repeated.
    assert_eq!(node.query(1, &format!("EXPLAIN ANALYZE {query}")).len(), 1);
    assert_eq!(node.query(1, query), ["5"]);
    assert_eq!(node.resources_held(), 2, "only sessions hold resources");
}

#[test]
fn ignore_takes_null_for_a_subquery_with_several_rows() {
    let mut node = Node::new(ONE_THREAD, NodeConfig::default());
    node.open(1, false);
    node.execute(1, &["CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, v INT)"]);
    node.execute(1, &["CREATE TABLE o (id INT PRIMARY KEY)", "INSERT INTO o VALUES (1), (2), (3)"]);
    node.execute(1, &["INSERT INTO t VALUES (1, 10), (2, 20)"]);
    for (change, refused, rows) in [
        ("INTO t VALUES (5, (SELECT id FROM o))", "INSERT", &["1/10", "2/20", "5"][..]),
        ("INTO t VALUES (7, 70), ((SELECT MAX(id) + 5 FROM o), 80)", "", &["1/10", "2/20", "5", "7/70", "8/80"]),
        ("t SET v = (SELECT id FROM o WHERE o.id > t.id) WHERE id < 3", "UPDATE", &["1", "2/3", "5", "7/70", "8/80"]),
        ("FROM t WHERE v > 70 OR id = (SELECT id FROM o)", "DELETE", &["1", "2/3", "5", "7/70"]),
    ] {
        if !refused.is_empty() {
            let statement = format!("{refused} {change}");
            assert_eq!(node.query(1, &statement), ["#21000Subquery returns more than 1 row"], "{statement}");
        }
        let verb = if refused.is_empty() { "INSERT" } else { refused };
        node.execute(1, &[&format!("{verb} IGNORE {change}")]);
        let warnings = if refused.is_empty() { "0" } else { "1" };
        assert_eq!(node.query(1, "SHOW COUNT(*) WARNINGS"), [warnings], "{change}");
        assert_eq!(node.query(1, "SELECT CONCAT_WS('/', id, v) FROM t ORDER BY id"), rows, "{change}");
    }
}

#[test]
fn the_list_of_many_sessions_is_made_in_several_steps() {
    const SESSIONS: u32 = 300;
    let mut node = Node::new(ONE_THREAD, NodeConfig::default());
    (1..=SESSIONS).for_each(|connection| node.open(connection, false));
    let ids: Vec<String> = (1..=SESSIONS).map(|id| id.to_string()).collect();
    let query = "SELECT id FROM information_schema.processlist";
    node.begin_query(1, query);
    let (mut turns, mut steps) = (0, BTreeSet::new());
    while node.step() {
        turns += 1;
        for in_flight in &node.delivery.in_flight {
            if let Signal::Sql(SqlSignal::ContinueWork(_)) = &in_flight.signal {
                steps.insert(turns);
            }
        }
    }
    assert_eq!(node.rows(1), ids);
    assert!(steps.len() >= SESSIONS as usize / 64, "{} steps", steps.len());
    // More lists at once than may wait, while a session ends.
    (1..90).for_each(|connection| node.begin_query(connection, query));
    let last = CloseSession { connection: ConnectionId(SESSIONS) };
    node.send(SESSIONS, SqlSignal::CloseSession(last));
    node.run();
    for connection in 1..90 {
        let rows = node.rows(connection);
        assert!(rows == ids || rows == ids[..ids.len() - 1], "{} rows", rows.len());
    }
    assert_eq!(node.query(1, query), ids[..ids.len() - 1]);
    assert_eq!(node.resources_held(), SESSIONS as usize - 1, "only sessions hold resources");
}
