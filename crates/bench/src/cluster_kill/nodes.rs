//! The processes of the nodes, and what they say of the cluster.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::network::{Network, address};
use super::options::ClusterKillOptions;
use crate::failure::Explain;
use crate::mysql::{ClientError, Connection};
use crate::process::{JunctorOptions, TemporaryFolder};
use crate::{Failure, Outcome};

/// Where each node serves clients, in its own namespace.
const PORT: u16 = 4000;
const LINK_PORT: u16 = 4100;
const CONNECT_MAX: Duration = Duration::from_millis(500);
/// A node stops within this time after SIGTERM.
const STOP_MAX: Duration = Duration::from_secs(60);
/// The status of a process that was evicted.
const EVICTED: i32 = 3;

/// The role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Holds data, and serves clients.
    Data,
    /// Votes.
    Management,
    /// Serves clients.
    Sql,
}

/// A row of `junctor_info.nodes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub node: u8,
    pub state: String,
    pub incarnation: u64,
    pub is_leader: bool,
    pub is_sequencer: bool,
    pub is_durable: bool,
    /// The version of the signals' encoding on the link; 0 without a link.
    pub version: u64,
}

struct Node {
    role: Role,
    binary: PathBuf,
    child: Option<Child>,
}

/// The nodes, by their numbers minus 1: data nodes, a management node, SQL nodes.
pub struct Nodes {
    pub network: Network,
    folder: TemporaryFolder,
    nodes: Vec<Node>,
    begin: Instant,
    /// How often a process was started again because its node was evicted.
    pub restarts: u64,
}

/// Connects to a node, with a limit of the time of each answer.
///
/// # Errors
/// The node cannot be reached, or refuses the login.
pub fn connect(node: u8, answer_max: Duration) -> Result<Connection, ClientError> {
    let address = SocketAddr::new(address(node).parse().expect("an address is written as one"), PORT);
    let stream = TcpStream::connect_timeout(&address, CONNECT_MAX)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(answer_max))?;
    Connection::log_in_over(stream, "")
}

