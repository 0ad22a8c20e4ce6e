//! Executes statements without a plan, such as CREATE TABLE, SHOW and SET.

use std::sync::Arc;

use junctor_expression::{Parameters, ResultType, Scratch};
use junctor_gateway::TurnContext;
use junctor_model::access::{AccountName, Privilege, Rights};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ConnectionId;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::user_value::UserValue;
use junctor_model::value::Value;
use junctor_signals::ask_node::NodeQuestion;
use junctor_signals::cluster_status::ClusterFigure;
use junctor_signals::end_transaction::Ending;
use junctor_signals::inbox::{MainSignal, Signal, SqlSignal};
use junctor_signals::journal::{LogEvent, LogKind};
use junctor_signals::program::RowProtocol;
use junctor_signals::set_globals::{
    ApplyGlobals, ApplyGlobalsReply, GlobalValues, PersistedChanges, RestoreGlobals, RestoreGlobalsReply,
};
use junctor_signals::use_user_lock::UserLockAction;

use super::command::answer;
use super::facts::{StatementFacts, modes_of, number_rules, with_environment};
use super::own_tables::{check_locked, is_temporary};
use super::virtual_tables::ColumnsOnly;
use crate::access::{NeedsCollector, PlanRights, RightsOfSession, account_of_definer, denied_server, no_definer};
use crate::bind::{Binder, Environment, Modes, ParameterKind, Scope, SessionConstant};
use crate::definition::access::role_with_system_user;
use crate::definition::{self, CheckedDefinition, DefinitionContext, ViewQuery};
use crate::execute::Engine;
use crate::execute::Session;
use crate::execute::{AfterTransactionEnd, start_ending};
use crate::execute::{
    Execution, InsertId, LockCallMode, StatementContext, fail, finish_set, in_read_only_transaction, no_such_thread,
    release_savepoint, send_table, set_savepoint, start_rollback_to,
};
use crate::mysql_catalog::show::{VirtualTable, WarningLevel, show};
use crate::mysql_catalog::variable::{
    GlobalChange, Note, SessionContext, SetSituation, VariableId, evaluate_session_expression, find,
    session_value_type, set,
};
use crate::parse::definition::CreateView;
use crate::parse::statement::{Explain, FlushKind, ObjectName, SetItem};
use crate::parse::{Expression, Statement};
use crate::plan::{OperationKind, PlannedView, QueryPlan, explain_plan, plan_view};
use crate::result::Progress;

/// Plans and checks the definition of a view.
type DefineView<'d> = dyn FnMut(&DefinitionContext<'_>) -> Result<CheckedDefinition> + 'd;

