//! Clusters of two node groups: tables, transactions and failures that concern both.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use junctor_bench::mysql::Connection;
use junctor_kernel::Random;

use super::nodes::{Cluster, Row, poll, wait_until};
use super::rejoin::{retry, rounds};

/// Nodes 1 and 2 are a group, 3 and 4 another. Node 6 survives the loss of each.
const ROLES: [&str; 6] = ["data,sql", "data,sql", "data,sql", "data,sql", "management", "sql"];
const CLIENT: u8 = 6;

fn is_whole(rows: &[Row]) -> bool {
    rows[..4].iter().all(|row| row.state == "SERVING" && row.is_durable)
}

fn value(session: &mut Connection<TcpStream>, query: &str) -> String {
    session.query(query).expect("a result").rows[0][0].clone().unwrap_or_default()
}

fn error(session: &mut Connection<TcpStream>, statement: &str) -> String {
    format!("{:?}", session.query(statement).expect_err("it cannot succeed"))
}

fn serving(name: &str) -> Cluster {
    let mut cluster = Cluster::new(name, &ROLES, "");
    cluster.start_serving([1, CLIENT]);
    (2..=4).for_each(|node| cluster.await_address(node));
    cluster
}

#[test]
fn tables_and_transactions_use_all_groups_and_a_restart_keeps_them() {
    let mut cluster = serving("groups");
    let mut sessions = [1, 2, 3, 4, CLIENT].map(|node| cluster.session(node));
    sessions[0].query("CREATE DATABASE d").expect("a database");
    sessions[2]
        .query("CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b INT, c VARCHAR(50), UNIQUE (b))")
        .expect("a table");
    for row in 1..=40 {
        let session = &mut sessions[row % 5];
        session.query(&format!("INSERT INTO d.t (b, c) VALUES ({row}, 'row {row}')")).expect("a row");
        for session in &mut sessions {
            let count = value(session, "SELECT COUNT(*) FROM d.t");
            assert_eq!(count, row.to_string(), "a commit that was acknowledged is visible everywhere");
        }
    }
    // Each group holds a part of the rows, and each of its nodes all of that part.
    let rows = "SELECT GROUP_CONCAT(DISTINCT partition_id ORDER BY partition_id) FROM junctor_info.memoryusage";
    let held: Vec<String> = sessions[..4].iter_mut().map(|session| value(session, rows)).collect();
    assert_eq!((&held[0], &held[2]), (&held[1], &held[3]));
    assert_ne!(held[0], held[2]);
    let groups = "SELECT GROUP_CONCAT(node_group, state, data_nodes, serving_nodes, durable_nodes ORDER BY \
                  node_group) FROM junctor_info.node_groups";
    assert_eq!(value(&mut sessions[4], groups), "0SERVING222,1SERVING222");
    // By the primary key, by the unique index, in ranges, and with its own changes.
    for (session, row) in sessions.iter_mut().zip(11..) {
        assert_eq!(value(session, &format!("SELECT c FROM d.t WHERE b = {row}")), format!("row {row}"));
        assert!(error(session, &format!("INSERT INTO d.t (b) VALUES ({row})")).contains("1062"));
        session.query("BEGIN").expect("a transaction");
        session.query(&format!("UPDATE d.t SET b = b + 1000 WHERE b BETWEEN {row} AND {row} + 20")).expect("rows");
        let sum = value(session, "SELECT CONCAT(COUNT(*), ' ', SUM(b)) FROM d.t");
        assert_eq!(sum, format!("40 {}", 820 + 21_000));
        session.query("ROLLBACK").expect("it is rolled back");
    }
    // Locks in all groups, and a write in one of them.
    for (session, row) in sessions.iter_mut().zip(1..) {
        session.query("BEGIN").expect("a transaction");
        session.query("SELECT * FROM d.t FOR UPDATE").expect("locks");
        session.query(&format!("UPDATE d.t SET c = 'one' WHERE a = {row}")).expect("a row");
        session.query("COMMIT").expect("a commit");
        session.query(&format!("UPDATE d.t SET c = 'row {row}' WHERE c = 'one'")).expect("the locks are free");
    }
    let [one, _, three, _, client] = &mut sessions;
    // A snapshot of one group does not see later commits of the other.
    one.query("BEGIN").expect("a transaction");
    assert_eq!(value(one, "SELECT SUM(b) FROM d.t"), "820");
    three.query("UPDATE d.t SET b = b + 100").expect("rows");
    assert_eq!(value(one, "SELECT SUM(b) FROM d.t"), "820");
    one.query("COMMIT").expect("it has read only");
    assert_eq!(value(one, "SELECT SUM(b) FROM d.t"), "4820");
    // Rows of different partitions, by transactions of both groups: a cycle ends with one error.
    let other: u32 = (2..=40)
        .find(|row| {
            client.query("BEGIN").expect("a transaction");
            let lock = format!("SELECT 1 FROM d.t WHERE a IN (1, {row}) FOR UPDATE");
            client.query(&lock).expect("locks");
            let count = value(one, "SELECT COUNT(DISTINCT partition_id) FROM junctor_info.locks");
            let count = (count, value(three, "SELECT COUNT(DISTINCT partition_id) FROM junctor_info.locks"));
            client.query("ROLLBACK").expect("it is rolled back");
            let at_most_one = |count: &str| count == "0" || count == "1";
            at_most_one(&count.0) && at_most_one(&count.1) && count.0 != count.1
        })
        .unwrap_or(2);
    for (session, row) in [(&mut *one, 1), (&mut *three, other)] {
        session.query("BEGIN").expect("a transaction");
        session.query(&format!("UPDATE d.t SET c = 'held' WHERE a = {row}")).expect("a row");
    }
    let mut waiting = cluster.session(1);
    std::mem::swap(&mut waiting, one);
    let waits = std::thread::spawn(move || {
        let result = waiting.query(&format!("UPDATE d.t SET c = 'both' WHERE a = {other}"));
        (waiting, result.map(drop).map_err(|error| format!("{error:?}")))
    });
    let second = three.query("UPDATE d.t SET c = 'both' WHERE a = 1").map(drop).map_err(|error| format!("{error:?}"));
    if second.is_err() {
        three.query("ROLLBACK").expect("it is rolled back already");
    }
    let (mut waiting, first) = waits.join().expect("an answer");
    let failed = [&first, &second].map(|result| result.as_ref().is_err_and(|error| error.contains("1213")));
    assert_eq!(failed.iter().filter(|failed| **failed).count(), 1, "{first:?} {second:?}");
    waiting.query("COMMIT").expect("the other one goes on");
    three.query("COMMIT").expect("the other one goes on");
    assert_eq!(value(client, "SELECT COUNT(*) FROM d.t WHERE c IN ('both', 'held')"), "2");
    drop((sessions, waiting));

    let expected = figures(&mut cluster, CLIENT);
    (1..=6).for_each(|node| cluster.kill(node));
    cluster.start_serving([1, CLIENT]);
    (2..=4).for_each(|node| cluster.await_address(node));
    for node in [1, 2, 3, 4, CLIENT] {
        assert_eq!(figures(&mut cluster, node), expected, "node {node}");
    }
    for node in [1, 2, 3, 4, CLIENT] {
        retry(&mut cluster.session(node), &format!("INSERT INTO d.t (b) VALUES ({node} + 10000)"));
    }
    assert_eq!(value(&mut cluster.session(2), "SELECT COUNT(*) FROM d.t WHERE b > 10000"), "5");
}

