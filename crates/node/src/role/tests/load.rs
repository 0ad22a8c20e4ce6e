//! LOAD DATA LOCAL: parts of a file, KILL and lost connections.

use super::*;

const LOAD: &str = "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE d.t";

fn node() -> Node {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..3).for_each(|connection| node.open(connection, false));
    node.execute(2, &["SET GLOBAL local_infile = 1", "CREATE DATABASE d"]);
    node.execute(2, &["CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(9))"]);
    node
}

impl Node {
    /// Sends the next part of a file if the session awaits one. Returns whether it does.
    fn send_part(&mut self, part: &str) -> bool {
        let awaits = self.awaits_file.remove(&ConnectionId(1));
        if awaits {
            let (bytes, end) = (part.as_bytes().to_vec(), part.len() as u32);
            let signal = ReceiveFile { connection: ConnectionId(1), bytes, start: 0, end };
            self.send(1, SqlSignal::ReceiveFile(signal));
        }
        awaits
    }

    /// Sends the parts and the end of the file. Calls `interfere` before each signal.
    fn load(&mut self, parts: &[&str], interfere: &mut dyn FnMut(&mut Node)) {
        self.load_by(LOAD, parts, interfere);
    }

    /// As [`Node::load`], by this statement.
    fn load_by(&mut self, statement: &str, parts: &[&str], interfere: &mut dyn FnMut(&mut Node)) {
        self.begin_query(1, statement);
        let mut parts = parts.iter().chain([&""]).copied().peekable();
        loop {
            interfere(self);
            if let Some(part) = parts.peek().copied()
                && self.send_part(part)
            {
                parts.next();
            }
            if !self.step() && !self.awaits_file.contains(&ConnectionId(1)) {
                return;
            }
        }
    }

    /// Loads three rows. After so many signals session 2 executes `kill`, or the connection closes if it is
    /// empty. Checks that all rows are there or none, and returns whether the signals came to that number.
    fn load_with_kill(&mut self, statement: &str, parts: &[&str], (steps, kill): (i32, &str)) -> bool {
        let mut before = steps;
        self.load_by(statement, parts, &mut |node| {
            if before == 0 && kill.is_empty() {
                node.send(1, SqlSignal::CloseSession(CloseSession { connection: ConnectionId(1) }));
            } else if before == 0 {
                node.begin_query(2, kill);
            }
            before -= 1;
        });
        self.run();
        // The answer to `kill`, if it was sent.
        self.answer(2);
        let count = self.query(2, "SELECT COUNT(*) FROM d.t");
        assert!(count == ["0"] || count == ["3"], "{kill} after {steps} steps: {count:?}");
        before < 0
    }
}

#[test]
fn a_file_is_loaded_whatever_the_sizes_of_its_parts() {
    for parts in [&["1\ta\n2\tb\n3\tc\n"][..], &["1", "\ta", "\n2\tb\n3\t", "c"], &["\\N\ta\n0\tb\n", "3\tc\n"]] {
        let mut node = node();
        node.load(parts, &mut |_| {});
        assert_eq!(node.answer(1).expect("a request")[4..], *b"\xfbf");
        assert_eq!(node.rows(1), Vec::<String>::new());
        assert_eq!(node.query(2, "SELECT CONCAT(id, v) FROM d.t ORDER BY id"), ["1a", "2b", "3c"]);
    }
}

#[test]
fn the_rest_of_a_file_is_discarded_before_the_error_of_a_line_is_sent() {
    let mut node = node();
    node.load(&["1\ta\nx\tb\n", "3\tc\n", "4\td\n"], &mut |_| {});
    assert_eq!(node.answer(1).expect("a request")[4..], *b"\xfbf");
    assert_eq!(node.rows(1), ["#HY000Incorrect integer value: 'x' for column 'id' at row 2"]);
    assert_eq!(node.query(1, "SELECT COUNT(*) FROM d.t"), ["0"]);
}

