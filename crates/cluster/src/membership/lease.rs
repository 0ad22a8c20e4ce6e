//! Leases: a data node chooses snapshots only while a majority of the voters would still notice its eviction.
//! A commit of the next epoch is answered only when the leases of evicted nodes have ended.
//!
//! All times are readings of CLOCK_BOOTTIME, which goes on while a machine sleeps. The caller of
//! [`LeaseHolder::holds`] reads the clock *after* it has taken the request from its socket or ring: a node
//! that was paused in between would otherwise serve a snapshot that is older than an answered commit. The
//! proof is the model in `crates/cluster/tests/lease_model.rs`.

use std::collections::{BTreeMap, VecDeque};

use junctor_kernel::{Duration, NodeId};
use junctor_model::id::Incarnation;

use super::{Membership, NodeSet};

/// How long a lease lasts after the sending of its request, by the clock of its holder.
pub const LEASE: Duration = Duration::from_millis(20);
/// Time between two requests.
pub const REQUEST_INTERVAL: Duration = Duration::from_millis(5);
/// Largest difference of the rate of any clock from the true rate, in per cent.
const DRIFT_PERCENT: u64 = 1;
/// How long a voter counts a lease after its grant, by its own clock: the clock of the holder may be slow and
/// the clock of the voter fast (rule 9).
pub const HOLD: Duration = Duration((LEASE.0 * (100 + DRIFT_PERCENT)).div_ceil(100 - DRIFT_PERCENT));
/// Requests that a holder remembers. Older ones would give a lease that is over.
const REQUESTS_MAX: usize = 8;

// Requests within one lease fit.
const _: () = assert!(LEASE.0 / REQUEST_INTERVAL.0 < REQUESTS_MAX as u64);

/// A reading of CLOCK_BOOTTIME on one machine, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTime(pub u64);

impl BootTime {
    /// The time after a duration.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> BootTime {
        BootTime(self.0 + duration.0)
    }
}

/// Asks a voter for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLease {
    /// The node that asks.
    pub node: NodeId,
    /// Its life.
    pub incarnation: Incarnation,
    /// Its clock at the sending. The lease counts from here.
    pub sent: BootTime,
    /// The version of the set of voters by which it counts a majority.
    pub voter_set: u64,
}

/// The answer of a voter that grants the lease. A voter that does not grant is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLeaseReply {
    /// The voter.
    pub voter: NodeId,
    /// Copied from the request.
    pub sent: BootTime,
    /// Copied from the request.
    pub voter_set: u64,
}

/// The leases of a data node.
#[derive(Clone, Debug)]
pub struct LeaseHolder {
    node: NodeId,
    incarnation: Incarnation,
    voters: NodeSet,
    voter_set: u64,
    /// The last requests, with the voters that granted each.
    requests: VecDeque<(BootTime, NodeSet)>,
    until: BootTime,
}

impl LeaseHolder {
    /// A node without a lease.
    pub fn new(node: NodeId, incarnation: Incarnation, voters: NodeSet, voter_set: u64) -> LeaseHolder {
        let requests = VecDeque::with_capacity(REQUESTS_MAX);
        LeaseHolder { node, incarnation, voters, voter_set, requests, until: BootTime(0) }
    }

    /// Follows a change of the set of voters. Grants to requests by the old set no longer count.
    pub fn set_voters(&mut self, voters: NodeSet, voter_set: u64) {
        self.voters = voters;
        self.voter_set = voter_set;
        self.requests.clear();
    }

    /// The request to send to every voter now, if one is due.
    pub fn next_request(&mut self, now: BootTime) -> Option<RequestLease> {
        let is_due = self.requests.back().is_none_or(|(sent, _)| now >= sent.plus(REQUEST_INTERVAL));
        if !is_due {
            return None;
        }
        if self.requests.len() == REQUESTS_MAX {
            self.requests.pop_front();
        }
        self.requests.push_back((now, NodeSet::EMPTY));
        let LeaseHolder { node, incarnation, voter_set, .. } = *self;
        Some(RequestLease { node, incarnation, sent: now, voter_set })
    }

