//! The main block: its state and its inbox.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use junctor_gateway::{Gateway, PartitionInputs};
use junctor_kernel::{Address, Context, Directory, LinkFigures, NodeId, Outbox, WorldEvent, WorldRequest};
use junctor_model::access::AccessControl;
use junctor_model::id::TableId;
use junctor_signals::Module;
use junctor_signals::append_records::LogSpace;
use junctor_signals::change_schema::Catalog;
use junctor_signals::cluster_status::ClusterStatus;
use junctor_signals::counter::MainCounters;
use junctor_signals::restart_progress::RestartProgress;
use junctor_signals::use_user_lock::{UseUserLock, UserLockAction};
use junctor_signals::{MainSignal, Signal};

use super::alteration::{AlterationJob, JOB_WORK};
use super::ask_node::{ASK_WORK, Questions, STOP_TIMER, Supervision};
use super::ask_outcome::AskedOutcomes;
use super::backup_lock::BackupLocks;
use super::backup_part::BackupPart;
use super::checkpoint::{CHECKPOINT_TIMER, CHECKPOINT_WORK, CheckpointSettings, Checkpoints};
use super::epochs::{DURABLE_WORK, EPOCH_TIMER, EPOCH_WORK, EpochSettings, Epochs};
use super::lock_tables::LockedTables;
use super::member::{ClusterMember, LEASE_TIMER, MEMBER_FILE, MEMBER_TIMER};
use super::own_user_locks::{OwnUserLocks, TELL_WORK};
use super::persisted_settings::{SETTINGS_FILE, SettingsFile};
use super::records::{MainLog, RecordStream};
use super::recover::{RECOVERY_WORK, Recovery};
use super::rejoin::{COPY_WORK, Rejoin};
use super::reserve_auto_increment::Counter;
use super::restart_info::RestartInfo;
use super::share_schema::SchemaShare;
use super::state::{Change, WaitingChanges};
use super::stop::{LEAVE_TIMER, STATEMENTS_TIMER};
use super::use_user_lock::{EarlyRequest, USER_LOCK_TIMER};
use super::user_locks::UserLocks;
use crate::member::{LogLines, MemberSettings};

/// Configuration of the main block at the start.
#[derive(Clone, Debug, Default)]
pub struct MainConfiguration {
    /// The nodes that hold backups of every partition of this node, in chain order. Each must have the same
    /// number of ldm instances as this node. Empty without replicas.
    pub backup_nodes: Vec<NodeId>,
    /// The log of a durable node.
    pub log: Option<MainLog>,
    /// Size of the log's segments in a new data directory, in bytes.
    pub segment_bytes: u64,
    /// The speed of checkpoints, and how often they begin.
    pub checkpoints: CheckpointSettings,
    /// The progress of the start.
    pub progress: Arc<RestartProgress>,
    /// The configuration of a node of a cluster; `None` for a node alone.
    pub member: Option<Arc<MemberSettings>>,
    /// Where lines for the log go.
    pub log_lines: LogLines,
    /// The figures of the links to other nodes.
    pub links: LinkFigures,
    /// What starts the process of the node again.
    pub supervision: Supervision,
    /// The figures of SHOW STATUS about the cluster.
    pub cluster_status: Arc<ClusterStatus>,
    /// The part of the node in the epochs of a cluster; `None` for a node alone.
    pub epochs: Option<EpochSettings>,
    /// The accounts of a new server, with those of the configuration.
    pub access: Arc<AccessControl>,
    /// Whether the accounts of a new server are stored at its first start.
    pub stores_access: bool,
}

