//! LOCK TABLES and UNLOCK TABLES. The main block blocks other sessions' use of locked tables. This file
//! prevents the session that holds table locks from using any other table.

use junctor_gateway::TurnContext;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::{RelatedTables, related_tables};
use junctor_model::id::TableId;
use junctor_signals::change_schema::{SchemaChange, TableLockRequest};
use junctor_signals::end_transaction::Ending;

use super::engine::Engine;
use super::session::Session;
use super::{AfterTransactionEnd, ChangeCounts, StatementContext, finish_ok, start_ending, start_schema_change};
use crate::bind::message;
use crate::parse::statement::TableLock;
use crate::plan::{Plan, QueryPlan};
use crate::result::Progress;

/// The tables that LOCK TABLES holds or requests.
#[derive(Debug)]
pub(crate) struct TableLocks {
    /// The request to the main block, each table once.
    requests: Vec<TableLockRequest>,
    /// The tables that the statement names, and the tables that foreign keys connect with them.
    wanted: Vec<TableLocked>,
    /// The locked tables; empty while the request is pending.
    held: Vec<(TableId, TableLocked)>,
    /// Whether the node that kept the locks is lost.
    are_lost: bool,
}

/// One locked table under one name.
#[derive(Clone, Debug)]
struct TableLocked {
    /// Database and name.
    name: (Box<str>, Box<str>),
    /// The name or alias that statements must use; `None` if only foreign keys reach the table.
    shown: Option<Box<str>>,
    /// Whether statements may write the table.
    writes: bool,
}

impl TableLocks {
    /// Checks that statements may write the table, under whatever name. Errors: 1099, 1100.
    pub(crate) fn check_write(&self, database: &str, table: &str) -> Result<()> {
        self.check_kept()?;
        let held = self.held.iter().filter(|(_, lock)| lock.shown.is_some());
        let mut held = held.filter(|(_, lock)| *lock.name.0 == *database && *lock.name.1 == *table).peekable();
        if held.peek().is_none() {
            return Err(not_locked(table));
        }
        if held.any(|(_, lock)| lock.writes) { Ok(()) } else { Err(not_locked_for_write(table)) }
    }

    /// Error 1296 if the locks are lost.
    fn check_kept(&self) -> Result<()> {
        if !self.are_lost {
            return Ok(());
        }
        let message = "Got temporary error: the node that kept the table locks has left; lock the tables again";
        Err(Error::new(ErrorCode::TemporaryFailure, message))
    }

    /// Checks that none of the tables is locked for reads only. Error 1099.
    pub(crate) fn check_none_is_read_only(&self) -> Result<()> {
        self.check_kept()?;
        match self.held.iter().find(|(_, lock)| lock.shown.is_some() && !lock.writes) {
            Some((_, lock)) => Err(not_locked_for_write(&lock.name.1)),
            None => Ok(()),
        }
    }
}

impl StatementContext<'_, '_> {
    /// LOCK TABLES: commits the open transaction and releases earlier table locks first. Errors: 1046, 1049,
    /// 1066, 1146, 1205.
    pub(crate) fn start_lock_tables(&mut self, locks: &[TableLock]) -> Progress {
        let requests = self.engine.requests_of(self.session, locks);
        match requests {
            Ok(locks) => {
                self.engine.release_table_locks(self.session, self.turn);
                let change = SchemaChange::LockTables { tables: locks.requests.clone() };
                self.session.table_locks = Some(Box::new(locks));
                start_schema_change(self, change, Vec::new())
            }
            Err(error) => {
                let after = AfterTransactionEnd::UnlockTables { error: Some(error) };
                start_ending(self, Ending::Commit, after)
            }
        }
    }

    /// UNLOCK TABLES: commits if the session holds table locks, otherwise does nothing.
    pub(crate) fn start_unlock_tables(&mut self) -> Progress {
        if self.session.table_locks.is_none() {
            return finish_ok(self, ChangeCounts::default());
        }
        let after = AfterTransactionEnd::UnlockTables { error: None };
        start_ending(self, Ending::Commit, after)
    }
}

impl Engine {
    fn requests_of(&self, session: &Session, locks: &[TableLock]) -> Result<TableLocks> {
        let dictionary = &self.gateway.catalog().dictionary;
        let mut requests: Vec<TableLockRequest> = Vec::new();
        let mut wanted: Vec<TableLocked> = Vec::new();
        let mut reached = Vec::new();
        for lock in locks {
            let Some(database) = lock.table.database.as_deref().or(session.database()) else {
                return Err(Error::new(ErrorCode::NoDatabaseSelected, "No database selected"));
            };
            let name = &lock.table.name;
            let own = session.temporary_owner().and_then(|owner| dictionary.owned_table(owner, database, name));
            if own.is_some() {
                continue;
            }
            let Some(layout) = dictionary.table_named(database, name) else {
                return Err(match dictionary.database(database) {
                    None => message::unknown_database(database),
                    Some(_) => message::no_such_table(database, name),
                });
            };
            let alias = lock.alias.as_deref().unwrap_or(name);
            if wanted.iter().any(|other| other.shown.as_deref() == Some(alias)) {
                return Err(Error::new(ErrorCode::NonUniqueTable, format!("Not unique table/alias: '{alias}'")));
            }
            let definition = &layout.definition;
            let name = (definition.database.clone(), definition.name.clone());
            request(&mut requests, name.clone(), lock.write);
            wanted.push(TableLocked { name, shown: Some(alias.into()), writes: lock.write });
            if lock.write && session.variables.foreign_key_checks {
                reached.push(related_tables(dictionary, definition));
            }
        }
        // Foreign keys reach tables that the statement need not name: parents are only read, children may be
        // changed.
        for RelatedTables { read, written } in reached {
            let related =
                read.into_iter().map(|table| (table, false)).chain(written.into_iter().map(|table| (table, true)));
            for (table, writes) in related {
                let Some(layout) = dictionary.table(table) else { continue };
                let name = (layout.definition.database.clone(), layout.definition.name.clone());
                request(&mut requests, name.clone(), writes);
                // Statements cannot write these tables by name, but foreign key actions may (see
                // `check_table_locks`).
                wanted.push(TableLocked { name, shown: None, writes: true });
            }
        }
        Ok(TableLocks { requests, wanted, held: Vec::new(), are_lost: false })
    }

