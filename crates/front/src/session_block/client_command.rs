//! Hot path: at most 150 instructions per command, not counting execution.
//!
//! Sessions and their commands, from *OpenSession* to *CloseSession*.

use junctor_gateway::{Event, TurnContext};
use junctor_kernel::{Address, require};
use junctor_model::collation::CharacterSet;
use junctor_model::id::ConnectionId;
use junctor_signals::client_command::*;
use junctor_signals::inbox::{RecvSignal, Signal};
use junctor_sql::result::{Progress, ResultSink};
use junctor_sql::{BACKGROUND_CONNECTION, Engine, Session, SessionOpening};

use super::block::SqlBlock;
use super::log_statement::{log_end, log_start};
use super::multi_statement::after_statement;
use super::state::{AwaitedClient, CommandState, NextStatement, SessionRecord, payload_of};
use crate::admission::{Priority, ThreadGroup};
use crate::protocol::{CommandContext, DecodedParameters};
use crate::protocol_table::{Protocol, SessionState};

/// A call into the SQL engine that continues a session after the event for which it waited.
pub(super) type Step = fn(&mut Engine, &mut Session, &mut TurnContext<'_>, &mut dyn ResultSink) -> Progress;

impl SqlBlock {
    pub(super) fn on_open_session(&mut self, signal: OpenSession, turn: &mut TurnContext<'_>) {
        let OpenSession { connection, reply_to, socket, reset, login } = signal;
        let protocol = Protocol::from_number(login.protocol);
        require!(protocol.is_some(), "a login names a protocol of the table");
        let Some(protocol) = protocol else { return };
        let (mut protocol, mut traits) = SessionState::open(protocol, &login);
        if reset && let Some(mut old) = self.sessions.remove(&connection) {
            // COM_CHANGE_USER keeps the effect of COM_SET_OPTION.
            traits.multi_statements = old.session.allows_multi_statements();
            self.engine.close_session(&mut old.session, turn);
            self.return_slot(&mut old, turn);
        }
        let opening = SessionOpening {
            connection,
            user: &login.user,
            host: &login.host,
            account: &login.account,
            is_expired: login.is_expired,
            database: login.database.as_deref(),
            found_rows: traits.found_rows,
            multi_statements: traits.multi_statements,
            character_set: login.character_set,
            is_interactive: traits.is_interactive,
            tracks_state: traits.tracks_state,
            text_protocol: traits.row_protocol,
            tls: login.tls,
            compression: traits.compression,
        };
        let mut answer = turn.buffers.take(64);
        let after = match self.engine.open_session(&opening, turn) {
            Ok(session) => {
                protocol.encode_opened(&session.completion(), &mut answer);
                let record = SessionRecord {
                    is_admitted: login.is_extra,
                    is_extra: login.is_extra,
                    ..SessionRecord::new(session, protocol, (socket, reply_to), turn.turn_start)
                };
                let replaced = self.sessions.insert(connection, Box::new(record));
                require!(replaced.is_none(), "a connection's id belongs to one session");
                if !reset {
                    self.timeout_sweep.add(connection, turn);
                }
                AfterReply::NextCommand
            }
            Err(error) => {
                protocol.sink(&mut answer, Some(0)).as_result_sink().error(&error);
                AfterReply::Close
            }
        };
        let reply = CommandReply { connection, socket, packets: answer, after };
        turn.outbox.send(reply_to, Signal::Recv(RecvSignal::CommandReply(reply)));
        // The replaced session may have held a slot for which others wait.
        self.admit_waiting(turn);
    }

    pub(super) fn on_execute_command(&mut self, command: ExecuteCommand, turn: &mut TurnContext<'_>) {
        let connection = command.connection;
        let Some(record) = self.sessions.get_mut(&connection) else {
            // KILL or a timeout has ended the session; recv sent the command before it learned of that.
            turn.buffers.give(command.bytes);
            return;
        };
        require!(matches!(record.command, CommandState::Idle), "a session has one command under way");
        record.statement_start = turn.turn_start;
        record.awaited = None;
        let mut command = command;
        let client = record.session.client_character_set();
        if client.is_recoded() {
            decode_text(&record.protocol, client, &mut command);
        }
        let payload = payload_of(&command);
        record.protocol.begin_command(payload);
        self.engine.counters.commands += 1;
        let priority = record.priority();
        if record.is_admitted && priority == Priority::Low {
            // The transaction has used its tickets. It goes on when those that wait have had their turn.
            record.is_admitted = false;
            self.group.leave(record.admitted_at, turn.turn_start);
        }
        if !record.is_admitted {
            record.is_admitted = self.group.try_enter(priority);
            record.admitted_at = turn.turn_start;
            // KILL does not queue, because it may be what frees a slot for those that wait.
            if !record.is_admitted && !is_kill(&record.protocol, payload) {
                self.group.wait(connection, priority, turn.turn_start);
                self.engine.counters.admission_waits += 1;
                record.command = CommandState::AwaitsAdmission(command);
                record.state_since = turn.turn_start;
                self.start_group_timer(turn);
                self.admit_waiting(turn);
                return;
            }
        }
        start_command(&mut self.engine, &mut self.parameters, record, command, turn);
        if !record.awaits_replies() || record.awaits_client() || self.engine.watches_tables() {
            self.end_step(connection, turn);
        }
        self.admit_waiting(turn);
    }

    /// Continues a session with a reply of the data plane.
    pub(super) fn resume(&mut self, connection: ConnectionId, event: Event, turn: &mut TurnContext<'_>) {
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        let SessionRecord { session, protocol, answer, result_start, .. } = &mut **record;
        let mut sink = protocol.sink(answer, *result_start);
        let progress = self.engine.resume(session, event, turn, sink.as_result_sink());
        drop(sink);
        send_progress(&mut self.engine, record, progress, turn);
        if !end_command(&self.engine, &mut self.group, record, turn) {
            self.end_step(connection, turn);
        }
        self.admit_waiting(turn);
    }

    /// Continues an answer, because the client has space for the next part.
    pub(super) fn on_continue_command(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        record.unsent.sent = None;
        record.awaited = None;
        match record.command {
            CommandState::Running => record.send_finished_results(turn),
            CommandState::BetweenStatements(NextStatement::AwaitsAdmission) => {
                return record.send_finished_results(turn);
            }
            CommandState::BetweenStatements(NextStatement::AwaitsRoom) => {
                record.command = CommandState::BetweenStatements(NextStatement::Due);
                return self.end_step(connection, turn);
            }
            // KILL has ended the answer early.
            _ => return,
        }
        record.take_slot_back(&mut self.group);
        record.take_answer_buffer(turn);
        self.run_step(connection, turn, Engine::continue_output);
        self.admit_waiting(turn);
    }

    /// Continues a LOAD DATA LOCAL with the next part of the file.
    pub(super) fn on_receive_file(&mut self, signal: ReceiveFile, turn: &mut TurnContext<'_>) {
        let ReceiveFile { connection, bytes, start, end } = signal;
        let part = bytes.get(start as usize..end as usize);
        require!(part.is_some(), "a part of a file lies in its buffer");
        if let Some(record) = self.sessions.get_mut(&connection)
            && matches!(record.command, CommandState::Running)
        {
            record.awaited = None;
            record.take_slot_back(&mut self.group);
            record.take_answer_buffer(turn);
            let SessionRecord { session, protocol, answer, result_start, .. } = &mut **record;
            let mut sink = protocol.sink(answer, *result_start);
            let part = part.unwrap_or(&[]);
            let progress = self.engine.receive_file(session, part, turn, sink.as_result_sink());
            drop(sink);
            send_progress(&mut self.engine, record, progress, turn);
            self.end_step(connection, turn);
            self.admit_waiting(turn);
        }
        turn.buffers.give(bytes);
    }

    /// The client has sent a part of the next command, or of the part of a file that the session awaits.
    #[cold]
    pub(super) fn on_note_half_command(&mut self, signal: &NoteHalfCommand, turn: &TurnContext<'_>) {
        let Some(record) = self.sessions.get_mut(&signal.connection) else { return };
        match (&record.command, record.awaited) {
            (CommandState::Idle, _) => record.awaited = Some((AwaitedClient::Command, turn.turn_start)),
            (_, Some((AwaitedClient::File, _))) => record.awaited = Some((AwaitedClient::File, turn.turn_start)),
            _ => {}
        }
    }

    /// Runs another step of a statement. This includes interrupted statements of lost connections: the step
    /// undoes the statement, and nothing else would.
    pub(super) fn on_continue_statement(&mut self, signal: &ContinueStatement, turn: &mut TurnContext<'_>) {
        let connection = signal.connection;
        let record = self.sessions.get(&connection).filter(|record| record.session.awaits_step(signal.step));
        let Some(record) = record else { return };
        if matches!(record.command, CommandState::Running) || record.is_disconnected {
            self.run_step(connection, turn, Engine::continue_statement);
            self.admit_waiting(turn);
        }
    }

    pub(super) fn on_close_session(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        match std::mem::replace(&mut record.command, CommandState::Idle) {
            CommandState::AwaitsAdmission(command) => {
                self.group.cancel_wait(connection);
                turn.buffers.give(command.bytes);
            }
            CommandState::AwaitsReadmission | CommandState::BetweenStatements(NextStatement::AwaitsAdmission) => {
                self.group.cancel_wait(connection);
            }
            CommandState::Idle | CommandState::Running | CommandState::BetweenStatements(_) => {}
        }
        record.is_disconnected = true;
        // A write is rolled back, but a commit continues. The record stays until the engine is done.
        self.engine.interrupt(&mut record.session, turn);
        self.end_step(connection, turn);
        self.admit_waiting(turn);
    }

    /// Runs a step of a session whose command is in progress.
    pub(super) fn run_step(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>, step: Step) {
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        require!(
            matches!(record.command, CommandState::Running) || record.is_disconnected,
            "a step belongs to a command that is running, or to the end of a lost connection"
        );
        let SessionRecord { session, protocol, answer, result_start, .. } = &mut **record;
        let mut sink = protocol.sink(answer, *result_start);
        let progress = step(&mut self.engine, session, turn, sink.as_result_sink());
        drop(sink);
        send_progress(&mut self.engine, record, progress, turn);
        self.end_step(connection, turn);
    }

    /// Called at the end of every step of a session. Returns the session's slot if the session has no work
    /// in the data plane. Removes the session if its connection is gone and it has no work at all.
    pub(super) fn end_step(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        let Some(mut record) = self.sessions.get_mut(&connection) else { return };
        let is_idle = !self.engine.is_busy(&record.session);
        record.is_disconnected |= record.is_ending && is_idle;
        if self.engine.watches_tables() {
            self.engine.note_table_step(&record.session, turn);
            self.start_metadata_lock_timer(turn);
            let Some(same) = self.sessions.get_mut(&connection) else { return };
            record = same;
        }
        if !record.awaits_replies() {
            // The reply overtook the news that the wait is over, or the session now waits for tables or ends.
            record.take_slot_back(&mut self.group);
        }
        if record.is_admitted && !record.is_extra && record.awaits_client() {
            // Clients that do not read must not hold the slots that others need.
            record.lend_slot(&mut self.group);
        }
        if record.lender.is_some()
            && is_idle
            && (record.is_disconnected || matches!(record.command, CommandState::Idle))
        {
            return self.return_session(connection, turn);
        }
        if record.session.is_to_be_lent() && record.lender.is_none() {
            return self.lend_session(connection, turn);
        }
        if record.is_disconnected && is_idle {
            return self.remove_session(connection, turn);
        }
        // A session that waits for a metadata lock returns its slot, because the holders of the lock need
        // slots in order to finish and release it.
        let is_outside = match record.command {
            CommandState::Idle if is_idle => true,
            CommandState::BetweenStatements(NextStatement::Due) => {
                record.command = CommandState::BetweenStatements(NextStatement::Queued);
                return self.queue_next_statement(connection, turn);
            }
            _ => record.session.waits_for_tables(),
        };
        // Others may wait for this session's row locks, so its next command must not queue behind them,
        // unless the user wants that.
        if record.is_admitted && is_outside && !record.keeps_slot() {
            record.is_admitted = false;
            self.engine.counters.metadata_lock_waits += u64::from(record.session.waits_for_tables());
            self.group.leave(record.admitted_at, turn.turn_start);
        }
    }

    fn remove_session(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        let Some(mut record) = self.sessions.remove(&connection) else { return };
        if connection == BACKGROUND_CONNECTION {
            self.end_purge_batch(&record.session, turn);
        }
        self.engine.close_session(&mut record.session, turn);
        turn.buffers.give(std::mem::take(&mut record.answer));
        if let Some(command) = record.running.take() {
            turn.buffers.give(command.bytes);
        }
        self.return_slot(&mut record, turn);
    }

    pub(super) fn return_slot(&mut self, record: &mut SessionRecord, turn: &TurnContext<'_>) {
        // Sessions of the extra port are admitted without a slot.
        if !record.is_extra && std::mem::take(&mut record.is_admitted) {
            self.group.leave(record.admitted_at, turn.turn_start);
        }
    }

    /// Admits waiting sessions as long as slots are free.
    #[inline]
    pub(super) fn admit_waiting(&mut self, turn: &mut TurnContext<'_>) {
        if self.group.has_waiters() {
            self.admit_waiters(turn);
        }
    }

    fn admit_waiters(&mut self, turn: &mut TurnContext<'_>) {
        while let Some(connection) = self.group.admit_next(turn.turn_start) {
            let record = self.sessions.get_mut(&connection);
            require!(record.is_some(), "a session that ends leaves the queues");
            let Some(record) = record else { return };
            require!(!record.is_admitted && !record.lends_slot, "a session has at most one slot");
            record.is_admitted = true;
            record.admitted_at = turn.turn_start;
            match std::mem::replace(&mut record.command, CommandState::Running) {
                CommandState::AwaitsAdmission(command) => {
                    start_command(&mut self.engine, &mut self.parameters, record, command, turn);
                    self.end_step(connection, turn);
                }
                CommandState::AwaitsReadmission => self.run_step(connection, turn, Engine::retry_tables),
                CommandState::BetweenStatements(NextStatement::AwaitsAdmission) => {
                    record.command = CommandState::BetweenStatements(NextStatement::Queued);
                    self.queue_next_statement(connection, turn);
                }
                CommandState::Idle | CommandState::Running | CommandState::BetweenStatements(_) => {
                    require!(false, "only a command that waits for a slot is in a queue");
                }
            }
        }
    }
}

/// Replaces the text of a command by its UTF-8.
#[cold]
fn decode_text(protocol: &SessionState, client: CharacterSet, command: &mut ExecuteCommand) {
    let payload = payload_of(command);
    let Some(start) = protocol.text_start(payload) else { return };
    let (head, text) = payload.split_at(start.min(payload.len()));
    if text.is_ascii() {
        return;
    }
    let mut decoded = head.to_vec();
    client.decode(text, &mut decoded);
    let Ok(end) = u32::try_from(decoded.len()) else { return };
    command.bytes.clear();
    command.bytes.extend_from_slice(&decoded);
    (command.start, command.end) = (0, end);
}

/// What [`SqlBlock::end_step`] does after a step that has ended its command, without looking the session up
/// again. Returns false if there may be more to do.
#[inline]
fn end_command(engine: &Engine, group: &mut ThreadGroup, record: &mut SessionRecord, turn: &TurnContext<'_>) -> bool {
    let is_plain = matches!(record.command, CommandState::Idle)
        && !record.is_ending
        && !record.is_disconnected
        && !record.lends_slot
        && record.lender.is_none()
        && !engine.watches_tables()
        && !engine.is_busy(&record.session);
    if is_plain && record.is_admitted && !record.keeps_slot() {
        record.is_admitted = false;
        group.leave(record.admitted_at, turn.turn_start);
    }
    is_plain
}

/// Executes a command of a session that has a slot or needs none.
fn start_command(
    engine: &mut Engine,
    parameters: &mut DecodedParameters,
    record: &mut SessionRecord,
    command: ExecuteCommand,
    turn: &mut TurnContext<'_>,
) {
    record.command = CommandState::Running;
    record.answer = turn.buffers.take(512);
    record.result_start = Some(0);
    log_start(engine, record, payload_of(&command), turn);
    let SessionRecord { protocol, session, answer, .. } = record;
    let context = CommandContext { engine, session, parameters, turn };
    let progress = protocol.execute(payload_of(&command), answer, context);
    record.state_since = turn.turn_start;
    match progress {
        Progress::Waiting | Progress::MoreOutput | Progress::AwaitsInput => record.running = Some(command),
        Progress::Done if record.session.has_more_statements() => record.running = Some(command),
        Progress::Done | Progress::Close => {
            log_end(engine, record, payload_of(&command), turn);
            turn.buffers.give(command.bytes);
        }
    }
    send_progress(engine, record, progress, turn);
}

/// Sends the output of a step, and finishes the command if the step was its last one.
pub(super) fn send_progress(
    engine: &mut Engine,
    record: &mut SessionRecord,
    progress: Progress,
    turn: &mut TurnContext<'_>,
) {
    if progress == Progress::Waiting {
        // A reply may arrive after KILL has ended its statement. It adds nothing to the answer.
        return;
    }
    let is_answer_due = !matches!(record.command, CommandState::Idle) || record.is_ending || record.is_disconnected;
    require!(is_answer_due, "a session answers only the command under way");
    let after = match progress {
        Progress::Waiting => return,
        Progress::MoreOutput => AfterReply::MoreParts,
        Progress::AwaitsInput => AfterReply::AwaitInput,
        Progress::Done if record.session.has_more_statements() && !record.is_ending => {
            return after_statement(engine, record, turn);
        }
        _ if record.is_ending => AfterReply::Close,
        Progress::Done => AfterReply::NextCommand,
        Progress::Close => AfterReply::Close,
    };
    if progress == Progress::MoreOutput {
        // The client gets a part of the result, so an error can no longer replace it.
        record.result_start = None;
        record.awaited = Some((AwaitedClient::Room, turn.turn_start));
    } else if progress == Progress::AwaitsInput {
        record.awaited = Some((AwaitedClient::File, turn.turn_start));
        // The client gets the results of earlier statements and the request, which is no result.
        record.result_start = Some(0);
    } else {
        engine.note_done(&mut record.session, record.statement_start, turn.turn_start);
        record.command = CommandState::Idle;
        record.state_since = turn.turn_start;
        if let Some(command) = record.running.take() {
            log_end(engine, record, payload_of(&command), turn);
            turn.buffers.give(command.bytes);
        }
    }
    if record.is_disconnected {
        // The client is gone and will not ask for the next part, so interrupt the statement.
        if matches!(progress, Progress::MoreOutput | Progress::AwaitsInput) {
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

/// Marks a part of an answer as too long for a delegated turn, which another thread runs for the sleeping
/// owner of the socket. The owner is woken instead, and writes this part before it requests the next one.
pub(super) fn mark_part(recv: Address, turn: &mut TurnContext<'_>) {
    turn.outbox.mark_heavy(recv);
}

fn is_kill(protocol: &SessionState, payload: &[u8]) -> bool {
    let text = protocol.query_text(payload).unwrap_or(&[]);
    text.trim_ascii_start().get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"KILL"))
}
