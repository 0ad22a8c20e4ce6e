//! Waiting for row locks: ldm tells the waiter's tc whom it waits for; tc instances probe for cycles; a victim's wait is
//! cancelled at its ldm.

use junctor_kernel::Address;
use junctor_model::id::{PartitionId, RowId, TransactionId};

/// A part of the transaction waits. Sent again, with a higher sequence, when it waits at another row, and with the same one
/// when somebody it named has given up.
#[derive(Debug)]
pub struct LockWaitStarted {
    /// Who waits.
    pub transaction: TransactionId,
    /// The waiting ldm.
    pub at: Address,
    /// Which wait of that ldm: the victim's check against phantom deadlocks.
    pub sequence: u64,
    /// The partition.
    pub partition: PartitionId,
    /// The row; none when a key waits for ranges that it would come into.
    pub row: Option<RowId>,
    /// Rows that the statement has changed there already, which undoing it would lose.
    pub changed: u32,
    /// Whether the transaction holds or waits for anything else there, so that somebody may wait for it already.
    pub has_others: bool,
    /// Whom it waits for: waiters ahead, which wait for the rest themselves, or holders.
    pub blockers: Vec<Blocker>,
}

/// One that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blocker {
    /// Who.
    pub transaction: TransactionId,
    /// If it is a waiter ahead in the queue, its wait, as a sequence of the same ldm; 0 for a holder. To undo a waiter for
    /// whom others wait only because it is ahead would not help them.
    pub ahead: u64,
}

/// The wait is over: granted, or cancelled.
#[derive(Debug)]
pub struct LockWaitEnded {
    /// Who waited.
    pub transaction: TransactionId,
    /// The ldm.
    pub at: Address,
    /// Which wait.
    pub sequence: u64,
}

/// Looks for a cycle: passed from the initiator's tc to the tc of each blocker, on and on while blockers wait themselves.
#[derive(Clone, Copy, Debug)]
pub struct ProbeDeadlock {
    /// Who began to wait.
    pub initiator: TransactionId,
    /// The initiator's waiting ldm.
    pub initiator_at: Address,
    /// The initiator's wait.
    pub sequence: u64,
    /// The blocker to look at.
    pub target: Blocker,
    /// The ldm at which it is waited for.
    pub target_at: Address,
    /// How many transactions the probe has passed; it ends at `limit::TRANSACTIONS_MAX`.
    pub hops: u16,
    /// The cheapest transaction to undo that the probe has passed and that is not merely ahead in a queue, none at first: the one with
    /// the fewest rows changed when it began to wait, of equal ones that with the largest id. So whoever finds the cycle chooses the
    /// same victim.
    pub victim: TransactionId,
    /// The rows that the victim had changed.
    pub victim_changed: u32,
    /// The ldm at which it waits.
    pub victim_at: Address,
    /// Its wait.
    pub victim_sequence: u64,
    /// How often the initiator has searched for cycles of this wait before.
    pub round: u16,
    /// What the receiver does with it.
    pub step: ProbeStep,
}

/// What a probe asks of the tc that gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStep {
    /// Of the target's tc: whom does the target wait for? Back at the initiator it has found a cycle.
    Search,
    /// Of the victim's tc: the victim gives up, if it still waits.
    Break,
    /// Of the initiator's tc: the victim has given up; look whether the initiator is in another cycle.
    SearchAgain,
}

/// Why a wait ends without its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// Error 1213.
    Deadlock,
    /// Error 1205.
    Timeout,
    /// The client is gone, or the query was killed: error 1317.
    Interrupted,
}

/// Give up one wait; the parked part answers with the error. Ignored when the sequence is no longer waiting.
#[derive(Debug)]
pub struct CancelWait {
    /// Who waits.
    pub transaction: TransactionId,
    /// Which wait of this ldm.
    pub sequence: u64,
    /// Why.
    pub reason: CancelReason,
}
