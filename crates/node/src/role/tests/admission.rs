//! Admission: who holds slots of the thread pool, and who gets the next one.

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
    assert_eq!(node.answer(2), None, "the transaction with locks has the only slot");
    node.open(1, true);
    assert_eq!(node.rows(2), ["7"]);
    assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), ["0"]);
}

#[test]
fn an_idle_transaction_without_locks_loses_its_slot_to_those_that_wait() {
    let mut node = Node::new(ONE_THREAD, NodeConfig { transactions_max: 1, ..NodeConfig::default() });
    (1..4).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"]);
    node.execute(1, &["SET autocommit = 0"]);
    assert_eq!(node.query(1, "SELECT id FROM d.t"), ["1"]);
    node.begin_query(2, "SELECT 7");
    node.run();
    assert_eq!(node.answer(2), None, "the transaction has the only slot");
    node.advance_seconds(1);
    node.fire_timers();
    assert_eq!(node.rows(2), ["7"]);
    node.execute(3, &["BEGIN", "UPDATE d.t SET id = 2"]);
    node.begin_query(1, "SELECT id FROM d.t");
    node.run();
    node.advance_seconds(1);
    node.fire_timers();
    assert_eq!(node.answer(1), None, "a transaction with locks keeps its slot");
    node.execute(3, &["COMMIT"]);
    assert_eq!(node.rows(1), ["1"], "the snapshot outlives the wait");
}

