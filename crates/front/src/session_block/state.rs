//! The record of one session.

use junctor_kernel::{Address, Buffer, SocketId, Time, require};
use junctor_signals::client_command::ExecuteCommand;
use junctor_sql::Session;

use crate::protocol_table::SessionState;

/// One session. The fields that every command needs are adjacent, so that a command among thousands of
/// sessions touches few cache lines.
#[repr(C)]
pub(super) struct SessionRecord {
    pub command: CommandState,
    /// When the current command arrived, or when the last one ended.
    pub state_since: Time,
    /// When the current command arrived, or when the current statement of its text started.
    pub statement_start: Time,
    pub socket: SocketId,
    pub reply_to: Address,
    pub protocol: SessionState,
    /// The session holds a slot of the thread pool: it is executing a statement, or its transaction is open
    /// and `thread_pool_high_prio_mode` is `transactions`. A transaction without locks loses its slot to
    /// those that wait when its client has been silent for the stall limit.
    pub is_admitted: bool,
    /// The statement waits for a row lock, and its slot is lent to another session.
    pub lends_slot: bool,
    /// The session came through the extra port. It is admitted from its start to its end, and counts in no
    /// group.
    pub is_extra: bool,
    /// How many more statements of the transaction have high priority.
    pub high_priority_tickets: u32,
    /// When the session got its slot.
    pub admitted_at: Time,
    /// The connection closes after the answer to the current command.
    pub is_ending: bool,
    /// The connection is gone. The record is removed when the session has no more work in progress.
    pub is_disconnected: bool,
    /// Output that is not sent yet.
    pub answer: Buffer,
    /// Start of the current result in `answer`; `None` once a part of that result has been sent.
    pub result_start: Option<usize>,
    /// The current command, if it did not finish in the step that started it.
    pub running: Option<ExecuteCommand>,
    /// The client's debt, and the start of its silence. A start before `statement_start` belongs to an
    /// earlier statement.
    pub awaited: Option<(AwaitedClient, Time)>,
    /// The open transaction, and when the timeout sweep first saw it.
    pub open_transaction: Option<(u32, Time)>,
    /// The block to which the session returns after its query; `None` if it is this one.
    pub lender: Option<Address>,
    pub session: Session,
    pub unsent: UnsentResults,
}

impl SessionRecord {
    /// The record of a session without a command.
    pub fn new(
        session: Session,
        protocol: SessionState,
        (socket, reply_to): (SocketId, Address),
        now: Time,
    ) -> SessionRecord {
        SessionRecord {
            command: CommandState::Idle,
            state_since: now,
            statement_start: now,
            socket,
            reply_to,
            protocol,
            is_admitted: false,
            lends_slot: false,
            is_extra: false,
            high_priority_tickets: session.high_priority_tickets(),
            admitted_at: now,
            is_ending: false,
            is_disconnected: false,
            answer: Buffer::new(),
            result_start: Some(0),
            running: None,
            awaited: None,
            open_transaction: None,
            lender: None,
            session,
            unsent: UnsentResults::default(),
        }
    }
}

/// A debt of the client: it must act before the command, or the next one, goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AwaitedClient {
    /// The client must read what it got.
    Room,
    /// The client must send the next part of a file.
    File,
    /// The client must send the rest of a command.
    Command,
}

pub(super) enum CommandState {
    /// No command is being executed.
    Idle,
    /// The command waits for a slot of the thread pool.
    AwaitsAdmission(ExecuteCommand),
    /// The command returned its slot while it waited for a metadata lock. It has the lock now and waits for
    /// another slot.
    AwaitsReadmission,
    Running,
    /// One statement of the text is done, and the next one has not started.
    BetweenStatements(NextStatement),
}

/// When the next statement of a text starts. Each starts in a separate turn, because it may send as much as
/// any command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStatement {
    /// Soon; it is not in the queue yet.
    Due,
    /// After the statements before it in the queue.
    Queued,
    /// When the client has space for more of the answer.
    AwaitsRoom,
    /// When the session gets a slot. The earlier statements of the text needed none.
    AwaitsAdmission,
}

/// Results of a text's earlier statements, held back to be sent together with later ones.
#[derive(Debug, Default)]
pub(super) struct UnsentResults {
    /// Whether the session is in the queue of the result timer.
    pub is_queued: bool,
    /// When the last results were sent, if the client has not made space since. A time before the current
    /// command is meaningless.
    pub sent: Option<Time>,
}

/// The bytes of a command.
#[inline]
pub(super) fn payload_of(command: &ExecuteCommand) -> &[u8] {
    let payload = command.bytes.get(command.start as usize..command.end as usize);
    require!(payload.is_some(), "a command's payload lies in its buffer");
    payload.unwrap_or(&[])
}
