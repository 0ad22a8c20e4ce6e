//! The status tables `junctor_info.counters` and `junctor_info.operation_latency`.

use super::*;

impl Node {
    /// The sum of a counter over all instances of a module.
    fn counted(&mut self, module: &str, name: &str) -> u64 {
        let query = format!("SELECT value FROM junctor_info.counters WHERE module = '{module}' AND name = '{name}'");
        self.query(9, &query).iter().map(|value| value.parse::<u64>().expect("a number")).sum()
    }

    /// The sum of a counter of reads over the modules that run them.
    fn read_counter(&mut self, name: &str) -> u64 {
        self.counted("ldm", name) + self.counted("query", name)
    }

    /// The growth of a counter during an action.
    fn growth(&mut self, module: &str, name: &str, action: impl FnOnce(&mut Node)) -> u64 {
        let before = self.counted(module, name);
        action(self);
        self.counted(module, name) - before
    }

    /// Ends the turn of every thread `after_ns` nanoseconds after its start.
    pub(super) fn turn_ended(&mut self, after_ns: u64) {
        let (began, ended) = (self.delivery.now, Time(self.delivery.now.0 + after_ns));
        self.hosts.iter_mut().for_each(|host| host.turn_ended(began, ended));
    }

    /// A column of the row of `operation_latency` for the whole node; empty if there is no such row.
    fn latency(&mut self, operation: &str, column: &str) -> Vec<String> {
        let table = "junctor_info.operation_latency";
        self.query(9, &format!("SELECT {column} FROM {table} WHERE sql_instance IS NULL AND operation = '{operation}'"))
    }
}

fn node_with_rows(thread_config: &str) -> Node {
    let mut node = Node::new(thread_config, NodeConfig::default());
    for connection in [1, 2, 9] {
        node.open(connection, false);
    }
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT, KEY (v))"]);
    node.execute(1, &["INSERT INTO d.t VALUES (1, 10), (2, 20), (3, 30)"]);
    node
}

#[test]
fn reads_count_keys_ranges_and_rows() {
    for placement in [ONE_THREAD, TWO_RECV_THREADS] {
        let mut node = node_with_rows(placement);
        let grown = |node: &mut Node, query: &str, name: &str| {
            let before = node.read_counter(name);
            node.query(1, query);
            node.read_counter(name) - before
        };
        let (point, list) = ("SELECT v FROM d.t WHERE id = 1", "SELECT v FROM d.t WHERE id IN (1, 3, 7)");
        let (range, all) = ("SELECT id FROM d.t WHERE v >= 20", "SELECT id FROM d.t WHERE v + 0 = 20");
        assert_eq!([point, list].map(|query| grown(&mut node, query, "keys")), [1, 3], "{placement}");
        assert_eq!([point, list, range, all].map(|query| grown(&mut node, query, "rows_returned")), [1, 2, 2, 1]);
        assert_eq!([point, range, all].map(|query| grown(&mut node, query, "rows_examined")), [0, 2, 3]);
        let ranges = [point, range, all].map(|query| grown(&mut node, query, "ranges") > 0);
        assert_eq!(ranges, [false, true, false]);
    }
}

#[test]
fn writes_count_rows_and_the_outcomes_of_transactions() {
    let mut node = node_with_rows(ONE_THREAD);
    assert_eq!([node.counted("ldm", "rows_inserted"), node.counted("main", "schema_changes")], [3, 2]);
    let updated =
        node.growth("ldm", "rows_updated", |node| node.execute(1, &["UPDATE d.t SET v = v + 1 WHERE id < 3"]));
    let deleted = node.growth("ldm", "rows_deleted", |node| node.execute(1, &["DELETE FROM d.t WHERE id = 3"]));
    assert_eq!((updated, deleted), (2, 1));
    let committed = ["BEGIN", "UPDATE d.t SET v = 1 WHERE id = 1", "UPDATE d.t SET v = 2 WHERE id = 2", "COMMIT"];
    assert_eq!(node.growth("tc", "commits", |node| node.execute(1, &committed)), 1);
    let undone = ["BEGIN", "UPDATE d.t SET v = 5 WHERE id = 1", "ROLLBACK"];
    assert_eq!(node.growth("tc", "aborts", |node| node.execute(1, &undone)), 1);
    assert_eq!(node.growth("tc", "commits", |node| node.execute(1, &undone)), 0);
    let refused = |node: &mut Node| assert_eq!(node.query(1, "INSERT INTO d.t VALUES (1, 1)").len(), 1, "an error");
    assert_eq!(node.growth("tc", "aborts", refused), 1);
    let locked = |node: &mut Node| assert_eq!(node.query(1, "SELECT id FROM d.t WHERE id = 2 FOR UPDATE"), ["2"]);
    assert_eq!(node.growth("ldm", "rows_locked", locked), 1);
}