/// A node whose only slot belongs to the transaction of session 1, and sessions 1 to 3.
fn node_with_one_slot(settings: &[&str]) -> Node {
    let mut node = Node::new(ONE_THREAD, NodeConfig { transactions_max: 16, ..NodeConfig::default() });
    node.open(9, false);
    node.execute(9, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
    node.execute(9, &["INSERT INTO d.t VALUES (1, 0), (2, 0)", "SET GLOBAL thread_pool_transactions = 1"]);
    node.execute(9, &["SET GLOBAL thread_pool_stall_limit = 100000000"]);
    node.execute(9, &["SET GLOBAL thread_pool_prio_kickup_timer = 100000000"]);
    node.execute(9, settings);
    (1..4).for_each(|connection| node.open(connection, false));
    node.execute(1, &["BEGIN", "UPDATE d.t SET v = v + 1 WHERE id = 1"]);
    node
}

#[test]
fn a_session_of_the_extra_port_waits_for_no_slot_and_takes_none() {
    let mut node = node_with_one_slot(&[]);
    node.begin_query(2, "SELECT 7");
    node.run();
    assert_eq!(node.answer(2), None, "the transaction has the only slot");
    node.open_extra(4);
    assert_eq!(node.query(4, "SELECT 8"), ["8"]);
    node.execute(4, &["BEGIN", "UPDATE d.t SET v = 5 WHERE id = 2"]);
    node.execute(1, &["COMMIT"]);
    assert_eq!(node.rows(2), ["7"], "an open transaction of the extra port has no slot");
    node.execute(4, &["COMMIT"]);
    assert_eq!(node.query(2, "SELECT v FROM d.t WHERE id = 2"), ["5"]);
}

#[test]
fn tickets_of_high_priority_end_starvation() {
    for (tickets, statements) in [(u32::MAX, None), (3, Some(3)), (0, Some(0))] {
        let mut node = node_with_one_slot(&[&format!("SET GLOBAL thread_pool_high_prio_tickets = {tickets}")]);
        node.begin_query(2, "SELECT 7");
        node.run();
        // The UPDATE has used a ticket, if there was one.
        let mut passed = u32::from(tickets > 0);
        let answered = (0..100).find_map(|_| {
            node.begin_query(1, "UPDATE d.t SET v = v + 1 WHERE id = 1");
            node.run();
            passed += 1;
            let is_answered = node.answer(2).is_some();
            node.answer(1);
            is_answered.then(|| passed - 1)
        });
        assert_eq!(answered, statements, "{tickets} tickets");
    }
}

#[test]
fn without_high_priority_each_statement_needs_a_slot() {
    for (mode, is_answered) in [("transactions", false), ("statements", true), ("none", true)] {
        let mut node = node_with_one_slot(&[&format!("SET GLOBAL thread_pool_high_prio_mode = '{mode}'")]);
        node.begin_query(2, "SELECT 7");
        node.run();
        assert_eq!(node.answer(2).is_some(), is_answered, "{mode}");
        node.execute(1, &["COMMIT"]);
    }
}

#[test]
fn a_statement_that_waits_for_a_row_lends_its_slot() {
    for mode in ["statements", "none"] {
        let mut node = node_with_one_slot(&[&format!("SET GLOBAL thread_pool_high_prio_mode = '{mode}'")]);
        node.begin_query(2, "UPDATE d.t SET v = v + 10 WHERE id = 1");
        node.run();
        assert_eq!(node.answer(2), None, "session 1 has the row");
        assert_eq!(node.query(3, "SELECT 7"), ["7"], "{mode}");
        node.execute(1, &["COMMIT"]);
        assert!(node.answer(2).is_some(), "the commit frees the row");
        assert_eq!(node.query(3, "SELECT v FROM d.t WHERE id = 1"), ["11"]);
        // The records of ended statements are used again.
        node.execute(1, &["BEGIN", "UPDATE d.t SET v = 0 WHERE id = 1"]);
        node.begin_query(2, "UPDATE d.t SET v = v + 1 WHERE id = 1");
        node.run();
        assert_eq!(node.query(3, "SELECT 8"), ["8"], "{mode}");
        node.execute(1, &["ROLLBACK"]);
        assert!(node.answer(2).is_some(), "the rollback frees the row");
        let stalls = "SELECT CONCAT_WS(' ', stalls, slots_in_use) FROM junctor_info.thread_pool_stats s JOIN \
                      junctor_info.thread_pool_groups g";
        assert_eq!(node.query(3, stalls), ["0 1"], "{mode}");
        let loans = "SELECT count FROM junctor_info.thread_pool_waits WHERE reason = 'ROW LOCK'";
        assert_eq!(node.query(3, loans), ["2"], "{mode}");
    }
}

#[test]
fn a_transaction_that_waits_for_a_row_lends_its_slot_and_takes_it_back() {
    let mut node = node_with_one_slot(&["SET GLOBAL thread_pool_transactions = 2"]);
    node.execute(2, &["BEGIN", "UPDATE d.t SET v = v + 1 WHERE id = 2"]);
    node.begin_query(2, "UPDATE d.t SET v = v + 10 WHERE id = 1");
    node.run();
    assert_eq!(node.answer(2), None, "session 1 has the row");
    assert_eq!(node.query(3, "SELECT 7"), ["7"], "by the slot of session 2");
    node.execute(1, &["COMMIT"]);
    assert!(node.answer(2).is_some(), "the commit frees the row");
    node.execute(1, &["BEGIN"]);
    assert_eq!(node.query(1, "SELECT 8"), ["8"]);
    node.begin_query(3, "SELECT 7");
    node.run();
    assert_eq!(node.answer(3), None, "sessions 1 and 2 have the two slots");
    node.execute(2, &["COMMIT"]);
    assert_eq!(node.rows(3), ["7"]);
}

#[test]
fn a_session_that_ends_while_it_lends_its_slot_keeps_none() {
    for end in ["KILL 2", "KILL QUERY 2", "close", "deadlock"] {
        let mut node = node_with_one_slot(&["SET GLOBAL thread_pool_high_prio_mode = 'none'"]);
        node.execute(2, &["BEGIN", "UPDATE d.t SET v = 1 WHERE id = 2"]);
        node.begin_query(2, "UPDATE d.t SET v = v + 10 WHERE id = 1");
        node.run();
        match end {
            "close" => node.send(2, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(2) })),
            "deadlock" => node.begin_query(1, "UPDATE d.t SET v = 2 WHERE id = 2"),
            kill => node.begin_query(3, kill),
        }
        node.run();
        node.begin_query(1, "ROLLBACK");
        node.run();
        (1..4).for_each(|connection| drop(node.answer(connection)));
        assert_eq!(node.query(9, "SELECT slots_in_use FROM junctor_info.thread_pool_groups"), ["1"], "{end}");
    }
}

