//! Backups of clusters: the copy has all commits up to one number, and is restored to one node and to
//! clusters of other sizes.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use junctor_bench::mysql::Connection;

use super::groups::{ACCOUNTS, BALANCE, Noted, Transfers, open_accounts};
use super::nodes::{Cluster, Row, run, wait_until};
use super::rejoin::retry;

/// Two groups.
const ROLES: [&str; 6] = ["data,sql", "data,sql", "data,sql", "data,sql", "management", "sql"];
const CLIENT: u8 = 6;

fn value(session: &mut Connection<TcpStream>, query: &str) -> String {
    session.query(query).expect("a result").rows[0][0].clone().unwrap_or_default()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The command that takes a backup, by a node of the cluster.
fn command(cluster: &mut Cluster, store: &Path, name: &str) -> Command {
    let address = cluster.address(CLIENT);
    let mut command = Command::new(env!("CARGO_BIN_EXE_junctor"));
    command.args(["admin", "backup", text(store), "--name", name, "--host", &address.ip().to_string()]);
    command.args(["--port", &address.port().to_string()]);
    command
}

fn output(child: Child) -> (bool, String) {
    let output = child.wait_with_output().expect("the program ends");
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

fn back_up(cluster: &mut Cluster, store: &Path, name: &str) -> (bool, String) {
    let mut command = command(cluster, store, name);
    output(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs"))
}

/// The data directories of a new cluster with this number of node groups, made from the newest backup.
fn restore(store: &Path, target: &Cluster, (nodes, groups): (std::ops::RangeInclusive<u8>, u8)) {
    for node in nodes {
        let folder = target.folder().join(format!("data-{node}"));
        let groups = groups.to_string();
        let (is_done, said) = run(&["restore", text(store), text(&folder), "--node-groups", &groups]);
        assert!(is_done, "{said}");
        let (is_sound, said) = run(&["check", text(&folder)]);
        assert!(is_sound, "{said}");
    }
}

fn is_whole(rows: &[Row]) -> bool {
    rows.iter().all(|row| row.state == "CONNECTED" || row.state == "SERVING" && row.is_durable)
}

/// Checks a restored server or cluster: the accounts have their sum, and each client's transfers have no gap.
fn check(session: &mut Connection<TcpStream>, noted: &Noted, before: &[u64]) {
    let sum = value(session, "SELECT CONCAT(COUNT(*), ' ', SUM(balance)) FROM d.account");
    assert_eq!(sum, format!("{ACCOUNTS} {}", ACCOUNTS * BALANCE));
    let rows = session.query("SELECT number FROM d.transfer ORDER BY number").expect("rows").rows;
    let found: Vec<u64> = rows.iter().map(|row| row[0].as_ref().map_or(0, |n| n.parse().expect("a number"))).collect();
    assert_eq!(value(session, "SELECT COUNT(*) FROM d.transfer WHERE number > 0"), found.len().to_string());
    assert!(before.iter().all(|number| found.contains(number)), "what was committed before the backup is there");
    // A backup as of one number has the first transfers of each client, and none behind one that it lacks.
    for client in [0, 1_000_000] {
        let of_client = |number: &&u64| (client..client + 1_000_000).contains(*number);
        let done: Vec<&u64> = noted.done.iter().filter(of_client).collect();
        let kept = done.iter().take_while(|number| found.binary_search(number).is_ok()).count();
        assert!(done[kept..].iter().all(|number| found.binary_search(number).is_err()), "client {client}: {found:?}");
        assert!(done.len() > kept || client > 0, "transfers went on behind the backup");
    }
    assert_eq!(value(session, "SELECT CONCAT(COUNT(*), ' ', SUM(LENGTH(c))) FROM d.long_one"), "6 2400000");
    assert_eq!(value(session, "SELECT COUNT(*) FROM mysql.user WHERE user = 'shop'"), "1");
    assert!(session.query("SELECT 1 FROM d.dropped").is_err());
    // A number that nobody has had, and the generated ones go on.
    retry(session, "INSERT INTO d.counted (b) VALUES (7)");
    assert_eq!(value(session, "SELECT COUNT(*) FROM d.counted"), "41");
    assert_eq!(value(session, "SELECT COUNT(DISTINCT a) FROM d.counted"), "41");
    retry(session, "CREATE TABLE d.later (a INT PRIMARY KEY)");
    retry(session, "DROP TABLE d.later");
}

/// A cluster of two groups with checkpoints, a log behind them, and transfers that go on.
fn filled(name: &str) -> (Cluster, PathBuf) {
    let mut cluster = Cluster::new(name, &ROLES, "TimeBetweenLocalCheckpoints = 0\n");
    cluster.start_serving([1, CLIENT]);
    (2..=4).for_each(|node| cluster.await_address(node));
    open_accounts(&mut cluster);
    let mut session = cluster.session(CLIENT);
    session.query("CREATE USER shop IDENTIFIED BY 'x'").expect("an account");
    session.query("CREATE TABLE d.dropped (a INT PRIMARY KEY)").expect("a table");
    session.query("CREATE TABLE d.long_one (a INT PRIMARY KEY, c LONGTEXT)").expect("a table");
    session
        .query("CREATE TABLE d.counted (a INT PRIMARY KEY AUTO_INCREMENT, b INT) PARTITION BY KEY (a) PARTITIONS 4")
        .expect("a table");
    for _ in 0..40 {
        session.query("INSERT INTO d.counted (b) VALUES (1)").expect("a row");
    }
    // Values that are longer than a frame of a checkpoint.
    for row in 0..6 {
        session.query(&format!("INSERT INTO d.long_one VALUES ({row}, REPEAT('x', 400000))")).expect("a row");
    }
    session.query("DROP TABLE d.dropped").expect("it is dropped");
    drop(session);
    let store = cluster.folder().join("store");
    (cluster, store)
}

#[test]
fn a_backup_during_transfers_has_one_state_for_one_node_and_for_other_clusters() {
    let (mut cluster, store) = filled("backup");
    let mut noted = Noted::default();
    let writers = [0, 1].map(|writer| Transfers::begin(&mut cluster, writer * 1_000_000));
    let count = |cluster: &mut Cluster| value(&mut cluster.session(1), "SELECT COUNT(*) FROM d.transfer");
    let counted = |cluster: &mut Cluster, least: u64| {
        wait_until("transfers", || (count(cluster).parse::<u64>().ok()? >= least).then_some(()));
    };
    counted(&mut cluster, 30);
    let rows = cluster.session(1).query("SELECT number FROM d.transfer").expect("rows").rows;
    let before: Vec<u64> = rows.iter().map(|row| row[0].as_ref().map_or(0, |n| n.parse().expect("a number"))).collect();
    let (is_done, said) = back_up(&mut cluster, &store, "first");
    assert!(is_done, "{said}");
    let states = "SELECT GROUP_CONCAT(DISTINCT state) FROM junctor_info.backups WHERE backup_name = 'first'";
    assert_eq!(value(&mut cluster.session(CLIENT), states), "COPIED");
    let now: u64 = count(&mut cluster).parse().expect("a number");
    counted(&mut cluster, now + 20);
    writers.into_iter().for_each(|writer| writer.end(&mut noted));
    let (is_done, said) = back_up(&mut cluster, &store, "first");
    assert!(!is_done && said.contains("already"), "{said}");
    // A node of one group has a part of the rows only.
    let port = cluster.address(1).port().to_string();
    let (is_done, said) = run(&["backup", text(&store), "--port", &port]);
    assert!(!is_done && said.contains("junctor admin backup"), "{said}");
    drop(cluster);

    // To one node.
    let mut single = Single::start(&store);
    check(&mut single.session(), &noted, &before);
    single.kill();
    let single = Single::start_again(single);
    assert_eq!(value(&mut single.session(), "SELECT COUNT(*) FROM d.counted"), "41");
    drop(single);
    // To one group of two nodes, and to three groups of one.
    for (name, data, groups, settings) in [("backup-pair", 2, 1, ""), ("backup-three", 3, 3, "NoOfReplicas = 1")] {
        let roles: Vec<&str> = std::iter::repeat_n("data,sql", data).chain(["management", "sql"]).collect();
        let mut target = Cluster::new(name, &roles, settings);
        let client = roles.len() as u8;
        restore(&store, &target, (1..=data as u8, groups));
        target.start_serving([1, client]);
        (2..=data as u8).for_each(|node| target.await_address(node));
        check(&mut target.session(client), &noted, &before);
        let spread = "SELECT COUNT(DISTINCT NODEGROUP) FROM information_schema.PARTITIONS \
                      WHERE TABLE_SCHEMA = 'd' AND TABLE_NAME = 'counted'";
        assert_eq!(value(&mut target.session(client), spread), groups.to_string(), "{name}");
        target.await_rows(client, "all disks count", is_whole);
        // The disks have it, too, with the numbers of the new cluster.
        (1..=client).for_each(|node| target.kill(node));
        target.start_serving([1, client]);
        let mut session = target.session(client);
        assert_eq!(value(&mut session, "SELECT COUNT(*) FROM d.counted"), "41", "{name}");
        let sum = value(&mut session, "SELECT CONCAT(COUNT(*), ' ', SUM(balance)) FROM d.account");
        assert_eq!(sum, format!("{ACCOUNTS} {}", ACCOUNTS * BALANCE), "{name}");
    }
}

#[test]
fn an_empty_disk_beside_restored_ones_gets_their_rows() {
    let (mut cluster, store) = filled("backup-empty");
    let (is_done, said) = back_up(&mut cluster, &store, "one");
    assert!(is_done, "{said}");
    drop(cluster);
    let roles = ["data,sql", "data,sql", "management", "sql"];
    let mut target = Cluster::new("backup-empty-target", &roles, "");
    restore(&store, &target, (1..=1, 1));
    target.start_serving([1, 4]);
    target.await_rows(4, "node 2 has copied all rows", is_whole);
    target.await_address(2);
    target.kill(1);
    let mut session = target.session(2);
    wait_until("node 2 has the rows", || {
        let rows = session.query("SELECT COUNT(*) FROM d.counted").ok()?.rows;
        assert_eq!(rows[0][0].as_deref(), Some("40"));
        Some(())
    });
}

#[test]
fn a_backup_ends_with_an_error_when_a_node_that_copies_is_killed() {
    let (mut cluster, store) = filled("backup-kill");
    let writers = [0, 1].map(|writer| Transfers::begin(&mut cluster, writer * 1_000_000));
    for (index, point) in ["backup.log.before", "backup.list.before"].into_iter().enumerate() {
        // One of them copies.
        for node in [1, 2] {
            cluster.kill(node);
            cluster.set_crash_point(node, point);
            cluster.start(node);
            cluster.await_rows(CLIENT, "it returns", is_whole);
        }
        let name = format!("killed{index}");
        let (is_done, said) = back_up(&mut cluster, &store, &name);
        assert!(!is_done && said.contains("is not complete"), "{point}: {said}");
        let (_, listed) = run(&["backups", text(&store)]);
        assert!(!listed.contains(&name), "{listed}");
        let (is_done, said) = run(&["restore", text(&store), text(&store.with_file_name("none")), "--name", &name]);
        assert!(!is_done && said.contains("no complete backup"), "{said}");
        cluster.start_ended();
        cluster.await_rows(CLIENT, "the node that copied returns", is_whole);
    }
    for node in [1, 2] {
        cluster.kill(node);
        cluster.set_crash_point(node, "");
        cluster.start(node);
        cluster.await_rows(CLIENT, "it returns", is_whole);
    }
    // The parts of the other group have ended, too.
    let (is_done, said) = back_up(&mut cluster, &store, "whole");
    assert!(is_done, "{said}");
    let mut noted = Noted::default();
    writers.into_iter().for_each(|writer| writer.end(&mut noted));
    drop(cluster);
    let single = Single::start(&store);
    let sum = value(&mut single.session(), "SELECT CONCAT(COUNT(*), ' ', SUM(balance)) FROM d.account");
    assert_eq!(sum, format!("{ACCOUNTS} {}", ACCOUNTS * BALANCE));
}

#[test]
fn steps_of_a_backup_that_do_not_fit_are_refused() {
    let (mut cluster, store) = filled("backup-steps");
    let mut session = cluster.session(CLIENT);
    session.query(&format!("BACKUP NODE 2 BEGIN '{}' AS 'held'", text(&store))).expect("it begins");
    session.query("BACKUP NODE 2 COPY 'held' UNTIL 18446744073709551615").expect("it goes on");
    let begin = format!("BACKUP NODE 2 BEGIN '{}' AS 'other'", text(&store));
    for (statement, why) in [
        (&*begin, "takes part in one already"),
        ("BACKUP NODE 2 COPY 'other' UNTIL 1", "has no part"),
        ("BACKUP NODE 5 BEGIN 's' AS 'n'", "has not all rows"),
        ("BACKUP NODE 9 END 'n'", "1210"),
        ("BACKUP NODE 2 END 'held'", "before its copy was complete"),
        ("BACKUP NODE 2 END 'held'", "has no part"),
        ("BACKUP NODE 2 AGAIN", "1064"),
    ] {
        let error = format!("{:?}", session.query(statement).expect_err("it cannot succeed"));
        assert!(error.contains(why), "{statement}: {error}");
    }
    // The log is trimmed again, and another backup succeeds.
    let (is_done, said) = back_up(&mut cluster, &store, "next");
    assert!(is_done, "{said}");
}

#[test]
fn the_backup_of_a_node_alone_is_refused_by_a_cluster_of_two_groups() {
    let mut target = Cluster::new("backup-alone", &ROLES, "");
    let store = target.folder().join("store");
    let single = Single::serve(target.folder().join("single"));
    let port = single.address.port().to_string();
    let (is_done, said) = run(&["backup", text(&store), "--port", &port]);
    assert!(is_done, "{said}");
    drop(single);
    let folder = target.folder().join("data-1");
    let (is_done, said) = run(&["restore", text(&store), text(&folder), "--node-groups", "2"]);
    assert!(!is_done && said.contains("no node group"), "{said}");
    let (is_done, said) = run(&["restore", text(&store), text(&folder)]);
    assert!(is_done, "{said}");
    // The first start leaves a file of the membership, so the second one may decide otherwise.
    for count in [1, 2] {
        target.start(1);
        wait_until("it refuses", || {
            (target.log(1).matches("a cluster of one node group").count() >= count).then_some(())
        });
        target.kill(1);
    }
}

/// A node alone, with a restored directory.
struct Single {
    child: Child,
    address: std::net::SocketAddr,
    folder: PathBuf,
}

impl Single {
    /// Restores the newest backup.
    fn start(store: &Path) -> Single {
        let folder = store.with_file_name("single");
        let (is_done, said) = run(&["restore", text(store), text(&folder)]);
        assert!(is_done, "{said}");
        let (is_sound, said) = run(&["check", text(&folder)]);
        assert!(is_sound, "{said}");
        Single::serve(folder)
    }

    fn serve(folder: PathBuf) -> Single {
        use std::io::{BufRead, BufReader};
        let mut command = Command::new(env!("CARGO_BIN_EXE_junctor"));
        command.args(["serve", "--port", "0", "--data-dir"]).arg(&folder).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let address = lines
            .into_iter()
            .find_map(|line| line.strip_prefix("ready: mysql ").and_then(|rest| rest.split(' ').next()?.parse().ok()));
        Single { child, address: address.expect("the node serves"), folder }
    }

    fn start_again(mut self) -> Single {
        Single::serve(std::mem::take(&mut self.folder))
    }

    fn session(&self) -> Connection<TcpStream> {
        Connection::open(self.address, "").expect("root may log in")
    }

    fn kill(&mut self) {
        // Fails if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        self.kill();
    }
}
