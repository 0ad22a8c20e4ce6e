//! Metadata locks: a schema change runs while no session uses its tables.
//!
//! A transaction of several statements records each table that it uses. An autocommit statement records
//! nothing, because its execution state names its tables while it runs.
//!
//! The main block requests the tables of a schema change from every sql block. The sql block then checks all
//! its sessions once, and each session again after every step. Until the change is complete, statements that
//! would begin to use one of the tables wait. A transaction that is older than the change need not wait,
//! because the transaction and the change could otherwise wait for each other. While no change is pending, a
//! statement pays one comparison for all this.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use junctor_gateway::TurnContext;
use junctor_gateway::threads::{NodeId, Time};
use junctor_model::error::{Error, Result};
use junctor_model::id::{ConnectionId, TableId, TransactionId};
use junctor_model::value::Value;
use junctor_signals::block_tables::{BlockTables, BlockedTable, Exclusion, TableUsers, UnblockTables};
use junctor_signals::end_transaction::Ending;
use junctor_signals::read_rows::OperationId;

use super::engine::Engine;
use super::session::Session;
use super::transaction::{AfterTransactionEnd, start_ending};
use super::{Execution, PlanInput, StatementContext, StatementInput, TableWait, fail, note_change_wait};
use crate::plan::{Plan, TableUse};
use crate::result::Progress;

/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;

/// The schema changes that block tables, and the sessions that wait for these changes.
#[derive(Debug, Default)]
pub(crate) struct BlockingChanges {
    changes: Vec<BlockingChange>,
    waiters: VecDeque<TableWaiter>,
    /// The number of the last change that blocked tables.
    last: u64,
    /// Number of sessions whose locks of LOCK TABLES are lost. Their statements must learn it.
    pub(super) lost_locks: u32,
}

/// A schema change that blocks tables, and the sessions that it waits for.
#[derive(Debug)]
struct BlockingChange {
    /// The node of the main block.
    main: NodeId,
    /// The main block's number for the change.
    operation: OperationId,
    /// This sql block's number for the change; numbers ascend. A transaction is older than the change if it
    /// began to use tables before this number was assigned.
    number: u64,
    owner: ConnectionId,
    waits_for: TableUsers,
    tables: Arc<[BlockedTable]>,
    /// The sessions that may still use the tables. The change waits until this set is empty.
    users: BTreeSet<ConnectionId>,
    /// Whether this sql block has reported to the main block that no session uses the tables.
    reported_unused: bool,
    /// Whether this sql block has asked the main block to withdraw the request and send it again later.
    recalled: bool,
    /// Whether the main block that runs the change is lost. The change may be complete.
    is_orphaned: bool,
}

/// A session whose statement waits for a schema change.
#[derive(Debug)]
struct TableWaiter {
    connection: ConnectionId,
    wanted: Vec<TableUse>,
    seniority: TableSeniority,
    deadline: Time,
    /// The transaction, if all tc blocks know that it waits for a table. When another transaction waits for
    /// one of its locks, a tc then sends a signal that calls [`Engine::hasten`].
    noted: Option<TransactionId>,
    /// Whether it waits for an alteration whose next step waits for its transaction.
    is_deadlocked: bool,
}

/// Determines the schema changes that are younger than a session's transaction. The transaction need not wait
/// for a younger change that has not begun.
#[derive(Clone, Debug, Default)]
struct TableSeniority {
    /// The tables that the transaction has used.
    held: Vec<TableId>,
    /// The number of the last change when the transaction began to use tables; `None` before that.
    since: Option<u64>,
}

impl TableSeniority {
    fn of(session: &Session) -> TableSeniority {
        TableSeniority {
            held: session.tables.iter().map(|used| used.table).collect(),
            since: (!session.tables.is_empty()).then_some(session.tables_since),
        }
    }
}

impl BlockingChange {
    fn concerns(&self, used: TableUse) -> bool {
        let is_blocked = |blocked: &BlockedTable| {
            blocked.table == used.table && (used.writes || blocked.exclusion == Exclusion::All)
        };
        self.tables.iter().any(is_blocked)
    }

