//! A voter of the replicated log.

use std::collections::VecDeque;
use std::fmt;

use junctor_kernel::random::Random;
use raft::eraftpb::{ConfState, Entry, EntryType, Message, MessageType, Snapshot};
use raft::{Config, ProgressState, RawNode, Ready, SnapshotStatus, StateRole};

use crate::bytes::{Malformed, Reader};
use crate::disk::{ChunkId, Recovered, encode_chunk};
use crate::log::{Change, Log};
use crate::message;
use crate::voter::{VoterId, VoterSet};

/// Fewest ticks without a message from the leader after which the voter of the first rank campaigns.
pub const ELECTION_TICKS_MIN: usize = 4;
/// Most of these ticks.
pub const ELECTION_TICKS_MAX: usize = 40;
/// A candidate waits so many times longer, because its voters sync their votes.
const CANDIDATE_FACTOR: usize = 3;
/// Additional ticks of voters of later ranks: 0 to 3, so that the first ones campaign alone.
const RANK_TICKS_MAX: usize = 3;
const HEARTBEAT_TICKS: usize = 1;
/// Ticks after which the leader sends a snapshot again. `raft` waits for an answer without end, and the
/// snapshot may be lost.
const SNAPSHOT_TICKS: u64 = 20;
/// Longer timeouts are those that `raft` draws from the operating system when it restarts its timer. They are
/// replaced immediately by timeouts that depend on the seed only.
const TIMEOUT_TICKS_MAX: usize = 1024;
/// Upper bound of the timeouts that `raft` draws: so high that none of them is a timeout of ours.
const DRAWN_TICKS_MAX: usize = 1 << 48;
/// Maximum number of bytes of proposals that the leader accepts before a majority has them.
const UNCOMMITTED_BYTES_MAX: u64 = 4 << 20;
const BYTES_PER_MESSAGE_MAX: u64 = 1 << 20;
const MESSAGES_IN_FLIGHT_MAX: usize = 64;

/// Settings of a voter.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The voter.
    pub voter: VoterId,
    /// Seed of its timeouts after elections that nobody won.
    pub seed: u64,
    /// Ticks without a message from the leader after which the voter of the first rank campaigns, from
    /// [`ELECTION_TICKS_MIN`] to [`ELECTION_TICKS_MAX`]. A leader that hears no majority for as long steps
    /// down.
    pub election_ticks: usize,
}

/// The role of a voter in its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It decides.
    Leader,
    /// It knows the leader, if any, and follows it.
    Follower(Option<VoterId>),
    /// It asks for votes.
    Candidate,
}

/// Why a voter refuses a message or a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The bytes are no message.
    Malformed(Malformed),
    /// The message is for another voter, or its sender says to be another one.
    WrongAddress,
    /// The leader knows entries of this voter that this voter does not have: its files are older than its
    /// last answers. The voter needs a new id.
    LostEntries,
    /// Only the leader accepts proposals, and only while it has room for them.
    NotAccepted,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Malformed(malformed) => malformed.fmt(formatter),
            Refusal::WrongAddress => formatter.write_str("the message has another sender or receiver"),
            Refusal::LostEntries => formatter.write_str("the leader knows entries that this voter has lost"),
            Refusal::NotAccepted => formatter.write_str("this voter accepts no proposal now"),
        }
    }
}

impl std::error::Error for Refusal {}

/// An entry that a majority has, in the order of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// A proposed value.
    Value {
        /// Position in the log.
        index: u64,
        /// The value.
        data: Vec<u8>,
    },
    /// The voters from here on.
    Voters {
        /// Position in the log.
        index: u64,
        /// The new set.
        voters: VoterSet,
    },
}

/// The state of the application after all entries up to a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The position.
    pub index: u64,
    /// As given to [`Replica::new`], or to [`Replica::compact`] by some voter.
    pub data: Vec<u8>,
}

/// An entry that the voter has put into its log, synced or not. A later leader can replace it until it is
/// committed: entries from the index of an appended entry on have left the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Position in the log.
    pub index: u64,
    /// The term of the leader that proposed it.
    pub term: u64,
    /// The proposed value. Empty in an entry that has none.
    pub data: Vec<u8>,
}

