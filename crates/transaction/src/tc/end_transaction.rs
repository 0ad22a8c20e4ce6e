//! COMMIT and ROLLBACK as the client requests them, and the reply that ends a transaction.

use junctor_kernel::{Outbox, require};
use junctor_model::error::Error;
use junctor_signals::ask_snapshot::LeaveSessions;
use junctor_signals::end_transaction::{CommitDurability, EndTransaction, EndTransactionReply, Ending};
use junctor_signals::read_rows::OperationId;
use junctor_signals::{Signal, SqlSignal, TcSignal};

use super::block::TcBlock;
use super::state::{EndRequest, Phase, TransactionHandle};

/// Maximum number of transactions of lost sessions that one signal ends. The others follow in the next turns.
const SESSIONS_LEFT_MAX: usize = 4;

impl TcBlock {
    pub(super) fn on_end_transaction(&mut self, request: EndTransaction, outbox: &mut Outbox<Signal>) {
        let EndTransaction { operation, reply_to, transaction, ending, durability } = request;
        let end = EndRequest { operation, reply_to, ending };
        let Some(handle) = self.find(transaction) else {
            // The transaction has already ended, as that of a deadlock victim.
            return reply_end(end, None, outbox);
        };
        let record = self.record(handle);
        if record.ending.is_some() {
            return reply_end(end, None, outbox);
        }
        record.ending = Some(end);
        record.durability = durability;
        match record.phase {
            Phase::Idle => self.begin_ending(handle, outbox),
            // The client disconnected during a statement, so interrupt the statement.
            Phase::Executing => self.interrupt(handle, outbox),
            _ => {}
        }
    }

    /// The sessions of a node are gone. Their transactions are rolled back, unless they commit already.
    pub(super) fn on_leave_sessions(&mut self, LeaveSessions { node }: LeaveSessions, outbox: &mut Outbox<Signal>) {
        let mut ended = 0;
        for place in 0..self.transactions.high_water() as u32 {
            let Some(handle) = self.transactions.handle_at(place) else { continue };
            let record = self.record(handle);
            let (transaction, reply_to) = (record.id, record.running.reply_to);
            if reply_to.node != node || record.ending.is_some() {
                continue;
            }
            if ended == SESSIONS_LEFT_MAX {
                let signal = LeaveSessions { node };
                return outbox.send(self.own, Signal::Tc(TcSignal::LeaveSessions(signal)));
            }
            ended += 1;
            let (operation, ending) = (OperationId(u64::MAX), Ending::Rollback);
            let durability = CommitDurability::default();
            let request = EndTransaction { operation, reply_to, transaction, ending, durability };
            self.on_end_transaction(request, outbox);
        }
    }

    /// Begins the requested end, if an end was requested and no statement is in progress.
    pub(super) fn begin_ending(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        match self.record(handle).ending.map(|end| end.ending) {
            Some(Ending::Commit) => self.commit(handle, outbox),
            Some(Ending::Rollback) => self.roll_back(handle, outbox),
            None => {}
        }
    }

    /// Ends the transaction: replies to everyone who waits for it, and recycles its record.
    pub(super) fn finish_transaction(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let record = self.record(handle);
        let is_undone =
            record.running.error.is_some() || record.ending.is_some_and(|end| end.ending == Ending::Rollback);
        let owes_statement = record.owes_statement;
        let number = record.number;
        require!(record.outstanding == 0 && record.waits.is_empty(), "a transaction ends when nobody owes it a reply");
        require!(record.reserved_blocks == 0, "a transaction that ends keeps no blocks of the log: {}", record.id);
        require!(
            is_undone || number <= self.sequence.stable(),
            "a commit is acknowledged when its number is stable: {number}"
        );
        self.counted.commits += u64::from(!is_undone);
        self.counted.aborts += u64::from(is_undone);
        if owes_statement {
            self.reply_statement(handle, false, outbox);
        }
        let Some(mut record) = self.transactions.remove(handle) else { return };
        let error = record.running.error.take();
        if let Some(end) = record.ending {
            reply_end(end, error, outbox);
        }
        record.clear();
        self.spare.push(record);
    }
}

fn reply_end(end: EndRequest, error: Option<Box<Error>>, outbox: &mut Outbox<Signal>) {
    let reply = EndTransactionReply { operation: end.operation, error };
    outbox.send(end.reply_to, Signal::Sql(SqlSignal::EndTransactionReply(reply)));
}
