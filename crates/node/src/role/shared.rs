//! The shared memory of a node's blocks. It is created at each start of the node and passed to each thread.
//! Invariant 2 of `docs/architecture.md` requires a closed list of such memory.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::placement::{CpuBinding, PlacementPlan, ThreadPlan};
use junctor_cluster::member::{LogLines, MemberSettings};
use junctor_cluster::membership::Membership;
use junctor_cluster::{EpochSettings, MainConfiguration, MainLog, Supervision};
use junctor_front::account::Accounts;
use junctor_front::{Networks, Readiness};
use junctor_kernel::transport::security::ClientSecurity;
use junctor_kernel::{Address, Duration, LinkFigures, NodeId, ThreadAssignment};
use junctor_model::id::{CommitNumber, Incarnation};
use junctor_signals::Module;
use junctor_signals::connection_limits::{ConnectionLimit, ConnectionLimits};
use junctor_signals::end_transaction::CommitDurability;
use junctor_signals::journal::Journal;
use junctor_signals::restart_progress::RestartProgress;
use junctor_sql::ServerSettings;
use junctor_sql::mysql_catalog::show::ThreadFacts;
use junctor_storage::commit_sequence::CommitSequence;
use junctor_storage::commit_sequence::Numbering;
use junctor_storage::guard::{ReadGroup, ReaderSlot};
use junctor_storage::log::{FormedRecords, LOG_FOLDER, MAIN_STREAM, StreamId};
use junctor_storage::page::PagePool;
use junctor_storage::snapshot::SnapshotRegistry;
use junctor_transaction::ldm::{LdmShared, LogTarget};
use junctor_transaction::log::{LogBlock, LogConfiguration, LogShared};

use crate::setting::NodeConfig;

/// Maximum number of snapshots that one sql block holds at a time: one for the statement of each session.
pub(super) const SNAPSHOTS_MAX: u32 = 65_536;
/// Maximum number of operations that one sql block has under way at a time.
pub(super) const OPERATIONS_MAX: u32 = 65_536;
/// Maximum number of operations, and of snapshots, that the alterations of main have at a time. An alteration
/// needs two.
pub(super) const ALTERATION_OPERATIONS_MAX: u32 = 1024;

/// The shared memory of one run of a node. Every thread reads it at its start.
pub struct Shared {
    pub(super) config: NodeConfig,
    pub(super) settings: Arc<ServerSettings>,
    pub(super) accounts: Arc<Accounts>,
    pub(super) sequence: Arc<CommitSequence>,
    pub(super) snapshots: Arc<SnapshotRegistry>,
    pub(super) pages: Arc<PagePool>,
    /// The read group of each thread, by index.
    pub(super) groups: Vec<ReadGroup>,
    /// The reader slot of each thread, which the thread takes when it makes its blocks.
    slots: Vec<Mutex<Option<ReaderSlot>>>,
    /// The query instances of each thread's read group, by thread.
    readers: Vec<Vec<u16>>,
    /// The nodes that back up every partition, in the order of the chain.
    backup_nodes: Vec<NodeId>,
    /// The life of the node in a cluster, and its fixed membership if the cluster has no voters.
    cluster: Option<(Incarnation, Option<Arc<Membership>>)>,
    /// How many records each stream of the log has formed; `None` on a node without a log.
    formed: Option<Arc<FormedRecords>>,
    /// Number of tc instances.
    tc_count: u16,
    /// Whether the node serves clients. Without a log it does from the start.
    pub(super) readiness: Arc<Readiness>,
    /// `proxy_protocol_networks`.
    pub(super) proxy_networks: Networks,
    /// The progress of the start.
    progress: Arc<RestartProgress>,
    /// Whether the log waits for room on its device.
    log_waits_for_room: Arc<AtomicBool>,
    /// How the process and main tell each other about stops.
    supervision: Supervision,
    /// The figures of the links to other nodes.
    links: LinkFigures,
    /// The configuration of a node of a cluster, and where its lines for the log go.
    member: Option<(Arc<MemberSettings>, LogLines)>,
}

impl Shared {
    /// The shared memory for the threads of `plan`.
    ///
    /// # Errors
    /// The memory cannot be reserved.
    pub fn new(config: &NodeConfig, accounts: Accounts, plan: &PlacementPlan) -> Result<Shared, String> {
        Shared::build(config, accounts, plan, 0).map(|(shared, _)| shared)
    }

