//! Starts a node of real threads, asks it to stop, and joins its threads.
#![allow(clippy::disallowed_methods, reason = "the waiting for a stop is by the clock, outside every block")]

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use mio::net::TcpListener;
use mio::{Poll, Token, Waker};

use crate::address::NodeId;
use crate::block::{Host, Signal};
use crate::context::{Duration, Time};
use crate::crash_point::{ArmedCrash, CrashWatch};
use crate::directory::{Directory, LayoutError, NodeLayout, ThreadAssignment, ThreadLayout};
use crate::limit::KernelLimits;
use crate::module::ModuleId;
use crate::random::mix;
use crate::scheduler::load::LoadBoard;
use crate::scheduler::run::{Engine, ThreadRings, connect_threads};
use crate::scheduler::send::SendSettings;
use crate::scheduler::spin::SpinSettings;
use crate::transport::board::{LinkBoard, LinkRoutes};
use crate::transport::figures::LinkFigures;
use crate::transport::hello::{ClusterKey, Identity};
use crate::transport::security::LinkSecurity;
use crate::transport::thread_links::{LinkSetup, ThreadLinks, Transport};
use crate::turn_clock::TurnClock;
use crate::wire_signal::WireSignal;

use super::AbortOnPanic;
use super::doorbell::Doorbell;
use super::file::{AnswerSink, FileBackend, FileOptions, FileQueues, FileWorkers};
use super::foreign_output::ForeignOutput;
use super::link_socket::LinkPorts;
use super::listener::{BoundPath, Listener};
use super::memory_stream::{Acceptor, Bell, MemoryStream, Refusal};
use super::sending::{AtomicSendSettings, Sending};
use super::socket::{NodeSockets, Sockets};
use super::socket_counts::SocketCounts;
use super::spinner::{AtomicSpinSettings, Spinner};
use super::thread::{Activity, NodeThread, Poller, RealWorld, Shared, WAKE_TOKEN};
use super::thread_slot::ThreadSlots;
use super::thread_usage::Contention;
use crate::clock::{Clock, seed_of_start};

/// The options of a node, in addition to its layout.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The node's id.
    pub node: NodeId,
    /// Addresses to listen on. Port 0 takes any free port. A listener without an address accepts in-memory
    /// connections only.
    pub listeners: Vec<Option<SocketAddr>>,
    /// Unix sockets to listen on, each with its number, which may be that of an address too.
    pub unix_listeners: Vec<(u16, PathBuf)>,
    /// Base of relative file paths.
    pub data_folder: PathBuf,
    /// How files are read and written.
    pub file_backend: FileBackend,
    /// Whether to bind threads to the CPUs of the layout. If a CPU is not available, the node starts anyway
    /// and reports that in its notices.
    pub pin: bool,
    /// The kernel's maxima.
    pub limits: KernelLimits,
    /// Seed of all random numbers; `None` chooses one at start.
    pub seed: Option<u64>,
    /// Maximum time that a stop waits for the threads to become idle.
    pub stop_wait: Duration,
    /// Initial spin settings.
    pub spin: SpinSettings,
    /// Initial send settings.
    pub send: SendSettings,
    /// For tests: the hit of a crash point at which the process kills itself.
    pub crash: Option<ArmedCrash>,
    /// Links to other nodes, for [`Node::start_linked`].
    pub links: Option<LinkOptions>,
}

/// How a node is linked with others.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// The cluster, the same for all of its nodes.
    pub cluster: u128,
    /// The cluster's key.
    pub key: ClusterKey,
    /// This node's incarnation, from 1.
    pub incarnation: u32,
    /// Accepts the connections of other nodes.
    pub listener: Arc<std::net::TcpListener>,
    /// The other nodes and where they accept connections.
    pub peers: Vec<(NodeId, SocketAddr)>,
    /// Number of channels to each node, at most 32; the same on all nodes.
    pub channels: u8,
    /// The block that gets news of links.
    pub watcher: (ModuleId, u16),
    /// The settings for nodes that ask for them and have the cluster's key; empty if they get none. They are
    /// not sent over connections that must be encrypted, because a node that asks does not know whom it asks.
    pub introduction: Arc<[u8]>,
    /// Encrypts the connections, if set. The other nodes must do the same.
    pub security: Option<Arc<dyn LinkSecurity>>,
    /// Where the links write their figures.
    pub figures: LinkFigures,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            node: NodeId(1),
            listeners: Vec::new(),
            unix_listeners: Vec::new(),
            data_folder: PathBuf::from("."),
            file_backend: FileBackend::default(),
            pin: true,
            limits: KernelLimits::default(),
            seed: None,
            stop_wait: Duration::from_seconds(10),
            spin: SpinSettings::default(),
            send: SendSettings::default(),
            crash: None,
            links: None,
        }
    }
}

