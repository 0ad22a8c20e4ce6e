//! Temporary tables, and CREATE TABLE ... SELECT.
//!
//! CREATE TABLE ... SELECT first creates a table that only its session finds, then inserts the rows of the
//! query in a transaction of its own, and at last makes the table one of all sessions. If a step fails, the
//! table is dropped. A temporary table is created in the same way, without the last step; its rows belong to
//! the transaction of the session, if one is open.

use std::sync::Arc;

use junctor_gateway::{SchemaRequest, TurnContext};
use junctor_model::access::AccountName;
use junctor_model::error::{Error, Result};
use junctor_model::id::{ConnectionId, TableId, TableOwner};
use junctor_model::schema::TableLayout;
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::end_transaction::Ending;
use junctor_signals::program::RowProtocol;

use super::facts::{StatementFacts, with_environment};
use crate::access::{NeedsCollector, RightsOfSession};
use crate::bind::Environment;
use crate::definition::{CheckedDefinition, with_implicit_timestamps};
use crate::execute::{
    AfterSchemaChange, AfterTransactionEnd, DefinitionRetry, Engine, FillTable, FilledTable, PlanInput, Session,
    StatementContext, StatementInput, TableLocks, has_locked_tables, send_schema_change, start_ending,
    start_insert_select, undo_creation,
};
use crate::parse::Statement;
use crate::parse::definition::CreateTable;
use crate::parse::session_value::read_assigned_variables;
use crate::parse::statement::{Insert, InsertSource};
use crate::plan::{Plan, Planned, QueryPlan, plan_fill, plan_source};
use crate::result::Progress;

/// Waits of a change that nobody waits for, in milliseconds.
const NO_WAIT_MS: u64 = 0;

impl Engine {
    /// The number of a session for tables of its own.
    pub(super) fn next_owner(&mut self, connection: ConnectionId) -> TableOwner {
        self.private_count += 1;
        TableOwner::new(connection, self.gateway.incarnation(), self.private_count)
    }

    /// Drops the tables of a session that ends or is reset, without waiting for the reply.
    pub(crate) fn drop_own_tables(&mut self, session: &mut Session, turn: &mut TurnContext<'_>) {
        let dictionary = &self.gateway.catalog().dictionary;
        let own = dictionary.tables_owned_by(session.owner).map(|layout| layout.definition.id);
        self.undropped_tables.extend(own);
        session.private_key = 0;
        if self.undropped_tables.is_empty() {
            return;
        }
        let tables: Vec<TableId> = std::mem::take(&mut self.undropped_tables);
        let request = SchemaRequest {
            session: session.connection,
            change: SchemaChange::DropOwnTables { tables: tables.clone() },
            wait_ms: NO_WAIT_MS,
            lock_wait_ms: 0,
            foreign_key_checks: false,
        };
        if self.gateway.change_schema(request, turn).is_err() {
            // The next session that ends tries again.
            self.undropped_tables = tables;
        }
    }
}

impl StatementContext<'_, '_> {
    /// Executes a statement that changes the schema. `tries` counts how often others have changed its table
    /// meanwhile.
    pub(super) fn execute_definition(&mut self, written: &Statement, tries: u32) -> Progress {
        let completed = match self.session.variables.nulls_are_now() {
            true => {
                let dictionary = &self.engine.gateway.catalog().dictionary;
                let altered = match written {
                    Statement::AlterTable(alter) => {
                        let database = alter.table.database.as_deref().or(self.session.database());
                        let owner = self.session.temporary_owner();
                        database.and_then(|name| dictionary.table_seen_by(owner, name, &alter.table.name))
                    }
                    _ => None,
                };
                with_implicit_timestamps(written, altered.map(|layout| &layout.definition))
            }
            false => None,
        };
        let statement = completed.as_ref().unwrap_or(written);
        let planned = match statement {
            Statement::CreateTable(table) => self.plan_query_of(table),
            _ => Ok(None),
        };
        if self.engine.table_statistics.are_missing() {
            // The statement starts again when the ldm blocks have reported.
            return Progress::Waiting;
        }
        let defined = planned.and_then(|query| Ok((self.define(statement, query.as_ref())?, query)));
        match defined {
            Ok((defined, query)) => {
                let repeats = query.is_none()
                    && matches!(&defined.change, SchemaChange::AlterTable { .. } | SchemaChange::TruncateTable { .. });
                let retry = repeats.then(|| {
                    let session = &*self.session;
                    let noted = (session.warning_count, session.error_count, session.diagnostics.len());
                    Box::new(DefinitionRetry { statement: written.clone(), tries, noted })
                });
                self.start_definition(statement, defined, (query, retry))
            }
            // As in MySQL, the open transaction is committed even if the schema change is refused.
            Err(error) if !is_temporary(statement) => {
                start_ending(self, Ending::Commit, AfterTransactionEnd::Fail(error))
            }
            Err(error) => crate::execute::fail(self, &error),
        }
    }

    /// Executes a statement that alters a table once more, because others have changed the table meanwhile.
    pub(super) fn define_again(&mut self, statement: &Statement, tries: u32) -> Progress {
        match self.check_unplanned(statement) {
            Ok(()) => self.execute_definition(statement, tries),
            Err(error) => crate::execute::fail(self, &error),
        }
    }