    /// Like [`Shared::new`], with one more reader slot in each read group. Returns these slots in the order
    /// of the groups. The holder of such a slot is a reader like any other: while it reads a partition the
    /// owner cannot enter, and while the owner waits to enter, all readers are refused.
    ///
    /// # Errors
    /// As [`Shared::new`].
    pub fn with_observer(
        config: &NodeConfig,
        accounts: Accounts,
        plan: &PlacementPlan,
    ) -> Result<(Shared, Vec<ReaderSlot>), String> {
        Shared::build(config, accounts, plan, 1)
    }

    /// Lets clients use TLS. `files` are its authority, certificate and private key.
    #[must_use]
    pub fn with_tls(mut self, security: Arc<dyn ClientSecurity>, files: [String; 3]) -> Shared {
        let settings = ServerSettings { security: Some(security), tls_files: files, ..(*self.settings).clone() };
        self.settings = Arc::new(settings);
        self
    }

    /// Hands what the logs record to a writer.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<Journal>) -> Shared {
        for kind in &self.config.logs_on {
            journal.switch(*kind, true);
        }
        self.settings = Arc::new(ServerSettings { journal, ..(*self.settings).clone() });
        self
    }

    fn build(
        config: &NodeConfig,
        accounts: Accounts,
        plan: &PlacementPlan,
        observers: usize,
    ) -> Result<(Shared, Vec<ReaderSlot>), String> {
        let bytes = config.total_memory_bytes.unwrap_or(1 << 30);
        let pages = PagePool::new(bytes as usize)
            .map_err(|error| format!("cannot reserve {} of memory: {error}", crate::setting::show_bytes(bytes)))?;
        let sequence = Arc::new(CommitSequence::starting_after(CommitNumber(0)));
        // One word for each thread with a sql block, and one for main.
        let snapshots = Arc::new(SnapshotRegistry::new(Arc::clone(&sequence), plan.threads.len() + 1));
        let (groups, slots, observer_slots) = read_groups(plan, observers);
        let access = accounts.access();
        let settings = Arc::new(ServerSettings { access, ..server_settings(config, plan) });
        let shared = Shared {
            config: config.clone(),
            accounts: Arc::new(accounts.sharing(Arc::clone(&settings.login), Arc::clone(&settings.usage))),
            settings,
            sequence,
            snapshots,
            pages,
            groups,
            slots,
            readers: plan.threads.iter().map(|thread| query_instances(plan, thread.group)).collect(),
            backup_nodes: Vec::new(),
            cluster: None,
            readiness: Arc::default(),
            proxy_networks: Networks::parse(&config.proxy_protocol_networks)
                .map_err(|error| format!("proxy_protocol_networks: {error}"))?,
            progress: Arc::default(),
            log_waits_for_room: Arc::default(),
            supervision: Supervision { is_supervised: config.is_supervised, ..Supervision::default() },
            links: LinkFigures::default(),
            member: None,
            tc_count: plan.instance_count(Module::Tc) as u16,
            formed: config.is_durable.then(|| Arc::new(FormedRecords::new(stream_count(plan)))),
        };
        if !config.is_durable {
            shared.readiness.open();
        }
        Ok((shared, observer_slots))
    }

    /// The part that a thread's ldm instance shares with other blocks.
    pub(super) fn ldm_shared(&self, seat: &ThreadAssignment) -> LdmShared {
        LdmShared {
            sequence: Arc::clone(&self.sequence),
            snapshots: Arc::clone(&self.snapshots),
            pages: Arc::clone(&self.pages),
            readers: self.groups[usize::from(seat.thread)].clone(),
            log: self.log_target(seat.node),
            progress: Arc::clone(&self.progress),
        }
    }

    /// The address of this node's log, and what a block needs to send records to it.
    pub(super) fn log_target(&self, node: NodeId) -> Option<LogTarget> {
        let formed = Arc::clone(self.formed.as_ref()?);
        Some(LogTarget { log: Address::new(node, Module::Log, 0), formed })
    }

    /// Maximum time that a statement or a commit waits for space in the log.
    pub(super) fn log_wait_max(&self) -> Duration {
        Duration::from_seconds(u64::from(self.config.redo_over_commit_limit_s))
    }

    /// The log block of this node.
    pub(super) fn log_block(&self, node: NodeId) -> Option<LogBlock> {
        let formed = Arc::clone(self.formed.as_ref()?);
        let ldms = (0..formed.len() as u16 - 1).map(StreamId);
        let tcs = (0..self.tc_count).map(|instance| Address::new(node, Module::Tc, instance));
        let configuration = LogConfiguration {
            folder: LOG_FOLDER.into(),
            segment_size: self.config.log_segment_size,
            streams: ldms.chain([MAIN_STREAM]).collect(),
            writers: tcs.chain([Address::new(node, Module::Main, 0)]).collect(),
            sync_interval_ms: self.config.time_between_global_checkpoints_ms,
            segments_max: self.config.log_segments_max,
            is_shared: self.cluster.is_some(),
        };
        let (sequence, progress) = (Arc::clone(&self.sequence), Arc::clone(&self.progress));
        let waits_for_room = Arc::clone(&self.log_waits_for_room);
        Some(LogBlock::new(LogShared { sequence, formed, progress, waits_for_room }, configuration))
    }

    /// The query instances of a thread's read group, which may read the partitions of its ldm.
    pub(super) fn readers_of(&self, thread: u16) -> Vec<u16> {
        self.readers[usize::from(thread)].clone()
    }

    /// The configuration of the main block.
    pub(super) fn main_configuration(&self, node: NodeId) -> MainConfiguration {
        MainConfiguration {
            backup_nodes: self.backup_nodes.clone(),
            log: self.log_target(node).map(|LogTarget { log, formed }| MainLog {
                log,
                sequence: Arc::clone(&self.sequence),
                formed,
            }),
            segment_bytes: self.config.log_segment_size.bytes(),
            checkpoints: self.config.checkpoints,
            progress: Arc::clone(&self.progress),
            member: self.member.as_ref().map(|(settings, _)| Arc::clone(settings)),
            log_lines: self.member.as_ref().map(|(_, log_lines)| log_lines.clone()).unwrap_or_default(),
            cluster_status: Arc::clone(&self.settings.cluster),
            links: self.links.clone(),
            supervision: self.supervision.clone(),
            access: Arc::clone(&self.settings.access),
            stores_access: self.config.root_password.is_some(),
            epochs: self.cluster.clone().map(|(incarnation, fixed)| EpochSettings {
                incarnation,
                sequence: Arc::clone(&self.sequence),
                snapshots: Arc::clone(&self.snapshots),
                fixed,
            }),
        }
    }

    /// The figures of the links to other nodes, which the kernel makes.
    #[must_use]
    pub fn with_links(self, links: LinkFigures) -> Shared {
        Shared { links, ..self }
    }

    /// How the process and main tell each other about stops.
    pub fn supervision(&self) -> &Supervision {
        &self.supervision
    }

    /// Whether the node belongs to a cluster with voters.
    pub(super) fn has_voters(&self) -> bool {
        self.member.is_some()
    }

    /// The same shared memory of a node of a cluster. It serves clients once the cluster has admitted it.
    pub fn with_member(mut self, settings: Arc<MemberSettings>, log_lines: LogLines) -> Shared {
        self.supervision.is_member = true;
        let has_data = settings.node(settings.own).is_some_and(|it| it.roles.data);
        let cluster = has_data.then(|| (settings.incarnation, None));
        if has_data {
            self.snapshots.require_lease();
        }
        Shared { member: Some((settings, log_lines)), cluster, readiness: Arc::default(), ..self }
    }

    /// This life of a node of a cluster; 0 on a node alone.
    pub(super) fn incarnation(&self) -> Incarnation {
        let of_member = self.member.as_ref().map(|(settings, _)| settings.incarnation);
        of_member.or(self.cluster.as_ref().map(|(incarnation, _)| *incarnation)).unwrap_or_default()
    }

    /// Whether the node belongs to a cluster.
    pub(super) fn is_in_cluster(&self) -> bool {
        self.member.is_some()
    }

    /// Whether a node of a cluster has data.
    pub(super) fn has_data(&self) -> bool {
        self.cluster.is_some()
    }

    /// The source of commit numbers.
    pub(super) fn numbering(&self) -> Numbering {
        if self.cluster.is_some() { Numbering::Cluster } else { Numbering::Local }
    }

    /// The same shared memory, for a node of a cluster whose nodes start together and never change.
    pub fn with_fixed_membership(self, incarnation: Incarnation, membership: Membership) -> Shared {
        // Main opens the node when its first epoch has started.
        Shared { cluster: Some((incarnation, Some(Arc::new(membership)))), readiness: Arc::default(), ..self }
    }

    /// The same shared memory, with backups on other nodes for every partition.
    pub fn with_backups(self, backup_nodes: Vec<NodeId>) -> Shared {
        Shared { backup_nodes, ..self }
    }

    /// Whether the node serves clients.
    pub fn readiness(&self) -> &Arc<Readiness> {
        &self.readiness
    }

    /// The progress of the start.
    pub fn progress(&self) -> &Arc<RestartProgress> {
        &self.progress
    }

    /// Whether the log waits for room on its device.
    pub fn log_waits_for_room(&self) -> &Arc<AtomicBool> {
        &self.log_waits_for_room
    }

    /// Commit numbers and the stable number, for checkers.
    pub fn sequence(&self) -> &Arc<CommitSequence> {
        &self.sequence
    }

    /// The snapshots in use, for checkers.
    pub fn snapshots(&self) -> &Arc<SnapshotRegistry> {
        &self.snapshots
    }

    /// Row memory, for checkers.
    pub fn pages(&self) -> &Arc<PagePool> {
        &self.pages
    }

    /// The index of the snapshot word of main. The thread of main may have a sql block with a word of its
    /// own.
    pub(super) fn snapshot_word_of_main(&self) -> usize {
        self.groups.len()
    }

    /// Takes the reader slot of a thread. `None` if it has none, or has taken it.
    pub(super) fn take_slot(&self, thread: u16) -> Option<ReaderSlot> {
        self.slots.get(usize::from(thread))?.lock().ok()?.take()
    }
}

