//! Executes the commands of the protocol.

use junctor_gateway::TurnContext;
use junctor_model::access::Privileges;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ConnectionId;
use junctor_model::row_encoding::{ResultColumn, append_text_value};
use junctor_model::value::Value;
use junctor_signals::end_transaction::Ending;

use crate::bind::message;
use crate::execute::Engine;
use crate::execute::Session;
use crate::execute::{
    AfterTransactionEnd, ChangeCounts, InsertId, StatementContext, fail, finish_ok, must_change_password, start_ending,
};
use crate::mysql_catalog::variable::SessionVariables;
use crate::plan::PlanKey;
use crate::result::Progress;

/// A command of the protocol. The execution of prepared statements is separate.
#[derive(Clone, Copy, Debug)]
pub enum SqlCommand<'a> {
    /// COM_QUERY with the text of one or more statements.
    Query(&'a [u8]),
    /// COM_STMT_PREPARE with the text of one statement.
    Prepare(&'a [u8]),
    /// COM_INIT_DB with the name of the database.
    UseDatabase(&'a [u8]),
    /// COM_FIELD_LIST.
    FieldList {
        /// The name of the table, in the session's database.
        table: &'a [u8],
        /// A LIKE pattern for column names; empty selects all columns.
        wildcard: &'a [u8],
    },
    /// COM_STMT_FETCH.
    Fetch {
        /// The prepared statement with the cursor.
        statement: u32,
        /// Maximum number of rows.
        rows_max: u32,
    },
    /// COM_STATISTICS.
    Statistics,
    /// COM_PING.
    Ping,
    /// COM_RESET_CONNECTION.
    ResetConnection,
    /// COM_SET_OPTION: whether a text may contain several statements.
    SetMultiStatements(bool),
    /// COM_PROCESS_KILL with the connection to close.
    Kill(ConnectionId),
}

impl StatementContext<'_, '_> {
    /// Executes one command. The session must be idle.
    pub(super) fn execute_command(&mut self, command: SqlCommand<'_>) -> Progress {
        self.session.cursor_wanted = 0;
        if let SqlCommand::UseDatabase(_) | SqlCommand::FieldList { .. } | SqlCommand::Kill(_) = command
            && self.must_change_password()
        {
            self.session.clear_diagnostics();
            return fail(self, &must_change_password());
        }
        match command {
            SqlCommand::Query(text) => self.execute_query(text),
            SqlCommand::Prepare(text) => self.prepare(text),
            SqlCommand::UseDatabase(name) => {
                self.session.clear_diagnostics();
                let outcome = utf8(name).and_then(|name| self.engine.use_database(self.session, name));
                if outcome.is_ok() {
                    self.track_database();
                }
                answer(self, outcome)
            }
            SqlCommand::FieldList { table, wildcard } => {
                self.session.clear_diagnostics();
                match self.engine.field_list(self.session, table, wildcard) {
                    Ok(columns) => {
                        self.sink.field_list(&columns, &self.session.completion());
                        Progress::Done
                    }
                    Err(error) => fail(self, &error),
                }
            }
            SqlCommand::Fetch { statement, rows_max } => self.fetch(statement, rows_max),
            SqlCommand::Statistics => {
                self.sink.plain_text(&self.engine.statistics(self.turn));
                Progress::Done
            }
            SqlCommand::Ping => answer(self, Ok(())),
            SqlCommand::ResetConnection => self.reset_connection(),
            SqlCommand::SetMultiStatements(on) => {
                self.session.multi_statements = on;
                self.session.clear_diagnostics();
                self.sink.end_rows(&self.session.completion());
                Progress::Done
            }
            SqlCommand::Kill(connection) => {
                self.session.clear_diagnostics();
                self.start_kill(connection, false)
            }
        }
    }

    /// Returns the session to its state after the login. The transaction is rolled back, prepared statements
    /// are removed.
    fn reset_connection(&mut self) -> Progress {
        self.session.clear_diagnostics();
        self.engine.forget_prepared(self.session);
        self.engine.release_user_locks(self.session, self.turn);
        self.engine.release_table_locks(self.session, self.turn);
        self.engine.drop_own_tables(self.session, self.turn);
        self.session.owner = self.engine.next_owner(self.session.connection);
        let collation = self.session.variables.collation_connection.number();
        self.session.variables = SessionVariables::new(&self.engine.globals, self.session.is_interactive);
        self.session.variables.choose_collation(collation);
        self.session.tracker = None;
        self.session.track_transaction();
        self.session.last_insert_id = 0;
        self.session.insert_id = InsertId::default();
        self.session.insert_id_argument = None;
        self.session.found_rows = 0;
        let after = AfterTransactionEnd::Complete { chain: false, release: false };
        start_ending(self, Ending::Rollback, after)
    }
}

impl Engine {
    /// Changes the session's database. Error: 1049.
    pub(crate) fn use_database(&mut self, session: &mut Session, name: &str) -> Result<()> {
        self.checker(session, &self.rights_for(session), |checker| checker.check_database(name, Privileges::NONE))?;
        self.check_database(name)?;
        session.database = Some(name.into());
        Ok(())
    }

    fn field_list(
        &self,
        session: &Session,
        table: &[u8],
        wildcard: &[u8],
    ) -> Result<Vec<(ResultColumn, Option<Vec<u8>>)>> {
        let (table, wildcard) = (utf8(table)?, utf8(wildcard)?);
        let Some(database) = session.database() else {
            return Err(Error::new(ErrorCode::NoDatabaseSelected, "No database selected"));
        };
        let rights = self.rights_for(session);
        self.checker(session, &rights, |checker| checker.check_table(database, table, Privileges::NONE))?;
        let dictionary = &self.gateway.catalog().dictionary;
        let layout = dictionary
            .table_seen_by(session.temporary_owner(), database, table)
            .ok_or_else(|| message::no_such_table(database, table))?;
        let definition = &layout.definition;
        let collation = junctor_model::collation::CollationId::UTF8MB4_GENERAL_CI;
        let mut columns = Vec::new();
        let own = rights.on_table(database, table);
        for (position, column) in definition.columns.iter().enumerate() {
            let is_wanted =
                wildcard.is_empty() || collation.like(column.name.as_bytes(), wildcard.as_bytes(), Some('\\'));
            let is_seen = definition.is_temporary() || !own.on_column(&column.name).is_empty();
            if column.hidden || !is_wanted || !is_seen {
                continue;
            }
            let described = ResultColumn::of_table(definition, junctor_model::id::ColumnNumber(position as u16));
            columns.push((described, column.default.as_ref().and_then(default_text)));
        }
        Ok(columns)
    }

    fn statistics(&self, turn: &TurnContext<'_>) -> String {
        let uptime_s = turn.turn_start.0 / 1_000_000_000;
        let questions = self.counters.questions;
        let tables = self.gateway.catalog().dictionary.tables().count();
        let per_second = questions as f64 / uptime_s.max(1) as f64;
        format!(
            "Uptime: {uptime_s}  Threads: {}  Questions: {questions}  Slow queries: 0  Opens: {tables}  Flush tables: 0  \
             Open tables: {tables}  Queries per second avg: {per_second:.3}",
            self.session_count
        )
    }

    /// The key of a shape in the plan cache.
    pub(super) fn plan_key<'k>(shape: &'k crate::parse::Shape, session: &'k Session) -> PlanKey<'k> {
        PlanKey {
            hash: shape.hash(),
            text: shape.normalised(),
            database: session.database.as_deref().unwrap_or(""),
            settings: session.plan_settings(),
            has_several_rows: shape.rows().is_some_and(|rows| rows.count > 1),
        }
    }
}

/// Sends OK or the error.
pub(super) fn answer(context: &mut StatementContext<'_, '_>, outcome: Result<()>) -> Progress {
    match outcome {
        Ok(()) => finish_ok(context, ChangeCounts::default()),
        Err(error) => fail(context, &error),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| {
        let shown = String::from_utf8_lossy(bytes);
        Error::new(ErrorCode::InvalidCharacterString, format!("Invalid utf8mb4 character string: '{shown}'"))
    })
}

fn default_text(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Null => None,
        Value::Bytes(bytes) => Some(bytes.clone()),
        number => {
            let mut text = Vec::new();
            append_text_value(number.as_ref(), &mut text);
            // The text of a number is short, so its length prefix is one byte.
            text.remove(0);
            Some(text)
        }
    }
}