/// The main block. A node has one instance.
#[derive(Debug)]
pub struct MainBlock {
    pub(super) own: Address,
    pub(super) configuration: MainConfiguration,
    pub(super) ldm_instances: u16,
    /// Blocks that receive every catalog.
    pub(super) subscribers: Vec<Address>,
    /// Blocks that accept clients.
    pub(super) recv_blocks: Vec<Address>,
    /// Blocks of this node that know which sessions use a table.
    pub(super) sql_blocks: Vec<Address>,
    /// The same of all nodes of a cluster.
    pub(super) session_blocks: Vec<Address>,
    /// The blocks of this node that receive every catalog.
    pub(super) own_blocks: Vec<Address>,
    /// The schema of a cluster.
    pub(super) share: SchemaShare,
    /// The copy of all rows to this node, if it returns.
    pub(super) rejoin: Rejoin,
    pub(super) catalog: Arc<Catalog>,
    pub(super) next_table: TableId,
    /// The place of the next partition.
    pub(super) next_place: usize,
    /// The chains of each node group: for each, all nodes that are configured, the primary first. Empty on a
    /// node alone, and on one without data.
    pub(super) groups: Vec<Vec<Vec<NodeId>>>,
    /// Number of groups since the first start of the cluster. Those behind were added.
    pub(super) first_groups: usize,
    /// If this node was added to a group as one more replica: a node that all chains of the group name. This
    /// node has whatever that one has.
    pub(super) beside: Option<NodeId>,
    /// Tables whose records lack their placement. The next schema change stores it.
    pub(super) unstored_placements: BTreeSet<TableId>,
    /// The AUTO_INCREMENT counter of each table.
    pub(super) counters: BTreeMap<TableId, Counter>,
    /// Whether the node stops, so that marks are lowered to the next number.
    pub(super) are_marks_exact: bool,
    pub(super) records: RecordStream,
    /// The room that the log has. Schema changes are refused if it has none.
    pub(super) log_space: LogSpace,
    /// The values of SET PERSIST.
    pub(super) settings: SettingsFile,
    /// Random bits that identify this start of the node, in the log too.
    pub(super) life: u64,
    pub(super) recovery: Option<Recovery>,
    pub(super) restart_info: RestartInfo,
    pub(super) checkpoints: Checkpoints,
    /// Access to rows for alterations.
    pub(super) gateway: Gateway,
    /// The inputs of the next statement or read of an alteration.
    pub(super) inputs: PartitionInputs,
    /// Alterations of several steps.
    pub(super) jobs: Vec<AlterationJob>,
    pub(super) waiting: WaitingChanges,
    pub(super) running: Option<Change>,
    /// The number of the next change.
    pub(super) next_change: u64,
    /// Whether the timer that checks deadlines of changes is running.
    pub(super) wait_timer_runs: bool,
    /// Number of the current stage. Answers repeat it.
    pub(super) stage: u64,
    /// All numbers that this life counts are higher, and those of earlier lives are lower.
    pub(super) first_number: u64,
    pub(super) user_locks: UserLocks,
    /// In a cluster: the user-level locks of the sessions of this node.
    pub(super) own_locks: OwnUserLocks,
    /// On the node with the sequencer: whether every node has told which locks its sessions hold, and the
    /// requests that wait for that.
    pub(super) knows_all_locks: bool,
    pub(super) early_locks: VecDeque<EarlyRequest>,
    pub(super) backup_locks: BackupLocks,
    /// The part of this node in a backup of the cluster.
    pub(super) backup_part: BackupPart,
    /// Tables locked by sessions.
    pub(super) locked: Vec<LockedTables>,
    pub(super) user_lock_timer_runs: bool,
    pub(super) counted: MainCounters,
    /// The node's part in its cluster; `None` for a node alone.
    pub(super) member: Option<Box<ClusterMember>>,
    /// While a node without data stops: its sql blocks that may have statements.
    pub(super) blocks_with_statements: usize,
    /// Questions to other nodes.
    pub(super) questions: Questions,
    /// Commits whose outcome somebody wants to know.
    pub(super) outcomes: AskedOutcomes,
    /// The part of the node in the epochs of a cluster; `None` for a node alone.
    pub(super) epochs: Option<Box<Epochs>>,
}

