//! A voter: replicates the membership by raft, grants leases by its log, and counts, as the leader, the
//! reports about leases that are over.
//!
//! An entry of the log is a [`MembershipChange`]. Each voter applies it to the membership before, also if it
//! is not committed yet: leases depend on every eviction in the log. A change whose precondition does not
//! hold when its turn comes has no effect at any voter.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use junctor_consensus::bytes::{Malformed, Reader, put_u64};
use junctor_consensus::{Appended, Committed, Output, Recovered, Refusal, Replica, Role, Settings, State, Write};
use junctor_consensus::{VoterId, VoterSet};
use junctor_kernel::NodeId;

use super::lease::{BootTime, EntryId, EvictionReport, EvictionReports, LeaseVoter, RequestLease, RequestLeaseReply};
use super::{ChangeRefused, Membership, MembershipChange, NodeSet};

/// Bytes of the file in use at which the log is replaced by the membership. An entry takes a block of 4,096
/// bytes.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// The id of a voter on a node. `life` counts the files that the node has lost as a voter, from 1.
pub fn voter_id(node: NodeId, life: u32) -> VoterId {
    VoterId(u64::from(life) << 8 | u64::from(node.0))
}

/// The node of a voter.
pub fn node_of(voter: VoterId) -> NodeId {
    NodeId(voter.0 as u8)
}

/// Why a change is not proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotProposed {
    /// The membership after the last entry of the log does not admit the change.
    Refused(ChangeRefused),
    /// The voter does not lead, or its log has no room now.
    NotAccepted,
}

impl fmt::Display for NotProposed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotProposed::Refused(refused) => write!(formatter, "the membership does not admit the change: {refused:?}"),
            NotProposed::NotAccepted => formatter.write_str("this voter accepts no change now"),
        }
    }
}

impl std::error::Error for NotProposed {}

/// Work for the caller. It sends the messages unchanged. It writes and syncs each write, and then calls
/// [`Replication::note_written`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct VoterOutput {
    /// Messages to voters. They may be lost, repeated and reordered.
    pub send: Vec<(VoterId, Vec<u8>)>,
    /// The next write.
    pub write: Option<Write>,
    /// The memberships that were committed, the last one last.
    pub committed: Vec<Entry>,
}

/// An entry of the log, with the membership after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The entry.
    pub id: EntryId,
    /// The membership.
    pub membership: Arc<Membership>,
}

impl Entry {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_u64(&mut out, self.id.index);
        put_u64(&mut out, self.id.term);
        out.extend(self.membership.encode());
        out
    }

    fn decode(bytes: &[u8]) -> Result<Entry, Malformed> {
        let mut reader = Reader::new(bytes);
        let id = EntryId { index: reader.u64()?, term: reader.u64()? };
        Ok(Entry { id, membership: Arc::new(Membership::decode(reader.rest())?) })
    }
}

/// A voter.
#[derive(Debug)]
pub struct Replication {
    replica: Replica,
    /// The last committed entry; `None` until a joining voter hears from the leader.
    committed: Option<Entry>,
    /// The entries after it.
    tail: VecDeque<Entry>,
    leases: LeaseVoter,
    reports: EvictionReports,
}

impl Replication {
    /// A voter of a new cluster. All voters name the same set and the same first membership.
    pub fn new(settings: &Settings, voters: &VoterSet, first: &Membership, now: BootTime) -> Replication {
        let entry = Entry { id: EntryId { index: 0, term: 0 }, membership: Arc::new(first.clone()) };
        Replication::start(settings, Replica::new(settings, voters, &entry.encode()), now)
    }

    /// A voter that joins a cluster and knows nothing about it.
    pub fn joining(settings: &Settings, now: BootTime) -> Replication {
        Replication::start(settings, Replica::joining(settings), now)
    }

    /// A voter that was stopped, from its files.
    pub fn restarted(settings: &Settings, recovered: Recovered, now: BootTime) -> Replication {
        Replication::start(settings, Replica::restarted(settings, recovered), now)
    }

    fn start(settings: &Settings, replica: Replica, now: BootTime) -> Replication {
        let leases = LeaseVoter::new(node_of(settings.voter), now);
        Replication { replica, committed: None, tail: VecDeque::new(), leases, reports: EvictionReports::default() }
    }

