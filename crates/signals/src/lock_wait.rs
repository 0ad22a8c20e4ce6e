//! Waits for row locks. ldm reports a wait and its blockers to the tc of the waiting transaction. tc
//! instances probe for cycles. A victim's wait is cancelled at its ldm.

use junctor_kernel::Address;
use junctor_model::id::{PartitionId, RowId, TransactionId};

use crate::read_rows::OperationId;

/// A part of the transaction waits for a lock. Sent again with a higher sequence when it waits at another
/// row, and with the same sequence when its blockers change.
#[derive(Debug)]
pub struct LockWaitStarted {
    /// The waiting transaction.
    pub transaction: TransactionId,
    /// The ldm at which it waits.
    pub at: Address,
    /// Number of the wait at that ldm. A cancellation names it, so that it never cancels a later wait.
    pub sequence: u64,
    /// Partition of the awaited row or range.
    pub partition: PartitionId,
    /// The row; none when a new key waits for ranges.
    pub row: Option<RowId>,
    /// Number of rows that the statement has changed there: the work that an undo would lose.
    pub changed: u32,
    /// Whether the transaction holds or awaits other locks there, so that others may wait for it already.
    pub has_other_requests: bool,
    /// The transactions for which it waits: holders, and waiters ahead in the queue. If one of these waiters
    /// requests exclusive mode, the holders are left out, because that waiter waits for them. Sorted.
    pub blockers: Vec<Blocker>,
    /// Whether these blockers are gone, while the others that were reported stay.
    pub are_gone: bool,
}

layout! {
    LockWaitStarted { transaction, at, sequence, partition, row, changed, has_other_requests, blockers, are_gone }
}

/// A transaction that blocks a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blocker {
    /// The blocking transaction.
    pub transaction: TransactionId,
    /// The sequence of the blocker's own wait at the same ldm, if the blocker is a waiter ahead in the queue;
    /// 0 for a holder. Cancelling a wait that is only ahead in the queue would not break a deadlock, because
    /// the requests behind it would then wait for the holders directly.
    pub ahead: u64,
}

layout! { Blocker { transaction, ahead } }

/// A wait is over: granted or cancelled.
#[derive(Debug)]
pub struct LockWaitEnded {
    /// The transaction that waited.
    pub transaction: TransactionId,
    /// The ldm at which it waited.
    pub at: Address,
    /// Number of the wait at that ldm.
    pub sequence: u64,
}

layout! { LockWaitEnded { transaction, at, sequence } }

/// A statement begins or no longer waits for row locks. From tc to the sql block of its session, whose thread
/// group lends the slot of the session to another one meanwhile.
#[derive(Debug)]
pub struct NoteLockWait {
    /// The operation of the statement.
    pub operation: OperationId,
    /// True when the first wait begins, false when the last one has ended.
    pub waits: bool,
}

layout! { NoteLockWait { operation, waits } }

/// Searches for a cycle. Passed from the initiator's tc to the tc of each blocker, and on as long as blockers
/// wait themselves.
#[derive(Clone, Copy, Debug)]
pub struct ProbeDeadlock {
    /// The transaction whose wait began the search.
    pub initiator: TransactionId,
    /// The ldm at which the initiator waits.
    pub initiator_at: Address,
    /// Number of the initiator's wait.
    pub sequence: u64,
    /// The blocker to examine.
    pub target: Blocker,
    /// The ldm at which the blocker blocks.
    pub target_at: Address,
    /// Transactions passed so far. A probe ends at `limit::TRANSACTIONS_MAX`.
    pub hops: u16,
    /// The cheapest victim so far: the transaction that had changed the fewest rows when it began to wait,
    /// and among equals the one with the largest id. Waiters that are only ahead in a queue are excluded. The
    /// choice does not depend on where the probe begins, so every probe around a cycle chooses the same
    /// victim. None at first.
    pub victim: TransactionId,
    /// Rows that the victim had changed.
    pub victim_changed: u32,
    /// The ldm at which the victim waits.
    pub victim_at: Address,
    /// Number of the victim's wait.
    pub victim_sequence: u64,
    /// Number of earlier searches that the initiator has started from this wait.
    pub round: u16,
    /// The action that the receiver must take.
    pub step: ProbeStep,
}

layout! {
    ProbeDeadlock {
        initiator, initiator_at, sequence, target, target_at, hops, victim, victim_changed, victim_at,
        victim_sequence, round, step,
    }
}

/// Purpose of a probe at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStep {
    /// At the target's tc: find whom the target waits for. Back at the initiator, the probe has found a
    /// cycle.
    Search,
    /// At the victim's tc: cancel the victim's wait, if it still waits.
    Break,
    /// At the initiator's tc: the victim is cancelled; search for another cycle through the initiator.
    SearchAgain,
}

choices! { ProbeStep { 0 Search; 1 Break; 2 SearchAgain; } }

/// Why a wait ends without its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// Error 1213.
    Deadlock,
    /// Error 1205.
    Timeout,
    /// Error 1317: the client disconnected, or the query was killed.
    Interrupted,
}

choices! { CancelReason { 0 Deadlock; 1 Timeout; 2 Interrupted; } }

/// Cancels one wait; the parked part answers with the error. Ignored when the wait is over.
#[derive(Debug)]
pub struct CancelWait {
    /// The waiting transaction.
    pub transaction: TransactionId,
    /// Number of the wait at this ldm.
    pub sequence: u64,
    /// Selects the error.
    pub reason: CancelReason,
}

layout! { CancelWait { transaction, sequence, reason } }
