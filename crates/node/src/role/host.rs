//! The blocks of one thread, and the dispatch of signals among them.

use std::sync::Arc;

use junctor_cluster::{MainBlock, RepBlock};
use junctor_front::{RecvBlock, RecvSettings, SqlBlock};
use junctor_gateway::Gateway;
use junctor_kernel::{Address, Context, Endpoints, Host, Outbox, ThreadAssignment, Time, WorldEvent, require};
use junctor_signals::{Module, Signal};
use junctor_sql::Engine;
use junctor_storage::snapshot::{ActiveSnapshots, SnapshotWord};
use junctor_transaction::ldm::LdmBlock;
use junctor_transaction::log::LogBlock;
use junctor_transaction::query::QueryBlock;
use junctor_transaction::tc::TcBlock;

use super::shared::{ALTERATION_OPERATIONS_MAX, OPERATIONS_MAX, SNAPSHOTS_MAX, Shared};

/// The blocks of one thread, at most one of each module.
#[derive(Default)]
pub struct NodeHost {
    recv: Option<RecvBlock>,
    sql: Option<SqlBlock>,
    tc: Option<TcBlock>,
    ldm: Option<LdmBlock>,
    query: Option<QueryBlock>,
    main: Option<MainBlock>,
    rep: Option<RepBlock>,
    log: Option<LogBlock>,
}

impl NodeHost {
    /// Makes the blocks of a thread.
    pub fn new(assignment: &ThreadAssignment, shared: &Arc<Shared>) -> NodeHost {
        let mut host = NodeHost::default();
        for &(module, instance) in &assignment.modules {
            host.add(Module::of(module), Address::new(assignment.node, module, instance), assignment, shared);
        }
        host
    }

    /// The recv block of this thread. This method and those below are for checkers.
    pub fn recv(&self) -> Option<&RecvBlock> {
        self.recv.as_ref()
    }

    /// The sql block of this thread.
    pub fn sql(&self) -> Option<&SqlBlock> {
        self.sql.as_ref()
    }

    /// The tc block of this thread.
    pub fn tc(&self) -> Option<&TcBlock> {
        self.tc.as_ref()
    }

    /// The ldm block of this thread.
    pub fn ldm(&self) -> Option<&LdmBlock> {
        self.ldm.as_ref()
    }

    /// The main block of this thread.
    pub fn main(&self) -> Option<&MainBlock> {
        self.main.as_ref()
    }

    /// The log block of this thread. `None` if the node keeps everything in memory only.
    pub fn log(&self) -> Option<&LogBlock> {
        self.log.as_ref()
    }

    fn add(&mut self, module: Module, own: Address, assignment: &ThreadAssignment, shared: &Arc<Shared>) {
        let directory = &*assignment.directory;
        match module {
            Module::Recv => self.recv = Some(RecvBlock::new(own, directory, recv_settings(assignment, shared))),
            Module::Sql => self.sql = Some(sql_block(own, assignment, shared)),
            Module::Tc => {
                let block = TcBlock::new(own, directory, Arc::clone(&shared.sequence));
                let block = match shared.log_target(own.node) {
                    Some(target) => block.with_log(target.log, shared.log_wait_max()),
                    None => block,
                };
                self.tc = Some(block.with_numbering(shared.numbering()));
            }
            Module::Log => self.log = shared.log_block(own.node),
            Module::Ldm => {
                let block = LdmBlock::new(own, shared.ldm_shared(assignment), assignment.seed);
                let block = block.with_voters(shared.has_voters());
                self.ldm = Some(block.with_readers(shared.readers_of(assignment.thread)));
            }
            Module::Query => {
                let block = |slot| QueryBlock::new(slot).with_voters(shared.has_voters());
                self.query = shared.take_slot(assignment.thread).map(block);
                require!(self.query.is_some(), "a thread with a query block has one reader slot");
            }
            Module::Main => {
                let gateway = gateway(own, assignment, shared, shared.snapshot_word_of_main());
                let configuration = shared.main_configuration(own.node);
                self.main = Some(MainBlock::new(own, directory, configuration, gateway));
            }
            Module::Rep => self.rep = Some(RepBlock::new()),
            // The kernel does the work of these modules.
            Module::Send | Module::Io => {}
            // The sql block of its thread does the work.
            Module::Work => {}
        }
    }

    fn on_world(&mut self, to: Address, event: WorldEvent, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let handled = match Module::of(to.module) {
            Module::Recv => self.recv.as_mut().map(|block| block.on_world(event, context, outbox)),
            Module::Sql => self.sql.as_mut().map(|block| block.on_world(event, context, outbox)),
            Module::Tc => self.tc.as_mut().map(|block| block.on_world(event, context, outbox)),
            Module::Ldm => self.ldm.as_mut().map(|block| block.on_world(event, context, outbox)),
            Module::Query => self.query.as_mut().map(|block| block.on_world(event, context, outbox)),
            Module::Main => self.main.as_mut().map(|block| block.on_world(event, context, outbox)),
            Module::Rep => self.rep.as_mut().map(|block| block.on_world(event, context, outbox)),
            // A node that keeps everything in memory has no such block.
            Module::Log => {
                if let Some(block) = &mut self.log {
                    block.on_world(event, context, outbox);
                }
                Some(())
            }
            // Modules without a block: the kernel does their work, and their start event needs no answer.
            Module::Send | Module::Io | Module::Work => Some(()),
        };
        // An event that is dropped may be the only answer that a block waits for.
        require!(handled.is_some(), "an event for {to} found no block");
    }
}