    /// Whether the change is younger than a transaction: the transaction has used this table, or had used any
    /// table before the change requested its tables.
    fn is_younger_than(&self, seniority: &TableSeniority, used: TableUse) -> bool {
        seniority.held.contains(&used.table) || seniority.since.is_some_and(|since| since < self.number)
    }

    /// Whether the session must wait for this change before it uses the table.
    fn excludes(&self, connection: ConnectionId, seniority: &TableSeniority, used: TableUse) -> bool {
        let concerns = self.owner != connection && self.concerns(used);
        concerns && (self.reported_unused || !self.is_younger_than(seniority, used))
    }

    /// Whether this is an earlier step of the same alteration, and still keeps sessions out.
    fn precedes(&self, next: &BlockingChange) -> bool {
        self.owner == next.owner && self.number < next.number
    }

    /// Whether the change must wait until the session ends its statement or transaction.
    fn waits_for(&self, session: &Session) -> bool {
        if session.connection == self.owner {
            return false;
        }
        let running = session.execution.table_uses().iter().any(|used| self.concerns(*used));
        let open = self.waits_for == TableUsers::Transactions && session.tables.iter().any(|used| self.concerns(*used));
        running || open
    }
}

impl BlockingChanges {
    /// Main blocks number their changes independently of each other.
    fn end_change(&mut self, main: NodeId, operation: OperationId) {
        let is_ended = |change: &BlockingChange| change.main == main && change.operation == operation;
        self.changes.retain(|change| !is_ended(change) || change.is_orphaned);
    }

    /// Whether a schema change blocks any table.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        !self.changes.is_empty() || self.lost_locks > 0
    }

    fn is_excluded(&self, connection: ConnectionId, seniority: &TableSeniority, wanted: &[TableUse]) -> bool {
        let excludes =
            |used: &TableUse| self.changes.iter().any(|change| change.excludes(connection, seniority, *used));
        wanted.iter().any(excludes)
    }

    /// Whether the session would wait for a step of an alteration that goes on, and the next step of the
    /// alteration waits for the session's transaction.
    fn is_deadlocked(&self, session: &Session, seniority: &TableSeniority, wanted: &[TableUse]) -> bool {
        let pending = self.changes.iter().filter(|change| !change.reported_unused && change.waits_for(session));
        let keeps_out = |step: &BlockingChange| {
            step.reported_unused && wanted.iter().any(|used| step.excludes(session.connection, seniority, *used))
        };
        let mut waits = pending.flat_map(|next| self.changes.iter().filter(|step| step.precedes(next)));
        waits.any(keeps_out)
    }

    /// Adds the session to the users of the tables, so that pending changes wait for it.
    fn note_users(&mut self, connection: ConnectionId, wanted: &[TableUse]) {
        for change in self.changes.iter_mut().filter(|change| !change.reported_unused && change.owner != connection) {
            if wanted.iter().any(|used| change.concerns(*used)) {
                change.users.insert(connection);
            }
        }
    }
}

impl StatementContext<'_, '_> {
    /// Runs before each statement of a transaction, and before every statement while tables are blocked.
    /// Returns `None` if the statement may run, and otherwise the progress with which the call ends.
    #[inline]
    pub(crate) fn enter_tables(&mut self, plan: &Plan, input: &PlanInput<'_>) -> Option<Progress> {
        if self.selects_again(plan) { None } else { self.enter_new_tables(plan, input) }
    }

    /// Whether a query of one table runs in a transaction that has used the table so before, and nothing else
    /// is to be checked.
    #[inline]
    fn selects_again(&self, plan: &Plan) -> bool {
        let Plan::Select(select) = plan else { return false };
        let used = TableUse { table: select.table.definition.id, writes: select.locking_program.is_some() };
        !self.engine.tables.any()
            && self.session.table_locks.is_none()
            && self.session.tracker.is_none()
            && self.session.has_used(used)
    }