    /// Counts a grant. Grants of one request by a majority give a lease.
    pub fn on_reply(&mut self, reply: &RequestLeaseReply) {
        if reply.voter_set != self.voter_set || !self.voters.contains(reply.voter) {
            return;
        }
        let Some((sent, grants)) = self.requests.iter_mut().find(|(sent, _)| *sent == reply.sent) else { return };
        grants.insert(reply.voter);
        if 2 * grants.len() > self.voters.len() {
            self.until = self.until.max(sent.plus(LEASE));
        }
    }

    /// When the lease ends.
    pub fn until(&self) -> BootTime {
        self.until
    }

    /// Whether the node holds a lease. `now` is read after the request that wants to know was taken.
    #[inline]
    pub fn holds(&self, now: BootTime) -> bool {
        now < self.until
    }
}

/// An entry of raft's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryId {
    /// Its position.
    pub index: u64,
    /// The term of the leader that proposed it.
    pub term: u64,
}

/// From a voter to the leader: its log is synced up to this entry, and the leases that it granted to the
/// nodes that these entries evict are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionReport {
    /// The voter.
    pub voter: NodeId,
    /// The term of the voter. A report of an earlier term does not count: the entry may have left the log and
    /// come back, and the voter may have granted leases in between.
    pub term: u64,
    /// The entry.
    pub entry: EntryId,
}

/// A life of a node.
type Life = (NodeId, Incarnation);

#[derive(Clone, Debug)]
struct VoterEntry {
    id: EntryId,
    members: Vec<Life>,
    /// Members of the entry before that this one lacks.
    evicted: Vec<Life>,
}

/// The part of a voter.
#[derive(Clone, Debug)]
pub struct LeaseVoter {
    node: NodeId,
    /// When it started. Before that, it may have granted leases that it does not remember.
    started: BootTime,
    voter_set: u64,
    /// The memberships of the log, the uncommitted ones included. Committed entries whose leases are over are
    /// left out, except the last.
    log: VecDeque<VoterEntry>,
    /// The log is on disk up to this index.
    synced: u64,
    /// Entries up to this index stay in the log.
    committed: u64,
    /// The last grant to each life.
    granted: BTreeMap<Life, BootTime>,
}

impl LeaseVoter {
    /// A voter that starts now, without a membership in its log.
    pub fn new(node: NodeId, now: BootTime) -> LeaseVoter {
        let (log, granted) = (VecDeque::new(), BTreeMap::new());
        LeaseVoter { node, started: now, voter_set: 0, log, synced: 0, committed: 0, granted }
    }

    /// Follows a change of the set of voters in the log.
    pub fn set_voter_set(&mut self, voter_set: u64) {
        self.voter_set = voter_set;
    }

    /// A membership was appended to the log, synced or not.
    pub fn on_append(&mut self, id: EntryId, membership: &Membership) {
        let members = lives(membership);
        let before = self.log.back().map_or(&[][..], |last| &last.members);
        let evicted = before.iter().filter(|life| !members.contains(life)).copied().collect();
        self.log.push_back(VoterEntry { id, members, evicted });
    }

    /// The log is on disk up to this index.
    pub fn on_sync(&mut self, index: u64) {
        self.synced = self.synced.max(index);
    }

    /// The log is committed up to this index.
    pub fn on_commit(&mut self, index: u64) {
        self.committed = self.committed.max(index);
    }

    /// Entries from this index on have left the log.
    pub fn on_truncate(&mut self, from: u64) {
        self.log.retain(|entry| entry.id.index < from);
        self.synced = self.synced.min(from - 1);
    }

    /// Grants the lease, unless the log evicts the node or has a newer set of voters.
    pub fn on_request(&mut self, now: BootTime, request: &RequestLease) -> Option<RequestLeaseReply> {
        let life = (request.node, request.incarnation);
        let is_member = self.log.back().is_some_and(|last| last.members.contains(&life));
        if !is_member || request.voter_set < self.voter_set {
            return None;
        }
        self.granted.insert(life, now);
        Some(RequestLeaseReply { voter: self.node, sent: request.sent, voter_set: request.voter_set })
    }