/// What the table has, by its primary key and by its unique index.
fn figures(cluster: &mut Cluster, node: u8) -> Vec<String> {
    let mut session = cluster.session(node);
    let queries = [
        "SELECT CONCAT(COUNT(*), ' ', SUM(a), ' ', SUM(b), ' ', MAX(c)) FROM d.t",
        "SELECT COUNT(*) FROM d.t WHERE b BETWEEN 1 AND 1000000",
        "SELECT a FROM d.t WHERE b = 117",
    ];
    queries.iter().map(|query| value(&mut session, query)).collect()
}

pub const ACCOUNTS: u64 = 60;
pub const BALANCE: u64 = 1000;

/// A client that moves money between accounts of all groups, and notes each transfer.
pub struct Transfers {
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Noted>,
}

/// The transfers that were acknowledged, and those that were refused.
#[derive(Default)]
pub struct Noted {
    pub done: Vec<u64>,
    refused: Vec<u64>,
    /// How many could have been either.
    unknown: usize,
}

impl Transfers {
    pub fn begin(cluster: &mut Cluster, first: u64) -> Transfers {
        let is_over = Arc::new(AtomicBool::new(false));
        let (mut session, ends) = (cluster.session(CLIENT), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let (mut noted, mut random) = (Noted::default(), Random::new(first));
            let mut number = first;
            while !ends.load(Ordering::Relaxed) {
                number += 1;
                match transfer(&mut session, number, &mut random) {
                    Ok(()) => noted.done.push(number),
                    // The outcome is unknown.
                    Err(error) if error.contains("1180") => noted.unknown += 1,
                    Err(error) => {
                        assert!(error.contains("1213") || error.contains("1296"), "{error}");
                        noted.refused.push(number);
                    }
                }
            }
            noted
        });
        Transfers { is_over, thread }
    }

    pub fn end(self, noted: &mut Noted) {
        self.is_over.store(true, Ordering::Relaxed);
        let Noted { done, refused, unknown } = self.thread.join().expect("only expected errors");
        assert!(!done.is_empty());
        noted.done.extend(done);
        noted.refused.extend(refused);
        noted.unknown += unknown;
    }
}

