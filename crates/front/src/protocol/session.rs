//! The session's half of a protocol.

use junctor_gateway::TurnContext;
use junctor_signals::client_command::Login;
use junctor_signals::program::RowProtocol;
use junctor_sql::result::{Completion, Progress, ResultSink};
use junctor_sql::{Engine, Session};

use super::DecodedParameters;

/// What the execution of a command works on.
pub(crate) struct CommandContext<'a, 'd> {
    pub engine: &'a mut Engine,
    pub session: &'a mut Session,
    /// Scratch space for the parameters of a prepared statement.
    pub parameters: &'a mut DecodedParameters,
    pub turn: &'a mut TurnContext<'d>,
}

/// The choices of a login that change how statements behave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionTraits {
    /// The affected rows of an UPDATE are the rows that matched, not those that changed.
    pub found_rows: bool,
    /// One text may hold several statements.
    pub multi_statements: bool,
    /// `interactive_timeout` applies instead of `wait_timeout`.
    pub is_interactive: bool,
    /// The encoding of the rows of statements that arrive as text.
    pub row_protocol: RowProtocol,
}

/// Decodes the commands and encodes the answers of one session.
pub(crate) trait ProtocolSession: Sized {
    /// Encodes results into an output buffer.
    type Sink<'a>: ResultSink;

    /// The state of a new session, and the choices of its login.
    fn open(login: &Login) -> (Self, SessionTraits);

    /// A sink that appends to `out`. The result under way begins at `result_start`, if no part of it has been
    /// sent: then an error replaces it.
    fn sink<'a>(&self, out: &'a mut Vec<u8>, result_start: Option<usize>) -> Self::Sink<'a>;

    /// Appends the answer to a successful login. A protocol whose login has no answer appends nothing.
    fn emit_opened(&mut self, completion: &Completion, out: &mut Vec<u8>) {
        self.sink(out, Some(0)).complete(completion);
    }

    /// A command has arrived. It may wait for admission before it executes, and fail while it waits.
    fn begin_command(&mut self, _payload: &[u8]) {}

    /// The next answer, an error, belongs to no command.
    fn begin_unsolicited(&mut self) {}

    /// Executes a command and appends its answer to `answer`, which is empty. A command without an answer
    /// appends nothing.
    fn execute(&mut self, payload: &[u8], answer: &mut Vec<u8>, context: CommandContext<'_, '_>) -> Progress;

    /// The text of a command that consists of SQL statements; `None` for every other command.
    fn query_text<'p>(&self, payload: &'p [u8]) -> Option<&'p [u8]>;

    /// What SHOW PROCESSLIST shows of a command: its kind, and its statement if it has one.
    fn describe<'p>(&self, payload: &'p [u8], session: &'p Session) -> (&'static str, Option<&'p [u8]>);
}
