//! Node groups that are added to a cluster that serves: tables are spread over them under writes, and nothing
//! is lost when nodes of each group end.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use junctor_bench::mysql::Connection;

use super::nodes::{Cluster, Row, run, wait_until};

/// Nodes 5 and 6 are the second group.
const ROLES: [&str; 6] = ["data,sql", "data,sql", "management", "sql", "data,sql,added", "data,sql,added"];
pub(super) const CLIENT: u8 = 4;
pub(super) const DATA: [u8; 4] = [1, 2, 5, 6];
const ROWS: u64 = 400;

pub(super) fn value(session: &mut Connection<TcpStream>, query: &str) -> String {
    session.query(query).expect("a result").rows[0][0].clone().unwrap_or_default()
}

pub(super) fn is_whole(rows: &[Row]) -> bool {
    DATA.iter().all(|node| rows[usize::from(*node) - 1].state == "SERVING" && rows[usize::from(*node) - 1].is_durable)
}

/// A client that moves amounts between rows until it is stopped. Its thread returns how many transfers were
/// acknowledged.
pub(super) struct Transfers {
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<u64>,
}

impl Transfers {
    pub(super) fn begin(cluster: &mut Cluster, seed: u64) -> Transfers {
        let is_over = Arc::new(AtomicBool::new(false));
        let (mut session, ends) = (cluster.session(CLIENT), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let mut done = 0;
            for round in 0.. {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                let (from, to) = ((round * 7 + seed) % ROWS + 1, (round * 13 + seed * 5) % ROWS + 1);
                let texts = [
                    "BEGIN".to_owned(),
                    format!("UPDATE d.account SET balance = balance - 1, moves = moves + 1 WHERE id = {from}"),
                    format!("UPDATE d.account SET balance = balance + 1, moves = moves + 1 WHERE id = {to}"),
                    "COMMIT".to_owned(),
                ];
                let result = texts.iter().try_for_each(|text| session.query(text).map(drop));
                match result.map_err(|error| format!("{error:?}")) {
                    Ok(()) => done += 1,
                    Err(error) => {
                        // Each change of the membership rolls back what is in prepare.
                        assert!(["1213", "1296", "1412"].iter().any(|errno| error.contains(errno)), "{error}");
                        let _ = session.query("ROLLBACK");
                    }
                }
            }
            done
        });
        Transfers { is_over, thread }
    }

    pub(super) fn end(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("only expected errors")
    }
}

/// Starts the first group with a table that has rows.
pub(super) fn filled(name: &str) -> Cluster {
    let mut cluster = Cluster::new(name, &ROLES, "");
    (1..=4).for_each(|node| cluster.start(node));
    [1, 2, CLIENT].into_iter().for_each(|node| cluster.await_address(node));
    fill(&mut cluster);
    cluster
}

/// Makes tables with rows.
pub(super) fn fill(cluster: &mut Cluster) {
    let mut session = cluster.session(CLIENT);
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.account (id INT PRIMARY KEY, balance BIGINT, moves BIGINT, code VARCHAR(20), UNIQUE (code))",
        "CREATE TABLE d.keyed (id INT PRIMARY KEY, n INT) PARTITION BY KEY (id) PARTITIONS 3",
    ] {
        session.query(statement).expect(statement);
    }
    for first in (1..=ROWS).step_by(100) {
        let rows = |row: &dyn Fn(u64) -> String| (first..first + 100).map(row).collect::<Vec<_>>().join(",");
        let accounts = rows(&|id| format!("({id}, 1000, 0, 'code {id}')"));
        session.query(&format!("INSERT INTO d.account VALUES {accounts}")).expect("rows");
        session.query(&format!("INSERT INTO d.keyed VALUES {}", rows(&|id| format!("({id}, {id})")))).expect("rows");
    }
}