    #[cold]
    fn enter_new_tables(&mut self, plan: &Plan, input: &PlanInput<'_>) -> Option<Progress> {
        if let Err(error) = self.engine.check_table_locks(self.session, plan) {
            return Some(fail(self, &error));
        }
        let wanted: Vec<TableUse> = plan.table_uses().filter(|used| !self.session.has_used(*used)).collect();
        let mut blocked = wanted.clone();
        // A change that waits for statements but not for transactions also blocks transactions that have
        // already used the table.
        blocked.extend(plan.table_uses().filter(|used| self.session.has_used(*used)));
        if self.engine.tables.any() && !blocked.is_empty() {
            let seniority = TableSeniority::of(self.session);
            if self.engine.tables.is_excluded(self.session.connection, &seniority, &blocked) {
                if self.engine.tables.is_deadlocked(self.session, &seniority, &blocked) {
                    let after = AfterTransactionEnd::Fail(Error::deadlock());
                    return Some(start_ending(self, Ending::Rollback, after));
                }
                return Some(self.wait_for_tables(blocked, seniority, input.input));
            }
            self.engine.tables.note_users(self.session.connection, &blocked);
        }
        if !self.session.transaction.explicit {
            return None;
        }
        self.tell_use(plan);
        // A snapshot cannot show the rows of a table that was created after it.
        if plan.reads_rows() && wanted.iter().any(|used| self.session.transaction.is_older_than(used.table)) {
            return Some(fail(self, &Error::table_definition_changed()));
        }
        self.use_tables(wanted);
        None
    }

    /// Like `enter_tables`, for a statement that cannot start again: where it would have to wait, it fails.
    ///
    /// # Errors
    /// 1099, 1100, and 1412 for a table that a schema change blocks, or that is younger than the snapshot.
    pub(crate) fn enter_tables_now(&mut self, plan: &Plan) -> Result<()> {
        self.engine.check_table_locks(self.session, plan)?;
        let used: Vec<TableUse> = plan.table_uses().collect();
        if self.engine.tables.any() && !used.is_empty() {
            let seniority = TableSeniority::of(self.session);
            if self.engine.tables.is_excluded(self.session.connection, &seniority, &used) {
                return Err(Error::table_definition_changed());
            }
            self.engine.tables.note_users(self.session.connection, &used);
        }
        if !self.session.transaction.explicit {
            return Ok(());
        }
        self.tell_use(plan);
        let wanted: Vec<TableUse> = used.into_iter().filter(|used| !self.session.has_used(*used)).collect();
        if wanted.iter().any(|used| self.session.transaction.is_older_than(used.table)) {
            return Err(Error::table_definition_changed());
        }
        self.use_tables(wanted);
        Ok(())
    }

    /// Notes the tables of a statement for a client that wants to know its transaction.
    fn tell_use(&mut self, plan: &Plan) {
        if let Some(tracker) = &mut self.session.tracker {
            plan.table_uses().for_each(|used| tracker.note_use(used.writes));
        }
    }

    fn use_tables(&mut self, wanted: Vec<TableUse>) {
        if self.session.tables.is_empty() {
            self.session.tables_since = self.engine.tables.last;
        }
        for used in wanted {
            match self.session.tables.iter_mut().find(|known| known.table == used.table) {
                Some(known) => known.writes |= used.writes,
                None => self.session.tables.push(used),
            }
        }
    }

    /// Suspends the statement until the changes that block its tables are complete.
    fn wait_for_tables(
        &mut self,
        wanted: Vec<TableUse>,
        seniority: TableSeniority,
        input: StatementInput<'_>,
    ) -> Progress {
        let may_retry = input.may_retry;
        let input = input.copy(&self.engine.work.parameters, self.turn);
        if input.is_none() {
            return fail(self, &Error::table_definition_changed());
        }
        let connection = self.session.connection;
        self.engine.recall_changes(connection, &seniority, &wanted, self.turn);
        let noted = self.session.transaction.has_begun().then(|| self.session.transaction.id());
        if let Some(transaction) = noted {
            self.engine.gateway.note_table_wait(connection, transaction, true, self.turn);
        }
        // A session that holds locks waits for a table no longer than it would for a row, because others may
        // be waiting for those locks.
        let mut seconds = self.session.variables.table_wait_seconds();
        if seniority.since.is_some() || self.session.transaction.has_begun() {
            seconds = seconds.min(u64::from(self.session.variables.lock_wait_seconds));
        }
        let deadline = Time(self.turn.turn_start.0.saturating_add(seconds.saturating_mul(SECOND_NS)));
        let is_deadlocked = false;
        let waiter = TableWaiter { connection, wanted, seniority, deadline, noted, is_deadlocked };
        self.engine.tables.waiters.push_back(waiter);
        self.session.execution =
            Execution::Tables(Box::new(TableWait { input, may_retry, since: self.turn.turn_start }));
        Progress::Waiting
    }

