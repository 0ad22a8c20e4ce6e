//! Data nodes that are stopped by SIGSTOP until the others have evicted them, and then go on. What their
//! clients have asked meanwhile waits in sockets, and is the first that they see.

use std::net::TcpStream;
use std::thread::JoinHandle;

use junctor_bench::mysql::Connection;
use rustix::process::Signal;

use super::nodes::{Cluster, Row, wait_until};
use super::rejoin::retry;

const ROLES: [&str; 3] = ["data,sql", "data,sql", "management,sql"];
/// Reading sessions of each kind at the stopped node.
const READERS: usize = 8;
const WRITERS: i64 = 8;

type Session = Connection<TcpStream>;
/// A statement whose answer has not come.
type Pending = JoinHandle<Result<Option<String>, String>>;

/// Sends a statement from a thread of its own.
fn send(mut session: Session, statement: String) -> Pending {
    std::thread::spawn(move || {
        let result = session.query(&statement).map_err(|error| format!("{error:?}"))?;
        Ok(result.rows.first().and_then(|row| row[0].clone()))
    })
}

fn number(session: &mut Session, query: &str) -> i64 {
    let result = session.query(query).expect("a result");
    result.rows[0][0].as_ref().expect("a value").parse().expect("a number")
}

fn is_whole(rows: &[Row]) -> bool {
    rows[..2].iter().all(|row| row.state == "SERVING" && row.is_durable)
}

/// Makes a data node the leader, and returns it.
fn move_leader(cluster: &mut Cluster) -> u8 {
    cluster.kill(3);
    let rows = cluster.await_rows(1, "a data node leads", |rows| rows[..2].iter().any(|row| row.is_leader));
    cluster.start(3);
    cluster.await_address(3);
    if rows[0].is_leader { 1 } else { 2 }
}

/// Stops a data node, lets the other one commit, and lets it go on. Returns how often its clients have read
/// an old value; a write that it acknowledged must be there.
fn pause(cluster: &mut Cluster, paused: u8, value: i64) -> usize {
    let (other, index) = (3 - paused, usize::from(paused) - 1);
    let mut session = cluster.session(other);
    let before: Vec<i64> =
        (0..WRITERS).map(|row| number(&mut session, &format!("SELECT n FROM d.counts WHERE a = {row}"))).collect();
    let mut sessions: Vec<Session> = (0..2 * READERS + WRITERS as usize).map(|_| cluster.session(paused)).collect();
    for session in &mut sessions {
        assert_eq!(number(session, "SELECT v FROM d.t WHERE a = 1"), value - 1);
    }
    cluster.stop(paused);
    let mut sessions = sessions.into_iter();
    let mut send_next = |statement: String| send(sessions.next().expect("a session"), statement);
    let mut reads: Vec<Pending> = Vec::new();
    for _ in 0..READERS {
        reads.push(send_next("SELECT v FROM d.t WHERE a = 1".to_owned()));
        reads.push(send_next("SELECT v FROM d.t WHERE a = 1 FOR UPDATE".to_owned()));
    }
    let writes: Vec<Pending> =
        (0..WRITERS).map(|row| send_next(format!("UPDATE d.counts SET n = n + 1 WHERE a = {row}"))).collect();
    cluster.await_rows(other, "it is evicted", |rows| rows[index].state != "SERVING");
    retry(&mut session, &format!("UPDATE d.t SET v = {value} WHERE a = 1"));
    cluster.signal(paused, Signal::CONT);
    let read = |pending: Pending| pending.join().expect("a client");
    let stale = reads.into_iter().map(read).filter(|it| matches!(it, Ok(found) if *found != Some(value.to_string())));
    let stale = stale.count();
    let written: Vec<bool> = writes.into_iter().map(|pending| read(pending).is_ok()).collect();
    assert_eq!(cluster.await_end(paused).code(), Some(3), "an evicted node ends");
    cluster.start(paused);
    cluster.await_address(paused);
    cluster.await_rows(other, "it returns", is_whole);
    for node in [paused, other] {
        let mut session = cluster.session(node);
        assert_eq!(number(&mut session, "SELECT v FROM d.t WHERE a = 1"), value);
        for (row, before) in before.iter().enumerate() {
            let found = number(&mut session, &format!("SELECT n FROM d.counts WHERE a = {row}"));
            let least = before + i64::from(written[row]);
            assert!((least..=before + 1).contains(&found), "row {row}: {found}, acknowledged {least}");
        }
    }
    stale
}

