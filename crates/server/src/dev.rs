//! `junctor dev`: a cluster of processes on this machine.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use clap::Args;
use junctor_node::cluster_config::MemberNode;
use junctor_node::setting::{NodeConfig, default_data_directory};

use crate::admin::make_key;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The configuration of the cluster, in its directory.
const CONFIG_FILE: &str = "cluster.toml";
const KEY_FILE: &str = "cluster.key";
/// A process that ends sooner is started again only after this time.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// Time that processes have to stop in order.
const STOP_MAX: Duration = Duration::from_secs(15);

/// The options of `junctor dev`.
#[derive(Debug, Args)]
pub struct DevOptions {
    /// Folder of the cluster's files [default: junctor-dev in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Number of data nodes of a new cluster [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    data_nodes: Option<u8>,
    /// Replicas of each partition of a new cluster [default: 2, or 1 with one data node]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=4))]
    replicas: Option<u8>,
    /// Number of SQL nodes of a new cluster [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    sql_nodes: Option<u8>,
    /// Do not start a process again when it ends
    #[arg(long)]
    no_restart: bool,
}

/// News of the processes, and the request to stop.
enum News {
    /// A line of its standard output.
    Line(usize, String),
    /// The process has ended: its standard output is closed.
    Ended(usize),
    /// This one is to stop.
    Stop,
}

/// One process of the cluster.
struct Member {
    node: MemberNode,
    /// The port for clients, on a SQL node.
    port: Option<u16>,
    child: Child,
    has_ended: bool,
    started: Instant,
    is_ready: bool,
    /// When it is started again, after its end.
    restart_at: Option<Instant>,
}

/// Ends this process when the one that started it ends.
///
/// # Errors
/// The other process has ended already.
pub fn end_with_parent() -> Result<()> {
    let before = rustix::process::getppid();
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    if before != rustix::process::getppid() {
        return Err("the process that started this one has ended".into());
    }
    Ok(())
}

/// Runs a cluster until a signal stops it.
///
/// # Errors
/// The directory cannot be used, or a process cannot be started or ends with an error at its first start.
#[expect(clippy::disallowed_methods, reason = "this process starts nodes, and is none itself")]
pub fn run(options: &DevOptions) -> Result<()> {
    let mut stop = signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT])?;
    let folder = folder(options)?;
    let config = prepare(&folder, options)?;
    let (sender, receiver) = channel();
    let stopper = sender.clone();
    std::thread::spawn(move || {
        if stop.forever().next().is_some() {
            let _ = stopper.send(News::Stop);
        }
    });
    let restarts = !options.no_restart;
    let mut cluster = Cluster { folder, sender, members: Vec::new(), is_announced: false, restarts };
    let result = cluster.start(&config).and_then(|()| cluster.watch(&receiver));
    cluster.end(&receiver);
    result
}

fn folder(options: &DevOptions) -> Result<PathBuf> {
    let variable = |name: &str| std::env::var(name).ok();
    let default = || {
        let folder = default_data_directory(variable("XDG_STATE_HOME").as_deref(), variable("HOME").as_deref())?;
        Some(PathBuf::from(format!("{folder}-dev")))
    };
    let folder = options.data_dir.clone().or_else(default);
    let folder = folder.ok_or("no folder for the cluster: set HOME or XDG_STATE_HOME, or use --data-dir")?;
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(std::path::absolute(folder)?)
}

/// The nodes of the cluster in the folder, and the ports for clients. Makes a new cluster in an empty folder.
fn prepare(folder: &Path, options: &DevOptions) -> Result<NodeConfig> {
    let path = folder.join(CONFIG_FILE);
    if !path.exists() {
        let key = folder.join(KEY_FILE);
        if !key.exists() {
            make_key(&key)?;
        }
        let data = options.data_nodes.unwrap_or(2);
        let replicas = options.replicas.unwrap_or(data.min(2));
        let text = new_config(folder, data, replicas, options.sql_nodes.unwrap_or(2))?;
        let new = folder.join("cluster.toml.new");
        std::fs::write(&new, text)?;
        std::fs::rename(&new, &path)?;
    }
    let mut config = NodeConfig::default();
    junctor_node::config_file::read_file(&path, &mut config)?;
    check_options(&config, options)?;
    Ok(config)
}

