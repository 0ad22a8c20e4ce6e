//! The nodes: one per setup, filled once. Nodes that are not being measured are paused with SIGSTOP, so that
//! not even their timers disturb the measurement.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use super::data;
use super::setup::Setup;
use crate::Outcome;
use crate::failure::Explain;
use crate::mysql::Connection;
use crate::process::junctor::start_with_ready_line;
use crate::process::server::command_killed_with_parent;
use crate::process::{Server, TemporaryFolder};

const READY_TIMEOUT_S: u64 = 120;
/// Memory of a node: enough for tables of a million rows and for the old versions that updates leave.
const MEMORY: &str = "1G";

/// A running node, whatever hosts it: how to connect to it, pause it and stop it.
pub trait Node {
    /// Connects as root. An empty `database` selects none.
    ///
    /// # Errors
    /// The node refuses the connection.
    fn connect(&self, database: &str) -> Outcome<Connection>;

    /// Id of the process that the threads belong to.
    fn process_id(&self) -> u32;

    /// Pauses the process until [`Node::resume`].
    ///
    /// # Errors
    /// The node has ended.
    fn pause(&self) -> Outcome<()>;

    /// Continues the process.
    ///
    /// # Errors
    /// The node has ended.
    fn resume(&self) -> Outcome<()>;

    /// Checks that the node still runs.
    ///
    /// # Errors
    /// The node has ended. The error includes the end of its log.
    fn require_alive(&mut self) -> Outcome<()>;

    /// Stops the node.
    ///
    /// # Errors
    /// The node did not stop cleanly.
    fn stop(self: Box<Self>) -> Outcome<()>;
}

/// A node that runs as a process and is reached over 127.0.0.1.
pub struct ProcessNode(Server);

impl ProcessNode {
    /// Starts the binary with a setup. Threads are not bound to CPUs, because clients and other programs
    /// share the CPUs.
    ///
    /// # Errors
    /// The node does not start. The error includes the end of its log.
    pub fn start(binary: &Path, setup: &Setup) -> Outcome<ProcessNode> {
        let folder = TemporaryFolder::new("lab")?;
        let mut command = command_killed_with_parent(&binary.to_string_lossy());
        command.args(["serve", "--port", "0", "--no-cpu-binding", "--total-memory", MEMORY, "--in-memory"]);
        if let Some(thread_config) = &setup.thread_config {
            command.args(["--thread-config", thread_config]);
        }
        // In its own process group, the node does not receive the terminal's SIGINT; this program stops it.
        command.process_group(0);
        let server = start_with_ready_line("Junctor", command, "ready: mysql ", folder, READY_TIMEOUT_S)
            .map_err(|failure| failure.to_string())
            .explain(setup.name)?;
        let routing = format!("SET GLOBAL read_routing = '{}'", setup.routing);
        server.execute(&[&routing])?;
        Ok(ProcessNode(server))
    }

    fn address(&self) -> SocketAddr {
        self.0.address
    }

    fn signal(&self, signal: Signal) -> Outcome<()> {
        if let Some(process) = Pid::from_raw(self.0.process_id().cast_signed()) {
            kill_process(process, signal)?;
        }
        Ok(())
    }
}

impl Node for ProcessNode {
    fn connect(&self, database: &str) -> Outcome<Connection> {
        Ok(Connection::open(self.address(), database)?)
    }

    fn process_id(&self) -> u32 {
        self.0.process_id()
    }

    fn pause(&self) -> Outcome<()> {
        self.signal(Signal::STOP)
    }

    fn resume(&self) -> Outcome<()> {
        self.signal(Signal::CONT)
    }

    fn require_alive(&mut self) -> Outcome<()> {
        self.0.require_alive()
    }

    fn stop(self: Box<Self>) -> Outcome<()> {
        self.resume()?;
        self.0.stop()
    }
}

/// Starts a node, fills its tables, and pauses it.
///
/// # Errors
/// The node does not start, or refuses a statement.
pub fn start_filled(binary: &Path, setup: &Setup, rows: u64) -> Outcome<Box<dyn Node>> {
    let node = ProcessNode::start(binary, setup)?;
    data::fill(&mut node.connect("")?, rows)?;
    node.pause()?;
    Ok(Box::new(node))
}
