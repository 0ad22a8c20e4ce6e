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
