//! GET_LOCK and LOCK TABLES between the sessions of different nodes.

use super::nodes::{Cluster, Row, wait_until};

const ROLES: [&str; 5] = ["data,sql", "data,sql", "management", "sql", "sql"];

fn is_whole(rows: &[Row]) -> bool {
    rows[..2].iter().all(|row| row.state == "SERVING" && row.is_durable)
}

fn formed(name: &str) -> Cluster {
    let mut cluster = Cluster::new(name, &ROLES, "");
    cluster.start_serving([4, 5]);
    cluster.await_rows(4, "the cluster is whole", is_whole);
    [1, 2].into_iter().for_each(|node| cluster.await_address(node));
    cluster
}

/// The one value of an answer.
macro_rules! value {
    ($session:expr, $query:expr) => {
        $session.query($query).unwrap_or_else(|error| panic!("{}: {error:?}", $query)).rows[0][0].as_deref()
    };
}

fn sequencer(cluster: &mut Cluster) -> u8 {
    let query = "SELECT node_id FROM junctor_info.nodes WHERE is_sequencer = 1";
    let mut session = cluster.session(4);
    value!(session, query).and_then(|id| id.parse().ok()).expect("a node")
}

#[test]
fn a_user_lock_has_one_holder_in_the_cluster() {
    let mut cluster = formed("locks");
    let [mut one, mut two, mut four, mut five] = [1, 2, 4, 5].map(|node| cluster.session(node));
    assert_eq!(value!(four, "SELECT GET_LOCK('a', 0)"), Some("1"));
    assert_eq!(value!(four, "SELECT GET_LOCK('a', 0)"), Some("1"));
    let holder = value!(four, "SELECT CONNECTION_ID()").map(str::to_owned);
    for session in [&mut one, &mut two, &mut five] {
        assert_eq!(value!(session, "SELECT GET_LOCK('A', 0)"), Some("0"));
        assert_eq!(value!(session, "SELECT IS_FREE_LOCK('a')"), Some("0"));
        assert_eq!(value!(session, "SELECT IS_USED_LOCK('a')").map(str::to_owned), holder);
        assert_eq!(value!(session, "SELECT RELEASE_LOCK('a')"), Some("0"));
        assert_eq!(value!(session, "SELECT RELEASE_LOCK('b')"), None);
    }
    // It is released as often as it was taken, then the next one has it.
    let waiting = std::thread::spawn(move || {
        assert_eq!(value!(one, "SELECT GET_LOCK('a', 100)"), Some("1"));
        one
    });
    wait_until("node 1 waits", || {
        let waits = "SELECT COUNT(*) FROM junctor_info.user_locks WHERE state = 'WAITING'";
        (value!(cluster.session(1), waits) == Some("1")).then_some(())
    });
    assert_eq!(value!(four, "SELECT RELEASE_LOCK('a')"), Some("1"));
    assert_eq!(value!(five, "SELECT IS_USED_LOCK('a')").map(str::to_owned), holder);
    assert_eq!(value!(four, "SELECT RELEASE_LOCK('a')"), Some("1"));
    let mut one = waiting.join().expect("it gets the lock");
    // Two sessions of different nodes would wait for each other.
    assert_eq!(value!(two, "SELECT GET_LOCK('b', 0)"), Some("1"));
    let waiting = std::thread::spawn(move || {
        assert_eq!(value!(two, "SELECT GET_LOCK('a', 100)"), Some("1"));
        two
    });
    wait_until("node 2 waits", || {
        let waits = "SELECT COUNT(*) FROM junctor_info.user_locks WHERE state = 'WAITING'";
        (value!(cluster.session(2), waits) == Some("1")).then_some(())
    });
    let error = one.query("SELECT GET_LOCK('b', 100)").expect_err("a deadlock");
    assert!(format!("{error:?}").contains("3058"), "{error:?}");
    assert_eq!(value!(one, "SELECT RELEASE_ALL_LOCKS()"), Some("1"));
    drop(waiting.join().expect("it gets the lock"));
    // The end of a session, and that of a node, free its locks.
    wait_until("both locks are free", || {
        (value!(five, "SELECT IS_FREE_LOCK('a') + IS_FREE_LOCK('b')") == Some("2")).then_some(())
    });
    assert_eq!(value!(four, "SELECT GET_LOCK('c', 0)"), Some("1"));
    cluster.kill(4);
    assert_eq!(value!(five, "SELECT GET_LOCK('c', 100)"), Some("1"));
}

