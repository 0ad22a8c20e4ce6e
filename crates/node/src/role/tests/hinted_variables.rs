//! SET_VAR: variables that a hint sets for its statement alone.

use super::*;

fn node_with_table() -> Node {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    node.open(1, false);
    node.execute(1, &["CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP NULL)"]);
    node.execute(1, &["INSERT INTO t VALUES (1, '2020-01-01 00:00:00'), (2, NULL)"]);
    node
}

#[test]
fn a_variable_has_its_value_for_one_statement() {
    let mut node = node_with_table();
    for (statement, hinted, plain) in [
        ("at FROM t WHERE id = 1", &["2020-01-01 05:30:00"][..], &["2020-01-01 00:00:00"][..]),
        ("@@time_zone", &["+05:30"], &["SYSTEM"]),
    ] {
        let with_hint = format!("SELECT /*+ SET_VAR(time_zone = '+05:30') */ {statement}");
        assert_eq!(node.query(1, &with_hint), hinted, "{statement}");
        assert_eq!(node.query(1, &format!("SELECT {statement}")), plain, "{statement}");
    }
    let subtraction = "CAST(1 AS UNSIGNED) - 2";
    let mode = "SELECT /*+ SET_VAR(sql_mode = 'NO_UNSIGNED_SUBTRACTION') */";
    assert_eq!(node.query(1, &format!("{mode} {subtraction}")), ["-1"]);
    assert!(node.query(1, &format!("SELECT {subtraction}"))[0].contains("out of range"));
    assert_eq!(node.query(1, "SELECT /*+ SET_VAR(sql_select_limit = 1) */ id FROM t ORDER BY id"), ["1"]);
    assert_eq!(node.query(1, "SELECT id FROM t ORDER BY id"), ["1", "2"]);
    assert_eq!(node.query(1, "SELECT /*+ SET_VAR(timestamp = 100) */ UNIX_TIMESTAMP()"), ["100"]);
}

#[test]
fn a_statement_that_fails_or_assigns_ends_with_the_old_values() {
    let mut node = node_with_table();
    let failed = node.query(1, "SELECT /*+ SET_VAR(time_zone = '+05:30') */ id FROM missing");
    assert!(failed[0].contains("doesn't exist"), "{failed:?}");
    assert_eq!(node.query(1, "SELECT @@time_zone"), ["SYSTEM"]);
    node.query(1, "SELECT /*+ SET_VAR(time_zone = '+05:30') */ @v := at FROM t WHERE id = 1");
    assert_eq!(node.query(1, "SELECT @v"), ["2020-01-01 05:30:00"]);
    assert_eq!(node.query(1, "SELECT @@time_zone"), ["SYSTEM"]);
    node.execute(1, &["SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"]);
    node.query(1, "SELECT /*+ SET_VAR(time_zone = '+05:30') */ id FROM t");
    node.execute(1, &["START TRANSACTION", "COMMIT"]);
}

#[test]
fn a_prepared_statement_sets_its_variables_at_each_execution() {
    let mut node = node_with_table();
    let text = "SELECT /*+ SET_VAR(time_zone = ''-03:00'') */ at FROM t WHERE id = ?";
    node.execute(1, &[&format!("PREPARE p FROM '{text}'"), "SET @id = 1"]);
    for _ in 0..2 {
        assert_eq!(node.query(1, "EXECUTE p USING @id"), ["2019-12-31 21:00:00"]);
        assert_eq!(node.query(1, "SELECT at FROM t WHERE id = 1"), ["2020-01-01 00:00:00"]);
    }
}

#[test]
fn wrong_values_and_second_values_are_warnings() {
    let mut node = node_with_table();
    let count = "SELECT @@warning_count";
    for (hints, warnings) in [
        ("SET_VAR(time_zone = 'nowhere')", "1"),
        ("SET_VAR(sql_select_limit = 5) SET_VAR(sql_select_limit = 6)", "1"),
        ("SET_VAR(sql_mode = 'ANSI')", "0"),
        ("SET_VAR(version = 'x')", "1"),
    ] {
        assert_eq!(node.query(1, &format!("SELECT /*+ {hints} */ id FROM t WHERE id = 1")), ["1"], "{hints}");
        assert_eq!(node.query(1, count), [warnings], "{hints}");
    }
}

#[test]
fn the_end_of_an_inner_query_is_not_the_end_of_the_statement() {
    let mut node = node_with_table();
    node.execute(1, &["CREATE TABLE u (id INT PRIMARY KEY)"]);
    let join = "t.id FROM t LEFT JOIN u ON u.id = 99999999999 ORDER BY t.id";
    assert_eq!(node.query(1, &format!("SELECT /*+ SET_VAR(sql_select_limit = 1) */ {join}")), ["1"]);
    assert_eq!(node.query(1, "SELECT @@sql_select_limit"), ["18446744073709551615"]);
    assert_eq!(node.query(1, &format!("SELECT {join}")), ["1", "2"]);
}

#[test]
fn a_statement_that_starts_again_is_read_as_before() {
    let mut node = node_with_table();
    let query = "SELECT /*+ SET_VAR(sql_mode = 'ANSI_QUOTES') */ CONCAT(GET_LOCK('a', 1), \"x\")";
    assert_eq!(node.query(1, query), ["1x"]);
    assert_eq!(node.query(1, "SELECT RELEASE_LOCK('a')"), ["1"]);
    assert_eq!(node.query(1, "SELECT @@sql_mode LIKE '%ANSI%'"), ["0"]);
}