fn transfer(session: &mut Connection<TcpStream>, number: u64, random: &mut Random) -> Result<(), String> {
    let (from, to, amount) = (random.below(ACCOUNTS), random.below(ACCOUNTS), random.below(50));
    let statements = [
        "BEGIN".to_owned(),
        format!("UPDATE d.account SET balance = balance - {amount} WHERE id = {from}"),
        format!("UPDATE d.account SET balance = balance + {amount} WHERE id = {to}"),
        format!("INSERT INTO d.transfer VALUES ({number}, {number})"),
        "COMMIT".to_owned(),
    ];
    for statement in &statements {
        if let Err(error) = session.query(statement) {
            session.query("ROLLBACK").map_err(|error| format!("{error:?}"))?;
            return Err(format!("{error:?}"));
        }
    }
    Ok(())
}

/// Creates the accounts.
pub fn open_accounts(cluster: &mut Cluster) {
    let mut session = cluster.session(CLIENT);
    session.query("CREATE DATABASE d").expect("a database");
    session
        .query("CREATE TABLE d.account (id INT PRIMARY KEY, balance INT) PARTITION BY KEY (id) PARTITIONS 8")
        .expect("a table");
    session.query("CREATE TABLE d.transfer (id INT PRIMARY KEY, number INT, UNIQUE (number))").expect("a table");
    let rows: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {BALANCE})")).collect();
    session.query(&format!("INSERT INTO d.account VALUES {}", rows.join(","))).expect("rows");
}

/// Checks at a node that no money and no transfer is lost, and no refused transfer is there.
fn check_accounts(cluster: &mut Cluster, node: u8, noted: &Noted) {
    let mut session = cluster.session(node);
    let mut query = |text: &str| wait_until(text, || session.query(text).ok()).rows;
    let sum = query("SELECT CONCAT(COUNT(*), ' ', SUM(balance)) FROM d.account");
    assert_eq!(sum[0][0], Some(format!("{ACCOUNTS} {}", ACCOUNTS * BALANCE)), "node {node}");
    let rows = query("SELECT number FROM d.transfer ORDER BY number");
    let found: Vec<u64> = rows.iter().map(|row| row[0].as_ref().map_or(0, |n| n.parse().expect("a number"))).collect();
    let has = |number: &&u64| found.binary_search(*number).is_ok();
    let lost: Vec<&u64> = noted.done.iter().filter(|number| !has(number)).collect();
    let kept: Vec<&u64> = noted.refused.iter().filter(has).collect();
    assert!(lost.is_empty() && kept.is_empty(), "node {node} has lost {lost:?} and has refused ones {kept:?}");
    let by_index = query("SELECT COUNT(*) FROM d.transfer WHERE number BETWEEN 0 AND 2000000000");
    assert_eq!(by_index[0][0], Some(found.len().to_string()), "node {node}");
}

/// Reads the sum of all accounts again and again. Every snapshot has the same.
fn audit(cluster: &mut Cluster, is_over: &Arc<AtomicBool>) -> std::thread::JoinHandle<u32> {
    let (mut session, ends) = (cluster.session(CLIENT), Arc::clone(is_over));
    std::thread::spawn(move || {
        let mut count = 0;
        while !ends.load(Ordering::Relaxed) {
            if let Ok(result) = session.query("SELECT SUM(balance) FROM d.account") {
                assert_eq!(result.rows[0][0], Some((ACCOUNTS * BALANCE).to_string()));
                count += 1;
            }
        }
        count
    })
}