    /// Fails a statement that has waited too long for its tables with error 1205. Its transaction stays open.
    pub(crate) fn fail_table_wait(&mut self) -> Progress {
        let error = Error::lock_wait_timeout();
        self.end_table_wait(&error)
    }

    /// Ends the session's wait for tables with an error.
    pub(crate) fn end_table_wait(&mut self, error: &Error) -> Progress {
        self.engine.forget_table_wait(self.session, self.turn);
        fail(self, error)
    }
}

/// The parameters of a report of the locks on tables.
#[derive(Clone, Copy, Debug)]
pub struct LockReport {
    /// The instance of the sql block that reports.
    pub instance: u16,
    /// Waits are measured up to this time.
    pub now: Time,
    /// Maximum number of rows of the whole report.
    pub rows_max: usize,
}

impl Engine {
    /// Asks the main block to withdraw changes that are younger than the transaction, so that the transaction
    /// can use the tables first.
    fn recall_changes(
        &mut self,
        connection: ConnectionId,
        seniority: &TableSeniority,
        wanted: &[TableUse],
        turn: &mut TurnContext<'_>,
    ) {
        let begun = |change: &&mut BlockingChange| change.reported_unused && !change.recalled && !change.is_orphaned;
        for change in self.tables.changes.iter_mut().filter(begun) {
            let concerned = |used: &TableUse| change.owner != connection && change.concerns(*used);
            if wanted.iter().any(|used| concerned(used) && change.is_younger_than(seniority, *used)) {
                change.recalled = true;
                self.gateway.recall_tables(change.operation, turn);
            }
        }
    }

    /// Treats the session's transaction as older than every change. Called when another transaction waits for
    /// one of its locks. Without this, the two transactions and a change could wait for each other until a
    /// timeout.
    pub fn hasten(&mut self, session: &mut Session, transaction: TransactionId, turn: &mut TurnContext<'_>) {
        let connection = session.connection;
        let is_it = |waiter: &&mut TableWaiter| waiter.connection == connection && waiter.noted == Some(transaction);
        let Some(waiter) = self.tables.waiters.iter_mut().find(is_it) else { return };
        waiter.seniority.since = Some(0);
        session.tables_since = 0;
        let (seniority, wanted) = (waiter.seniority.clone(), waiter.wanted.clone());
        self.recall_changes(connection, &seniority, &wanted, turn);
    }

    /// Ends the wait of the session at `position` of the queue.
    fn end_wait(&mut self, position: usize, turn: &mut TurnContext<'_>) -> Option<ConnectionId> {
        let TableWaiter { connection, noted, .. } = self.tables.waiters.remove(position)?;
        if let Some(transaction) = noted {
            self.gateway.note_table_wait(connection, transaction, false, turn);
        }
        Some(connection)
    }

    fn end_wait_of(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        if let Some(position) = self.tables.waiters.iter().position(|waiter| waiter.connection == connection) {
            self.end_wait(position, turn);
        }
    }

    /// Whether any session waits for a table.
    pub fn has_table_waiters(&self) -> bool {
        !self.tables.waiters.is_empty()
    }

    /// Whether [`Engine::note_table_step`] must be called after steps of sessions.
    #[inline]
    pub fn watches_tables(&self) -> bool {
        self.tables.any()
    }