/// Checks all rows at a node: by the primary key, and by the unique index.
pub(super) fn check_rows(cluster: &mut Cluster, node: u8, transfers: u64) {
    let mut session = cluster.session(node);
    let sums = value(&mut session, "SELECT CONCAT(COUNT(*), ' ', SUM(balance), ' ', SUM(moves)) FROM d.account");
    assert_eq!(sums, format!("{ROWS} {} {}", ROWS * 1000, transfers * 2), "node {node}");
    let keyed = value(&mut session, "SELECT CONCAT(COUNT(*), ' ', SUM(n)) FROM d.keyed");
    assert_eq!(keyed, format!("{ROWS} {}", ROWS * (ROWS + 1) / 2), "node {node}");
    for id in [1, 17, ROWS] {
        assert_eq!(value(&mut session, &format!("SELECT id FROM d.account WHERE code = 'code {id}'")), id.to_string());
    }
}

pub(super) fn groups_of(cluster: &mut Cluster, table: &str) -> String {
    let query = format!(
        "SELECT GROUP_CONCAT(DISTINCT nodegroup ORDER BY nodegroup) FROM information_schema.partitions WHERE table_name = \
         '{table}'"
    );
    value(&mut cluster.session(CLIENT), &query)
}

pub(super) fn admin_add(cluster: &mut Cluster) -> String {
    let port = cluster.address(CLIENT).port().to_string();
    let (succeeded, text) = run(&["admin", "add", "--port", &port, "--timeout", "100"]);
    assert!(succeeded, "{text}");
    text
}

/// Ends nodes that leave each group a replica, and checks all rows.
fn lose_nodes(cluster: &mut Cluster, transfers: u64) {
    for lost in [[1, 5], [2, 6]] {
        lost.into_iter().for_each(|node| cluster.kill(node));
        DATA.into_iter().chain([CLIENT]).filter(|node| !lost.contains(node)).for_each(|node| {
            let mut session = cluster.session(node);
            wait_until("the nodes that are left serve", || session.query("SELECT COUNT(*) FROM d.account").ok());
            check_rows(cluster, node, transfers);
        });
        lost.into_iter().for_each(|node| cluster.start(node));
        cluster.await_rows(CLIENT, "all serve", is_whole);
        lost.into_iter().for_each(|node| cluster.await_address(node));
    }
}

#[test]
fn an_added_group_gets_its_part_of_the_rows_under_writes_and_loses_nothing() {
    let mut cluster = filled("grow");
    assert_eq!((groups_of(&mut cluster, "account"), groups_of(&mut cluster, "keyed")), ("0".into(), "0".into()));
    let writers = [1, 2].map(|seed| Transfers::begin(&mut cluster, seed));
    [5, 6].into_iter().for_each(|node| cluster.start(node));
    let told = admin_add(&mut cluster);
    assert!(told.contains("all 2 tables are in 2 node groups"), "{told}");
    let transfers: u64 = writers.into_iter().map(Transfers::end).sum();
    assert!(transfers > 0);
    assert_eq!(groups_of(&mut cluster, "account"), "0,1");
    assert_eq!(groups_of(&mut cluster, "keyed"), "0,1");
    [5, 6].into_iter().for_each(|node| cluster.await_address(node));
    // Each group holds a part of the rows, and each of its nodes all of that part.
    let rows = "SELECT GROUP_CONCAT(DISTINCT partition_id ORDER BY partition_id) FROM junctor_info.memoryusage";
    let held = DATA.map(|node| value(&mut cluster.session(node), rows));
    assert_eq!((&held[0], &held[2]), (&held[1], &held[3]));
    assert_ne!(held[0], held[2]);
    DATA.into_iter().chain([CLIENT]).for_each(|node| check_rows(&mut cluster, node, transfers));
    // A new table is in both groups, and a second run has nothing to do.
    let mut session = cluster.session(CLIENT);
    session.query("CREATE TABLE d.later (a INT PRIMARY KEY)").expect("a table");
    assert_eq!(groups_of(&mut cluster, "later"), "0,1");
    session.query("DROP TABLE d.later").expect("it is there");
    admin_add(&mut cluster);
    lose_nodes(&mut cluster, transfers);
    // The disks have everything, too.
    (1..=6).for_each(|node| cluster.kill(node));
    (1..=6).for_each(|node| cluster.start(node));
    DATA.into_iter().chain([CLIENT]).for_each(|node| cluster.await_address(node));
    DATA.into_iter().chain([CLIENT]).for_each(|node| check_rows(&mut cluster, node, transfers));
}

