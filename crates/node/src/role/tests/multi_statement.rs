//! Texts of several statements and admission: none of their statements runs without a slot, except KILL at
//! the start.

use super::*;

const SESSIONS: u32 = 4;

/// A node with one slot, and rows 1 and 2 of a table. Session 2 may send several statements.
fn node() -> Node {
    let mut node = Node::new(ONE_THREAD, NodeConfig { transactions_max: 1, ..NodeConfig::default() });
    (1..=SESSIONS).for_each(|connection| node.open(connection, false));
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"]);
    node.execute(1, &["CREATE TABLE d.other (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1, 0), (2, 0)"]);
    // COM_SET_OPTION, MYSQL_OPTION_MULTI_STATEMENTS_ON.
    node.begin(2, &[0x1b, 0, 0]);
    node.run();
    assert_eq!(node.kinds(2), [0xfe]);
    node
}

impl Node {
    /// The first byte of every packet that a client got: 0 is OK, 255 an error.
    fn kinds(&mut self, connection: u32) -> Vec<u8> {
        let mut kinds = Vec::new();
        while let Some(answer) = self.answer(connection) {
            let mut rest = answer.as_slice();
            while let Some((header, after)) = rest.split_first_chunk::<4>() {
                let (payload, after) = after.split_at(usize::from(header[0]) | usize::from(header[1]) << 8);
                kinds.push(payload[0]);
                rest = after;
            }
        }
        kinds
    }

    /// Session 1 takes the slot, and session 2 needs one after a KILL. Returns the resources held before
    /// session 2 waits.
    fn let_a_text_wait(&mut self) -> usize {
        self.execute(1, &["BEGIN", "UPDATE d.t SET v = 1 WHERE id = 1"]);
        let held = self.resources_held();
        self.begin_query(2, "KILL QUERY 3; BEGIN; UPDATE d.t SET v = v + 10 WHERE id = 2");
        self.run();
        assert_eq!(self.answer(2), None, "the transaction with locks has the only slot");
        assert_eq!(self.resources_held(), held + 1, "one more session waits for admission");
        held
    }

    /// Session 1 commits, which frees the slot.
    fn commit_and_see(&mut self, values: [&str; 2], sessions: usize) {
        self.execute(1, &["COMMIT"]);
        assert_eq!(self.query(3, "SELECT v FROM d.t ORDER BY id"), values);
        assert_eq!(self.resources_held(), sessions, "only sessions hold resources");
    }

    fn close(&mut self, connection: u32) {
        self.send(connection, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(connection) }));
        self.run();
    }

    /// The text of session 2 continues when session 1 commits, and its transaction then has the slot.
    fn go_on_with_the_slot(&mut self, sent: &[u8]) {
        self.fire_timers();
        assert_eq!(self.kinds(2), sent, "the result before does not wait");
        self.execute(1, &["COMMIT"]);
        assert_eq!(self.kinds(2), [0, 0], "BEGIN and UPDATE");
        self.begin_query(3, "SELECT v FROM d.t ORDER BY id");
        self.run();
        assert_eq!(self.answer(3), None, "now session 2 has the only slot");
        self.execute(2, &["COMMIT"]);
    }
}

#[test]
fn the_statement_after_kill_waits_for_a_slot() {
    let mut node = node();
    node.let_a_text_wait();
    node.go_on_with_the_slot(&[0]);
    assert_eq!(node.rows(3), ["1", "10"]);
    assert_eq!(node.resources_held(), SESSIONS as usize, "only sessions hold resources");
}

#[test]
fn the_statement_after_a_schema_change_waits_for_a_slot() {
    let mut node = node();
    // The schema change waits for session 4 and returns its slot, which session 1 gets.
    node.execute(4, &["BEGIN"]);
    assert_eq!(node.query(4, "SELECT v FROM d.t WHERE id = 1"), ["0"]);
    node.begin_query(2, "ALTER TABLE d.t ADD INDEX v (v); BEGIN; UPDATE d.t SET v = v + 10 WHERE id = 2");
    node.run();
    node.begin_query(1, "BEGIN");
    // Session 4 is idle without locks, so it loses the slot that its transaction kept.
    node.advance_seconds(1);
    node.fire_timers();
    node.execute(1, &["INSERT INTO d.other VALUES (1)"]);
    node.close(4);
    assert_eq!(node.answer(2), None, "the transaction with locks has the only slot");
    node.go_on_with_the_slot(&[0]);
    assert_eq!(node.rows(3), ["0", "10"]);
    assert_eq!(node.resources_held(), SESSIONS as usize - 1, "only sessions hold resources");
}

#[test]
fn a_text_that_waits_for_a_slot_is_stopped_by_kill() {
    for (results_are_sent, answer) in [(false, vec![0, 0xff]), (true, vec![0xff])] {
        let mut node = node();
        let held = node.let_a_text_wait();
        if results_are_sent {
            node.fire_timers();
            assert_eq!(node.kinds(2), [0]);
        }
        node.execute(4, &["KILL QUERY 2"]);
        assert_eq!(node.kinds(2), answer);
        assert_eq!(node.resources_held(), held, "it waits no longer");
        node.commit_and_see(["1", "0"], SESSIONS as usize);
        assert_eq!(node.query(2, "SELECT 7"), ["7"]);
    }
}

#[test]
fn a_closed_session_no_longer_waits_for_a_slot() {
    for is_killed in [false, true] {
        let mut node = node();
        let held = node.let_a_text_wait();
        match is_killed {
            true => node.execute(4, &["KILL 2"]),
            false => node.close(2),
        }
        assert_eq!(node.kinds(2), if is_killed { vec![0, 0xff] } else { vec![] });
        assert_eq!(node.resources_held(), held - 1, "neither the wait nor the session is left");
        node.commit_and_see(["1", "0"], SESSIONS as usize - 1);
    }
}

#[test]
fn a_text_killed_when_it_gets_its_slot_returns_the_slot() {
    for seed in 0..60 {
        let mut node = node();
        node.let_a_text_wait();
        node.shuffle(seed);
        node.begin_query(1, "COMMIT");
        (0..seed % 6).for_each(|_| assert!(node.step()));
        let is_closed = seed % 2 == 0;
        match is_closed {
            true => node.send(2, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(2) })),
            false => node.begin_query(4, "KILL QUERY 2"),
        }
        node.run();
        assert_eq!(node.kinds(1), [0], "seed {seed}");
        if !is_closed {
            let told = node.kinds(2);
            assert!(matches!(told[..], [0, 0xff] | [0, 0, 0xff] | [0, 0, 0]), "seed {seed}: {told:?}");
            node.execute(2, &["ROLLBACK"]);
        }
        assert_eq!(node.query(3, "SELECT v FROM d.t ORDER BY id"), ["1", "0"], "seed {seed}");
        let sessions = SESSIONS as usize - usize::from(is_closed);
        assert_eq!(node.resources_held(), sessions, "seed {seed}: only sessions hold resources");
    }
}