/// Refuses numbers of nodes that an existing cluster does not have.
fn check_options(config: &NodeConfig, options: &DevOptions) -> Result<()> {
    let nodes = &config.cluster.nodes;
    let data = nodes.iter().filter(|it| it.roles.data).count();
    let sql = nodes.iter().filter(|it| it.roles.sql).count();
    let joining = |group: u8| nodes.iter().filter(|it| it.roles.joins == Some(group)).count();
    let forming = nodes.iter().filter(|it| it.roles.data && it.roles.joins.is_none()).count();
    let groups = forming / usize::from(config.cluster.replicas).max(1);
    let added = (0..groups as u8).map(joining).min().unwrap_or_default();
    let new = "a cluster cannot change it yet; use another --data-dir for a new cluster";
    let list = "change `nodes` in cluster.toml, with roles such as `data,added:0`, as docs/operations.md says";
    for (option, wanted, present, advice) in [
        ("--data-nodes", options.data_nodes, data, new),
        ("--replicas", options.replicas, usize::from(config.cluster.replicas) + added, list),
        ("--sql-nodes", options.sql_nodes, sql, new),
    ] {
        if wanted.is_some_and(|wanted| usize::from(wanted) != present) {
            return Err(format!("{option}: the cluster in this directory has {present}; {advice}").into());
        }
    }
    Ok(())
}

/// The configuration file of a new cluster: data nodes, a management node, SQL nodes.
fn new_config(folder: &Path, data: u8, replicas: u8, sql: u8) -> Result<String> {
    // All are bound at a time, so that no port is chosen twice.
    let count = usize::from(data) + 1 + usize::from(sql);
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<std::io::Result<_>>()?;
    let roles = |index: usize| match index {
        _ if index < usize::from(data) => "data",
        _ if index == usize::from(data) => "management",
        _ => "sql",
    };
    let mut text = String::from("# The cluster of `junctor dev`. Every node reads this file.\n");
    writeln!(text, "cluster_name = \"dev\"")?;
    writeln!(text, "cluster_key_file = {:?}", folder.join(KEY_FILE))?;
    writeln!(text, "NoOfReplicas = {replicas}")?;
    // The processes share few CPUs, with each other and with everything else.
    writeln!(text, "node_silence_max_ms = 4000\nStartPartialTimeout = 10000\ncpu_binding = false\nNumCPUs = 1")?;
    writeln!(text, "TotalMemory = \"256M\"\nFragmentLogFileSize = \"16M\"")?;
    writeln!(text, "nodes = [")?;
    for (index, listener) in listeners.iter().enumerate() {
        writeln!(text, "    \"{} {} {}\",", index + 1, roles(index), listener.local_addr()?)?;
    }
    writeln!(text, "]")?;
    Ok(text)
}

struct Cluster {
    folder: PathBuf,
    sender: Sender<News>,
    members: Vec<Member>,
    is_announced: bool,
    /// Whether members are started again when they end.
    restarts: bool,
}

