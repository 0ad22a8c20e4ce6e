//! The start of a real node: it reads the machine's limits, chooses the placement, and starts the threads.

use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::placement::{PlacementPlan, ThreadConfig, Topology};
use junctor_cluster::{BackupDesk, Supervision};
use junctor_front::account::{Account, Accounts, Credential};
use junctor_front::{EXTRA_LISTENER, Protocol, Readiness};
use junctor_kernel::real::{Node, NodeOptions, RunningNode, StopHandle};
use junctor_kernel::transport::security::ClientSecurity;
use junctor_kernel::{ConnectError, KernelLimits, MemoryStream, NodeLayout};
use junctor_model::password::caching_sha2::{SALT_BYTES, StoredPassword};
use junctor_signals::journal::Journal;
use junctor_signals::restart_progress::RestartProgress;
use junctor_signals::{Signal, crash_point};
use junctor_tls::client_tls::ClientTls;

use crate::cluster_config;
use crate::cluster_join;
use crate::cluster_start::{self, ClusterStart};
use crate::data_folder;
use crate::http::{HttpServer, Probe};
use crate::journal_writer::{self, LogFiles};
use crate::machine;
use crate::memory_transport::MemoryTransport;
use crate::role::{NodeHost, Shared};
use crate::server_files;
use crate::setting::{NodeConfig, SOCKET_PATH_BYTES_MAX, show_bytes};
use crate::temporary_files;

/// Why a node did not start, as a sentence for the user.
#[derive(Debug)]
pub struct StartError(pub String);

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// Why the stop of a node was not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopError {
    /// The log waits for room on its device. Commits that were acknowledged before they were on disk may be
    /// lost; all others are on disk.
    DeviceFull,
    /// Statements or requests for files were under way for longer than 10 seconds, and were cut off.
    TimeOver,
}

impl fmt::Display for StopError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::DeviceFull => {
                "the last part of the log could not be written, because its device is full; commits that were \
                 acknowledged with commit_durability = memory may be lost, and all others are on disk; make room \
                 before the next start"
            }
            Self::TimeOver => {
                "statements that were under way for more than 10 seconds were cut off; every commit that was \
                 acknowledged with commit_durability = disk is on disk"
            }
        })
    }
}

impl std::error::Error for StopError {}

/// A node that serves clients.
pub struct RunningServer {
    node: RunningNode,
    placement: String,
    notices: Vec<String>,
    /// Whether the log waits for room on its device.
    log_waits_for_room: Arc<AtomicBool>,
    /// How the process and main tell each other about stops.
    supervision: Supervision,
    /// Where a node of a cluster listens for the others.
    link_address: Option<SocketAddr>,
    /// The Unix socket.
    socket: Option<PathBuf>,
    http: Option<HttpServer>,
    /// Whether the node is being stopped, for those who ask over HTTP.
    stopping: Arc<AtomicBool>,
    /// Writes the logs. It ends when the blocks have ended.
    log_writer: JoinHandle<()>,
    /// The lock file of the data directory. While it is open, no other process can use the directory.
    _lock: Option<File>,
}

/// Opens connections without a socket to one node, from any thread. Does not keep the node running.
#[derive(Clone)]
pub struct Connector(junctor_kernel::Connector);

impl Connector {
    /// See [`RunningServer::connect`].
    ///
    /// # Errors
    /// The node stops, or has its maximum number of connections.
    pub fn connect(&self, protocol: Protocol) -> Result<MemoryStream, ConnectError> {
        self.0.connect(protocol.number())
    }

    /// Opens a session of the Rust driver.
    ///
    /// # Errors
    /// As [`junctor_client::Connection::open`]; 2003 if the node stops or has its maximum number of
    /// connections.
    pub async fn open(&self, options: &junctor_client::Options) -> junctor_client::Result<junctor_client::Connection> {
        let stream = self.connect(Protocol::Native).map_err(|error| junctor_client::Error::not_connected(&error))?;
        junctor_client::Connection::open(Box::new(MemoryTransport(stream)), options).await
    }
}

