//! The record of one session.

use junctor_kernel::{Address, Buffer, SocketId, Time, require};
use junctor_signals::client_command::ExecuteCommand;
use junctor_sql::Session;

use crate::protocol_table::SessionState;

/// One session. The fields that every command needs come first and together, so that a command among
/// thousands of sessions touches few cache lines.
#[repr(C)]
pub(super) struct SessionRecord {
    pub command: CommandState,
    /// Arrival of the command under way, or the end of the last one.
    pub state_since: Time,
    /// Arrival of the command under way, or the start of the current statement of its text.
    pub statement_start: Time,
    pub socket: SocketId,
    pub reply_to: Address,
    pub protocol: SessionState,
    /// The session holds a ticket of admission: a statement runs, or its transaction has written or locked. A
    /// transaction that only read holds none, so that clients which never commit their reads do not keep
    /// others out.
    pub is_admitted: bool,
    /// The connection closes with the answer of the command under way.
    pub is_ending: bool,
    /// The connection is gone. The record is removed when nothing of the session is under way.
    pub is_disconnected: bool,
    /// Output that is not sent yet.
    pub answer: Buffer,
    /// Start of the current result in `answer`; `None` once a part of that result has been sent.
    pub result_start: Option<usize>,
    /// The command under way, if it did not finish in the step that started it.
    pub running: Option<ExecuteCommand>,
    /// The open transaction, and when the timeout sweep first saw it.
    pub open_transaction: Option<(u32, Time)>,
    pub session: Session,
    pub unsent: UnsentResults,
}

pub(super) enum CommandState {
    /// No command is under way.
    Idle,
    /// The command waits for its ticket of admission.
    AwaitsAdmission(ExecuteCommand),
    /// The command gave its ticket back while it waited for a metadata lock, has the lock, and waits for
    /// another ticket.
    AwaitsReadmission,
    Running,
    /// One statement of the text is done and the next one has not started.
    BetweenStatements(NextStatement),
}

/// When the next statement of a text starts. Each has a turn of its own, because it may send as much as any
/// command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStatement {
    /// It is not in the queue yet.
    Due,
    /// After those before it in the queue.
    Queued,
    /// When the client has room for more of the answer.
    AwaitsRoom,
    /// When it has a ticket of admission. The statements before it in the text needed none.
    AwaitsAdmission,
}

/// Results of a text's earlier statements that are held back to leave together with later ones.
#[derive(Debug, Default)]
pub(super) struct UnsentResults {
    /// The session is in the queue of the result timer.
    pub is_queued: bool,
    /// When results were sent for which the client has not made room yet. A time before the command under way
    /// means nothing.
    pub sent: Option<Time>,
}

/// The bytes of a command.
#[inline]
pub(super) fn payload_of(command: &ExecuteCommand) -> &[u8] {
    let payload = command.bytes.get(command.start as usize..command.end as usize);
    require!(payload.is_some(), "a command's payload lies in its buffer");
    payload.unwrap_or(&[])
}