impl Cluster {
    fn start(&mut self, config: &NodeConfig) -> Result<()> {
        for node in &config.cluster.nodes {
            let folder = self.folder.join(format!("node-{}", node.node.0));
            std::fs::create_dir_all(&folder)?;
            let port = if node.roles.sql { Some(client_port(&folder)?) } else { None };
            let child = self.spawn(self.members.len(), node, port)?;
            let member = Member {
                node: node.clone(),
                port,
                child,
                has_ended: false,
                started: now(),
                is_ready: false,
                restart_at: None,
            };
            self.members.push(member);
            self.announce_member(self.members.len() - 1);
        }
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "this process starts nodes, and is none itself")]
    fn spawn(&self, index: usize, node: &MemberNode, port: Option<u16>) -> Result<Child> {
        let folder = self.folder.join(format!("node-{}", node.node.0));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("log.txt"))?;
        let data = folder.join("data");
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", "--end-with-parent", "--config"]).arg(self.folder.join(CONFIG_FILE));
        command.args(["--node-id", &node.node.0.to_string(), "--data-dir"]).arg(data);
        if self.restarts {
            command.arg("--supervised");
        }
        if let Some(port) = port {
            command.args(["--port", &port.to_string()]);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
        let sender = self.sender.clone();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
                    let _ = sender.send(News::Line(index, line));
                }
                let _ = sender.send(News::Ended(index));
            });
        }
        Ok(child)
    }

    fn announce_member(&self, index: usize) {
        let Member { node, port, child, .. } = &self.members[index];
        let address = port.map_or_else(|| node.address.to_string(), |port| format!("127.0.0.1:{port}"));
        println!("node {} {} pid {} address {address}", node.node.0, node.roles, child.id());
        let _ = std::io::stdout().flush();
    }

    /// Serves until a signal comes, or until no process is left.
    fn watch(&mut self, news: &Receiver<News>) -> Result<()> {
        loop {
            let restart_at = self.members.iter().filter_map(|it| it.restart_at).min();
            let time = restart_at.map_or(Duration::MAX, |at| at.saturating_duration_since(now()));
            match news.recv_timeout(time) {
                Ok(News::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(News::Line(index, line)) if line.starts_with("ready:") => {
                    self.members[index].is_ready = true;
                    self.announce();
                }
                Ok(News::Ended(index)) => self.on_end(index)?,
                Ok(News::Line(..)) => {}
                Err(RecvTimeoutError::Timeout) => self.restart()?,
            }
            if self.members.iter().all(|it| it.restart_at.is_none() && it.has_ended) {
                return Err("all processes have ended".into());
            }
        }
    }

    /// Plans the next start of a process that has ended, unless SHUTDOWN or SIGTERM has stopped it in order.
    fn on_end(&mut self, index: usize) -> Result<()> {
        let (restarts, member) = (self.restarts, &mut self.members[index]);
        let is_clean = member.reap();
        if !restarts || (is_clean && member.is_ready) {
            return Ok(());
        }
        if !self.is_announced && !member.is_ready && member.started.elapsed() < RESTART_PAUSE {
            let (id, folder) = (member.node.node.0, self.folder.display());
            return Err(format!("node {id} did not start; see {folder}/node-{id}/log.txt").into());
        }
        member.is_ready = false;
        member.restart_at = Some((member.started + RESTART_PAUSE).max(now()));
        Ok(())
    }

    /// Starts the processes again whose time has come.
    fn restart(&mut self) -> Result<()> {
        for index in 0..self.members.len() {
            let member = &self.members[index];
            if member.restart_at.is_none_or(|at| at > now()) {
                continue;
            }
            let child = self.spawn(index, &member.node, member.port)?;
            let member = &mut self.members[index];
            (member.child, member.has_ended, member.started, member.restart_at) = (child, false, now(), None);
            self.announce_member(index);
        }
        Ok(())
    }

    /// Says once that all nodes serve.
    fn announce(&mut self) {
        if self.is_announced || !self.members.iter().all(|it| it.is_ready) {
            return;
        }
        self.is_announced = true;
        let addresses: Vec<String> =
            self.members.iter().filter_map(|it| it.port).map(|port| format!("127.0.0.1:{port}")).collect();
        println!("ready: mysql {}", addresses.join(","));
        let _ = std::io::stdout().flush();
    }

    /// Stops all processes: first in order, then at once.
    fn end(&mut self, news: &Receiver<News>) {
        // A management node that is still there would evict the data node that ends first.
        for has_data in [false, true] {
            let is_left = |it: &Member| it.node.roles.data == has_data && !it.has_ended;
            for member in self.members.iter().filter(|it| is_left(it)) {
                member.signal(rustix::process::Signal::TERM);
            }
            let deadline = now() + STOP_MAX;
            while self.members.iter().any(is_left) {
                match news.recv_timeout(deadline.saturating_duration_since(now())) {
                    Ok(News::Ended(index)) => _ = self.members[index].reap(),
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
            for member in self.members.iter_mut().filter(|it| is_left(it)) {
                member.signal(rustix::process::Signal::KILL);
                member.reap();
            }
        }
    }
}

impl Member {
    fn signal(&self, signal: rustix::process::Signal) {
        if let Ok(id) = i32::try_from(self.child.id())
            && let Some(pid) = rustix::process::Pid::from_raw(id)
        {
            // It may have ended.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Waits for the end of the process, which is near. Returns whether it stopped in order, for good.
    fn reap(&mut self) -> bool {
        self.has_ended = true;
        self.child.wait().is_ok_and(|status| status.success())
    }
}

#[allow(clippy::disallowed_methods, reason = "outside every block")]
fn now() -> Instant {
    Instant::now()
}

/// The port of a SQL node for clients, which stays the same: it is in a file of the node's folder.
fn client_port(folder: &Path) -> Result<u16> {
    let file = folder.join("port");
    if let Ok(text) = std::fs::read_to_string(&file)
        && let Ok(port) = text.trim().parse()
    {
        return Ok(port);
    }
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    std::fs::write(&file, format!("{port}\n"))?;
    Ok(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_cluster_has_every_node_once_in_a_file_that_nodes_read() {
        let text = new_config(Path::new("/tmp/x"), 4, 2, 3).unwrap();
        let mut config = NodeConfig::default();
        junctor_node::config_file::read_text("cluster.toml", &text, &mut config).unwrap();
        let roles: Vec<String> = config.cluster.nodes.iter().map(|it| it.roles.to_string()).collect();
        assert_eq!(roles, ["data", "data", "data", "data", "management", "sql", "sql", "sql"]);
        assert_eq!(config.cluster.replicas, 2);
    }
}
