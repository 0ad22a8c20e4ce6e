//! The nodes of a cluster as child processes.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use junctor_bench::mysql::Connection;
use rustix::process::{Pid, Signal, kill_process};

/// A state that a test waits for comes within this time, or the test fails.
const WAIT_MAX: Duration = Duration::from_secs(120);
const INTERVAL: Duration = Duration::from_millis(10);

/// A cluster in a folder.
pub struct Cluster {
    folder: PathBuf,
    nodes: Vec<Node>,
}

struct Node {
    id: u8,
    child: Option<Child>,
    /// Where the running process serves clients.
    address: Arc<Mutex<Option<SocketAddr>>>,
    options: Vec<String>,
    config: PathBuf,
    /// Where the process kills itself.
    crash_point: Option<String>,
}

/// A row of `junctor_info.nodes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub state: String,
    pub incarnation: u64,
    pub epoch: u64,
    pub is_leader: bool,
    pub is_durable: bool,
}

/// An empty folder for one test.
pub fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cluster-{name}"));
    // A run that was interrupted may have left one.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a writable folder");
    folder
}

/// Looks for a state again and again. `None` if it does not come in time.
pub fn poll<T>(interval: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        std::thread::sleep(interval);
    }
}

/// Waits until a condition holds.
pub fn wait_until<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    poll(INTERVAL, condition).unwrap_or_else(|| panic!("{what}"))
}

/// Runs `junctor` with these arguments, and returns whether it succeeded and what it printed.
pub fn run(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_junctor")).args(arguments).output().expect("the program runs");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.success(), text)
}

impl Cluster {
    /// A cluster of nodes with these roles, none of which runs. All nodes read `cluster.toml`, to which
    /// `settings` are added.
    pub fn new(name: &str, roles: &[&str], settings: &str) -> Cluster {
        let folder = folder(name);
        // All are bound at a time, so that no port is chosen twice.
        let listeners: Vec<TcpListener> =
            roles.iter().map(|_| TcpListener::bind(("127.0.0.1", 0)).expect("a free port")).collect();
        let addresses = listeners.iter().map(|listener| listener.local_addr().expect("an address"));
        let nodes: Vec<String> = (1..)
            .zip(roles)
            .zip(addresses)
            .map(|((id, roles), address): ((u8, _), _)| format!("\"{id} {roles} {address}\""))
            .collect();
        let key = folder.join("key");
        assert!(run(&["admin", "key", key.to_str().expect("UTF-8")]).0);
        let silence = if settings.contains("node_silence_max_ms") { "" } else { "node_silence_max_ms = 20000\n" };
        let text = format!(
            "cluster_name = \"test\"\ncluster_key_file = {key:?}\nnodes = [{}]\n{silence}\
             cpu_binding = false\nNumCPUs = 1\nTotalMemory = \"64M\"\nFragmentLogFileSize = \"1M\"\nport = 0\n{settings}",
            nodes.join(", ")
        );
        std::fs::write(folder.join("cluster.toml"), text).expect("a writable folder");
        let ids = 1..=roles.len() as u8;
        let nodes = ids.map(|id| {
            let config = folder.join("cluster.toml");
            Node { id, child: None, address: Arc::default(), options: Vec::new(), config, crash_point: None }
        });
        let nodes = nodes.collect();
        Cluster { folder, nodes }
    }

    /// Starts all nodes, and waits until they serve.
    pub fn formed(name: &str, roles: &[&str], settings: &str) -> Cluster {
        let mut cluster = Cluster::new(name, roles, settings);
        cluster.start_all();
        cluster
    }

