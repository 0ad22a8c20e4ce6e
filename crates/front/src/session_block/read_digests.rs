//! Reads of the statement digests of this block, and TRUNCATE of them. They run in steps, one after another.

use std::collections::VecDeque;

use junctor_gateway::TurnContext;
use junctor_signals::inbox::{ContinueWork, Signal, SqlSignal};
use junctor_signals::read_status::{ReadStatus, ReadStatusReply, StatusTable};
use junctor_sql::DigestTask;

use super::block::SqlBlock;

/// The number of the deferred work that runs the next step.
pub(super) const DIGEST_WORK: u32 = 0x6469_6765;
/// Maximum number of requests that wait. If there are more, the first one is completed at once.
const WAITING_MAX: usize = 64;

/// The requests that are not answered yet.
pub(super) type DigestReads = VecDeque<(ReadStatus, DigestTask)>;

impl SqlBlock {
    pub(super) fn on_read_digests(&mut self, request: ReadStatus, turn: &mut TurnContext<'_>) {
        let task = self.engine.begin_digest_task(request.table == StatusTable::TakenStatementDigests);
        self.digest_reads.push_back((request, task));
        match self.digest_reads.len() {
            1 => self.continue_digest_read(turn),
            count if count > WAITING_MAX => while !self.run_digest_step(turn) {},
            _ => {}
        }
    }

    /// Runs the next step of the first request. Lets other work run before the step after it.
    pub(super) fn continue_digest_read(&mut self, turn: &mut TurnContext<'_>) {
        self.run_digest_step(turn);
        if !self.digest_reads.is_empty() {
            let signal = ContinueWork { work: DIGEST_WORK };
            turn.outbox.send_long_running(self.own, Signal::Sql(SqlSignal::ContinueWork(signal)));
        }
    }

    /// Runs the next step of the first request. Returns whether it is answered.
    fn run_digest_step(&mut self, turn: &mut TurnContext<'_>) -> bool {
        let Some((request, task)) = self.digest_reads.front_mut() else { return true };
        let Some(rows) = self.engine.run_digest_step(task, turn) else { return false };
        let reply = ReadStatusReply { operation: request.operation, rows };
        turn.outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
        self.digest_reads.pop_front();
        true
    }
}