#[test]
fn nodes_that_die_during_growth_lose_nothing() {
    let mut cluster = filled("grow-kills");
    let writer = Transfers::begin(&mut cluster, 3);
    // Half of the new group dies while it joins, and all of it before it has opened, or just behind that.
    [5, 6].into_iter().for_each(|node| cluster.start(node));
    wait_until("a new node joins", || (cluster.rows(CLIENT)[4].incarnation > 0).then_some(()));
    [5, 6].into_iter().for_each(|node| cluster.kill(node));
    [5, 6].into_iter().for_each(|node| cluster.start(node));
    cluster.start_ended();
    let opened = super::nodes::poll(std::time::Duration::from_millis(10), || {
        cluster.start_ended();
        is_whole(&cluster.rows(CLIENT)).then_some(())
    });
    assert!(opened.is_some(), "all serve; the logs are in {}", cluster.folder().display());
    // Nodes of both groups die while tables are spread.
    let port = cluster.address(CLIENT).port().to_string();
    let tool = std::thread::spawn(move || run(&["admin", "add", "--port", &port, "--timeout", "100"]));
    for lost in [1, 5, 2, 6] {
        cluster.kill(lost);
        cluster.start(lost);
        cluster.await_rows(CLIENT, "all serve", is_whole);
    }
    let (succeeded, told) = tool.join().expect("it ends");
    assert!(succeeded, "{told}");
    let transfers = writer.end();
    DATA.into_iter().for_each(|node| cluster.await_address(node));
    DATA.into_iter().chain([CLIENT]).for_each(|node| check_rows(&mut cluster, node, transfers));
    assert_eq!((groups_of(&mut cluster, "account"), groups_of(&mut cluster, "keyed")), ("0,1".into(), "0,1".into()));
    lose_nodes(&mut cluster, transfers);
}

#[test]
fn the_list_of_nodes_grows_by_restarts_while_the_cluster_serves() {
    let mut cluster = Cluster::new("grow-list", &ROLES, "");
    let text = std::fs::read_to_string(cluster.folder().join("cluster.toml")).expect("a file");
    let short = cluster.folder().join("short.toml");
    let last = text.find(", \"5 ").expect("node 5");
    let end = text[last..].find(']').expect("the end of the list") + last;
    std::fs::write(&short, format!("{}{}", &text[..last], &text[end..])).expect("a writable folder");
    (1..=4).for_each(|node| cluster.set_config(node, &short));
    (1..=4).for_each(|node| cluster.start(node));
    [1, 2, CLIENT].into_iter().for_each(|node| cluster.await_address(node));
    let mut session = cluster.session(CLIENT);
    for statement in
        ["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1), (2), (3)"]
    {
        session.query(statement).expect(statement);
    }
    drop(session);
    // The new nodes wait for all the others, the one without data too.
    [5, 6].into_iter().for_each(|node| cluster.start(node));
    let whole = cluster.folder().join("cluster.toml");
    for node in [3, 1, 2, CLIENT] {
        cluster.kill(node);
        cluster.set_config(node, &whole);
        cluster.start(node);
        if node != 3 {
            cluster.await_address(node);
        }
        let at = if node == 1 { 2 } else { 1 };
        cluster.await_rows(at, "the old nodes serve", |rows| {
            rows[..2].iter().all(|row| row.state == "SERVING" && row.is_durable) && rows[2].state == "CONNECTED"
        });
    }
    let told = admin_add(&mut cluster);
    assert!(told.contains("all 1 tables are in 2 node groups"), "{told}");
    assert_eq!(value(&mut cluster.session(CLIENT), "SELECT SUM(a) FROM d.t"), "6");
    // A node with the old list does not take part.
    cluster.kill(CLIENT);
    cluster.set_config(CLIENT, &short);
    cluster.start(CLIENT);
    let status = cluster.await_end(CLIENT);
    assert!(!status.success());
    assert!(
        cluster.log(CLIENT).contains("of node group 1 has another group in `nodes`, or none"),
        "{}",
        cluster.log(CLIENT)
    );
}