    /// The last entry of the log that is synced, and that evicts, as the entries before it, only nodes whose
    /// leases are over.
    pub fn leases_over(&mut self, now: BootTime) -> Option<EntryId> {
        let LeaseVoter { log, granted, started, synced, committed, .. } = self;
        if now < started.plus(HOLD) {
            return None;
        }
        let has_ended = |life: &Life| granted.get(life).is_none_or(|granted| now >= granted.plus(HOLD));
        let is_over = |entry: &VoterEntry| entry.id.index <= *synced && entry.evicted.iter().all(has_ended);
        let over = log.iter().take_while(|entry| is_over(entry)).count();
        let entry = log.get(over.checked_sub(1)?)?.id;
        granted.retain(|_, granted| granted.plus(HOLD) > now);
        // An entry that is not committed may leave the log. Then the members of the entry before it count.
        let settled = log.iter().take(over).take_while(|entry| entry.id.index <= *committed).count();
        log.drain(..settled.saturating_sub(1));
        Some(entry)
    }
}

fn lives(membership: &Membership) -> Vec<Life> {
    membership.members().map(|record| (record.node, record.incarnation)).collect()
}

/// The reports of voters, as the leader of a term counts them.
#[derive(Clone, Debug, Default)]
pub struct EvictionReports {
    term: u64,
    /// Index of the last entry of the leader's log that each voter has reported.
    last: BTreeMap<NodeId, u64>,
}

impl EvictionReports {
    /// Counts a report about an entry that is in the leader's log. `term` is the leader's.
    pub fn on_report(&mut self, term: u64, report: &EvictionReport) {
        if self.term != term {
            *self = EvictionReports { term, last: BTreeMap::new() };
        }
        if report.term == term {
            let last = self.last.entry(report.voter).or_default();
            *last = (*last).max(report.entry.index);
        }
    }