impl MainBlock {
    /// Creates the instance at `own` of a node with this directory. `gateway` is the gateway of `own`.
    pub fn new(own: Address, directory: &Directory, configuration: MainConfiguration, gateway: Gateway) -> MainBlock {
        let modules = [Module::Tc, Module::Ldm, Module::Query, Module::Sql];
        let instances = |module| (0..directory.instances(module)).map(move |instance| (module, instance));
        let subscribers = modules.into_iter().flat_map(instances);
        let progress = Arc::clone(&configuration.progress);
        let access = Arc::clone(&configuration.access);
        let subscribers: Vec<Address> =
            subscribers.map(|(module, instance)| directory.address(module, instance)).collect();
        let recv_blocks: Vec<Address> =
            instances(Module::Recv).map(|(module, instance)| directory.address(module, instance)).collect();
        let sql_blocks: Vec<Address> =
            instances(Module::Sql).map(|(module, instance)| directory.address(module, instance)).collect();
        let first_number = gateway.incarnation().first_number();
        let settings = configuration.epochs.clone();
        let fixed = settings.as_ref().and_then(|settings| settings.fixed.as_ref());
        let groups = fixed.map(|membership| membership.chains_of_groups()).unwrap_or_default();
        let epochs = settings.map(|settings| Box::new(Epochs::new(own, settings, &subscribers, &recv_blocks)));
        MainBlock {
            own,
            epochs,
            records: RecordStream::new(configuration.log.clone()),
            log_space: LogSpace::Free,
            settings: SettingsFile::default(),
            checkpoints: Checkpoints::new(configuration.checkpoints),
            configuration,
            ldm_instances: directory.instances(Module::Ldm).max(1),
            own_blocks: subscribers.clone(),
            subscribers,
            catalog: Arc::new(Catalog::with_access(access)),
            next_table: TableId(1),
            next_place: 0,
            first_groups: groups.len(),
            groups,
            beside: None,
            unstored_placements: BTreeSet::new(),
            counters: BTreeMap::new(),
            are_marks_exact: false,
            life: 0,
            recovery: None,
            restart_info: RestartInfo::new(progress),
            recv_blocks,
            session_blocks: sql_blocks.clone(),
            sql_blocks,
            share: SchemaShare::new(first_number),
            rejoin: Rejoin::default(),
            gateway,
            inputs: PartitionInputs::default(),
            jobs: Vec::new(),
            waiting: WaitingChanges::new(),
            running: None,
            next_change: first_number + 1,
            wait_timer_runs: false,
            stage: first_number,
            first_number,
            user_locks: UserLocks::default(),
            own_locks: OwnUserLocks::new(first_number),
            knows_all_locks: false,
            early_locks: VecDeque::new(),
            backup_locks: BackupLocks::default(),
            backup_part: BackupPart::default(),
            locked: Vec::new(),
            user_lock_timer_runs: false,
            counted: MainCounters::default(),
            member: None,
            blocks_with_statements: 0,
            questions: Questions::new(first_number),
            outcomes: AskedOutcomes::new(first_number),
        }
    }

