//! A node as a part of another program.

use std::net::SocketAddr;

use junctor_front::Protocol;
use junctor_kernel::{ConnectError, MemoryStream};

use crate::setting::NodeConfig;
use crate::start::{Connector, RunningServer, StartError, start};

/// What a node shall be like, before it is started.
///
/// Unless [`NodeBuilder::listen`] is called it opens no port and has connections within the process only.
#[derive(Clone, Debug)]
#[must_use]
pub struct NodeBuilder {
    config: NodeConfig,
}

impl NodeBuilder {
    /// The whole configuration, in place of what was said before. Whether and where it listens is part of it.
    pub fn config(self, config: NodeConfig) -> NodeBuilder {
        NodeBuilder { config }
    }

    /// Bytes of memory for data; 70 per cent of what the machine or its cgroup allows unless said.
    pub fn total_memory_bytes(mut self, bytes: u64) -> NodeBuilder {
        self.config.total_memory_bytes = Some(bytes);
        self
    }

    /// Threads and what they carry, in NDB's ThreadConfig grammar; by the CPUs unless said.
    pub fn thread_config(mut self, text: &str) -> NodeBuilder {
        self.config.thread_config = Some(text.into());
        self
    }

    /// CPUs that the automatic placement uses at most; all unless said.
    pub fn cpu_count_max(mut self, cpus: u32) -> NodeBuilder {
        self.config.cpu_count_max = Some(cpus);
        self
    }

    /// Whether the node's threads are bound to CPUs. They are not unless said, since the program has threads of its own.
    pub fn cpu_binding(mut self, binds: bool) -> NodeBuilder {
        self.config.cpu_binding = binds;
        self
    }

    /// Connections at once, within the process and over the network together; 16,384 unless said.
    pub fn max_connections(mut self, connections: u32) -> NodeBuilder {
        self.config.max_connections = connections;
        self
    }

    /// The folder of the node's files; `junctor-data` unless said.
    pub fn data_directory(mut self, folder: &str) -> NodeBuilder {
        self.config.data_directory = folder.into();
        self
    }

    /// A user besides root, who may log in from anywhere.
    pub fn user(mut self, name: &str, password: &str) -> NodeBuilder {
        self.config.users.push((name.into(), password.into()));
        self
    }

    /// Listens for MySQL clients, too; port 0 takes a free one.
    pub fn listen(mut self, address: SocketAddr) -> NodeBuilder {
        self.config.listens = true;
        self.config.listen_address = address.ip();
        self.config.port = address.port();
        self
    }

    /// Starts the node; returns when all its threads run.
    ///
    /// # Errors
    /// What is wrong with the configuration or the machine, as a sentence.
    pub fn start(&self) -> Result<Node, StartError> {
        start(&self.config).map(|server| Node { server: Some(server) })
    }
}

/// A node that runs in this process. Dropping it stops it.
pub struct Node {
    /// Nothing only while it is being stopped.
    server: Option<RunningServer>,
}

impl Node {
    /// A node with defaults that suit a part of a program: no port is opened, threads are not bound to CPUs.
    pub fn builder() -> NodeBuilder {
        NodeBuilder { config: NodeConfig { listens: false, cpu_binding: false, ..NodeConfig::default() } }
    }

    /// A session of the typed client. User root needs no password within the process.
    ///
    /// # Errors
    /// 1045 for a wrong user or password, 1049 for an unknown database, 1040 when there are too many connections, 2003 when
    /// the node stops.
    pub async fn connect(
        &self,
        options: &junctor_client::Options,
    ) -> junctor_client::Result<junctor_client::Connection> {
        self.connector().open(options).await
    }

    /// A connection on which the program speaks a protocol itself.
    ///
    /// # Errors
    /// The node stops, or there are too many connections.
    pub fn stream(&self, protocol: Protocol) -> Result<MemoryStream, ConnectError> {
        self.server().connect(protocol)
    }

    /// Makes connections from any thread. It does not keep the node running.
    pub fn connector(&self) -> Connector {
        self.server().connector()
    }

    /// Where MySQL clients connect over the network, if they may.
    pub fn address(&self) -> Option<SocketAddr> {
        self.server().address()
    }

    /// What the user should know about the start.
    pub fn notices(&self) -> impl Iterator<Item = &str> {
        self.server().notices()
    }

    /// Stops the node: what is begun ends, its answers are sent, connections are closed. Returns whether all came to rest in
    /// time, which is 10 seconds.
    pub fn stop(mut self) -> bool {
        self.server.take().is_none_or(RunningServer::stop)
    }

    fn server(&self) -> &RunningServer {
        match &self.server {
            Some(server) => server,
            None => unreachable!("only what owns the node stops it"),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}
