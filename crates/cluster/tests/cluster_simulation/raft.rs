//! A toy raft: one sequence of memberships that three voters append and sync at any time. A majority that has
//! synced an entry commits it. An entry that is not committed may be replaced.

use std::sync::Arc;

use junctor_cluster::membership::lease::{BootTime, EntryId, EvictionReports, LeaseVoter};
use junctor_cluster::membership::{ChangeRefused, Membership, MembershipChange, NodeSet};
use junctor_kernel::NodeId;
use junctor_kernel::Random;

use super::message::{Bug, FIRST_VOTER, VOTERS};

#[derive(Debug)]
pub struct Entry {
    pub id: EntryId,
    pub membership: Arc<Membership>,
}

#[derive(Debug)]
pub struct Voter {
    pub part: LeaseVoter,
    /// Grants leases in place of `part` if a bug keeps evictions from it.
    pub blind: LeaseVoter,
    /// Entries in its log, and those on its disk.
    pub appended: usize,
    pub synced: usize,
}

#[derive(Debug)]
pub struct Raft {
    pub log: Vec<Entry>,
    /// Number of committed entries.
    pub committed: usize,
    pub voters: Vec<Voter>,
    pub reports: EvictionReports,
    pub bug: Bug,
    term: u64,
}

pub fn voter_ids() -> NodeSet {
    (0..VOTERS).map(|index| NodeId(FIRST_VOTER + index)).collect()
}

impl Raft {
    pub fn new(membership: Membership, bug: Bug) -> Raft {
        let id = EntryId { index: 1, term: 1 };
        let voter = |index| {
            let mut part = LeaseVoter::new(NodeId(FIRST_VOTER + index), BootTime(0));
            part.on_append(id, &membership);
            part.on_sync(id.index);
            Voter { blind: part.clone(), part, appended: 1, synced: 1 }
        };
        let voters = (0..VOTERS).map(voter).collect();
        let entry = Entry { id, membership: Arc::new(membership) };
        Raft { log: vec![entry], committed: 1, voters, reports: EvictionReports::default(), bug, term: 1 }
    }

    pub fn committed(&self) -> &Arc<Membership> {
        &self.log[self.committed - 1].membership
    }

    /// The membership after all entries, the uncommitted ones too.
    pub fn last(&self) -> &Arc<Membership> {
        &self.log[self.log.len() - 1].membership
    }

    pub fn is_idle(&self) -> bool {
        self.committed == self.log.len()
    }

    /// Proposes a change. One entry is under way at a time.
    pub fn propose(&mut self, change: &MembershipChange) -> Result<(), ChangeRefused> {
        assert!(self.is_idle(), "one entry at a time");
        let mut next = self.last().apply(change)?;
        if let (Bug::LastDurableForgotten, MembershipChange::Evict { nodes, .. }) = (self.bug, change) {
            next.nodes.iter_mut().filter(|it| nodes.contains(it.node)).for_each(|it| it.is_durable = false);
        }
        if let (Bug::CommittedEpochCounts, true) = (self.bug, next.epoch > self.last().epoch) {
            next.started = next.epoch;
        }
        let id = EntryId { index: self.log.len() as u64 + 1, term: self.term };
        self.log.push(Entry { id, membership: Arc::new(next) });
        Ok(())
    }

    /// A voter appends or syncs the next entry, or another leader replaces an entry that is not committed.
    pub fn step(&mut self, random: &mut Random, clocks: &[BootTime]) {
        let index = random.below(u64::from(VOTERS)) as usize;
        let length = self.log.len();
        let has_entry = |voter: &Voter| voter.appended == length;
        let holders = self.voters.iter().filter(|voter| has_entry(voter)).count();
        if !self.is_idle() && holders < 2 && random.one_in(40) {
            self.replace_last();
            return;
        }
        let restarts = if self.is_idle() { 400 } else { 40 };
        let voter = &mut self.voters[index];
        if random.one_in(restarts) {
            // A voter restarts with what it has synced.
            let own = self.log[0].id;
            let id = NodeId(FIRST_VOTER + index as u8);
            voter.part = LeaseVoter::new(id, clocks[index]);
            voter.part.on_append(own, &self.log[0].membership);
            voter.appended = voter.synced;
            for entry in &self.log[1..voter.synced] {
                voter.part.on_append(entry.id, &entry.membership);
            }
            voter.part.on_sync(self.log[voter.synced - 1].id.index);
        } else if voter.synced < voter.appended {
            voter.synced += 1;
            voter.part.on_sync(self.log[voter.synced - 1].id.index);
        } else if voter.appended < self.log.len() {
            let entry = &self.log[voter.appended];
            voter.appended += 1;
            voter.part.on_append(entry.id, &entry.membership);
        }
        let has_synced =
            |count: usize| 2 * self.voters.iter().filter(|it| it.synced >= count).count() > self.voters.len();
        while self.committed < self.log.len() && has_synced(self.committed + 1) {
            self.committed += 1;
        }
    }

    /// Forgets the entries behind the first `count`, as if they had never been committed.
    pub fn revert(&mut self, count: usize) {
        while self.log.len() > count {
            self.replace_last();
        }
        self.committed = count;
    }

    fn replace_last(&mut self) {
        let Some(entry) = self.log.pop() else { return };
        self.term += 1;
        for voter in &mut self.voters {
            voter.part.on_truncate(entry.id.index);
            voter.appended = voter.appended.min(self.log.len());
            voter.synced = voter.synced.min(self.log.len());
        }
    }

    /// Whether the leases of all nodes that entries up to this epoch's one evict are over.
    pub fn are_leases_over(&self, membership: &Membership) -> bool {
        let position = self.log.iter().position(|entry| entry.membership.epoch == membership.epoch);
        let Some(entry) = position.map(|position| self.log[position].id) else { return false };
        let is_in_log = |id: EntryId| self.log.get(id.index as usize - 1).is_some_and(|it| it.id == id);
        _ = is_in_log;
        self.reports.are_over(0, entry.index, &voter_ids())
    }
}
