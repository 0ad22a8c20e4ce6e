//! From one statement of a text to the next.

use junctor_client::Door;
use junctor_client::block_signals::*;
use junctor_model::id::ConnectionId;
use junctor_sql::result::OUTPUT_PART_BYTES;

use super::packet_sink::PacketSink;
use super::session_control::payload_of;
use super::sql_block::{CommandState, SessionRecord, SqlBlock, Turn, after};
use super::wire::command::Command;

/// The number of the work that begins the next statements of texts.
pub(super) const STATEMENT_WORK: u32 = 0x7374_6174;

/// A statement is done and another one follows: what it said is sent if it is much, else it leaves with what comes next.
#[cold]
pub(super) fn after_statement(record: &mut SessionRecord, door: &mut Door<'_>) {
    if record.answer.len() < OUTPUT_PART_BYTES {
        record.command = CommandState::Between(Turn::Due);
        return;
    }
    record.command = CommandState::Between(Turn::NeedsRoom);
    let reply = CommandReply {
        connection: record.session.connection(),
        socket: record.socket,
        packets: std::mem::take(&mut record.answer),
        after: AfterReply::MoreParts,
    };
    door.outbox.send(record.reply_to, Signal::Recv(RecvSignal::CommandReply(reply)));
}

impl SqlBlock {
    pub(super) fn next_statement_later(&mut self, connection: ConnectionId, door: &mut Door<'_>) {
        self.between.push_back(connection);
        let signal = ContinueWork { work: STATEMENT_WORK };
        door.outbox.send(self.own, Signal::Sql(SqlSignal::ContinueWork(signal)));
    }

    pub(super) fn begin_next_statement(&mut self, door: &mut Door<'_>) {
        let Some(connection) = self.between.pop_front() else { return };
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        if !matches!(record.command, CommandState::Between(Turn::Queued)) {
            return;
        }
        record.command = CommandState::Running;
        if record.answer.is_empty() {
            let empty = std::mem::replace(&mut record.answer, door.buffers.take(4096));
            door.buffers.give(empty);
        }
        record.result_start = Some(record.answer.len());
        let SessionRecord { session, capabilities, answer, result_start, running, .. } = &mut **record;
        let payload = running.as_ref().map_or(&[][..], payload_of);
        let text = match Command::parse(payload, *capabilities) {
            Ok(Command::Query { statement }) => statement,
            _ => &[],
        };
        let mut sink = PacketSink { out: answer, capabilities: *capabilities, result_start: *result_start };
        let progress = self.engine.next_statement(session, text, door, &mut sink);
        after(&mut self.engine, record, progress, door);
        self.settle(connection, door);
        self.admit_waiting(door);
    }
}
