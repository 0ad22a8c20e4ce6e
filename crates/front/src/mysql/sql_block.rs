//! Hot path, budget 150 instructions a command besides its execution.
//! The block sql: owns the sessions of its connections. In: commands from recv, replies of the data plane. Out: what the
//! client library of the data plane sends for the sessions, answers to recv. It never touches storage or sockets.

use hashbrown::HashMap;
use junctor_gateway::{Event, TurnContext};
use junctor_kernel::{Address, Buffer, Context, Outbox, SocketId, Time, WorldEvent};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::ConnectionId;
use junctor_signals::client_command::*;
use junctor_signals::inbox::{ContinueWork, RecvSignal, Signal, SqlSignal};
use junctor_signals::program::RowProtocol;
use junctor_sql::result::{Progress, ResultSink};
use junctor_sql::{Engine, PreparedExecution, Session, SessionOpening, SqlCommand};

use super::packet_sink::PacketSink;
use super::session_control::{Looks, is_kill, payload_of};
use super::several_statements::{STATEMENT_TIMER, STATEMENT_WORK, Texts, after_statement};
use super::statement_parameters::{DecodedParameters, StatementParameters};
use super::table_waits::{TABLE_TIMER, TABLE_WORK};
use super::wire::capability::Capabilities;
use super::wire::command::Command;
use super::wire::error::ProtocolError;
use crate::admission::Admission;
use crate::answer_sink::{AnswerSink, Dialect};
use crate::native::{self, NativeSink, NativeStatements};

type SeededState = foldhash::fast::FixedState;

/// The block.
pub struct SqlBlock {
    pub(super) own: Address,
    pub(super) engine: Engine,
    parameters: DecodedParameters,
    pub(super) sessions: HashMap<ConnectionId, Box<SessionRecord>, SeededState>,
    pub(super) admission: Admission,
    pub(super) looks: Looks,
    /// Whether the timer of waits for tables runs.
    pub(super) table_timer_runs: bool,
    pub(super) texts: Texts,
}

/// What a command needs stands together and comes first, so that among thousands of sessions it reads few cache lines.
#[repr(C)]
pub(super) struct SessionRecord {
    /// A command under way; its bytes while it waits for admission.
    pub(super) command: CommandState,
    /// When the command under way came, or the last one was done.
    pub(super) since: Time,
    /// When the command under way came, or the statement of its text began.
    pub(super) begun: Time,
    pub(super) socket: SocketId,
    pub(super) reply_to: Address,
    pub(super) dialect: Dialect,
    /// A ticket of admission is held: a statement runs, or its transaction has written or locked. One that has only read
    /// holds none, so that clients which never commit what they read do not keep others out.
    pub(super) admitted: bool,
    /// The connection ends with the command under way.
    pub(super) is_ending: bool,
    /// The connection is gone; the session goes when nothing of it is under way.
    pub(super) closing: bool,
    /// The answer under way.
    pub(super) answer: Buffer,
    /// Where in it the result under way begins, if nothing of that has been sent.
    pub(super) result_start: Option<usize>,
    /// The command under way that was not done at once.
    pub(super) running: Option<ExecuteCommand>,
    /// The open transaction, and when it was seen first.
    pub(super) open_transaction: Option<(u32, Time)>,
    parameters: StatementParameters,
    pub(super) session: Session,
    /// What became of results that wait in it for those after them.
    pub(super) unsent: Unsent,
    pub(super) native: Box<NativeStatements>,
}

pub(super) enum CommandState {
    None,
    Waiting(ExecuteCommand),
    /// It waited for tables without a ticket, and waits for one now.
    WaitingAgain,
    Running,
    /// A statement of its text is done, and the next one has not begun.
    Between(Turn),
}

/// Results of a text that wait for those after them, so that they leave together.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    /// The timer will look at them.
    pub is_noted: bool,
    /// When some were sent, until the client has room for more. What was before the command under way means nothing.
    pub sent: Option<Time>,
}