/// A node that was evicted while it was stopped answers nothing old: not as a primary, and not as the node
/// with the sequencer or as the leader.
#[test]
fn a_node_that_goes_on_after_its_eviction_serves_nothing_stale() {
    let mut cluster = Cluster::formed("pause", &ROLES, "node_silence_max_ms = 500");
    let mut session = cluster.session(3);
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY, v INT)",
        "CREATE TABLE d.counts (a INT PRIMARY KEY, n INT)",
        "INSERT INTO d.t VALUES (1, 0)",
    ] {
        session.query(statement).expect(statement);
    }
    for row in 0..WRITERS {
        session.query(&format!("INSERT INTO d.counts VALUES ({row}, 0)")).expect("a row");
    }
    let mut stale = Vec::new();
    for (value, kind) in (1..).zip(["sequencer", "other", "leader"]) {
        cluster.await_rows(1, "all serve", is_whole);
        let query = "SELECT node_id FROM junctor_info.nodes WHERE is_sequencer = 1";
        let sequencer = number(&mut cluster.session(1), query) as u8;
        let paused = match kind {
            "sequencer" => sequencer,
            "other" => 3 - sequencer,
            _ => move_leader(&mut cluster),
        };
        let count = pause(&mut cluster, paused, value);
        println!("{kind}: {count} stale answers");
        if count > 0 {
            stale.push((kind, count));
        }
    }
    assert_eq!(stale, [], "stale answers of the node that was stopped");
}

/// A data node that does not hear a majority of the voters cannot know whether it is still a member. It tells
/// so after a while, and goes on when it hears them again.
#[test]
fn a_node_without_a_majority_refuses_statements_about_tables() {
    let mut cluster = Cluster::formed("minority", &ROLES, "node_silence_max_ms = 60000");
    let mut session = cluster.session(1);
    session.query("CREATE DATABASE d").expect("a database");
    session.query("CREATE TABLE d.t (a INT PRIMARY KEY, v INT)").expect("a table");
    session.query("INSERT INTO d.t VALUES (1, 1)").expect("a row");
    for node in 2..=3 {
        cluster.stop(node);
    }
    for statement in ["SELECT v FROM d.t WHERE a = 1", "UPDATE d.t SET v = 2 WHERE a = 1"] {
        // The last lease may go on for some milliseconds.
        let error = wait_until(&format!("{statement} fails"), || session.query(statement).err());
        let error = format!("{error:?}");
        assert!(error.contains("1296") && error.contains("majority"), "{statement}: {error}");
    }
    assert_eq!(number(&mut session, "SELECT COUNT(*) FROM junctor_info.nodes"), 3, "the node shows what it knows");
    for node in 2..=3 {
        cluster.signal(node, Signal::CONT);
    }
    retry(&mut session, "SELECT v FROM d.t WHERE a = 1");
    assert_eq!(number(&mut session, "SELECT v FROM d.t WHERE a = 1"), 1);
}

#[test]
fn a_commit_without_a_majority_gets_an_error_and_ends_later() {
    let mut cluster = Cluster::formed("commit", &ROLES, "node_silence_max_ms = 60000");
    let mut session = cluster.session(1);
    session.query("CREATE DATABASE d").expect("a database");
    session.query("CREATE TABLE d.t (a INT PRIMARY KEY, v INT)").expect("a table");
    session.query("INSERT INTO d.t VALUES (1, 1), (2, 1), (3, 1)").expect("rows");
    let mut sessions: Vec<Session> = (1..=3).map(|_| cluster.session(1)).collect();
    for (row, session) in (1..).zip(&mut sessions) {
        session.query("BEGIN").expect("a transaction");
        session.query(&format!("UPDATE d.t SET v = 2 WHERE a = {row}")).expect("a row");
    }
    for node in 2..=3 {
        cluster.stop(node);
    }
    let ends = ["COMMIT", "COMMIT", "ROLLBACK"];
    let ends: Vec<Pending> = sessions.into_iter().zip(ends).map(|(session, end)| send(session, end.into())).collect();
    for (index, end) in ends.into_iter().enumerate() {
        match end.join().expect("a client") {
            Err(error) => assert!(index < 2 && error.contains("1180") && error.contains("majority"), "{error}"),
            Ok(_) => assert_eq!(index, 2, "nobody has confirmed the commit"),
        }
    }
    for node in 2..=3 {
        cluster.signal(node, Signal::CONT);
    }
    // The transactions have ended, and the locks are free.
    retry(&mut session, "UPDATE d.t SET v = v + 10 WHERE a = 3");
    assert_eq!(number(&mut session, "SELECT v FROM d.t WHERE a = 3"), 11);
    for row in 1..=2 {
        retry(&mut session, &format!("UPDATE d.t SET v = v + 10 WHERE a = {row}"));
        let value = number(&mut session, &format!("SELECT v FROM d.t WHERE a = {row}"));
        assert!(value == 11 || value == 12, "it is whole: {value}");
    }
}