    /// Where a node listens for the others.
    pub fn link_address(&self, node: u8) -> String {
        let config = std::fs::read_to_string(self.folder.join("cluster.toml")).expect("a file");
        let entry = config.split('"').find(|part| part.starts_with(&format!("{node} "))).expect("the node");
        entry.rsplit(' ').next().expect("an address").to_owned()
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Options that a node gets with its next start.
    pub fn set_options(&mut self, node: u8, options: &[&str]) {
        self.node(node).options = options.iter().map(|option| (*option).to_owned()).collect();
    }

    /// The crash point at which a node kills itself after its next start; none if it is empty.
    pub fn set_crash_point(&mut self, node: u8, point: &str) {
        self.node(node).crash_point = (!point.is_empty()).then(|| point.to_owned());
    }

    /// The configuration file of a node, instead of `cluster.toml`.
    pub fn set_config(&mut self, node: u8, config: &Path) {
        self.node(node).config = config.to_owned();
    }

    pub fn start_all(&mut self) {
        let ids: Vec<u8> = self.nodes.iter().map(|node| node.id).collect();
        ids.iter().for_each(|node| self.start(*node));
        ids.iter().for_each(|node| self.await_address(*node));
    }

    /// Starts all nodes, and waits until two of them serve.
    pub fn start_serving(&mut self, serving: [u8; 2]) {
        let ids: Vec<u8> = self.nodes.iter().map(|node| node.id).collect();
        ids.iter().for_each(|node| self.start(*node));
        serving.iter().for_each(|node| self.await_address(*node));
    }

    fn node(&mut self, node: u8) -> &mut Node {
        &mut self.nodes[usize::from(node) - 1]
    }

    pub fn start(&mut self, id: u8) {
        let data = self.folder.join(format!("data-{id}"));
        let log =
            std::fs::File::options().create(true).append(true).open(self.log_file(id)).expect("a writable folder");
        let node = self.node(id);
        let mut command = Command::new(env!("CARGO_BIN_EXE_junctor"));
        command.args(["serve", "--node-id", &id.to_string(), "--config"]).arg(&node.config).arg("--data-dir").arg(data);
        if let Some(point) = &node.crash_point {
            command.env("JUNCTOR_CRASH_AT", point);
        }
        command.args(&node.options).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("the program runs");
        let output = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
        // A process that is killed leaves its address to nobody.
        node.address = Arc::default();
        let address = node.address.clone();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(found) = line.strip_prefix("ready: mysql ").and_then(|rest| rest.split(' ').next()) {
                    *address.lock().expect("no thread has panicked") = found.parse().ok();
                }
            }
        });
        node.child = Some(child);
    }

    fn log_file(&self, node: u8) -> PathBuf {
        self.folder.join(format!("log-{node}.txt"))
    }

    /// The log of a node.
    pub fn log(&self, node: u8) -> String {
        std::fs::read_to_string(self.log_file(node)).unwrap_or_default()
    }

    /// Waits until a node with the role sql serves.
    pub fn await_address(&mut self, node: u8) {
        let address = self.node(node).address.clone();
        let log = self.log_file(node);
        wait_until(&format!("node {node} serves; its log is {}", log.display()), || {
            address.lock().expect("no thread has panicked").map(drop)
        });
    }

    /// Where a node serves clients.
    pub fn address(&mut self, node: u8) -> SocketAddr {
        self.node(node).address.lock().expect("no thread has panicked").expect("the node serves")
    }

    /// Where a node serves clients, if it does.
    pub fn address_now(&mut self, node: u8) -> Option<SocketAddr> {
        *self.node(node).address.lock().expect("no thread has panicked")
    }

    /// A session with a node, which serves.
    pub fn session(&mut self, node: u8) -> Connection<TcpStream> {
        Connection::open(self.address(node), "").expect("root may log in")
    }

    /// The rows of `junctor_info.nodes` that a node shows.
    pub fn rows(&mut self, at: u8) -> Vec<Row> {
        let query = "SELECT state, incarnation, epoch, is_leader, is_durable FROM junctor_info.nodes ORDER BY node_id";
        let result = self.session(at).query(query).expect("a status table");
        let number = |value: &Option<String>| value.as_ref().map_or(0, |text| text.parse().expect("a number"));
        let row = |row: &Vec<Option<String>>| Row {
            state: row[0].clone().expect("a state"),
            incarnation: number(&row[1]),
            epoch: number(&row[2]),
            is_leader: number(&row[3]) == 1,
            is_durable: number(&row[4]) == 1,
        };
        result.rows.iter().map(row).collect()
    }

    /// Waits until a node shows what is wanted.
    pub fn await_rows(&mut self, at: u8, what: &str, wanted: impl Fn(&[Row]) -> bool) -> Vec<Row> {
        let mut last = Vec::new();
        let found = poll(INTERVAL, || {
            last = self.rows(at);
            wanted(&last).then(|| last.clone())
        });
        found.unwrap_or_else(|| panic!("{what}: node {at} shows {last:?}; the logs are in {}", self.folder.display()))
    }

    /// SIGKILL.
    pub fn kill(&mut self, node: u8) {
        let mut child = self.node(node).child.take().expect("the node runs");
        child.kill().expect("the node runs");
        child.wait().expect("the node has ended");
    }

    pub fn signal(&mut self, node: u8, signal: Signal) {
        let child = self.node(node).child.as_ref().expect("the node runs");
        kill_process(Pid::from_child(child), signal).expect("the node runs");
    }

    /// SIGSTOP. No thread of the process runs any more when this returns.
    pub fn stop(&mut self, node: u8) {
        self.signal(node, Signal::STOP);
        let child = self.node(node).child.as_ref().expect("the node runs");
        let tasks = format!("/proc/{}/task", child.id());
        let is_stopped = |stat: String| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" T"));
        wait_until(&format!("node {node} stops"), || {
            let mut tasks = std::fs::read_dir(&tasks).expect("the process is there").map_while(Result::ok);
            let stat = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            tasks.all(|task| is_stopped(stat(task))).then_some(())
        });
    }

    /// Starts the nodes again whose processes have ended by themselves.
    pub fn start_ended(&mut self) {
        let has_ended = |node: &mut Node| {
            let ended = node.child.as_mut().is_some_and(|child| child.try_wait().expect("a child").is_some());
            ended.then_some(node.id)
        };
        let ended: Vec<u8> = self.nodes.iter_mut().filter_map(has_ended).collect();
        ended.into_iter().for_each(|node| self.start(node));
    }

    /// Waits until a process ends by itself.
    pub fn await_end(&mut self, node: u8) -> ExitStatus {
        let mut child = self.node(node).child.take().expect("the node runs");
        let end = wait_until(&format!("node {node} ends"), || child.try_wait().expect("a child"));
        self.node(node).child = None;
        end
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().filter_map(|node| node.child.as_mut()) {
            // Fails if the process has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
