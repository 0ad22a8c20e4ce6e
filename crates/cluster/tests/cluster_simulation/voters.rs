//! The voters: raft of `crates/consensus` with its own timeouts, over links that lose, repeat and delay
//! messages, with files that lose what is not synced.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_cluster::membership::lease::{BootTime, EvictionReport, LeaseVoter, RequestLease, RequestLeaseReply};
use junctor_cluster::membership::replication::{Entry, NotProposed, VoterOutput, node_of, voter_id};
use junctor_cluster::membership::{Membership, MembershipChange, NodeSet, Replication};
use junctor_consensus::{Role, Settings, VoterId, VoterSet, Write, recover};
use junctor_kernel::{NodeId, Random};

use super::message::{Bug, FIRST_VOTER, VOTERS};

/// A tick by a voter's clock, in nanoseconds.
const TICK: u64 = 5_000_000;
const BLOCK_BYTES: usize = 4096;

pub struct Voter {
    /// `None` while its process is down.
    pub part: Option<Replication>,
    /// Grants leases in place of `part` if a bug keeps evictions from it.
    blind: LeaseVoter,
    rate: u64,
    files: [Vec<u8>; 2],
    /// Writes, with the times at which they are on disk.
    unsynced: VecDeque<(u64, Write)>,
    next_tick: u64,
    paused_until: u64,
    restarts_at: u64,
}

impl Voter {
    fn clock(&self, now: u64) -> BootTime {
        BootTime(now / 1000 * self.rate)
    }

    /// Its part while it processes anything.
    fn running(&mut self, now: u64) -> Option<&mut Replication> {
        self.part.as_mut().filter(|_| self.paused_until <= now)
    }
}

#[derive(Clone)]
enum Message {
    Raft(Vec<u8>),
    Report(EvictionReport),
}

struct InFlight {
    arrives: u64,
    from: usize,
    to: usize,
    message: Message,
}

pub struct Raft {
    voters: Vec<Voter>,
    /// The committed entries.
    history: Vec<Entry>,
    /// Entries that a leader has proposed, and that may still be committed.
    proposed: Vec<Entry>,
    in_flight: Vec<InFlight>,
    /// Links that carry nothing until a time, one way.
    cuts: Vec<((usize, usize), u64)>,
    first: Membership,
    pub bug: Bug,
    /// Whether voters and links fail.
    pub is_disturbed: bool,
    pub elections: u64,
    pub restarts: u64,
    term: u64,
}

pub fn voter_ids() -> NodeSet {
    (0..VOTERS).map(|index| NodeId(FIRST_VOTER + index)).collect()
}

fn id_of(index: usize) -> VoterId {
    voter_id(NodeId(FIRST_VOTER + index as u8), 1)
}

fn index_of(voter: NodeId) -> usize {
    usize::from(voter.0 - FIRST_VOTER)
}

impl Raft {
    pub fn new(first: Membership, rates: &[u64], random: &mut Random, bug: Bug) -> Raft {
        let entry = Entry { id: Default::default(), membership: Arc::new(first.clone()) };
        let mut raft = Raft {
            voters: Vec::new(),
            history: vec![entry],
            proposed: Vec::new(),
            in_flight: Vec::new(),
            cuts: Vec::new(),
            first,
            bug,
            is_disturbed: true,
            elections: 0,
            restarts: 0,
            term: 0,
        };
        for (index, rate) in rates.iter().enumerate() {
            let mut blind = LeaseVoter::new(NodeId(FIRST_VOTER + index as u8), BootTime(0));
            blind.on_append(Default::default(), &raft.first);
            let part = raft.new_voter(index, BootTime(0), random);
            raft.voters.push(Voter {
                part: Some(part),
                blind,
                rate: *rate,
                files: Default::default(),
                unsynced: VecDeque::new(),
                next_tick: random.below(TICK),
                paused_until: 0,
                restarts_at: 0,
            });
        }
        raft
    }

    fn new_voter(&self, index: usize, clock: BootTime, random: &mut Random) -> Replication {
        let voters = VoterSet::new((0..usize::from(VOTERS)).map(id_of).collect()).expect("a set of voters");
        let settings = Settings { voter: id_of(index), seed: random.word(), election_ticks: 4 };
        Replication::new(&settings, &voters, &self.first, clock)
    }

    pub fn committed(&self) -> &Arc<Membership> {
        &self.history[self.history.len() - 1].membership
    }

    pub fn history(&self) -> impl Iterator<Item = &Arc<Membership>> {
        self.history.iter().map(|entry| &entry.membership)
    }

    /// The memberships that may still be committed.
    pub fn possible(&self) -> impl Iterator<Item = &Arc<Membership>> {
        self.proposed.iter().map(|entry| &entry.membership).chain([self.committed()])
    }

    fn leader_index(&self) -> Option<usize> {
        let term = |index: &usize| {
            let part = self.voters[*index].part.as_ref()?;
            part.is_leader().then(|| part.replica().term())
        };
        (0..self.voters.len()).filter(|index| term(index).is_some()).max_by_key(term)
    }

