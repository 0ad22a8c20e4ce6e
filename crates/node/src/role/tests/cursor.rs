//! Cursors of prepared statements.

use super::*;

/// SERVER_STATUS_CURSOR_EXISTS, and then SERVER_STATUS_LAST_ROW_SENT.
const EXISTS: u16 = 0x40;
const LAST: u16 = 0x80;

impl Node {
    fn command(&mut self, command: &[u8]) -> Vec<Vec<u8>> {
        self.begin(1, command);
        self.run();
        let answer = self.answer(1).unwrap_or_default();
        let (mut rest, mut packets) = (answer.as_slice(), Vec::new());
        while let Some((header, after)) = rest.split_first_chunk::<4>() {
            let (payload, after) = after.split_at(usize::from(header[0]) | usize::from(header[1]) << 8);
            packets.push(payload.to_vec());
            rest = after;
        }
        packets
    }

    fn prepare(&mut self, text: &str) {
        let answer = self.command(&[&[0x16], text.as_bytes()].concat());
        assert_eq!(answer[0][0], 0, "{text}");
    }

    /// The number of packets before the end, and the status flags of the end.
    fn execute_with_cursor(&mut self, statement: u8) -> (usize, u16) {
        end_of(&self.command(&[0x17, statement, 0, 0, 0, 1, 1, 0, 0, 0]))
    }

    fn fetch(&mut self, statement: u8, rows: u8) -> (usize, u16) {
        end_of(&self.command(&[0x1c, statement, 0, 0, 0, rows, 0, 0, 0]))
    }
}

/// The number of packets before the end. An error is its number instead of flags.
fn end_of(packets: &[Vec<u8>]) -> (usize, u16) {
    let last = packets.last().expect("an answer");
    let number = |at: usize| u16::from(last[at]) | u16::from(last[at + 1]) << 8;
    match last[0] {
        0xff => (packets.len() - 1, number(1)),
        0xfe => (packets.len() - 1, number(3) & (EXISTS | LAST)),
        other => panic!("no end: {other}"),
    }
}

#[test]
fn a_cursor_returns_its_rows_on_demand() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    node.open(1, false);
    node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)"]);
    node.execute(1, &["INSERT INTO d.t VALUES (1), (2), (3), (4), (5)"]);
    node.prepare("SELECT id FROM d.t ORDER BY id");
    node.prepare("SELECT 1 + 1");
    assert_eq!(node.execute_with_cursor(1), (2, EXISTS), "a count and a definition, no row");
    assert_eq!(node.execute_with_cursor(2), (2, EXISTS));
    // The cursor has the rows of its opening, whatever happens to the table.
    node.execute(1, &["DELETE FROM d.t WHERE id > 2"]);
    assert_eq!(node.fetch(1, 2), (2, EXISTS));
    assert_eq!(node.fetch(2, 1), (1, EXISTS));
    assert_eq!(node.fetch(1, 3), (3, EXISTS), "the end is known only to a fetch beyond it");
    assert_eq!(node.fetch(1, 1), (0, LAST));
    assert_eq!(node.fetch(1, 1), (0, 1421));
    assert_eq!(node.fetch(2, 9), (0, LAST));
    assert_eq!(node.fetch(9, 1), (0, 1243));
    // Another execution replaces the cursor, and COM_STMT_RESET closes it.
    assert_eq!(node.execute_with_cursor(1), (2, EXISTS));
    assert_eq!(node.execute_with_cursor(1), (2, EXISTS));
    assert_eq!(node.fetch(1, 9), (2, LAST));
    assert_eq!(node.execute_with_cursor(1), (2, EXISTS));
    node.command(&[0x1a, 1, 0, 0, 0]);
    assert_eq!(node.fetch(1, 1), (0, 1421));
    // Without a cursor all rows come at once.
    assert_eq!(end_of(&node.command(&[0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0])), (5, 0));
    node.execute(1, &["DROP TABLE d.t"]);
    assert_eq!(node.execute_with_cursor(1), (0, 1146));
    assert_eq!(node.query(1, "SELECT 1"), ["1"]);
}
