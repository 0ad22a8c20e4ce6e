//! SHOW PROCESSLIST and KILL across the nodes of a cluster.

use std::net::TcpStream;

use junctor_bench::mysql::Connection;
use rustix::process::Signal;

use super::client::{Client, Login};
use super::nodes::{Cluster, wait_until};

/// Nodes 4 and 5 have no links to each other.
const ROLES: [&str; 5] = ["data,sql", "data", "management", "sql", "sql"];

fn value(session: &mut Connection<TcpStream>, query: &str) -> String {
    session.query(query).expect("a result").rows[0][0].clone().unwrap_or_default()
}

fn error(session: &mut Connection<TcpStream>, statement: &str) -> String {
    format!("{:?}", session.query(statement).expect_err("it cannot succeed"))
}

/// Waits until a session of this id executes the statement.
fn await_statement(session: &mut Connection<TcpStream>, id: &str, statement: &str) {
    let query = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id} AND INFO = '{statement}'");
    wait_until(statement, || (value(session, &query) == "1").then_some(()));
}

#[test]
fn sessions_of_all_nodes_are_seen_and_killed_at_each() {
    let mut cluster = Cluster::new("processes", &ROLES, "");
    cluster.start_serving([1, 4]);
    cluster.await_address(5);
    let [mut one, mut four, mut five] = [1, 4, 5].map(|node| cluster.session(node));
    let ids = [&mut one, &mut four, &mut five].map(|session| value(session, "SELECT CONNECTION_ID()"));
    for session in [&mut one, &mut four, &mut five] {
        let result = session.query("SHOW PROCESSLIST").expect("rows");
        assert_eq!(result.rows[0].len(), 8, "MySQL's columns");
        let found: Vec<String> = result.rows.iter().map(|row| row[0].clone().expect("an id")).collect();
        assert!(found.is_sorted_by_key(|id| id.parse::<u64>().expect("a number")), "{found:?}");
        assert_eq!(ids.iter().filter(|id| found.contains(id)).count(), 3, "{found:?}");
        let full = value(session, "SELECT COUNT(*) FROM performance_schema.processlist WHERE USER = 'root'");
        assert_eq!(full, "3");
    }
    // Its statement, then its connection.
    let sleeping = std::thread::spawn(move || {
        let first = error(&mut five, "SELECT SLEEP(300)");
        (first, format!("{:?}", five.query("SELECT SLEEP(301)").expect_err("it is killed")), five)
    });
    await_statement(&mut four, &ids[2], "SELECT SLEEP(300)");
    four.query(&format!("KILL QUERY {}", ids[2])).expect("it is there");
    await_statement(&mut one, &ids[2], "SELECT SLEEP(301)");
    one.query(&format!("KILL {}", ids[2])).expect("it is there");
    let (first, second, mut five) = sleeping.join().expect("both end");
    assert!(first.contains("1317"), "{first}");
    assert!(second.contains("1317") || second.contains("2013") || second.contains("UnexpectedEof"), "{second}");
    assert!(five.query("SELECT 1").is_err(), "the connection has ended");
    // A session that has ended, one that never was, and nodes that have none or are not configured.
    for id in
        [ids[2].clone(), (5 << 24 | 0x00ff_ffff).to_string(), (3 << 24 | 1).to_string(), (99 << 24 | 1).to_string()]
    {
        for session in [&mut one, &mut four] {
            wait_until("the session is gone", || session.query(&format!("KILL {id}")).err());
            let error = error(session, &format!("KILL QUERY {id}"));
            assert!(error.contains("1094") && error.contains(&format!("Unknown thread id: {id}")), "{error}");
        }
    }
    // Others than one's own need rights.
    one.query("CREATE USER u IDENTIFIED WITH mysql_native_password BY 'p'").expect("an account");
    let stream = TcpStream::connect(cluster.address(4)).expect("the node listens");
    let login = Login { method: "mysql_native_password", ..Login::new("u", "p") };
    let mut user = Client::log_in(stream, login).1.expect("u may log in");
    let fault = user.query(&format!("KILL {}", ids[0])).expect_err("it belongs to root");
    assert_eq!((fault.errno, &*fault.sqlstate), (1095, "HY000"), "{fault:?}");
    let seen = user.query("SHOW PROCESSLIST").expect("rows");
    assert_eq!(seen.len(), 1, "{seen:?}");
    // A node that does not answer is left out, and KILL of a session there says so.
    let mut five = cluster.session(5);
    let id = value(&mut five, "SELECT CONNECTION_ID()");
    cluster.stop(5);
    let count = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id}");
    assert_eq!(value(&mut one, &count), "0");
    let error = format!("{:?}", one.query(&format!("KILL {id}")).expect_err("the node does not answer"));
    assert!(error.contains("1296") && error.contains("node 5"), "{error}");
    cluster.signal(5, Signal::CONT);
}
