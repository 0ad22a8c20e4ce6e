//! Waits for tables before a change: sql blocks admit no new users of the tables, and report when the last
//! user is gone.
//!
//! Changes of the same table start in order of arrival; other changes may overtake. A change waits no longer
//! than its session allows. Transactions that are older than a change precede it (`RecallTables`), and
//! sessions commit before they request a change, so no cycle of waits forms here. While an alteration fills
//! indexes or checks rows, other changes of its tables stay in the queue and exclude nobody. The next step of
//! the alteration goes before them. If another session locks the tables of a change again before the change
//! starts, the change asks for them once more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use junctor_kernel::{Context, Duration, Outbox, Time, WorldRequest, require};
use junctor_model::alteration::Alteration;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::ForeignKey;
use junctor_model::id::TableId;
use junctor_signals::block_tables::{
    BlockTables, BlockTablesReply, BlockedTable, CancelSchemaChange, Exclusion, NoteChangeWait, RecallTables,
    TableUsers, UnblockTables,
};
use junctor_signals::change_schema::{ChangeSchema, SchemaChange};
use junctor_signals::read_rows::OperationId;
use junctor_signals::{Signal, SqlSignal};

use super::block::MainBlock;
use super::change_schema::reply;
use super::foreign_key;
use super::lock_tables::tolerates_locks;
use super::own_table::is_of_own_table;
use super::state::{AlterationStep, Requester, TableName, Task, WaitState, WaitingChange};

/// Maximum number of waiting changes. Further ones are refused.
const QUEUE_MAX: usize = 256;

/// Milliseconds between checks of deadlines, and thus the maximum delay of error 1205.
const WAIT_TIMER_MS: u64 = 100;

/// Maximum number of signals to sql blocks in one check of deadlines.
const SIGNALS_PER_CHECK: usize = 48;

/// Later than any deadline.
const NO_DEADLINE: Time = Time(u64::MAX);

impl MainBlock {
    pub(super) fn on_change_schema(
        &mut self,
        request: ChangeSchema,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        self.counted.schema_changes += 1;
        let requester = Requester::of(&request);
        let change = request.change;
        if let Some(error) = self.cluster_refusal(&change) {
            return reply(&requester, Err(error), outbox);
        }
        let is_end = is_end(&change);
        if self.waiting.len().max(self.jobs.len()) >= QUEUE_MAX && !is_end {
            let error = Error::new(ErrorCode::TemporaryFailure, "Too many schema changes are waiting");
            return reply(&requester, Err(error), outbox);
        }
        let is_lock = matches!(*change, SchemaChange::LockTables { .. });
        if let Some(error) = self.log_refusal().filter(|_| !is_lock && !is_end) {
            return reply(&requester, Err(error), outbox);
        }
        let task = match *change {
            SchemaChange::AlterTable { table, alteration, expressions } if alteration.has_several_steps() => {
                self.open_job(requester, table, (alteration, expressions))
            }
            other => Task::Requested(Box::new(other)),
        };
        let waiting = self.waiting_change(requester, task, context.turn_start);
        self.waiting.push_back(waiting);
        self.begin_changes(context.turn_start, outbox);
    }

    /// Creates the queue entry of a change.
    pub(super) fn waiting_change(&mut self, requester: Requester, task: Task, now: Time) -> WaitingChange {
        let number = OperationId(self.next_change);
        self.next_change += 1;
        // Adding indexes does not affect transactions that have used the table.
        let waits_for_statements = match (task.step(), task.alteration()) {
            (Some(AlterationStep::Undo), _) => true,
            (Some(AlterationStep::Finish), Some(alteration)) => alteration.only_adds_indexes(),
            _ => false,
        };
        // A session drops its tables when it ends, and cannot try again.
        let is_end = matches!(&task, Task::Requested(change) if is_end(change));
        WaitingChange {
            number,
            names: self.names_of(&task),
            users: if waits_for_statements { TableUsers::Statements } else { TableUsers::Transactions },
            deadline: match task.step() {
                // An alteration must be undone, however long that has to wait.
                Some(AlterationStep::Undo) => NO_DEADLINE,
                _ if is_end => NO_DEADLINE,
                _ => now.plus(Duration::from_millis(requester.wait_ms)),
            },
            requester,
            task,
            state: WaitState::Queued,
            tables: Arc::new([]),
        }
    }