/// Why a node did not start.
#[derive(Debug)]
pub enum StartError {
    /// The layout is invalid.
    Layout(LayoutError),
    /// Listeners were requested, but no thread owns sockets.
    NoSocketThread,
    /// Listening on this address failed.
    Listen(SocketAddr, std::io::Error),
    /// Listening on this Unix socket failed.
    ListenUnix(PathBuf, std::io::Error),
    /// Another request to the operating system failed.
    System(&'static str, std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout(error) => error.fmt(formatter),
            Self::NoSocketThread => formatter.write_str("no thread owns sockets, so the node cannot listen"),
            Self::Listen(address, error) => write!(formatter, "cannot listen on {address}: {error}"),
            Self::ListenUnix(path, error) => write!(formatter, "cannot listen on socket {}: {error}", path.display()),
            Self::System(what, error) => write!(formatter, "cannot {what}: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// Starts nodes of real threads.
#[derive(Debug)]
pub struct Node;

impl Node {
    /// Starts all threads of a layout. Calls `make_host` once on each thread. Later, another thread may use
    /// that host in its place, but never two threads at the same time. Returns once all threads run and the
    /// node listens.
    pub fn start<S, H, F>(layout: &NodeLayout, options: NodeOptions, make_host: F) -> Result<RunningNode, StartError>
    where
        S: Signal,
        H: Host<S> + Send + 'static,
        F: Fn(ThreadAssignment) -> H + Send + Sync + 'static,
    {
        Self::start_with(layout, NodeOptions { links: None, ..options }, make_host, |_, _, _| None)
    }

    /// Like [`Node::start`], with links to other nodes if the options have any.
    pub fn start_linked<S, H, F>(
        layout: &NodeLayout,
        options: NodeOptions,
        make_host: F,
    ) -> Result<RunningNode, StartError>
    where
        S: WireSignal,
        H: Host<S> + Send + 'static,
        F: Fn(ThreadAssignment) -> H + Send + Sync + 'static,
    {
        Self::start_with(layout, options, make_host, ThreadLinks::<S>::of_thread)
    }

    fn start_with<S, H, F>(
        layout: &NodeLayout,
        options: NodeOptions,
        make_host: F,
        make_links: MakeLinks<S>,
    ) -> Result<RunningNode, StartError>
    where
        S: Signal,
        H: Host<S> + Send + 'static,
        F: Fn(ThreadAssignment) -> H + Send + Sync + 'static,
    {
        crate::trace::dump_on_panic();
        let directory = Arc::new(Directory::new(options.node, layout).map_err(StartError::Layout)?);
        let (mut listeners, local_addresses) = listen_all(&options.listeners)?;
        let mut bound_paths = Vec::new();
        for (number, path) in &options.unix_listeners {
            let opened = Listener::on_path(path);
            let (listener, bound) = opened.map_err(|error| StartError::ListenUnix(path.clone(), error))?;
            listeners.push((*number, listener));
            bound_paths.push(bound);
        }
        let has_sockets = !listeners.is_empty() || options.links.is_some();
        if has_sockets && directory.instances(ModuleId::SOCKETS) == 0 {
            return Err(StartError::NoSocketThread);
        }
        let (shared, polls) = share(&directory, &options)?;
        shared.spin.store(&options.spin);
        let wake_ns = super::wake::measure(&shared.clock);
        let shared = Arc::new(shared);
        let owner_count = usize::from(directory.instances(ModuleId::SOCKETS));
        let counts = Arc::new(SocketCounts((0..owner_count).map(|_| AtomicU32::new(0)).collect()));
        let connector = Connector(Arc::new(Entry {
            acceptors: acceptors(&shared, &directory, &options.limits),
            counts: counts.clone(),
            limits: options.limits.clone(),
            last_instance: AtomicUsize::new(owner_count.saturating_sub(1)),
        }));
        let links = options.links.as_ref().map(|links| link_setup(links, &directory, &options));
        let slots = Arc::new(ThreadSlots::<S, H>::new(layout.threads.len(), shared.clone()));
        let files = file_workers(&directory, &options, &slots)?;
        let start = ThreadStart {
            files: files.queues().clone(),
            shared: shared.clone(),
            counts,
            connector: connector.clone(),
            seed: options.seed.unwrap_or_else(seed_of_start),
            wake_ns,
            links,
            crash_watch: options.crash.map(|armed| Arc::new(CrashWatch::killing_process(armed))),
            options,
            directory,
        };
        let mut running = RunningNode {
            shared,
            connector,
            threads: Vec::new(),
            notices: files.notices().to_vec(),
            files: Some(files),
            local_addresses,
            bound_paths,
            stop_wait: start.options.stop_wait,
        };
        let make_host = Arc::new(make_host);
        let (sender, receiver) = mpsc::channel();
        let rings = connect_threads::<S>(layout.threads.len(), &start.options.limits);
        for (index, (rings, poll)) in rings.into_iter().zip(polls).enumerate() {
            let mut start = start.clone();
            let own_listeners = if start.directory.instance_on(ModuleId::SOCKETS, index as u16) == Some(0) {
                std::mem::take(&mut listeners)
            } else {
                Vec::new()
            };
            let channels = ThreadChannels { index: index as u16, rings, poll, listeners: own_listeners };
            let (make_host, slots, sender) = (make_host.clone(), slots.clone(), sender.clone());
            let thread = std::thread::Builder::new().name(layout.threads[index].name.clone()).spawn(move || {
                start.run(channels, &slots, (&*make_host, make_links), sender);
            });
            match thread {
                Ok(thread) => running.threads.push(thread),
                Err(error) => {
                    running.halt();
                    return Err(StartError::System("start a thread", error));
                }
            }
        }
        drop(sender);
        running.wait_for_threads(&receiver)?;
        Ok(running)
    }
}

/// A node with running threads.
pub struct RunningNode {
    shared: Arc<Shared>,
    connector: Connector,
    threads: Vec<JoinHandle<()>>,
    /// Ended after the threads.
    files: Option<FileWorkers>,
    local_addresses: Vec<Option<SocketAddr>>,
    bound_paths: Vec<BoundPath>,
    notices: Vec<String>,
    stop_wait: Duration,
}

/// Requests a node's stop from any thread.
#[derive(Clone)]
pub struct StopHandle(Arc<Shared>);

impl StopHandle {
    /// Asks the blocks to finish their work. [`RunningNode::stop`] waits for that.
    pub fn request_stop(&self) {
        self.0.request_stop();
    }

    /// Whether a block or a handle has requested a stop.
    pub fn is_stopping(&self) -> bool {
        self.0.stop.load(Ordering::Acquire)
    }
}

/// Makes in-memory connections to one node from any thread. Does not keep the node running.
#[derive(Clone)]
pub struct Connector(Arc<Entry>);

struct Entry {
    /// By the instance of [`ModuleId::SOCKETS`] that owns the connections.
    acceptors: Vec<Arc<Acceptor>>,
    counts: Arc<SocketCounts>,
    limits: KernelLimits,
    last_instance: AtomicUsize,
}

/// Why an in-memory connection could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The node is stopping or has stopped.
    Stopping,
    /// The node has its maximum number of connections.
    TooMany,
    /// No thread of the node owns sockets.
    NoSocketThread,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Stopping => "the node is stopping or has stopped",
            Self::TooMany => "the node has its maximum number of connections",
            Self::NoSocketThread => "no thread owns sockets, so the node accepts no connections",
        })
    }
}

