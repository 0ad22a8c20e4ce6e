//! Changes wait until nobody uses their tables: sql blocks are asked to keep new users out and to say when the last one is gone.
//!
//! Changes that concern a table begin in the order in which they came; others pass them. A change waits at most as long as its
//! session says. Transactions that are older than a change go first (`RecallTables`), and sessions commit before they ask for
//! a change, so nobody waits in a circle here. An alteration that is under way and waits is no writer of its table for others, and who
//! finds tables kept when its turn comes asks anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use junctor_kernel::{Context, Duration, Outbox, Time, WorldRequest, require};
use junctor_model::alteration::building_indexes;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::TableId;
use junctor_signals::block_tables::{
    BlockTables, BlockTablesReply, BlockedTable, CancelSchemaChange, ChangeSchemaStarted, Exclusion, RecallTables,
    TableUsers, UnblockTables,
};
use junctor_signals::change_schema::{ChangeSchema, SchemaChange};
use junctor_signals::read_rows::OperationId;
use junctor_signals::{Signal, SqlSignal};

use super::block::MainBlock;
use super::change_schema::reply;
use super::foreign_key;
use super::lock_tables::shares;
use super::state::{Asker, TableName, WaitState, WaitingChange};

/// Changes that may wait; the next one is refused.
const QUEUE_MAX: usize = 256;

/// How often waiting changes are looked at for their deadlines, in milliseconds: error 1205 comes at most this much late.
const WAIT_TIMER_MS: u64 = 100;

/// Signals to sql blocks that one look at deadlines sends.
const SIGNALS_PER_LOOK: usize = 48;

/// Longer than anybody waits.
const NO_DEADLINE: Time = Time(u64::MAX);

impl MainBlock {
    pub(super) fn on_change_schema(
        &mut self,
        request: ChangeSchema,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        self.counted.schema_changes += 1;
        let ChangeSchema { operation, reply_to, connection, wait_ms, foreign_key_checks, change } = request;
        let asker = Asker { operation, reply_to, connection, wait_ms, foreign_key_checks, cause: None };
        // What ends a change that has begun is never refused.
        let ends = matches!(*change, SchemaChange::FinishAlteration { .. } | SchemaChange::UndoAlteration { .. });
        if self.waiting.len() >= QUEUE_MAX && !ends {
            let error = Error::new(ErrorCode::TemporaryFailure, "Too many schema changes wait");
            return reply(asker, Vec::new(), Some(error), outbox);
        }
        let goes_on = ends || self.is_under_way(&change);
        let waiting = self.waiting_change(asker, change, context.now);
        match goes_on {
            // Others wait for the end of what has begun, so this one waits for none of them.
            true => self.waiting.push_front(waiting),
            false => self.waiting.push_back(waiting),
        }
        self.begin_changes(context.now, outbox);
    }

    /// Whether the indexes of an alteration have been made already.
    fn is_under_way(&self, change: &SchemaChange) -> bool {
        let SchemaChange::HoldTables { table, .. } = change else { return false };
        let layout = self.catalog.dictionary.table(*table);
        layout.is_some_and(|layout| building_indexes(&layout.definition).next().is_some())
    }

    /// The record of a change that has just come.
    pub(super) fn waiting_change(&mut self, asker: Asker, change: Box<SchemaChange>, now: Time) -> WaitingChange {
        let number = OperationId(self.next_change);
        self.next_change += 1;
        // Indexes that come take nothing from transactions that have used the table.
        let waits_for_statements = match &*change {
            SchemaChange::UndoAlteration { .. } => true,
            SchemaChange::FinishAlteration { alteration, .. } => alteration.only_adds_indexes(),
            _ => false,
        };
        WaitingChange {
            number,
            names: self.names_of(&change),
            users: if waits_for_statements { TableUsers::Statements } else { TableUsers::Transactions },
            deadline: match &*change {
                // What takes an alteration back is not given up.
                SchemaChange::UndoAlteration { .. } => NO_DEADLINE,
                _ => now.plus(Duration::from_millis(asker.wait_ms)),
            },
            asker,
            change,
            state: WaitState::Queued,
            tables: Arc::new([]),
        }
    }

