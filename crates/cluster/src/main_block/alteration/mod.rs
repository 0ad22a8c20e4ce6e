//! Alterations of several steps: jobs of main that copy rows to a new form of their table, fill new unique
//! indexes and check the rows of new foreign keys.
//!
//! A job creates its indexes in state Building, builds the ordered ones and fills the unique ones while
//! sessions use the table. If it has rows to check, it then blocks writes to the table and its parents, and
//! checks the rows. The last step applies all other changes in one publication. If a step fails, or the
//! requester cancels the job, the job drops its indexes. A crash between the steps leaves indexes in state
//! Building in the log, and the restart drops them.
//!
//! A change of the row form creates a table of the new form with all of its indexes, copies the rows, and
//! follows the writes of sessions until it blocks them for the rest. The last step waits until nobody reads
//! the old table, and replaces it. If a step fails, the job drops the new table, and a restart does the same.
//!
//! The steps that change the schema or wait for sessions are tasks in the queue of schema changes. Filling
//! and checking run beside other schema changes, except those that concern the same tables. Main reads and
//! writes rows through a gateway of its own, with statements and transactions like those of a session.
//!
//! Reading order: this file, the steps of a job; [`index_backfill`]; [`foreign_key_check`]; [`row_copy`].

mod foreign_key_check;
mod index_backfill;
mod row_copy;
mod rows;

use std::collections::BTreeSet;
use std::sync::Arc;

use junctor_gateway::gateway::{ReadOptions, WriteOptions, WriteRequest};
use junctor_gateway::{Event, Gateway, PartitionInputs, ReadRequest, RowBound, Transaction, TurnContext};
use junctor_kernel::{Address, Context, Outbox, Time};
use junctor_model::alteration::{Alteration, building_indexes};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{ConnectionId, Epoch, IndexId, StatementNumber, TableId};
use junctor_model::schema::{TableDefinition, TableKind, TableLayout};
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::end_transaction::{CommitDurability, Ending};
use junctor_signals::inbox::ContinueWork;
use junctor_signals::program::{ReadProgram, RowProtocol, WriteProgram};
use junctor_signals::read_rows::OperationId;
use junctor_signals::row_expressions::RowExpressions;
use junctor_signals::{MainSignal, Signal, SqlSignal, crash_point};

use super::block::MainBlock;
use super::change_schema::{ChangeResult, reply};
use super::definition::replacement_of;
use super::state::{AlterationStep, FIRST_ACCOUNTS, Requester, Task, WaitingChange};
use super::wait_for_tables::note_change_wait;
use foreign_key_check::ForeignKeyCheck;
use index_backfill::IndexBackfill;
use row_copy::{RowCopy, follows_writes};
use rows::BATCH_ROWS;

/// Maximum number of times that a job begins again because nodes have left or returned.
const REPEATS_MAX: u32 = 8;

/// The number of the deferred work that lets a job go on.
pub(super) const JOB_WORK: u32 = 2;

/// An alteration of several steps. Its session has no other schema change under way.
#[derive(Debug)]
pub(super) struct AlterationJob {
    pub requester: Requester,
    table: TableId,
    alteration: Arc<Alteration>,
    /// What the new table computes for the copied rows.
    expressions: Arc<RowExpressions>,
    work: JobWork,
    /// Whether the new indexes or the new table exist, so that an error makes an undo necessary.
    has_new_objects: bool,
    has_built_indexes: bool,
    /// The unique indexes that are filled.
    filled: Vec<IndexId>,
    blocks_writes: bool,
    /// The copy of the rows, once it has begun.
    copy: Option<Box<RowCopy>>,
    /// The warnings of the copy.
    diagnostics: Option<Box<Diagnostics>>,
    /// Whether the new table has all rows, and gets no other ones.
    has_copied: bool,
    /// The number after the greatest AUTO_INCREMENT number of the copied rows.
    next_number: u64,
    /// Number of new foreign keys whose rows are checked.
    keys_checked: usize,
    rows: u64,
    /// Why the job is to be undone, or is being undone.
    error: Option<Box<Error>>,
    is_cancelled: bool,
    /// The epoch in which the job began, and how often it has begun again.
    epoch: Epoch,
    repeats: u32,
}

/// The present work of a job.
#[derive(Debug)]
enum JobWork {
    /// It goes on in a later turn.
    Ready,
    /// Its step waits in the queue of schema changes, or runs.
    Queued,
    Filling(Box<IndexBackfill>),
    /// A round of the copy.
    Copying,
    Checking(Box<ForeignKeyCheck>),
}