impl Host<Signal> for NodeHost {
    #[inline]
    fn handle(
        &mut self,
        Endpoints { to, from }: Endpoints,
        signal: Signal,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        match (signal, self) {
            (Signal::Recv(signal), NodeHost { recv: Some(block), .. }) => block.handle(signal, context, outbox),
            // A guard on this arm would copy each signal once more.
            (Signal::Sql(signal), NodeHost { sql, main, .. }) => match (sql, main) {
                (Some(block), _) if to.module != Module::Main => block.handle(signal, from, context, outbox),
                // A reply of the data plane to an alteration.
                (_, Some(block)) if to.module == Module::Main => block.handle_reply(signal, from, context, outbox),
                _ => require!(false, "a signal to {to} found no block: {signal:?}"),
            },
            (Signal::Tc(signal), NodeHost { tc: Some(block), .. }) => block.handle(signal, from, context, outbox),
            (Signal::Ldm(signal), NodeHost { ldm: Some(block), .. }) => block.handle(signal, from, context, outbox),
            (Signal::Query(signal), NodeHost { query: Some(block), .. }) => block.handle(signal, from, context, outbox),
            (Signal::Main(signal), NodeHost { main: Some(block), .. }) => block.handle(signal, from, context, outbox),
            (Signal::Log(signal), NodeHost { log: Some(block), .. }) => block.handle(signal, context, outbox),
            (Signal::World(event), host) => host.on_world(to, event, context, outbox),
            // The directory names only instances that exist.
            (signal, _) => require!(false, "a signal to {to} found no block: {signal:?}"),
        }
    }

    #[inline]
    fn before_publish(&mut self, _context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        if let Some(ldm) = &mut self.ldm {
            ldm.before_publish(outbox);
        }
        if let Some(recv) = &mut self.recv {
            recv.before_publish(outbox);
        }
    }

    #[inline]
    fn turn_ended(&mut self, start: Time, end: Time) {
        if let Some(sql) = &mut self.sql {
            sql.turn_ended(start, end);
        }
    }
}

fn recv_settings(assignment: &ThreadAssignment, shared: &Shared) -> RecvSettings {
    let instances = u32::from(assignment.directory.instances(Module::Recv).max(1));
    RecvSettings {
        server_version: shared.config.server_version.as_str().into(),
        accounts: Arc::clone(&shared.accounts),
        security: shared.settings.security.clone(),
        secure_transport_required: Arc::clone(&shared.settings.secure_transport_required),
        journal: Arc::clone(&shared.settings.journal),
        limits: Arc::clone(&shared.settings.connection_limits),
        logins_max: shared.config.max_pending_logins.div_ceil(instances) as usize,
        proxy_networks: shared.proxy_networks.clone(),
        max_allowed_packet: shared.config.max_allowed_packet_bytes as usize,
        readiness: Arc::clone(&shared.readiness),
        ids: match shared.is_in_cluster() {
            // KILL and locks name connections of all nodes.
            true => (u32::from(assignment.node.0) << 24, u32::from(assignment.node.0) << 24 | 0xFF_FFFF),
            false => (0, u32::MAX),
        },
    }
}

/// The gateway of a sql block or of main. `word` is the index of its snapshot word.
fn gateway(own: Address, assignment: &ThreadAssignment, shared: &Shared, word: usize) -> Gateway {
    let (snapshots_max, operations_max) = match Module::of(own.module) {
        Module::Main => (ALTERATION_OPERATIONS_MAX, ALTERATION_OPERATIONS_MAX),
        _ => (SNAPSHOTS_MAX, OPERATIONS_MAX),
    };
    let word = SnapshotWord::claim(Arc::clone(&shared.snapshots), word);
    let word = word.unwrap_or_else(|error| panic!("the snapshot word of {own}: {error}"));
    let snapshots = ActiveSnapshots::new(word, snapshots_max);
    let owners = 0..assignment.directory.instances(Module::Ldm);
    let thread = |owner| assignment.directory.thread_of(Module::Ldm, owner).unwrap_or(assignment.thread);
    let readers = owners.map(|owner| shared.readers_of(thread(owner))).collect();
    let gateway =
        Gateway::new(own, &assignment.directory, (shared.config.read_routing, &readers), snapshots, operations_max);
    let gateway = gateway.of_life(shared.incarnation());
    if shared.is_in_cluster() && !shared.has_data() { gateway.without_data() } else { gateway }
}

fn sql_block(own: Address, assignment: &ThreadAssignment, shared: &Shared) -> SqlBlock {
    let gateway = gateway(own, assignment, shared, usize::from(assignment.thread));
    let instances = usize::from(assignment.directory.instances(Module::Sql).max(1));
    let engine = Engine::new(gateway, Arc::clone(&shared.settings));
    let work = assignment.directory.instances(Module::Work);
    // On a node without data the two blocks may know different epochs, and so different replicas.
    let lends = !shared.is_in_cluster() || shared.has_data();
    SqlBlock::new(own, engine, Arc::clone(&shared.accounts), instances).with_work_threads(work, lends)
}
