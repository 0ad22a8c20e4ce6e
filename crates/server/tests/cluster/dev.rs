//! `junctor dev`.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use junctor_bench::mysql::Connection;
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
