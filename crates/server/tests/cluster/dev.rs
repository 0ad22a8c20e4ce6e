//! `junctor dev`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use junctor_bench::mysql::{ClientError, Connection};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::nodes::{folder, run, wait_until};

struct Dev {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The processes that were started, as (node, pid).
    started: Vec<(u8, i32)>,
}

impl Dev {
    fn start(folder: &Path, options: &[&str]) -> Dev {
        let mut command = Command::new(env!("CARGO_BIN_EXE_junctor"));
        command.arg("dev").arg("--data-dir").arg(folder).args(options).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        let output = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
        Dev { child, output, started: Vec::new() }
    }

    /// The next line, of which it notes the process.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["node", node, _, "pid", pid, "address", _] = words[..] {
            self.started.push((node.parse().expect("a number"), pid.parse().expect("a number")));
        }
        line
    }

    /// The addresses of the line with which all nodes serve.
    fn await_ready(&mut self) -> Vec<SocketAddr> {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "the cluster starts");
            if let Some(addresses) = line.strip_prefix("ready: mysql ") {
                return addresses.trim().split(',').map(|address| address.parse().expect("an address")).collect();
            }
        }
    }

    fn pid(&self, node: u8) -> i32 {
        self.started.iter().rev().find(|(of, _)| *of == node).expect("the node was started").1
    }

    fn await_no_children(&self) {
        for (_, pid) in &self.started {
            wait_until("the processes end", || test_kill_process(Pid::from_raw(*pid)?).err());
        }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serving(address: SocketAddr) -> Option<(u64, u64)> {
    let mut session = Connection::<TcpStream>::open(address, "").ok()?;
    let query = "SELECT COUNT(*), MAX(incarnation) FROM junctor_info.nodes WHERE state = 'SERVING'";
    let result = session.query(query).ok()?;
    let number = |column: usize| result.rows[0][column].as_ref()?.parse().ok();
    Some((number(0)?, number(1)?))
}

#[test]
fn a_cluster_starts_restarts_its_members_continues_and_ends_its_children() {
    let folder = folder("dev");
    let mut dev = Dev::start(&folder, &[]);
    let addresses = dev.await_ready();
    assert_eq!((addresses.len(), dev.started.len()), (2, 5));
    let before = wait_until("both data nodes serve", || serving(addresses[1]).filter(|(count, _)| *count == 2));
    kill_process(Pid::from_raw(dev.pid(2)).expect("a pid"), Signal::KILL).expect("the node runs");
    assert!(dev.line().starts_with("node 2 data pid "));
    let is_back = |(count, life): &(u64, u64)| *count == 2 && *life > before.1;
    wait_until("the node is back with a new life", || serving(addresses[0]).filter(is_back));
    let session = |address: SocketAddr| Connection::<TcpStream>::open(address, "").expect("root may log in");
    for statement in ["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1), (2)"] {
        // The epoch in which the node serves may begin just now.
        wait_until(statement, || session(addresses[0]).query(statement).ok());
    }
    let rows = |address: SocketAddr| session(address).query("SELECT COUNT(*) FROM d.t").expect("a table").rows;
    assert_eq!(rows(addresses[1]), [[Some("2".to_owned())]]);
    kill_process(Pid::from_child(&dev.child), Signal::TERM).expect("it runs");
    assert!(dev.child.wait().expect("a child").success());
    dev.await_no_children();

    // The same directory has the same cluster.
    let (is_started, text) = run(&["dev", "--data-dir", folder.to_str().expect("UTF-8"), "--sql-nodes", "3"]);
    assert!(!is_started && text.contains("--sql-nodes: the cluster in this directory has 2"), "{text}");
    let mut dev = Dev::start(&folder, &["--no-restart"]);
    assert_eq!(dev.await_ready(), addresses);
    wait_until("both data nodes serve", || serving(addresses[1]).filter(|(count, _)| *count == 2));
    addresses.iter().for_each(|address| assert_eq!(rows(*address), [[Some("2".to_owned())]]));
    // The children notice that it is gone.
    dev.child.kill().expect("it runs");
    dev.child.wait().expect("a child");
    dev.await_no_children();
}

/// The answer of `junctor admin` in JSON.
fn admin_json(arguments: &[&str], port: &str) -> serde_json::Value {
    let (is_done, text) = run(&[&["admin"][..], arguments, &["--port", port, "--json"]].concat());
    assert!(is_done, "{arguments:?}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

/// The lives of all nodes.
fn lives(port: &str) -> Vec<u64> {
    let shown = admin_json(&["show"], port);
    let nodes = shown["nodes"].as_array().expect("the nodes");
    nodes.iter().map(|node| node["incarnation"].as_u64().expect("a life")).collect()
}

/// Inserts rows until all is over, over new connections where one is lost. Returns those that were
/// acknowledged, and counts them meanwhile.
fn insert(address: SocketAddr, is_over: &AtomicBool, count: &AtomicUsize) -> Vec<u32> {
    let (mut acknowledged, mut session, mut row) = (Vec::new(), None, 0);
    while !is_over.load(Ordering::Relaxed) {
        row += 1;
        let connection = session.take().or_else(|| Connection::<TcpStream>::open(address, "").ok());
        let Some(mut connection) = connection else { continue };
        match connection.query(&format!("INSERT INTO d.t VALUES ({row})")) {
            Ok(_) => acknowledged.push(row),
            // A data node has left.
            Err(ClientError::Server { errno: 1180 | 1213 | 1296, .. }) => {}
            Err(ClientError::Io(_)) => continue,
            Err(error) => panic!("row {row}: {error}"),
        }
        count.store(acknowledged.len(), Ordering::Relaxed);
        session = Some(connection);
    }
    acknowledged
}

#[test]
fn a_cluster_is_shown_and_restarted_node_by_node_under_load() {
    let folder = folder("dev-admin");
    let mut dev = Dev::start(&folder, &[]);
    let addresses = dev.await_ready();
    let port = addresses[0].port().to_string();
    wait_until("all disks count", || {
        let shown = admin_json(&["show"], &port);
        let nodes = shown["nodes"].as_array()?;
        nodes[..2].iter().all(|node| node["state"] == "SERVING" && node["is_durable"] == 1).then_some(())
    });
    let session = |address: SocketAddr| Connection::<TcpStream>::open(address, "").expect("root may log in");
    for statement in ["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)"] {
        wait_until(statement, || session(addresses[0]).query(statement).ok());
    }
    let before = lives(&port);
    assert_eq!(before.len(), 5);
    let (is_over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writer = {
        let (address, is_over, count) = (addresses[1], Arc::clone(&is_over), Arc::clone(&count));
        std::thread::spawn(move || insert(address, &is_over, &count))
    };
    let await_progress = |when: &str| {
        let known = count.load(Ordering::Relaxed);
        wait_until(when, || (count.load(Ordering::Relaxed) > known || writer.is_finished()).then_some(()));
    };
    await_progress("rows before the restart");
    let (is_done, text) = run(&["admin", "rolling-restart", "--port", &port]);
    assert!(is_done && text.ends_with("all 5 nodes have been restarted\n"), "{text}");
    await_progress("rows after the restart");
    is_over.store(true, Ordering::Relaxed);
    let acknowledged = writer.join().expect("the client gets the errors of a changed membership only");
    assert!(lives(&port).iter().zip(&before).all(|(now, before)| now > before), "{text}");
    let rows = session(addresses[0]).query("SELECT a FROM d.t").expect("a table").rows;
    let found: BTreeSet<u32> = rows.iter().filter_map(|row| row[0].as_ref()?.parse().ok()).collect();
    let lost: Vec<&u32> = acknowledged.iter().filter(|row| !found.contains(row)).collect();
    assert!(lost.is_empty(), "{lost:?} of {} rows are lost", acknowledged.len());

    let status = admin_json(&["status", "1"], &port);
    assert_eq!(status["arbitration"].as_array().map(Vec::len), Some(1), "{status}");
    // The supervisor starts no node again that a statement has stopped.
    let (is_done, text) = run(&["admin", "stop", "2", "--port", &port]);
    assert!(is_done && text.contains("node 2 data: has stopped"), "{text}");
    let events = admin_json(&["events", "--kind", "stopping", "--node", "4"], &port);
    let events = events["events"].as_array().expect("events");
    assert!(events.iter().any(|it| it["description"] == "node 2: is asked to stop by a statement"), "{events:?}");
    // The management node and node 1 are two of three voters, and the only other one is away.
    for (command, message) in [(&["stop", "1"][..], "1296"), (&["rolling-restart"], "node 2 is DOWN")] {
        let (is_done, text) = run(&[&["admin"][..], command, &["--port", &port]].concat());
        assert!(!is_done && text.contains(message), "{command:?}: {text}");
    }
}
