//! Executes the commands of sessions: text statements, prepared statements, key readers, and statements
//! without a plan. This module parses and plans; the executors then run the plan.
//!
//! Its functions are called `execute_*`, for a command, a text, a prepared statement or a plan. The executors
//! of plans are called `start_*`.

mod clock_columns;
mod account;
mod command;
mod digests;
mod estimates;
mod facts;
mod hinted_variables;
mod implicit_parameters;
mod prepared;
mod key_reader;
mod named_statements;
mod text;
mod next_statement;
mod own_tables;
mod routing;
mod tls_status;
mod statistics_refresh;
mod ttl_purge;
mod unplanned;
mod virtual_tables;
mod shape_plans;
mod track;
mod lock_calls;

use std::borrow::Cow;
use std::sync::Arc;

use junctor_gateway::{Event, Gateway, TurnContext};
use junctor_model::error::Result;
use junctor_model::value::Value;
use junctor_signals::change_schema::{Catalog, PublishCatalog};
use junctor_signals::counter::SqlCounters;
use junctor_signals::read_status::ReadStatus;

use crate::bind::message;
use crate::execute::{
    AutoIncrementRanges, BlockingChanges, Engine, Execution, InsertId, Latencies, QueryLimits, SHAPE_SEED,
    ServerSettings, Session, SessionOpening, StatementContext, StatementDigests, TableEstimates, TurnEnds, Workspace,
    continue_output, continue_statement, receive_file, resume,
};
use crate::mysql_catalog::is_system_database;
use crate::mysql_catalog::variable::SessionVariables;
use crate::parse::Shape;
use crate::plan::{DigestNumber, OperationKind, PlanCache, SharedStatements};
use crate::result::{Progress, ResultSink};

pub use account::check_start_variable;
pub use command::SqlCommand;
pub use key_reader::{KeyReadRequest, KeyReaderRequest};
pub use prepared::PreparedExecution;
pub use ttl_purge::{BACKGROUND_CONNECTION, PurgeSettings};

impl Engine {
    /// Creates the engine of a sql block from its gateway to the data plane.
    pub fn new(mut gateway: Gateway, settings: Arc<ServerSettings>) -> Engine {
        gateway.install_catalog(Arc::new(Catalog::with_access(Arc::clone(&settings.access))));
        let globals = settings.globals();
        // Sessions move between blocks with their plans. The numbers in plans must differ between blocks.
        let first_number = u64::from(gateway.instance()) << 40;
        let engine = Engine {
            gateway,
            settings,
            globals,
            cache: PlanCache::default(),
            shared_statements: SharedStatements::default(),
            shape: Shape::new(SHAPE_SEED),
            spare_shapes: Vec::new(),
            work: Workspace::default(),
            lock_calls: Default::default(),
            table_statistics: Default::default(),
            estimates: TableEstimates::default(),
            statistics_version: 0,
            ranges: AutoIncrementRanges::new(),
            private_count: 0,
            undropped_tables: Vec::new(),
            tables: BlockingChanges::default(),
            query_limits: QueryLimits::default(),
            is_stopping: false,
            prepared_count: 0,
            prepared_bytes: 0,
            cursor_bytes: 0,
            session_count: 0,
            known_rights: Vec::new(),
            rights_count: first_number,
            counters: SqlCounters::default(),
            ends: TurnEnds::default(),
            latencies: Latencies::default(),
            digests: StatementDigests::from_number(first_number + 1),
            lending: None,
        };
        let names = || engine.settings.variables.iter().map(|(name, _)| &**name);
        engine.apply_connection_settings(names());
        engine.apply_login_settings(names());
        engine
    }