impl RunningServer {
    /// The address of the MySQL protocol, if the node listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listens_at(Protocol::MySql)
    }

    /// The address of the native protocol, if the node listens for it.
    pub fn native_address(&self) -> Option<SocketAddr> {
        self.listens_at(Protocol::Native)
    }

    /// The address at which a node of a cluster listens for the others.
    pub fn link_address(&self) -> Option<SocketAddr> {
        self.link_address
    }

    /// The address of the port for administrators, if the node has one.
    pub fn extra_address(&self) -> Option<SocketAddr> {
        self.node.local_addresses().get(usize::from(EXTRA_LISTENER)).copied().flatten()
    }

    /// The address of HTTP, if the node serves it.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(HttpServer::address)
    }

    /// The path of the Unix socket, if the node has one.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    fn listens_at(&self, protocol: Protocol) -> Option<SocketAddr> {
        self.node.local_addresses().get(usize::from(protocol.number())).copied().flatten()
    }

    /// Opens a connection within this process, without a socket. It counts against `max_connections` and
    /// comes from the local machine, so that user root may log in over it. The node need not listen.
    ///
    /// # Errors
    /// The node stops, or has its maximum number of connections.
    pub fn connect(&self, protocol: Protocol) -> Result<MemoryStream, ConnectError> {
        self.node.connect(protocol.number())
    }

    /// A handle that opens such connections from any thread.
    pub fn connector(&self) -> Connector {
        Connector(self.node.connector())
    }

    /// The placement and the reason for it, on one line.
    pub fn placement(&self) -> &str {
        &self.placement
    }

    /// Notices about the start, such as lowered limits.
    pub fn notices(&self) -> impl Iterator<Item = &str> {
        self.notices.iter().map(String::as_str).chain(self.node.notices().iter().map(String::as_str))
    }

    /// Stops the node: statements under way finish, their answers are sent, and the log is written. A node
    /// with data leaves the commits of its cluster at once, so its own clients may get no answers to theirs.
    ///
    /// # Errors
    /// That was not possible within 10 seconds. The node has ended all the same.
    pub fn stop(self) -> Result<(), StopError> {
        self.stopping.store(true, Ordering::Relaxed);
        let has_stopped = self.node.stop();
        drop(self.http);
        // A log on a device that does not answer must not keep the process.
        for _ in 0..LOG_WAITS_MAX {
            if self.log_writer.is_finished() {
                break;
            }
            std::thread::park_timeout(STOP_POLL);
        }
        // A log that waits for room is idle until its next attempt.
        if self.log_waits_for_room.load(Ordering::Relaxed) {
            return Err(StopError::DeviceFull);
        }
        if has_stopped { Ok(()) } else { Err(StopError::TimeOver) }
    }

    /// Waits until a statement or a [`StopRequest`] requests the node's stop.
    pub fn wait_for_stop_request(&self) {
        self.node.wait_for_stop_request();
    }

    /// Requests the node's stop from other threads.
    pub fn stop_handle(&self) -> StopRequest {
        let wants_stop = self.supervision.is_member.then(|| Arc::clone(&self.supervision.wants_stop));
        StopRequest { handle: self.node.stop_handle(), wants_stop }
    }

    /// The part of the node in a backup of its cluster, for a thread that copies its files.
    pub fn backup_desk(&self) -> BackupDesk {
        self.supervision.backup.clone()
    }

    /// Whether a statement has requested a stop after which the process is started again.
    pub fn wants_restart(&self) -> bool {
        self.supervision.wants_restart.load(Ordering::Relaxed)
    }
}

/// Requests the stop of a node.
pub struct StopRequest {
    handle: StopHandle,
    /// Set for main of a node of a cluster, which leaves the cluster before it stops.
    wants_stop: Option<Arc<AtomicBool>>,
}

