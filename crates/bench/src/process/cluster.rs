//! Starts a cluster of Junctor processes on loopback addresses: node N is at 127.0.0.N, and all nodes serve
//! clients at the same port, so that programs which take a list of hosts reach all of them.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::delay::DelayedLinks;
use super::server::command_killed_with_parent;
use super::{JunctorOptions, Server, TemporaryFolder};
use crate::failure::Explain;
use crate::{Failure, Outcome};

/// The cluster serves within this time after its start.
const READY_TIME_MAX: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The nodes of a cluster, besides its management node.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The binary, and settings of all nodes.
    pub junctor: JunctorOptions,
    /// Number of data nodes, which serve clients, too.
    pub data_nodes: u8,
    /// Replicas of each partition.
    pub replicas: u8,
    /// Number of nodes that only serve clients.
    pub sql_nodes: u8,
    /// Connections between two nodes.
    pub sockets: u8,
    /// By how much each message between nodes is delayed; zero for no delay.
    pub delay: Duration,
}

/// A running cluster. Its processes are killed on drop.
pub struct Cluster {
    /// Data nodes, the management node, SQL nodes. Node N is at position N - 1.
    pub nodes: Vec<Server>,
    commands: Vec<Command>,
    data_nodes: u8,
    _links: Option<DelayedLinks>,
    _folder: TemporaryFolder,
}

/// The loopback address of a node.
fn loopback(node: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, node))
}

/// A port that was free on all addresses a moment ago.
fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?.local_addr()?.port())
}

/// Starts a cluster, and waits until all data nodes serve and every node accepts clients.
///
/// # Errors
/// The cluster did not become ready.
pub fn start_cluster(options: &ClusterOptions) -> Outcome<Cluster> {
    let binary = options.junctor.binary()?;
    let folder = TemporaryFolder::new("cluster")?;
    let key = folder.path().join("key");
    let made = Command::new(&binary).args(["admin", "key"]).arg(&key).stdout(Stdio::null()).status()?;
    if !made.success() {
        return Err(Failure::new("junctor admin key failed"));
    }
    let count = options.data_nodes + 1 + options.sql_nodes;
    let [port, link_port, known_port] = [free_port()?, free_port()?, free_port()?];
    let is_delayed = !options.delay.is_zero();
    let known_port = if is_delayed { known_port } else { link_port };
    let role = |node: u8| match node {
        _ if node <= options.data_nodes => "data,sql",
        _ if node == options.data_nodes + 1 => "management",
        _ => "sql",
    };
    let known: Vec<String> =
        (1..=count).map(|node| format!("\"{node} {} {}:{known_port}\"", role(node), loopback(node))).collect();
    let links = match is_delayed {
        false => None,
        true => {
            let ends =
                (1..=count).map(|node| [known_port, link_port].map(|port| SocketAddr::new(loopback(node), port)));
            Some(DelayedLinks::start(ends.collect(), options.delay)?)
        }
    };
    let (mut nodes, mut commands) = (Vec::new(), Vec::new());
    for node in 1..=count {
        let place = TemporaryFolder::new("cluster-node")?;
        let settings = format!(
            "cluster_name = \"bench\"\ncluster_key_file = {key:?}\nNoOfReplicas = {}\nnodes = [{}]\n\
             link_address = \"{}:{link_port}\"\nlinks_per_node = {}\ntls = false\n{}\n",
            options.replicas,
            known.join(", "),
            loopback(node),
            options.sockets,
            options.junctor.settings.join("\n"),
        );
        let file = place.path().join("junctor.toml");
        fs::write(&file, settings).explain(file.display())?;
        let mut words = options.junctor.wrapper.clone();
        words.push(binary.to_string_lossy().into_owned());
        let mut command = command_killed_with_parent(&words[0]);
        command.args(&words[1..]).args(["serve", "--node-id", &node.to_string()]).arg("--config").arg(&file);
        command.arg("--data-dir").arg(place.path().join("data"));
        command.args(["--listen", &loopback(node).to_string(), "--port", &port.to_string()]);
        command.args(&options.junctor.arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(place.path().join("log"))?);
        let child = command.spawn().explain("Junctor")?;
        nodes.push(Server::new("Junctor", SocketAddr::new(loopback(node), port), child, place));
        commands.push(command);
    }
    let mut cluster = Cluster { nodes, commands, data_nodes: options.data_nodes, _links: links, _folder: folder };
    cluster.await_ready()?;
    Ok(cluster)
}

impl Cluster {
    /// The data nodes, which serve clients, too.
    pub fn data(&self) -> &[Server] {
        &self.nodes[..usize::from(self.data_nodes)]
    }

    /// The nodes that only serve clients.
    pub fn sql(&self) -> &[Server] {
        &self.nodes[usize::from(self.data_nodes) + 1..]
    }

    /// Ends a node with SIGKILL.
    ///
    /// # Errors
    /// It has ended.
    pub fn end(&mut self, node: usize) -> Outcome<()> {
        self.nodes[node].end()
    }

    /// Starts a node that has ended, and waits until all nodes serve.
    ///
    /// # Errors
    /// They do not.
    pub fn start_again(&mut self, node: usize) -> Outcome<()> {
        let child = self.commands[node].spawn().explain("Junctor")?;
        self.nodes[node].start_again(child);
        self.await_ready()
    }

    /// Why not every node serves; `None` if all do.
    fn missing(&self) -> Option<String> {
        let of_states = "SELECT CONCAT(state, is_durable) FROM junctor_info.nodes ORDER BY node_id";
        for server in self.data().iter().chain(self.sql()) {
            let rows = match server.connect().and_then(|mut session| Ok(session.query(of_states)?.rows)) {
                Ok(rows) => rows,
                Err(error) => return Some(error.to_string()),
            };
            let is_well = |(node, row): (usize, &Vec<Option<String>>)| match node < usize::from(self.data_nodes) {
                true => row[0].as_deref() == Some("SERVING1"),
                false => row[0].as_deref() == Some("CONNECTED0"),
            };
            if rows.len() != self.nodes.len() || !rows.iter().enumerate().all(is_well) {
                return Some(format!("{rows:?}"));
            }
        }
        None
    }

    /// Waits until all nodes serve.
    ///
    /// # Errors
    /// A node has ended, or the time is over.
    pub fn await_ready(&mut self) -> Outcome<()> {
        let end = Instant::now() + READY_TIME_MAX;
        while let Some(missing) = self.missing() {
            self.nodes.iter_mut().try_for_each(Server::require_alive)?;
            if Instant::now() > end {
                let log = self.nodes[0].log_end();
                return Err(Failure::new(format!("the cluster does not become ready: {missing}\n{log}")));
            }
            thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }
}
