//! `performance_schema.events_statements_summary_by_digest`.

use super::*;

const TABLE: &str = "performance_schema.events_statements_summary_by_digest";

impl Node {
    /// Columns of the rows whose normalised text is like a pattern, joined by blanks.
    fn digests(&mut self, columns: &str, like: &str) -> Vec<String> {
        self.query(9, &format!("SELECT CONCAT_WS(' ', {columns}) FROM {TABLE} WHERE digest_text LIKE '{like}'"))
    }

    fn execute_prepared(&mut self, statement: u8) {
        self.begin(1, &[0x17, statement, 0, 0, 0, 0, 1, 0, 0, 0]);
        self.run();
        assert_ne!(self.answer(1).expect("an answer")[4], 0xff);
    }
}

fn node() -> Node {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    for connection in [1, 2, 9] {
        node.open(connection, false);
    }
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
    node.execute(1, &["INSERT INTO d.t VALUES (1, 10), (2, 20), (3, 30)"]);
    node
}

#[test]
fn statements_of_all_sql_blocks_count_under_their_digest() {
    let mut node = node();
    for (connection, id) in [(1, 1), (1, 2), (2, 3), (2, 4)] {
        node.query(connection, &format!("SELECT v FROM d.t WHERE id = {id}"));
    }
    let point = "%`id` = ?";
    assert_eq!(node.digests("count_star", point), [""; 0], "the turn is not over");
    node.turn_ended(3_000);
    let sums = "count_star, sum_timer_wait, min_timer_wait, max_timer_wait, sum_rows_sent, sum_select_scan";
    assert_eq!(node.digests(sums, point), ["4 12000000 3000000 3000000 3 0"]);
    assert_eq!(node.digests("digest = STATEMENT_DIGEST('SELECT v FROM d.t WHERE id = 7')", point), ["1"]);
    // Both blocks have begun at the same time, so the sample may be of either.
    assert_eq!(node.digests("query_sample_text LIKE 'SELECT v FROM d.t WHERE id = _'", point), ["1"]);
    // Statements with and without a cached plan, with and without an effect.
    node.execute(1, &["UPDATE d.t SET v = v + 1 WHERE id < 3", "SET @x = 1", "USE d", "SET @x = 2"]);
    for text in ["SELECT id FROM t WHERE v = 0 ORDER BY v", "INSERT INTO t VALUES (1, 1)", "SELECT 1 FROM", "DO 1 / 0"]
    {
        node.query(1, text);
    }
    node.turn_ended(1_000);
    assert_eq!(node.digests("count_star, sum_rows_affected, sum_rows_sent", "UPDATE%"), ["1 2 0"]);
    assert_eq!(node.digests("count_star", "SET @`x`%"), ["1", "1"], "before and after USE");
    let work = "schema_name, sum_select_scan, sum_no_index_used, sum_sort_scan";
    assert_eq!(node.digests(work, "SELECT `id`%ORDER BY `v`"), ["d 1 1 1"]);
    assert_eq!(node.digests("count_star, sum_errors", "INSERT INTO `t`%"), ["1 1"]);
    assert_eq!(node.digests("count_star, sum_errors", "SELECT ? FROM"), ["1 1"], "a syntax error");
    assert_eq!(node.digests("count_star, sum_warnings", "DO%"), ["1 1"]);
    // One plan inserts one row or several; the digests differ.
    for text in ["(11, 1)", "(12, 1), (13, 1)", "(14, 1)", "(15, 1), (16, 1), (17, 1)"] {
        node.execute(1, &[&format!("INSERT INTO d.t VALUES {text}")]);
    }
    node.turn_ended(1_000);
    let inserted = node.query(
        9,
        &format!(
            "SELECT CONCAT_WS(' ', count_star, sum_rows_affected, digest_text) FROM {TABLE} \
                                           WHERE schema_name = 'd' AND digest_text LIKE 'INSERT INTO `d`%'"
        ),
    );
    assert_eq!(
        inserted,
        ["2 2 INSERT INTO `d` . `t` VALUES (...)", "2 5 INSERT INTO `d` . `t` VALUES (...) /* , ... */",]
    );
}