    /// Creates the session of a connection that has logged in.
    ///
    /// # Errors
    /// 1049 for an unknown database.
    pub fn open_session(&mut self, opening: &SessionOpening<'_>, _turn: &mut TurnContext<'_>) -> Result<Session> {
        let mut variables = SessionVariables::new(&self.globals, opening.is_interactive);
        variables.choose_collation(opening.character_set);
        let mut session = Session {
            connection: opening.connection,
            owner: self.next_owner(opening.connection),
            repeated_in: Default::default(),
            kept_input: Default::default(),
            private_key: 0,
            user: opening.user.into(),
            host: opening.host.into(),
            rights_number: 0,
            identity: Box::new(self.identity_of(opening.account, opening.is_expired)),
            database: opening.database.map(Box::from),
            found_rows_wanted: opening.found_rows,
            multi_statements: opening.multi_statements,
            next_statement_at: 0,
            shares_snapshot: false,
            next_statements_stopped: false,
            is_interactive: opening.is_interactive,
            variables,
            transaction: Default::default(),
            is_open: false,
            transaction_number: 0,
            is_read_only: false,
            savepoints: Vec::new(),
            statements: Default::default(),
            statistics_version: self.statistics_version,
            named_statements: Default::default(),
            cursors: Vec::new(),
            tracks_state: opening.tracks_state,
            tls: opening.tls,
            compression: opening.compression,
            state_changes: Vec::new(),
            hinted: None,
            tracker: None,
            cursor_wanted: 0,
            query_attributes: None,
            query_deadline: None,
            limit_entry: None,
            key_readers: Default::default(),
            text_protocol: opening.text_protocol,
            next_prepared_number: 1,
            steps_requested: 0,
            execution: Execution::Idle,
            operation: OperationKind::None,
            digest: DigestNumber::default(),
            has_failed: false,
            tables: Vec::new(),
            tables_since: 0,
            interrupted: false,
            is_closing: false,
            is_counted: false,
            closing_reason: None,
            holds_user_locks: false,
            table_locks: None,
            diagnostics: Vec::new(),
            warning_count: 0,
            error_count: 0,
            seed: 0,
            last_insert_id: 0,
            insert_id: InsertId::default(),
            insert_id_argument: None,
            row_count: 0,
            found_rows: 0,
        };
        session.transaction_ended();
        session.track_transaction();
        self.rights_of(&mut session);
        if let Some(database) = opening.database {
            self.check_login_database(&session, database)?;
        }
        self.session_count += 1;
        self.counters.sessions += 1;
        Ok(session)
    }

    /// Ends an idle session. Its transaction is rolled back without waiting for the reply.
    pub fn close_session(&mut self, session: &mut Session, turn: &mut TurnContext<'_>) {
        self.forget_table_user(session.connection, turn);
        self.gateway.abandon(&mut session.transaction, turn);
        self.release_user_locks(session, turn);
        self.release_table_locks(session, turn);
        self.drop_own_tables(session, turn);
        self.forget_prepared(session);
        self.forget_limit(session);
        self.session_count = self.session_count.saturating_sub(1);
    }

    /// Whether the session waits for a reply of the data plane or has unsent output.
    pub fn is_busy(&self, session: &Session) -> bool {
        !matches!(session.execution, Execution::Idle)
    }

    /// The session's state in SHOW PROCESSLIST; empty if it is idle. A statement that reads or writes a file
    /// shows its progress.
    pub fn state_of(&self, session: &Session) -> Cow<'static, str> {
        let progress = match &session.execution {
            Execution::Compound(state) => state.rows_loaded().map(|rows| ("loading", rows)),
            Execution::Into(state) => state.rows_written().map(|rows| ("writing", rows)),
            Execution::Tree(state) if state.uses_file() => return "writing temporary files".into(),
            _ => None,
        };
        match progress {
            Some((verb, rows)) => format!("{verb} a file, {rows} rows so far").into(),
            None => session.execution.name().into(),
        }
    }

    /// Installs a new version of the schema, and drops plans and reserved AUTO_INCREMENT values that are
    /// outdated.
    pub fn on_publish_catalog(&mut self, signal: PublishCatalog, turn: &mut TurnContext<'_>) {
        // Main needs them before it has every reply, to give them to a table that replaces another one.
        let held = self.ranges.take_outdated(&self.gateway.catalog().dictionary, &signal.catalog.dictionary);
        if !held.is_empty() {
            self.gateway.return_auto_increment(held, false, turn);
        }
        if self.gateway.catalog().dictionary.access.version != signal.catalog.dictionary.access.version {
            self.known_rights.clear();
        }
        self.gateway.on_publish_catalog(signal, turn);
        let dictionary = &self.gateway.catalog().dictionary;
        self.cache.forget_stale(dictionary);
        self.shared_statements.forget_stale(dictionary);
    }

    /// Gives the AUTO_INCREMENT values that no row has got back to main, when the node stops.
    pub fn return_numbers(&mut self, turn: &mut TurnContext<'_>) {
        let held = self.ranges.take_held();
        if !held.is_empty() {
            self.gateway.return_auto_increment(held, true, turn);
        }
    }

    /// A row for each wanted range of AUTO_INCREMENT values that the block holds, for
    /// `StatusTable::TableStatistics`.
    pub fn held_number_rows(&self, request: &ReadStatus) -> Vec<Vec<Value>> {
        self.ranges.held_rows(request)
    }

    /// Error 1049 if the database does not exist.
    pub(crate) fn check_database(&self, name: &str) -> Result<()> {
        let exists = self.gateway.catalog().dictionary.database(name).is_some();
        if exists || is_system_database(name) { Ok(()) } else { Err(message::unknown_database(name)) }
    }
}