/// Bytes that the voter has to write. Writes are performed and synced in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// For [`Replica::note_written`].
    pub number: u64,
    /// Position of the file among the two, 0 or 1.
    pub file: usize,
    /// Where the bytes belong. At 0, the file is created or begins anew.
    pub offset: u64,
    /// Whole blocks of 4,096 bytes.
    pub bytes: Vec<u8>,
}

/// Work for the user of a voter, in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Messages, with their receivers. They may be lost, repeated and reordered.
    pub send: Vec<(VoterId, Vec<u8>)>,
    /// The next write.
    pub write: Option<Write>,
    /// The state that replaces the log so far.
    pub state: Option<State>,
    /// Entries that are new in the log.
    pub appended: Vec<Appended>,
    /// Entries to apply.
    pub committed: Vec<Committed>,
}

impl Output {
    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        *self == Output::default()
    }
}

/// Messages that wait for a write.
#[derive(Debug)]
struct Unwritten {
    number: u64,
    /// Whether a write has this number. Without one, the write before it counts.
    is_write: bool,
    messages: Vec<Message>,
}

/// Place of the next chunk.
#[derive(Clone, Copy, Debug)]
struct WritePosition {
    generation: u64,
    sequence: u64,
    file: usize,
    offset: u64,
}

/// A voter. See the crate's page for the duties of its user.
pub struct Replica {
    node: RawNode<Log>,
    voter: VoterId,
    voters: VoterSet,
    random: Random,
    position: WritePosition,
    unwritten: VecDeque<Unwritten>,
    /// Messages whose writes are synced.
    sendable: Vec<Message>,
    /// The log with which the voter begins, for its user.
    first: Option<Output>,
    /// Whether the next write is the whole log.
    writes_image: bool,
    applied: u64,
    ticks: u64,
    election_ticks: usize,
    /// Elections that this voter began since it last had a leader.
    campaigns: u32,
}

impl Replica {
    /// A voter of a new cluster, which has no files yet. All voters of a new cluster name the same set and
    /// the same first state of the application. The first output has this state.
    pub fn new(settings: &Settings, voters: &VoterSet, state: &[u8]) -> Replica {
        let position = WritePosition { generation: 0, sequence: 0, file: 0, offset: 0 };
        Replica::start(settings, Log::new(voters, state), position, true)
    }

    /// A voter that joins a cluster and knows nothing of it. It learns the voters from the leader.
    pub fn joining(settings: &Settings) -> Replica {
        let position = WritePosition { generation: 0, sequence: 0, file: 0, offset: 0 };
        Replica::start(settings, Log::default(), position, true)
    }

    /// A voter that was stopped, from its files. Its first output has the state of the application, and the
    /// entries after it.
    pub fn restarted(settings: &Settings, recovered: Recovered) -> Replica {
        let Recovered { log, generation, sequence, file, end } = recovered;
        let position = WritePosition { generation, sequence, file, offset: end as u64 };
        Replica::start(settings, log, position, false)
    }

