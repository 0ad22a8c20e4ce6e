//! Joins by keys of several columns: their rows, locks and messages.

use super::*;

const ROWS: usize = 2_000;
const PARTITIONS: usize = 4;
const FIRST_ROWS: usize = 100;

/// A node with tables whose rows refer to each other by (w, d, i), and to lines by the first columns of
/// theirs.
fn filled_node(tables: usize) -> Node {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..3).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "USE d"]);
    node.execute(2, &["USE d"]);
    let columns = "w INT NOT NULL, d SMALLINT NOT NULL, i BIGINT NOT NULL, n INT";
    let mut create = |name: &str, key: &str, partitions: usize, rows: usize| {
        let options = format!("PRIMARY KEY ({key})) PARTITION BY KEY () PARTITIONS {partitions}");
        node.execute(1, &[&format!("CREATE TABLE {name} ({columns}, {options}")]);
        // The next row has the same w and d.
        let rows: Vec<String> =
            (0..rows).map(|id| format!("({}, {}, {id}, {})", id % 2, id / 2 % 10, (id + 20) % ROWS)).collect();
        for part in rows.chunks(500) {
            node.execute(1, &[&format!("INSERT INTO {name} VALUES {}", part.join(","))]);
        }
    };
    create("c0", "w, d, i", 1, FIRST_ROWS);
    (1..tables).for_each(|number| create(&format!("c{number}"), "w, d, i", PARTITIONS, ROWS));
    create("line", "w, d, n, i", PARTITIONS, ROWS);
    node
}

/// A join of tables, each by the key that a row of the one before has.
fn chain(tables: usize) -> String {
    let mut text = "c0".to_owned();
    for number in 1..tables {
        let (own, last) = (format!("c{number}"), format!("c{}", number - 1));
        text += &format!(" JOIN {own} ON {own}.w = {last}.w AND {last}.d = {own}.d AND {own}.i = {last}.n");
    }
    text
}

/// The reads by keys of several columns that EXPLAIN ANALYZE shows, each with its replies and rows.
fn lookups(node: &mut Node, query: &str) -> Vec<[usize; 3]> {
    reads(node, query, "by a list of keys of 3 columns")
}

/// The reads of tables that EXPLAIN ANALYZE shows in lines with this text, each with its replies and rows.
fn reads(node: &mut Node, query: &str, shown: &str) -> Vec<[usize; 3]> {
    let text = node.query(1, &format!("EXPLAIN ANALYZE {query}")).concat();
    let figure = |line: &str, name: &str| -> usize {
        let value = line.rsplit_once(name).unwrap_or_else(|| panic!("no {name} in {line}")).1;
        value
            .split(|byte: char| !byte.is_ascii_digit())
            .next()
            .and_then(|digits| digits.parse().ok())
            .expect("a number")
    };
    text.lines()
        .filter(|line| line.contains(shown))
        .map(|line| ["reads=", "replies=", "rows="].map(|name| figure(line, name)))
        .collect()
}

#[test]
fn a_step_of_a_join_sends_one_message_to_each_partition() {
    for tables in [3, 6] {
        let mut node = filled_node(tables);
        let query = format!("SELECT COUNT(*) FROM {}", chain(tables));
        assert_eq!(node.query(1, &query), [FIRST_ROWS.to_string()]);
        let found = lookups(&mut node, &query);
        assert_eq!(found.len(), tables - 1, "{found:?}");
        for [reads, replies, rows] in found {
            // A request and a reply for each partition.
            assert!(reads == 1 && replies <= PARTITIONS && rows == FIRST_ROWS, "{reads} {replies} {rows}");
        }
    }
}

#[test]
fn the_first_columns_of_an_index_are_looked_up_together() {
    let mut node = filled_node(2);
    let on = "line.w = c0.w AND line.d = c0.d AND line.n = c0.n";
    for (query, expected) in [
        (format!("SELECT COUNT(*) FROM c0 JOIN line ON {on}"), "100"),
        (format!("SELECT COUNT(line.i) FROM c0 LEFT JOIN line ON {on} AND line.i < 50"), "50"),
        (format!("SELECT COUNT(*) FROM c0 WHERE EXISTS (SELECT 1 FROM line WHERE {on} AND i <> 7)"), "99"),
        (format!("SELECT COUNT(*) FROM c0 WHERE NOT EXISTS (SELECT 1 FROM line WHERE {on} AND i <> 7)"), "1"),
    ] {
        assert_eq!(node.query(1, &query), [expected], "{query}");
        let found = lookups(&mut node, &query);
        assert!(matches!(found[..], [[1, replies, _]] if replies <= PARTITIONS), "{found:?}: {query}");
    }
}