    /// The names of the tables that a change affects. They decide the order of changes of the same table.
    fn names_of(&self, task: &Task) -> Vec<TableName> {
        let dictionary = &self.catalog.dictionary;
        let name_of = |id: &TableId| {
            let layout = dictionary.table(*id)?;
            Some((layout.definition.database.clone(), layout.definition.name.clone()))
        };
        let of_alteration = |table: &TableId, alteration: &Alteration| {
            let Some(own) = name_of(table) else { return Vec::new() };
            let parents = alteration.add_foreign_keys.iter().map(|key| key.parent.clone());
            let mut names = vec![own];
            for name in alteration.rename.iter().cloned().chain(parents) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            names
        };
        let sharing_of = |id: TableId| dictionary.table(id).map(|layout| layout.definition.sharing);
        if is_of_own_table(task, &sharing_of) {
            return Vec::new();
        }
        let change = match task {
            Task::Step { step: AlterationStep::Undo, table, .. } => return name_of(table).into_iter().collect(),
            Task::Step { table, alteration, .. } => return of_alteration(table, alteration),
            Task::Requested(change) => &**change,
        };
        match change {
            SchemaChange::CreateDatabase { .. }
            | SchemaChange::AlterDatabase { .. }
            | SchemaChange::ChangeAccess { .. } => Vec::new(),
            SchemaChange::DropDatabase { name, .. } => {
                let names = dictionary.tables_of(name).map(|layout| layout.definition.name.clone());
                names.map(|table| (name.clone(), table)).collect()
            }
            SchemaChange::CreateTable { definition, .. } | SchemaChange::CreateView { definition, .. } => {
                vec![(definition.database.clone(), definition.name.clone())]
            }
            SchemaChange::DropTables { names, .. } | SchemaChange::DropViews { names, .. } => names.clone(),
            SchemaChange::RenameTables { renames } => {
                renames.iter().flat_map(|rename| [rename.from.clone(), rename.to.clone()]).collect()
            }
            SchemaChange::LockTables { tables } => tables.iter().map(|request| request.name.clone()).collect(),
            SchemaChange::TruncateTable { table } | SchemaChange::FinishTable { table } => {
                name_of(table).into_iter().collect()
            }
            // Their names are no other session's.
            SchemaChange::CreateOwnTable { .. } | SchemaChange::DropOwnTables { .. } => Vec::new(),
            SchemaChange::AlterTable { table, alteration, .. } => of_alteration(table, alteration),
        }
    }

    /// The tables that other sessions must stop using first.
    pub(super) fn tables_to_block(&self, task: &Task, requester: &Requester, names: &[TableName]) -> Vec<BlockedTable> {
        let dictionary = &self.catalog.dictionary;
        let id_of =
            |(database, name): &TableName| dictionary.table_named(database, name).map(|layout| layout.definition.id);
        match task.step() {
            Some(AlterationStep::BuildIndexes | AlterationStep::CreateReplacement) => return Vec::new(),
            // Nobody can use the table that is dropped.
            Some(AlterationStep::Undo) if task.alteration().is_some_and(Alteration::copies_rows) => {
                return Vec::new();
            }
            // Until now, others could read the table that is replaced.
            Some(AlterationStep::Finish) if task.alteration().is_some_and(Alteration::copies_rows) => {}
            // The session or its alteration has already locked the tables.
            Some(AlterationStep::Finish | AlterationStep::Undo) if self.has_locked(requester.connection) => {
                return Vec::new();
            }
            _ => {}
        }
        let mut own: Vec<TableName> = names.to_vec();
        let mut keys: &[ForeignKey] = &[];
        let alteration = task.alteration().filter(|_| task.step() != Some(AlterationStep::Undo));
        if let Some(alteration) = alteration {
            keys = &alteration.add_foreign_keys;
            let is_parent = |name: &TableName| keys.iter().any(|key| key.parent == *name);
            own.retain(|name| names.first() == Some(name) || !is_parent(name));
        }
        if let Task::Requested(change) = task {
            match &**change {
                SchemaChange::CreateDatabase { .. }
                | SchemaChange::AlterDatabase { .. }
                | SchemaChange::ChangeAccess { .. } => return Vec::new(),
                SchemaChange::LockTables { tables } => {
                    let blocked = tables.iter().filter_map(|request| {
                        let exclusion = if request.writes { Exclusion::All } else { Exclusion::Writes };
                        Some(BlockedTable { table: id_of(&request.name)?, exclusion })
                    });
                    return blocked.collect();
                }
                SchemaChange::DropDatabase { name, .. } => {
                    let tables = dictionary.tables_of(name);
                    own = tables.map(|layout| (name.clone(), layout.definition.name.clone())).collect();
                }
                SchemaChange::CreateTable { definition, .. } => keys = &definition.foreign_keys,
                _ => {}
            }
        }
        // A plan that writes a table depends on the table's parents and children. The change therefore also
        // keeps writers out of the parents and children of its tables.
        let related = match foreign_key::keeps_relations(task) {
            true => BTreeSet::new(),
            false => foreign_key::related(dictionary, &own, keys),
        };
        let creates = |change: &SchemaChange| {
            matches!(change, SchemaChange::CreateTable { .. } | SchemaChange::FinishTable { .. })
        };
        if matches!(task, Task::Requested(change) if creates(change)) {
            own.clear();
        }
        let ids: BTreeSet<TableId> = own.iter().filter_map(id_of).collect();
        let others = related.difference(&ids).map(|table| BlockedTable { table: *table, exclusion: Exclusion::Writes });
        // Reads do not check foreign keys.
        let leaves_readers = task.is_lock()
            && alteration.is_some_and(|alteration| alteration.copies_rows() || !alteration.has_drops_or_renames());
        let exclusion = if leaves_readers { Exclusion::Writes } else { Exclusion::All };
        let own = ids.iter().map(|table| BlockedTable { table: *table, exclusion });
        own.chain(others).collect()
    }