#[test]
fn a_kill_at_any_moment_of_a_load_leaves_all_rows_or_none() {
    for steps in 0..60 {
        for kill in ["KILL QUERY 1", "KILL 1", ""] {
            let mut node = node();
            let is_hit = node.load_with_kill(LOAD, &["1\ta\n", "2\tb\n", "3\tc\n"], (steps, kill));
            match kill {
                "KILL QUERY 1" => {
                    assert!(node.answer(1).is_some(), "{kill} after {steps} steps");
                    while node.answer(1).is_some() {}
                    assert_eq!(node.query(1, "SELECT 1"), ["1"], "{kill} after {steps} steps");
                    assert_eq!(node.resources_held(), 2, "{kill} after {steps} steps");
                }
                _ if is_hit => {
                    assert_eq!(node.query(2, "SELECT COUNT(*) FROM information_schema.PROCESSLIST"), ["1"])
                }
                _ => {}
            }
        }
    }
}

const LOAD_WITH_QUERIES: &str = "LOAD DATA LOCAL INFILE 'f' INTO TABLE d.t (id, @v) \
    SET v = (SELECT w FROM d.names WHERE k = @v), n = (@sum := @sum + id), c = (SELECT MAX(w) FROM d.names WHERE k <> v)";

/// A node with a table of names.
fn node_with_names() -> Node {
    let mut node = node();
    node.execute(2, &["ALTER TABLE d.t ADD n INT, ADD c VARCHAR(9)"]);
    node.execute(2, &["CREATE TABLE d.names (k VARCHAR(9) PRIMARY KEY, w VARCHAR(9))"]);
    node.execute(2, &["INSERT INTO d.names VALUES ('a', 'one'), ('b', 'two'), ('c', 'three')"]);
    node.execute(1, &["SET @sum = 10"]);
    node
}

#[test]
fn queries_of_set_run_for_each_line_whatever_the_sizes_of_the_parts() {
    for parts in [&["1\ta\n2\tb\n3\tc\n4\td\n"][..], &["1", "\ta", "\n2\tb\n3\t", "c\n4\td"]] {
        let mut node = node_with_names();
        node.load_by(LOAD_WITH_QUERIES, parts, &mut |_| {});
        assert_eq!(node.answer(1).expect("a request")[4..], *b"\xfbf");
        assert_eq!(node.rows(1), Vec::<String>::new());
        let rows = node.query(2, "SELECT CONCAT_WS(',', id, IFNULL(v, '-'), n, c) FROM d.t ORDER BY id");
        assert_eq!(rows, ["1,one,11,two", "2,two,13,two", "3,three,16,two", "4,-,20"]);
        assert_eq!(node.query(1, "SELECT CONCAT(@sum, @v)"), ["20d"]);
    }
}

#[test]
fn queries_of_set_have_their_row_whatever_sql_select_limit_is() {
    let mut node = node_with_names();
    node.execute(1, &["SET sql_select_limit = 0"]);
    node.load_by(LOAD_WITH_QUERIES, &["1\ta\n2\tb\n"], &mut |_| {});
    assert_eq!(node.answer(1).expect("a request")[4..], *b"\xfbf");
    assert_eq!(node.rows(1), Vec::<String>::new());
    assert_eq!(node.query(2, "SELECT CONCAT(id, v) FROM d.t ORDER BY id"), ["1one", "2two"]);
}

#[test]
fn a_kill_while_queries_of_set_run_leaves_all_rows_or_none() {
    for steps in 0..90 {
        for kill in ["KILL QUERY 1", "KILL 1", "ALTER TABLE d.names ADD x INT", "DROP TABLE d.names", ""] {
            let mut node = node_with_names();
            node.load_with_kill(LOAD_WITH_QUERIES, &["1\ta\n2\tb\n", "3\tc\n"], (steps, kill));
            if kill == "KILL 1" || kill.is_empty() {
                continue;
            }
            assert!(node.answer(1).is_some(), "{kill} after {steps} steps");
            while node.answer(1).is_some() {}
            assert_eq!(node.query(1, "SELECT 1"), ["1"], "{kill} after {steps} steps");
            assert_eq!(node.resources_held(), 2, "{kill} after {steps} steps");
        }
    }
}