/// The read group and the slot of each thread, and the slots of observers in the order of the groups.
type ReadGroups = (Vec<ReadGroup>, Vec<Mutex<Option<ReaderSlot>>>, Vec<ReaderSlot>);

fn read_groups(plan: &PlacementPlan, observers: usize) -> ReadGroups {
    let group_count = plan.threads.iter().map(|thread| usize::from(thread.group) + 1).max().unwrap_or(1);
    let mut groups = Vec::new();
    let mut slots_of_groups = Vec::new();
    let mut observer_slots = Vec::new();
    for group in 0..group_count {
        let in_group = plan.threads.iter().filter(|thread| usize::from(thread.group) == group);
        let readers = in_group.filter(|thread| thread.reader_slot.is_some()).count();
        let (read_group, mut slots) = ReadGroup::new((readers + observers) as u8);
        groups.push(read_group);
        observer_slots.extend(slots.split_off(readers));
        slots_of_groups.push(slots.into_iter().map(Some).collect::<Vec<_>>());
    }
    let mut slot_of = |group: usize, slot: u8| slots_of_groups[group].get_mut(usize::from(slot)).and_then(Option::take);
    let slots = plan
        .threads
        .iter()
        .map(|thread| Mutex::new(thread.reader_slot.and_then(|slot| slot_of(usize::from(thread.group), slot))));
    let slots = slots.collect();
    let groups = plan.threads.iter().map(|thread| groups[usize::from(thread.group)].clone()).collect();
    (groups, slots, observer_slots)
}