    fn start(settings: &Settings, log: Log, position: WritePosition, writes_image: bool) -> Replica {
        let snapshot = log.snapshot.clone();
        let applied = snapshot.get_metadata().index;
        let appended = log.entries.iter().map(appended).collect();
        let election_ticks = settings.election_ticks.clamp(ELECTION_TICKS_MIN, ELECTION_TICKS_MAX);
        let config = Config {
            id: settings.voter.0,
            election_tick: election_ticks,
            heartbeat_tick: HEARTBEAT_TICKS,
            min_election_tick: election_ticks,
            max_election_tick: DRAWN_TICKS_MAX,
            applied,
            check_quorum: true,
            pre_vote: true,
            max_size_per_msg: BYTES_PER_MESSAGE_MAX,
            max_inflight_msgs: MESSAGES_IN_FLIGHT_MAX,
            max_uncommitted_size: UNCOMMITTED_BYTES_MAX,
            ..Config::default()
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let node = RawNode::new(&config, log, &logger).expect("the configuration of a voter is constant");
        let mut replica = Replica {
            node,
            voter: settings.voter,
            voters: VoterSet::default(),
            random: Random::new(settings.seed),
            position,
            unwritten: VecDeque::new(),
            sendable: Vec::new(),
            first: None,
            writes_image,
            applied,
            ticks: 0,
            election_ticks,
            campaigns: 0,
        };
        let state = replica.note_snapshot(&snapshot);
        replica.first = state.map(|state| Output { state: Some(state), appended, ..Output::default() });
        replica.replace_timeout();
        replica
    }

    /// The id of this voter.
    pub fn voter(&self) -> VoterId {
        self.voter
    }

    /// The voters by rank, as far as this voter has applied the log. Empty in a voter that joins.
    pub fn voters(&self) -> &VoterSet {
        &self.voters
    }

    /// The role of this voter.
    pub fn role(&self) -> Role {
        let leader = self.node.raft.leader_id;
        match self.node.raft.state {
            StateRole::Leader => Role::Leader,
            StateRole::Follower => Role::Follower((leader != 0).then_some(VoterId(leader))),
            StateRole::Candidate | StateRole::PreCandidate => Role::Candidate,
        }
    }

    /// The term, which grows with each election.
    pub fn term(&self) -> u64 {
        self.node.raft.term
    }

    /// Index of the last entry that the user got.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// The log is on disk up to this index.
    pub fn synced(&self) -> u64 {
        self.node.raft.raft_log.persisted
    }

    /// Whether the log has this entry. Entries that were compacted are unknown, except the last of them.
    pub fn has_entry(&self, index: u64, term: u64) -> bool {
        self.node.raft.raft_log.term(index).is_ok_and(|own| own == term)
    }

    /// The sets of voters among the entries that are not applied yet, oldest first.
    pub fn unapplied_voters(&self) -> Vec<VoterSet> {
        let log = &self.node.raft.raft_log;
        let entries = log.entries(self.applied + 1, None, raft::GetEntriesContext::empty(false)).unwrap_or_default();
        let changes = entries.iter().filter(|entry| entry.get_entry_type() == EntryType::EntryConfChangeV2);
        changes.filter_map(|entry| VoterSet::decode(&mut Reader::new(&entry.context)).ok()).collect()
    }

    /// A tick has passed: a few milliseconds, equal at all voters. The time in which a follower or candidate
    /// syncs does not count: it cannot answer, and must not campaign for that reason.
    pub fn tick(&mut self) {
        if self.role() != Role::Leader && self.unwritten.iter().any(|unwritten| unwritten.is_write) {
            return;
        }
        let role = self.node.raft.state;
        self.node.tick();
        if role != StateRole::PreCandidate && self.node.raft.state == StateRole::PreCandidate {
            self.campaigns += 1;
        }
        self.replace_timeout();
        self.ticks += 1;
        if self.ticks.is_multiple_of(SNAPSHOT_TICKS) && self.role() == Role::Leader {
            self.repeat_snapshots();
        }
    }

    fn repeat_snapshots(&mut self) {
        let progress = self.node.raft.prs().iter();
        let waiting = progress.filter(|(_, progress)| progress.state == ProgressState::Snapshot);
        let waiting: Vec<u64> = waiting.map(|(voter, _)| *voter).collect();
        for voter in waiting {
            self.node.report_snapshot(voter, SnapshotStatus::Failure);
        }
    }

    /// Processes a message. `from` is the voter at the other end of the link that the message came by.
    ///
    /// # Errors
    /// The message is refused; the voter is as before.
    pub fn receive(&mut self, from: VoterId, bytes: &[u8]) -> Result<(), Refusal> {
        let message = message::decode(bytes).map_err(Refusal::Malformed)?;
        if message.from != from.0 || message.to != self.voter.0 {
            return Err(Refusal::WrongAddress);
        }
        // `raft` stops its process when it is asked to commit entries that it does not have.
        let is_current = message.term >= self.node.raft.term;
        let commits_unknown = message.get_msg_type() == MessageType::MsgHeartbeat
            && message.commit > self.node.raft.raft_log.last_index();
        if is_current && commits_unknown {
            return Err(Refusal::LostEntries);
        }
        // The leader asks this voter to campaign at once.
        if message.get_msg_type() == MessageType::MsgTimeoutNow && self.writes_snapshot() {
            return Ok(());
        }
        // Answers of voters that have left are of no use, and their refusal is no error.
        let _ = self.node.step(message);
        self.replace_timeout();
        Ok(())
    }

    /// Proposes a value. It is in a later output of every voter if it is committed; it can be lost when the
    /// leader changes.
    ///
    /// # Errors
    /// [`Refusal::NotAccepted`]
    pub fn propose(&mut self, data: Vec<u8>) -> Result<(), Refusal> {
        if self.role() != Role::Leader || data.is_empty() {
            return Err(Refusal::NotAccepted);
        }
        self.node.propose(Vec::new(), data).map_err(|_| Refusal::NotAccepted)
    }

    /// Campaigns if no leader is known: voters that did not know yet that the leader has ended have refused
    /// their votes. A candidate whose votes are being synced waits for them: votes of an earlier campaign do
    /// not count.
    pub fn campaign_again(&mut self) {
        let raft = &self.node.raft;
        let is_wanted = match raft.state {
            StateRole::PreCandidate => true,
            StateRole::Candidate => raft.prs().tally_votes().1 > 0,
            StateRole::Follower => raft.leader_id == raft::INVALID_ID,
            StateRole::Leader => false,
        };
        if is_wanted {
            self.campaign();
            self.replace_timeout();
        }
    }

    /// Campaigns, unless a snapshot is being written: `raft` stops its process when it looks for entries that
    /// the snapshot has replaced.
    fn campaign(&mut self) {
        if !self.writes_snapshot() {
            // The voter is no candidate in the only case of an error: it is no voter any longer.
            let _ = self.node.campaign();
        }
    }

    /// Whether a snapshot from the leader is not on disk yet.
    fn writes_snapshot(&self) -> bool {
        self.node.store().snapshot.get_metadata().index > self.node.raft.raft_log.applied
    }

    /// Proposes another set of voters.
    ///
    /// # Errors
    /// [`Refusal::NotAccepted`]: also while another change of voters is under way.
    pub fn propose_voters(&mut self, voters: &VoterSet) -> Result<(), Refusal> {
        let raft = &self.node.raft;
        let conf = raft.prs().conf().to_conf_state();
        if self.role() != Role::Leader || raft.has_pending_conf() || is_joint(&conf) {
            return Err(Refusal::NotAccepted);
        }
        let change = voters.change_from(&conf);
        let mut encoded = Vec::new();
        voters.encode(&mut encoded);
        self.node.propose_conf_change(encoded, change).map_err(|_| Refusal::NotAccepted)
    }

    /// Gives the leadership to another voter, before this one stops.
    pub fn transfer_leadership(&mut self, to: VoterId) {
        self.node.transfer_leader(to.0);
    }

    /// The link to the leader was reset, and the leader refused a new one: its process has ended. The voter
    /// forgets the leader, so that it can vote immediately, and the first voter by rank campaigns.
    pub fn note_leader_ended(&mut self, leader: VoterId) {
        if self.role() != Role::Follower(Some(leader)) {
            return;
        }
        self.node.raft.become_follower(self.node.raft.term, raft::INVALID_ID);
        let mut living = self.voters.voters().iter().filter(|voter| **voter != leader);
        if living.next() == Some(&self.voter) {
            self.campaign();
        }
        self.replace_timeout();
    }

    /// Replaces the entries that were applied by the state of the application after them. The user has
    /// applied all entries of the outputs that it took.
    pub fn compact(&mut self, state: &[u8]) {
        if self.applied <= self.node.store().snapshot.get_metadata().index {
            return;
        }
        let term = self.node.raft.raft_log.term(self.applied).expect("an applied entry has a term");
        let mut data = Vec::new();
        self.voters.encode(&mut data);
        data.extend_from_slice(state);
        let mut snapshot = Snapshot { data: data.into(), ..Snapshot::default() };
        let metadata = snapshot.mut_metadata();
        metadata.index = self.applied;
        metadata.term = term;
        metadata.set_conf_state(self.node.raft.prs().conf().to_conf_state());
        self.node.mut_store().compact(snapshot);
        self.writes_image = true;
    }

    /// Number of bytes of the file in use. The user calls [`Replica::compact`] when they have become many.
    pub fn file_bytes(&self) -> u64 {
        self.position.offset
    }

    /// The write with this number is on disk, and so are all writes before it.
    pub fn note_written(&mut self, number: u64) {
        let mut last = None;
        while let Some(unwritten) = self.unwritten.front() {
            if unwritten.number > number && unwritten.is_write {
                break;
            }
            let unwritten = self.unwritten.pop_front().expect("the front exists");
            last = Some(unwritten.number);
            self.sendable.extend(unwritten.messages);
        }
        if let Some(last) = last {
            self.node.on_persist_ready(last);
            self.advance_applied();
        }
    }

    /// The next work for the user. Called after each other call until it is empty.
    pub fn take_output(&mut self) -> Output {
        if let Some(first) = self.first.take() {
            return first;
        }
        let mut output = Output::default();
        if self.node.has_ready() || self.writes_image {
            let ready = self.node.ready();
            self.take_ready(ready, &mut output);
        }
        let messages = std::mem::take(&mut self.sendable);
        output
            .send
            .extend(messages.iter().filter_map(|message| Some((VoterId(message.to), message::encode(message)?))));
        self.replace_timeout();
        output
    }

    fn take_ready(&mut self, mut ready: Ready, output: &mut Output) {
        self.sendable.append(&mut ready.take_messages());
        let mut change = Change { entries: ready.take_entries(), ..Change::default() };
        if let Some(state) = ready.hs() {
            let old = &self.node.store().hard_state;
            // A restarted voter learns the commit index from the leader, but it is never below that of a
            // snapshot or of a change of the voters.
            if (old.term, old.vote) != (state.term, state.vote) || !ready.snapshot().is_empty() {
                change.hard_state = Some(state.clone());
            }
            self.node.mut_store().hard_state = state.clone();
        }
        let entries = ready.take_committed_entries();
        // A restarted voter counts votes by the sets of voters that it knows to be committed. By an older
        // set, voters that were replaced would count as lost.
        if entries.iter().any(changes_voters) {
            change.hard_state = Some(self.node.store().hard_state.clone());
        }
        if !ready.snapshot().is_empty() {
            change.snapshot = Some(ready.snapshot().clone());
            output.state = self.note_snapshot(ready.snapshot());
            self.applied = ready.snapshot().get_metadata().index;
        }
        output.appended = change.entries.iter().map(appended).collect();
        self.node.mut_store().apply(&change).expect("raft appends entries without a gap");
        let number = ready.number();
        output.write = self.write_of(number, &change);
        let is_write = output.write.is_some();
        let (free, messages) = ready.take_persisted_messages().into_iter().partition(promises_nothing);
        self.sendable.extend::<Vec<Message>>(free);
        self.node.advance_append_async(ready);
        self.unwritten.push_back(Unwritten { number, is_write, messages });
        if !is_write && self.unwritten.iter().all(|unwritten| !unwritten.is_write) {
            self.note_written(number);
        }
        for entry in entries {
            output.committed.extend(self.apply(&entry));
            self.applied = entry.index;
        }
        self.advance_applied();
    }

    /// Tells `raft` what was applied. A snapshot counts only when it is written.
    fn advance_applied(&mut self) {
        let log = &self.node.raft.raft_log;
        if self.applied <= log.persisted {
            self.node.advance_apply_to(self.applied);
        }
    }

    fn write_of(&mut self, number: u64, change: &Change) -> Option<Write> {
        let position = &mut self.position;
        let is_image = std::mem::take(&mut self.writes_image);
        let image;
        let change = if is_image {
            let is_first = position.generation == 0;
            *position = WritePosition {
                generation: position.generation + 1,
                sequence: 0,
                file: if is_first { 0 } else { 1 - position.file },
                offset: 0,
            };
            image = self.node.store().image();
            &image
        } else {
            change
        };
        if change.is_empty() {
            return None;
        }
        let WritePosition { generation, sequence, file, offset } = *position;
        let bytes = encode_chunk(ChunkId { voter: self.voter, generation, sequence }, change);
        position.sequence += 1;
        position.offset += bytes.len() as u64;
        Some(Write { number, file, offset, bytes })
    }

    fn apply(&mut self, entry: &Entry) -> Option<Committed> {
        match entry.get_entry_type() {
            EntryType::EntryNormal if entry.data.is_empty() => None,
            EntryType::EntryNormal => Some(Committed::Value { index: entry.index, data: entry.data.to_vec() }),
            EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => self.apply_voters(entry),
        }
    }

    /// An entry without voters leaves the step between two sets. `raft` proposes it by itself.
    fn apply_voters(&mut self, entry: &Entry) -> Option<Committed> {
        let current = self.node.raft.prs().conf().to_conf_state();
        let voters = VoterSet::decode(&mut Reader::new(&entry.context)).ok();
        let change = voters.as_ref().map(|voters| voters.change_from(&current)).unwrap_or_default();
        self.node.apply_conf_change(&change).expect("the leader has checked the change of voters");
        let voters = voters?;
        self.voters = voters.clone();
        Some(Committed::Voters { index: entry.index, voters })
    }

    /// Takes the voters from a snapshot. `None` for the empty log of a voter that joins.
    fn note_snapshot(&mut self, snapshot: &Snapshot) -> Option<State> {
        let mut reader = Reader::new(&snapshot.data);
        self.voters = VoterSet::decode(&mut reader).ok()?;
        let data = reader.rest().to_vec();
        Some(State { index: snapshot.get_metadata().index, data })
    }

    /// Sets a timeout of ours if `raft` has set one of its own.
    fn replace_timeout(&mut self) {
        if self.role() == Role::Leader || matches!(self.role(), Role::Follower(Some(_))) {
            self.campaigns = 0;
        }
        if self.node.raft.randomized_election_timeout() <= TIMEOUT_TICKS_MAX {
            return;
        }
        let rank = self.voters.rank(self.voter).unwrap_or(RANK_TICKS_MAX);
        // Voters whose elections collide draw their timeouts, from a range that grows.
        let factor = if self.node.raft.state == StateRole::Candidate { CANDIDATE_FACTOR } else { 1 };
        let range = u64::from(self.campaigns.min(4)) * self.election_ticks as u64;
        let ticks = self.election_ticks * factor + rank.min(RANK_TICKS_MAX) + self.random.below(range + 1) as usize;
        self.node.raft.set_randomized_election_timeout(ticks);
    }
}

/// Whether a message may leave before the writes that come before it are synced. The answer to a heartbeat
/// says that the voter lives, and nothing follows from a vote before the vote. A leader whose voters have
/// slow disks would step down without these answers.
fn promises_nothing(message: &Message) -> bool {
    let kind = message.get_msg_type();
    use raft::eraftpb::MessageType::{MsgHeartbeatResponse, MsgRequestPreVote, MsgRequestPreVoteResponse};
    matches!(kind, MsgHeartbeatResponse | MsgRequestPreVote | MsgRequestPreVoteResponse)
}

fn changes_voters(entry: &Entry) -> bool {
    matches!(entry.get_entry_type(), EntryType::EntryConfChange | EntryType::EntryConfChangeV2)
}

fn appended(entry: &Entry) -> Appended {
    let is_value = entry.get_entry_type() == EntryType::EntryNormal;
    let data = if is_value { entry.data.to_vec() } else { Vec::new() };
    Appended { index: entry.index, term: entry.term, data }
}

fn is_joint(state: &ConfState) -> bool {
    !state.voters_outgoing.is_empty()
}

impl fmt::Debug for Replica {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut structure = formatter.debug_struct("Replica");
        structure.field("voter", &self.voter).field("role", &self.role()).field("term", &self.term());
        structure.field("applied", &self.applied).finish_non_exhaustive()
    }
}