    /// The raft voter.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Whether this voter leads.
    pub fn is_leader(&self) -> bool {
        self.replica.role() == Role::Leader
    }

    /// The committed membership.
    pub fn membership(&self) -> Option<&Arc<Membership>> {
        self.committed.as_ref().map(|entry| &entry.membership)
    }

    /// The membership after all entries of the log, which may still be replaced.
    pub fn last(&self) -> Option<&Arc<Membership>> {
        self.tail.back().or(self.committed.as_ref()).map(|entry| &entry.membership)
    }

    /// The entries that are not committed.
    pub fn uncommitted(&self) -> &VecDeque<Entry> {
        &self.tail
    }

    /// A tick has passed: a few milliseconds, equal at all voters.
    pub fn tick(&mut self) {
        self.replica.tick();
    }

    /// Takes a message of another voter.
    ///
    /// # Errors
    /// The message is refused; the voter is as before.
    pub fn receive(&mut self, from: VoterId, bytes: &[u8]) -> Result<(), Refusal> {
        self.replica.receive(from, bytes)
    }

    /// The process of the leader has ended.
    pub fn note_leader_ended(&mut self, leader: VoterId) {
        self.replica.note_leader_ended(leader);
    }

    /// Campaigns if no leader is known: the others may have refused their votes, because they did not know
    /// yet that the leader has ended.
    pub fn campaign_again(&mut self) {
        self.replica.campaign_again();
    }

    /// The write with this number, and all before it, are on disk.
    pub fn note_written(&mut self, number: u64) {
        self.replica.note_written(number);
        self.leases.on_sync(self.replica.synced());
    }

    /// Proposes a change. It can be lost when the leader changes.
    ///
    /// # Errors
    /// The change is not in the log of this voter.
    pub fn propose(&mut self, change: &MembershipChange) -> Result<(), NotProposed> {
        let last = self.last().ok_or(NotProposed::NotAccepted)?;
        last.apply(change).map_err(NotProposed::Refused)?;
        self.replica.propose(change.encode()).map_err(|_| NotProposed::NotAccepted)
    }

    /// Proposes another set of voters.
    ///
    /// # Errors
    /// The change is not in the log of this voter.
    pub fn propose_voters(&mut self, voters: &VoterSet) -> Result<(), NotProposed> {
        self.replica.propose_voters(voters).map_err(|_| NotProposed::NotAccepted)
    }

    /// The next work for the caller. Called after each other call until it is empty.
    pub fn take_output(&mut self) -> VoterOutput {
        let Output { send, write, state, appended, committed } = self.replica.take_output();
        let mut output = VoterOutput { send, write, committed: Vec::new() };
        if let Some(state) = state {
            output.committed.push(self.take_state(&state));
        }
        appended.into_iter().for_each(|entry| self.append(&entry));
        let mut must_compact = self.replica.file_bytes() > FILE_BYTES_MAX;
        for committed in committed {
            match committed {
                Committed::Value { index, .. } => output.committed.push(self.commit(index)),
                Committed::Voters { .. } => must_compact = true,
            }
        }
        if must_compact && let Some(entry) = &self.committed {
            self.replica.compact(&entry.encode());
        }
        self.leases.on_sync(self.replica.synced());
        output
    }

    /// Takes a membership that replaces the log.
    fn take_state(&mut self, state: &State) -> Entry {
        let entry = Entry::decode(&state.data);
        let Ok(entry) = entry else {
            junctor_kernel::invariant::fail("a voter understands the state of the log", format_args!("{entry:?}"))
        };
        self.tail.clear();
        let last = self.committed.replace(entry.clone()).map_or(EntryId::default(), |entry| entry.id);
        self.leases.on_truncate(last.index + 1);
        self.leases.on_append(entry.id, &entry.membership);
        self.leases.on_commit(entry.id.index);
        entry
    }

    fn append(&mut self, entry: &Appended) {
        let Appended { index, term, data } = entry;
        let kept = self.tail.partition_point(|own| own.id.index < *index);
        if kept < self.tail.len() {
            self.tail.truncate(kept);
            self.leases.on_truncate(*index);
        }
        if data.is_empty() {
            return;
        }
        let change = MembershipChange::decode(data);
        let (Ok(change), Some(before)) = (&change, self.last()) else {
            junctor_kernel::invariant::fail("a voter understands the entries of the log", format_args!("{change:?}"))
        };
        let after = before.apply(change).map_or_else(|_| Arc::clone(before), Arc::new);
        let id = EntryId { index: *index, term: *term };
        self.leases.on_append(id, &after);
        self.tail.push_back(Entry { id, membership: after });
    }

