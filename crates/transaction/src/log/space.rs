//! The account of the log's space: which blocks are in use, and which are reserved for commits. It grants
//! blocks to *holders*, the tc blocks, first come, first served (`docs/decisions/0014-log-space.md`).

use std::collections::VecDeque;

use junctor_kernel::require;
use junctor_signals::Module;
use junctor_signals::append_records::{SpaceExchange, SpaceGrant};
use junctor_storage::log::BLOCK_BYTES;

use super::block::LogConfiguration;

/// Maximum number of blocks that the log keeps for groups without records and for block main: 16 MiB.
const RESERVE_BLOCKS_MAX: u64 = (16 << 20) / BLOCK_BYTES as u64;
/// Share of the limit that the log keeps, if that is less.
const RESERVE_SHARE: u64 = 8;
/// Maximum number of blocks that a holder has in advance: 16 MiB.
const LINE_BLOCKS_MAX: u64 = (16 << 20) / BLOCK_BYTES as u64;
/// Share of the limit that all holders together have in advance.
const LINES_SHARE: u64 = 16;

/// The account of the log. Quantities are in blocks.
#[derive(Debug)]
pub struct SpaceAccount {
    limit: u64,
    /// Not granted: for groups without records, for the end of a segment, and for block main.
    reserve: u64,
    segment: u64,
    holders: u64,
    /// From the start of the oldest segment that is needed to the end of the log.
    used: u64,
    /// Granted, and neither returned nor released.
    reserved: u64,
    /// Part of `reserved`, which the next cycle makes durable.
    spent: u64,
    /// Part of `reserved`, which the cycle under way makes durable.
    spent_in_cycle: u64,
    /// Blocks that groups with records may have taken since the start, and those that they have taken.
    allowed: u64,
    written: u64,
    /// The log is never longer. Above `limit` only if the limit was lowered below the length of the log.
    used_max: u64,
    /// Whether nodes of a cluster write here.
    is_shared: bool,
    requests: VecDeque<(u16, u64)>,
}

impl SpaceAccount {
    /// The account of an empty log with this configuration. Every tc is a holder.
    pub fn of(configuration: &LogConfiguration) -> SpaceAccount {
        let segment = configuration.segment_size.bytes() / BLOCK_BYTES as u64;
        let holders = configuration.writers.iter().filter(|writer| writer.module == Module::Tc).count() as u64;
        let account = SpaceAccount::new(configuration.segments_max.saturating_mul(segment), segment, holders);
        account.shared(configuration.is_shared)
    }

    /// The same account of a node in a cluster. Transactions of other nodes write records here without blocks
    /// of this account, so that the log may exceed its limit; commits of this node wait then.
    #[must_use]
    pub fn shared(self, is_shared: bool) -> SpaceAccount {
        SpaceAccount { is_shared, ..self }
    }

    /// The account of an empty log of this limit and size of segments, with this number of holders.
    pub fn new(limit: u64, segment: u64, holders: u64) -> SpaceAccount {
        SpaceAccount {
            limit,
            reserve: (limit / RESERVE_SHARE).min(RESERVE_BLOCKS_MAX + limit / segment),
            segment,
            holders,
            used: 0,
            reserved: 0,
            spent: 0,
            spent_in_cycle: 0,
            allowed: 0,
            written: 0,
            used_max: limit,
            is_shared: false,
            requests: VecDeque::new(),
        }
    }

    /// Begins a life in which the log has this length.
    pub fn begin_life(&mut self, used: u64) {
        self.used = used;
        self.used_max = self.limit.max(used + self.reserve);
    }

    /// The log has this length after a checkpoint.
    pub fn trim(&mut self, used: u64) {
        require!(used <= self.used, "a trimmed log is shorter: {used} blocks, {}", self.used);
        self.used = used;
    }

