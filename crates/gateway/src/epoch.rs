//! Nodes that leave the cluster: reads at them fail, and later ones go elsewhere. On a node without data, the
//! statements and transactions at their tcs fail, too.

use junctor_kernel::{Address, NodeId};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{PartitionId, StatementNumber, TransactionId};
use junctor_signals::ask_outcome::{Outcome, ResolveCommit, ResolveCommitReply};
use junctor_signals::change_schema::ChangeSchemaReply;
use junctor_signals::commit_transaction::coordinator;
use junctor_signals::end_transaction::EndTransactionReply;
use junctor_signals::execute_statement::ExecuteStatementReply;
use junctor_signals::read_rows::{BookedCost, OperationId, ReadRowsReply};
use junctor_signals::report_node::NodeWords;
use junctor_signals::reserve_auto_increment::ReserveAutoIncrementReply;
use junctor_signals::start_epoch::{BeginEpoch, LateNodes, SequencerLost, has_node, is_of_membership, lost_with_node};
use junctor_signals::undo_statements::UndoStatementsReply;
use junctor_signals::{MainSignal, Signal, SqlSignal};

use crate::gateway::Gateway;
use crate::operation::{Operation, Work};
use crate::transaction::Transaction;
use crate::turn_context::TurnContext;

/// Maximum number of parts that one signal fails. The others follow in the next turns.
const FAILED_PER_SIGNAL_MAX: usize = 32;

impl Gateway {
    /// Handles the start of an epoch, and the loss of a data node on a node without data, which comes within
    /// an epoch. What nodes owe that are gone fails. The signal comes from main, or from this block if it has
    /// put off the rest.
    pub fn on_begin_epoch(&mut self, signal: BeginEpoch, from: Address, turn: &mut TurnContext<'_>) {
        // What this block has put off may come behind a later order of main. The gateway of main gets all
        // from main.
        if from != self.own || signal.epoch > self.epoch {
            let (gone, late) = (signal.gone, signal.late.clone());
            self.epoch = signal.epoch;
            if (self.gone, &self.late) != (gone, &late) {
                self.losses.push((self.gone, std::mem::replace(&mut self.late, late)));
                self.gone = gone;
            }
        }
        let mut lost = Vec::new();
        let mut failed = 0;
        let mut is_done = true;
        for place in 0..self.operations.high_water() as u32 {
            let Some(handle) = self.operations.handle_at(place) else { continue };
            let (gone, operation) = (self.gone, self.operation_at(handle));
            let Some(Operation { work, .. }) = self.operations.get_mut(handle) else { continue };
            let Work::Read(work) = work else {
                failed += usize::from(self.fail_at_lost_tc(operation, turn));
                if failed >= FAILED_PER_SIGNAL_MAX {
                    is_done = false;
                    break;
                }
                continue;
            };
            let of_lost = work.remote.extract_if(.., |(_, node)| has_node(&gone, *node));
            let table = work.program.table.definition.id;
            lost.extend(of_lost.map(|(index, _)| (operation, PartitionId { table, index })));
            if lost.len() + failed >= FAILED_PER_SIGNAL_MAX {
                is_done = false;
                break;
            }
        }
        match is_done {
            true => signal.answer(turn.outbox),
            false => turn.outbox.send(self.own, Signal::Sql(SqlSignal::BeginEpoch(signal))),
        }
        for (operation, partition) in lost {
            self.fail_part(operation, partition, node_has_left(), turn);
        }
    }

    /// Fails an operation whose tc is gone. Returns whether it is one.
    fn fail_at_lost_tc(&mut self, operation: OperationId, turn: &mut TurnContext<'_>) -> bool {
        let Some(found) = self.operations.get_mut(self.handle_of(operation)) else { return false };
        let (tc, is_unknown) = match &mut found.work {
            Work::Statement { tc, may_commit } => (tc, *may_commit),
            Work::End { tc, commits, .. } => (tc, *commits),
            Work::Undo(tc) => (tc, false),
            _ => return false,
        };
        if !has_node(&self.gone, tc.node) {
            return false;
        }
        // The operation fails once: it belongs to no tc any more.
        tc.node = self.own.node;
        match found.work {
            Work::Statement { .. } if is_unknown => self.fail_statement(operation, unknown_outcome(), turn),
            Work::Statement { .. } => self.fail_statement(operation, lost_with_node(), turn),
            Work::End { transaction, after, .. } if is_unknown => {
                // The other data nodes may know it.
                let (reply_to, incarnation) = (self.own, self.host_life(coordinator(transaction).node));
                let ask = ResolveCommit { operation, reply_to, transaction, incarnation, after };
                turn.outbox.send(self.main, Signal::Main(MainSignal::ResolveCommit(ask)));
            }
            Work::End { .. } => self.end_lost(operation, None, turn),
            _ => turn.outbox.send(self.own, undone(operation)),
        }
        true
    }