impl std::error::Error for ConnectError {}

impl Connector {
    /// See [`RunningNode::connect`].
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(&self, listener: u16) -> Result<MemoryStream, ConnectError> {
        let Entry { acceptors, counts, limits, last_instance } = &*self.0;
        if counts.total() >= limits.sockets_max {
            return Err(ConnectError::TooMany);
        }
        let instance = counts.least_loaded_after(last_instance.load(Ordering::Relaxed));
        last_instance.store(instance, Ordering::Relaxed);
        let (Some(acceptor), Some(count)) = (acceptors.get(instance), counts.0.get(instance)) else {
            return Err(ConnectError::NoSocketThread);
        };
        count.fetch_add(1, Ordering::Relaxed);
        acceptor.connect(listener, limits).map_err(|refusal| {
            count.fetch_sub(1, Ordering::Relaxed);
            match refusal {
                Refusal::Closed => ConnectError::Stopping,
                Refusal::Full => ConnectError::TooMany,
            }
        })
    }
}

/// Wakes one thread of a node.
struct ThreadBell {
    shared: Arc<Shared>,
    thread: u16,
}

impl Bell for ThreadBell {
    fn ring(&self) {
        self.shared.bells[usize::from(self.thread)].wake(&self.shared.clock);
    }
}

/// An acceptor for each instance that owns sockets.
fn acceptors(shared: &Arc<Shared>, directory: &Directory, limits: &KernelLimits) -> Vec<Arc<Acceptor>> {
    let threads =
        (0..directory.instances(ModuleId::SOCKETS)).map(|instance| directory.thread_of(ModuleId::SOCKETS, instance));
    let acceptor = |thread: Option<u16>| {
        let bell = ThreadBell { shared: shared.clone(), thread: thread.unwrap_or_default() };
        Arc::new(Acceptor::new(limits.sockets_max, Box::new(bell)))
    };
    threads.map(acceptor).collect()
}

