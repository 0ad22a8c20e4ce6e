//! Commands of the protocol.

use junctor_gateway::TurnContext;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ConnectionId;
use junctor_model::row_encoding::{ResultColumn, append_text_value};
use junctor_model::value::Value;
use junctor_signals::end_transaction::Ending;

use super::Engine;
use crate::bind::message;
use crate::execute::{AfterEnding, Changed, end_transaction, fail, ok};
use crate::mysql_catalog::variable::SessionVariables;
use crate::plan::PlanKey;
use crate::result::{Progress, ResultSink};
use crate::session::Session;

/// A command of the protocol, besides the execution of prepared statements.
#[derive(Clone, Copy, Debug)]
pub enum SqlCommand<'a> {
    /// COM_QUERY.
    Query(&'a [u8]),
    /// COM_STMT_PREPARE.
    Prepare(&'a [u8]),
    /// COM_INIT_DB.
    UseDatabase(&'a [u8]),
    /// COM_FIELD_LIST.
    FieldList {
        /// The table of the session's database.
        table: &'a [u8],
        /// A LIKE pattern of columns; empty is all.
        wildcard: &'a [u8],
    },
    /// COM_STATISTICS.
    Statistics,
    /// COM_PING.
    Ping,
    /// COM_RESET_CONNECTION.
    ResetConnection,
    /// COM_SET_OPTION.
    SetMultiStatements(bool),
    /// COM_PROCESS_KILL.
    Kill(ConnectionId),
}

impl Engine {
    /// Executes one command of a session that is not busy.
    pub fn command(
        &mut self,
        session: &mut Session,
        command: SqlCommand<'_>,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        match command {
            SqlCommand::Query(text) => self.query(session, text, turn, sink),
            SqlCommand::Prepare(text) => self.prepare(session, text, turn, sink),
            SqlCommand::UseDatabase(name) => {
                session.clear_diagnostics();
                let outcome = utf8(name).and_then(|name| self.use_database(session, name));
                answer(session, outcome, sink)
            }
            SqlCommand::FieldList { table, wildcard } => {
                session.clear_diagnostics();
                match self.field_list(session, table, wildcard) {
                    Ok(columns) => {
                        sink.field_list(&columns, &session.completion());
                        Progress::Done
                    }
                    Err(error) => fail(session, &error, sink),
                }
            }
            SqlCommand::Statistics => {
                sink.plain_text(&self.statistics(turn));
                Progress::Done
            }
            SqlCommand::Ping => answer(session, Ok(()), sink),
            SqlCommand::ResetConnection => self.reset_connection(session, turn, sink),
            SqlCommand::SetMultiStatements(on) => {
                session.multi_statements = on;
                session.clear_diagnostics();
                sink.end_rows(&session.completion());
                Progress::Done
            }
            SqlCommand::Kill(connection) => {
                session.clear_diagnostics();
                self.kill(session, connection, false, turn, sink)
            }
        }
    }

    /// Changes the session's database. Error: 1049.
    pub(crate) fn use_database(&mut self, session: &mut Session, name: &str) -> Result<()> {
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
        let dictionary = &self.gateway.catalog().dictionary;
        let layout = dictionary.table_named(database, table).ok_or_else(|| message::no_such_table(database, table))?;
        let definition = &layout.definition;
        let collation = junctor_model::collation::CollationId::UTF8MB4_GENERAL_CI;
        let mut columns = Vec::new();
        for (position, column) in definition.columns.iter().enumerate() {
            let is_wanted =
                wildcard.is_empty() || collation.like(column.name.as_bytes(), wildcard.as_bytes(), Some('\\'));
            if column.hidden || !is_wanted {
                continue;
            }
            let described = ResultColumn::of_table(definition, junctor_model::id::ColumnIndex(position as u16));
            columns.push((described, column.default.as_ref().and_then(default_text)));
        }
        Ok(columns)
    }

    fn statistics(&self, turn: &TurnContext<'_>) -> String {
        let uptime_s = turn.now.0 / 1_000_000_000;
        let questions = self.counters.questions;
        let tables = self.gateway.catalog().dictionary.tables().count();
        let per_second = questions as f64 / uptime_s.max(1) as f64;
        format!(
            "Uptime: {uptime_s}  Threads: {}  Questions: {questions}  Slow queries: 0  Opens: {tables}  Flush tables: 0  \
             Open tables: {tables}  Queries per second avg: {per_second:.3}",
            self.session_count
        )
    }

    /// The session as it was after the login, transaction and prepared statements gone.
    fn reset_connection(
        &mut self,
        session: &mut Session,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        session.clear_diagnostics();
        self.forget_prepared(session);
        self.release_user_locks(session, turn);
        self.release_table_locks(session, turn);
        let collation = session.variables.collation_connection.number;
        session.variables = SessionVariables::new(&self.globals, session.is_interactive);
        session.variables.choose_collation(collation);
        session.last_insert_id = 0;
        session.insert_id_argument = None;
        session.found_rows = 0;
        let after = AfterEnding::Complete { chain: false, release: false };
        end_transaction(self, session, Ending::Rollback, after, turn, sink)
    }

    /// The key of a shape in the plan cache.
    pub(super) fn plan_key<'k>(shape: &'k crate::parse::Shape, session: &'k Session) -> PlanKey<'k> {
        PlanKey {
            hash: shape.hash(),
            text: shape.normalised(),
            database: session.database.as_deref().unwrap_or(""),
            settings: session.plan_settings(),
        }
    }
}

/// Says OK or the error.
pub(super) fn answer(session: &mut Session, outcome: Result<()>, sink: &mut dyn ResultSink) -> Progress {
    match outcome {
        Ok(()) => ok(session, Changed::default(), sink),
        Err(error) => fail(session, &error, sink),
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
            // A number's text is shorter than what needs a longer length before it.
            text.remove(0);
            Some(text)
        }
    }
}