    /// Fails a statement, and ends its transaction here.
    pub(crate) fn fail_statement(&self, operation: OperationId, error: Box<Error>, turn: &mut TurnContext<'_>) {
        let reply = ExecuteStatementReply {
            operation,
            transaction: TransactionId::default(),
            statement: StatementNumber(0),
            matched: 0,
            changed: 0,
            diagnostics: None,
            outputs: Vec::new(),
            written: Vec::new(),
            error: Some(error),
        };
        turn.outbox.send(self.own, Signal::Sql(SqlSignal::ExecuteStatementReply(reply)));
    }

    /// The outcome of a commit whose tc is gone.
    pub fn on_resolve_commit_reply(&self, reply: ResolveCommitReply, turn: &mut TurnContext<'_>) {
        let error = match reply.outcome {
            Outcome::Committed => None,
            Outcome::RolledBack => Some(lost_with_node()),
            Outcome::Unknown => Some(unknown_outcome()),
        };
        self.end_lost(reply.operation, error, turn);
    }

    /// Answers the end of a transaction whose tc is gone.
    pub(crate) fn end_lost(&self, operation: OperationId, error: Option<Box<Error>>, turn: &mut TurnContext<'_>) {
        let reply = EndTransactionReply { operation, error };
        turn.outbox.send(self.own, Signal::Sql(SqlSignal::EndTransactionReply(reply)));
    }

    /// Answers COMMIT, ROLLBACK and statements that commit, because this node or its host may wait for a
    /// majority of the voters without end. Their transactions end later; answers to them do not count any
    /// more.
    pub fn fail_commits(&self, turn: &mut TurnContext<'_>) {
        let mut failed = 0;
        for place in 0..self.operations.high_water() as u32 {
            let Some(handle) = self.operations.handle_at(place) else { continue };
            let operation = self.operation_at(handle);
            match self.operations.get(handle).map(|found| &found.work) {
                Some(Work::Statement { may_commit: true, .. }) => {
                    self.fail_statement(operation, cut_off_outcome(), turn)
                }
                Some(Work::End { commits: true, .. }) => self.end_lost(operation, Some(cut_off_outcome()), turn),
                Some(Work::End { .. }) => self.end_lost(operation, None, turn),
                _ => continue,
            }
            failed += 1;
            if failed == FAILED_PER_SIGNAL_MAX {
                return;
            }
        }
    }

    /// Whether the node with the tc of the transaction has left since its first write. No node knows the
    /// transaction any more.
    pub(crate) fn has_lost_tc(&self, transaction: &Transaction) -> bool {
        if !self.has_lost_nodes(transaction) {
            return false;
        }
        let later = self.losses.get(transaction.losses as usize + 1..).unwrap_or_default();
        let node = coordinator(transaction.id).node;
        later.iter().map(|(gone, _)| gone).chain([&self.gone]).any(|gone| has_node(gone, node))
    }

    /// Fails the requests that the node with the sequencer answers, because it is lost.
    pub fn on_sequencer_lost(&mut self, signal: SequencerLost, turn: &mut TurnContext<'_>) {
        let mut failed = 0;
        for place in 0..self.operations.high_water() as u32 {
            let Some(handle) = self.operations.handle_at(place) else { continue };
            let operation = self.operation_at(handle);
            let error = Some(node_has_left());
            let reply = match self.operations.get(handle).map(|operation| &operation.work) {
                Some(Work::Schema) => {
                    let (notes, rows, diagnostics) = (Vec::new(), 0, None);
                    SqlSignal::ChangeSchemaReply(ChangeSchemaReply { operation, notes, rows, diagnostics, error })
                }
                Some(Work::AutoIncrement) => {
                    let (first, count) = (0, 0);
                    SqlSignal::ReserveAutoIncrementReply(ReserveAutoIncrementReply { operation, first, count, error })
                }
                _ => continue,
            };
            if failed == FAILED_PER_SIGNAL_MAX {
                turn.outbox.send(self.own, Signal::Sql(SqlSignal::SequencerLost(signal)));
                return;
            }
            failed += 1;
            turn.outbox.send(self.own, Signal::Sql(reply));
        }
    }

    /// Whether the node has left the cluster.
    pub(crate) fn is_gone(&self, node: NodeId) -> bool {
        has_node(&self.gone, node)
    }