#[test]
fn waits_and_deadlocks_are_counted() {
    let mut node = node_with_rows(ONE_THREAD);
    let (first, second) = ("UPDATE d.t SET v = 1 WHERE id = 1", "UPDATE d.t SET v = 1 WHERE id = 2");
    node.execute(1, &["BEGIN", first]);
    node.execute(2, &["BEGIN", second]);
    let waits = |node: &mut Node| {
        node.begin_query(1, second);
        node.run();
    };
    assert_eq!(node.growth("tc", "lock_waits", waits), 1);
    assert_eq!(node.counted("ldm", "lock_waits"), 1);
    let close_cycle = |node: &mut Node| {
        node.begin_query(2, first);
        node.run();
    };
    assert_eq!(node.growth("tc", "deadlocks", close_cycle), 1);
    assert_eq!(node.counted("tc", "lock_wait_timeouts"), 0);
}

#[test]
fn sessions_and_statements_are_counted_by_kind() {
    let mut node = node_with_rows(ONE_THREAD);
    assert_eq!(node.counted("sql", "sessions"), 3);
    assert_eq!(node.counted("sql", "inserts"), 1);
    // The query that reads the counter counts too.
    assert_eq!(node.growth("sql", "selects", |node| _ = node.query(1, "SELECT 7")), 2);
    assert_eq!(node.growth("sql", "commands", |node| node.execute(1, &["BEGIN", "COMMIT"])), 3);
    // A known shape is not planned again; the query that reads the counter is planned each time.
    let twice = |node: &mut Node| {
        for id in [1, 2] {
            node.query(1, &format!("SELECT v FROM d.t WHERE id = {id}"));
        }
    };
    assert_eq!(node.growth("sql", "plans", twice), 2);
    let all = node.query(9, "SELECT COUNT(*) FROM junctor_info.counters WHERE description = ''");
    assert_eq!(all, ["0"]);
}

#[test]
fn a_latency_runs_to_the_end_of_the_turn() {
    let mut node = node_with_rows(ONE_THREAD);
    assert_eq!(node.latency("insert", "count"), [""; 0], "the turn is not over");
    node.turn_ended(3_000);
    for id in 1..=3 {
        node.query(1, &format!("SELECT v FROM d.t WHERE id = {id}"));
    }
    node.query(1, "SELECT v FROM d.t WHERE id IN (1, 2)");
    node.query(1, "SELECT id FROM d.t WHERE v > 10");
    node.query(1, "SELECT id FROM d.t WHERE v + 0 = 10");
    node.execute(1, &["BEGIN", "DELETE FROM d.t WHERE id = 3", "ROLLBACK"]);
    node.turn_ended(1_000);
    let counts = ["insert", "definition", "point_read", "batch_read", "range_read", "scan", "delete", "rollback"];
    let counts = counts.map(|operation| node.latency(operation, "count").concat());
    assert_eq!(counts, ["1", "2", "3", "1", "1", "1", "1", "1"]);
    assert_eq!(
        (node.latency("insert", "p50_us"), node.latency("point_read", "max_us")),
        (vec!["3".into()], vec!["1".into()])
    );
    let buckets = "SELECT count FROM junctor_info.operation_latency_buckets WHERE operation = 'point_read' AND \
                   sql_instance = 0 AND from_ns <= 1000 AND to_ns >= 1000";
    assert_eq!(node.query(9, buckets), ["3"]);
}

#[test]
fn a_latency_includes_lock_waits() {
    let mut node = node_with_rows(TWO_RECV_THREADS);
    node.execute(1, &["BEGIN", "UPDATE d.t SET v = 1 WHERE id = 1"]);
    node.begin_query(2, "UPDATE d.t SET v = 2 WHERE id = 1");
    node.run();
    node.turn_ended(1_000);
    assert_eq!((node.latency("update", "count"), node.latency("commit", "count")), (vec!["1".into()], Vec::new()));
    node.advance_seconds(2);
    node.execute(1, &["COMMIT"]);
    assert_eq!(node.rows(2), [""; 0]);
    node.turn_ended(1_000);
    assert_eq!(node.latency("update", "count"), ["2"]);
    assert_eq!(node.latency("update", "max_us"), ["2000001"]);
    assert_eq!(node.latency("commit", "max_us"), ["1"]);
}