    /// Blocks the tables that the main block requests. `sessions` must be all sessions of this sql block.
    pub fn on_block_tables<'s>(
        &mut self,
        signal: BlockTables,
        sessions: impl Iterator<Item = &'s Session>,
        turn: &mut TurnContext<'_>,
    ) {
        let main = signal.reply_to.node;
        self.tables.end_change(main, signal.operation);
        self.tables.last += 1;
        let mut change = BlockingChange {
            main,
            operation: signal.operation,
            number: self.tables.last,
            owner: signal.owner,
            waits_for: signal.users,
            tables: signal.tables,
            users: BTreeSet::new(),
            reported_unused: false,
            recalled: false,
            is_orphaned: false,
        };
        let users = sessions.filter(|session| change.waits_for(session)).map(|session| session.connection).collect();
        change.users = users;
        // The change must wait for waiting sessions that are older than it, unless they wait for the end of
        // the same alteration: an earlier step of it keeps them out.
        let earlier: Vec<&BlockingChange> =
            self.tables.changes.iter().filter(|other| other.owner == change.owner && other.reported_unused).collect();
        for waiter in &mut self.tables.waiters {
            let is_older = |used: &TableUse| change.concerns(*used) && change.is_younger_than(&waiter.seniority, *used);
            let is_kept_out =
                |used: &TableUse| earlier.iter().any(|step| step.excludes(waiter.connection, &waiter.seniority, *used));
            let is_kept_out = waiter.wanted.iter().any(is_kept_out);
            // Its statement starts again, and fails.
            waiter.is_deadlocked |= is_kept_out && change.users.contains(&waiter.connection);
            if waiter.connection != change.owner && waiter.wanted.iter().any(is_older) && !is_kept_out {
                change.users.insert(waiter.connection);
            }
        }
        self.tables.changes.push(change);
        self.report_unused_tables(turn);
    }

    /// Unblocks the tables of a completed change of the main block on this node.
    pub fn on_unblock_tables(&mut self, signal: UnblockTables, main: NodeId) {
        match signal.operation {
            Some(operation) => self.tables.end_change(main, operation),
            None => self.orphan_changes(|_| true),
        }
    }

    /// The main block that runs changes on this node is lost. Changes of the next one may be here already.
    pub fn leave_main(&mut self, lost: NodeId) {
        self.orphan_changes(|main| main == lost);
    }

    /// The main blocks of these nodes are lost. Tables stay blocked until the next one has published its
    /// catalog: a change whose last record has a number is complete, and this sql block may not know it yet.
    /// Writes to the tables of before would be lost.
    fn orphan_changes(&mut self, is_lost: impl Fn(NodeId) -> bool) {
        // A change that still waits for sessions has not begun, and is lost with its main block.
        self.tables.changes.retain(|change| change.reported_unused || !is_lost(change.main));
        for change in self.tables.changes.iter_mut().filter(|change| is_lost(change.main)) {
            change.is_orphaned = true;
        }
    }

    /// Unblocks the tables of changes whose main block is lost. Returns whether there were any.
    pub fn end_orphaned_changes(&mut self) -> bool {
        let before = self.tables.changes.len();
        self.tables.changes.retain(|change| !change.is_orphaned);
        self.tables.changes.len() < before
    }

    /// Must be called after each step of a session, which may have stopped using a table.
    pub fn note_table_step(&mut self, session: &Session, turn: &mut TurnContext<'_>) {
        // A transaction that waits for a table is still going to use it, so the change must wait for it.
        let waits = matches!(session.execution, Execution::Tables(_)) && !session.tables.is_empty();
        if !waits {
            for change in
                self.tables.changes.iter_mut().filter(|change| !change.reported_unused && !change.waits_for(session))
            {
                change.users.remove(&session.connection);
            }
        }
        self.report_unused_tables(turn);
    }

    /// Removes a session that has ended.
    pub fn forget_table_user(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        self.end_wait_of(connection, turn);
        for change in &mut self.tables.changes {
            change.users.remove(&connection);
        }
        self.report_unused_tables(turn);
    }

    fn report_unused_tables(&mut self, turn: &mut TurnContext<'_>) {
        for change in self.tables.changes.iter_mut().filter(|change| !change.reported_unused && change.users.is_empty())
        {
            change.reported_unused = true;
            self.gateway.tables_are_free(change.operation, turn);
        }
    }

    /// Removes and returns the next waiting session whose statement may start.
    pub fn next_table_waiter(&mut self, turn: &mut TurnContext<'_>) -> Option<ConnectionId> {
        let tables = &self.tables;
        let may_begin = |waiter: &TableWaiter| {
            waiter.is_deadlocked || !tables.is_excluded(waiter.connection, &waiter.seniority, &waiter.wanted)
        };
        let position = tables.waiters.iter().position(may_begin)?;
        self.end_wait(position, turn)
    }

    /// Removes and returns the next session whose wait has timed out. The caller fails its statement with
    /// `fail_table_wait`.
    pub fn next_late_table_waiter(&mut self, turn: &mut TurnContext<'_>) -> Option<ConnectionId> {
        let now = turn.turn_start;
        let position = self.tables.waiters.iter().position(|waiter| waiter.deadline <= now)?;
        self.end_wait(position, turn)
    }

    /// Removes the session's wait for tables.
    pub(crate) fn forget_table_wait(&mut self, session: &mut Session, turn: &mut TurnContext<'_>) {
        let connection = session.connection;
        self.end_wait_of(connection, turn);
        if let Execution::Tables(wait) = std::mem::take(&mut session.execution) {
            wait.input.release(turn);
        }
    }

    /// Records that the session's schema change begins or ends a wait for other sessions.
    pub fn on_note_change_wait(&mut self, session: &mut Session, waits: bool, turn: &TurnContext<'_>) {
        note_change_wait(session, waits, turn.turn_start);
    }

    /// Appends the session's rows of `junctor_info.metadata_locks` until `rows_max` rows are there.
    pub fn append_table_locks(
        &self,
        session: &Session,
        LockReport { instance, now, rows_max }: LockReport,
        rows: &mut Vec<Vec<Value>>,
    ) {
        let dictionary = &self.gateway.catalog().dictionary;
        let mut append = |table: TableId, mode: &str, since: Option<Time>| {
            let Some(layout) = dictionary.table(table).filter(|_| rows.len() < rows_max) else { return };
            let waited_ms = since.map_or(Value::Null, |since| Value::UInt(now.0.saturating_sub(since.0) / 1_000_000));
            rows.push(vec![
                Value::UInt(u64::from(instance)),
                Value::UInt(u64::from(session.connection.0)),
                Value::UInt(u64::from(table.0)),
                Value::Bytes(layout.definition.database.as_bytes().to_vec()),
                Value::Bytes(layout.definition.name.as_bytes().to_vec()),
                Value::Bytes(mode.into()),
                Value::Bytes(if since.is_some() { "WAITING" } else { "GRANTED" }.into()),
                waited_ms,
            ]);
        };
        let mode_of = |used: &TableUse| if used.writes { "WRITE" } else { "READ" };
        for used in &session.tables {
            append(used.table, mode_of(used), None);
        }
        for used in session.execution.table_uses().into_iter().filter(|used| !session.has_used(*used)) {
            append(used.table, mode_of(&used), None);
        }
        if let Execution::Tables(wait) = &session.execution {
            let waiters = self.tables.waiters.iter().filter(|waiter| waiter.connection == session.connection);
            for used in waiters.flat_map(|waiter| &waiter.wanted).filter(|used| !session.has_used(**used)) {
                append(used.table, mode_of(used), Some(wait.since));
            }
        }
        if let Execution::Schema(state) = &session.execution {
            let own = self.tables.changes.iter().filter(|change| change.owner == session.connection);
            let blocked: Vec<TableId> = own.flat_map(|change| change.tables.iter().map(|it| it.table)).collect();
            // While an alteration fills its indexes, it blocks no table, but no other change may begin.
            let unblocked = state.table_in_use().filter(|table| !blocked.contains(table));
            for table in unblocked.into_iter().chain(blocked) {
                append(table, "CHANGE", state.waits_since());
            }
        }
    }
}