/// When the next statement of a text begins: in a turn of its own, for each may send as much as any command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Soon.
    Due,
    /// When those before it in the queue have begun.
    Queued,
    /// When the client has room for more of the answer.
    NeedsRoom,
    /// When there is a ticket of admission for it: those before it in the text needed none.
    Admission,
}

/// What one command came to.
enum Outcome {
    Progress(Progress),
    /// No answer at all (COM_STMT_CLOSE, COM_STMT_SEND_LONG_DATA).
    Silent,
}

impl SqlBlock {
    /// The block around an engine; at most `admitted_max` sessions are in the data plane at once.
    pub fn new(own: Address, engine: Engine, admitted_max: usize) -> SqlBlock {
        let sessions = HashMap::with_hasher(SeededState::with_seed(0x6a75_6e63_746f_7221));
        let (admission, looks) = (Admission::new(admitted_max), Looks::default());
        SqlBlock {
            own,
            engine,
            parameters: DecodedParameters::default(),
            sessions,
            admission,
            looks,
            table_timer_runs: false,
            texts: Texts::default(),
        }
    }

    /// What is held for sessions, each with its name, for checkers; all 0 when nobody is connected.
    pub fn held(&self) -> [(&'static str, usize); 5] {
        let (admitted, waiting) = self.admission.counts();
        [
            ("sessions", self.sessions.len()),
            ("tickets of admission", admitted),
            ("sessions waiting for admission", waiting),
            ("operations", self.engine.gateway.operations_under_way()),
            ("snapshots", self.engine.gateway.snapshots_held()),
        ]
    }

    /// Takes one signal.
    pub fn handle(&mut self, signal: SqlSignal, from: Address, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let mut turn = TurnContext::new(context, outbox);
        self.engine.counters.signals += 1;
        match signal {
            SqlSignal::ExecuteCommand(command) => self.on_execute_command(command, &mut turn),
            SqlSignal::ReadRowsReply(reply) => {
                if let Some((connection, event)) = self.engine.gateway.on_read_rows_reply(reply, from, &mut turn) {
                    self.resume(connection, event, &mut turn);
                }
            }
            SqlSignal::ExecuteStatementReply(reply) => {
                let Some(connection) = self.engine.gateway.session_of(reply.operation) else { return };
                let Some(record) = self.sessions.get_mut(&connection) else { return };
                let transaction = record.session.transaction_mut();
                if let Some(event) = self.engine.gateway.on_execute_statement_reply(reply, transaction) {
                    self.resume(connection, event, &mut turn);
                }
            }
            SqlSignal::OpenSession(opening) => self.on_open_session(opening, &mut turn),
            SqlSignal::ContinueCommand(signal) => self.on_continue_command(signal.connection, &mut turn),
            SqlSignal::CloseSession(signal) => self.on_close_session(signal.connection, &mut turn),
            SqlSignal::InterruptSession(signal) => self.on_interrupt_session(signal, &mut turn),
            SqlSignal::ReadStatus(signal) => self.on_read_status(signal, &mut turn),
            SqlSignal::ApplyGlobals(signal) => self.engine.on_apply_globals(signal, &mut turn),
            SqlSignal::PublishCatalog(signal) => self.engine.on_publish_catalog(signal, &mut turn),
            SqlSignal::BlockTables(signal) => self.on_block_tables(signal, &mut turn),
            SqlSignal::UnblockTables(signal) => self.on_unblock_tables(signal, &mut turn),
            SqlSignal::ChangeSchemaStarted(signal) => self.on_change_schema_started(signal),
            SqlSignal::HastenTransaction(signal) => self.on_hasten_transaction(signal, &mut turn),
            SqlSignal::ContinueWork(ContinueWork { work: TABLE_WORK }) => self.begin_waiting(&mut turn),
            SqlSignal::ContinueWork(ContinueWork { work: STATEMENT_WORK }) => self.begin_next_statement(&mut turn),
            SqlSignal::ContinueWork(_) => {}
            reply => {
                if let Some((connection, event)) = self.engine.gateway.on_reply(reply) {
                    self.resume(connection, event, &mut turn);
                }
            }
        }
    }

    /// Takes one event of the world.
    pub fn on_world(&mut self, event: WorldEvent, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.engine.counters.signals += 1;
        match event {
            WorldEvent::Timer { token: TABLE_TIMER } => self.on_table_timer(&mut TurnContext::new(context, outbox)),
            WorldEvent::Timer { token: STATEMENT_TIMER } => {
                self.on_statement_timer(&mut TurnContext::new(context, outbox))
            }
            WorldEvent::Timer { .. } => self.on_look(&mut TurnContext::new(context, outbox)),
            _ => {}
        }
    }

    /// The turn from `began` is over.
    #[inline]
    pub fn turn_ended(&mut self, began: Time, ended: Time) {
        self.engine.end_turn(began, ended);
    }

    fn on_open_session(&mut self, signal: OpenSession, turn: &mut TurnContext<'_>) {
        let OpenSession { connection, reply_to, socket, reset, login } = signal;
        let capabilities = Capabilities::from_bits(login.capabilities);
        let (dialect, text_protocol) = match login.is_native {
            true => (Dialect::Native { number: 0 }, RowProtocol::Binary),
            false => (Dialect::MySql(capabilities), RowProtocol::Text),
        };
        let mut multi_statements = capabilities.contains(Capabilities::MULTI_STATEMENTS);
        if reset && let Some(mut old) = self.sessions.remove(&connection) {
            // COM_SET_OPTION outlives a change of the user.
            multi_statements = old.session.allows_several_statements();
            self.engine.close_session(&mut old.session, turn);
            self.leave_admission(&mut old);
        }
        let opening = SessionOpening {
            connection,
            user: &login.user,
            host: &login.host,
            database: login.database.as_deref(),
            found_rows: capabilities.contains(Capabilities::FOUND_ROWS),
            multi_statements,
            character_set: login.character_set,
            is_interactive: capabilities.contains(Capabilities::INTERACTIVE),
            text_protocol,
        };
        let mut answer = turn.buffers.take(64);
        let mut sink = AnswerSink::new(dialect, &mut answer, Some(0));
        let after = match self.engine.open_session(&opening, turn) {
            Ok(session) => {
                sink.complete(&session.completion());
                let record = SessionRecord {
                    session,
                    reply_to,
                    socket,
                    dialect,
                    parameters: StatementParameters::default(),
                    native: Box::default(),
                    answer: Buffer::new(),
                    result_start: Some(0),
                    unsent: Unsent::default(),
                    admitted: false,
                    command: CommandState::None,
                    running: None,
                    since: turn.now,
                    begun: turn.now,
                    open_transaction: None,
                    is_ending: false,
                    closing: false,
                };
                self.sessions.insert(connection, Box::new(record));
                if !reset {
                    self.looks.add(connection, turn);
                }
                AfterReply::NextCommand
            }
            Err(error) => {
                sink.error(&error);
                AfterReply::Close
            }
        };
        let reply = CommandReply { connection, socket, packets: answer, after };
        turn.outbox.send(reply_to, Signal::Recv(RecvSignal::CommandReply(reply)));
        // The session before may have held a ticket that others wait for.
        self.admit_waiting(turn);
    }

    fn on_execute_command(&mut self, command: ExecuteCommand, turn: &mut TurnContext<'_>) {
        let connection = command.connection;
        let Some(record) = self.sessions.get_mut(&connection) else {
            turn.buffers.give(command.bytes);
            return;
        };
        record.begun = turn.now;
        if let Dialect::Native { number } = &mut record.dialect {
            *number = native::command::number_of(payload_of(&command));
        }
        self.engine.counters.commands += 1;
        if !record.admitted && !is_kill(&command) {
            if !self.admission.try_enter() {
                self.admission.wait(command.connection);
                self.engine.counters.admission_waits += 1;
                record.command = CommandState::Waiting(command);
                record.since = turn.now;
                return;
            }
            record.admitted = true;
        }
        run(&mut self.engine, &mut self.parameters, record, command, turn);
        self.settle(connection, turn);
        self.admit_waiting(turn);
    }

    fn resume(&mut self, connection: ConnectionId, event: Event, turn: &mut TurnContext<'_>) {
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        let SessionRecord { session, dialect, answer, result_start, .. } = &mut **record;
        let mut sink = AnswerSink::new(*dialect, answer, *result_start);
        let progress = self.engine.resume(session, event, turn, &mut sink);
        after(&mut self.engine, record, progress, turn);
        self.settle(connection, turn);
        self.admit_waiting(turn);
    }

    fn on_continue_command(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        record.unsent.sent = None;
        match record.command {
            CommandState::Running => record.send_results(turn),
            CommandState::Between(Turn::Admission) => return record.send_results(turn),
            CommandState::Between(Turn::NeedsRoom) => {
                record.command = CommandState::Between(Turn::Due);
                return self.settle(connection, turn);
            }
            // The answer was cut short by KILL.
            _ => return,
        }
        record.take_answer(turn);
        let SessionRecord { session, dialect, answer, result_start, .. } = &mut **record;
        let mut sink = AnswerSink::new(*dialect, answer, *result_start);
        let progress = self.engine.continue_output(session, turn, &mut sink);
        after(&mut self.engine, record, progress, turn);
        self.settle(connection, turn);
        self.admit_waiting(turn);
    }

    fn on_close_session(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        match std::mem::replace(&mut record.command, CommandState::None) {
            CommandState::Waiting(command) => {
                self.admission.forget(connection);
                turn.buffers.give(command.bytes);
            }
            CommandState::WaitingAgain | CommandState::Between(Turn::Admission) => self.admission.forget(connection),
            CommandState::None | CommandState::Running | CommandState::Between(_) => {}
        }
        record.closing = true;
        self.engine.interrupt(&mut record.session, turn);
        self.settle(connection, turn);
        self.admit_waiting(turn);
    }

    /// After every step of a session: gives its ticket back when nothing of it is in the data plane, and forgets it when its
    /// connection is gone and nothing is under way.
    pub(super) fn settle(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        let Some(mut record) = self.sessions.get_mut(&connection) else { return };
        let idle = !self.engine.is_busy(&record.session);
        record.closing |= record.is_ending && idle;
        if self.engine.watches_tables() {
            self.engine.note_table_step(&record.session, turn);
            self.start_table_timer(turn);
            let Some(again) = self.sessions.get_mut(&connection) else { return };
            record = again;
        }
        if record.closing && idle {
            self.engine.close_session(&mut record.session, turn);
            if let Some(mut record) = self.sessions.remove(&connection) {
                turn.buffers.give(std::mem::take(&mut record.answer));
                if let Some(command) = record.running.take() {
                    turn.buffers.give(command.bytes);
                }
                self.leave_admission(&mut record);
            }
            return;
        }
        // Who waits for a table gives way to those that are to leave it.
        let is_out = match record.command {
            CommandState::None if idle => true,
            CommandState::Between(Turn::Due) => {
                record.command = CommandState::Between(Turn::Queued);
                return self.next_statement_later(connection, turn);
            }
            _ => record.session.waits_for_tables(),
        };
        if record.admitted && is_out && !record.session.holds_locks() {
            record.admitted = false;
            self.admission.leave();
        }
        // Others may wait for its locks, so that what comes next must not wait for them. A change of the schema, which locks
        // rows while it fills an index, asks for no ticket until it is done with them.
        debug_assert!(
            record.admitted || !record.session.holds_locks() || record.session.waits_for_tables(),
            "a session with locks holds no ticket of admission"
        );
    }

    fn leave_admission(&mut self, record: &mut SessionRecord) {
        if std::mem::take(&mut record.admitted) {
            self.admission.leave();
        }
    }

    /// Lets in who waits, as long as tickets are free.
    pub(super) fn admit_waiting(&mut self, turn: &mut TurnContext<'_>) {
        while let Some(connection) = self.admission.admit_next() {
            let Some(record) = self.sessions.get_mut(&connection) else {
                self.admission.leave();
                continue;
            };
            match std::mem::replace(&mut record.command, CommandState::None) {
                CommandState::Waiting(command) => {
                    record.admitted = true;
                    run(&mut self.engine, &mut self.parameters, record, command, turn);
                    self.settle(connection, turn);
                }
                CommandState::WaitingAgain => {
                    record.admitted = true;
                    record.command = CommandState::Running;
                    self.go_on(connection, turn, Engine::retry_tables);
                }
                CommandState::Between(Turn::Admission) => {
                    record.admitted = true;
                    record.command = CommandState::Between(Turn::Queued);
                    self.next_statement_later(connection, turn);
                }
                other => {
                    record.command = other;
                    self.admission.leave();
                }
            }
        }
    }
}

/// Runs a command of an admitted session.
fn run(
    engine: &mut Engine,
    decoded: &mut DecodedParameters,
    record: &mut SessionRecord,
    command: ExecuteCommand,
    turn: &mut TurnContext<'_>,
) {
    record.command = CommandState::Running;
    record.answer = turn.buffers.take(512);
    record.result_start = Some(0);
    let payload = command.bytes.get(command.start as usize..command.end as usize).unwrap_or(&[]);
    let progress = match execute(engine, decoded, record, payload, turn) {
        Outcome::Progress(progress) => progress,
        Outcome::Silent => Progress::Done,
    };
    record.since = turn.now;
    match progress {
        Progress::Waiting | Progress::MoreOutput => record.running = Some(command),
        Progress::Done if record.session.has_more_statements() => record.running = Some(command),
        Progress::Done | Progress::Close => turn.buffers.give(command.bytes),
    }
    after(engine, record, progress, turn);
}

/// Sends what an answer came to, and notes that the command is over when it is.
pub(super) fn after(engine: &mut Engine, record: &mut SessionRecord, progress: Progress, turn: &mut TurnContext<'_>) {
    let after = match progress {
        Progress::Waiting => return,
        Progress::MoreOutput => AfterReply::MoreParts,
        Progress::Done if record.session.has_more_statements() && !record.is_ending => {
            return after_statement(engine, record, turn);
        }
        _ if record.is_ending => AfterReply::Close,
        Progress::Done => AfterReply::NextCommand,
        Progress::Close => AfterReply::Close,
    };
    if progress == Progress::MoreOutput {
        record.result_start = None;
    } else {
        engine.note_done(&mut record.session, record.begun, turn.now);
        record.command = CommandState::None;
        record.since = turn.now;
        if let Some(command) = record.running.take() {
            turn.buffers.give(command.bytes);
        }
    }
    if record.closing {
        if progress == Progress::MoreOutput {
            engine.interrupt(&mut record.session, turn);
        }
        turn.buffers.give(std::mem::take(&mut record.answer));
        return;
    }
    let reply = CommandReply {
        connection: record.session.connection(),
        socket: record.socket,
        packets: std::mem::take(&mut record.answer),
        after,
    };
    turn.outbox.send(record.reply_to, Signal::Recv(RecvSignal::CommandReply(reply)));
    if after == AfterReply::MoreParts {
        mark_part(record.reply_to, turn);
    }
}

/// A part of an answer was sent that is written before more is asked for: the thread of the socket does both itself.
pub(super) fn mark_part(recv: Address, turn: &mut TurnContext<'_>) {
    turn.outbox.mark_heavy(recv);
}

fn execute(
    engine: &mut Engine,
    decoded: &mut DecodedParameters,
    record: &mut SessionRecord,
    payload: &[u8],
    turn: &mut TurnContext<'_>,
) -> Outcome {
    let Dialect::MySql(capabilities) = record.dialect else {
        return Outcome::Progress(execute_native(engine, record, payload, turn));
    };
    let SessionRecord { session, parameters, answer, .. } = record;
    let mut sink = PacketSink { out: answer, capabilities, result_start: Some(0) };
    let command = match Command::parse(payload, capabilities) {
        Ok(command) => command,
        Err(error) => return refuse(error, &mut sink),
    };
    let sql_command = match command {
        Command::Query { statement } => SqlCommand::Query(statement),
        Command::StmtExecute(execution) => {
            let Some(count) = engine.parameter_count(session, execution.statement_id) else {
                return unknown_statement(execution.statement_id, "mysqld_stmt_execute", &mut sink);
            };
            if let Err(error) = parameters.decode(&execution, usize::from(count), decoded) {
                decoded.trim();
                return refuse(error, &mut sink);
            }
            let execution = PreparedExecution { statement: execution.statement_id, parameters: decoded.bytes() };
            let progress = engine.execute_prepared(session, execution, turn, &mut sink);
            decoded.trim();
            return Outcome::Progress(progress);
        }
        Command::StmtPrepare { statement } => SqlCommand::Prepare(statement),
        Command::StmtClose { statement_id } => {
            parameters.forget(statement_id);
            engine.close_statement(session, statement_id);
            return Outcome::Silent;
        }
        Command::StmtReset { statement_id } => {
            parameters.forget_long_data(statement_id);
            if engine.parameter_count(session, statement_id).is_none() {
                return unknown_statement(statement_id, "mysqld_stmt_reset", &mut sink);
            }
            SqlCommand::Ping
        }
        Command::StmtSendLongData { statement_id, parameter, data } => {
            // Data for what does not exist is dropped: nothing may be kept for it.
            if engine.parameter_count(session, statement_id).is_some_and(|count| parameter < count) {
                parameters.append_long_data(statement_id, parameter, data);
            }
            return Outcome::Silent;
        }
        Command::InitDb { database } => SqlCommand::UseDatabase(database),
        Command::FieldList { table, wildcard } => SqlCommand::FieldList { table, wildcard },
        Command::Statistics => SqlCommand::Statistics,
        Command::Ping => SqlCommand::Ping,
        Command::ResetConnection => {
            *parameters = StatementParameters::default();
            SqlCommand::ResetConnection
        }
        Command::SetOption { multi_statements } => SqlCommand::SetMultiStatements(multi_statements),
        Command::ProcessKill { connection_id } => SqlCommand::Kill(ConnectionId(connection_id)),
        Command::Quit | Command::ChangeUser(_) => return Outcome::Progress(Progress::Close),
        Command::ProcessInfo => SqlCommand::Query(b"SHOW PROCESSLIST"),
        Command::StmtFetch { .. } => {
            sink.error(&Error::not_supported("cursors"));
            return Outcome::Progress(Progress::Done);
        }
        Command::Unknown(_) => {
            sink.error(&Error::new(ErrorCode::UnknownCommand, "Unknown command"));
            return Outcome::Progress(Progress::Done);
        }
    };
    Outcome::Progress(engine.command(session, sql_command, turn, &mut sink))
}

fn execute_native(
    engine: &mut Engine,
    record: &mut SessionRecord,
    payload: &[u8],
    turn: &mut TurnContext<'_>,
) -> Progress {
    let (number, request) = native::command::parse(payload);
    let SessionRecord { session, native, answer, .. } = record;
    let mut sink = NativeSink { out: answer, number, result_start: Some(0), prepared: None };
    native::command::execute(engine, session, native, (request, payload), turn, &mut sink)
}

/// A malformed packet ends its connection, after its error.
fn refuse(error: ProtocolError, sink: &mut PacketSink<'_>) -> Outcome {
    let code = match error {
        ProtocolError::PacketsOutOfOrder { .. } => ErrorCode::PacketsOutOfOrder,
        ProtocolError::PacketTooLarge => ErrorCode::PacketTooLarge,
        ProtocolError::Malformed { .. } => ErrorCode::MalformedPacket,
    };
    sink.error(&Error::new(code, error.message()));
    Outcome::Progress(Progress::Close)
}

fn unknown_statement(statement: u32, command: &str, sink: &mut PacketSink<'_>) -> Outcome {
    let message = format!("Unknown prepared statement handler ({statement}) given to {command}");
    sink.error(&Error::new(ErrorCode::UnknownPreparedStatement, message));
    Outcome::Progress(Progress::Done)
}