    /// The membership that the leader has committed, if its log has nothing else. It may be a leader that
    /// does not know its successor.
    pub fn leaders_membership(&self) -> Option<Arc<Membership>> {
        let part = self.voters[self.leader_index()?].part.as_ref()?;
        part.membership().filter(|_| part.uncommitted().is_empty()).cloned()
    }

    /// Whether nothing but the committed entries may be committed.
    pub fn is_idle(&self) -> bool {
        self.proposed.is_empty() && self.leaders_membership().is_some_and(|it| it == *self.committed())
    }

    /// Proposes a change at the leader.
    pub fn propose(&mut self, change: &MembershipChange, now: u64, random: &mut Random) -> Result<(), NotProposed> {
        let leader = self.leader_index().ok_or(NotProposed::NotAccepted)?;
        let part = self.voters[leader].running(now).ok_or(NotProposed::NotAccepted)?;
        part.propose(change)?;
        self.take_outputs(leader, now, random);
        let part = self.voters[leader].part.as_ref().expect("the leader is alive");
        let committed = self.history[self.history.len() - 1].id;
        let added = part.uncommitted().iter().filter(|entry| entry.id > committed && !self.proposed.contains(entry));
        let added: Vec<Entry> = added.cloned().collect();
        self.proposed.extend(added);
        Ok(())
    }

    /// Runs what is due.
    pub fn step(&mut self, now: u64, random: &mut Random) {
        self.cuts.retain(|(_, until)| *until > now);
        let (arrived, rest) = std::mem::take(&mut self.in_flight).into_iter().partition(|it| it.arrives <= now);
        self.in_flight = rest;
        let arrived: Vec<InFlight> = arrived;
        arrived.into_iter().for_each(|message| self.deliver(message, now, random));
        for index in 0..self.voters.len() {
            let voter = &mut self.voters[index];
            if voter.part.is_none() && voter.restarts_at <= now {
                self.restart(index, now, random);
            }
            let voter = &mut self.voters[index];
            if voter.running(now).is_none() {
                continue;
            }
            if voter.unsynced.front().is_some_and(|(due, _)| *due <= now) {
                self.sync(index, now, random);
            }
            let clock = self.voters[index].clock(now);
            if clock.0 >= self.voters[index].next_tick {
                self.tick(index, clock, now, random);
            }
        }
    }

    fn tick(&mut self, index: usize, clock: BootTime, now: u64, random: &mut Random) {
        let voter = &mut self.voters[index];
        // A voter that was paused does not make up for the ticks.
        voter.next_tick = clock.0 + TICK;
        let part = voter.part.as_mut().expect("it runs");
        part.tick();
        if let Some((leader, report)) = part.next_eviction_report(clock) {
            self.send((index, index_of(leader)), Message::Report(report), now, random);
        }
        self.take_outputs(index, now, random);
    }

    fn deliver(&mut self, InFlight { from, to, message, .. }: InFlight, now: u64, random: &mut Random) {
        let voter = &mut self.voters[to];
        if voter.paused_until > now {
            let arrives = voter.paused_until;
            return self.in_flight.push(InFlight { arrives, from, to, message });
        }
        let Some(part) = voter.part.as_mut().filter(|_| !self.cuts.iter().any(|(link, _)| *link == (from, to))) else {
            return;
        };
        match message {
            Message::Raft(bytes) => part.receive(id_of(from), &bytes).expect("voters understand each other"),
            Message::Report(report) => part.on_eviction_report(&report),
        }
        self.take_outputs(to, now, random);
    }

    fn send(&mut self, (from, to): (usize, usize), message: Message, now: u64, random: &mut Random) {
        let copies = match self.is_disturbed {
            true => u64::from(!random.one_in(50)) + u64::from(random.one_in(50)),
            false => 1,
        };
        for _ in 0..copies {
            let delay_max = if self.is_disturbed && random.one_in(50) { 20_000_000 } else { 400_000 };
            let arrives = now + 20_000 + random.below(delay_max);
            self.in_flight.push(InFlight { arrives, from, to, message: message.clone() });
        }
    }

    fn take_outputs(&mut self, index: usize, now: u64, random: &mut Random) {
        loop {
            let part = self.voters[index].part.as_mut().expect("it runs");
            let output = part.take_output();
            if part.is_leader() && part.replica().term() > self.term {
                self.term = part.replica().term();
                self.elections += 1;
            }
            if output == VoterOutput::default() {
                return;
            }
            for (to, bytes) in output.send {
                self.send((index, index_of(node_of(to))), Message::Raft(bytes), now, random);
            }
            if let Some(write) = output.write {
                let voter = &mut self.voters[index];
                if self.bug == Bug::AnswersBeforeSync {
                    voter.part.as_mut().expect("it runs").note_written(write.number);
                }
                let last = voter.unsynced.back().map_or(0, |(due, _)| *due);
                let duration_max = if self.is_disturbed && random.one_in(20) { 30_000_000 } else { 2_000_000 };
                voter.unsynced.push_back((last.max(now) + 50_000 + random.below(duration_max), write));
            }
            output.committed.into_iter().for_each(|entry| self.note_committed(entry));
            let replica = self.voters[index].part.as_ref().expect("it runs").replica();
            let term = replica.term();
            if replica.role() == Role::Leader && replica.has_entry(replica.applied(), term) {
                // No later leader lacks this leader's entries, so older entries that it lacks are lost. There
                // may be a later leader already.
                self.proposed.retain(|proposed| proposed.id.term >= term);
            }
        }
    }