    /// The names of the tables that a change concerns, so that changes of one table keep their order.
    fn names_of(&self, change: &SchemaChange) -> Vec<TableName> {
        let dictionary = &self.catalog.dictionary;
        let name_of = |id: &TableId| {
            let layout = dictionary.table(*id)?;
            Some((layout.definition.database.clone(), layout.definition.name.clone()))
        };
        match change {
            SchemaChange::CreateDatabase { .. } => Vec::new(),
            SchemaChange::DropDatabase { name, .. } => {
                let names = dictionary.tables_of(name).map(|layout| layout.definition.name.clone());
                names.map(|table| (name.clone(), table)).collect()
            }
            SchemaChange::CreateTable { definition, .. } => {
                vec![(definition.database.clone(), definition.name.clone())]
            }
            SchemaChange::DropTables { names, .. } => names.clone(),
            SchemaChange::RenameTables { renames } => {
                renames.iter().flat_map(|rename| [rename.from.clone(), rename.to.clone()]).collect()
            }
            SchemaChange::LockTables { tables } => tables.iter().map(|request| request.name.clone()).collect(),
            SchemaChange::TruncateTable { table } | SchemaChange::UndoAlteration { table } => {
                name_of(table).into_iter().collect()
            }
            SchemaChange::AlterTable { table, alteration }
            | SchemaChange::BuildIndexes { table, alteration }
            | SchemaChange::HoldTables { table, alteration }
            | SchemaChange::FinishAlteration { table, alteration } => {
                let Some(own) = name_of(table) else { return Vec::new() };
                let parents = alteration.add_foreign_keys.iter().map(|key| key.parent.clone());
                let mut names = vec![own];
                for name in alteration.rename.iter().cloned().chain(parents) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                names
            }
        }
    }

    /// The tables that others have to leave first.
    fn tables_to_leave(&self, change: &SchemaChange, asker: &Asker, names: &[TableName]) -> Vec<BlockedTable> {
        let dictionary = &self.catalog.dictionary;
        let mut own: Vec<TableName> = match change {
            SchemaChange::CreateDatabase { .. } | SchemaChange::BuildIndexes { .. } => return Vec::new(),
            // They are kept already.
            SchemaChange::FinishAlteration { .. } | SchemaChange::UndoAlteration { .. }
                if self.has_locked(asker.connection) =>
            {
                return Vec::new();
            }
            SchemaChange::AlterTable { alteration, .. }
            | SchemaChange::HoldTables { alteration, .. }
            | SchemaChange::FinishAlteration { alteration, .. } => {
                let parents = alteration.add_foreign_keys.iter().map(|key| &key.parent);
                let parents: Vec<&TableName> = parents.collect();
                let stays = |name: &&TableName| names.first() == Some(name) || !parents.contains(name);
                names.iter().filter(stays).cloned().collect()
            }
            SchemaChange::DropDatabase { name, .. } => {
                let tables = dictionary.tables_of(name);
                tables.map(|layout| (name.clone(), layout.definition.name.clone())).collect()
            }
            SchemaChange::LockTables { tables } => {
                let blocked = tables.iter().filter_map(|request| {
                    let exclusion = if request.writes { Exclusion::All } else { Exclusion::Writes };
                    let layout = dictionary.table_named(&request.name.0, &request.name.1)?;
                    Some(BlockedTable { table: layout.definition.id, exclusion })
                });
                return blocked.collect();
            }
            _ => names.to_vec(),
        };
        let keys = match change {
            SchemaChange::CreateTable { definition, .. } => &definition.foreign_keys[..],
            SchemaChange::AlterTable { alteration, .. }
            | SchemaChange::HoldTables { alteration, .. }
            | SchemaChange::FinishAlteration { alteration, .. } => &alteration.add_foreign_keys[..],
            _ => &[],
        };
        let id_of =
            |(database, name): &TableName| dictionary.table_named(database, name).map(|layout| layout.definition.id);
        // Plans of tables that are joined to these by foreign keys know them.
        let related = match foreign_key::keeps_relations(change) {
            true => BTreeSet::new(),
            false => foreign_key::related(dictionary, &own, keys),
        };
        if let SchemaChange::CreateTable { .. } = change {
            own.clear();
        }
        let ids: BTreeSet<TableId> = own.iter().filter_map(id_of).collect();
        let others = related.difference(&ids).map(|table| BlockedTable { table: *table, exclusion: Exclusion::Writes });
        // Readers know nothing of foreign keys.
        let leaves_readers = matches!(change, SchemaChange::HoldTables { alteration, .. } if !alteration.takes_away());
        let exclusion = if leaves_readers { Exclusion::Writes } else { Exclusion::All };
        let own = ids.iter().map(|table| BlockedTable { table: *table, exclusion });
        own.chain(others).collect()
    }