    /// The newest catalog. Other blocks may not have it yet.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Handles one signal.
    pub fn handle(
        &mut self,
        signal: MainSignal,
        from: Address,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        self.counted.signals += 1;
        if self.is_recovering() {
            self.restart_info.set_now(context.turn_start);
        }
        let signal = match &self.member {
            None => signal,
            Some(_) => match self.pass_on(signal, from.node, outbox) {
                Some(signal) => signal,
                None => return,
            },
        };
        if self.is_of_earlier_life(&signal, from.node) {
            return;
        }
        match signal {
            MainSignal::ChangeSchema(signal) => self.on_change_schema(signal, context, outbox),
            MainSignal::ChangePartitionReply(signal) if self.is_recovering() => {
                let error = signal.error.as_ref().map(|error| &*error.message);
                self.on_recovery_reply(error, outbox);
            }
            MainSignal::PublishCatalogReply(_) if self.is_recovering() => self.on_recovery_reply(None, outbox),
            MainSignal::ChangePartitionReply(_) if self.is_making_partitions() => self.on_partition_made(outbox),
            MainSignal::ChangePartitionReply(signal) => {
                self.on_change_partition_reply((from.node, signal), context, outbox);
            }
            MainSignal::PublishCatalogReply(signal) => {
                self.on_publish_catalog_reply((from.node, signal), context, outbox);
            }
            MainSignal::IntroduceNode(signal) => self.on_introduce_node(from.node, signal, outbox),
            MainSignal::WelcomeNode(signal) => self.on_welcome_node(from.node, signal, outbox),
            MainSignal::HandOverSchema(signal) => self.on_hand_over_schema(from.node, signal, outbox),
            MainSignal::CopyPartitionsReply(signal) => self.on_copy_partitions_reply(signal, outbox),
            MainSignal::ShareRecords(signal) => self.on_share_records(from.node, signal, outbox),
            MainSignal::ShareRecordsReply(signal) => self.on_share_records_reply(from.node, signal.id, outbox),
            MainSignal::ReserveAutoIncrement(signal) => self.on_reserve_auto_increment(signal, outbox),
            MainSignal::ReturnAutoIncrement(signal) => self.on_return_auto_increment(signal, outbox),
            MainSignal::RestoreGlobalsReply(_) => self.on_restore_globals_reply(context, outbox),
            MainSignal::SetGlobals(signal) => self.on_set_globals(signal, outbox),
            MainSignal::UnlockTables(signal) => self.on_unlock_tables(signal, context, outbox),
            MainSignal::UseUserLock(signal) => self.on_use_user_lock(signal, context, outbox),
            MainSignal::CancelUserLock(signal) => self.on_cancel_user_lock(signal, from, outbox),
            MainSignal::ReleaseUserLocks(signal) => self.on_release_user_locks(signal, from, outbox),
            MainSignal::ReadStatus(signal) => self.on_read_status(signal, context, outbox),
            MainSignal::AskNode(signal) => self.on_ask_node(from.node, signal, context, outbox),
            MainSignal::AskNodeReply(signal) => {
                self.on_ask_node_reply(from.node, signal, context.turn_start, outbox);
            }
            MainSignal::ControlNode(signal) => self.on_control_node(signal, context.turn_start, outbox),
            MainSignal::ReadStatusReply(signal) => self.on_read_status_reply(signal, outbox),
            MainSignal::InterruptSessionReply(signal) => self.on_interrupt_session_reply(&signal, outbox),
            MainSignal::BlockTablesReply(signal) => self.on_block_tables_reply(signal, context, outbox),
            MainSignal::RecallTables(signal) => self.on_recall_tables(signal, outbox),
            MainSignal::CancelSchemaChange(signal) => self.on_cancel_schema_change(signal, context, outbox),
            MainSignal::ContinueWork(signal) => self.continue_work(signal.work, context, outbox),
            MainSignal::StartLogReply(_) => self.on_log_started(outbox),
            MainSignal::AppendRecordsReply(signal) => self.records.reuse(signal.bytes),
            MainSignal::CommitStable(signal) => self.on_commit_stable(signal.number, outbox),
            MainSignal::AwaitDurableReply(signal) if self.epochs.is_some() => {
                self.on_log_durable(signal.durable, context.turn_start, outbox);
            }
            MainSignal::AwaitDurableReply(signal) => self.on_await_durable_reply(signal, context, outbox),
            MainSignal::LogSpaceChanged(signal) => self.on_log_space_changed(signal, outbox),
            MainSignal::RecoverLogReply(signal) => self.on_recovered_log(signal.result, outbox),
            MainSignal::ReplayLogReply(signal) => self.on_recovery_reply(signal.error.as_deref(), outbox),
            MainSignal::BeginCheckpointReply(signal) => self.on_begin_checkpoint_reply(signal, outbox),
            MainSignal::WriteCheckpointReply(signal) => self.on_write_checkpoint_reply(signal, context, outbox),
            MainSignal::SetCheckpointSpeedReply(signal) => self.on_set_checkpoint_speed_reply(signal),
            MainSignal::ReadLogUsageReply(signal) => self.on_read_log_usage_reply(signal, context, outbox),
            MainSignal::BuildIndexesReply(signal) => self.on_build_indexes_reply(signal, outbox),
            MainSignal::LoadCheckpointReply(signal) => self.on_recovery_reply(signal.error.as_deref(), outbox),
            MainSignal::InstallMembership(signal) if self.member.is_none() && self.epochs.is_some() => {
                self.on_install_membership(&signal, context.turn_start, outbox);
            }
            MainSignal::ReportNode(_)
            | MainSignal::InstallMembership(_)
            | MainSignal::LeasesOver(_)
            | MainSignal::ReplicateMembership(_)
            | MainSignal::LinkNews(_) => self.on_member_signal(from.node, signal, context.turn_start, outbox),
            MainSignal::StatementsEnded(_) => self.on_statements_ended(outbox),
            MainSignal::ResolveCommit(signal) => self.on_resolve_commit(signal, context.turn_start, outbox),
            MainSignal::AskOutcome(signal) => self.on_ask_outcome(from.node, signal, outbox),
            MainSignal::AskOutcomeReply(signal) => self.on_ask_outcome_reply(from.node, signal, outbox),
            MainSignal::RequestLease(signal) => self.on_request_lease(from.node, signal, context, outbox),
            MainSignal::RequestLeaseReply(signal) => self.on_request_lease_reply(from.node, signal, context, outbox),
            MainSignal::AskSnapshot(signal) => self.on_ask_snapshot(signal, context, outbox),
            MainSignal::BeginEpochReply(signal) => self.on_begin_epoch_reply(signal.epoch),
            MainSignal::RequestNumber(signal) => self.on_request_number(signal, outbox),
            MainSignal::CommitTransactionReply(signal) => self.on_commit_transaction_reply(signal, outbox),
            MainSignal::AwaitStable(signal) => self.on_await_stable(signal, outbox),
            MainSignal::AwaitDurable(signal) => self.on_await_durable(signal, outbox),
            MainSignal::TakeNumber(_)
            | MainSignal::Decide(_)
            | MainSignal::Applied(_)
            | MainSignal::Installed(_)
            | MainSignal::StartEpoch(_) => self.on_epoch_signal(from.node, signal, context.turn_start, outbox),
        }
    }

