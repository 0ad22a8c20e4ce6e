//! Undoes one failed statement or a whole transaction. Participants undo in bounded steps, and then answer.

use junctor_kernel::{Context, Outbox, require};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::StatementNumber;
use junctor_signals::commit_transaction::{UndoTransaction, UndoTransactionReply};
use junctor_signals::{LdmSignal, Signal};

use super::block::TcBlock;
use super::state::{Phase, PlannedRound, TransactionHandle};

/// Whether an error rolls back the whole transaction, as in InnoDB, so that the client has to retry it. A
/// full lock table (1206) is included, because the transaction's own locks may fill it.
pub(super) fn ends_transaction(error: &Error) -> bool {
    matches!(error.code, ErrorCode::Deadlock | ErrorCode::RecordChanged | ErrorCode::LockTableFull)
}

impl TcBlock {
    /// Undoes a failed statement. No part of it may be in flight.
    pub(super) fn fail_statement(
        &mut self,
        handle: TransactionHandle,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let (own, epoch) = (self.own, self.epoch);
        let record = self.record(handle);
        require!(record.outstanding == 0, "a failed statement is undone when no part of it is under way");
        require!(record.running.first.0 > 0, "statements are numbered from 1");
        record.running.outputs.drain(..).for_each(|output| context.buffers.give(output));
        for planned in record.running.rounds.drain(..) {
            if let PlannedRound::Parts(round) = planned {
                round.parts.into_iter().for_each(|part| context.buffers.give(part.input));
            }
        }
        record.running.planned.clear();
        record.running.cascades.clear();
        let timeout_ends = record.running.timeout_ends;
        let ends_all =
            record.running.error.as_ref().is_some_and(|error| {
                ends_transaction(error) || timeout_ends && error.code == ErrorCode::LockWaitTimeout
            });
        if ends_all || record.running.autocommit {
            return self.roll_back(handle, outbox);
        }
        record.phase = Phase::UndoingStatement;
        record.epoch = epoch;
        record.outstanding = record.running.touched.len() as u32;
        let newer_than = StatementNumber(record.running.first.0 - 1);
        // Undoing the first statement ends the transaction at its participants.
        let ends = newer_than.0 == 0;
        for at in &record.running.touched {
            let undo =
                UndoTransaction { transaction: record.id, epoch, reply_to: own, newer_than, ends, is_backup: false };
            outbox.send(*at, Signal::Ldm(LdmSignal::UndoTransaction(undo)));
        }
        if record.outstanding == 0 {
            self.finish_undone_statement(handle, outbox);
        }
    }

    /// Undoes everything, releases all locks, and then replies to the request that ends the transaction.
    pub(super) fn roll_back(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let (own, epoch) = (self.own, self.epoch);
        let record = self.record(handle);
        require!(record.number.0 == 0, "a transaction with a commit number is not undone: {}", record.number);
        require!(record.outstanding == 0 && record.waits.is_empty(), "an undo begins when no statement runs");
        if record.reserved_blocks > 0 {
            self.give_back_log_space(handle, outbox);
        }
        let record = self.record(handle);
        // A backup has images only once the prepare was sent.
        let backups = if record.phase == Phase::Preparing { &record.backups[..] } else { &[] };
        record.phase = Phase::Releasing;
        record.epoch = epoch;
        record.outstanding = (record.participants.len() + backups.len()) as u32;
        let (transaction, newer_than) = (record.id, StatementNumber(0));
        let order = |is_backup| {
            let undo = UndoTransaction { transaction, epoch, reply_to: own, newer_than, ends: true, is_backup };
            Signal::Ldm(LdmSignal::UndoTransaction(undo))
        };
        for participant in &record.participants {
            outbox.send(participant.at, order(false));
        }
        for backup in backups {
            outbox.send(backup.at, order(true));
        }
        if record.outstanding == 0 {
            self.finish_transaction(handle, outbox);
        }
    }

    pub(super) fn on_undo_transaction_reply(&mut self, reply: UndoTransactionReply, outbox: &mut Outbox<Signal>) {
        let Some(handle) = self.awaiting_order(reply.transaction, reply.epoch) else { return };
        let record = self.record(handle);
        if let Some(participant) = record.participants.iter_mut().find(|participant| participant.at == reply.from) {
            participant.log_blocks = reply.log_blocks;
        }
        if !record.take_reply() {
            return;
        }
        match record.phase {
            Phase::UndoingStatement => self.finish_undone_statement(handle, outbox),
            Phase::UndoingStatements => self.finish_undone_statements(handle, outbox),
            Phase::Releasing => self.finish_transaction(handle, outbox),
            phase => junctor_kernel::invariant::fail("an undo is answered while it runs", format_args!("{phase:?}")),
        }
    }

    fn finish_undone_statement(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let record = self.record(handle);
        record.phase = Phase::Idle;
        // The transaction's participants have forgotten it.
        if record.running.first.0 == 1 {
            record.participants.clear();
            record.backups.clear();
        }
        self.reply_statement(handle, true, outbox);
        self.begin_ending(handle, outbox);
    }
}