impl StatementContext<'_, '_> {
    /// Executes a statement that has no plan.
    pub(super) fn execute_without_plan(&mut self, statement: &Statement, protocol: RowProtocol) -> Progress {
        self.session.operation =
            if is_definition(statement) { OperationKind::Definition } else { OperationKind::Other };
        self.session.seed = self.turn.random.word();
        if let Err(error) = self.check_unplanned(statement) {
            return fail(self, &error);
        }
        if let Statement::TruncateTable(table) = statement
            && let Some(log) = self.log_table_named(table)
        {
            return self.truncate_log(log);
        }
        if let Statement::TruncateTable(table) = statement
            && self.is_digest_table(table)
        {
            return self.start_digest_truncation();
        }
        match statement {
            // The text contains only comments. An empty text is an error of the parser.
            Statement::Empty => answer(self, Ok(())),
            Statement::LockTables(locks) => self.start_lock_tables(locks),
            Statement::UnlockTables => self.start_unlock_tables(),
            Statement::LockInstance => self.start_backup_lock(UserLockAction::LockForBackup),
            Statement::UnlockInstance => self.start_backup_lock(UserLockAction::UnlockForBackup),
            Statement::Use(name) => {
                let outcome = self.engine.use_database(self.session, name);
                if outcome.is_ok() {
                    self.track_database();
                }
                answer(self, outcome)
            }
            Statement::Show(_) | Statement::Explain(_) => self.execute_show(statement, protocol),
            Statement::Set(items) => self.execute_set(items),
            Statement::ResetPersist { name, if_exists } => self.reset_persist(name.as_deref(), *if_exists),
            Statement::Do(expressions) => {
                let mut scratch = Scratch::new();
                let mut outcome = Ok(());
                for expression in expressions {
                    outcome = outcome.and_then(|()| self.evaluate_once(expression, &scratch).map(|_| ()));
                    if !self.engine.lock_calls.get_mut().has_unanswered() {
                        // The next expression sees what this one has assigned.
                        self.session.note_evaluated(WarningLevel::Warning, &mut scratch);
                    }
                }
                if self.engine.lock_calls.get_mut().has_unanswered() {
                    return Progress::Waiting;
                }
                answer(self, outcome)
            }
            _ if is_definition(statement) => self.execute_definition(statement, 0),
            Statement::Savepoint(name) => set_savepoint(self, name),
            Statement::RollbackToSavepoint(name) => start_rollback_to(self, name),
            Statement::ReleaseSavepoint(name) => release_savepoint(self, name),
            Statement::ReloadTls => {
                let reloaded = match &self.engine.settings.security {
                    Some(security) => security.reload(),
                    None => Err("the server has no TLS".into()),
                };
                let failed = |reason: String| {
                    let message = format!("Failed to set up SSL because of the following SSL library error: {reason}");
                    Error::new(ErrorCode::TlsSetupFailed, message)
                };
                answer(self, reloaded.map_err(failed))
            }
            Statement::Flush(kinds) => self.flush(kinds),
            Statement::Stop(stop) => self.start_stop(*stop),
            Statement::Backup(backup) => self.start_node_backup(backup),
            Statement::LeaveGroup { group, leaves } => {
                self.control_node(None, NodeQuestion::LeaveGroup { group: *group, leaves: *leaves })
            }
            Statement::LeaveReplica { node, leaves } => {
                self.control_node(None, NodeQuestion::LeaveReplica { node: *node, leaves: *leaves })
            }
            Statement::Kill(kill) => match self.connection_to_kill(&kill.connection) {
                Ok(connection) => self.start_kill(connection, kill.query_only),
                Err(error) => fail(self, &error),
            },
            Statement::Account(statement) => self.execute_account_statement(statement, protocol),
            statement => fail(self, &Error::not_supported(name_of(statement))),
        }
    }

    /// FLUSH, which commits the transaction as in MySQL. Errors: 1099 and 1100 for tables of LOCK TABLES.
    fn flush(&mut self, kinds: &[FlushKind]) -> Progress {
        for kind in kinds {
            match kind {
                FlushKind::Tables(tables) => {
                    let Some(locks) = &self.session.table_locks else { continue };
                    let database = self.session.database().unwrap_or_default();
                    let is_permitted = |table: &ObjectName| {
                        locks.check_write(table.database.as_deref().unwrap_or(database), &table.name)
                    };
                    let permitted = match tables.is_empty() {
                        true => locks.check_none_is_read_only(),
                        false => tables.iter().try_for_each(is_permitted),
                    };
                    if let Err(error) = permitted {
                        return fail(self, &error);
                    }
                }
                FlushKind::Hosts => self.engine.settings.connection_limits.forget_errors(),
                FlushKind::Logs => self.engine.journal().write(self.turn.wall_clock_us, LogEvent::Reopen),
            }
        }
        start_ending(self, Ending::Commit, AfterTransactionEnd::Complete { chain: false, release: false })
    }

    /// The log that a table of database `mysql` shows.
    fn log_table_named(&self, table: &ObjectName) -> Option<LogKind> {
        let database = table.database.as_deref().or(self.session.database())?;
        let is = |name: &str| table.name.eq_ignore_ascii_case(name);
        match database.eq_ignore_ascii_case("mysql") {
            true if is("general_log") => Some(LogKind::General),
            true if is("slow_log") => Some(LogKind::Slow),
            _ => None,
        }
    }

    /// TRUNCATE of a log table, which commits like every change of the schema.
    fn truncate_log(&mut self, log: LogKind) -> Progress {
        if self.session.variables.next_transaction().read_only {
            return fail(self, &in_read_only_transaction());
        }
        match log {
            LogKind::Slow => self.engine.journal().slow.clear(),
            LogKind::General | LogKind::Audit => self.engine.journal().general.clear(),
        }
        start_ending(self, Ending::Commit, AfterTransactionEnd::Complete { chain: false, release: false })
    }

    /// Checks a definition statement. `query` is the query of CREATE TABLE ... SELECT.
    pub(super) fn define(&self, statement: &Statement, query: Option<&QueryPlan>) -> Result<CheckedDefinition> {
        if let Statement::CreateView(view) = statement {
            return self.define_view(statement, view);
        }
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        let columns = query.map(|query| &query.header().columns[..]);
        with_environment(&facts, (self.session.database(), None), &[], &mut |environment| {
            let defined = (statement, columns, None);
            self.engine.define(self.session, defined, (environment, self.turn.wall_clock_us))
        })
    }