/// The result of filling or checking; `None` while it has not ended.
type WorkResult = Option<Result<()>>;

/// The parts of the block that a job uses in one turn.
struct WorkContext<'a, 't> {
    gateway: &'a mut Gateway,
    inputs: &'a mut PartitionInputs,
    turn: &'a mut TurnContext<'t>,
    requester: Requester,
}

impl WorkContext<'_, '_> {
    /// Sends a read of committed rows, whose inputs are in `inputs`.
    fn read(&mut self, program: &Arc<ReadProgram>, transaction: &mut Transaction) -> Result<OperationId> {
        let options = ReadOptions { protocol: RowProtocol::Text, bound: RowBound::Reply(BATCH_ROWS), warnings_max: 0 };
        let request = ReadRequest { program, options, inputs: self.inputs };
        let sent = self.gateway.read(self.requester.connection, transaction, request, self.turn);
        if sent.is_err() {
            self.inputs.clear(self.turn.buffers);
        }
        sent
    }

    /// Sends a statement, whose inputs are in `inputs`.
    fn execute(&mut self, program: &Arc<WriteProgram>, transaction: &mut Transaction) -> Result<OperationId> {
        let options = WriteOptions {
            protocol: RowProtocol::Text,
            lock_wait_ms: self.requester.lock_wait_ms,
            timeout_ends: true,
            keeps_to_snapshot: false,
            rows_max: u32::MAX,
            locks_ranges: false,
            savepoint: StatementNumber(0),
            warnings_max: 0,
            durability: CommitDurability::default(),
        };
        let request = WriteRequest { program, options, inputs: self.inputs };
        let sent = self.gateway.execute(self.requester.connection, transaction, request, self.turn);
        if sent.is_err() {
            self.inputs.clear(self.turn.buffers);
        }
        sent
    }

    /// Requests the end of a transaction. Returns false if the transaction has not begun.
    fn end_transaction(&mut self, transaction: &mut Transaction, ending: Ending) -> Result<bool> {
        // The last record of the alteration is durable only after all earlier commits.
        let ending = (ending, CommitDurability::Memory);
        Ok(self.gateway.end(self.requester.connection, transaction, ending, self.turn)?.is_some())
    }
}

impl AlterationJob {
    fn new(
        requester: Requester,
        table: TableId,
        (alteration, expressions): (Arc<Alteration>, Arc<RowExpressions>),
        epoch: Epoch,
    ) -> AlterationJob {
        AlterationJob {
            requester,
            table,
            alteration,
            expressions,
            work: JobWork::Queued,
            has_new_objects: false,
            has_built_indexes: false,
            filled: Vec::new(),
            blocks_writes: false,
            copy: None,
            diagnostics: None,
            has_copied: false,
            next_number: 1,
            keys_checked: 0,
            rows: 0,
            error: None,
            is_cancelled: false,
            epoch,
            repeats: 0,
        }
    }

    /// The table that is altered.
    pub fn table(&self) -> TableId {
        self.table
    }

    /// The number after the greatest AUTO_INCREMENT number of the copied rows; 1 if no rows were copied.
    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Whether the undone job begins again: the work has failed because nodes have left or returned.
    fn begins_again(&self, epoch: Epoch) -> bool {
        let Some(error) = &self.error else { return false };
        // The last one if a snapshot was lost with its node.
        let is_of_epoch =
            matches!(error.code, ErrorCode::Deadlock | ErrorCode::TemporaryFailure | ErrorCode::TableDefinitionChanged);
        is_of_epoch && epoch != self.epoch && !self.is_cancelled && self.repeats < REPEATS_MAX
    }

    /// Whether other changes of its tables must wait for the job. While a step of the job waits for sessions,
    /// the order of the queue decides instead: two jobs with related tables would otherwise wait for each
    /// other.
    fn excludes_changes(&self) -> bool {
        self.blocks_writes || !matches!(self.work, JobWork::Queued)
    }

    /// Whether its first step has begun, and its last one or its undo has not ended.
    fn is_under_way(&self) -> bool {
        self.has_new_objects || self.excludes_changes()
    }

