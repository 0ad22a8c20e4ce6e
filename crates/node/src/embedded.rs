//! A node inside another program.

use std::net::SocketAddr;

use junctor_front::Protocol;
use junctor_kernel::{ConnectError, MemoryStream};

use crate::setting::NodeConfig;
use crate::start::{Connector, RunningServer, StartError, start};

/// The configuration of a node before its start.
///
/// Unless [`NodeBuilder::listen`] is called, the node opens no port and accepts only connections within the
/// process.
#[derive(Clone, Debug)]
#[must_use]
pub struct NodeBuilder {
    config: NodeConfig,
}

impl NodeBuilder {
    /// Replaces the whole configuration, including whether and where the node listens.
    pub fn config(self, config: NodeConfig) -> NodeBuilder {
        NodeBuilder { config }
    }

    /// Memory for data in bytes. Default: 70 per cent of what the machine or its cgroup allows.
    pub fn total_memory_bytes(mut self, bytes: u64) -> NodeBuilder {
        self.config.total_memory_bytes = Some(bytes);
        self
    }

    /// Threads and their modules, in NDB's ThreadConfig grammar. Default: chosen by the number of CPUs.
    pub fn thread_config(mut self, text: &str) -> NodeBuilder {
        self.config.thread_config = Some(text.into());
        self
    }

    /// Maximum number of CPUs that the automatic placement uses. Default: all.
    pub fn cpu_count_max(mut self, cpus: u32) -> NodeBuilder {
        self.config.cpu_count_max = Some(cpus);
        self
    }

    /// Whether the node's threads are bound to CPUs. Default: no, because the program has threads of its own.
    pub fn cpu_binding(mut self, binds: bool) -> NodeBuilder {
        self.config.cpu_binding = binds;
        self
    }

    /// Maximum number of connections, within the process and over the network together. Default: 16,384.
    pub fn max_connections(mut self, connections: u32) -> NodeBuilder {
        self.config.max_connections = connections;
        self
    }

    /// Keeps data in this folder: each commit is on disk before it is acknowledged, and the next node on the
    /// folder has it. Default: data is kept in memory only.
    pub fn data_directory(mut self, folder: &str) -> NodeBuilder {
        self.config.data_directory = folder.into();
        self.config.is_durable = true;
        self
    }

    /// Adds a user who may log in from anywhere.
    pub fn user(mut self, name: &str, password: &str) -> NodeBuilder {
        self.config.users.push((name.into(), password.into()));
        self
    }

    /// Listens for MySQL clients at this address; port 0 takes a free one.
    pub fn listen(mut self, address: SocketAddr) -> NodeBuilder {
        self.config.listens = true;
        self.config.listen_address = address.ip();
        self.config.port = address.port();
        self
    }

    /// Starts the node. Returns when all its threads run.
    ///
    /// # Errors
    /// The configuration is invalid, or the machine lacks a resource; the error's text says which.
    pub fn start(&self) -> Result<Node, StartError> {
        start(&self.config).map(|server| Node { server: Some(server) })
    }
}

/// A node that runs in this process. Dropping it stops it.
pub struct Node {
    /// `None` only while the node stops.
    server: Option<RunningServer>,
}

impl Node {
    /// Defaults for a node inside a program: it opens no port and does not bind threads to CPUs.
    pub fn builder() -> NodeBuilder {
        NodeBuilder { config: NodeConfig { listens: false, cpu_binding: false, ..NodeConfig::default() } }
    }

    /// Opens a session of the Rust driver. User root needs no password within the process.
    ///
    /// # Errors
    /// 1045 for a wrong user or password, 1049 for an unknown database, 1040 for too many connections, 2003
    /// if the node stops.
    pub async fn connect(
        &self,
        options: &junctor_client::Options,
    ) -> junctor_client::Result<junctor_client::Connection> {
        self.connector().open(options).await
    }

    /// Opens a connection on which the program itself speaks a protocol.
    ///
    /// # Errors
    /// The node stops, or has its maximum number of connections.
    pub fn stream(&self, protocol: Protocol) -> Result<MemoryStream, ConnectError> {
        self.server().connect(protocol)
    }

    /// A handle that opens connections from any thread. It does not keep the node running.
    pub fn connector(&self) -> Connector {
        self.server().connector()
    }

    /// The address for MySQL clients, if the node listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.server().address()
    }

    /// Notices about the start, such as lowered limits.
    pub fn notices(&self) -> impl Iterator<Item = &str> {
        self.server().notices()
    }

    /// Stops the node: statements under way finish, their answers are sent, connections are closed, and the
    /// log is written. Returns whether that was possible within 10 seconds.
    pub fn stop(mut self) -> bool {
        self.server.take().is_none_or(|server| server.stop().is_ok())
    }

    fn server(&self) -> &RunningServer {
        match &self.server {
            Some(server) => server,
            None => unreachable!("only the owner of the node stops it"),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            // A program that needs the result calls `stop`.
            let _ = server.stop();
        }
    }
}