    /// Asks the sql blocks for the tables of every change, unless an earlier change concerns the same tables.
    pub(super) fn request_exclusions(&mut self, outbox: &mut Outbox<Signal>) {
        // The value tells whether the changes that claim the table can share it.
        let mut claimed: BTreeMap<TableName, bool> = BTreeMap::new();
        let running = self.running.iter().flat_map(|change| &change.names);
        claimed.extend(running.map(|name| (name.clone(), false)));
        for position in 0..self.waiting.len() {
            let waiting = &self.waiting[position];
            let task = &waiting.task;
            let is_shared =
                |name| claimed.get(name).is_none_or(|others_share| *others_share && tolerates_locks(task, name));
            let is_free = waiting.names.iter().all(is_shared) && self.is_unlocked_by_others(waiting);
            for name in &waiting.names {
                *claimed.entry(name.clone()).or_insert(true) &= tolerates_locks(task, name);
            }
            if waiting.state != WaitState::Queued || !is_free {
                continue;
            }
            let tables: Arc<[BlockedTable]> =
                self.tables_to_block(&waiting.task, &waiting.requester, &waiting.names).into();
            let (number, users, owner) = (waiting.number, waiting.users, waiting.requester.connection);
            let waiting = &mut self.waiting[position];
            waiting.tables = Arc::clone(&tables);
            if tables.is_empty() {
                waiting.state = WaitState::Ready;
                continue;
            }
            waiting.state = WaitState::Asking { outstanding: self.session_blocks.len() };
            for to in &self.session_blocks {
                let request =
                    BlockTables { operation: number, reply_to: self.own, owner, users, tables: Arc::clone(&tables) };
                outbox.send(*to, Signal::Sql(SqlSignal::BlockTables(request)));
            }
        }
        self.start_wait_timer(outbox);
    }

    /// Whether no other session has locked a table of the change, and no alteration of another session works
    /// on one.
    fn is_unlocked_by_others(&self, waiting: &WaitingChange) -> bool {
        let WaitingChange { task, names, requester, .. } = waiting;
        let is_locked = |name: &TableName| {
            let others = self.locked.iter().filter(|locked| locked.connection != requester.connection);
            let mut claims = others.flat_map(|locked| &locked.claims).filter(|(claim, _)| claim == name);
            claims.any(|(_, others_share)| !*others_share || !tolerates_locks(task, name))
        };
        !names.iter().any(is_locked) && !self.is_altered_by_others(waiting)
    }

