//! Reads of the sessions of this block, for SHOW PROCESSLIST. They run in steps, one after another.

use std::collections::VecDeque;

use junctor_gateway::TurnContext;
use junctor_model::id::ConnectionId;
use junctor_model::value::Value;
use junctor_signals::inbox::{ContinueWork, Signal, SqlSignal};
use junctor_signals::read_status::{ReadStatus, ReadStatusReply};

use super::block::SqlBlock;
use super::read_status::send_rows;

/// The number of the deferred work that runs the next step.
pub(super) const PROCESS_WORK: u32 = 0x7072_6f63;
/// Maximum number of requests that wait. If there are more, the first one is completed at once.
const WAITING_MAX: usize = 64;
/// Maximum number of sessions of a step, each of which may have a long statement.
const STEP_SESSIONS: usize = 64;

/// A request that is not answered yet.
pub(super) struct ProcessRead {
    request: ReadStatus,
    /// The sessions without a row, the last one first.
    left: Vec<ConnectionId>,
    rows: Vec<Vec<Value>>,
}

/// The requests that are not answered yet.
pub(super) type ProcessReads = VecDeque<ProcessRead>;

impl SqlBlock {
    pub(super) fn on_read_processes(&mut self, request: ReadStatus, turn: &mut TurnContext<'_>) {
        let mut left: Vec<ConnectionId> = self.sessions.keys().copied().collect();
        left.sort_unstable_by(|one, other| other.cmp(one));
        self.process_reads.push_back(ProcessRead { request, left, rows: self.rows_of_lent_sessions(turn.turn_start) });
        match self.process_reads.len() {
            1 => self.continue_process_read(turn),
            count if count > WAITING_MAX => while !self.run_process_step(turn) {},
            _ => {}
        }
    }

    /// Runs the next step of the first request. Lets other work run before the step after it.
    pub(super) fn continue_process_read(&mut self, turn: &mut TurnContext<'_>) {
        self.run_process_step(turn);
        if !self.process_reads.is_empty() {
            let signal = ContinueWork { work: PROCESS_WORK };
            turn.outbox.send_long_running(self.own, Signal::Sql(SqlSignal::ContinueWork(signal)));
        }
    }

    /// Runs the next step of the first request. Returns whether it is answered.
    fn run_process_step(&mut self, turn: &mut TurnContext<'_>) -> bool {
        let Some(mut read) = self.process_reads.pop_front() else { return true };
        for _ in 0..STEP_SESSIONS {
            let Some(connection) = read.left.pop() else { break };
            // Sessions that have ended meanwhile have no row.
            if let Some(record) = self.sessions.get(&connection).filter(|record| !record.is_disconnected) {
                read.rows.push(self.process_row(record, turn.turn_start));
            }
        }
        if !read.left.is_empty() {
            self.process_reads.push_front(read);
            return false;
        }
        let reply = ReadStatusReply { operation: read.request.operation, rows: read.rows };
        send_rows(read.request.reply_to, reply, turn);
        true
    }
}
