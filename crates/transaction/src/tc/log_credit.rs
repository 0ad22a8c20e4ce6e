//! Blocks of the log that a tc has reserved in advance. tc takes the blocks of each commit from this credit,
//! *spends* them once the commit is stable, and gives back those of a transaction that is undone. The log
//! keeps spent blocks reserved until the commit is durable.

use junctor_signals::append_records::{SpaceExchange, SpaceGrant};

/// The credit of one holder (hot path: 5 instructions a commit). Quantities are in blocks.
#[derive(Debug, Default)]
pub struct LogCredit {
    free: u64,
    spent: u64,
    /// Blocks asked for and not granted yet.
    wanted: u64,
    line: u64,
    transaction_max: u64,
}

impl LogCredit {
    /// Takes blocks for a commit. False if the credit has not enough.
    #[inline]
    pub fn take(&mut self, blocks: u64) -> bool {
        let is_enough = blocks <= self.free;
        if is_enough {
            self.free -= blocks;
        }
        is_enough
    }

    /// Gives back blocks that were taken and are not needed.
    #[inline]
    pub fn give_back(&mut self, blocks: u64) {
        self.free += blocks;
    }

    /// A commit that took these blocks is stable.
    #[inline]
    pub fn spend(&mut self, blocks: u64) {
        self.spent += blocks;
    }

    /// Takes what the log has granted.
    pub fn grant(&mut self, grant: SpaceGrant) {
        self.free += grant.granted;
        self.wanted = 0;
        (self.line, self.transaction_max) = (grant.line, grant.transaction_max);
    }

    /// Maximum number of blocks of one transaction; 0 before the first grant.
    pub fn transaction_max(&self) -> u64 {
        self.transaction_max
    }

    /// Whether nothing is to be told to the log while no commit waits.
    #[inline]
    pub fn is_balanced(&self) -> bool {
        let is_normal = 2 * self.free >= self.line && self.free <= 2 * self.line && 2 * self.spent <= self.line;
        is_normal && self.wanted <= self.line
    }

    /// The message that is due to the log, if any. `needed` is the number of blocks of the first commit that
    /// waits, or 0.
    pub fn balance(&mut self, needed: u64) -> Option<SpaceExchange> {
        let missing = match needed > self.free {
            true => needed - self.free + self.line / 2,
            false if 2 * self.free < self.line => self.line - self.free,
            false => 0,
        };
        // A request stays unless it is too small, or so large that it would keep others waiting for nothing.
        let is_enough = self.free + self.wanted >= needed && (self.wanted > 0 || missing == 0);
        let is_too_large = self.wanted > missing + self.line;
        let wanted = (!is_enough || is_too_large).then_some(missing);
        let returned = if needed == 0 && self.free > 2 * self.line { self.free - self.line } else { 0 };
        let is_due =
            wanted.is_some() || returned > 0 || 2 * self.spent > self.line || needed > self.free && self.spent > 0;
        if !is_due {
            return None;
        }
        self.wanted = wanted.unwrap_or(self.wanted);
        self.free -= returned;
        Some(SpaceExchange { wanted, spent: std::mem::take(&mut self.spent), returned })
    }
}