impl StopRequest {
    /// Requests the stop. A node of a cluster gets some time to leave the cluster before.
    pub fn request_stop(&self) {
        if let Some(wants_stop) = &self.wants_stop {
            wants_stop.store(true, Ordering::Relaxed);
            for _ in 0..LEAVE_WAITS_MAX {
                if self.handle.is_stopping() {
                    return;
                }
                std::thread::park_timeout(STOP_POLL);
            }
        }
        self.handle.request_stop();
    }
}

/// Number of intervals that a node of a cluster has to leave it.
const LEAVE_WAITS_MAX: u32 = 40;

/// Number of intervals that a stop waits for the last lines of the logs.
const LOG_WAITS_MAX: u32 = 20;

/// Interval at which the starting thread reports the progress, and checks whether the node is being stopped.
const STOP_POLL: Duration = Duration::from_millis(50);

/// Starts a node, and waits until it has recovered its data.
///
/// # Errors
/// The configuration is invalid, or the machine lacks a resource; the error's text says which.
pub fn start(config: &NodeConfig) -> Result<RunningServer, StartError> {
    start_and_report(config, &mut |_| ControlFlow::Continue(()))?.ok_or_else(stopped_early)
}

fn stopped_early() -> StartError {
    StartError("the node was stopped while it recovered its data".into())
}

/// As [`start`]. Passes the progress of recovery to `report` about 20 times a second, and once at its end.
/// Returns `None` if `report` breaks off the recovery. The node has ended then as if it had been killed,
/// which loses nothing: the next start recovers the same data.
///
/// # Errors
/// As [`start`].
pub fn start_and_report(
    config: &NodeConfig,
    report: &mut dyn FnMut(&RestartProgress) -> ControlFlow<()>,
) -> Result<Option<RunningServer>, StartError> {
    let mut config = config.clone();
    let mut notices = Vec::new();
    notices.extend(cluster_join::complete(&mut config).map_err(StartError)?);
    let cluster = cluster_config::plan(&config).map_err(StartError)?;
    if let Some(plan) = &cluster {
        config.listens &= plan.own.roles.sql;
    }
    let topology = Topology::read(Path::new("/"), &machine::allowed_cpus());
    notices.extend(topology.notices.iter().cloned());
    let plan = placement(&config, &topology)?;
    notices.extend(plan.notices.iter().cloned());
    let layout = NodeLayout::from(&plan);

    // Only sockets need a file each; connections in memory do not.
    let max_connections = match config.listens {
        true => machine::allow_files(config.max_connections, &mut notices),
        false => config.max_connections,
    };
    let socket_path = socket_path(&mut config, &mut notices);
    if config.skips_grants {
        notices.push("skip-grant-tables: clients of the Unix socket have all rights until FLUSH PRIVILEGES".into());
    }
    let memory_bytes = match config.total_memory_bytes {
        Some(bytes) => bytes,
        None => machine::memory_allowed_bytes() / 10 * 7,
    };
    server_files::resolve(&mut config)?;
    config = NodeConfig { max_connections, total_memory_bytes: Some(memory_bytes), ..config };
    let lock = prepare_folders(&mut config)?;
    // A node without data has no log, only its place in the cluster.
    config.is_durable &= cluster.as_ref().is_none_or(|it| it.own.roles.data);
    let started = cluster.as_ref().map(|plan| cluster_start::begin(&config, plan)).transpose()?;
    let mut shared = Shared::new(&config, accounts(&config), &plan).map_err(StartError)?;
    let mut links = None;
    if let Some(ClusterStart { settings, links: own, log_lines }) = started {
        shared = shared.with_member(settings, log_lines).with_links(own.figures.clone());
        links = Some(own);
    }
    let tls = client_tls(&config)?.map(Arc::new);
    if let Some(tls) = &tls {
        shared = shared.with_tls(Arc::clone(tls) as Arc<dyn ClientSecurity>, tls.file_names());
    }
    let (journal, log_writer) = start_logs(&config)?;
    let shared = Arc::new(shared.with_journal(journal));
    let (readiness, progress) = (Arc::clone(shared.readiness()), Arc::clone(shared.progress()));
    let (log_waits_for_room, supervision) = (Arc::clone(shared.log_waits_for_room()), shared.supervision().clone());

    let options = NodeOptions {
        node: cluster.as_ref().map_or_else(|| NodeOptions::default().node, |plan| plan.own.node),
        links,
        // The position of a listener is the number of its protocol.
        listeners: (Protocol::ALL.iter().map(|protocol| listen_address(&config, *protocol)))
            .chain([extra_address(&config)])
            .collect(),
        unix_listeners: socket_path.iter().map(|path| (Protocol::MySql.number(), path.clone())).collect(),
        limits: KernelLimits {
            sockets_max: socket_count_max(&config).max(KernelLimits::default().sockets_max),
            ..KernelLimits::default()
        },
        data_folder: PathBuf::from(config.data_folder()),
        file_backend: config.file_backend,
        pin: config.cpu_binding,
        spin: config.spin.settings(),
        send: config.send,
        crash: crash_point::armed(std::env::var(crash_point::CRASH_VARIABLE).ok()).map_err(StartError)?,
        ..NodeOptions::default()
    };
    let make_host = move |assignment: junctor_kernel::ThreadAssignment| NodeHost::new(&assignment, &shared);
    let node = Node::start_linked::<Signal, NodeHost, _>(&layout, options, make_host)
        .map_err(|error| StartError(error.to_string()))?;
    let stopping = Arc::new(AtomicBool::new(false));
    let http = start_http(&config, (&readiness, &stopping, &progress), (&node, supervision.is_member))?;
    while !readiness.is_open() {
        if node.is_stopping() {
            return Err(stopped_early());
        }
        // The block that opens the node for clients unparks this thread. A stop does not, so the wait has a
        // limit.
        std::thread::park_timeout(STOP_POLL);
        // A node that serves clients by now must stop in order.
        if report(&progress).is_break() && !readiness.is_open() {
            return Ok(None);
        }
    }
    // Recovery may have ended before the first look. There is nothing left to break off.
    let _ = report(&progress);
    if let Some(tls) = &tls {
        tls.make_password_key().map_err(|error| StartError(error.to_string()))?;
    }
    let names: Vec<&str> = plan.threads.iter().map(|thread| thread.name.as_str()).collect();
    let placement =
        format!("{} threads: {} memory: {}", plan.reason, names.join(","), show_bytes(memory_bytes & !((1 << 20) - 1)));
    Ok(Some(RunningServer {
        node,
        placement,
        notices,
        log_waits_for_room,
        supervision,
        link_address: cluster.as_ref().map(|plan| plan.link_address),
        socket: socket_path,
        http,
        stopping,
        log_writer,
        _lock: lock,
    }))
}