    /// Whether a majority of these voters has reported the committed entry with this index, or a later one.
    pub fn are_over(&self, term: u64, index: u64, voters: &NodeSet) -> bool {
        let counts = |voter: &NodeId| self.last.get(voter).is_some_and(|last| *last >= index);
        self.term == term && 2 * voters.iter().filter(counts).count() > voters.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::MembershipChange;

    const NODE: NodeId = NodeId(1);
    const LIFE: Incarnation = Incarnation(1);

    fn voters() -> NodeSet {
        [11, 12, 13].map(NodeId).into_iter().collect()
    }

    fn membership() -> Membership {
        let nodes = [(NODE, 0), (NodeId(2), 0)];
        let membership = Membership::create(&nodes, vec![vec![NODE, NodeId(2)]], NodeId(2));
        membership.apply(&MembershipChange::NoteStarted { epoch: membership.epoch }).unwrap()
    }

    fn without_node() -> Membership {
        let nodes = [NODE].into_iter().collect();
        membership().apply(&MembershipChange::Evict { nodes, avoid: None }).unwrap()
    }

    fn voter(node: u8, now: u64) -> LeaseVoter {
        let mut voter = LeaseVoter::new(NodeId(node), BootTime(now));
        voter.on_append(entry(1), &membership());
        voter.on_sync(1);
        voter.on_commit(1);
        voter
    }

    fn entry(index: u64) -> EntryId {
        EntryId { index, term: 1 }
    }

    fn request(sent: u64) -> RequestLease {
        RequestLease { node: NODE, incarnation: LIFE, sent: BootTime(sent), voter_set: 0 }
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn voters_count_the_drift_of_both_clocks() {
        assert_eq!(HOLD, Duration(20_404_041));
    }

    #[test]
    fn grants_of_one_request_by_a_majority_give_a_lease_from_its_sending() {
        let mut holder = LeaseHolder::new(NODE, LIFE, voters(), 0);
        let reply = |voter, sent| RequestLeaseReply { voter: NodeId(voter), sent: BootTime(sent), voter_set: 0 };
        assert!(holder.next_request(BootTime(0)).is_some());
        assert!(holder.next_request(BootTime(4 * MS)).is_none());
        assert!(holder.next_request(BootTime(5 * MS)).is_some());
        holder.on_reply(&reply(11, 0));
        holder.on_reply(&reply(11, 0));
        holder.on_reply(&reply(12, 5 * MS));
        holder.on_reply(&reply(99, 0));
        assert!(!holder.holds(BootTime(6 * MS)));
        holder.on_reply(&reply(13, 0));
        assert!(holder.holds(BootTime(20 * MS - 1)) && !holder.holds(BootTime(20 * MS)));
        // An earlier request never shortens a lease.
        holder.on_reply(&reply(13, 5 * MS));
        holder.on_reply(&reply(12, 0));
        assert!(holder.holds(BootTime(25 * MS - 1)) && !holder.holds(BootTime(25 * MS)));
    }

    #[test]
    fn grants_to_an_older_set_of_voters_do_not_count() {
        let mut holder = LeaseHolder::new(NODE, LIFE, voters(), 0);
        holder.next_request(BootTime(0));
        holder.set_voters(voters(), 1);
        for voter in [11, 12, 13] {
            holder.on_reply(&RequestLeaseReply { voter: NodeId(voter), sent: BootTime(0), voter_set: 0 });
        }
        assert!(!holder.holds(BootTime(1)));
        let mut voter = voter(11, 0);
        voter.set_voter_set(1);
        assert!(voter.on_request(BootTime(0), &request(0)).is_none());
    }

    #[test]
    fn a_voter_with_the_eviction_in_its_log_does_not_grant() {
        let mut voter = voter(11, 0);
        assert!(voter.on_request(BootTime(0), &request(0)).is_some());
        voter.on_append(entry(2), &without_node());
        assert!(voter.on_request(BootTime(MS), &request(0)).is_none());
        voter.on_truncate(2);
        assert!(voter.on_request(BootTime(2 * MS), &request(0)).is_some());
    }

    #[test]
    fn a_voter_reports_once_its_last_grant_has_ended_and_the_eviction_is_synced() {
        let mut voter = voter(11, 0);
        assert_eq!(voter.leases_over(BootTime(30 * MS)), Some(entry(1)));
        voter.on_request(BootTime(30 * MS), &request(0));
        voter.on_append(entry(2), &without_node());
        let end = 30 * MS + HOLD.0;
        voter.on_sync(2);
        assert_eq!(voter.leases_over(BootTime(end - 1)), Some(entry(1)));
        assert_eq!(voter.leases_over(BootTime(end)), Some(entry(2)));
        voter.on_append(entry(3), &without_node());
        assert_eq!(voter.leases_over(BootTime(2 * end)), Some(entry(2)));
        voter.on_sync(3);
        assert_eq!(voter.leases_over(BootTime(2 * end)), Some(entry(3)));
    }

    /// The voter forgot the members before an entry that it had reported, although the entry could still
    /// leave its log. It then granted nothing, and did not wait for the leases of the nodes that the next
    /// entry evicted.
    #[test]
    fn a_reported_entry_that_leaves_the_log_brings_the_members_before_it_back() {
        let mut voter = voter(11, 0);
        voter.on_append(entry(2), &without_node());
        voter.on_sync(2);
        assert_eq!(voter.leases_over(BootTime(30 * MS)), Some(entry(2)));
        voter.on_truncate(2);
        assert!(voter.on_request(BootTime(31 * MS), &request(0)).is_some());
        voter.on_append(EntryId { index: 2, term: 2 }, &without_node());
        voter.on_sync(2);
        assert_eq!(voter.leases_over(BootTime(32 * MS)), Some(entry(1)));
    }

    #[test]
    fn a_voter_that_restarted_counts_from_its_start() {
        let mut voter = voter(11, 50 * MS);
        voter.on_append(entry(2), &without_node());
        voter.on_sync(2);
        assert_eq!(voter.leases_over(BootTime(50 * MS + HOLD.0 - 1)), None);
        assert_eq!(voter.leases_over(BootTime(50 * MS + HOLD.0)), Some(entry(2)));
    }

    #[test]
    fn leases_are_over_when_a_majority_has_reported_in_the_leaders_term() {
        let mut reports = EvictionReports::default();
        let report = |voter, term, index| EvictionReport { voter: NodeId(voter), term, entry: entry(index) };
        reports.on_report(5, &report(11, 5, 2));
        assert!(!reports.are_over(5, 2, &voters()));
        reports.on_report(5, &report(12, 4, 2));
        assert!(!reports.are_over(5, 2, &voters()));
        reports.on_report(5, &report(12, 5, 3));
        assert!(reports.are_over(5, 2, &voters()) && !reports.are_over(5, 3, &voters()));
        // The reports to an earlier leader do not count.
        assert!(!reports.are_over(6, 2, &voters()));
        reports.on_report(6, &report(13, 6, 2));
        assert!(!reports.are_over(6, 2, &voters()));
    }
}
