//! The trait by which each wire protocol decodes a session's commands and encodes its answers.

use junctor_gateway::TurnContext;
use junctor_signals::client_command::Login;
use junctor_signals::program::RowProtocol;
use junctor_sql::result::{Completion, Progress, ResultSink};
use junctor_sql::{Engine, Session};

use super::DecodedParameters;

/// The resources for the execution of a command.
pub(crate) struct CommandContext<'a, 'd> {
    pub engine: &'a mut Engine,
    pub session: &'a mut Session,
    /// Scratch space for the parameters of a prepared statement.
    pub parameters: &'a mut DecodedParameters,
    pub turn: &'a mut TurnContext<'d>,
}

/// The options of a login that affect how statements behave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionTraits {
    /// Whether the affected rows of an UPDATE are the rows that matched instead of those that changed.
    pub found_rows: bool,
    /// Whether a text may contain several statements.
    pub multi_statements: bool,
    /// Whether `interactive_timeout` applies instead of `wait_timeout`.
    pub is_interactive: bool,
    /// Whether OK packets report changes of the session's state.
    pub tracks_state: bool,
    /// The compressor of the connection; `None` without compression.
    pub compression: Option<&'static str>,
    /// The encoding of the rows of statements that arrive as text.
    pub row_protocol: RowProtocol,
}

/// Decodes the commands and encodes the answers of one session.
pub(crate) trait ProtocolSession: Sized {
    /// Encodes results into an output buffer.
    type Sink<'a>: ResultSink
    where
        Self: 'a;

    /// Creates the state of a new session and returns it with the choices of its login.
    fn open(login: &Login) -> (Self, SessionTraits);

    /// A sink that appends to `out`. `result_start` is the offset in `out` where the current result begins;
    /// an error replaces the result from there on. It is `None` if a part of the result has been sent.
    fn sink<'a>(&'a mut self, out: &'a mut Vec<u8>, result_start: Option<usize>) -> Self::Sink<'a>;

    /// Appends the answer to a successful login. A protocol whose login has no answer appends nothing.
    fn encode_opened(&mut self, completion: &Completion, out: &mut Vec<u8>) {
        self.sink(out, Some(0)).complete(completion);
    }

    /// Notes that a command has arrived. The command may wait for admission, and may fail while it waits.
    fn begin_command(&mut self, _payload: &[u8]) {}

    /// Notes that the next answer is an error that belongs to no command.
    fn begin_unsolicited(&mut self) {}

    /// Executes a command and appends its answer to `answer`, which must be empty. A command without an
    /// answer appends nothing.
    fn execute(&mut self, payload: &[u8], answer: &mut Vec<u8>, context: CommandContext<'_, '_>) -> Progress;

    /// Start of the text at the end of a command, if the text is in the client's character set.
    fn text_start(&self, _payload: &[u8]) -> Option<usize> {
        None
    }

    /// The text of a command that consists of SQL statements; `None` for every other command.
    fn query_text<'p>(&self, payload: &'p [u8]) -> Option<&'p [u8]>;

    /// The description of a command in SHOW PROCESSLIST: its kind, and its statement if it has one.
    fn describe<'p>(&self, payload: &'p [u8], session: &'p Session) -> (&'static str, Option<&'p [u8]>);
}