    /// Removes the next ready change from the queue. If it now needs a table for which it did not ask, or if
    /// another session has locked one of its tables since, the change asks once more. Otherwise the two would
    /// wait for each other to release tables.
    pub(super) fn next_ready(&mut self, now: Time, outbox: &mut Outbox<Signal>) -> Option<WaitingChange> {
        loop {
            self.request_exclusions(outbox);
            let position = self.waiting.iter().position(|waiting| waiting.state == WaitState::Ready)?;
            let mut waiting = self.waiting.remove(position)?;
            let needed = self.tables_to_block(&waiting.task, &waiting.requester, &waiting.names);
            if self.is_unlocked_by_others(&waiting) && needed.iter().all(|table| waiting.tables.contains(table)) {
                match self.find_table_by_name(&mut waiting) {
                    Ok(()) => return Some(waiting),
                    Err(error) => {
                        self.unblock_tables(waiting.number, &waiting.tables, outbox);
                        self.fail_change((&waiting.requester, waiting.task.step()), error, now, outbox);
                        continue;
                    }
                }
            }
            self.withdraw(&mut waiting, outbox);
            self.waiting.insert(position, waiting);
        }
    }

    /// Admits the sessions that a waiting change has excluded. The change will ask for its tables once more.
    fn withdraw(&mut self, waiting: &mut WaitingChange, outbox: &mut Outbox<Signal>) {
        self.unblock_tables(waiting.number, &waiting.tables, outbox);
        waiting.state = WaitState::Queued;
        waiting.names = self.names_of(&waiting.task);
        waiting.number = OperationId(self.next_change);
        self.next_change += 1;
    }

    /// Withdraws the changes of these tables, because an alteration of them goes on and precedes the changes.
    /// A transaction older than the alteration's step and younger than such a change would otherwise wait for
    /// the change, the change for the alteration, and the alteration for the transaction.
    pub(super) fn withdraw_behind(&mut self, names: &[TableName], outbox: &mut Outbox<Signal>) {
        for position in 0..self.waiting.len() {
            let waiting = &self.waiting[position];
            let has_asked = waiting.state != WaitState::Queued && !waiting.tables.is_empty();
            if !has_asked || self.is_step_under_way(waiting) || !waiting.names.iter().any(|name| names.contains(name)) {
                continue;
            }
            let Some(mut waiting) = self.waiting.remove(position) else { return };
            self.withdraw(&mut waiting, outbox);
            self.waiting.insert(position, waiting);
        }
    }

    /// Withdraws all changes that have asked sessions for their tables, because the sessions are others now.
    pub(super) fn withdraw_all(&mut self, outbox: &mut Outbox<Signal>) {
        for position in 0..self.waiting.len() {
            let waiting = &self.waiting[position];
            if waiting.state != WaitState::Queued
                && !waiting.tables.is_empty()
                && let Some(mut waiting) = self.waiting.remove(position)
            {
                self.withdraw(&mut waiting, outbox);
                self.waiting.insert(position, waiting);
            }
        }
    }

    /// Finds the table by its name again, because a table that was truncated in the meantime has a new id.
    /// Error 1146 if the table was renamed, because no session was excluded from it under its new name.
    fn find_table_by_name(&self, waiting: &mut WaitingChange) -> Result<()> {
        let dictionary = &self.catalog.dictionary;
        let table = match &mut waiting.task {
            Task::Step {
                step: AlterationStep::CreateIndexes | AlterationStep::CreateReplacement | AlterationStep::BlockWrites,
                table,
                ..
            } => table,
            Task::Step { .. } => return Ok(()),
            Task::Requested(change) => match &mut **change {
                SchemaChange::TruncateTable { table } | SchemaChange::AlterTable { table, .. } => table,
                _ => return Ok(()),
            },
        };
        let Some((database, name)) = waiting.names.first() else { return Ok(()) };
        match dictionary.table_named(database, name) {
            Some(layout) => *table = layout.definition.id,
            None => {
                let message = format!("Table '{database}.{name}' doesn't exist");
                return Err(Error::new(ErrorCode::NoSuchTable, message));
            }
        }
        Ok(())
    }

    /// Notifies the requesting session that its change starts, if it has waited.
    pub(super) fn notify_started(&self, waiting: &WaitingChange, outbox: &mut Outbox<Signal>) {
        if !waiting.tables.is_empty() && waiting.task.step() != Some(AlterationStep::Undo) {
            note_change_wait(&waiting.requester, false, outbox);
        }
    }