impl Nodes {
    /// Makes the network and the configuration. No node runs yet.
    ///
    /// # Errors
    /// The network or the files cannot be made.
    pub fn new(options: &ClusterKillOptions) -> Outcome<Nodes> {
        let binary = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() }.binary()?;
        let mut roles = vec![Role::Data; usize::from(options.data_nodes)];
        roles.push(Role::Management);
        roles.extend(vec![Role::Sql; usize::from(options.sql_nodes)]);
        let network = Network::new(roles.len() as u8)?;
        let folder = TemporaryFolder::new("cluster-kill")?;
        let key = folder.path().join("key");
        let made = Command::new(&binary).args(["admin", "key"]).arg(&key).stdout(Stdio::null()).status()?;
        if !made.success() {
            return Err(Failure::new("junctor admin key failed"));
        }
        let name = |role: &Role| match role {
            Role::Data => "data,sql",
            Role::Management => "management",
            Role::Sql => "sql",
        };
        let lines: Vec<String> = (1..)
            .zip(&roles)
            .map(|(node, role): (u8, _)| format!("\"{node} {} {}:{LINK_PORT}\"", name(role), address(node)))
            .collect();
        let text = format!(
            "cluster_name = \"kill\"\ncluster_key_file = {key:?}\nNoOfReplicas = {}\nnodes = [{}]\n\
             node_silence_max_ms = {}\nStartPartialTimeout = 60000\ncpu_binding = false\nNumCPUs = 1\n\
             TotalMemory = \"128M\"\nFragmentLogFileSize = \"4M\"\ntls = false\n\
             commit_durability = {:?}\n",
            options.replicas,
            lines.join(", "),
            options.silence_ms,
            options.durability,
        );
        fs::write(folder.path().join("cluster.toml"), text)?;
        let nodes = roles.into_iter().map(|role| Node { role, binary: binary.clone(), child: None }).collect();
        Ok(Nodes { network, folder, nodes, begin: Instant::now(), restarts: 0 })
    }

    /// All nodes with a role.
    pub fn with_role(&self, role: Role) -> Vec<u8> {
        (1..).zip(&self.nodes).filter(|(_, node)| node.role == role).map(|(number, _)| number).collect()
    }

    /// All nodes that serve clients.
    pub fn serving(&self) -> Vec<u8> {
        let mut nodes = self.with_role(Role::Sql);
        nodes.extend(self.with_role(Role::Data));
        nodes
    }

    pub fn all(&self) -> Vec<u8> {
        (1..=self.nodes.len() as u8).collect()
    }

    /// The time since the start, as the logs have it.
    pub fn time(&self) -> Duration {
        self.begin.elapsed()
    }

    /// The log of a node.
    pub fn log_file(&self, node: u8) -> PathBuf {
        self.folder.path().join(format!("log-{node}"))
    }

    pub fn start(&mut self, node: u8) -> Outcome<()> {
        let mut log = File::options().create(true).append(true).open(self.log_file(node))?;
        let mut command = self.network.command(node, &self.nodes[usize::from(node) - 1].binary.to_string_lossy());
        command.args(["serve", "--node-id", &node.to_string(), "--config"]);
        command.arg(self.folder.path().join("cluster.toml"));
        command.arg("--data-dir").arg(self.folder.path().join(format!("data-{node}")));
        command.args(["--listen", &address(node), "--port", &PORT.to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.explain("nsenter, of the package util-linux")?;
        let begin = self.begin;
        if let Some(lines) = child.stderr.take() {
            // Each line of the log gets its time.
            thread::spawn(move || {
                for line in BufReader::new(lines).lines().map_while(Result::ok) {
                    let _ = writeln!(log, "{:.3} {line}", begin.elapsed().as_secs_f64());
                }
            });
        }
        self.node(node).child = Some(child);
        Ok(())
    }

    fn node(&mut self, node: u8) -> &mut Node {
        &mut self.nodes[usize::from(node) - 1]
    }

    /// Ends a process with SIGKILL.
    pub fn kill(&mut self, node: u8) -> Outcome<()> {
        if let Some(mut child) = self.node(node).child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Stops a node in an orderly way.
    ///
    /// # Errors
    /// It ends with an error, or not in time.
    pub fn stop(&mut self, node: u8) -> Outcome<()> {
        self.signal(node, Signal::TERM);
        let Some(mut child) = self.node(node).child.take() else { return Ok(()) };
        let end = Instant::now() + STOP_MAX;
        loop {
            match child.try_wait()? {
                // A crowded machine may have evicted it just before.
                Some(status) if status.success() || status.code() == Some(EVICTED) => return Ok(()),
                Some(status) => return Err(Failure::new(format!("node {node} stopped with {status}"))),
                None if Instant::now() > end => {
                    child.kill()?;
                    child.wait()?;
                    return Err(Failure::new(format!("node {node} does not stop")));
                }
                None => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// The binary of a node.
    pub fn binary(&self, node: u8) -> &Path {
        &self.nodes[usize::from(node) - 1].binary
    }

    /// The next start of a node is that of another binary.
    pub fn set_binary(&mut self, node: u8, binary: PathBuf) {
        self.node(node).binary = binary;
    }

    /// Stops a process, or lets it go on.
    pub fn signal(&mut self, node: u8, signal: Signal) {
        if let Some(child) = &self.node(node).child {
            // It may have ended, because it was evicted.
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    /// Starts the processes again that have ended because their nodes were evicted. Every other end is an
    /// error.
    pub fn supervise(&mut self) -> Outcome<()> {
        for number in self.all() {
            let Some(child) = &mut self.node(number).child else { continue };
            let Some(status) = child.try_wait()? else { continue };
            if status.code() != Some(EVICTED) {
                let log = self.log_file(number);
                return Err(Failure::new(format!("node {number} ended: {status}; its log is {}", log.display())));
            }
            self.start(number)?;
            self.restarts += 1;
        }
        Ok(())
    }

    /// Lets this program log in over the network, by a session over the socket in the folder of a node.
    ///
    /// # Errors
    /// The node does not serve, or refuses the account.
    pub fn open_to_network(&self, node: u8) -> Result<(), ClientError> {
        let socket = self.folder.path().join(format!("data-{node}")).join("mysql.sock");
        let mut session = Connection::log_in_over(UnixStream::connect(socket)?, "")?;
        let host = address(0);
        session.query(&format!("CREATE USER IF NOT EXISTS root@'{host}'"))?;
        session.query(&format!("GRANT ALL ON *.* TO root@'{host}'"))?;
        Ok(())
    }

    /// The state of all nodes as one node sees it.
    pub fn views(&self, at: u8) -> Result<Vec<View>, ClientError> {
        let query = "SELECT node_id, state, incarnation, is_leader, is_sequencer, is_durable, protocol_version FROM \
                     junctor_info.nodes ORDER BY node_id";
        let rows = connect(at, Duration::from_secs(5))?.query(query)?.rows;
        let number = |row: &[Option<String>], column: usize| {
            row[column].as_ref().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0)
        };
        let view = |row: &Vec<Option<String>>| View {
            node: number(row, 0) as u8,
            state: row[1].clone().unwrap_or_default(),
            incarnation: number(row, 2),
            is_leader: number(row, 3) == 1,
            is_sequencer: number(row, 4) == 1,
            is_durable: number(row, 5) == 1,
            version: number(row, 6),
        };
        Ok(rows.iter().map(view).collect())
    }

    /// The reason why not every node serves, as the nodes with clients see it. `None` if all serve.
    pub fn missing(&self) -> Option<String> {
        let data = self.with_role(Role::Data);
        for at in self.serving() {
            let views = match self.views(at) {
                Ok(views) => views,
                Err(error) => return Some(format!("node {at}: {error}")),
            };
            let is_well = |view: &View| match data.contains(&view.node) {
                true => view.state == "SERVING" && view.is_durable,
                false => view.state == "CONNECTED",
            };
            let leaders = views.iter().filter(|view| view.is_leader).count();
            if views.len() != self.nodes.len() || !views.iter().all(is_well) || leaders != 1 {
                return Some(format!("node {at} shows {views:?}"));
            }
        }
        None
    }

    /// Keeps the files of the cluster, and returns their folder.
    pub fn keep(self) -> PathBuf {
        let path = self.folder.path().to_owned();
        let Nodes { network, folder, mut nodes, .. } = self;
        end(&mut nodes);
        drop(network);
        std::mem::forget(folder);
        path
    }
}

fn end(nodes: &mut [Node]) {
    for child in nodes.iter_mut().filter_map(|node| node.child.as_mut()) {
        // It may have ended.
        let _ = child.kill();
        let _ = child.wait();
    }
}
