//! Transactions that are committed here although some of their versions have no commit number yet.
//!
//! A long transaction commits in constant time: it enters its number here, and its versions are stamped
//! later. A version is therefore committed if it is stamped, or if its transaction is in this table.
//! Readers consult the table only for unstamped versions, on their cold path.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use junctor_model::id::{CommitNumber, TransactionId};

use crate::invariant::require;

/// The commit numbers of transactions with unstamped versions.
#[derive(Debug)]
pub(super) struct SettledTransactions {
    numbers: HashMap<TransactionId, CommitNumber, FixedState>,
}

impl SettledTransactions {
    pub fn new() -> SettledTransactions {
        SettledTransactions { numbers: HashMap::with_hasher(FixedState::default()) }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    #[inline]
    pub fn number(&self, transaction: TransactionId) -> Option<CommitNumber> {
        // Tables without long transactions skip the hash.
        if self.is_empty() { None } else { self.numbers.get(&transaction).copied() }
    }

    pub fn insert(&mut self, transaction: TransactionId, number: CommitNumber) {
        let before = self.numbers.insert(transaction, number);
        require!(before.is_none(), "a transaction settles once in a partition: {transaction}");
    }

    pub fn remove(&mut self, transaction: TransactionId) {
        let number = self.numbers.remove(&transaction);
        require!(number.is_some(), "a transaction leaves the table with its last stamp: {transaction}");
    }
}