impl RunningNode {
    /// The addresses listened on, with actual ports, in the order of the options.
    pub fn local_addresses(&self) -> &[Option<SocketAddr>] {
        &self.local_addresses
    }

    /// Makes an in-memory connection. It counts as accepted by listener number `listener`, in the order of
    /// the options, even if that listener has no address.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(&self, listener: u16) -> Result<MemoryStream, ConnectError> {
        self.connector.connect(listener)
    }

    /// Makes in-memory connections from other threads.
    pub fn connector(&self) -> Connector {
        self.connector.clone()
    }

    /// Problems at start that were not fatal, such as a thread that could not be bound.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Published load figures.
    pub fn loads(&self) -> &Arc<LoadBoard> {
        &self.shared.loads
    }

    /// Asks the blocks to finish their work; does not wait.
    pub fn request_stop(&self) {
        self.shared.request_stop();
    }

    /// Requests a stop from other threads.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(self.shared.clone())
    }

    /// Whether a block or a handle requested a stop.
    pub fn is_stopping(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }

    /// Waits until a block or a handle requests a stop.
    pub fn wait_for_stop_request(&self) {
        let (lock, bell) = &self.shared.stop_requested;
        let Ok(mut guard) = lock.lock() else { return };
        while !self.is_stopping() {
            guard = match bell.wait(guard) {
                Ok(guard) => guard,
                Err(_) => return,
            };
        }
    }

    /// Stops the node: blocks finish their work, output is written, threads end. Waits at most
    /// [`NodeOptions::stop_wait`] until all threads are idle, and returns whether they were.
    pub fn stop(mut self) -> bool {
        self.shared.request_stop();
        let became_idle = self.wait_until_idle();
        self.halt();
        became_idle
    }

    /// Waits until every thread has reported idle in two rounds in a row, without work in between. A single
    /// round could miss a signal on its way from a thread not examined yet to one already examined.
    fn wait_until_idle(&self) -> bool {
        let mut earlier: Option<u64> = None;
        let deadline = self.shared.clock.now().plus(self.stop_wait);
        while self.shared.clock.now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(5));
            self.shared.wake_all();
            let activity = &self.shared.activity;
            let idle = self.shared.are_links_over.load(Ordering::Acquire)
                && activity.iter().all(|activity| activity.idle.load(Ordering::Acquire));
            let turns = activity.iter().map(|activity| activity.busy_checks.load(Ordering::Relaxed)).sum();
            if idle && earlier == Some(turns) {
                return true;
            }
            earlier = idle.then_some(turns);
        }
        false
    }

    fn halt(&mut self) {
        self.shared.halt.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            while !thread.is_finished() {
                self.shared.wake_all();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            // A panic aborts the process, so the thread has ended normally.
            let _ = thread.join();
        }
        self.files = None;
        self.bound_paths.clear();
    }

    fn wait_for_threads(
        &mut self,
        receiver: &mpsc::Receiver<Result<Vec<String>, StartError>>,
    ) -> Result<(), StartError> {
        for started in receiver {
            match started {
                Ok(notices) => self.notices.extend(notices),
                Err(error) => {
                    self.halt();
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        self.halt();
    }
}

/// Makes the links of a thread.
type MakeLinks<S> = fn(Arc<LinkSetup>, u16, Time) -> Option<Box<dyn Transport<S>>>;

/// What all links of the node share. The instances that own sockets own the channels in turn.
fn link_setup(links: &LinkOptions, directory: &Directory, options: &NodeOptions) -> Arc<LinkSetup> {
    let instances = directory.instances(ModuleId::SOCKETS);
    let owners = (0..u16::from(links.channels)).map(|channel| channel % instances);
    let threads = owners.filter_map(|owner| directory.thread_of(ModuleId::SOCKETS, owner)).collect();
    let own = Identity { cluster: links.cluster, node: options.node, incarnation: links.incarnation };
    let peers: Vec<NodeId> = links.peers.iter().map(|&(node, _)| node).collect();
    links.figures.begin(&peers, links.channels);
    Arc::new(LinkSetup {
        own,
        key: links.key.clone(),
        peers,
        routes: Arc::new(LinkRoutes::new(threads)),
        board: Arc::new(LinkBoard::new()),
        figures: links.figures.clone(),
        watcher: links.watcher,
        stall_after: Duration(options.limits.stall_ns),
    })
}

/// The listener for connections of other nodes, in the form that a poll takes.
fn link_listener(listener: &std::net::TcpListener) -> std::io::Result<TcpListener> {
    let listener = listener.try_clone()?;
    listener.set_nonblocking(true)?;
    Ok(TcpListener::from_std(listener))
}

/// The shared state and settings from which a new thread is started.
#[derive(Clone)]
struct ThreadStart {
    shared: Arc<Shared>,
    counts: Arc<SocketCounts>,
    connector: Connector,
    files: FileQueues,
    directory: Arc<Directory>,
    options: NodeOptions,
    seed: u64,
    /// Time from a wake-up until the thread runs, in nanoseconds.
    wake_ns: u64,
    links: Option<Arc<LinkSetup>>,
    crash_watch: Option<Arc<CrashWatch>>,
}

/// The channels of one new thread to the other threads and to the network.
struct ThreadChannels<S> {
    /// Number of the thread in the layout.
    index: u16,
    rings: ThreadRings<S>,
    /// `None` if the thread has no sockets.
    poll: Option<Poll>,
    /// Listeners with their numbers.
    listeners: Vec<(u16, Listener)>,
}

impl ThreadStart {
    fn run<S: Signal, H: Host<S> + Send>(
        &mut self,
        ThreadChannels { index, rings, poll, listeners }: ThreadChannels<S>,
        slots: &ThreadSlots<S, H>,
        (make_host, make_links): (&impl Fn(ThreadAssignment) -> H, MakeLinks<S>),
        sender: mpsc::Sender<Result<Vec<String>, StartError>>,
    ) {
        let directory = self.directory.clone();
        let layout = &directory.threads()[usize::from(index)];
        let mut notices = if self.options.pin { bind(layout) } else { Vec::new() };
        notices.extend(set_priority(layout));
        let assignment = ThreadAssignment {
            node: self.options.node,
            thread: index,
            name: layout.name.clone(),
            modules: layout.modules.clone(),
            directory: self.directory.clone(),
            loads: self.shared.loads.clone(),
            seed: mix(self.seed ^ u64::from(index)),
        };
        let world = match self.world(index, poll.as_ref(), listeners) {
            Ok(world) => world,
            Err(error) => return drop(sender.send(Err(StartError::System("watch sockets", error)))),
        };
        // If the thread panics, the guard aborts the process after the panic hook has printed the traces.
        let guard = AbortOnPanic;
        let host = make_host(assignment.clone());
        let mut engine = Engine::new(
            assignment,
            host,
            rings,
            &self.options.limits,
            (Time(0), TurnClock::real(self.shared.clock.clone())),
        );
        if let Some(links) = &self.links {
            let own = make_links(links.clone(), index, self.shared.clock.now());
            engine.set_links(own, links.routes.clone(), links.board.clone());
        }
        if let Some(watch) = &self.crash_watch {
            engine.watch_crash_points(watch.clone());
        }
        let thread = NodeThread {
            engine,
            world,
            clock: self.shared.clock.clone(),
            spinner: Spinner::new(layout, self.wake_ns),
            is_stopping: false,
            published: Vec::new(),
            deferred_wake: None,
            detaches_io: false,
            contention: Contention::default(),
            is_saturated: false,
            first_ring: 0,
            signals_since_poll: 0,
            handled: 0,
            sent_backlog: false,
            idle_since: Time(0),
            sleeps_until: Time(0),
        };
        // If the thread that starts the node is gone, nobody needs the notices.
        let _ = sender.send(Ok(notices));
        // The thread that starts the node waits until every sender is dropped.
        drop(sender);
        slots.run(thread, Poller::new(poll), self.options.limits.buffer_bytes_max);
        std::mem::forget(guard);
    }

    fn world(&self, index: u16, poll: Option<&Poll>, listeners: Vec<(u16, Listener)>) -> std::io::Result<RealWorld> {
        let mut sockets = None;
        if let Some(poll) = poll {
            let limits = &self.options.limits;
            if let Some(instance) = self.directory.instance_on(ModuleId::SOCKETS, index) {
                let own = self.directory.address(ModuleId::SOCKETS, instance);
                let registry = poll.registry().try_clone()?;
                let acceptor = self.connector.0.acceptors[usize::from(instance)].clone();
                let node = NodeSockets {
                    directory: self.directory.clone(),
                    limits: limits.clone(),
                    counts: self.counts.clone(),
                };
                let mut own_sockets = Sockets::new(own, node, registry, acceptor);
                for (number, listener) in listeners {
                    own_sockets.listen(number, listener)?;
                }
                if let (Some(setup), Some(options)) = (&self.links, &self.options.links) {
                    let ports = LinkPorts::new(options, setup.routes.clone(), index)?;
                    let listener = match instance {
                        0 => Some(link_listener(&options.listener)?),
                        _ => None,
                    };
                    own_sockets.set_links(ports, listener)?;
                }
                sockets = Some(Box::new(own_sockets));
            }
        }
        Ok(RealWorld {
            shared: self.shared.clone(),
            sockets,
            foreign_output: ForeignOutput::default(),
            sending: Sending::new(&self.directory, index, self.shared.loads.clone()),
            thread: index,
            files: self.files.clone(),
            file_requests: 0,
            due: Time(0),
            wakes_by: Time(u64::MAX),
        })
    }
}

/// The shared state of a node's threads, and a poll for each thread with sockets.
fn share(directory: &Directory, options: &NodeOptions) -> Result<(Shared, Vec<Option<Poll>>), StartError> {
    let (mut bells, mut polls) = (Vec::new(), Vec::new());
    for thread in directory.threads() {
        let has_sockets = thread.modules.iter().any(|(module, _)| *module == ModuleId::SOCKETS);
        if has_sockets {
            let poll = Poll::new().map_err(|error| StartError::System("watch sockets", error))?;
            let waker = Waker::new(poll.registry(), Token(WAKE_TOKEN));
            let waker = waker.map_err(|error| StartError::System("make an event counter", error))?;
            bells.push(Doorbell::new(Some(waker)));
            polls.push(Some(poll));
        } else {
            bells.push(Doorbell::new(None));
            polls.push(None);
        }
    }
    let threads = bells.len();
    let shared = Shared {
        bells,
        clock: Clock::start(),
        loads: Arc::new(LoadBoard::new(threads)),
        stop: AtomicBool::new(false),
        are_links_over: AtomicBool::new(options.links.is_none()),
        stop_requested: Default::default(),
        spin: AtomicSpinSettings::default(),
        halt: AtomicBool::new(false),
        send: AtomicSendSettings::new(&options.send),
        file_answers: (0..threads).map(|_| Default::default()).collect(),
        activity: (0..threads).map(|_| crate::sync::CachePadded(Activity::default())).collect(),
    };
    Ok((shared, polls))
}

/// Starts the workers of the file lanes, on the CPUs and with the priority of the threads whose only module
/// is files. A thread with other work keeps its CPUs to itself.
fn file_workers(
    directory: &Directory,
    options: &NodeOptions,
    sink: &Arc<impl AnswerSink + 'static>,
) -> Result<FileWorkers, StartError> {
    let is_for_files = |layout: &&ThreadLayout| layout.modules.iter().all(|(module, _)| *module == ModuleId::FILES);
    let layouts: Vec<ThreadLayout> = directory.threads().iter().filter(is_for_files).cloned().collect();
    let pin = options.pin;
    let prepare = move || {
        for layout in &layouts {
            // Ignore the notices about failures: the threads for files report the same ones.
            if pin {
                bind(layout);
            }
            set_priority(layout);
        }
    };
    let files = FileOptions {
        folder: &options.data_folder,
        requests_max: options.limits.file_requests_max,
        backend: options.file_backend,
    };
    FileWorkers::start(&files, sink, prepare).map_err(|error| StartError::System("start a thread for files", error))
}

/// Listens on all addresses. Returns the listeners with their numbers, and the addresses with actual ports.
#[allow(clippy::type_complexity, reason = "it is taken apart where it is called")]
fn listen_all(addresses: &[Option<SocketAddr>]) -> Result<(Vec<(u16, Listener)>, Vec<Option<SocketAddr>>), StartError> {
    let (mut listeners, mut local_addresses) = (Vec::new(), Vec::new());
    for (number, &address) in (0..).zip(addresses) {
        let Some(address) = address else {
            local_addresses.push(None);
            continue;
        };
        let (listener, local) = Listener::on_address(address).map_err(|error| StartError::Listen(address, error))?;
        local_addresses.push(Some(local));
        listeners.push((number, listener));
    }
    Ok((listeners, local_addresses))
}

/// Binds the calling thread to the CPUs of its layout. Returns notices about failures.
fn bind(layout: &ThreadLayout) -> Vec<String> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    if layout.cpus.is_empty() {
        return Vec::new();
    }
    let allowed = sched_getaffinity(None).unwrap_or_default();
    let mut wanted = CpuSet::new();
    for &cpu in &layout.cpus {
        let cpu = cpu as usize;
        if cpu < CpuSet::MAX_CPU && allowed.is_set(cpu) {
            wanted.set(cpu);
        }
    }
    if wanted.count() == 0 {
        return vec![format!("thread {} is not bound: the process may not use CPU {:?}", layout.name, layout.cpus)];
    }
    match sched_setaffinity(None, &wanted) {
        Ok(()) => Vec::new(),
        Err(error) => vec![format!("thread {} is not bound: {error}", layout.name)],
    }
}

/// Sets the calling thread's priority. Returns a notice about a failure.
fn set_priority(layout: &ThreadLayout) -> Option<String> {
    if layout.realtime {
        return Some(format!("thread {} runs in the ordinary class: realtime is not supported", layout.name));
    }
    let nice = layout.nice?;
    // `None` instead of a process id means the calling thread.
    let error = rustix::process::setpriority_process(None, nice).err()?;
    Some(format!("thread {} keeps its priority: nice {nice} is refused: {error}", layout.name))
}