    /// Plans the query of a view and checks the definition.
    fn define_view(&self, statement: &Statement, view: &CreateView) -> Result<CheckedDefinition> {
        // The calls of a view are carried out when the view is used.
        self.engine.lock_calls.borrow_mut().set_mode(LockCallMode::Described);
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        let (rights, who) = (self.engine.rights_for(self.session), self.session.who());
        let of_account = |account: &AccountName| self.engine.rights_of_account(account);
        let session = RightsOfSession { rights: &rights, who: &who, of_account: &of_account };
        let collector = NeedsCollector::new(session);
        let missing = self.check_definer(view, &rights)?;
        let database = (self.session.database(), Some(&collector));
        let mut checked = with_environment(&facts, database, &[], &mut |environment| {
            let clock = self.turn.wall_clock_us;
            self.engine.define(
                self.session,
                (
                    statement,
                    None,
                    Some(&mut |context| {
                        definition::check_view_query(view, context)?;
                        let database = view.name.database.as_deref().or(context.database).unwrap_or_default();
                        let name = (database, &*view.name.name);
                        let planned = plan_view(context.environment, name, &view.query, &ColumnsOnly(&facts))?;
                        let PlannedView { query, columns, is_updatable } = &planned;
                        let query = ViewQuery { query, columns, is_updatable: *is_updatable };
                        definition::create_view(view, &query, context)
                    }),
                ),
                (environment, clock),
            )
        })?;
        collector.finish()?;
        checked.existence_notes.extend(missing);
        Ok(checked)
    }

    /// Checks that the session may make a view with this definer. Returns a note if the definer does not
    /// exist. Error: 1227.
    fn check_definer(&self, view: &CreateView, rights: &Rights) -> Result<Option<Note>> {
        let access = &self.engine.gateway.catalog().dictionary;
        let database = view.name.database.as_deref().or(self.session.database()).unwrap_or_default();
        let old = access.table_named(database, &view.name.name).filter(|_| view.alters);
        let old = old.and_then(|layout| layout.definition.view.as_deref()).map(|view| &*view.definer);
        let Some(definer) = view.definer.as_deref().or(old) else { return Ok(None) };
        let definer = account_of_definer(definer);
        if definer == self.session.identity.account {
            return Ok(None);
        }
        if !rights.has_dynamic(Privilege::SetUserId) {
            return Err(denied_server("SUPER or SET_USER_ID"));
        }
        let find = |name: &AccountName| access.access.account(name).map(|account| &**account);
        let is_system = role_with_system_user(std::slice::from_ref(&definer), find).is_some();
        match access.access.account(&definer) {
            Some(_) if is_system && !rights.has(Privilege::SystemUser) => Err(denied_server("SYSTEM_USER")),
            Some(_) => Ok(None),
            None => Ok(Some((ErrorCode::NoSuchUser.errno(), no_definer(&definer).message.clone()))),
        }
    }

    /// The connection that KILL names. Error: 1094 if the value is not a connection number.
    fn connection_to_kill(&self, named: &Expression) -> Result<ConnectionId> {
        let id = match self.evaluate_once(named, &Scratch::new())? {
            Value::Int(id) => u32::try_from(id).map_err(|_| no_such_thread(&id)),
            Value::UInt(id) => u32::try_from(id).map_err(|_| no_such_thread(&id)),
            _ => Err(no_such_thread(&0)),
        };
        id.map(ConnectionId)
    }

    /// Executes EXPLAIN, or SHOW that is no query.
    fn execute_show(&mut self, statement: &Statement, protocol: RowProtocol) -> Progress {
        let table = match self.computed_answer(statement) {
            Ok(table) => table,
            Err(error) => return fail(self, &error),
        };
        if self.engine.table_statistics.are_missing() {
            // The statement starts again when the ldm blocks have reported.
            return Progress::Waiting;
        }
        // The EOF packet of SHOW WARNINGS counts no warnings, but the warnings that it shows remain.
        let count = std::mem::take(&mut self.session.warning_count);
        let progress = send_table(self, table, protocol);
        self.session.warning_count = count;
        progress
    }