#[test]
fn loans_and_slots_together_are_bounded() {
    let mut node = node_with_one_slot(&[
        "SET GLOBAL thread_pool_high_prio_mode = 'none'",
        "SET GLOBAL thread_pool_max_threads = 2",
        "SET GLOBAL thread_pool_stall_limit = 500",
    ]);
    node.begin_query(2, "UPDATE d.t SET v = v + 10 WHERE id = 1");
    node.begin_query(3, "UPDATE d.t SET v = v + 10 WHERE id = 1");
    node.run();
    node.begin_query(9, "SELECT 7");
    node.run();
    assert_eq!(node.answer(9), None, "two statements wait for the row, and there are no more slots");
}

#[test]
fn a_stall_adds_slots_for_those_whom_an_idle_client_keeps_out() {
    let mut node = node_with_one_slot(&["SET GLOBAL thread_pool_stall_limit = 500"]);
    // The transaction of session 1 has a lock, so it keeps the only slot.
    node.begin_query(2, "SELECT 7");
    node.run();
    assert_eq!(node.answer(2), None);
    node.advance_seconds(1);
    node.fire_timers();
    assert_eq!(node.rows(2), ["7"]);
    assert_eq!(node.query(1, "SELECT stalls > 0 FROM junctor_info.thread_pool_stats"), ["1"]);
}

#[test]
fn status_tables_show_who_waits() {
    let mut node = node_with_one_slot(&[]);
    node.begin_query(2, "SELECT 7");
    node.run();
    // Session 1 has the slot, so it can look.
    let row = "CONCAT_WS(' ', slots, slots_in_use, queue_length, is_stalled)";
    assert_eq!(node.query(1, &format!("SELECT {row} FROM junctor_info.thread_pool_groups")), ["1 1 1 0"]);
    let row = "CONCAT_WS(' ', position, priority, connection_id)";
    assert_eq!(node.query(1, &format!("SELECT {row} FROM junctor_info.thread_pool_queues")), ["0 LOW 2"]);
    node.execute(1, &["COMMIT"]);
    assert_eq!(node.rows(2), ["7"]);
    let count = "SELECT count FROM junctor_info.thread_pool_waits WHERE reason = 'SLOT'";
    assert_eq!(node.query(1, count), ["1"]);
    let counts = "SELECT CONCAT_WS(' ', dequeues_high, dequeues_low) FROM junctor_info.thread_pool_stats";
    assert_eq!(node.query(1, counts), ["0 1"]);
}

#[test]
fn clients_that_do_not_read_hold_no_slots() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..10).for_each(|connection| node.open(connection, false));
    node.execute(1, &["SET GLOBAL thread_pool_transactions = 2"]);
    let wide = "SELECT REPEAT('x', 60000) FROM information_schema.COLLATIONS a, information_schema.COLLATIONS b";
    for connection in 2..8 {
        node.begin_query(connection, wide);
        node.run();
        assert!(node.answer(connection).is_some(), "the first part of session {connection}");
    }
    for connection in [8, 9] {
        assert_eq!(node.query(connection, "SELECT 1"), ["1"], "beside clients that do not read");
    }
    // One reads on, another one is killed, the others leave.
    node.send(2, SqlSignal::ContinueCommand(ContinueCommand { connection: ConnectionId(2) }));
    node.run();
    assert!(node.answer(2).is_some());
    node.execute(1, &["KILL QUERY 3"]);
    for connection in 2..10 {
        node.send(connection, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(connection) }));
    }
    node.run();
    assert_eq!(node.resources_held(), 1, "only one session holds resources");
}