    /// The primary of a partition.
    pub(crate) fn primary(&self, partition: PartitionId) -> Option<Address> {
        self.primary_in(partition, (&self.gone, &self.late))
    }

    fn primary_in(&self, partition: PartitionId, (gone, late): (&NodeWords, &LateNodes)) -> Option<Address> {
        late.primary(self.catalog.distribution.chain(partition)?, gone)
    }

    /// Whether nodes have left since the first write of the transaction.
    #[inline]
    pub(crate) fn has_lost_nodes(&self, transaction: &Transaction) -> bool {
        transaction.id.is_some() && transaction.losses as usize != self.losses.len()
    }

    /// Rolls the transaction back if a node has left at which it has written: a read would miss its writes.
    ///
    /// # Errors
    /// The transaction is rolled back.
    #[cold]
    pub(crate) fn check_writes(&mut self, transaction: &mut Transaction, turn: &mut TurnContext<'_>) -> Result<()> {
        if self.has_lost_tc(transaction) {
            transaction.ended = true;
            return Err(lost_with_node());
        }
        let (gone, late) = &self.losses[transaction.losses as usize];
        let has_moved = |partition: &PartitionId| self.primary_in(*partition, (gone, late)) != self.primary(*partition);
        if !transaction.written.iter().any(has_moved) {
            transaction.losses = self.losses.len() as u32;
            return Ok(());
        }
        transaction.ended = true;
        self.order_rollback(transaction, turn);
        Err(lost_with_node())
    }

    /// Ends the transaction of a read that has failed because its writes are lost with a node.
    #[cold]
    pub fn lose_transaction(&mut self, transaction: &mut Transaction, turn: &mut TurnContext<'_>) {
        if transaction.id.is_some() {
            transaction.ended = true;
            self.order_rollback(transaction, turn);
        }
    }

    /// The replica that serves reads of this node: its own one if there is one, or that of its host.
    #[inline]
    pub(crate) fn reader(&self, partition: PartitionId) -> Option<Address> {
        let chain = self.catalog.distribution.chain(partition)?;
        match chain.first() {
            Some(first) if first.node == self.own.node => Some(*first),
            _ => {
                let near = self.late.replica_on(chain, self.data_node());
                near.filter(|at| !self.is_gone(at.node)).or_else(|| self.primary(partition))
            }
        }
    }

    /// Notes that a part of a read is under way at another node.
    #[cold]
    pub(crate) fn note_remote(&mut self, operation: OperationId, index: u16, node: NodeId) {
        let found = self.operations.get_mut(self.handle_of(operation));
        if let Some(Operation { work: Work::Read(work), .. }) = found {
            work.remote.push((index, node));
        }
    }

    /// Fails a part of a read, as a reply with this error would.
    pub(crate) fn fail_part(
        &mut self,
        operation: OperationId,
        partition: PartitionId,
        error: Box<Error>,
        turn: &mut TurnContext<'_>,
    ) {
        let reply = ReadRowsReply {
            operation,
            partition,
            rows: 0,
            service_ns: 0,
            booked_cost: BookedCost::default(),
            input: Vec::new(),
            output: Vec::new(),
            resume: None,
            diagnostics: None,
            error: Some(error),
        };
        turn.outbox.send(self.own, Signal::Sql(SqlSignal::ReadRowsReply(reply)));
    }
}

/// The reply to the undoing of statements.
pub(crate) fn undone(operation: OperationId) -> Signal {
    Signal::Sql(SqlSignal::UndoStatementsReply(UndoStatementsReply { operation }))
}

/// The error of a commit whose tc is gone: the other nodes commit it or roll it back.
fn unknown_outcome() -> Box<Error> {
    let message = "A node of the cluster has left during the commit: the transaction has either been committed or \
                   rolled back";
    Error::new(ErrorCode::CommitOutcomeUnknown, message)
}

/// The error of a commit that waits for a majority of the voters.
fn cut_off_outcome() -> Box<Error> {
    let message = "This node does not hear a majority of the voters: the transaction will be committed or rolled back";
    Error::new(ErrorCode::CommitOutcomeUnknown, message)
}

/// The error of a read at a node that has left.
pub(crate) fn node_has_left() -> Box<Error> {
    Error::new(ErrorCode::TemporaryFailure, NODE_HAS_LEFT)
}

const NODE_HAS_LEFT: &str = "A node of the cluster has left before it answered; try again";

/// Whether a statement has failed with this error only because of a change of the membership, and has
/// certainly changed nothing.
#[cold]
pub fn has_lost_node(error: &Error) -> bool {
    is_of_membership(error) || (error.code == ErrorCode::TemporaryFailure && *error.message == *NODE_HAS_LEFT)
}