    /// The rows of EXPLAIN, and of SHOW that is no query.
    fn computed_answer(&self, statement: &Statement) -> Result<VirtualTable> {
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        match statement {
            Statement::Show(statement) => facts.with_show_context(|show_context| show(statement, show_context)),
            Statement::Explain(explain) => self.explain(explain),
            _ => Err(Error::not_supported("this statement")),
        }
    }

    fn explain(&self, explain: &Explain) -> Result<VirtualTable> {
        let format = explain.request()?.format;
        match self.plan(&explain.statement, self.session.database())? {
            Some(planned) => {
                if let Some(needs) = planned.plan.rights().and_then(PlanRights::needs) {
                    let (rights, who) = (self.engine.rights_for(self.session), self.session.who());
                    let of_account = |account: &AccountName| self.engine.rights_of_account(account);
                    needs.check_explain(RightsOfSession { rights: &rights, who: &who, of_account: &of_account })?;
                }
                let (columns, rows) = explain_plan(&planned.plan, format);
                Ok(VirtualTable { columns, rows })
            }
            None => Err(Error::not_supported("EXPLAIN of this statement")),
        }
    }

    /// Checks that the session may make these assignments, before the query of their values runs. Errors:
    /// 1227 and its kin.
    pub(crate) fn check_assignments(&mut self, items: &[SetItem]) -> Result<()> {
        let rights = self.engine.rights_of(self.session);
        self.engine.checker(self.session, &rights, |checker| checker.check(&Statement::Set(items.to_vec())))
    }

    /// Ends SET or DO with subqueries, whose values have arrived. Errors: those of SET.
    pub(crate) fn assign_answers<'v>(
        &mut self,
        items: &[SetItem],
        values: impl Iterator<Item = (&'v Value, CollationId)>,
    ) -> Progress {
        if items.is_empty() {
            return answer(self, Ok(()));
        }
        let work = &mut self.engine.work;
        work.kinds.clear();
        work.builder.clear();
        for (value, collation) in values {
            work.kinds.push(ParameterKind::exactly(ResultType::of_value(value.as_ref(), collation)));
            work.builder.push(value.as_ref());
        }
        work.parameters.clear();
        if let Err(error) = work.builder.append_to(&mut work.parameters) {
            return fail(self, &error);
        }
        self.execute_set(items)
    }

    fn execute_set(&mut self, items: &[SetItem]) -> Progress {
        let mut variables = self.session.variables.clone();
        let mut globals = self.engine.globals.clone();
        let mut scratch = Scratch::new();
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        let database_collation = facts.session_context().database_collation;
        let situation = SetSituation { in_transaction: self.session.is_open, database_collation };
        let effects = set(items, &mut variables, &mut globals, situation, &mut |expression, variables, globals| {
            let session_context = SessionContext { variables, globals, ..facts.session_context() };
            self.engine.evaluate_assigned(&session_context, self.session, expression, &scratch)
        });
        let effects = match effects {
            Ok(effects) => effects,
            Err(error) => {
                self.session.note_evaluated(WarningLevel::Warning, &mut scratch);
                return fail(self, &error);
            }
        };
        if let Err(error) = self.check_access_settings(&globals, &effects.persisted) {
            return fail(self, &error);
        }
        if self.engine.lock_calls.get_mut().has_unanswered() {
            // The statement starts again when the main block has replied.
            return Progress::Waiting;
        }
        let assigned = scratch.take_assigned();
        let outcome = assigned.into_iter().try_for_each(|(name, value)| variables.put_user_variable(&name, value));
        if let Err(error) = outcome {
            return fail(self, &error);
        }
        // Warnings are filtered by the settings before SET.
        self.session.note_evaluated(WarningLevel::Warning, &mut scratch);
        for (errno, message) in effects.notes {
            self.session.warn(WarningLevel::Warning, errno, message);
        }
        self.session.variables = variables;
        self.track_set(items);
        if let Some(number) = effects.last_insert_id {
            self.session.last_insert_id = number;
        }
        if let Some(first) = effects.insert_id {
            self.session.insert_id = InsertId { first, next: 0 };
        }
        if !effects.global.is_empty() || !effects.persisted.is_empty() {
            let values = effects.global.into_iter().map(|change| (change.id.0, change.value)).collect();
            return self.set_globals((values, effects.persisted.into()), effects.commits);
        }
        finish_set(self, effects.commits)
    }