    /// Records the outcome of the session's schema change. If the change was LOCK TABLES, the tables are now
    /// locked, or no longer requested.
    pub(crate) fn finish_table_locks(&mut self, session: &mut Session, succeeded: bool) {
        // Only a pending LOCK TABLES has locks without held tables.
        let Some(locks) = session.table_locks.as_mut().filter(|locks| locks.held.is_empty()) else { return };
        if !succeeded {
            session.table_locks = None;
            return;
        }
        let dictionary = &self.gateway.catalog().dictionary;
        let held = locks.wanted.iter().filter_map(|wanted| {
            let layout = dictionary.table_named(&wanted.name.0, &wanted.name.1)?;
            Some((layout.definition.id, wanted.clone()))
        });
        locks.held = held.collect();
    }

    /// The node that kept the session's table locks is lost. Statements fail until the session unlocks them.
    pub fn lose_table_locks(&mut self, session: &mut Session) {
        let held = session.table_locks.as_mut().filter(|locks| !locks.held.is_empty() && !locks.are_lost);
        if let Some(locks) = held {
            locks.are_lost = true;
            self.tables.lost_locks += 1;
        }
    }

    /// Releases the session's table locks.
    pub(crate) fn release_table_locks(&mut self, session: &mut Session, turn: &mut TurnContext<'_>) {
        if let Some(locks) = session.table_locks.take() {
            self.tables.lost_locks -= u32::from(locks.are_lost);
            self.gateway.unlock_tables(session.connection, turn);
        }
    }

    /// Checks that a plan uses only tables that LOCK TABLES has locked, each under the name given there.
    /// Errors: 1099, 1100.
    pub(super) fn check_table_locks(&self, session: &Session, plan: &Plan) -> Result<()> {
        let Some(locks) = &session.table_locks else { return Ok(()) };
        if plan.table_uses().next().is_some() {
            locks.check_kept()?;
        }
        let own = match plan.unhinted() {
            Plan::Select(select) => Some((select.table.definition.id, &*select.table_alias)),
            Plan::Change(change) => Some((change.table.definition.id, &*change.table_alias)),
            Plan::Insert(insert) => Some((insert.table.definition.id, &*insert.table.definition.name)),
            Plan::Into(into) => match &into.query {
                QueryPlan::Select(select) => Some((select.table.definition.id, &*select.table_alias)),
                QueryPlan::Compute(_) | QueryPlan::Tree(_) => None,
            },
            Plan::Compute(_) | Plan::Control(_) | Plan::Tree(_) | Plan::Modify(_) | Plan::Hinted(_) => None,
        };
        for used in plan.table_uses() {
            let shown = own.filter(|(table, _)| *table == used.table).map(|(_, shown)| shown);
            let is_it = |(table, lock): &&(TableId, TableLocked)| {
                // A table that is locked only for its foreign keys may also be read.
                let is_called_so = |shown: &str| match &lock.shown {
                    Some(own) => **own == *shown,
                    None => !used.writes && *lock.name.1 == *shown,
                };
                *table == used.table && shown.is_none_or(is_called_so)
            };
            let name = || {
                let layout = self.gateway.catalog().dictionary.table(used.table);
                shown.unwrap_or(layout.map_or("", |layout| &layout.definition.name))
            };
            let mut held = locks.held.iter().filter(is_it).peekable();
            if held.peek().is_none() {
                return Err(not_locked(name()));
            }
            if used.writes && !held.any(|(_, lock)| lock.writes) {
                return Err(not_locked_for_write(name()));
            }
        }
        Ok(())
    }
}

/// Adds a table to the requests. A table that the statement names several times is locked once, in the
/// strongest mode.
fn request(requests: &mut Vec<TableLockRequest>, name: (Box<str>, Box<str>), writes: bool) {
    match requests.iter_mut().find(|request| request.name == name) {
        Some(request) => request.writes |= writes,
        None => requests.push(TableLockRequest { name, writes }),
    }
}

/// Error 1100.
fn not_locked(table: &str) -> Box<Error> {
    Error::new(ErrorCode::TableNotLocked, format!("Table '{table}' was not locked with LOCK TABLES"))
}

/// Error 1099.
fn not_locked_for_write(table: &str) -> Box<Error> {
    let message = format!("Table '{table}' was locked with a READ lock and can't be updated");
    Error::new(ErrorCode::TableNotLockedForWrite, message)
}

/// Error 1192: a session that holds table locks changes the schema.
pub(crate) fn has_locked_tables() -> Box<Error> {
    let message = "Can't execute the given command because you have active locked tables or an active transaction";
    Error::new(ErrorCode::LockOrActiveTransaction, message)
}
