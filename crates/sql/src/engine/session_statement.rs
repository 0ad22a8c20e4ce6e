//! Statements without a plan: definitions, SHOW, SET and the like.

use junctor_expression::{Parameters, Scratch};
use junctor_gateway::TurnContext;
use junctor_model::error::{Error, Result};
use junctor_model::id::ConnectionId;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::value::Value;
use junctor_signals::end_transaction::Ending;
use junctor_signals::inbox::{Signal, SqlSignal};
use junctor_signals::program::RowProtocol;
use junctor_signals::set_globals::{ApplyGlobals, ApplyGlobalsReply};

use super::command::answer;
use super::facts::{Facts, with_environment};
use super::lock_tables::has_locked_tables;
use super::{Engine, OperationKind};
use crate::bind::{Binder, Clause, Environment, Folded, RowSource, Scope};
use crate::definition::{self, Defined, DefinitionContext};
use crate::execute::{
    AfterEnding, Execution, append_row, end_transaction, fail, finish, in_read_only_transaction, no_such_thread,
    release_savepoint, roll_back_to_savepoint, set_savepoint, start_schema_change,
};
use crate::mysql_catalog::show::{VirtualTable, WarningLevel, describe, show};
use crate::mysql_catalog::variable::{GlobalChange, SessionFacts, VariableId, fold_session_expression, set};
use crate::parse::statement::{Explain, SetItem};
use crate::parse::{Expression, Statement};
use crate::plan::{explain_plan, type_of_column};
use crate::result::{Progress, ResultHeader, ResultSink};
use crate::session::Session;

impl Engine {
    /// Executes a statement that has no plan.
    pub(super) fn run_without_plan(
        &mut self,
        session: &mut Session,
        statement: &Statement,
        protocol: RowProtocol,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        session.operation = if is_definition(statement) { OperationKind::Definition } else { OperationKind::Other };
        match statement {
            // Nothing but comments is done at once; a text without even these is refused by the parser.
            Statement::Empty => answer(session, Ok(()), sink),
            Statement::LockTables(locks) => self.lock_tables(session, locks, turn, sink),
            Statement::UnlockTables => self.unlock_tables(session, turn, sink),
            Statement::Use(name) => {
                let outcome = self.use_database(session, name);
                answer(session, outcome, sink)
            }
            Statement::Show(_) | Statement::Describe(_) | Statement::Explain(_) => {
                self.run_computed(session, statement, protocol, turn, sink)
            }
            Statement::Set(items) => self.run_set(session, items, turn, sink),
            Statement::Do(expressions) => {
                let mut scratch = Scratch::new();
                let outcome = expressions
                    .iter()
                    .try_for_each(|expression| self.evaluate_once(session, expression, &scratch, turn).map(|_| ()));
                if self.has_unanswered_lock_calls() {
                    return Progress::Waiting;
                }
                session.note_evaluated(WarningLevel::Warning, &mut scratch);
                answer(session, outcome, sink)
            }
            _ if is_definition(statement) => match self.define(session, statement) {
                Ok(Defined { change, notes }) => start_schema_change(self, session, change, notes, turn, sink),
                // A refused definition has committed the open transaction too.
                Err(error) => end_transaction(self, session, Ending::Commit, AfterEnding::Fail(error), turn, sink),
            },
            Statement::Savepoint(name) => set_savepoint(session, name, sink),
            Statement::RollbackToSavepoint(name) => roll_back_to_savepoint(self, session, name, turn, sink),
            Statement::ReleaseSavepoint(name) => release_savepoint(session, name, sink),
            Statement::Kill(kill) => match self.connection_to_kill(session, &kill.connection, turn) {
                Ok(connection) => self.kill(session, connection, kill.query_only, turn, sink),
                Err(error) => fail(session, &error, sink),
            },
            statement => fail(session, &Error::not_supported(name_of(statement)), sink),
        }
    }

    /// The connection that KILL names. Error: 1094 for what is no number of a connection.
    fn connection_to_kill(
        &self,
        session: &Session,
        named: &Expression,
        turn: &TurnContext<'_>,
    ) -> Result<ConnectionId> {
        let id = match self.evaluate_once(session, named, &Scratch::new(), turn)? {
            Value::Int(id) => u32::try_from(id).map_err(|_| no_such_thread(&id)),
            Value::UInt(id) => u32::try_from(id).map_err(|_| no_such_thread(&id)),
            _ => Err(no_such_thread(&0)),
        };
        id.map(ConnectionId)
    }

    /// Executes SHOW, DESCRIBE or EXPLAIN.
    fn run_computed(
        &mut self,
        session: &mut Session,
        statement: &Statement,
        protocol: RowProtocol,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let table = match self.computed_answer(session, statement, turn) {
            Ok(table) => table,
            Err(error) => return fail(session, &error, sink),
        };
        // What SHOW WARNINGS tells is not said of itself.
        let count = std::mem::take(&mut session.warning_count);
        let progress = say_table(session, table, protocol, sink);
        session.warning_count = count;
        progress
    }