    /// Admits the sessions that a change has excluded.
    pub(super) fn unblock_tables(&self, number: OperationId, tables: &[BlockedTable], outbox: &mut Outbox<Signal>) {
        if tables.is_empty() {
            return;
        }
        for to in &self.session_blocks {
            outbox.send(*to, Signal::Sql(SqlSignal::UnblockTables(UnblockTables { operation: Some(number) })));
        }
    }

    pub(super) fn on_block_tables_reply(
        &mut self,
        reply: BlockTablesReply,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let waiting = self.waiting.iter_mut().find(|waiting| waiting.number == reply.operation);
        if let Some(waiting) = waiting
            && let WaitState::Asking { outstanding } = &mut waiting.state
        {
            require!(*outstanding > 0, "each sql block answers once");
            *outstanding -= 1;
            if *outstanding == 0 {
                waiting.state = WaitState::Ready;
                self.begin_changes(context.turn_start, outbox);
            }
        }
    }

    /// A sql block that has already replied recalls its reply, because a transaction older than the change
    /// needs a table. If the change has not started, asks that block again, and the transaction precedes the
    /// change.
    pub(super) fn on_recall_tables(&mut self, signal: RecallTables, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.number == signal.operation) else { return };
        waiting.state = match waiting.state {
            WaitState::Asking { outstanding } => WaitState::Asking { outstanding: outstanding + 1 },
            WaitState::Ready | WaitState::Queued => WaitState::Asking { outstanding: 1 },
        };
        let request = BlockTables {
            operation: waiting.number,
            reply_to: own,
            owner: waiting.requester.connection,
            users: waiting.users,
            tables: Arc::clone(&waiting.tables),
        };
        outbox.send(signal.from, Signal::Sql(SqlSignal::BlockTables(request)));
    }

    pub(super) fn on_cancel_schema_change(
        &mut self,
        signal: CancelSchemaChange,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let is_requester =
            |requester: &Requester| (requester.operation, requester.reply_to) == (signal.operation, signal.reply_to);
        let is_meant = |waiting: &WaitingChange| {
            is_requester(&waiting.requester) && waiting.task.step() != Some(AlterationStep::Undo)
        };
        if let Some(position) = self.waiting.iter().position(is_meant) {
            let error = Error::query_interrupted();
            self.give_up(position, error, context.turn_start, outbox);
            self.begin_changes(context.turn_start, outbox);
        } else if let Some(position) = self.jobs.iter().position(|job| is_requester(&job.requester)) {
            self.cancel_job((position, Error::query_interrupted()), context, outbox);
        }
    }

    /// Gives up a waiting change, and undoes the earlier steps of its alteration.
    pub(super) fn give_up(&mut self, position: usize, error: Box<Error>, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(waiting) = self.waiting.remove(position) else { return };
        if waiting.state != WaitState::Queued {
            self.unblock_tables(waiting.number, &waiting.tables, outbox);
        }
        self.fail_change((&waiting.requester, waiting.task.step()), error, now, outbox);
    }

    fn start_wait_timer(&mut self, outbox: &mut Outbox<Signal>) {
        if !self.wait_timer_runs && self.waiting.iter().any(|waiting| waiting.deadline != NO_DEADLINE) {
            self.wait_timer_runs = true;
            outbox.request(WorldRequest::StartTimer { after: Duration::from_millis(WAIT_TIMER_MS), token: 0 });
        }
    }

    /// Gives up overdue changes. One timer serves all of them.
    pub(super) fn on_wait_timer(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.wait_timer_runs = false;
        for _ in 0..(SIGNALS_PER_CHECK / self.session_blocks.len().max(1)).max(1) {
            let is_late = |waiting: &WaitingChange| waiting.deadline <= context.turn_start;
            let Some(position) = self.waiting.iter().position(is_late) else { break };
            self.give_up(position, Error::lock_wait_timeout(), context.turn_start, outbox);
        }
        self.begin_changes(context.turn_start, outbox);
    }
}

/// Whether this is the last change of a session that ends.
fn is_end(change: &SchemaChange) -> bool {
    matches!(change, SchemaChange::DropOwnTables { .. })
}

/// Notifies the requesting session that its change begins or ends a wait for other sessions.
pub(super) fn note_change_wait(requester: &Requester, waits: bool, outbox: &mut Outbox<Signal>) {
    let signal = NoteChangeWait { operation: requester.operation, waits };
    outbox.send(requester.reply_to, Signal::Sql(SqlSignal::NoteChangeWait(signal)));
}