    /// Voters agree on every entry.
    fn note_committed(&mut self, entry: Entry) {
        let last = self.history[self.history.len() - 1].id;
        if entry.id.index > last.index {
            self.proposed.retain(|proposed| proposed.id.index > entry.id.index);
            return self.history.push(entry);
        }
        let position = self.history.binary_search_by_key(&entry.id.index, |own| own.id.index);
        let known = position.map(|position| &self.history[position]);
        assert_eq!(known, Ok(&entry), "voters agree on a committed entry");
    }

    fn sync(&mut self, index: usize, now: u64, random: &mut Random) {
        let voter = &mut self.voters[index];
        while let Some((_, write)) = voter.unsynced.pop_front_if(|(due, _)| *due <= now) {
            perform(&mut voter.files, &write, write.bytes.len());
            if self.bug != Bug::AnswersBeforeSync {
                voter.part.as_mut().expect("it runs").note_written(write.number);
            }
        }
        self.take_outputs(index, now, random);
    }

    fn restart(&mut self, index: usize, now: u64, random: &mut Random) {
        self.restarts += 1;
        let voter = &mut self.voters[index];
        voter.next_tick = 0;
        let clock = voter.clock(now);
        let settings = Settings { voter: id_of(index), seed: random.word(), election_ticks: 4 };
        let [first, second] = &voter.files;
        let part = match recover(id_of(index), [first, second]).expect("no synced byte has changed") {
            Some(recovered) => {
                voter.files[recovered.file].truncate(recovered.end);
                Replication::restarted(&settings, recovered, clock)
            }
            None => self.new_voter(index, clock, random),
        };
        self.voters[index].part = Some(part);
        self.take_outputs(index, now, random);
    }

    /// A voter dies, is paused, or is cut off from another one.
    pub fn fault(&mut self, now: u64, random: &mut Random) {
        let index = random.below(self.voters.len() as u64) as usize;
        let until = now + random.below(200_000_000);
        match random.below(4) {
            0 if self.voters[index].part.is_some() => self.kill(index, now, random),
            1 => self.voters[index].paused_until = now + random.below(60_000_000),
            2 => self.cuts.push(((index, random.below(self.voters.len() as u64) as usize), until)),
            _ => {
                // Nodes still reach it.
                let others = 0..self.voters.len();
                self.cuts.extend(others.flat_map(|other| [((index, other), until), ((other, index), until)]));
            }
        }
    }

    fn kill(&mut self, index: usize, now: u64, random: &mut Random) {
        let voter = &mut self.voters[index];
        voter.part = None;
        voter.paused_until = 0;
        let duration_max = if random.one_in(2) { 2_000_000 } else { 100_000_000 };
        voter.restarts_at = now + random.below(duration_max);
        if let Some((_, write)) = voter.unsynced.pop_front() {
            // Some of its blocks reach the disk.
            let blocks = random.below((write.bytes.len() / BLOCK_BYTES) as u64 + 1) as usize;
            perform(&mut voter.files, &write, blocks * BLOCK_BYTES);
        }
        voter.unsynced.clear();
        if random.one_in(2) {
            // Its links are reset, and the others notice.
            for other in (0..self.voters.len()).filter(|other| *other != index) {
                if let Some(part) = self.voters[other].running(now) {
                    part.note_leader_ended(id_of(index));
                    self.take_outputs(other, now, random);
                }
            }
        }
    }

    /// Ends the faults.
    pub fn calm(&mut self) {
        self.is_disturbed = false;
        self.cuts.clear();
        self.voters.iter_mut().for_each(|voter| voter.paused_until = 0);
    }

    pub fn on_request_lease(&mut self, voter: u8, now: u64, request: &RequestLease) -> Option<RequestLeaseReply> {
        let voter = &mut self.voters[index_of(NodeId(voter))];
        let clock = voter.clock(now);
        voter.running(now)?;
        match self.bug {
            Bug::GrantAfterEviction => voter.blind.on_request(clock, request),
            _ => voter.part.as_mut()?.on_request_lease(clock, request),
        }
    }

    /// The epoch whose evicted nodes have no lease any more, by the leader.
    pub fn leases_over(&mut self, now: u64) -> Option<Arc<Membership>> {
        let leader = self.leader_index()?;
        self.voters[leader].running(now)?.leases_over().cloned()
    }
}

fn perform(files: &mut [Vec<u8>; 2], write: &Write, bytes: usize) {
    let file = &mut files[write.file];
    let offset = write.offset as usize;
    if file.len() < offset + bytes {
        file.resize(offset + bytes, 0);
    }
    file[offset..offset + bytes].copy_from_slice(&write.bytes[..bytes]);
}