/// Locks the folder of the node's files, if it has one, and finds that of temporary files.
fn prepare_folders(config: &mut NodeConfig) -> Result<Option<File>, StartError> {
    let has_folder = config.is_durable || config.cluster.node_id.is_some();
    let lock = if has_folder { Some(data_folder::lock(config)?) } else { None };
    temporary_files::prepare(config)?;
    Ok(lock)
}

fn placement(config: &NodeConfig, topology: &Topology) -> Result<PlacementPlan, StartError> {
    let unpinned = !config.cpu_binding;
    let plan = match &config.thread_config {
        Some(text) => {
            let parsed = ThreadConfig::parse(text)
                .map_err(|error| StartError(format!("ThreadConfig: {}", error.render(text))))?;
            PlacementPlan::from_thread_config(&parsed, topology, unpinned)
        }
        None => PlacementPlan::automatic(topology, config.cpu_count_max, unpinned),
    };
    plan.map_err(|error| StartError(format!("ThreadConfig: {error}")))
}

/// The path of the Unix socket. A path by default that is too long is not used.
fn socket_path(config: &mut NodeConfig, notices: &mut Vec<String>) -> Option<PathBuf> {
    let path = config.socket_path()?;
    let length = path.as_os_str().len();
    if config.socket.is_none() && length > SOCKET_PATH_BYTES_MAX {
        notices.push(format!(
            "no Unix socket: the path {} has {length} bytes, and at most {SOCKET_PATH_BYTES_MAX} are possible; \
             the setting socket can name a shorter one",
            path.display()
        ));
        config.socket = Some(String::new());
        return None;
    }
    Some(path)
}

