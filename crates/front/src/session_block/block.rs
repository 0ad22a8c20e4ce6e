//! Hot path, budget 150 instructions a command, execution not counted, together with `client_command.rs`. The
//! state of the sql block, and the dispatch of its signals.

use std::sync::Arc;

use hashbrown::HashMap;
use junctor_gateway::TurnContext;
use junctor_kernel::{Address, Context, FileBuffer, FileResult, Outbox, Time, WorldEvent, require};
use junctor_model::id::ConnectionId;
use junctor_signals::change_schema::PublishCatalog;
use junctor_signals::inbox::{ContinueWork, Signal, SqlSignal};
use junctor_sql::{Engine, QUERY_LIMIT_TIMER};

use super::lend_session::Lending;
use super::metadata_lock::{METADATA_LOCK_TIMER, METADATA_LOCK_WORK};
use super::multi_statement::{MultiStatementQueues, STATEMENT_TIMER, STATEMENT_WORK};
use super::read_digests::{DIGEST_WORK, DigestReads};
use super::read_processes::{PROCESS_WORK, ProcessReads};
use super::remote_snapshot::{HELD_WORK, Held, RemoteSnapshots, SNAPSHOT_TIMER};
use super::state::SessionRecord;
use super::statistics_refresh::{REFRESH_WORK, StatisticsRefresh};
use super::stopping::{STATEMENTS_TIMER, STOP_TIMER};
use super::thread_group::{GROUP_TIMER, group_settings};
use super::timeout_sweep::TimeoutSweep;
use super::ttl_purge::{PURGE_TIMER, PURGE_WORK, TtlPurge};
use crate::account::Accounts;
use crate::admission::ThreadGroup;
use crate::protocol::DecodedParameters;

pub(super) type SeededState = foldhash::fast::FixedState;

/// A fixed seed, so that a run of the simulator repeats exactly.
fn seeded() -> SeededState {
    SeededState::with_seed(0x6a75_6e63_746f_7221)
}

/// The state of an sql block.
pub struct SqlBlock {
    pub(super) own: Address,
    pub(super) engine: Engine,
    /// The accounts of the node, for the recv blocks.
    pub(super) accounts: Arc<Accounts>,
    pub(super) parameters: DecodedParameters,
    pub(super) sessions: HashMap<ConnectionId, Box<SessionRecord>, SeededState>,
    pub(super) group: ThreadGroup,
    pub(super) is_group_timer_running: bool,
    /// Number of sql blocks of the node, which share the settings of the thread pool.
    pub(super) groups: usize,
    pub(super) timeout_sweep: TimeoutSweep,
    pub(super) is_metadata_lock_timer_running: bool,
    pub(super) multi_statement: MultiStatementQueues,
    /// The snapshots of a node without data.
    pub(super) remote: RemoteSnapshots,
    pub(super) purge: TtlPurge,
    pub(super) refresh: StatisticsRefresh,
    pub(super) digest_reads: DigestReads,
    pub(super) process_reads: ProcessReads,
    pub(super) lending: Lending,
}

impl SqlBlock {
    /// Creates one of the `groups` sql blocks of a node.
    pub fn new(own: Address, engine: Engine, accounts: Arc<Accounts>, groups: usize) -> SqlBlock {
        let group = ThreadGroup::new(group_settings(&engine, groups), engine.group_figures(own.instance));
        let remote = RemoteSnapshots::new(engine.gateway.requires_lease(), engine.gateway.incarnation());
        SqlBlock {
            own,
            engine,
            accounts,
            parameters: DecodedParameters::default(),
            sessions: HashMap::with_hasher(seeded()),
            group,
            is_group_timer_running: false,
            groups,
            timeout_sweep: TimeoutSweep::default(),
            is_metadata_lock_timer_running: false,
            multi_statement: MultiStatementQueues::default(),
            remote,
            purge: TtlPurge::default(),
            refresh: StatisticsRefresh::default(),
            digest_reads: DigestReads::default(),
            process_reads: ProcessReads::default(),
            lending: Lending::none(HashMap::with_hasher(seeded())),
        }
    }