#[test]
fn sums_hold_while_a_node_of_each_group_is_killed() {
    let mut cluster = serving("groups-kills");
    open_accounts(&mut cluster);
    let (mut noted, mut random) = (Noted::default(), Random::new(rounds()));
    for round in 0..rounds() {
        let is_over = Arc::new(AtomicBool::new(false));
        let auditor = audit(&mut cluster, &is_over);
        let writers = [0, 1].map(|writer| Transfers::begin(&mut cluster, (2 * round + writer) * 1_000_000));
        let lost = [1 + random.below(2) as u8, 3 + random.below(2) as u8];
        cluster.kill(lost[0]);
        if random.one_in(2) {
            cluster.await_rows(CLIENT, "it is evicted", |rows| rows[usize::from(lost[0]) - 1].state != "SERVING");
        }
        cluster.kill(lost[1]);
        let are_gone = |rows: &[Row]| lost.iter().all(|node| rows[usize::from(*node) - 1].state != "SERVING");
        cluster.await_rows(CLIENT, "both are evicted", are_gone);
        lost.into_iter().for_each(|node| cluster.start(node));
        cluster.await_rows(CLIENT, "all serve", is_whole);
        for writer in writers {
            writer.end(&mut noted);
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(auditor.join().expect("every sum is right") > 0);
        check_accounts(&mut cluster, CLIENT, &noted);
    }
    assert_eq!(noted.unknown, 0, "the other nodes know the outcome of each COMMIT");
    // Each half of the nodes has everything.
    for lost in [[1, 3], [2, 4]] {
        lost.into_iter().for_each(|node| cluster.kill(node));
        [1, 2, 3, 4, CLIENT].into_iter().filter(|node| !lost.contains(node)).for_each(|node| {
            check_accounts(&mut cluster, node, &noted);
        });
        lost.into_iter().for_each(|node| cluster.start(node));
        cluster.await_rows(CLIENT, "all serve", is_whole);
        lost.into_iter().for_each(|node| cluster.await_address(node));
    }
    // The disks have everything, too.
    (1..=6).for_each(|node| cluster.kill(node));
    cluster.start_serving([1, CLIENT]);
    (2..=4).for_each(|node| cluster.await_address(node));
    [1, 2, 3, 4, CLIENT].into_iter().for_each(|node| check_accounts(&mut cluster, node, &noted));
}

#[test]
fn the_loss_of_a_group_stops_all_data_nodes_until_it_returns() {
    let mut cluster = serving("groups-lost");
    open_accounts(&mut cluster);
    let mut noted = Noted::default();
    let writer = Transfers::begin(&mut cluster, 0);
    wait_until("transfers", || {
        let count = cluster.session(CLIENT).query("SELECT COUNT(*) FROM d.transfer").ok()?.rows[0][0].clone()?;
        (count.parse::<u32>().ok()? > 20).then_some(())
    });
    [3, 4].into_iter().for_each(|node| cluster.kill(node));
    for node in [1, 2] {
        let status = cluster.await_end(node);
        assert_eq!(status.code(), Some(3), "node {node}: {}", cluster.log(node));
        assert!(cluster.log(node).contains("all nodes of a group are gone"), "{}", cluster.log(node));
    }
    // No row can be reached, neither by the group that is left.
    let mut session = cluster.session(CLIENT);
    wait_until("no data node serves", || {
        let text = error(&mut session, "SELECT COUNT(*) FROM d.account WHERE id = 1");
        assert!(text.contains("1296"), "{text}");
        text.contains("no data node serves").then_some(())
    });
    for statement in ["UPDATE d.account SET balance = 0", "SELECT * FROM d.transfer", "DROP TABLE d.transfer"] {
        let text = error(&mut session, statement);
        assert!(text.contains("1296"), "{statement}: {text}");
    }
    // The group that is left does not serve alone. Half of the other one is enough.
    [1, 2].into_iter().for_each(|node| cluster.start(node));
    cluster.await_rows(CLIENT, "both wait", |rows| rows[..2].iter().all(|row| row.state == "WAITING"));
    assert!(error(&mut session, "SELECT COUNT(*) FROM d.account").contains("1296"));
    [3, 4].into_iter().for_each(|node| cluster.start(node));
    let whole = poll(std::time::Duration::from_millis(10), || {
        cluster.start_ended();
        is_whole(&cluster.rows(CLIENT)).then_some(())
    });
    assert!(whole.is_some(), "all serve; the logs are in {}", cluster.folder().display());
    writer.end(&mut noted);
    (1..=4).for_each(|node| cluster.await_address(node));
    [1, 2, 3, 4, CLIENT].into_iter().for_each(|node| check_accounts(&mut cluster, node, &noted));
}