    /// Asks the sql blocks on behalf of every change that no earlier change of the same tables stands before.
    pub(super) fn ask_for_tables(&mut self, outbox: &mut Outbox<Signal>) {
        // With whether who claims a table shares it.
        let mut claimed: BTreeMap<TableName, bool> = BTreeMap::new();
        let running = self.running.iter().flat_map(|change| &change.names);
        claimed.extend(running.map(|name| (name.clone(), false)));
        for position in 0..self.waiting.len() {
            let waiting = &self.waiting[position];
            let change = &waiting.change;
            let is_shared = |name| claimed.get(name).is_none_or(|others_share| *others_share && shares(change, name));
            let is_free = waiting.names.iter().all(is_shared) && self.is_left(waiting);
            for name in &waiting.names {
                *claimed.entry(name.clone()).or_insert(true) &= shares(change, name);
            }
            if waiting.state != WaitState::Queued || !is_free {
                continue;
            }
            let tables: Arc<[BlockedTable]> =
                self.tables_to_leave(&waiting.change, &waiting.asker, &waiting.names).into();
            let (number, users, owner) = (waiting.number, waiting.users, waiting.asker.connection);
            let waiting = &mut self.waiting[position];
            waiting.tables = Arc::clone(&tables);
            if tables.is_empty() {
                waiting.state = WaitState::Ready;
                continue;
            }
            waiting.state = WaitState::Asking { outstanding: self.sql_blocks.len() };
            for to in &self.sql_blocks {
                let request =
                    BlockTables { operation: number, reply_to: self.own, owner, users, tables: Arc::clone(&tables) };
                outbox.send(*to, Signal::Sql(SqlSignal::BlockTables(request)));
            }
        }
        self.start_wait_timer(outbox);
    }

    /// Whether no other session keeps a table of a change, and none fills an index of one that is to be kept. Those would take the
    /// index for theirs, and an alteration that waits for its tables does not keep them from its table.
    fn is_left(&self, waiting: &WaitingChange) -> bool {
        let WaitingChange { change, names, asker, .. } = waiting;
        let is_kept = |name: &TableName| {
            let others = self.locked.iter().filter(|locked| locked.connection != asker.connection);
            let mut claims = others.flat_map(|locked| &locked.claims).filter(|(claim, _)| claim == name);
            claims.any(|(_, others_share)| !*others_share || !shares(change, name))
        };
        let is_built = |name: &TableName| {
            let layout = self.catalog.dictionary.table_named(&name.0, &name.1);
            layout.is_some_and(|layout| building_indexes(&layout.definition).next().is_some())
        };
        let waits_for_index = match &**change {
            SchemaChange::LockTables { .. } => names.iter().any(is_built),
            SchemaChange::HoldTables { alteration, .. } if alteration.add_indexes.is_empty() => {
                names.first().is_some_and(is_built)
            }
            _ => false,
        };
        !waits_for_index && !names.iter().any(is_kept)
    }

    /// Takes the next change that nobody stands before. One asks again whose tables are not those that were asked for any more, or are
    /// kept by another session that has come first: both would wait for the other to give them back at the end.
    pub(super) fn next_ready(&mut self, outbox: &mut Outbox<Signal>) -> Option<WaitingChange> {
        loop {
            self.ask_for_tables(outbox);
            let position = self.waiting.iter().position(|waiting| waiting.state == WaitState::Ready)?;
            let mut waiting = self.waiting.remove(position)?;
            let needed = self.tables_to_leave(&waiting.change, &waiting.asker, &waiting.names);
            if self.is_left(&waiting) && needed.iter().all(|table| waiting.tables.contains(table)) {
                match self.name_table_again(&mut waiting) {
                    Ok(()) => return Some(waiting),
                    Err(error) => {
                        self.let_go(waiting.number, &waiting.tables, outbox);
                        reply(waiting.asker, Vec::new(), Some(error), outbox);
                        continue;
                    }
                }
            }
            self.let_go(waiting.number, &waiting.tables, outbox);
            waiting.state = WaitState::Queued;
            waiting.names = self.names_of(&waiting.change);
            waiting.number = OperationId(self.next_change);
            self.next_change += 1;
            self.waiting.insert(position, waiting);
        }
    }