    /// Executes RESET PERSIST. The present values of the variables stay.
    fn reset_persist(&mut self, name: Option<&str>, if_exists: bool) -> Progress {
        let persisted = &self.engine.globals.persisted().values;
        let changes: PersistedChanges = match name {
            None => persisted.keys().map(|name| (name.clone(), None)).collect(),
            Some(written) => {
                let name: Box<str> =
                    find(written).map_or(written.to_ascii_lowercase().into(), |id| id.variable().name.into());
                if !persisted.contains_key(&name) {
                    let text = format!("Variable {written} does not exist in persisted config file");
                    if !if_exists {
                        return fail(self, &Error::new(ErrorCode::NotPersisted, text));
                    }
                    self.session.warn(WarningLevel::Warning, ErrorCode::NotPersisted.errno(), text.into());
                    return answer(self, Ok(()));
                }
                Box::new([(name, None)])
            }
        };
        match changes.is_empty() {
            true => answer(self, Ok(())),
            false => self.set_globals((Arc::new([]), changes), false),
        }
    }

    fn set_globals(&mut self, changes: (GlobalValues, PersistedChanges), commits: bool) -> Progress {
        match self.engine.gateway.set_globals(self.session.connection, changes, self.turn) {
            Ok(operation) => {
                self.session.execution = Execution::SettingGlobals { operation, commits };
                Progress::Waiting
            }
            Err(error) => fail(self, &error),
        }
    }

    /// The value of an expression that reads no rows.
    fn evaluate_once(&self, expression: &Expression, scratch: &Scratch) -> Result<Value> {
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        self.engine.evaluate(&facts.session_context(), self.session, expression, scratch)
    }
}

