//! User-level locks of a cluster: they have one owner, and do not outlive their sessions.

use std::net::TcpStream;
use std::thread::{self, JoinHandle};

use junctor_bench::mysql::Connection;

use super::nodes::{Cluster, wait_until};
use super::tables::sequencer;

type Session = Connection<TcpStream>;

fn value(session: &mut Session, query: &str) -> Option<String> {
    session.query(query).expect(query).rows[0][0].clone()
}

/// Begins to wait for a lock. The result is the session with the value or the error of GET_LOCK.
fn wait_for(mut session: Session, query: &'static str) -> JoinHandle<(Session, Result<Option<String>, String>)> {
    thread::spawn(move || {
        let result = session.query(query).map(|result| result.rows[0][0].clone());
        (session, result.map_err(|error| format!("{error:?}")))
    })
}

fn await_waiter(owner: &mut Session) {
    let query = "SELECT COUNT(*) FROM junctor_info.user_locks WHERE state = 'WAITING'";
    wait_until("a session waits", || (value(owner, query).as_deref() == Some("1")).then_some(()));
}

#[test]
fn sessions_of_all_nodes_exclude_each_other_until_their_nodes_end() {
    let mut cluster = Cluster::new("user-locks", &["data,sql", "data,sql", "management", "sql"], "");
    cluster.start_serving([2, 4]);
    cluster.await_address(1);
    let owner = sequencer(&cluster);
    let other = 3 - owner;
    let mut watcher = cluster.session(owner);
    let mut holder = cluster.session(4);
    let id = value(&mut holder, "SELECT CONNECTION_ID()");
    assert_eq!(value(&mut holder, "SELECT GET_LOCK('a', 0) + GET_LOCK('A', 0)").as_deref(), Some("2"));
    for node in [1, 2, 4] {
        let mut session = cluster.session(node);
        assert_eq!(value(&mut session, "SELECT GET_LOCK('a', 0)").as_deref(), Some("0"), "node {node}");
        assert_eq!(value(&mut session, "SELECT RELEASE_LOCK('a')").as_deref(), Some("0"), "node {node}");
        assert_eq!(value(&mut session, "SELECT IS_FREE_LOCK('a')").as_deref(), Some("0"), "node {node}");
        assert_eq!(value(&mut session, "SELECT IS_USED_LOCK('a')"), id, "node {node}");
        assert_eq!(value(&mut session, "SELECT SLEEP(0.001)").as_deref(), Some("0"), "node {node}");
    }
    let mut killed = cluster.session(other);
    let number = value(&mut killed, "SELECT CONNECTION_ID()").expect("a number");
    let waiting = wait_for(killed, "SELECT GET_LOCK('a', 600)");
    await_waiter(&mut watcher);
    cluster.session(other).query(&format!("KILL QUERY {number}")).expect("the session is there");
    let (_, error) = waiting.join().expect("an answer");
    assert!(error.as_ref().is_err_and(|error| error.contains("1317")), "{error:?}");
    // A session ends.
    let waiting = wait_for(cluster.session(other), "SELECT GET_LOCK('a', 600)");
    await_waiter(&mut watcher);
    drop(holder);
    let (next, got) = waiting.join().expect("an answer");
    assert_eq!(got, Ok(Some("1".to_owned())));
    drop(next);
    // A node ends.
    let mut lost = cluster.session(4);
    assert_eq!(value(&mut lost, "SELECT GET_LOCK('b', 0)").as_deref(), Some("1"));
    let waiting = wait_for(cluster.session(other), "SELECT GET_LOCK('b', 600)");
    await_waiter(&mut watcher);
    cluster.kill(4);
    let (mut holder, got) = waiting.join().expect("an answer");
    assert_eq!(got, Ok(Some("1".to_owned())));
    // The owner of the locks ends.
    cluster.start(4);
    cluster.await_address(4);
    let waiting = wait_for(cluster.session(4), "SELECT GET_LOCK('b', 600)");
    await_waiter(&mut watcher);
    cluster.kill(owner);
    let (_, error) = waiting.join().expect("an answer");
    assert!(error.as_ref().is_err_and(|error| error.contains("1296")), "{error:?}");
    wait_until("the session of the holder ends", || holder.query("SELECT 1").is_err().then_some(()));
    let got = wait_until("the next owner", || cluster.session(4).query("SELECT GET_LOCK('b', 0)").ok());
    assert_eq!(got.rows[0][0].as_deref(), Some("1"));
}
