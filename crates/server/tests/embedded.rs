//! Runs a node inside the test process, with sessions of both protocols over in-memory connections.

use junctor::client::{Options, block_on, params};
use junctor::{ConnectError, MemoryStream, Node, NodeBuilder, Protocol, StreamClosed};
use junctor_bench::mysql::{ClientError, Connection};

/// A builder for a small node in memory.
fn builder() -> NodeBuilder {
    Node::builder().total_memory_bytes(64 << 20).cpu_count_max(2).max_connections(64)
}

fn node() -> Node {
    builder().start().expect("the node starts")
}

fn session(node: &Node) -> Connection<MemoryStream> {
    Connection::log_in_over(node.stream(Protocol::MySql).expect("there is room"), "").expect("root may log in")
}

#[test]
fn a_mysql_session_runs_statements_and_sees_what_the_typed_client_wrote() {
    let node = node();
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
    // The answer needs many buffers, and exceeds the number of bytes that may be in transit.
    let rows = session.query("SELECT id, name FROM shop.item ORDER BY id").expect("it is a good statement").rows;
    let lengths: Vec<usize> = rows.iter().map(|row| row[1].as_ref().map_or(0, |name| name.len())).collect();
    assert_eq!(lengths, (0..300).map(|id| id * 10).collect::<Vec<_>>());
    let statement = session.prepare("SELECT id FROM shop.item WHERE id = ?").expect("it is a good statement");
    for id in 0..100 {
        assert_eq!(session.execute(statement, &[id]).expect("it is prepared").rows.len(), 1);
    }
    // The statement is longer than one read of the node.
    let text = format!("SELECT LENGTH('{}')", "y".repeat(300_000));
    let length = session.query_value(&text).expect("it is a good statement");
    assert_eq!(length.as_deref(), Some("300000"));
    assert_eq!(session.query("SELECT nothing").expect_err("there is no such column").errno(), 1054);
}

#[test]
fn in_memory_connections_count_towards_the_maximum() {
    let node = builder().cpu_count_max(1).max_connections(3).start().expect("the node starts");
    let sessions: Vec<_> = (0..3).map(|_| session(&node)).collect();
    let refused = Connection::log_in_over(node.stream(Protocol::MySql).expect("the kernel has room"), "");
    assert_eq!(refused.err().as_ref().map(ClientError::errno), Some(1040));
    drop(sessions);
}

#[test]
fn a_stop_closes_open_sessions_and_refuses_new_ones() {
    let node = node();
    let mut sessions: Vec<_> = (0..20).map(|_| session(&node)).collect();
    for session in &mut sessions {
        session.query("SELECT 1").expect("it is a good statement");
    }
    let mut stream = node.stream(Protocol::MySql).expect("there is room");
    assert!(stream.receive().is_some(), "the greeting");
    let connector = node.connector();
    assert!(node.stop(), "the node stops cleanly");
    assert!(sessions[0].query("SELECT 1").is_err());
    assert_eq!((stream.receive(), stream.send(vec![1])), (None, Err(StreamClosed)));
    assert_eq!(connector.connect(Protocol::Native).err(), Some(ConnectError::Stopping));
    let refused = block_on(connector.open(&Options::new("root")));
    assert_eq!(refused.expect_err("the node is gone").errno(), 2003);
}

#[test]
fn a_bad_configuration_is_an_error_that_says_why() {
    let error = builder().thread_config("recv={count=").start().err().expect("it does not parse");
    assert!(error.to_string().contains("ThreadConfig"), "{error}");
}

/// The first value of the result, as text.
fn value_of(session: &mut Connection<MemoryStream>, text: &str) -> String {
    session.query_value(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).unwrap_or_else(|| "NULL".into())
}