/// The address at which a protocol listens; `None` if it does not.
fn listen_address(config: &NodeConfig, protocol: Protocol) -> Option<SocketAddr> {
    let port = match protocol {
        Protocol::MySql => Some(config.port),
        Protocol::Native => config.native_port,
    };
    port.filter(|_| config.listens).map(|port| SocketAddr::new(config.listen_address, port))
}

/// Starts the thread that writes the logs.
fn start_logs(config: &NodeConfig) -> Result<(Arc<Journal>, JoinHandle<()>), StartError> {
    let (journal, entries) = Journal::new();
    let journal = Arc::new(journal);
    let [error, general, slow, audit] = config.log_paths();
    let files = LogFiles { error, general, slow, audit, is_json: config.has_json_logs };
    match journal_writer::start(files, &journal, entries) {
        Ok(writer) => Ok((journal, writer)),
        Err(error) => Err(StartError(format!("cannot start a thread: {error}"))),
    }
}

/// Starts the server for those who watch the node, if it has a port.
fn start_http(
    config: &NodeConfig,
    (readiness, stopping, progress): (&Arc<Readiness>, &Arc<AtomicBool>, &Arc<RestartProgress>),
    (node, is_member): (&RunningNode, bool),
) -> Result<Option<HttpServer>, StartError> {
    let Some(port) = config.http_port else { return Ok(None) };
    let probe = Probe {
        readiness: Arc::clone(readiness),
        stopping: Arc::clone(stopping),
        progress: Arc::clone(progress),
        is_member,
    };
    let address = SocketAddr::new(config.http_address, port);
    let failed = |error| StartError(format!("cannot listen on {address} for HTTP: {error}"));
    HttpServer::start(address, probe, node.connector()).map(Some).map_err(failed)
}

/// The address of the port for administrators; `None` without one.
fn extra_address(config: &NodeConfig) -> Option<SocketAddr> {
    (config.listens && config.extra_port > 0).then(|| SocketAddr::new(config.listen_address, config.extra_port))
}

/// Sockets of clients that the node can have at a time: sessions, logins under way, and connections that are
/// just being refused.
fn socket_count_max(config: &NodeConfig) -> u32 {
    let sessions = config.max_connections.saturating_add(config.extra_max_connections);
    sessions.saturating_add(config.max_pending_logins).saturating_add(1024)
}

/// TLS for clients, unless the node opens no port or its configuration turns TLS off.
fn client_tls(config: &NodeConfig) -> Result<Option<ClientTls>, StartError> {
    if !config.listens || !config.has_tls {
        return Ok(None);
    }
    let has_folder = config.is_durable || config.cluster.node_id.is_some();
    let data = has_folder.then(|| Path::new(config.data_folder()));
    ClientTls::open(data, config.tls_files.clone()).map(Some).map_err(|error| StartError(error.to_string()))
}

fn accounts(config: &NodeConfig) -> Accounts {
    let mut accounts = Accounts::with_local_root().skipping_checks(config.skips_grants);
    if let Some(password) = &config.root_password {
        let mut salt = [0; SALT_BYTES];
        for bytes in salt.chunks_mut(size_of::<u64>()) {
            // The hasher has random keys. A salt need not be secret, only different from others.
            let word = RandomState::new().hash_one(0).to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
        let stored = StoredPassword::of_password(password.as_bytes(), salt);
        accounts.insert("root", Account::with_credential(Credential::CachingSha2(stored)).loopback_only());
    }
    for (name, password) in &config.users {
        accounts.insert(name, Account::with_password(password.as_bytes()));
    }
    accounts
}