    /// The next step that is a task of the queue; `None` if rows are to be copied, an index is to be filled
    /// or a key to be checked.
    fn next_step(&self, layout: &TableLayout) -> Option<AlterationStep> {
        if self.alteration.copies_rows() {
            let is_close = self.copy.as_ref().is_some_and(|copy| copy.is_close());
            if !self.blocks_writes && (is_close || !follows_writes(&self.alteration)) {
                return Some(AlterationStep::BlockWrites);
            }
            if !self.has_new_objects {
                return Some(AlterationStep::CreateReplacement);
            }
            if !self.has_copied {
                return None;
            }
        }
        if !self.has_built_indexes && building_indexes(&layout.definition).any(|index| index.is_ordered()) {
            return Some(AlterationStep::BuildIndexes);
        }
        if self.unfilled(layout).is_some() {
            return None;
        }
        match self.alteration.validates_rows() {
            true if !self.blocks_writes => Some(AlterationStep::BlockWrites),
            true if self.keys_checked < self.alteration.add_foreign_keys.len() => None,
            _ => Some(AlterationStep::Finish),
        }
    }

    fn unfilled(&self, layout: &TableLayout) -> Option<IndexId> {
        let mut indexes = building_indexes(&layout.definition);
        indexes.find(|index| index.is_unique() && !self.filled.contains(&index.id)).map(|index| index.id)
    }
}

impl MainBlock {
    /// Opens the job of an alteration, and returns its first step.
    pub(super) fn open_job(
        &mut self,
        requester: Requester,
        table: TableId,
        (alteration, expressions): (Arc<Alteration>, Arc<RowExpressions>),
    ) -> Task {
        let step = match alteration.add_indexes.is_empty() {
            _ if follows_writes(&alteration) => AlterationStep::CreateReplacement,
            true => AlterationStep::BlockWrites,
            false => AlterationStep::CreateIndexes,
        };
        let epoch = self.gateway.epoch();
        self.jobs.push(AlterationJob::new(requester, table, (Arc::clone(&alteration), expressions), epoch));
        Task::Step { step, table, alteration }
    }

    /// Undoes the alterations that a main which is lost has not finished. Their sessions have got an error.
    pub(super) fn undo_lost_jobs(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let altered_by_job = |layout: &Arc<TableLayout>| match layout.definition.kind {
            TableKind::Replacement { of } => Some(of),
            _ => building_indexes(&layout.definition).next().map(|_| layout.definition.id),
        };
        let tables: BTreeSet<TableId> = self.catalog.dictionary.tables().filter_map(altered_by_job).collect();
        let unfinished = (Arc::new(Alteration::default()), Arc::new(RowExpressions::default()));
        // Connections of no node.
        for (connection, table) in (1..).map(ConnectionId).zip(tables) {
            let requester = Requester { connection, ..Requester::main(self.own) };
            let job = AlterationJob::new(requester, table, unfinished.clone(), self.gateway.epoch());
            self.jobs.push(AlterationJob { has_new_objects: true, ..job });
            self.queue_step(self.jobs.len() - 1, AlterationStep::Undo, now, outbox);
        }
    }

    fn job_position(&self, connection: ConnectionId) -> Option<usize> {
        self.jobs.iter().position(|job| job.requester.connection == connection)
    }

    /// Whether a waiting change concerns a table on which the alteration of another session works.
    pub(super) fn is_altered_by_others(&self, waiting: &WaitingChange) -> bool {
        let WaitingChange { task, names, requester, .. } = waiting;
        let is_other = |job: &&AlterationJob| job.requester.connection != requester.connection;
        // A table has at most one replacement. The first step holds nothing for which others wait.
        let begins = task.step_on_table().filter(|_| !self.is_step_under_way(waiting));
        if let Some((_, table)) = begins
            && self.jobs.iter().filter(is_other).any(|job| job.table == table && job.is_under_way())
        {
            return true;
        }
        let mut others = self.jobs.iter().filter(is_other).filter(|job| job.excludes_changes()).peekable();
        if others.peek().is_none() {
            return false;
        }
        let needed = self.tables_to_block(task, requester, names);
        let is_needed = |table: TableId| needed.iter().any(|blocked| blocked.table == table);
        others.any(|job| {
            let locked = self.locked.iter().filter(|locked| locked.connection == job.requester.connection);
            is_needed(job.table) || locked.flat_map(|it| it.tables.iter()).any(|blocked| is_needed(blocked.table))
        })
    }

    /// Whether a waiting change is a step of an alteration after its first one.
    pub(super) fn is_step_under_way(&self, waiting: &WaitingChange) -> bool {
        let job = self.jobs.iter().find(|job| job.requester.connection == waiting.requester.connection);
        waiting.task.step().is_some() && job.is_some_and(|job| job.has_new_objects || job.blocks_writes)
    }

