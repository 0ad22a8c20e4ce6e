//! The transactions that have touched partitions of an ldm.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use junctor_kernel::{Handle, Pool, require};
use junctor_model::id::{StatementNumber, TransactionId};
use junctor_model::limit::TRANSACTIONS_MAX;

use super::state::Participant;

/// Maximum number of rows for which a recycled record keeps its memory.
const ROWS_KEPT: usize = 1024;

pub(super) type ParticipantHandle = Handle<Box<Participant>>;

/// All participants of a block.
#[derive(Debug)]
pub(super) struct ParticipantTable {
    pool: Pool<Box<Participant>>,
    by_transaction: HashMap<TransactionId, ParticipantHandle, FixedState>,
    /// Records of ended transactions, kept for their memory.
    #[allow(clippy::vec_box)] // They return to the pool as they are.
    spare: Vec<Box<Participant>>,
}

impl ParticipantTable {
    pub fn new(seed: u64) -> ParticipantTable {
        ParticipantTable {
            pool: Pool::new(TRANSACTIONS_MAX as u32),
            by_transaction: HashMap::with_hasher(FixedState::with_seed(seed)),
            spare: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.pool.len()
    }

    /// All participants, in no order.
    pub fn handles(&self) -> Vec<ParticipantHandle> {
        self.by_transaction.values().copied().collect()
    }

    #[inline]
    pub fn find(&self, transaction: TransactionId) -> Option<ParticipantHandle> {
        self.by_transaction.get(&transaction).copied()
    }

    /// Whether the transaction takes part, and nothing of it is being undone.
    #[inline]
    pub fn is_open(&self, transaction: TransactionId) -> bool {
        let participant = self.find(transaction).and_then(|handle| self.pool.get(handle));
        participant.is_some_and(|participant| participant.resolution.is_none())
    }

    /// The record of a transaction whose replica chains still owe answers. The record stays until all of them
    /// have answered.
    pub fn awaiting(&self, transaction: TransactionId) -> ParticipantHandle {
        match self.find(transaction) {
            Some(handle) => handle,
            None => junctor_kernel::invariant::fail(
                "a participant is open until its chains have answered",
                format_args!("{transaction}"),
            ),
        }
    }

    #[inline]
    pub fn get(&self, handle: ParticipantHandle) -> Option<&Participant> {
        self.pool.get(handle).map(Box::as_ref)
    }

    #[inline]
    pub fn get_mut(&mut self, handle: ParticipantHandle) -> Option<&mut Participant> {
        self.pool.get_mut(handle).map(Box::as_mut)
    }

    /// The record of a transaction that is still open here.
    #[inline]
    pub fn record(&mut self, handle: ParticipantHandle) -> &mut Participant {
        match self.get_mut(handle) {
            Some(participant) => participant,
            None => junctor_kernel::invariant::fail("a handle in use has its record", format_args!("{handle:?}")),
        }
    }

    /// Finds the record of a transaction, or creates one if the transaction has touched nothing here. `None`
    /// if the pool is full.
    pub fn find_or_insert(&mut self, transaction: TransactionId) -> Option<ParticipantHandle> {
        if let Some(handle) = self.find(transaction) {
            return Some(handle);
        }
        // Checked before a spare record is taken, so that a full pool loses none.
        if self.pool.len() == self.pool.capacity() {
            return None;
        }
        let mut participant = self.spare.pop().unwrap_or_default();
        participant.transaction = transaction;
        let handle = self.pool.insert(participant).ok()?;
        self.by_transaction.insert(transaction, handle);
        Some(handle)
    }

    /// Removes the record of a transaction. The caller lets the transaction leave its partitions and then
    /// calls [`ParticipantTable::recycle`].
    pub fn remove(&mut self, handle: ParticipantHandle) -> Option<Box<Participant>> {
        let participant = self.pool.remove(handle)?;
        let found = self.by_transaction.remove(&participant.transaction);
        require!(found == Some(handle), "a transaction has one record here: {}", participant.transaction);
        Some(participant)
    }

    /// Keeps the memory of a removed record for the next transaction.
    pub fn recycle(&mut self, mut participant: Box<Participant>) {
        require!(participant.touched.is_empty(), "a transaction that ended here touches no partition");
        participant.rows.clear();
        participant.rows.shrink_to(ROWS_KEPT);
        participant.written_bytes = 0;
        participant.bytes_before.clear();
        participant.bytes_before.shrink_to(ROWS_KEPT);
        participant.collected = None;
        participant.written.clear();
        participant.prepared.clear();
        participant.shipped = 0;
        participant.outstanding = 0;
        participant.interrupted = StatementNumber(0);
        participant.prepare_error = None;
        participant.prepare_reply_to = None;
        self.spare.push(participant);
    }
}
