//! Admission: who holds tickets, and who gets the next one.

use super::*;

#[test]
fn a_session_reset_admits_a_waiting_session() {
    let mut node = Node::new(ONE_THREAD, NodeConfig { transactions_max: 1, ..NodeConfig::default() });
    node.open(1, false);
    node.open(2, false);
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)"]);
    node.execute(1, &["BEGIN", "INSERT INTO d.t VALUES (1)"]);
    node.begin_query(2, "SELECT 7");
    node.run();
    assert_eq!(node.answer(2), None, "the transaction with locks has the only ticket");
    node.open(1, true);
    assert_eq!(node.rows(2), ["7"]);
    assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), ["0"]);
}

#[test]
fn a_transaction_without_locks_holds_no_admission_ticket() {
    let mut node = Node::new(ONE_THREAD, NodeConfig { transactions_max: 1, ..NodeConfig::default() });
    (1..4).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"]);
    for reader in [1, 2] {
        node.execute(reader, &["SET autocommit = 0"]);
        assert_eq!(node.query(reader, "SELECT id FROM d.t"), ["1"]);
    }
    node.execute(3, &["BEGIN", "UPDATE d.t SET id = 2"]);
    node.begin_query(1, "SELECT id FROM d.t");
    node.run();
    assert_eq!(node.answer(1), None, "now somebody holds locks");
    node.execute(3, &["COMMIT"]);
    assert_eq!(node.rows(1), ["1"], "the snapshot outlives the wait");
}