#[test]
fn row_counts_of_tables_are_those_at_the_time_of_each_execution() {
    let node = node();
    let mut session = session(&node);
    for text in [
        "CREATE DATABASE shop",
        "USE shop",
        "CREATE TABLE item (id INT PRIMARY KEY, code INT UNIQUE, name VARCHAR(30))",
        "CREATE TABLE part (id INT PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 3",
        "CREATE TABLE counted (name VARCHAR(64), n BIGINT)",
    ] {
        session.query(text).expect("it is a good statement");
    }
    let rows = "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_NAME = 'item'";
    let statement = session.prepare(rows).expect("it is a good statement");
    for count in 1..=20 {
        session.query(&format!("INSERT INTO item VALUES ({count}, -{count}, 'a name')")).expect("it is new");
        session.query(&format!("INSERT INTO part VALUES ({count})")).expect("it is new");
        let found = session.execute(statement, &[]).expect("it is prepared").rows;
        assert_eq!(found, [[Some(count.to_string())]]);
        assert_eq!(value_of(&mut session, rows), count.to_string());
    }
    let bytes = "SELECT DATA_LENGTH > 0 AND INDEX_LENGTH > 0 AND AVG_ROW_LENGTH = DATA_LENGTH DIV TABLE_ROWS \
                 FROM information_schema.TABLES WHERE TABLE_NAME = 'item'";
    assert_eq!(value_of(&mut session, bytes), "1");
    let sums = "SELECT COUNT(*) * 1000 + SUM(TABLE_ROWS) FROM information_schema.PARTITIONS WHERE TABLE_NAME = 'part'";
    assert_eq!(value_of(&mut session, sums), "3020");
    let distinct = "SELECT SUM(CARDINALITY) FROM information_schema.STATISTICS WHERE TABLE_NAME = 'item'";
    assert_eq!(value_of(&mut session, distinct), "40");
    let status = session.query("SHOW TABLE STATUS WHERE `Rows` = 20").expect("it is a good statement").rows;
    assert_eq!(status.len(), 2);
    let index = session.query("SHOW INDEX FROM item WHERE Cardinality = 20").expect("it is a good statement").rows;
    assert_eq!(index.len(), 2);
    // The counts are also right as the source of an INSERT inside a transaction, and after a lock call.
    session.query("BEGIN").expect("it is a good statement");
    session
        .query("INSERT INTO counted SELECT TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_ROWS > 0")
        .expect("it is a good statement");
    session.query("COMMIT").expect("it is a good statement");
    assert_eq!(value_of(&mut session, "SELECT COUNT(*) * 1000 + SUM(n) FROM counted"), "2040");
    let locked = "SELECT GET_LOCK('figures', 0) * 1000 + TABLE_ROWS FROM information_schema.TABLES \
                  WHERE TABLE_NAME = 'item'";
    assert_eq!(value_of(&mut session, locked), "1020");
    session.query("DELETE FROM item WHERE id > 5").expect("it is a good statement");
    assert_eq!(value_of(&mut session, rows), "5");
}

#[test]
fn a_node_with_a_data_directory_keeps_its_data() {
    let folder = format!("{}/kept", env!("CARGO_TARGET_TMPDIR"));
    let _ = std::fs::remove_dir_all(&folder);
    for expected in ["1", "2"] {
        let node = builder().data_directory(&folder).start().expect("the node starts");
        let mut session = session(&node);
        for statement in ["CREATE DATABASE IF NOT EXISTS d", "CREATE TABLE IF NOT EXISTS d.t (id INT PRIMARY KEY)"] {
            session.query(statement).expect(statement);
        }
        session.query(&format!("INSERT INTO d.t VALUES ({expected})")).expect("the row is new");
        let count = session.query_value("SELECT COUNT(*) FROM d.t").expect("a number");
        assert_eq!(count.as_deref(), Some(expected));
        let computed = "CREATE TABLE IF NOT EXISTS d.computed (id INT PRIMARY KEY, a INT DEFAULT (id * 10), b INT AS \
                        (a + 1) UNIQUE, CHECK (b < 30), CHECK (b > 99) NOT ENFORCED)";
        session.query(computed).expect(computed);
        session.query(&format!("INSERT INTO d.computed (id) VALUES ({expected})")).expect("the row is new");
        session.query("INSERT INTO d.computed (id) VALUES (3)").expect_err("it violates the first CHECK");
        let sum = session.query_value("SELECT SUM(b) FROM d.computed WHERE b > 0").expect("a number");
        assert_eq!(sum.as_deref(), Some(if expected == "1" { "11" } else { "32" }));
        drop(session);
        assert!(node.stop());
    }
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}