impl Engine {
    /// Checks a definition statement. `wall_clock_us` is the time in microseconds since 1970.
    fn define(
        &self,
        session: &Session,
        (statement, query, view): (&Statement, Option<&[ResultColumn]>, Option<&mut DefineView<'_>>),
        (environment, wall_clock_us): (&Environment<'_>, u64),
    ) -> Result<CheckedDefinition> {
        if let Some(locks) = &session.table_locks {
            match statement {
                // mysqldump writes it into every dump, between LOCK TABLES and UNLOCK TABLES.
                Statement::AlterTable(alter) if alter.changes_nothing() => {
                    let database = alter.table.database.as_deref().or(session.database()).unwrap_or_default();
                    locks.check_write(database, &alter.table.name)?;
                }
                _ => check_locked(statement, locks, session.database())?,
            }
        }
        // A schema change ends the open transaction, so the characteristics of the next one apply to it.
        if session.variables.next_transaction().read_only && !is_temporary(statement) {
            return Err(in_read_only_transaction());
        }
        let account = session.identity.account.to_string();
        let node_groups = self.settings.cluster.get(ClusterFigure::NodeGroups).max(1) as u16;
        let now_us = session.variables.timestamp_us.unwrap_or(wall_clock_us);
        let context = DefinitionContext {
            dictionary: &self.gateway.catalog().dictionary,
            owner: session.owner,
            query,
            database: session.database(),
            default_partition_count: self.settings.partition_count_default.saturating_mul(node_groups),
            node_groups,
            account: &account,
            foreign_key_checks: session.variables.foreign_key_checks,
            replaces_unknown_engines: session.variables.sql_mode.replaces_unknown_engines(),
            environment,
            rules: session.variables.value_rules().at(now_us),
            now_us,
        };
        match statement {
            Statement::CreateTable(table) => definition::create_table(table, &context),
            Statement::CreateTableLike(like) => definition::create_table_like(like, &context),
            Statement::CreateView(_) if let Some(define) = view => define(&context),
            Statement::DropView(views) => definition::drop_views(views, &context),
            Statement::AlterDatabase(database) => definition::alter_database(database, &context),
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

    /// Applies a SET GLOBAL that was executed in any sql block, and replies. Returns whether the sessions
    /// must forget their rights.
    pub fn on_apply_globals(&mut self, signal: ApplyGlobals, turn: &mut TurnContext<'_>) -> bool {
        let rights_have_changed = self.change_settings(|engine| {
            for (variable, value) in signal.values.iter() {
                engine.globals.apply(&GlobalChange { id: VariableId(*variable), value: value.clone() });
            }
        });
        if let Some(persisted) = &signal.persisted {
            self.globals.replace_persisted(Arc::clone(persisted));
        }
        self.apply_read_routing();
        let names = || signal.values.iter().map(|(variable, _)| VariableId(*variable).variable().name);
        self.apply_spinning(names(), turn);
        self.apply_sending(names(), turn);
        self.apply_connection_settings(names());
        self.apply_login_settings(names());
        let reply = SqlSignal::ApplyGlobalsReply(ApplyGlobalsReply { operation: signal.operation });
        turn.outbox.send(signal.reply_to, Signal::Sql(reply));
        rights_have_changed
    }

    /// Applies the persisted values at the start of the node, and replies.
    pub fn on_restore_globals(&mut self, signal: &RestoreGlobals, turn: &mut TurnContext<'_>) {
        self.globals.restore(Arc::clone(&signal.persisted));
        self.check_mandatory_roles(turn);
        self.apply_read_routing();
        let names = || signal.persisted.values.keys().map(|name| &**name);
        self.apply_spinning(names(), turn);
        self.apply_sending(names(), turn);
        self.apply_connection_settings(names());
        self.apply_login_settings(names());
        turn.outbox.send(signal.reply_to, Signal::Main(MainSignal::RestoreGlobalsReply(RestoreGlobalsReply {})));
    }

    pub(super) fn evaluate(
        &self,
        session_context: &SessionContext<'_>,
        session: &Session,
        expression: &Expression,
        scratch: &Scratch,
    ) -> Result<Value> {
        Ok(self.evaluate_assigned(session_context, session, expression, scratch)?.value)
    }

    /// As [`Self::evaluate`], with the collation of a text.
    fn evaluate_assigned(
        &self,
        session_context: &SessionContext<'_>,
        session: &Session,
        expression: &Expression,
        scratch: &Scratch,
    ) -> Result<UserValue> {
        let bound = self.bind_alone(session_context, session, expression)?;
        let parameters = Parameters::from_bytes(&self.work.parameters);
        let value = bound.evaluate(None, parameters, scratch)?.to_value();
        Ok(UserValue::new(value, bound.result.variable_collation(session_context.variables.collation_connection)))
    }

    /// Binds an expression that reads no rows.
    pub(super) fn bind_alone(
        &self,
        session_context: &SessionContext<'_>,
        session: &Session,
        expression: &Expression,
    ) -> Result<junctor_expression::Expression> {
        let collation = session_context.variables.collation_connection;
        let session_constant = |expression: &Expression| {
            let value = match self.evaluate_lock_call(session, session_context, expression)? {
                Some(value) => Some(value),
                None => evaluate_session_expression(expression, session_context)?,
            };
            Ok(value.map(|value| {
                let result = session_value_type(expression, &value, session_context.variables);
                SessionConstant { value, result, is_volatile: true, is_of_diagnostics: false }
            }))
        };
        let environment = Environment {
            dictionary: &self.gateway.catalog().dictionary,
            owner: session.temporary_owner(),
            database: session.database(),
            collation,
            client: session.variables.character_set_client,
            parameters: &self.work.kinds,
            session_constant: &session_constant,
            locks_reads: false,
            sorts_with_files: false,
            locks_sources: true,
            foreign_key_checks: true,
            modes: Modes { only_full_group_by: true, ..modes_of(session.variables.sql_mode) },
            division_increment: session.variables.division_increment(),
            concat_bytes_max: session.variables.concat_bytes_max(),
            numbers: number_rules(&session.variables),
            is_strict: false,
            ignores: false,
            rules: session.variables.value_rules().at(session_context.now_us()),
            row_estimate: &|table| self.estimates.rows(table),
            profile: &|_| None,
            parameter_values: &[],
            execution_values: &[],
            numbers_of_execution: false,
            purges: false,
            added_nodes: None,
            reads_diagnostics: None,
            notes: None,
            access: None,
        };
        Binder::new(&environment, Scope::empty()).bind(expression)
    }
}

/// The statement's name in the text of error 1235.
fn name_of(statement: &Statement) -> &'static str {
    match statement {
        Statement::Unsupported(unsupported) => unsupported.what,
        _ => "this statement",
    }
}

/// Whether a statement changes the schema.
pub(super) fn is_definition(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateTable(_)
            | Statement::CreateTableLike(_)
            | Statement::AlterDatabase(_)
            | Statement::CreateIndex(_)
            | Statement::AlterTable(_)
            | Statement::CreateDatabase(_)
            | Statement::DropTable(_)
            | Statement::CreateView(_)
            | Statement::DropView(_)
            | Statement::DropIndex(_)
            | Statement::DropDatabase(_)
            | Statement::RenameTables(_)
            | Statement::TruncateTable(_)
    )
}