    fn commit(&mut self, index: u64) -> Entry {
        let entry = self.tail.pop_front().filter(|entry| entry.id.index == index);
        let Some(entry) = entry else {
            junctor_kernel::invariant::fail("a committed entry is in the log", format_args!("{index}"))
        };
        self.leases.on_commit(index);
        self.committed = Some(entry.clone());
        entry
    }

    /// Grants a lease, or is silent.
    pub fn on_request_lease(&mut self, now: BootTime, request: &RequestLease) -> Option<RequestLeaseReply> {
        self.leases.on_request(now, request)
    }

    /// The report about leases that are over, for the leader. It is sent with every tick, because it may be
    /// lost, and because a new leader needs it again. The leader counts its own at once.
    pub fn next_eviction_report(&mut self, now: BootTime) -> Option<(NodeId, EvictionReport)> {
        let entry = self.leases.leases_over(now)?;
        let voter = self.replica.voter();
        let report = EvictionReport { voter: node_of(voter), term: self.replica.term(), entry };
        match self.replica.role() {
            Role::Leader => {
                self.on_eviction_report(&report);
                None
            }
            Role::Follower(leader) => leader.map(|leader| (node_of(leader), report)),
            Role::Candidate => None,
        }
    }

    /// Counts a report, at the leader. A report about an entry that is not in the log does not count.
    pub fn on_eviction_report(&mut self, report: &EvictionReport) {
        let EntryId { index, term } = report.entry;
        let is_last_committed = self.committed.as_ref().is_some_and(|entry| entry.id == report.entry);
        if self.is_leader() && (is_last_committed || self.replica.has_entry(index, term)) {
            self.reports.on_report(self.replica.term(), report);
        }
    }

