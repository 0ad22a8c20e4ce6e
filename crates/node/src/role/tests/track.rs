//! Session tracking: the changes of state that OK packets report.

use super::*;

/// The changes that an OK packet reports, as bytes with unprintable ones escaped.
fn changes(node: &mut Node, command: &[u8]) -> String {
    node.begin(1, command);
    node.run();
    let answer = node.answer(1).expect("an answer");
    assert_eq!(answer[4], 0, "OK");
    let status = u16::from(answer[7]) | u16::from(answer[8]) << 8;
    match status & 0x4000 {
        0 => {
            assert_eq!(answer.len(), 11, "no text and no changes");
            String::new()
        }
        _ => answer[13..].escape_ascii().to_string(),
    }
}

fn query(node: &mut Node, text: &str) -> String {
    changes(node, &[&[3], text.as_bytes()].concat())
}

#[test]
fn an_ok_packet_reports_what_the_statement_has_changed() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    // CLIENT_SESSION_TRACK.
    node.open_with(1, 0x200 | 1 << 23);
    node.execute(1, &["CREATE DATABASE d"]);
    assert_eq!(query(&mut node, "USE d"), "\\x01\\x02\\x01d");
    assert_eq!(changes(&mut node, b"\x02d"), "\\x01\\x02\\x01d");
    assert_eq!(query(&mut node, "SET autocommit = 0"), "\\x00\\x0f\\nautocommit\\x03OFF");
    assert_eq!(query(&mut node, "SET sql_mode = ''"), "");
    let names = query(&mut node, "SET NAMES utf8mb4");
    assert_eq!(names.matches("character_set_").count(), 3, "{names}");
    let changed = query(&mut node, "SET session_track_system_variables = 'sql_mode', session_track_state_change = ON");
    assert_eq!(changed, "\\x02\\x02\\x011");
    assert_eq!(
        query(&mut node, "SET sql_mode = 'ANSI_QUOTES'"),
        "\\x00\\x15\\x08sql_mode\\x0bANSI_QUOTES\\x02\\x02\\x011"
    );
    assert_eq!(query(&mut node, "SET session_track_schema = OFF, session_track_state_change = OFF"), "");
    assert_eq!(query(&mut node, "USE d"), "");
    assert_eq!(query(&mut node, "DO 1"), "");
}

#[test]
fn a_client_without_tracking_gets_no_changes() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    node.open(1, false);
    node.execute(1, &["CREATE DATABASE d", "SET session_track_state_change = ON"]);
    assert_eq!(query(&mut node, "USE d"), "");
}

/// The report of a transaction's state.
fn state(letters: &str) -> String {
    format!("\\x05\\t\\x08{letters}")
}

/// The report of a transaction's characteristics.
fn characteristics(statements: &str) -> String {
    let bytes = [&[4, statements.len() as u8 + 1, statements.len() as u8], statements.as_bytes()].concat();
    bytes.escape_ascii().to_string()
}

#[test]
fn an_ok_packet_reports_the_state_and_the_characteristics_of_the_transaction() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    node.open_with(1, 0x200 | 1 << 23);
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)"]);
    let both = |letters: &str, statements: &str| state(letters) + &characteristics(statements);
    let none = "________";
    assert_eq!(query(&mut node, "SET session_track_transaction_info = 'CHARACTERISTICS'"), both(none, ""));
    assert_eq!(query(&mut node, "INSERT INTO d.t VALUES (1)"), "", "a transaction by itself is not told");
    assert_eq!(query(&mut node, "START TRANSACTION"), both("T_______", "START TRANSACTION;"));
    assert_eq!(query(&mut node, "INSERT INTO d.t VALUES (2)"), state("T___W___"));
    assert_eq!(query(&mut node, "INSERT INTO d.t VALUES (3)"), "", "nothing new");
    node.query(1, "SELECT * FROM d.t");
    assert_eq!(query(&mut node, "DO 1"), state("T_R_W_S_"), "an EOF packet has no changes");
    assert_eq!(query(&mut node, "COMMIT AND CHAIN"), both("T_______", "START TRANSACTION;"));
    assert_eq!(query(&mut node, "ROLLBACK"), both(none, ""));
    assert_eq!(query(&mut node, "SET TRANSACTION READ ONLY"), characteristics("SET TRANSACTION READ ONLY;"));
    let isolation = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;";
    let chosen = format!("{isolation} SET TRANSACTION READ ONLY;");
    assert_eq!(query(&mut node, isolation), characteristics(&chosen));
    let begun = format!("{isolation} START TRANSACTION READ WRITE;");
    assert_eq!(query(&mut node, "START TRANSACTION READ WRITE"), both("T_______", &begun));
    assert_eq!(query(&mut node, "COMMIT"), both(none, ""));
    query(&mut node, "SET autocommit = 0");
    assert_eq!(query(&mut node, "INSERT INTO d.t VALUES (4)"), state("I___W___"));
    assert_eq!(query(&mut node, "COMMIT"), state(none));
    query(&mut node, "SET autocommit = 1");
    assert_eq!(query(&mut node, "LOCK TABLES d.t WRITE"), state("_______L"));
    assert_eq!(query(&mut node, "UNLOCK TABLES"), state(none));
    assert_eq!(query(&mut node, "SET session_track_transaction_info = 'OFF'"), "");
    assert_eq!(query(&mut node, "START TRANSACTION"), "");
}

#[test]
fn the_end_of_rows_reports_the_transaction_to_clients_without_eof() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    // CLIENT_SESSION_TRACK and CLIENT_DEPRECATE_EOF.
    node.open_with(1, 0x200 | 1 << 23 | 1 << 24);
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)"]);
    node.execute(1, &["SET session_track_transaction_info = 'STATE'", "START TRANSACTION"]);
    node.begin(1, b"\x03SELECT * FROM d.t");
    node.run();
    let answer = node.answer(1).expect("an answer").escape_ascii().to_string();
    assert!(answer.ends_with(&state("T_R___S_")), "{answer}");
    assert_eq!(query(&mut node, "DO 1"), "");
}
