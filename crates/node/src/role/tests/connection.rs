//! Connections with sockets: parts of answers, clients that do not read, logins.

use super::*;

/// A socket of a client that has not logged in.
fn open_socket(node: &mut Node) -> SocketId {
    node.has_sockets = true;
    let socket = SocketId::new(0, 1, 0);
    node.receive(WorldEvent::SocketOpened { socket, peer: PeerAddress::Memory, listener: 0 });
    socket
}

fn log_in(node: &mut Node, socket: SocketId) {
    // CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION and CLIENT_TRANSACTIONS; user root, no password.
    let mut login = vec![0, 0, 0, 1, 0, 0xa2, 0, 0, 0, 0, 0, 1, 45];
    login.extend_from_slice(&[0; 23]);
    login.extend_from_slice(b"root\0\0");
    login[0] = login.len() as u8 - 4;
    node.receive(WorldEvent::Received { socket, bytes: login });
}

#[test]
fn a_long_answer_goes_out_in_one_part_a_turn_and_stops_when_its_socket_is_full() {
    let mut node = Node::new(ONE_THREAD, NodeConfig::default());
    node.open(9, false);
    node.execute(9, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, p VARCHAR(1000))"]);
    for batch in 0..40 {
        let rows: Vec<String> = (0..100).map(|row| format!("({}, REPEAT('x', 1000))", batch * 100 + row)).collect();
        node.execute(9, &[&format!("INSERT INTO d.t VALUES {}", rows.join(","))]);
    }
    let socket = open_socket(&mut node);
    log_in(&mut node, socket);
    let query = b"\x11\0\0\0\x03SELECT * FROM d.t";
    let query = [&[query.len() as u8 - 4], &query[1..]].concat();
    let before = node.sent_bytes;
    node.receive(WorldEvent::Received { socket, bytes: query });
    let mut parts = vec![node.sent_bytes - before];
    for turn in 0..60 {
        let before = node.sent_bytes;
        if turn == 3 {
            node.receive(WorldEvent::SendBlocked { socket });
        }
        if turn == 6 {
            assert_eq!(parts[4..], [0, 0, 0], "nothing is asked for while the socket is full");
            node.receive(WorldEvent::SendDrained { socket });
        }
        node.before_publish();
        node.run();
        parts.push(node.sent_bytes - before);
    }
    assert!(parts.iter().all(|part| *part < 400_000), "{parts:?}");
    assert!(parts.iter().sum::<usize>() > 4_000_000 && parts.last() == Some(&0), "{parts:?}");
}

#[test]
fn no_further_command_begins_while_a_client_does_not_read() {
    let mut node = Node::new(ONE_THREAD, NodeConfig::default());
    let socket = open_socket(&mut node);
    log_in(&mut node, socket);
    node.run();
    let ping = || WorldEvent::Received { socket, bytes: vec![1, 0, 0, 0, 14] };
    let before = node.sent_bytes;
    node.receive(ping());
    node.run();
    let answer = node.sent_bytes - before;
    assert!(answer > 0);
    node.receive(WorldEvent::SendBlocked { socket });
    let before = node.sent_bytes;
    for _ in 0..3 {
        node.receive(ping());
        node.before_publish();
        node.run();
    }
    assert_eq!(node.sent_bytes, before, "nothing is begun while the socket is full");
    node.receive(WorldEvent::SendDrained { socket });
    node.run();
    assert_eq!(node.sent_bytes - before, 3 * answer);
}

#[test]
fn a_command_that_comes_byte_by_byte_may_pause_for_net_read_timeout() {
    // SELECT 1; its header alone; a packet of 16 MiB - 1 without its continuation.
    let full = [&[0xff, 0xff, 0xff, 0][..], &[3], &vec![b' '; (1 << 24) - 2]].concat();
    for (part, is_closed) in [(&[9, 0, 0, 0, 3, b'S'][..], 1), (&[9][..], 1), (&full[..], 1), (&[][..], 0)] {
        let mut node = Node::new(ONE_THREAD, NodeConfig::default());
        let socket = open_socket(&mut node);
        log_in(&mut node, socket);
        node.run();
        if !part.is_empty() {
            node.receive(WorldEvent::Received { socket, bytes: part.to_vec() });
        }
        node.advance_seconds(29);
        assert_eq!(node.closed_sockets, 0);
        node.advance_seconds(2);
        assert_eq!(node.closed_sockets, is_closed, "after {} bytes", part.len());
    }
}

#[test]
fn a_login_that_takes_too_long_is_closed() {
    let mut node = Node::new(ONE_THREAD, NodeConfig::default());
    open_socket(&mut node);
    for (seconds, closed) in [(9, 0), (1, 1)] {
        node.delivery.now = Time(node.delivery.now.0 + seconds * 1_000_000_000);
        node.receive(WorldEvent::Timer { token: 0 });
        assert_eq!(node.closed_sockets, closed);
    }
}