    /// The rows of SHOW, DESCRIBE and EXPLAIN.
    fn computed_answer(
        &self,
        session: &Session,
        statement: &Statement,
        turn: &TurnContext<'_>,
    ) -> Result<VirtualTable> {
        let facts = Facts { engine: self, session, turn };
        match statement {
            Statement::Show(statement) => facts.with_show_facts(|show_facts| {
                show(statement, show_facts, &mut |condition, table, row| {
                    self.row_fulfils(&facts, condition, table, row)
                })
            }),
            Statement::Describe(statement) => facts.with_show_facts(|show_facts| describe(statement, show_facts)),
            Statement::Explain(explain) => self.explain(session, explain, turn),
            _ => Err(Error::not_supported("this statement")),
        }
    }

    /// Whether a row of a SHOW fulfils its WHERE.
    fn row_fulfils(
        &self,
        facts: &Facts<'_, '_>,
        condition: &Expression,
        table: &VirtualTable,
        row: &[Value],
    ) -> Result<bool> {
        let types: Vec<_> = table.columns.iter().map(type_of_column).collect();
        let scope = Scope {
            source: RowSource::Virtual { columns: &table.columns, types: &types, first_parameter: 0 },
            database: "",
            table: "",
            has_alias: false,
        };
        with_environment(facts, facts.session.database(), &[], &mut |environment: &Environment<'_>| {
            let bound = Binder::new(environment, scope).bind_in(Clause::Where, condition)?;
            let mut builder = junctor_expression::ParametersBuilder::new();
            row.iter().for_each(|value| builder.push(value.as_ref()));
            let mut bytes = Vec::new();
            builder.append_to(&mut bytes)?;
            bound.is_true(None, Parameters::from_bytes(&bytes), &Scratch::new())
        })
    }

    fn explain(&self, session: &Session, explain: &Explain, turn: &TurnContext<'_>) -> Result<VirtualTable> {
        if explain.analyze {
            return Err(Error::not_supported("EXPLAIN ANALYZE"));
        }
        if let Some(format) = explain.format.as_deref().filter(|format| !format.eq_ignore_ascii_case("traditional")) {
            return Err(Error::not_supported(&format!("EXPLAIN FORMAT={format}")));
        }
        match self.plan(session, &explain.statement, session.database(), turn)? {
            Some(planned) => {
                let (columns, rows) = explain_plan(&planned.plan);
                Ok(VirtualTable { columns, rows })
            }
            None => Err(Error::not_supported("EXPLAIN of this statement")),
        }
    }

    fn define(&self, session: &Session, statement: &Statement) -> Result<Defined> {
        if session.table_locks.is_some() {
            return Err(has_locked_tables());
        }
        // A definition ends the open transaction, so its own is the next one.
        if session.variables.next_transaction().read_only {
            return Err(in_read_only_transaction());
        }
        let account = format!("'{}'@'{}'", session.user, session.host);
        let context = DefinitionContext {
            dictionary: &self.gateway.catalog().dictionary,
            database: session.database(),
            default_partition_count: self.settings.partition_count_default,
            account: &account,
            foreign_key_checks: session.variables.foreign_key_checks,
        };
        match statement {
            Statement::CreateTable(table) => definition::create_table(table, &context),
            Statement::CreateIndex(index) => definition::create_index(index, &context),
            Statement::AlterTable(table) => definition::alter_table(table, &context),
            Statement::CreateDatabase(database) => definition::create_database(database, &context),
            Statement::DropTable(tables) => definition::drop_tables(tables, &context),
            Statement::DropIndex(index) => definition::drop_index(index, &context),
            Statement::DropDatabase(database) => definition::drop_database(database, &context),
            Statement::TruncateTable(table) => definition::truncate_table(table, &context),
            Statement::RenameTables(renames) => definition::rename_tables(renames, &context),
            _ => Err(Error::not_supported("this statement")),
        }
    }

    fn run_set(
        &mut self,
        session: &mut Session,
        items: &[SetItem],
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let mut variables = session.variables.clone();
        let mut globals = self.globals.clone();
        let mut scratch = Scratch::new();
        let facts = Facts { engine: self, session, turn };
        let effects =
            set(items, &mut variables, &mut globals, session.is_open, &mut |expression, variables, globals| {
                let session_facts = SessionFacts { variables, globals, ..facts.session_facts() };
                self.evaluate(&session_facts, session, expression, &scratch)
            });
        let effects = match effects {
            Ok(effects) => effects,
            Err(error) => {
                session.note_evaluated(WarningLevel::Warning, &mut scratch);
                return fail(session, &error, sink);
            }
        };
        if self.has_unanswered_lock_calls() {
            // It is made once main has answered.
            return Progress::Waiting;
        }
        // What is to be said is said under the settings before.
        session.note_evaluated(WarningLevel::Warning, &mut scratch);
        for (errno, message) in effects.notes {
            session.warn(WarningLevel::Warning, errno, message);
        }
        session.variables = variables;
        if let Some(number) = effects.last_insert_id {
            session.last_insert_id = number;
        }
        if !effects.global.is_empty() {
            let values = effects.global.into_iter().map(|change| (change.id.0, change.value)).collect();
            return match self.gateway.set_globals(session.connection, values, turn) {
                Ok(operation) => {
                    let commits = effects.commits;
                    session.execution = Execution::SettingGlobals { operation, commits };
                    Progress::Waiting
                }
                Err(error) => fail(session, &error, sink),
            };
        }
        self.end_set(session, effects.commits, turn, sink)
    }

    /// Every sql block has the new values of the server's variables.
    pub(super) fn on_globals_set(
        &mut self,
        session: &mut Session,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        match std::mem::take(&mut session.execution) {
            Execution::SettingGlobals { commits, .. } => self.end_set(session, commits, turn, sink),
            _ => Progress::Waiting,
        }
    }

    /// Takes what a session of any sql block has set, and says so.
    pub fn on_apply_globals(&mut self, signal: ApplyGlobals, turn: &mut TurnContext<'_>) {
        for (variable, value) in signal.values.iter() {
            self.globals.apply(&GlobalChange { id: VariableId(*variable), value: value.clone() });
        }
        self.apply_read_routing();
        let names = || signal.values.iter().map(|(variable, _)| VariableId(*variable).variable().name);
        self.apply_spinning(names(), turn);
        self.apply_sending(names(), turn);
        let reply = SqlSignal::ApplyGlobalsReply(ApplyGlobalsReply { operation: signal.operation });
        turn.outbox.send(signal.reply_to, Signal::Sql(reply));
    }

    fn end_set(
        &mut self,
        session: &mut Session,
        commits: bool,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        if commits {
            let after = AfterEnding::Complete { chain: false, release: false };
            return end_transaction(self, session, Ending::Commit, after, turn, sink);
        }
        session.transaction.explicit = session.is_open || !session.variables.autocommit;
        answer(session, Ok(()), sink)
    }

    /// The value of an expression without rows.
    fn evaluate_once(
        &self,
        session: &Session,
        expression: &Expression,
        scratch: &Scratch,
        turn: &TurnContext<'_>,
    ) -> Result<Value> {
        let facts = Facts { engine: self, session, turn };
        self.evaluate(&facts.session_facts(), session, expression, scratch)
    }

    pub(super) fn evaluate(
        &self,
        session_facts: &SessionFacts<'_>,
        session: &Session,
        expression: &Expression,
        scratch: &Scratch,
    ) -> Result<Value> {
        let fold = |expression: &Expression| {
            if let Some(value) = self.fold_lock_call(session, session_facts, expression)? {
                return Ok(Some(Folded { value, is_volatile: true }));
            }
            let folded = fold_session_expression(expression, session_facts)?;
            Ok(folded.map(|value| Folded { value, is_volatile: true }))
        };
        let environment = Environment {
            dictionary: &self.gateway.catalog().dictionary,
            database: session.database(),
            collation: session_facts.variables.collation_connection.computed_as,
            parameters: &self.work.kinds,
            fold: &fold,
            locks_reads: false,
            foreign_key_checks: true,
            is_strict: false,
        };
        let bound = Binder::new(&environment, Scope::empty()).bind(expression)?;
        let parameters = Parameters::from_bytes(&self.work.parameters);
        Ok(bound.evaluate(None, parameters, scratch)?.to_value())
    }
}