#[test]
fn a_query_of_a_line_reads_all_rows_of_a_virtual_table_that_it_wants() {
    let mut node = node();
    node.execute(1, &["USE d", "SET @n = 't'"]);
    let count = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = @n";
    let joined = format!("{count} AND TABLE_NAME IN (SELECT TABLE_NAME FROM information_schema.COLUMNS)");
    for query in [count, &joined] {
        let load = format!("LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE d.t (id) SET v = ({query})");
        node.load_by(&load, &["1\n2\n"], &mut |_| {});
        node.answer(1);
        node.rows(1);
        assert_eq!(node.query(2, "SELECT CONCAT(id, '=', v) FROM d.t ORDER BY id"), ["1=1", "2=1"], "{query}");
        node.execute(2, &["DELETE FROM d.t"]);
    }
}

#[test]
fn a_subquery_of_set_reads_variables_that_set_assigns() {
    let mut node = node_with_names();
    let load = "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE d.t (id, @v) \
        SET n = (@sum := @sum + id), v = (SELECT w FROM d.names WHERE k = @v AND @sum > 11), \
        c = (SELECT CONCAT(MAX(w), @sum) FROM d.names WHERE k > @v), k = (@v := 'z')";
    // The collation of the columns, which the variables are compared with.
    node.execute(1, &["SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci"]);
    node.execute(2, &["ALTER TABLE d.t ADD k VARCHAR(9)"]);
    node.load_by(load, &["1\ta\n2\tb\n", "3\tc\n"], &mut |_| {});
    assert_eq!(node.answer(1).expect("a request")[4..], *b"\xfbf");
    assert_eq!(node.rows(1), Vec::<String>::new());
    let rows = node.query(2, "SELECT CONCAT_WS(',', id, n, IFNULL(v, '-'), IFNULL(c, '-'), k) FROM d.t ORDER BY id");
    assert_eq!(rows, ["1,11,-,two11,z", "2,13,two,three13,z", "3,16,three,-,z"]);
    assert_eq!(node.query(1, "SELECT CONCAT(@sum, @v)"), ["16z"]);
}

#[test]
fn bytes_of_a_file_are_no_document() {
    let mut node = node();
    node.execute(2, &["CREATE TABLE d.j (id INT PRIMARY KEY, j JSON, s VARCHAR(9))"]);
    for (set, is_text) in [("binary", false), ("utf8mb4", true), ("latin1", true)] {
        for (fields, ignore) in [("(id, j, s)", ""), ("(id, j, s)", "IGNORE"), ("(id, @j, s) SET j = @j", "")] {
            let load = format!("LOAD DATA LOCAL INFILE 'f' {ignore} INTO TABLE d.j CHARACTER SET {set} {fields}");
            node.load_by(&load, &["1\t[1]\ta\n"], &mut |_| {});
            node.answer(1);
            if is_text {
                node.rows(1);
            } else {
                let answer = node.answer(1).expect("an error");
                assert_eq!(answer[4..7], [255, (3144u16 % 256) as u8, (3144u16 / 256) as u8], "{load}");
            }
            let rows = node.query(2, "SELECT j FROM d.j");
            assert_eq!(rows.len(), usize::from(is_text), "{load}");
            node.execute(2, &["DELETE FROM d.j"]);
        }
        // Other columns take the bytes.
        let load = format!("LOAD DATA LOCAL INFILE 'f' INTO TABLE d.j CHARACTER SET {set} (id, @s) SET s = UPPER(@s)");
        node.load_by(&load, &["1\ta\n"], &mut |_| {});
        node.answer(1);
        node.rows(1);
        assert_eq!(node.query(2, "SELECT s FROM d.j"), [if is_text { "A" } else { "a" }]);
        assert_eq!(node.query(1, "SELECT @s = 'A'"), [if is_text { "1" } else { "0" }]);
        node.execute(2, &["DELETE FROM d.j"]);
    }
}
