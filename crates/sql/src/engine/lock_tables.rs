//! LOCK TABLES and UNLOCK TABLES. Main keeps other sessions from the tables; here the session itself is kept from all others.

use junctor_client::change_schema::{SchemaChange, TableLockRequest};
use junctor_client::{Door, Ending};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::TableId;

use super::Engine;
use super::table_use::TableUse;
use crate::bind::message;
use crate::execute::{AfterEnding, end_transaction, start_schema_change};
use crate::parse::statement::TableLock;
use crate::result::{Progress, ResultSink};
use crate::session::Session;

/// What LOCK TABLES has got, or waits for.
#[derive(Debug)]
pub(crate) struct TableLocks {
    requests: Vec<TableLockRequest>,
    /// The tables that are locked, and whether the session may write them; none while it waits.
    held: Vec<(TableId, bool)>,
}

impl Engine {
    /// LOCK TABLES: what was locked before is given back first, and the open transaction committed. Errors: 1046, 1049, 1066,
    /// 1146, 1205.
    pub(super) fn lock_tables(
        &mut self,
        session: &mut Session,
        locks: &[TableLock],
        door: &mut Door<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let requests = self.requests_of(session, locks);
        match requests {
            Ok(requests) => {
                self.release_table_locks(session, door);
                let change = SchemaChange::LockTables { tables: requests.clone() };
                session.table_locks = Some(Box::new(TableLocks { requests, held: Vec::new() }));
                start_schema_change(self, session, change, Vec::new(), door, sink)
            }
            Err(error) => {
                let after = AfterEnding::UnlockTables { error: Some(error) };
                end_transaction(self, session, Ending::Commit, after, door, sink)
            }
        }
    }

    fn requests_of(&self, session: &Session, locks: &[TableLock]) -> Result<Vec<TableLockRequest>> {
        let dictionary = &self.client.catalog().dictionary;
        let mut requests: Vec<TableLockRequest> = Vec::new();
        let mut shown: Vec<&str> = Vec::new();
        for lock in locks {
            let Some(database) = lock.table.database.as_deref().or(session.database()) else {
                return Err(Error::new(ErrorCode::NoDatabaseSelected, "No database selected"));
            };
            let name = &lock.table.name;
            let Some(layout) = dictionary.table_named(database, name) else {
                return Err(match dictionary.database(database) {
                    None => message::unknown_database(database),
                    Some(_) => message::no_such_table(database, name),
                });
            };
            let alias = lock.alias.as_deref().unwrap_or(name);
            if shown.contains(&alias) {
                return Err(Error::new(ErrorCode::NonUniqueTable, format!("Not unique table/alias: '{alias}'")));
            }
            shown.push(alias);
            let definition = &layout.definition;
            let name = (definition.database.clone(), definition.name.clone());
            // Under several aliases a table is locked as the strongest says.
            match requests.iter_mut().find(|request| request.name == name) {
                Some(request) => request.writes |= lock.write,
                None => requests.push(TableLockRequest { name, writes: lock.write }),
            }
        }
        Ok(requests)
    }

    /// Main has answered a change of the session: if it was LOCK TABLES, the tables are locked now, or not.
    pub(crate) fn settle_table_locks(&mut self, session: &mut Session, succeeded: bool) {
        let Some(locks) = session.table_locks.as_mut().filter(|locks| locks.held.is_empty()) else { return };
        if !succeeded {
            session.table_locks = None;
            return;
        }
        let dictionary = &self.client.catalog().dictionary;
        let held = locks.requests.iter().filter_map(|request| {
            let layout = dictionary.table_named(&request.name.0, &request.name.1)?;
            Some((layout.definition.id, request.writes))
        });
        locks.held = held.collect();
    }

    /// UNLOCK TABLES: commits, if there is something to give back.
    pub(super) fn unlock_tables(
        &mut self,
        session: &mut Session,
        door: &mut Door<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        if session.table_locks.is_none() {
            return super::command::answer(session, Ok(()), sink);
        }
        let after = AfterEnding::UnlockTables { error: None };
        end_transaction(self, session, Ending::Commit, after, door, sink)
    }

    /// Gives back what LOCK TABLES has got.
    pub(crate) fn release_table_locks(&mut self, session: &mut Session, door: &mut Door<'_>) {
        if session.table_locks.take().is_some() {
            self.client.unlock_tables(session.connection, door);
        }
    }

    /// Whether LOCK TABLES lets its session use tables. Errors: 1099, 1100.
    pub(super) fn check_table_locks(&self, session: &Session, uses: impl Iterator<Item = TableUse>) -> Result<()> {
        let Some(locks) = &session.table_locks else { return Ok(()) };
        for used in uses {
            let name = || {
                let layout = self.client.catalog().dictionary.table(used.table);
                layout.map_or("", |layout| &layout.definition.name)
            };
            match locks.held.iter().find(|(table, _)| *table == used.table) {
                None => {
                    let message = format!("Table '{}' was not locked with LOCK TABLES", name());
                    return Err(Error::new(ErrorCode::TableNotLocked, message));
                }
                Some((_, false)) if used.writes => {
                    let message = format!("Table '{}' was locked with a READ lock and can't be updated", name());
                    return Err(Error::new(ErrorCode::TableNotLockedForWrite, message));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// What error 1192 says of a change of the schema by a session that has locked tables.
pub(super) fn has_locked_tables() -> Box<Error> {
    let message = "Can't execute the given command because you have active locked tables or an active transaction";
    Error::new(ErrorCode::LockOrActiveTransaction, message)
}