    /// A table that was truncated meanwhile has its name and another id. One that is called otherwise now is not the one that
    /// was meant, and nobody was kept from it: 1146.
    fn name_table_again(&self, waiting: &mut WaitingChange) -> Result<()> {
        let dictionary = &self.catalog.dictionary;
        let (SchemaChange::TruncateTable { table }
        | SchemaChange::AlterTable { table, .. }
        | SchemaChange::HoldTables { table, .. }) = &mut *waiting.change
        else {
            return Ok(());
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

    /// Tells who asked that the change begins.
    pub(super) fn say_started(&self, waiting: &WaitingChange, outbox: &mut Outbox<Signal>) {
        if !waiting.tables.is_empty() && waiting.asker.cause.is_none() {
            let started = ChangeSchemaStarted { operation: waiting.asker.operation };
            outbox.send(waiting.asker.reply_to, Signal::Sql(SqlSignal::ChangeSchemaStarted(started)));
        }
    }

    /// Lets the sessions go on that a change keeps out.
    pub(super) fn let_go(&self, number: OperationId, tables: &[BlockedTable], outbox: &mut Outbox<Signal>) {
        if tables.is_empty() {
            return;
        }
        for to in &self.sql_blocks {
            outbox.send(*to, Signal::Sql(SqlSignal::UnblockTables(UnblockTables { operation: number })));
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
                self.begin_changes(context.now, outbox);
            }
        }
    }

    /// A change that has not begun steps back behind older transactions.
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
            owner: waiting.asker.connection,
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
        let is_meant = |waiting: &WaitingChange| {
            (waiting.asker.operation, waiting.asker.reply_to) == (signal.operation, signal.reply_to)
                && waiting.asker.cause.is_none()
        };
        if let Some(position) = self.waiting.iter().position(is_meant) {
            let error = Error::query_interrupted();
            self.give_up(position, error, context.now, outbox);
            self.begin_changes(context.now, outbox);
        }
    }

    /// A change is not waited for any longer. What was done before it is taken back.
    fn give_up(&mut self, position: usize, error: Box<Error>, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(waiting) = self.waiting.remove(position) else { return };
        if waiting.state != WaitState::Queued {
            self.let_go(waiting.number, &waiting.tables, outbox);
        }
        let fallback = fallback_of(&waiting.change);
        self.fail_change(waiting.asker, error, fallback, now, outbox);
    }

    fn start_wait_timer(&mut self, outbox: &mut Outbox<Signal>) {
        if !self.wait_timer_runs && self.waiting.iter().any(|waiting| waiting.deadline != NO_DEADLINE) {
            self.wait_timer_runs = true;
            outbox.request(WorldRequest::StartTimer { after: Duration::from_millis(WAIT_TIMER_MS), token: 0 });
        }
    }

    /// One timer for all changes, as tc has for all waits.
    pub(super) fn on_wait_timer(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.wait_timer_runs = false;
        for _ in 0..(SIGNALS_PER_LOOK / self.sql_blocks.len().max(1)).max(1) {
            let is_late = |waiting: &WaitingChange| waiting.deadline <= context.now;
            let Some(position) = self.waiting.iter().position(is_late) else { break };
            self.give_up(position, Error::lock_wait_timeout(), context.now, outbox);
        }
        self.begin_changes(context.now, outbox);
    }
}

/// What takes back what was done before a change that fails.
pub(super) fn fallback_of(change: &SchemaChange) -> Option<SchemaChange> {
    match change {
        SchemaChange::BuildIndexes { table, .. } | SchemaChange::FinishAlteration { table, .. } => {
            Some(SchemaChange::UndoAlteration { table: *table })
        }
        _ => None,
    }
}