    /// The committed membership, at the leader, if the leases of all nodes that it and the memberships before
    /// evict are over. The caller tells its sequencer.
    pub fn leases_over(&self) -> Option<&Arc<Membership>> {
        let committed = self.committed.as_ref().filter(|_| self.is_leader())?;
        let are_over = |voters: &VoterSet| {
            let nodes: NodeSet = voters.voters().iter().map(|voter| node_of(*voter)).collect();
            self.reports.are_over(self.replica.term(), committed.id.index, &nodes)
        };
        let next = self.replica.unapplied_voters();
        (are_over(self.replica.voters()) && next.iter().all(are_over)).then_some(&committed.membership)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::lease::HOLD;
    use junctor_consensus::recover;
    use junctor_model::id::Incarnation;

    const VOTER: NodeId = NodeId(9);

    fn settings() -> Settings {
        Settings { voter: voter_id(VOTER, 1), seed: 1, election_ticks: 4 }
    }

    /// Nodes 1 and 2 are a group.
    fn first() -> Membership {
        let nodes = [(NodeId(1), 0), (NodeId(2), 0)];
        let membership = Membership::create(&nodes, vec![vec![NodeId(1), NodeId(2)]], NodeId(1));
        membership.apply(&MembershipChange::NoteStarted { epoch: membership.epoch }).unwrap()
    }

    /// The only voter, with its files.
    struct Alone {
        voter: Replication,
        files: [Vec<u8>; 2],
    }

    impl Alone {
        fn new() -> Alone {
            let voters = VoterSet::new(vec![voter_id(VOTER, 1)]).unwrap();
            let voter = Replication::new(&settings(), &voters, &first(), BootTime(0));
            let mut alone = Alone { voter, files: Default::default() };
            while !alone.voter.is_leader() {
                alone.voter.tick();
                alone.run();
            }
            alone
        }

        /// Performs its outputs, except the syncs.
        fn run_unsynced(&mut self) -> Vec<u64> {
            let mut written = Vec::new();
            loop {
                let output = self.voter.take_output();
                if output == VoterOutput::default() {
                    return written;
                }
                if let Some(write) = output.write {
                    let file = &mut self.files[write.file];
                    file.truncate(write.offset as usize);
                    file.extend(write.bytes);
                    written.push(write.number);
                }
            }
        }

        fn run(&mut self) {
            loop {
                let written = self.run_unsynced();
                if written.is_empty() {
                    return;
                }
                written.into_iter().for_each(|number| self.voter.note_written(number));
            }
        }

        fn restart(self, now: BootTime) -> Alone {
            let files = self.files;
            let recovered = recover(voter_id(VOTER, 1), [&files[0], &files[1]]).unwrap().unwrap();
            Alone { voter: Replication::restarted(&settings(), recovered, now), files }
        }

        fn grants(&mut self, now: u64, node: u8) -> bool {
            let request = RequestLease {
                node: NodeId(node),
                incarnation: Incarnation(u32::from(node)),
                sent: BootTime(0),
                voter_set: 0,
            };
            self.voter.on_request_lease(BootTime(now), &request).is_some()
        }

        /// Whether the leader takes the leases for over.
        fn is_over(&mut self, now: u64) -> bool {
            assert_eq!(self.voter.next_eviction_report(BootTime(now)), None, "the leader counts its own report");
            self.voter.leases_over().is_some()
        }
    }

    fn evict(node: u8) -> MembershipChange {
        MembershipChange::Evict { nodes: [NodeId(node)].into_iter().collect(), avoid: None }
    }

    #[test]
    fn an_eviction_ends_grants_when_it_is_appended_and_counts_when_it_is_committed() {
        let mut alone = Alone::new();
        let start = HOLD.0;
        assert!(alone.grants(start, 2) && alone.is_over(start));
        alone.voter.propose(&evict(2)).unwrap();
        let written = alone.run_unsynced();
        assert!(alone.grants(start + 1, 1) && !alone.grants(start + 1, 2));
        assert!(alone.voter.membership().unwrap().has(NodeId(2), Incarnation(2)));
        assert!(!alone.voter.last().unwrap().has(NodeId(2), Incarnation(2)));
        written.into_iter().for_each(|number| alone.voter.note_written(number));
        alone.run();
        assert!(!alone.voter.membership().unwrap().has(NodeId(2), Incarnation(2)));
        assert!(!alone.is_over(start + HOLD.0 - 1) && alone.is_over(start + HOLD.0));
    }

    #[test]
    fn a_change_that_the_log_does_not_admit_is_not_proposed() {
        let mut alone = Alone::new();
        alone.voter.propose(&evict(2)).unwrap();
        alone.run_unsynced();
        assert_eq!(alone.voter.propose(&evict(1)), Err(NotProposed::Refused(ChangeRefused::GroupLost(0))));
    }

    #[test]
    fn a_restarted_voter_knows_the_evictions_of_its_log_and_reports_after_a_lease() {
        let mut alone = Alone::new();
        alone.voter.propose(&evict(2)).unwrap();
        alone.run();
        let mut alone = alone.restart(BootTime(1_000));
        alone.run();
        assert!(!alone.grants(1_000, 2) && alone.grants(1_000, 1));
        while !alone.voter.is_leader() {
            alone.voter.tick();
            alone.run();
        }
        assert_eq!(alone.voter.membership().unwrap().epoch.0, 2);
        assert!(!alone.is_over(1_000 + HOLD.0 - 1) && alone.is_over(1_000 + HOLD.0));
    }

    #[test]
    fn the_membership_replaces_a_long_log() {
        let mut alone = Alone::new();
        let mut epoch = 1;
        for life in 10..110 {
            let admit = MembershipChange::Admit { node: NodeId(2), incarnation: Incarnation(life) };
            for change in [evict(2), admit] {
                alone.voter.propose(&change).unwrap();
                epoch += 1;
                let started = MembershipChange::NoteStarted { epoch: junctor_model::id::Epoch(epoch) };
                alone.run();
                alone.voter.propose(&started).unwrap();
                alone.run();
            }
        }
        assert!(alone.files.iter().all(|file| file.len() as u64 <= FILE_BYTES_MAX + (16 << 10)));
        let before = Arc::clone(alone.voter.membership().unwrap());
        let mut alone = alone.restart(BootTime(0));
        while !alone.voter.is_leader() {
            alone.voter.tick();
            alone.run();
        }
        assert_eq!((alone.voter.membership(), epoch), (Some(&before), 201));
    }
}