/// The entry points for the sql block. Each one writes its answer to `sink` and returns the session's next
/// state.
impl Engine {
    pub(crate) fn context<'c, 't>(
        &'c mut self,
        session: &'c mut Session,
        turn: &'c mut TurnContext<'t>,
        sink: &'c mut dyn ResultSink,
    ) -> StatementContext<'c, 't> {
        StatementContext { engine: self, session, turn, sink }
    }

    /// Executes one command. The session must be idle.
    pub fn command(
        &mut self,
        session: &mut Session,
        command: SqlCommand<'_>,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        session.query_deadline = None;
        session.end_hinted_statement();
        self.context(session, turn, sink).execute_command(command)
    }

    /// Executes the next statement of the command's `text`, after one that has succeeded.
    pub fn next_statement(
        &mut self,
        session: &mut Session,
        text: &[u8],
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        session.query_deadline = None;
        self.context(session, turn, sink).execute_next_statement(text)
    }

    /// Executes a prepared statement.
    pub fn execute_prepared(
        &mut self,
        session: &mut Session,
        execution: PreparedExecution<'_>,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        session.query_deadline = None;
        session.end_hinted_statement();
        self.context(session, turn, sink).execute_command_prepared(execution)
    }

    /// Prepares a key reader. An existing reader of the same number is replaced.
    pub fn prepare_reader(
        &mut self,
        session: &mut Session,
        request: &KeyReaderRequest<'_>,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        self.context(session, turn, sink).prepare_reader(request)
    }

    /// Reads rows by their primary keys.
    pub fn read_keys(
        &mut self,
        session: &mut Session,
        request: KeyReadRequest<'_>,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        session.query_deadline = None;
        self.context(session, turn, sink).execute_read_keys(request)
    }

    /// Continues the statement that waits for this event.
    pub fn resume(
        &mut self,
        session: &mut Session,
        event: Event,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let mut context = self.context(session, turn, sink);
        let progress = resume(&mut context, event);
        context.finish_step(progress)
    }

    /// Continues an answer after the client has received its previous part.
    pub fn continue_output(
        &mut self,
        session: &mut Session,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        continue_output(&mut self.context(session, turn, sink))
    }

    /// Runs the next step of a statement that has yielded to the thread's other work.
    pub fn continue_statement(
        &mut self,
        session: &mut Session,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let mut context = self.context(session, turn, sink);
        let progress = continue_statement(&mut context);
        context.finish_step(progress)
    }

    /// Continues a statement with bytes of the file that its client sends; empty bytes are the file's end.
    pub fn receive_file(
        &mut self,
        session: &mut Session,
        bytes: &[u8],
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let mut context = self.context(session, turn, sink);
        let progress = receive_file(&mut context, bytes);
        context.finish_step(progress)
    }

    /// KILL QUERY: the running statement fails with error 1317, immediately or after its rollback. Does
    /// nothing if the session is idle or already commits.
    pub fn interrupt_statement(
        &mut self,
        session: &mut Session,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        self.context(session, turn, sink).interrupt_statement()
    }

    /// Fails a command, or the rest of a text, with error 1317 before it begins.
    pub fn refuse_command(
        &mut self,
        session: &mut Session,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        self.context(session, turn, sink).refuse_command()
    }

    /// Starts the statement of a session that has waited for tables or for this block.
    pub fn retry_tables(
        &mut self,
        session: &mut Session,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        self.context(session, turn, sink).retry_tables()
    }

    /// Fails a statement that has waited too long for its tables with error 1205. Its transaction stays open.
    pub fn fail_table_wait(
        &mut self,
        session: &mut Session,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        self.context(session, turn, sink).fail_table_wait()
    }
}

impl StatementContext<'_, '_> {
    /// Starts the statement of a session that has waited for tables or for this block.
    pub(super) fn retry_tables(&mut self) -> Progress {
        let wait = match std::mem::take(&mut self.session.execution) {
            Execution::Tables(wait) => wait,
            Execution::Lent(query) => return self.execute_input(query.input, query.may_retry),
            other => {
                // The wait ended in the meantime, for example by KILL.
                self.session.execution = other;
                return Progress::Waiting;
            }
        };
        self.execute_input(wait.input, wait.may_retry)
    }

    /// Must be called after each step. If the client has disconnected, the step does not wait for it to
    /// receive the output.
    pub(crate) fn finish_step(&mut self, progress: Progress) -> Progress {
        match progress {
            Progress::Waiting => self.retry_if_requested(progress),
            Progress::MoreOutput if self.session.interrupted => Progress::Done,
            _ => progress,
        }
    }
}