    /// Queues a step of a job before all other changes: others wait for the end of the alteration.
    fn queue_step(&mut self, position: usize, step: AlterationStep, now: Time, outbox: &mut Outbox<Signal>) {
        let job = &mut self.jobs[position];
        job.work = JobWork::Queued;
        let requester = job.requester;
        let task = Task::Step { step, table: job.table, alteration: Arc::clone(&job.alteration) };
        let waiting = self.waiting_change(requester, task, now);
        self.withdraw_behind(&waiting.names, outbox);
        if step == AlterationStep::BlockWrites {
            outbox.crash_point(crash_point::JOB_BLOCK.before());
        }
        let waits = !self.tables_to_block(&waiting.task, &requester, &waiting.names).is_empty();
        if waits && step != AlterationStep::Undo {
            note_change_wait(&requester, true, outbox);
        }
        self.waiting.push_front(waiting);
    }

    /// A step of an alteration is done. The table may have got another id while the first step waited.
    pub(super) fn on_step_done(
        &mut self,
        connection: ConnectionId,
        (step, table): (AlterationStep, TableId),
        now: Time,
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(position) = self.job_position(connection) else {
            junctor_kernel::invariant::fail("a step belongs to an alteration", format_args!("{connection:?} {step:?}"))
        };
        let job = &mut self.jobs[position];
        job.table = table;
        match step {
            AlterationStep::CreateIndexes | AlterationStep::CreateReplacement => job.has_new_objects = true,
            AlterationStep::BuildIndexes => job.has_built_indexes = true,
            AlterationStep::BlockWrites => {
                outbox.crash_point(crash_point::JOB_BLOCK.after());
                job.blocks_writes = true;
            }
            AlterationStep::Finish => {
                // A cancellation came too late.
                job.error = None;
                return self.end_job(position, now, outbox);
            }
            AlterationStep::Undo => return self.end_job(position, now, outbox),
        }
        self.wake_job(position, outbox);
    }

    /// A step of an alteration failed or was given up.
    pub(super) fn on_step_failed(
        &mut self,
        (connection, step): (ConnectionId, AlterationStep),
        error: Box<Error>,
        now: Time,
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(position) = self.job_position(connection) else {
            junctor_kernel::invariant::fail("a step belongs to an alteration", format_args!("{connection:?} {step:?}"))
        };
        self.jobs[position].error.get_or_insert(error);
        match step {
            AlterationStep::Undo => self.end_job(position, now, outbox),
            _ => self.undo_job(position, now, outbox),
        }
    }

    /// Undoes a job that has an error.
    fn undo_job(&mut self, position: usize, now: Time, outbox: &mut Outbox<Signal>) {
        match self.jobs[position].has_new_objects {
            true => self.queue_step(position, AlterationStep::Undo, now, outbox),
            false => self.end_job(position, now, outbox),
        }
    }

    /// Replies to the requester of a job that is complete or undone, or begins the job again.
    fn end_job(&mut self, position: usize, now: Time, outbox: &mut Outbox<Signal>) {
        let job = self.jobs.remove(position);
        let is_lost = self.is_session_lost(job.requester.connection);
        let begins_again = !is_lost && job.begins_again(self.gateway.epoch());
        let AlterationJob {
            requester, table, alteration, expressions, rows, error, copy, repeats, diagnostics, ..
        } = job;
        if let Some(mut copy) = copy {
            copy.release(&mut self.gateway);
        }
        self.release_tables(requester.connection, true, outbox);
        if begins_again {
            let first = self.open_job(requester, table, (alteration, expressions));
            self.jobs.last_mut().into_iter().for_each(|job| job.repeats = repeats + 1);
            let waiting = self.waiting_change(requester, first, now);
            return self.waiting.push_back(waiting);
        }
        let result = error.map_or_else(|| Ok(ChangeResult { notes: Vec::new(), rows, diagnostics }), Err);
        reply(&requester, result, outbox);
    }

    /// Lets a job go on in a later turn, because its next step may send as much as any change.
    fn wake_job(&mut self, position: usize, outbox: &mut Outbox<Signal>) {
        self.jobs[position].work = JobWork::Ready;
        outbox.send(self.own, Signal::Main(MainSignal::ContinueWork(ContinueWork { work: JOB_WORK })));
    }

