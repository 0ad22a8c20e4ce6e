//! The start of an epoch. Transactions without a number that are in prepare are rolled back, here and at
//! their participants, and so are those that have written or locked at a node that is gone. Their clients get
//! error 1213. Nodes that have left take no part any more. If a node was added to its group as one more
//! replica, the transactions that have begun before do not know that it gets their images: they are rolled
//! back, too.

use junctor_kernel::{Context, Outbox, require};
use junctor_model::id::{Epoch, StatementNumber};
use junctor_model::planted_bug::PlantedBug;
use junctor_signals::commit_transaction::UndoTransaction;
use junctor_signals::report_node::NodeWords;
use junctor_signals::start_epoch::{BeginEpoch, has_node, lost_with_epoch, lost_with_node};
use junctor_signals::{LdmSignal, Signal, TcSignal, crash_point};

use super::block::TcBlock;
use super::state::{Phase, TransactionHandle, TransactionRecord};

/// Maximum number of transactions that one signal rolls back. The others follow in the next turns.
const ENDED_PER_SIGNAL_MAX: usize = 4;

impl TcBlock {
    pub(super) fn on_begin_epoch(
        &mut self,
        signal: BeginEpoch,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let BeginEpoch { epoch, gone, admitted, .. } = signal;
        self.admitted = admitted;
        if epoch > self.epoch {
            let has_new_replica = signal.late.adds_to(&self.late);
            self.late = signal.late.clone();
            outbox.crash_point(crash_point::EPOCH_TC.before());
            self.start_epoch(epoch);
            self.leave_nodes(&gone);
            if has_new_replica {
                self.give_up_undecided();
            }
        }
        // tc sends itself the signal again until nothing of an earlier epoch is left.
        let mut ended = 0;
        for place in 0..self.transactions.high_water() as u32 {
            let Some(handle) = self.transactions.handle_at(place) else { continue };
            let (must_end, is_left) = (self.belongs_to_earlier_epoch(handle), self.record(handle).awaits_lost);
            if !must_end && !is_left {
                continue;
            }
            if ended == ENDED_PER_SIGNAL_MAX {
                return outbox.send(self.own, Signal::Tc(TcSignal::BeginEpoch(signal)));
            }
            ended += 1;
            match must_end {
                true => self.end_of_earlier_epoch(handle, outbox),
                false => self.continue_without_nodes(handle, context, outbox),
            }
        }
        signal.answer(outbox);
        outbox.crash_point(crash_point::EPOCH_TC.after());
    }

    /// Starts an epoch. Orders to participants name it from now on.
    pub(crate) fn start_epoch(&mut self, epoch: Epoch) {
        require!(epoch > self.epoch, "epochs start in their order: {epoch:?} after {:?}", self.epoch);
        self.epoch = epoch;
    }

    fn leave_nodes(&mut self, gone: &NodeWords) {
        self.gone = *gone;
        for place in 0..self.transactions.high_water() as u32 {
            let Some(handle) = self.transactions.handle_at(place) else { continue };
            self.record(handle).leave_nodes(gone);
        }
    }

    /// Lets no transaction commit that is not decided yet.
    fn give_up_undecided(&mut self) {
        for place in 0..self.transactions.high_water() as u32 {
            let Some(handle) = self.transactions.handle_at(place) else { continue };
            let record = self.record(handle);
            let is_decided = matches!(record.phase, Phase::Committing | Phase::WaitingStable | Phase::WaitingDurable);
            record.is_lost |= !is_decided && !record.participants.is_empty();
        }
    }

    /// Whether an epoch that is over has left orders of the transaction unanswered: to prepare, to take a
    /// number, or to undo at backups too.
    fn belongs_to_earlier_epoch(&mut self, handle: TransactionHandle) -> bool {
        let epoch = self.epoch;
        let record = self.record(handle);
        record.epoch < epoch && matches!(record.phase, Phase::Preparing | Phase::TakingNumber | Phase::Releasing)
    }

    /// Rolls the transaction back, or back once more: answers to earlier orders do not count any more.
    fn end_of_earlier_epoch(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let record = self.record(handle);
        if record.phase != Phase::Releasing {
            record.running.error.get_or_insert_with(lost_with_epoch);
        }
        record.outstanding = 0;
        record.phase = Phase::Preparing;
        self.roll_back(handle, outbox);
    }

    /// Goes on with a transaction that has waited for nodes that are gone.
    fn continue_without_nodes(
        &mut self,
        handle: TransactionHandle,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let (own, epoch) = (self.own, self.epoch);
        let record = self.record(handle);
        record.awaits_lost = false;
        match record.phase {
            // The parts at the nodes that are left end soon.
            Phase::Executing if record.outstanding > 0 => self.stop_parts(handle, outbox),
            Phase::Executing => self.advance_statement(handle, context, outbox),
            Phase::Committing if record.outstanding == 0 => self.end_commit(handle, outbox),
            // An undo that began after the start of the epoch has left the nodes out, and ends by itself.
            Phase::UndoingStatement | Phase::UndoingStatements if record.epoch == epoch => {}
            Phase::UndoingStatement => {
                record.running.error = Some(lost_with_node());
                record.outstanding = 0;
                self.roll_back(handle, outbox);
            }
            Phase::UndoingStatements => {
                // No statement runs again, so the participants that are left undo everything.
                record.epoch = epoch;
                record.outstanding = record.participants.len() as u32;
                let (transaction, newer_than) = (record.id, StatementNumber(0));
                for participant in record.participants.drain(..) {
                    let (reply_to, ends, is_backup) = (own, true, false);
                    let undo = UndoTransaction { transaction, epoch, reply_to, newer_than, ends, is_backup };
                    outbox.send(participant.at, Signal::Ldm(LdmSignal::UndoTransaction(undo)));
                }
                if record.outstanding == 0 {
                    self.finish_undone_statements(handle, outbox);
                }
            }
            _ => {}
        }
    }
}

impl TransactionRecord {
    /// Forgets nodes that are gone. The transaction is lost if it has versions or locks there, unless it is
    /// decided.
    fn leave_nodes(&mut self, gone: &NodeWords) {
        let is_ending = !matches!(
            self.phase,
            Phase::Idle
                | Phase::Executing
                | Phase::UndoingStatement
                | Phase::UndoingStatements
                | Phase::WaitingLogSpace
                | Phase::WaitingSeen
        );
        self.backups.retain(|backup| !is_ending || !has_node(gone, backup.at.node));
        let is_gone = |at: &junctor_kernel::Address| has_node(gone, at.node);
        if !self.participants.iter().any(|participant| is_gone(&participant.at)) {
            return;
        }
        self.awaits_lost = true;
        let owed = |participant: &&super::state::Participant| {
            is_gone(&participant.at) && !participant.has_written && !participant.has_released
        };
        match self.phase {
            Phase::Committing => self.outstanding -= self.participants.iter().filter(owed).count() as u32,
            Phase::WaitingStable | Phase::WaitingDurable => {}
            _ => self.is_lost = !PlantedBug::CommitLost.is_planted(),
        }
        self.participants.retain(|participant| !is_gone(&participant.at));
        self.waits.retain(|wait| !is_gone(&wait.at));
        self.running.touched.retain(|at| !is_gone(at));
        if matches!(self.phase, Phase::Executing | Phase::WaitingSeen) {
            let under_way = self.remote_parts.len();
            self.remote_parts.retain(|(_, node)| !has_node(gone, *node));
            self.outstanding -= (under_way - self.remote_parts.len()) as u32;
            self.running.error = Some(lost_with_node());
        }
    }
}