    /// Length of the log.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Limit of the length.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Blocks granted to holders for records that are not durable yet.
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Whether a holder waits for blocks.
    pub fn is_waited_for(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Whether block main should write no more: it has used its part of the reserve.
    pub fn is_exhausted(&self) -> bool {
        self.used + self.reserved > self.limit - self.reserve / 2
    }

    /// Whether a group that is not necessary may be written.
    pub fn has_surplus(&self) -> bool {
        self.used + self.reserved < self.grantable()
    }

    /// Blocks that a holder may keep in advance.
    pub fn line(&self) -> u64 {
        (self.limit / LINES_SHARE / self.holders.max(1)).min(LINE_BLOCKS_MAX)
    }

    /// Maximum number of blocks of one transaction: half of the log, and no more than checkpoints can free.
    /// One segment and the credit of the holders, with what they have spent, may stay in use.
    pub fn transaction_max(&self) -> u64 {
        let free = self.grantable().saturating_sub(self.segment + 2 * self.limit / LINES_SHARE);
        free.min(self.limit / 2)
    }

    /// Takes a message of a holder.
    pub fn exchange(&mut self, holder: u16, exchange: SpaceExchange) {
        let SpaceExchange { wanted, mut spent, mut returned } = exchange;
        self.allowed -= returned;
        if self.is_shared {
            let left = self.reserved - self.spent - self.spent_in_cycle;
            spent = spent.min(left);
            returned = returned.min(left - spent);
        }
        require!(
            self.spent + self.spent_in_cycle + spent + returned <= self.reserved,
            "a holder spends and returns what it was granted: {exchange:?} of {}",
            self.reserved
        );
        self.spent += spent;
        self.reserved -= returned;
        let Some(wanted) = wanted else { return };
        match self.requests.iter_mut().find(|(other, _)| *other == holder) {
            Some(request) => request.1 = wanted,
            None => self.requests.push_back((holder, wanted)),
        }
        self.requests.retain(|(_, wanted)| *wanted > 0);
    }

    /// What a holder gets at the start, without a request.
    pub fn first_grant(&mut self) -> SpaceGrant {
        let has_room = self.used + self.reserved + self.line() <= self.grantable();
        self.grant(if has_room { self.line() } else { 0 })
    }

    /// The next request that there is room for, in the order of arrival.
    pub fn next_grant(&mut self) -> Option<(u16, SpaceGrant)> {
        let (holder, granted) = *self.requests.front()?;
        if self.used + self.reserved + granted > self.grantable() {
            return None;
        }
        self.requests.pop_front();
        Some((holder, self.grant(granted)))
    }

    fn grant(&mut self, granted: u64) -> SpaceGrant {
        self.reserved += granted;
        self.allowed += granted;
        SpaceGrant { granted, line: self.line(), transaction_max: self.transaction_max() }
    }

    /// Whether blocks are spent whose commits the next cycle makes durable, and a holder waits for blocks.
    pub fn needs_cycle(&self) -> bool {
        self.is_waited_for() && self.spent > 0
    }

    /// The log has read the stable number that the next sync makes durable.
    pub fn begin_cycle(&mut self) {
        require!(self.spent_in_cycle == 0, "one cycle runs at a time");
        self.spent_in_cycle = std::mem::take(&mut self.spent);
    }

    /// The number that was read at `begin_cycle` is durable.
    pub fn end_cycle(&mut self) {
        self.reserved -= std::mem::take(&mut self.spent_in_cycle);
    }

    /// Groups contain all of some chunks, or undos of chunks, for which these blocks were reserved.
    pub fn release(&mut self, blocks: u64) {
        // In a cluster, chunks of other nodes have reserved nothing here. The account is then an estimate.
        let left = self.reserved - self.spent - self.spent_in_cycle;
        let blocks = if self.is_shared { blocks.min(left) } else { blocks };
        require!(blocks <= self.reserved, "chunks have reserved their blocks: {blocks} of {}", self.reserved);
        self.reserved -= blocks;
    }

    /// Block main forms records that need these blocks of the reserve.
    pub fn allow(&mut self, blocks: u64) {
        self.allowed += blocks;
    }

    /// A group takes these blocks, all of them in one segment. `has_records` is false for start groups,
    /// closing groups, and groups that only make a number durable.
    pub fn write(&mut self, blocks: u64, has_records: bool) {
        self.used += blocks;
        let is_within = self.used <= self.used_max || self.is_shared;
        require!(is_within, "the log never exceeds its limit: {} of {}", self.used, self.used_max);
        // The end of a segment may divide the records of a cycle into one block more.
        self.allowed += u64::from(self.used.is_multiple_of(self.segment));
        if has_records {
            self.written += blocks;
            require!(
                self.written <= self.allowed || self.is_shared,
                "records take blocks that were reserved: {} of {}",
                self.written,
                self.allowed
            );
        }
    }

    fn grantable(&self) -> u64 {
        self.limit - self.reserve
    }
}
