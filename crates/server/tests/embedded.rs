//! Runs a node inside the test process, with sessions of both protocols over in-memory connections.

use junctor::client::{Options, block_on, params};
use junctor::{ConnectError, MemoryStream, Node, NodeBuilder, Protocol, StreamClosed};
use junctor_bench::mysql::{ClientError, Connection};

/// Settings of a small node with its own folder.
fn builder(name: &str) -> NodeBuilder {
    let folder = format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"));
    Node::builder().total_memory_bytes(64 << 20).cpu_count_max(2).max_connections(64).data_directory(&folder)
}

fn node(name: &str) -> Node {
    builder(name).start().expect("the node starts")
}

fn session(node: &Node) -> Connection<MemoryStream> {
    Connection::log_in_over(node.stream(Protocol::MySql).expect("there is room"), "").expect("root may log in")
}

#[test]
fn a_mysql_session_runs_statements_and_sees_what_the_typed_client_wrote() {
    let node = node("session");
    assert_eq!(node.address(), None);
    let mut session = session(&node);
    session.query("CREATE DATABASE shop").expect("it is new");
    session.query("CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(3000))").expect("it is new");
    block_on(async {
        let connection = node.connect(&Options::new("root").database("shop")).await?;
        for id in 0..300 {
            connection.execute("INSERT INTO item VALUES (?, REPEAT('x', ?))", params![id, id * 10]).await?;
        }
        Ok::<(), junctor::client::Error>(())
    })
    .expect("the rows are written");
    // The answer needs many buffers and exceeds the number of bytes that may be in transit.
    let rows = session.query("SELECT id, name FROM shop.item ORDER BY id").expect("it is a good statement").rows;
    let lengths: Vec<usize> = rows.iter().map(|row| row[1].as_ref().map_or(0, |name| name.len())).collect();
    assert_eq!(lengths, (0..300).map(|id| id * 10).collect::<Vec<_>>());
    let statement = session.prepare("SELECT id FROM shop.item WHERE id = ?").expect("it is a good statement");
    for id in 0..100 {
        assert_eq!(session.execute(statement, &[id]).expect("it is prepared").rows.len(), 1);
    }
    // The statement exceeds one read of the node.
    let text = format!("SELECT LENGTH('{}')", "y".repeat(300_000));
    let length = session.query_value(&text).expect("it is a good statement");
    assert_eq!(length.as_deref(), Some("300000"));
    assert_eq!(session.query("SELECT nothing").expect_err("there is no such column").errno(), 1054);
}

#[test]
fn connections_in_memory_count_among_those_that_there_may_be() {
    let node = builder("count").cpu_count_max(1).max_connections(3).start().expect("the node starts");
    let sessions: Vec<_> = (0..3).map(|_| session(&node)).collect();
    let refused = Connection::log_in_over(node.stream(Protocol::MySql).expect("the kernel has room"), "");
    assert_eq!(refused.err().as_ref().map(ClientError::errno), Some(1040));
    drop(sessions);
}

#[test]
fn a_stop_closes_open_sessions_and_refuses_new_ones() {
    let node = node("stop");
    let mut sessions: Vec<_> = (0..20).map(|_| session(&node)).collect();
    for session in &mut sessions {
        session.query("SELECT 1").expect("it is a good statement");
    }
    let mut stream = node.stream(Protocol::MySql).expect("there is room");
    assert!(stream.receive().is_some(), "the greeting");
    let connector = node.connector();
    assert!(node.stop(), "all came to rest");
    assert!(sessions[0].query("SELECT 1").is_err());
    assert_eq!((stream.receive(), stream.send(vec![1])), (None, Err(StreamClosed)));
    assert_eq!(connector.connect(Protocol::Native).err(), Some(ConnectError::Stopping));
    let refused = block_on(connector.open(&Options::new("root")));
    assert_eq!(refused.expect_err("the node is gone").errno(), 2003);
}

#[test]
fn a_bad_configuration_is_an_error_that_says_why() {
    let error = builder("bad").thread_config("recv={count=").start().err().expect("it does not parse");
    assert!(error.to_string().contains("ThreadConfig"), "{error}");
}