/// One stream for each ldm instance, and one for main.
fn stream_count(plan: &PlacementPlan) -> usize {
    plan.instance_count(Module::Ldm) + 1
}

fn query_instances(plan: &PlacementPlan, group: u16) -> Vec<u16> {
    let in_group = plan.threads.iter().filter(|thread| thread.group == group);
    in_group.filter_map(|thread| thread.instance_of(Module::Query)).collect()
}

/// The limits of connections at the start.
fn connection_limits(config: &NodeConfig) -> ConnectionLimits {
    let limits = ConnectionLimits::new(u64::from(config.max_connections));
    limits.set(ConnectionLimit::ExtraSessions, u64::from(config.extra_max_connections));
    limits.set(ConnectionLimit::UserSessions, u64::from(config.max_user_connections));
    limits.set(ConnectionLimit::AddressConnections, u64::from(config.max_address_connections));
    limits.set(ConnectionLimit::AddressErrors, config.max_connect_errors);
    limits.set(ConnectionLimit::LoginSeconds, u64::from(config.connect_timeout_s));
    limits
}

fn server_settings(config: &NodeConfig, plan: &PlacementPlan) -> ServerSettings {
    ServerSettings {
        server_version: config.server_version.clone(),
        port: config.port,
        transactions_max: config.transactions_max,
        thread_groups: plan.instance_count(Module::Sql).max(1) as u16,
        max_connections: config.max_connections,
        max_allowed_packet: config.max_allowed_packet_bytes,
        auto_increment_prefetch: u64::from(config.auto_increment_prefetch),
        partition_count_default: config.partitions_per_node,
        sort_buffer_bytes_max: config.sort_memory_bytes_max as usize,
        lock_wait_timeout_s: config.lock_wait_timeout_s,
        read_routing: config.read_routing,
        // Nothing of a node in memory is durable. A node without data commits at those with data.
        commit_durability: match config.is_durable || config.cluster.node_id.is_some() {
            true => config.commit_durability,
            false => CommitDurability::Memory,
        },
        spin: config.spin,
        send: config.send,
        secure_transport_required: Arc::new(AtomicBool::new(config.secure_transport_required)),
        connection_limits: Arc::new(connection_limits(config)),
        group_figures: (0..plan.instance_count(Module::Sql).max(1)).map(|_| Arc::default()).collect(),
        logs_on: config.logs_on.clone(),
        log_files: config.log_paths().map(|path| path.map_or_else(String::new, |path| path.to_string_lossy().into())),
        variables: config.variables.clone(),
        socket: config.socket_path().map_or_else(String::new, |path| path.to_string_lossy().into()),
        extra_port: config.extra_port,
        extra_max_connections: config.extra_max_connections,
        max_user_connections: config.max_user_connections,
        max_address_connections: config.max_address_connections,
        max_connect_errors: config.max_connect_errors,
        proxy_protocol_networks: config.proxy_protocol_networks.clone(),
        connect_timeout_s: config.connect_timeout_s,
        transaction_timeout_s: config.transaction_timeout_s,
        work_query_us_min: config.work_query_us_min,
        lock_wait_timeout_ends_transaction: config.lock_wait_timeout_ends_transaction,
        // A node in memory has none. `junctor backup` must not take the files of another node for its own.
        data_directory: match config.is_durable {
            true => absolute(config.data_folder()),
            false => String::new(),
        },
        backup_directory: match &config.backup_directory {
            // The address of a bucket.
            Some(store) if store.contains("://") => store.clone(),
            Some(folder) => absolute(folder),
            None => String::new(),
        },
        secure_file_priv: config.secure_file_priv.as_deref().map(Arc::from),
        // A quarter, but enough for one query with its initial memory.
        query_memory_bytes_max: config.total_memory_bytes.map_or(1 << 30, |bytes| (bytes / 4).max(256 << 20)),
        temporary_files: config.temporary_files.as_ref().map(|(_, prefix)| prefix.as_str().into()),
        temporary_folder: config.temporary_files.as_ref().map_or_else(String::new, |(folder, _)| folder.clone()),
        threads: plan.threads.iter().map(thread_facts).collect(),
        ..ServerSettings::default()
    }
}

/// The path of a folder that is meaningful in any working directory: `junctor backup` has its own.
fn absolute(folder: &str) -> String {
    // Fails for an empty path only, which the start of the node refuses.
    std::path::absolute(folder).map_or_else(|_| folder.into(), |path| path.to_string_lossy().into())
}

fn thread_facts(thread: &ThreadPlan) -> ThreadFacts {
    let modules: Vec<String> =
        thread.modules.iter().map(|(module, instance)| format!("{}{instance}", module.name())).collect();
    ThreadFacts {
        thread: u32::from(thread.index),
        name: thread.name.as_str().into(),
        cpu: match thread.cpu {
            CpuBinding::One(cpu) => Some(cpu),
            CpuBinding::None | CpuBinding::Set(_) => None,
        },
        modules: modules.join(",").into(),
        blocks: thread.modules.iter().map(|(module, instance)| (module.name(), *instance)).collect(),
        spin_us: thread.spin_us.unwrap_or(0),
    }
}