#[test]
fn a_locking_join_locks_the_rows_of_its_keys_alone() {
    let mut node = filled_node(2);
    node.execute(1, &["BEGIN"]);
    let query = format!("SELECT COUNT(*) FROM {} WHERE c0.i = 5 FOR UPDATE", chain(2));
    assert_eq!(node.query(1, &query), ["1"]);
    let locked = |node: &mut Node, id: usize| {
        let key = format!("w = {} AND d = {} AND i = {id}", id % 2, id / 2 % 10);
        node.query(2, &format!("SELECT i FROM c1 WHERE {key} FOR UPDATE NOWAIT")) != [id.to_string()]
    };
    assert!(locked(&mut node, 25));
    for other in [5, 24, 26, 45, 1925] {
        assert!(!locked(&mut node, other), "{other}");
    }
    node.execute(1, &["ROLLBACK"]);
    assert!(!locked(&mut node, 25));
}

/// Two columns of which a table of four partitions is partitioned by, first in its primary key.
fn node_with_parts() -> Node {
    let mut node = filled_node(1);
    let columns = "w INT NOT NULL, d SMALLINT NOT NULL, i BIGINT NOT NULL, n INT, PRIMARY KEY (w, d, i)";
    node.execute(
        1,
        &[&format!("CREATE TABLE part ({columns}, KEY (n, d DESC, w)) PARTITION BY KEY (d, w) PARTITIONS 4")],
    );
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({}, {}, {id}, {})", id % 2, id / 2 % 10, id % 5)).collect();
    for part in rows.chunks(500) {
        node.execute(1, &[&format!("INSERT INTO part VALUES {}", part.join(","))]);
    }
    node
}

#[test]
fn a_range_is_read_in_the_partition_of_its_first_columns() {
    let mut node = node_with_parts();
    for (query, expected, partitions) in [
        // One and two pairs of values of the partition columns.
        ("c0 JOIN part p ON p.w = c0.w AND p.d = c0.d WHERE c0.i = 7", "100", 1),
        ("c0 JOIN part p ON p.w = c0.w AND p.d = 3 WHERE c0.i = 7", "100", 1),
        ("c0 JOIN part p ON p.w = c0.w AND p.d IN (3, 4) WHERE c0.i = 7", "200", 2),
        ("one JOIN part p ON p.w IN (1, 7) AND p.d = one.x", "100", 1),
        ("c0 JOIN part p ON p.n = 1 AND p.d = c0.d AND p.w = c0.w WHERE c0.i = 7", "0", 1),
        ("c0 JOIN part p ON p.n IN (1, 2) AND p.d = c0.d AND p.w = c0.w WHERE c0.i = 7", "100", 1),
    ] {
        let query = query.replace("one JOIN", "(SELECT 3 x) one JOIN");
        let query = format!("SELECT COUNT(*) FROM {query}");
        assert_eq!(node.query(1, &query), [expected], "{query}");
        let without = query.replace("part p ON", "part p IGNORE INDEX (PRIMARY, n) ON");
        assert_eq!(node.query(1, &without), [expected], "{without}");
        let found = reads(&mut node, &query, "by a list of keys");
        let figures = node.query(1, &format!("EXPLAIN ANALYZE {query}")).join("\n");
        assert!(matches!(found[..], [[1, replies, _]] if replies <= partitions), "{found:?}: {figures}");
    }
}

