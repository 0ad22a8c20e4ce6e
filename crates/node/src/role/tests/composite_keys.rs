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
    let text = node.query(1, &format!("EXPLAIN ANALYZE {query}")).concat();
    let figure = |line: &str, name: &str| -> usize {
        let value = line.rsplit_once(name).unwrap_or_else(|| panic!("no {name} in {line}")).1;
        value
            .split(|byte: char| !byte.is_ascii_digit())
            .next()
            .and_then(|digits| digits.parse().ok())
            .expect("a number")
    };
    let of_keys = text.lines().filter(|line| line.contains("by a list of keys of 3 columns"));
    of_keys.map(|line| ["reads=", "replies=", "rows="].map(|name| figure(line, name))).collect()
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