#[test]
fn user_locks_survive_the_node_that_keeps_them() {
    let mut cluster = formed("locks-kept");
    let [mut four, mut five] = [4, 5].map(|node| cluster.session(node));
    for lock in ["SELECT GET_LOCK('a', 0)", "SELECT GET_LOCK('a', 0)", "SELECT GET_LOCK('b', 0)"] {
        assert_eq!(value!(four, lock), Some("1"));
    }
    for _ in 0..2 {
        let lost = sequencer(&mut cluster);
        let mut waits = cluster.session(5);
        let waiting = std::thread::spawn(move || {
            assert_eq!(value!(waits, "SELECT GET_LOCK('b', 100)"), Some("1"));
            assert_eq!(value!(waits, "SELECT RELEASE_LOCK('b')"), Some("1"));
        });
        wait_until("it waits", || {
            let waits = "SELECT COUNT(*) FROM junctor_info.user_locks WHERE state = 'WAITING'";
            (value!(cluster.session(5), waits) == Some("1")).then_some(())
        });
        cluster.kill(lost);
        assert_eq!(value!(five, "SELECT GET_LOCK('a', 0)"), Some("0"), "it is still held");
        assert_eq!(value!(four, "SELECT RELEASE_LOCK('b')"), Some("1"));
        waiting.join().expect("it gets the lock");
        cluster.start(lost);
        cluster.await_rows(4, "the node is back", is_whole);
        assert_eq!(value!(five, "SELECT GET_LOCK('a', 0)"), Some("0"), "it is still held");
        assert_eq!(value!(four, "SELECT GET_LOCK('b', 0)"), Some("1"));
    }
    for free in ["0", "1"] {
        assert_eq!(value!(four, "SELECT RELEASE_LOCK('a')"), Some("1"));
        assert_eq!(value!(five, "SELECT IS_FREE_LOCK('a')"), Some(free));
    }
}

#[test]
fn locked_tables_are_locked_on_all_nodes() {
    let mut cluster = formed("lock-tables");
    let [mut one, mut four, mut five] = [1, 4, 5].map(|node| cluster.session(node));
    for statement in ["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"] {
        one.query(statement).expect(statement);
    }
    for session in [&mut one, &mut five] {
        session.query("SET lock_wait_timeout = 1").expect("a variable");
    }
    four.query("LOCK TABLES d.t READ").expect("a lock");
    for session in [&mut one, &mut five] {
        assert_eq!(value!(session, "SELECT COUNT(*) FROM d.t"), Some("1"));
        let error = session.query("INSERT INTO d.t VALUES (2)").expect_err("it is locked");
        assert!(format!("{error:?}").contains("1205"), "{error:?}");
    }
    four.query("LOCK TABLES d.t WRITE").expect("a lock");
    four.query("INSERT INTO d.t VALUES (2)").expect("its own lock");
    for session in [&mut one, &mut five] {
        let error = session.query("SELECT COUNT(*) FROM d.t").expect_err("it is locked");
        assert!(format!("{error:?}").contains("1205"), "{error:?}");
    }
    // A node that comes later does not get in.
    cluster.kill(5);
    cluster.start(5);
    cluster.await_address(5);
    let mut five = cluster.session(5);
    five.query("SET lock_wait_timeout = 1").expect("a variable");
    let error = five.query("SELECT COUNT(*) FROM d.t").expect_err("it is locked");
    assert!(format!("{error:?}").contains("1205"), "{error:?}");
    // The node of the session that holds the lock ends.
    cluster.kill(4);
    five.query("SET lock_wait_timeout = 100").expect("a variable");
    assert_eq!(value!(five, "SELECT COUNT(*) FROM d.t"), Some("2"));

    // The node that keeps the locks ends.
    five.query("LOCK TABLES d.t WRITE").expect("a lock");
    let lost = sequencer_at(&mut cluster, 5);
    cluster.kill(lost);
    // The first statement may get the error of its transaction.
    wait_until("the lock is lost", || {
        let error = format!("{:?}", five.query("UPDATE d.t SET a = 3 WHERE a = 2").err()?);
        assert!(["1213", "1180", "1296"].iter().any(|code| error.contains(code)), "{error}");
        error.contains("lock the tables again").then_some(())
    });
    let error = five.query("SELECT COUNT(*) FROM d.t").expect_err("the lock is lost");
    assert!(format!("{error:?}").contains("lock the tables again"), "{error:?}");
    five.query("UNLOCK TABLES").expect("an end");
    // The node of the session may still be looking for a data node.
    wait_until("the node that is left keeps the lock", || five.query("LOCK TABLES d.t WRITE").ok());
    five.query("UNLOCK TABLES").expect("an end");
}

fn sequencer_at(cluster: &mut Cluster, node: u8) -> u8 {
    let mut session = cluster.session(node);
    let query = "SELECT node_id FROM junctor_info.nodes WHERE is_sequencer = 1";
    value!(session, query).and_then(|id| id.parse().ok()).expect("a node")
}
