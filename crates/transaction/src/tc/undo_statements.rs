//! ROLLBACK TO SAVEPOINT: every participant undoes the versions of later statements and keeps the locks.

use junctor_kernel::{Outbox, require};
use junctor_signals::commit_transaction::UndoTransaction;
use junctor_signals::undo_statements::{UndoStatements, UndoStatementsReply};
use junctor_signals::{LdmSignal, Signal, SqlSignal};

use super::block::TcBlock;
use super::state::{Phase, TransactionHandle};

impl TcBlock {
    pub(super) fn on_undo_statements(&mut self, request: UndoStatements, outbox: &mut Outbox<Signal>) {
        let UndoStatements { operation, reply_to, transaction, newer_than } = request;
        let (own, epoch) = (self.own, self.epoch);
        let idle = self.find(transaction).filter(|handle| self.record(*handle).phase == Phase::Idle);
        let Some(handle) = idle else {
            // A transaction that has ended has nothing to undo. Sessions send this request only between
            // statements.
            return reply(operation, reply_to, outbox);
        };
        let record = self.record(handle);
        require!(newer_than <= record.statement, "a savepoint keeps statements that ran");
        record.undoing = Some((operation, reply_to));
        record.phase = Phase::UndoingStatements;
        record.epoch = epoch;
        record.outstanding = record.participants.len() as u32;
        for participant in &record.participants {
            let undo = UndoTransaction { transaction, epoch, reply_to: own, newer_than, ends: false, is_backup: false };
            outbox.send(participant.at, Signal::Ldm(LdmSignal::UndoTransaction(undo)));
        }
        if record.outstanding == 0 {
            self.finish_undone_statements(handle, outbox);
        }
    }

    /// Replies to the request. Statement numbers are not reused, so versions of undone statements cannot be
    /// mistaken for later ones.
    pub(super) fn finish_undone_statements(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let record = self.record(handle);
        record.phase = Phase::Idle;
        if let Some((operation, reply_to)) = record.undoing.take() {
            reply(operation, reply_to, outbox);
        }
        self.begin_ending(handle, outbox);
    }
}

fn reply(operation: junctor_signals::read_rows::OperationId, to: junctor_kernel::Address, outbox: &mut Outbox<Signal>) {
    outbox.send(to, Signal::Sql(SqlSignal::UndoStatementsReply(UndoStatementsReply { operation })));
}
