//! The nodes: one for each setup, filled once. Those that are not measured are stopped by the system, so that not even their
//! timers disturb.

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
use crate::process::server::bound_command;
use crate::process::{Server, TemporaryFolder};

const READY_TIME_MAX_S: u64 = 120;
/// For tables of a million rows and all that updates leave.
const MEMORY: &str = "1G";

/// A node of which the clients only see connections.
pub trait Node {
    /// A connection of the user root; an empty database is none.
    ///
    /// # Errors
    /// The node refuses.
    fn connect(&self, database: &str) -> Outcome<Connection>;

    /// The process that the node's threads belong to.
    fn process_id(&self) -> u32;

    /// Stands still until [`Node::resume`].
    ///
    /// # Errors
    /// The node is gone.
    fn pause(&self) -> Outcome<()>;

    /// Goes on.
    ///
    /// # Errors
    /// The node is gone.
    fn resume(&self) -> Outcome<()>;

    /// An error if the node has ended by itself.
    ///
    /// # Errors
    /// That, with the end of its log.
    fn require_alive(&mut self) -> Outcome<()>;

    /// Ends the node.
    ///
    /// # Errors
    /// It did not end cleanly.
    fn stop(self: Box<Self>) -> Outcome<()>;
}

/// A node in a process of its own, reached over the loopback.
pub struct ProcessNode(Server);

impl ProcessNode {
    /// Starts the binary as a setup wants it. Threads are not bound, because clients and other programs run on the same CPUs.
    ///
    /// # Errors
    /// It does not start; the end of its log is in the failure.
    pub fn start(binary: &Path, setup: &Setup) -> Outcome<ProcessNode> {
        let folder = TemporaryFolder::new("lab")?;
        let mut command = bound_command(&binary.to_string_lossy());
        command.args(["serve", "--port", "0", "--no-cpu-binding", "--total-memory", MEMORY, "--data-dir"]);
        command.arg(folder.path().join("data"));
        if let Some(thread_config) = &setup.thread_config {
            command.args(["--thread-config", thread_config]);
        }
        // Ctrl-C goes to this program alone, which ends the nodes.
        command.process_group(0);
        let server = start_with_ready_line("Junctor", command, "ready: mysql ", folder, READY_TIME_MAX_S)
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

/// Starts a node with full tables, and pauses it.
///
/// # Errors
/// It does not start, or refuses a statement.
pub fn start_filled(binary: &Path, setup: &Setup, rows: u64) -> Outcome<Box<dyn Node>> {
    let node = ProcessNode::start(binary, setup)?;
    data::fill(&mut node.connect("")?, rows)?;
    node.pause()?;
    Ok(Box::new(node))
}