#[test]
fn lists_of_conditions_are_combined_with_the_keys_of_a_join() {
    let mut node = filled_node(2);
    // Rows of the lists alone may be so few that the join reads them all.
    for (on, expected, rows_max) in [
        ("c1.w IN (0, 1) AND c1.d = c0.d AND c1.i = c0.n", "100", 200),
        ("c1.w = c0.w AND c1.d IN (1, 2, 3) AND c1.i = c0.n", "30", 100),
        ("c1.w IN (1, 5) AND c1.d IN (1, 2, 3) AND c1.i = c0.n", "15", 0),
        ("c1.w IN (1, 5) AND c1.d IN (1, 2, 3) AND c1.i = c0.n AND c1.n > 60", "12", 0),
    ] {
        for (kind, count) in [("JOIN", expected), ("LEFT JOIN", "100")] {
            let query = format!("SELECT CONCAT_WS(',', COUNT(*), COUNT(c1.i)) FROM c0 {kind} c1 ON {on}");
            assert_eq!(node.query(1, &query), [format!("{count},{expected}")], "{query}");
            let found = reads(&mut node, &query, "list of keys");
            let is_small = matches!(found[..], [[1, replies, rows]] if replies <= PARTITIONS && rows <= rows_max);
            assert!(is_small || rows_max == 0, "{found:?}: {query}");
        }
    }
    // Locks are those of the keys.
    node.execute(1, &["BEGIN"]);
    let query =
        "SELECT COUNT(*) FROM c0 JOIN c1 ON c1.w IN (0, 1) AND c1.d = c0.d AND c1.i = c0.n WHERE c0.i = 5 FOR UPDATE";
    assert_eq!(node.query(1, query), ["1"]);
    for (id, is_locked) in [(25, true), (24, false), (45, false)] {
        let key = format!("w = {} AND d = {} AND i = {id}", id % 2, id / 2 % 10);
        let answer = node.query(2, &format!("SELECT i FROM c1 WHERE {key} FOR UPDATE NOWAIT"));
        assert_eq!(answer != [id.to_string()], is_locked, "{id}");
    }
    node.execute(1, &["ROLLBACK"]);
}

#[test]
fn a_correlated_subquery_looks_up_the_rows_of_many_outer_rows_at_once() {
    let mut node = filled_node(2);
    let same = "line.w = c0.w AND line.d = c0.d AND line.n = c0.n";
    for (value, expected) in [
        (format!("(SELECT COUNT(*) FROM line WHERE {same})"), "100,100,100"),
        (format!("(SELECT MAX(i) FROM line WHERE {same} AND i >= 10)"), "100,90,4905"),
        (format!("(SELECT SUM(i) + 1 FROM line WHERE {same} AND i <= 48)"), "100,49,1225"),
        // Rows without a group.
        ("(SELECT COUNT(*) FROM line WHERE line.w = c0.w AND line.d = c0.d AND line.n = c0.w)".into(), "100,100,10"),
        (format!("EXISTS (SELECT 1 FROM line WHERE {same} AND i < 70)"), "100,100,70"),
        (format!("NOT EXISTS (SELECT 1 FROM line WHERE {same} AND i < 70)"), "100,100,30"),
    ] {
        let query = format!("SELECT CONCAT_WS(',', COUNT(*), COUNT(v), SUM(v)) FROM (SELECT {value} v FROM c0) x");
        assert_eq!(node.query(1, &query), [expected], "{query}");
        let found = lookups(&mut node, &query);
        // Lists of 1, 1, 2, 4, 8, 16, 32 and 35 values, or fewer if outer rows are equal.
        assert!(matches!(found[..], [[3..=9, replies, _]] if replies <= 9 * PARTITIONS), "{found:?}: {query}");
    }
    // The first rows are not late.
    let query = format!("SELECT (SELECT MAX(i) FROM line WHERE {same}) - i FROM c0 LIMIT 1");
    assert_eq!(node.query(1, &query), ["0"]);
}

#[test]
fn answers_for_many_outer_rows_take_the_memory_of_the_query() {
    let mut node = filled_node(1);
    let value = "SELECT CONCAT(MAX(i), REPEAT('x', 20000)) FROM line WHERE line.w = o.w AND line.d = o.d AND \
                 line.n = o.m";
    let query = format!(
        "SELECT CONCAT_WS(',', COUNT(*), SUM(LENGTH(v))) FROM (SELECT ({value}) v FROM \
         (SELECT w, d, n % 20 m FROM c0 ORDER BY n LIMIT 1000) o) x"
    );
    // Three of the twenty values fit into the memory, so that they are computed again, for one row at a time.
    for (memory, single) in [("DEFAULT", 1..=1), ("65536", 10..=100)] {
        node.execute(1, &[&format!("SET tmp_table_size = {memory}")]);
        assert_eq!(node.query(1, &query), ["100,2000400"]);
        let found = reads(&mut node, &query, "Index lookup on line");
        assert!(matches!(found[..], [[runs, ..]] if single.contains(&runs)), "{memory}: {found:?}");
    }
}