    fn start_definition(
        &mut self,
        statement: &Statement,
        defined: CheckedDefinition,
        (query, retry): (Option<QueryPlan>, Option<Box<DefinitionRetry>>),
    ) -> Progress {
        let CheckedDefinition { change, notes, existence_notes, commits, creates, then } = defined;
        let fill = match (statement, &change, query) {
            (Statement::CreateTable(table), SchemaChange::CreateOwnTable { definition, .. }, Some(query))
                if creates =>
            {
                Some(Box::new(FillTable {
                    name: (definition.database.clone(), definition.name.clone()),
                    is_temporary: table.temporary,
                    query,
                    ignores: table.select.as_ref().is_some_and(|select| select.ignore),
                    replaces: table.select.as_ref().is_some_and(|select| select.replace),
                    parameters: self.engine.work.parameters.clone(),
                }))
            }
            _ => None,
        };
        let then = match (fill, then, retry) {
            (Some(fill), ..) => AfterSchemaChange::Fill(fill),
            (None, Some(change), _) => AfterSchemaChange::Change(Box::new(change)),
            (None, None, Some(retry)) => AfterSchemaChange::Alter(retry),
            (None, None, None) => AfterSchemaChange::Answer,
        };
        let after = AfterTransactionEnd::Schema { change: Box::new(change), notes, existence_notes, then };
        match after {
            after if commits => start_ending(self, Ending::Commit, after),
            AfterTransactionEnd::Schema { change, notes, existence_notes, then } => {
                send_schema_change(self, *change, (notes, existence_notes), then)
            }
            _ => Progress::Waiting,
        }
    }

    /// The query of CREATE TABLE ... SELECT.
    fn plan_query_of(&self, table: &CreateTable) -> Result<Option<QueryPlan>> {
        let Some(select) = &table.select else { return Ok(None) };
        self.engine.lock_calls.borrow_mut().restart();
        self.engine.table_statistics.restart();
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        let (rights, who) = (self.engine.rights_for(self.session), self.session.who());
        let of_account = |account: &AccountName| self.engine.rights_of_account(account);
        let session = RightsOfSession { rights: &rights, who: &who, of_account: &of_account };
        let collector = NeedsCollector::new(session);
        let (database, kinds) = (self.session.database(), &self.engine.work.kinds);
        let mut query = Statement::Select(select.query.clone());
        read_assigned_variables(&mut query);
        let Statement::Select(query) = query else { return Ok(None) };
        let planned = with_environment(&facts, (database, Some(&collector)), kinds, &mut |environment| {
            plan_source(environment, select.ignore, &query, &facts)
        })?;
        collector.finish()?;
        if self.engine.lock_calls.borrow_mut().has_unanswered() {
            return Err(Error::not_supported("lock functions in CREATE TABLE ... SELECT"));
        }
        Ok(Some(planned.plan))
    }

    /// Inserts the rows of the query into the table that has been created for it.
    pub(super) fn fill_table(&mut self, fill: FillTable) -> Progress {
        let FillTable { name: (database, name), is_temporary, .. } = &fill;
        let dictionary = &self.engine.gateway.catalog().dictionary;
        let Some(layout) = dictionary.owned_table(self.session.owner, database, name).map(Arc::clone) else {
            return crate::execute::fail(self, &Error::table_definition_changed());
        };
        let table = FilledTable { table: layout.definition.id, is_temporary: *is_temporary };
        let plan = match self.plan_fill_of(&fill, &layout) {
            Ok(plan) => plan,
            Err(error) => return undo_creation(self, table, error),
        };
        self.engine.work.parameters.clear();
        self.engine.work.parameters.extend_from_slice(&fill.parameters);
        let input = PlanInput { protocol: RowProtocol::Values, shaped_text: None, input: StatementInput::NONE };
        start_insert_select(self, &plan, &input, Some(table))
    }

    fn plan_fill_of(&mut self, fill: &FillTable, layout: &Arc<TableLayout>) -> Result<Arc<crate::plan::InsertPlan>> {
        let names = fill.query.header().columns.iter().map(|column| column.name.to_string()).collect();
        let insert = Insert {
            replace: fill.replaces,
            ignore: fill.ignores,
            table: crate::parse::statement::ObjectName {
                database: Some(fill.name.0.to_string()),
                name: fill.name.1.to_string(),
            },
            columns: Some(names),
            source: InsertSource::Rows(Vec::new()),
            row_alias: None,
            on_duplicate: Vec::new(),
            returning: Vec::new(),
            hints: None,
        };
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        let planned =
            with_environment(&facts, (self.session.database(), None), &[], &mut |environment: &Environment<'_>| {
                let query = Planned { plan: fill.query.clone(), is_volatile: true };
                plan_fill(environment, &insert, layout, query)
            })?;
        let Plan::Insert(plan) = planned.plan else { return Err(Error::table_definition_changed()) };
        self.enter_tables_now(&Plan::Insert(Arc::clone(&plan)))?;
        Ok(plan)
    }
}

/// Whether a statement names temporary tables only. It does not end the open transaction.
pub(super) fn is_temporary(statement: &Statement) -> bool {
    match statement {
        Statement::CreateTable(table) => table.temporary,
        Statement::CreateTableLike(like) => like.temporary,
        Statement::DropTable(tables) => tables.temporary,
        _ => false,
    }
}

/// Whether a definition is refused while the session holds table locks. Errors: 1099 and 1100 for a table
/// that is not locked for writes, else 1192.
pub(super) fn check_locked(statement: &Statement, locks: &TableLocks, database: Option<&str>) -> Result<()> {
    if is_temporary(statement) {
        return Ok(());
    }
    let changed = match statement {
        Statement::CreateTable(table) => std::slice::from_ref(&table.name),
        Statement::DropTable(tables) => &tables.tables,
        _ => &[],
    };
    for table in changed {
        locks.check_write(table.database.as_deref().or(database).unwrap_or_default(), &table.name)?;
    }
    Err(has_locked_tables())
}