#[test]
fn truncate_forgets_digests_in_every_sql_block() {
    let mut node = node();
    node.begin(1, b"\x16SELECT v FROM d.t WHERE id = 2");
    node.run();
    node.answer(1);
    let run = |node: &mut Node| {
        for connection in [1, 2] {
            node.query(connection, "SELECT v FROM d.t WHERE id = 1");
        }
        node.execute_prepared(1);
        node.turn_ended(1_000);
    };
    run(&mut node);
    assert_eq!(node.digests("count_star", "%`id` = ?"), ["3"]);
    node.execute(9, &["TRUNCATE performance_schema.events_statements_summary_by_digest"]);
    node.turn_ended(1_000);
    assert_eq!(node.query(9, &format!("SELECT COUNT(*) FROM {TABLE}")), ["0"], "TRUNCATE itself is not counted");
    // Plans that were cached before count anew.
    run(&mut node);
    run(&mut node);
    assert_eq!(node.digests("count_star", "%`id` = ?"), ["6"]);
    let buckets = "SELECT SUM(count_bucket) FROM performance_schema.events_statements_histogram_by_digest WHERE \
                   digest = STATEMENT_DIGEST('SELECT v FROM d.t WHERE id = 7')";
    assert_eq!(node.query(9, buckets), ["6"]);
}

#[test]
fn texts_of_other_sessions_need_a_right_and_have_no_passwords() {
    let mut node = node();
    node.execute(1, &["CREATE USER other IDENTIFIED BY 'Secret-1'"]);
    node.turn_ended(1_000);
    let samples = node.digests("query_sample_text, digest_text", "CREATE SCHEMA%");
    assert_eq!(samples, ["CREATE DATABASE d CREATE SCHEMA `d`"]);
    let shown = node.query(9, &format!("SELECT COUNT(*) FROM {TABLE} WHERE query_sample_text LIKE '%Secret-1%'"));
    assert_eq!(shown, ["0"]);
    assert_eq!(
        node.digests("count_star", "CREATE SYSTEM_USER%").len() + node.digests("count_star", "CREATE USER%").len(),
        1
    );
}

/// The signals of one kind that are delivered while a statement runs, and its number of rows.
fn steps_of(node: &mut Node, connection: u32, text: &str) -> (usize, usize, usize) {
    node.begin_query(connection, text);
    let (mut reads, mut steps) = (BTreeSet::new(), BTreeSet::new());
    let mut turn = 0;
    while node.step() {
        turn += 1;
        for in_flight in &node.delivery.in_flight {
            match &in_flight.signal {
                Signal::Sql(SqlSignal::ContinueStatement(signal)) => _ = steps.insert(signal.step),
                Signal::Sql(SqlSignal::ContinueWork(_)) => _ = reads.insert(turn),
                _ => {}
            }
        }
    }
    (node.rows(connection).len(), reads.len(), steps.len())
}

#[test]
fn a_read_of_many_digests_takes_many_steps() {
    const DIGESTS: usize = 500;
    let mut node = node();
    for number in 0..DIGESTS {
        node.query(1, &format!("SELECT 1 AS a{number}"));
    }
    node.turn_ended(1_000);
    for (text, rows) in [
        (format!("SELECT digest_text FROM {TABLE} WHERE digest_text LIKE 'SELECT ? AS %'"), DIGESTS),
        (format!("SELECT DISTINCT digest FROM {TABLE} WHERE digest_text LIKE 'SELECT ? AS %' ORDER BY 1"), DIGESTS),
        (format!("SELECT COUNT(*) FROM {TABLE}"), 1),
    ] {
        let (found, reads, steps) = steps_of(&mut node, 9, &text);
        assert_eq!(found, rows, "{text}");
        // A step of the block that counts has 32 digests. One of the query has 1,024 values, over 39 a row.
        assert!(reads >= DIGESTS / 32 && steps >= DIGESTS / 32, "{text}: {reads} and {steps} steps");
    }
    let ordered = node.query(9, &format!("SELECT digest FROM {TABLE} ORDER BY digest DESC"));
    assert!(ordered.is_sorted_by(|left, right| left >= right), "{ordered:?}");
    node.execute(9, &[&format!("TRUNCATE {TABLE}")]);
    assert_eq!(node.digests("digest_text", "SELECT ? AS %"), [""; 0]);
    assert_eq!(node.resources_held(), 3, "only sessions hold resources");
}

#[test]
fn a_query_of_digests_that_is_killed_between_steps_fails_and_leaves_nothing() {
    let mut node = node();
    for number in 0..200 {
        node.query(1, &format!("SELECT 1 AS a{number}"));
    }
    node.turn_ended(1_000);
    let mut killed = 0;
    for steps in (0..120).step_by(7) {
        node.begin_query(9, &format!("SELECT digest_text FROM {TABLE} ORDER BY digest"));
        (0..steps).for_each(|_| _ = node.step());
        node.begin_query(2, "KILL QUERY 9");
        node.run();
        node.rows(2);
        let answer = node.answer(9).expect("the statement ends");
        killed += usize::from(answer.windows(7).any(|bytes| bytes == b"Query e"));
        assert_eq!(node.resources_held(), 3, "only sessions hold resources");
    }
    assert!(killed > 3, "{killed}");
}