    /// Lets the next ready job go on.
    pub(super) fn continue_jobs(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let is_ready = |job: &AlterationJob| matches!(job.work, JobWork::Ready);
        let Some(position) = self.jobs.iter().position(is_ready) else { return };
        let now = context.turn_start;
        let layout = self.catalog.dictionary.table(self.jobs[position].table).cloned();
        let job = &mut self.jobs[position];
        if layout.is_none() {
            job.error.get_or_insert_with(Error::table_definition_changed);
        }
        match layout.filter(|_| job.error.is_none()) {
            None => self.undo_job(position, now, outbox),
            Some(layout) => match job.next_step(&layout) {
                Some(step) => self.queue_step(position, step, now, outbox),
                None => return self.start_work(position, layout, context, outbox),
            },
        }
        self.begin_changes(now, outbox);
    }

    /// Starts to fill the next index, or to check the next foreign key.
    fn start_work(
        &mut self,
        position: usize,
        layout: Arc<TableLayout>,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        // Every block has this catalog, as far as it concerns the table.
        self.gateway.install_catalog(Arc::clone(&self.catalog));
        let job = &mut self.jobs[position];
        let mut turn = TurnContext::new(context, outbox);
        let mut work = WorkContext {
            gateway: &mut self.gateway,
            inputs: &mut self.inputs,
            turn: &mut turn,
            requester: job.requester,
        };
        let dictionary = &self.catalog.dictionary;
        let replacement = replacement_of(dictionary, job.table);
        let started = match (job.unfilled(&layout), job.alteration.copy().zip(replacement)) {
            (None, Some((changes, replacement))) if !job.has_copied => {
                work.turn.outbox.crash_point(crash_point::JOB_COPY.before());
                let copy = match job.copy.take() {
                    Some(copy) => Ok(copy),
                    None => {
                        let copied = RowCopy::new(dictionary, (layout, replacement), changes, &job.expressions);
                        copied.map(Box::new)
                    }
                };
                copy.map(|copy| {
                    let result = job.copy.insert(copy).start_round(&mut work);
                    (JobWork::Copying, result)
                })
            }
            (None, None) if job.alteration.copies_rows() => Err(Error::table_definition_changed()),
            (Some(index), _) => {
                work.turn.outbox.crash_point(crash_point::JOB_FILL.before());
                IndexBackfill::new(dictionary, layout, index).map(|mut backfill| {
                    let result = backfill.start(&mut work);
                    (JobWork::Filling(Box::new(backfill)), result)
                })
            }
            (None, replacement) => {
                work.turn.outbox.crash_point(crash_point::JOB_CHECK.before());
                let key = &job.alteration.add_foreign_keys[job.keys_checked];
                let child = replacement.map_or(layout, |(_, replacement)| Arc::clone(replacement));
                // A table that references itself is its own parent in its new form.
                let mut future = dictionary.clone();
                if child.definition.id != job.table {
                    future.remove_table(job.table);
                    future.put_table(TableDefinition { kind: TableKind::Base, ..child.definition.clone() });
                }
                ForeignKeyCheck::start(&future, child, key, &mut work)
                    .map(|check| (JobWork::Checking(Box::new(check)), None))
            }
        };
        match started {
            Ok((started, result)) => {
                job.work = started;
                self.on_work_result(position, result, outbox);
            }
            Err(error) => self.on_work_result(position, Some(Err(error)), outbox),
        }
    }

    /// Lets the job go on if its filling or checking has ended.
    fn on_work_result(&mut self, position: usize, result: WorkResult, outbox: &mut Outbox<Signal>) {
        let Some(result) = result else { return };
        let job = &mut self.jobs[position];
        match (result, &job.work) {
            (Ok(()), JobWork::Filling(backfill)) => {
                outbox.crash_point(crash_point::JOB_FILL.after());
                job.filled.push(backfill.index());
            }
            (Ok(()), JobWork::Copying) => {
                outbox.crash_point(crash_point::JOB_COPY.after());
                if job.blocks_writes
                    && let Some(mut copy) = job.copy.take()
                {
                    copy.release(&mut self.gateway);
                    job.has_copied = true;
                    job.rows = copy.rows();
                    job.next_number = copy.next_number();
                    job.diagnostics = copy.into_diagnostics();
                }
            }
            (Ok(()), JobWork::Checking(check)) => {
                outbox.crash_point(crash_point::JOB_CHECK.after());
                if job.keys_checked == 0 {
                    job.rows = check.rows();
                }
                job.keys_checked += 1;
            }
            (Ok(()), JobWork::Ready | JobWork::Queued) => {}
            (Err(error), _) => {
                job.error.get_or_insert(error);
            }
        }
        self.wake_job(position, outbox);
    }