    /// The number of each kind of resource that sessions hold, by name, for checkers. All are 0 when nobody
    /// is connected.
    pub fn held(&self) -> [(&'static str, usize); 6] {
        let (admitted, waiting) = self.group.counts();
        [
            ("sessions", self.sessions.len()),
            ("lent sessions", self.lending.lent.len()),
            ("slots of the thread pool", admitted),
            ("sessions waiting for a slot", waiting),
            ("operations", self.engine.gateway.operations_under_way()),
            ("snapshots", self.engine.gateway.snapshots_held()),
        ]
    }

    /// The version of the schema that sessions use, for checkers.
    pub fn schema_version(&self) -> u64 {
        self.engine.gateway.catalog().dictionary.version
    }

    /// Handles one signal.
    pub fn handle(&mut self, signal: SqlSignal, from: Address, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let mut turn = TurnContext::new(context, outbox);
        self.engine.counters.signals += 1;
        if !self.lending.lent.is_empty() && self.concerns_lent(&signal) {
            return self.on_signal_for_lent(signal, &mut turn);
        }
        match signal {
            SqlSignal::ExecuteCommand(command) => {
                if self.may_start(&mut turn) {
                    self.on_execute_command(command, &mut turn);
                } else {
                    self.hold_back(Held::Command(command), &mut turn);
                }
            }
            SqlSignal::AskSnapshotReply(reply) => self.on_ask_snapshot_reply(reply, &mut turn),
            SqlSignal::ResolveCommitReply(reply) => self.engine.gateway.on_resolve_commit_reply(reply, &mut turn),
            SqlSignal::UseHost(signal) => self.on_use_host(signal, &mut turn),
            SqlSignal::ReadRowsReply(reply) => {
                if let Some((connection, event)) = self.engine.gateway.on_read_rows_reply(reply, from, &mut turn) {
                    self.resume(connection, event, &mut turn);
                }
            }
            SqlSignal::ExecuteStatementReply(reply) => {
                let Some(connection) = self.engine.gateway.session_of(reply.operation) else { return };
                let Some(record) = self.sessions.get_mut(&connection) else { return };
                let transaction = record.session.transaction_mut();
                if let Some(event) = self.engine.gateway.on_execute_statement_reply(reply, transaction) {
                    self.resume(connection, event, &mut turn);
                }
            }
            SqlSignal::OpenSession(opening) => self.on_open_session(opening, &mut turn),
            SqlSignal::ContinueCommand(signal) => self.on_continue_command(signal.connection, &mut turn),
            SqlSignal::ReceiveFile(signal) => self.on_receive_file(signal, &mut turn),
            SqlSignal::NoteHalfCommand(signal) => self.on_note_half_command(&signal, &turn),
            SqlSignal::ContinueStatement(signal) => self.on_continue_statement(&signal, &mut turn),
            SqlSignal::CloseSession(signal) => self.on_close_session(signal.connection, &mut turn),
            SqlSignal::InterruptSession(signal) => self.on_interrupt_session(signal, &mut turn),
            SqlSignal::TakeSession(signal) => self.on_take_session(signal, &mut turn),
            SqlSignal::ReturnSession(signal) => self.on_return_session(signal, &mut turn),
            SqlSignal::InterruptLentSession(signal) => self.on_interrupt_lent_session(signal, from, &mut turn),
            SqlSignal::ReadStatus(signal) => self.on_read_status(signal, &mut turn),
            SqlSignal::RestoreGlobals(signal) => {
                self.engine.on_restore_globals(&signal, &mut turn);
                self.configure_group(&mut turn);
            }
            SqlSignal::ApplyGlobals(signal) => {
                if self.engine.on_apply_globals(signal, &mut turn) {
                    self.sessions.values_mut().for_each(|record| record.session.forget_rights());
                }
                self.configure_group(&mut turn);
            }
            SqlSignal::PublishCatalog(signal) => self.on_publish_catalog(signal, &mut turn),
            SqlSignal::BeginEpoch(signal) => {
                self.engine.gateway.on_begin_epoch(signal, from, &mut turn);
                self.on_epoch(&mut turn);
            }
            SqlSignal::SequencerLost(signal) => {
                self.engine.gateway.on_sequencer_lost(signal, &mut turn);
                // The rest may come behind the changes of the next node with the sequencer.
                if from != self.own {
                    self.leave_main(signal.node, &mut turn);
                }
            }
            SqlSignal::BlockTables(signal) => self.on_block_tables(signal, &mut turn),
            SqlSignal::UnblockTables(signal) => self.on_unblock_tables(signal, from.node, &mut turn),
            SqlSignal::NoteChangeWait(signal) => self.on_note_change_wait(&signal, &turn),
            SqlSignal::HastenTransaction(signal) => self.on_hasten_transaction(signal, &mut turn),
            SqlSignal::NoteLockWait(signal) => self.on_note_lock_wait(&signal, &mut turn),
            SqlSignal::ContinueWork(ContinueWork { work }) => match work {
                METADATA_LOCK_WORK => self.retry_next_waiter(&mut turn),
                STATEMENT_WORK => {
                    if self.may_start(&mut turn) {
                        self.start_next_statement(&mut turn);
                    } else {
                        self.hold_back(Held::NextStatement, &mut turn);
                    }
                }
                HELD_WORK => self.start_held(&mut turn),
                PURGE_WORK => self.continue_purge(&mut turn),
                REFRESH_WORK => self.refresh_statistics(&mut turn),
                DIGEST_WORK => self.continue_digest_read(&mut turn),
                PROCESS_WORK => self.continue_process_read(&mut turn),
                other => require!(false, "work {other} is that of this block"),
            },
            reply @ (SqlSignal::EndTransactionReply(_)
            | SqlSignal::UndoStatementsReply(_)
            | SqlSignal::ChangeSchemaReply(_)
            | SqlSignal::ReserveAutoIncrementReply(_)
            | SqlSignal::ReadStatusReply(_)
            | SqlSignal::InterruptSessionReply(_)
            | SqlSignal::SetGlobalsReply(_)
            | SqlSignal::ApplyGlobalsReply(_)
            | SqlSignal::UseUserLockReply(_)
            | SqlSignal::ControlNodeReply(_)) => {
                if let Some((connection, event)) = self.engine.gateway.on_reply(reply) {
                    self.resume(connection, event, &mut turn);
                }
                // A statement has taken what it needs of the values that were reserved for it.
                if self.engine.is_stopping {
                    self.engine.return_numbers(&mut turn);
                }
            }
        }
    }

    /// Takes over a new version of the schema. If rights have changed, the next statement of each session
    /// checks its own.
    fn on_publish_catalog(&mut self, signal: PublishCatalog, turn: &mut TurnContext<'_>) {
        let access = Arc::clone(&signal.catalog.dictionary.access);
        if self.engine.gateway.catalog().dictionary.access.version != access.version {
            self.accounts.install(&access);
            self.sessions.values_mut().for_each(|record| record.session.forget_rights());
        }
        self.engine.on_publish_catalog(signal, turn);
        self.end_orphaned_changes(turn);
        self.watch_expiring_tables(turn);
    }

    /// Handles one event of a timer, of a file or of deferred work.
    pub fn on_world(&mut self, event: WorldEvent, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.engine.counters.signals += 1;
        let mut turn = TurnContext::new(context, outbox);
        match event {
            WorldEvent::Timer { token: METADATA_LOCK_TIMER } => self.on_metadata_lock_timer(&mut turn),
            WorldEvent::Timer { token: STOP_TIMER } => self.on_stop_timer(&mut turn),
            WorldEvent::Timer { token: STATEMENTS_TIMER } => self.end_transactions(&mut turn),
            WorldEvent::Timer { token: GROUP_TIMER } => self.on_group_timer(&mut turn),
            WorldEvent::Timer { token: QUERY_LIMIT_TIMER } => self.on_query_limit_timer(&mut turn),
            WorldEvent::Timer { token: SNAPSHOT_TIMER } => self.on_snapshot_timer(&mut turn),
            WorldEvent::Timer { token: STATEMENT_TIMER } => self.on_statement_timer(&mut turn),
            WorldEvent::Timer { token: PURGE_TIMER } => self.on_purge_timer(&mut turn),
            WorldEvent::Timer { .. } => self.on_timeout_sweep(&mut turn),
            WorldEvent::FileDone { token, result, bytes } => self.on_file_done(token, (result, bytes), &mut turn),
            WorldEvent::Stopping => self.begin_stop(&mut turn),
            _ => {}
        }
    }

    /// Continues the session whose statement made a request about a file.
    #[cold]
    fn on_file_done(&mut self, token: u64, answer: (FileResult, FileBuffer), turn: &mut TurnContext<'_>) {
        let Some((connection, event)) = self.engine.gateway.on_file_done(token, answer, turn) else { return };
        require!(self.sessions.contains_key(&connection), "a session ends after its file");
        self.resume(connection, event, turn);
    }

    /// Called when the thread's turn, which ran from `start` to `end`, is over.
    #[inline]
    pub fn turn_ended(&mut self, start: Time, end: Time) {
        self.engine.end_turn(start, end);
    }
}