/// Says a whole computed result.
fn say_table(session: &mut Session, table: VirtualTable, protocol: RowProtocol, sink: &mut dyn ResultSink) -> Progress {
    let VirtualTable { columns, rows } = table;
    let wire_types: Vec<u8> = columns.iter().map(|column: &ResultColumn| column.wire_type).collect();
    sink.header(&ResultHeader::new(columns), &session.completion());
    let mut packets = Vec::new();
    for row in &rows {
        let values: Vec<_> = row.iter().map(Value::as_ref).zip(wire_types.iter().copied()).collect();
        append_row(protocol, values.into_iter(), &mut packets);
    }
    sink.row_packets(&packets);
    finish(session, rows.len() as u64, sink)
}

/// What error 1235 calls a statement.
fn name_of(statement: &Statement) -> &'static str {
    match statement {
        Statement::Unsupported(unsupported) => unsupported.what,
        _ => "this statement",
    }
}

/// Whether it changes the schema.
fn is_definition(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateTable(_)
            | Statement::CreateIndex(_)
            | Statement::AlterTable(_)
            | Statement::CreateDatabase(_)
            | Statement::DropTable(_)
            | Statement::DropIndex(_)
            | Statement::DropDatabase(_)
            | Statement::RenameTables(_)
            | Statement::TruncateTable(_)
    )
}