    /// Goes on with work that this block has divided into turns.
    fn continue_work(&mut self, work: u32, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        match work {
            RECOVERY_WORK => self.continue_recovery(outbox),
            JOB_WORK => self.continue_jobs(context, outbox),
            CHECKPOINT_WORK => self.write_manifest(context.turn_start, outbox),
            EPOCH_WORK => self.run_epochs(context, outbox),
            DURABLE_WORK => self.on_durable_everywhere(context, outbox),
            ASK_WORK => self.advance_questions(context.turn_start, outbox),
            TELL_WORK => self.advance_schema(context.turn_start, outbox),
            COPY_WORK => self.make_copied_partitions(outbox),
            _ => self.send_unsent(outbox),
        }
    }

    /// Whether a block of another node answers a request of an earlier life of this node, or asks that life.
    fn is_of_earlier_life(&self, signal: &MainSignal, from: NodeId) -> bool {
        if from == self.own.node {
            return false;
        }
        match signal {
            MainSignal::ChangePartitionReply(reply) => reply.operation.0 < self.first_number,
            MainSignal::PublishCatalogReply(reply) => reply.operation.0 < self.first_number,
            // Sent once, to the life that a link has.
            MainSignal::UseUserLock(UseUserLock { action: UserLockAction::Hold { .. }, .. }) => false,
            // Nodes share records and locks with members only.
            MainSignal::ShareRecords(_)
            | MainSignal::UseUserLock(_)
            | MainSignal::CancelUserLock(_)
            | MainSignal::ReleaseUserLocks(_) => self.member.is_some() && self.own_record().is_none(),
            _ => false,
        }
    }

    /// Handles a timer, the start of the node, or the end of a file operation. A node without a log publishes
    /// nothing at its start, because all blocks assume an empty catalog.
    pub fn on_world(&mut self, event: WorldEvent, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.counted.signals += 1;
        if self.is_recovering() {
            self.restart_info.set_now(context.turn_start);
        }
        match event {
            WorldEvent::Timer { token: STOP_TIMER } => self.begin_stop(context.turn_start, outbox),
            WorldEvent::Timer { token: LEAVE_TIMER } => outbox.request(WorldRequest::Stop),
            WorldEvent::Timer { token: STATEMENTS_TIMER } => outbox.request(WorldRequest::EndLinks),
            WorldEvent::Timer { token: USER_LOCK_TIMER } => self.on_user_lock_timer(context, outbox),
            WorldEvent::Timer { token: MEMBER_TIMER } => self.on_member_timer(context, outbox),
            WorldEvent::Timer { token: LEASE_TIMER } => self.on_lease_timer(context, outbox),
            WorldEvent::Timer { token: CHECKPOINT_TIMER } => self.on_checkpoint_timer(outbox),
            WorldEvent::Timer { token: EPOCH_TIMER } => self.on_epoch_timer(context.turn_start, outbox),
            WorldEvent::Timer { .. } => self.on_wait_timer(context, outbox),
            WorldEvent::Started => {
                self.life = context.random.word();
                self.begin_member(context, outbox);
                self.begin_recovery(context.turn_start, outbox);
            }
            WorldEvent::FileDone { token: MEMBER_FILE, result, .. } => {
                self.on_member_file(result, context.turn_start, outbox);
            }
            WorldEvent::FileDone { token: SETTINGS_FILE, result, bytes } => {
                self.on_settings_file(result, bytes, outbox);
            }
            WorldEvent::FileDone { result, bytes, .. } if self.is_recovering() => {
                self.on_recovery_file((result, bytes), context, outbox);
            }
            WorldEvent::FileDone { token, result, .. } => self.on_checkpoint_file((token, result), context, outbox),
            WorldEvent::Stopping => {
                self.checkpoints.stop();
                self.end_member();
                self.end_epochs(outbox);
                self.stop_jobs(context, outbox);
                self.begin_exact_marks(outbox);
                self.begin_end_of_links(outbox);
            }
            WorldEvent::SocketOpened { .. }
            | WorldEvent::Received { .. }
            | WorldEvent::SendBlocked { .. }
            | WorldEvent::SendDrained { .. }
            | WorldEvent::SocketClosed { .. } => {}
        }
    }
}