    /// The node stops. Jobs are undone, so that the stop does not wait for all of their rows.
    pub(super) fn stop_jobs(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        for position in 0..self.jobs.len() {
            self.cancel_job((position, Error::server_shutdown()), context, outbox);
        }
    }

    /// Cancels a job whose step does not wait: it is undone before its next step.
    pub(super) fn cancel_job(
        &mut self,
        (position, error): (usize, Box<Error>),
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let job = &mut self.jobs[position];
        job.error.get_or_insert(error);
        job.is_cancelled = true;
        let mut turn = TurnContext::new(context, outbox);
        match &mut job.work {
            JobWork::Filling(backfill) => backfill.interrupt(&mut self.gateway, &mut turn),
            JobWork::Copying => {
                if let Some(copy) = &mut job.copy {
                    copy.interrupt(&mut self.gateway, &mut turn);
                }
            }
            JobWork::Checking(check) => check.interrupt(),
            JobWork::Ready | JobWork::Queued => {}
        }
    }

    /// Handles a reply to a statement or read of a job. Such replies have the form of replies to sql.
    pub fn handle_reply(
        &mut self,
        signal: SqlSignal,
        from: Address,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        self.counted.signals += 1;
        let mut turn = TurnContext::new(context, outbox);
        let event = match signal {
            SqlSignal::ReadRowsReply(reply) => self.gateway.on_read_rows_reply(reply, from, &mut turn),
            SqlSignal::ExecuteStatementReply(reply) => {
                self.gateway.session_of(reply.operation).and_then(|connection| {
                    let job = self.jobs.iter_mut().find(|job| job.requester.connection == connection)?;
                    let transaction = match (&mut job.work, &mut job.copy) {
                        (JobWork::Filling(backfill), _) => backfill.transaction(),
                        (JobWork::Copying, Some(copy)) => copy.transaction(),
                        _ => return None,
                    };
                    let event = self.gateway.on_execute_statement_reply(reply, transaction)?;
                    Some((connection, event))
                })
            }
            SqlSignal::EndTransactionReply(reply) => self.gateway.on_end_transaction_reply(reply),
            SqlSignal::BeginEpoch(signal) => {
                self.gateway.on_begin_epoch(signal, from, &mut turn);
                None
            }
            // The session is one of this node.
            SqlSignal::UseUserLockReply(reply) => {
                self.on_own_lock_reply(reply, turn.outbox);
                None
            }
            // A job has no slot to lend.
            SqlSignal::NoteLockWait(_) => None,
            SqlSignal::ChangeSchemaReply(reply) if reply.operation == FIRST_ACCOUNTS => {
                // Without the stored accounts, the next start would let root in without the password.
                if let Some(error) = reply.error.filter(|_| self.catalog.dictionary.access.version == 0) {
                    junctor_kernel::invariant::fail("the first accounts are stored", format_args!("{}", error.message));
                }
                None
            }
            other => junctor_kernel::invariant::fail("main gets replies of the data plane", format_args!("{other:?}")),
        };
        if let Some((connection, event)) = event {
            self.resume_job(connection, event, &mut turn);
        }
    }

    /// Gives an event to the work that waits for it.
    fn resume_job(&mut self, connection: ConnectionId, event: Event, turn: &mut TurnContext<'_>) {
        let Some(position) = self.job_position(connection) else {
            junctor_kernel::invariant::fail("a job ends after its operations", format_args!("{connection:?}"))
        };
        let job = &mut self.jobs[position];
        let mut work =
            WorkContext { gateway: &mut self.gateway, inputs: &mut self.inputs, turn, requester: job.requester };
        let result = match (&mut job.work, &mut job.copy) {
            (JobWork::Filling(backfill), _) => backfill.resume(&mut work, event),
            (JobWork::Copying, Some(copy)) => copy.resume(&mut work, event),
            (JobWork::Checking(check), _) => check.resume(&mut work, event),
            (JobWork::Ready | JobWork::Queued | JobWork::Copying, _) => {
                junctor_kernel::invariant::fail("work ends after its operations", format_args!("{event:?}"))
            }
        };
        self.on_work_result(position, result, turn.outbox);
    }

    /// The number of each kind of resource that alterations hold, by name, for checkers.
    pub fn held_by_alterations(&self) -> [(&'static str, usize); 3] {
        [
            ("alterations", self.jobs.len()),
            ("operations of alterations", self.gateway.operations_under_way()),
            ("snapshots of alterations", self.gateway.snapshots_held()),
        ]
    }
}
