//! Voters, their links and their files, in time that the test moves.

use std::collections::BTreeMap;

use junctor_kernel::random::Random;

use crate::disk::BLOCK_BYTES;
use crate::replica::ELECTION_TICKS_MIN;
use crate::{Committed, Output, Refusal, Replica, Role, Settings, VoterId, VoterSet, Write, recover};

/// Steps of time in a tick.
pub const TICK_STEPS: u64 = 5;
/// The kind of message that has a snapshot.
const SNAPSHOT_KIND: u8 = 5;
/// Bytes of a file at which a voter compacts its log.
const FILE_BYTES_MAX: u64 = 16 * BLOCK_BYTES as u64;

/// How badly the environment behaves. Each number is one in so many chances; 0 is never.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub loss: u64,
    pub repeat: u64,
    /// Maximum additional delay of a message, in steps.
    pub delay_max: u64,
}

/// Messages arrive, each in one to three steps.
pub const NONE: Faults = Faults { loss: 0, repeat: 0, delay_max: 2 };

#[derive(Debug)]
struct InFlight {
    arrives: u64,
    from: VoterId,
    to: VoterId,
    bytes: Vec<u8>,
}

/// A voter's disk: the files as they are after a loss of power, and the writes that are not synced.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub files: [Vec<u8>; 2],
    pending: Vec<(u64, Write)>,
}

impl Disk {
    fn perform(&mut self, write: &Write, bytes: usize) {
        let file = &mut self.files[write.file];
        let offset = write.offset as usize;
        let end = offset + bytes;
        if file.len() < end {
            file.resize(end, 0);
        }
        file[offset..end].copy_from_slice(&write.bytes[..bytes]);
    }

    /// Some blocks of the oldest write that is not synced reach the disk.
    fn lose_power(&mut self, random: &mut Random) {
        let pending = std::mem::take(&mut self.pending);
        if let Some((_, write)) = pending.first() {
            let blocks = random.below(write.bytes.len() as u64 / BLOCK_BYTES as u64 + 1);
            self.perform(write, blocks as usize * BLOCK_BYTES);
        }
    }
}

/// The state that the values of the log describe: all values, in order.
pub type Values = Vec<Vec<u8>>;

pub struct Node {
    pub replica: Option<Replica>,
    pub disk: Disk,
    pub values: Values,
    /// Whether its program processes nothing at present.
    pub is_paused: bool,
}

pub struct Cluster {
    pub nodes: BTreeMap<VoterId, Node>,
    pub random: Random,
    pub faults: Faults,
    pub now: u64,
    /// A planted bug: voters answer before their writes are synced.
    pub answers_early: bool,
    /// Additional steps of each sync.
    pub sync_delay: u64,
    in_flight: Vec<InFlight>,
    /// Pairs whose messages are dropped, one way.
    cut: Vec<(VoterId, VoterId)>,
    /// The values that any voter has applied, by index.
    agreed: BTreeMap<u64, Vec<u8>>,
    /// Leaders by term.
    leaders: BTreeMap<u64, VoterId>,
}

fn encode_state(values: &Values) -> Vec<u8> {
    let mut out = Vec::new();
    for value in values {
        out.push(value.len() as u8);
        out.extend_from_slice(value);
    }
    out
}

fn decode_state(mut bytes: &[u8]) -> Values {
    let mut values = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (value, rest) = rest.split_at(usize::from(*length));
        values.push(value.to_vec());
        bytes = rest;
    }
    values
}

pub fn ids(range: impl IntoIterator<Item = u64>) -> Vec<VoterId> {
    range.into_iter().map(VoterId).collect()
}

impl Cluster {
    /// A new cluster of voters 1 to `count`.
    pub fn new(count: u64, seed: u64) -> Cluster {
        let voters = VoterSet::new(ids(1..=count)).unwrap();
        let mut cluster = Cluster {
            nodes: BTreeMap::new(),
            random: Random::new(seed),
            faults: NONE,
            now: 0,
            answers_early: false,
            sync_delay: 0,
            in_flight: Vec::new(),
            cut: Vec::new(),
            agreed: BTreeMap::new(),
            leaders: BTreeMap::new(),
        };
        for voter in voters.voters() {
            let replica = Replica::new(&cluster.settings(*voter), &voters, &[]);
            cluster.insert(*voter, replica);
        }
        cluster
    }

    fn settings(&mut self, voter: VoterId) -> Settings {
        Settings { voter, seed: self.random.word(), election_ticks: ELECTION_TICKS_MIN }
    }

    fn insert(&mut self, voter: VoterId, replica: Replica) {
        let node = Node { replica: Some(replica), disk: Disk::default(), values: Values::new(), is_paused: false };
        self.nodes.insert(voter, node);
    }

    /// Adds a voter that knows nothing.
    pub fn join(&mut self, voter: VoterId) {
        let settings = self.settings(voter);
        self.insert(voter, Replica::joining(&settings));
    }

    /// Ends the process of a voter.
    pub fn kill(&mut self, voter: VoterId) {
        let node = self.nodes.get_mut(&voter).unwrap();
        node.replica = None;
        node.values.clear();
        node.is_paused = false;
        node.disk.lose_power(&mut self.random);
    }

    /// Ends the process of a voter. Its links are reset, and the others notice.
    pub fn kill_noticed(&mut self, voter: VoterId) {
        self.kill(voter);
        self.in_flight.retain(|message| message.from != voter);
        for other in self.living() {
            self.with(other, |replica| replica.note_leader_ended(voter));
        }
    }

    /// Starts a voter whose process has ended.
    pub fn restart(&mut self, voter: VoterId) {
        let settings = self.settings(voter);
        let node = self.nodes.get_mut(&voter).unwrap();
        assert!(node.replica.is_none());
        let [first, second] = &node.disk.files;
        let replica = match recover(voter, [first, second]).expect("no synced byte has changed") {
            Some(recovered) => {
                node.disk.files[recovered.file].truncate(recovered.end);
                Replica::restarted(&settings, recovered)
            }
            None => Replica::joining(&settings),
        };
        node.replica = Some(replica);
    }

    pub fn living(&self) -> Vec<VoterId> {
        let nodes = self.nodes.iter();
        nodes.filter(|(_, node)| node.replica.is_some() && !node.is_paused).map(|(id, _)| *id).collect()
    }

    pub fn replica(&self, voter: VoterId) -> &Replica {
        self.nodes[&voter].replica.as_ref().unwrap()
    }

    pub fn cut(&mut self, from: VoterId, to: VoterId) {
        self.cut.push((from, to));
    }

    pub fn heal(&mut self) {
        self.cut.clear();
        self.faults = NONE;
    }

    /// The leader of the highest term among living voters.
    pub fn leader(&self) -> Option<VoterId> {
        let living = self.living().into_iter().filter(|id| self.replica(*id).role() == Role::Leader);
        living.max_by_key(|id| self.replica(*id).term())
    }

    /// Runs a call to a living voter, and its output.
    pub fn with<T>(&mut self, voter: VoterId, call: impl FnOnce(&mut Replica) -> T) -> T {
        let result = call(self.nodes.get_mut(&voter).unwrap().replica.as_mut().unwrap());
        self.take_outputs(voter);
        result
    }

    fn take_outputs(&mut self, voter: VoterId) {
        loop {
            let node = self.nodes.get_mut(&voter).unwrap();
            let replica = node.replica.as_mut().unwrap();
            let Output { send, write, state, committed, .. } = replica.take_output();
            if replica.role() == Role::Leader {
                let leader = *self.leaders.entry(replica.term()).or_insert(voter);
                assert_eq!(leader, voter, "two leaders in term {}", replica.term());
            }
            let is_done = send.is_empty() && write.is_none() && state.is_none() && committed.is_empty();
            for (to, bytes) in send {
                self.send(voter, to, bytes);
            }
            let synced_at = self.now + 1 + self.sync_delay + self.random.below(3);
            let node = self.nodes.get_mut(&voter).unwrap();
            if let Some(write) = write {
                if self.answers_early {
                    node.replica.as_mut().unwrap().note_written(write.number);
                }
                node.disk.pending.push((synced_at, write));
            }
            let has_new_voters = committed.iter().any(|it| matches!(it, Committed::Voters { .. }));
            if let Some(state) = state {
                self.nodes.get_mut(&voter).unwrap().values = decode_state(&state.data);
            }
            for committed in committed {
                self.apply(voter, committed);
            }
            let node = self.nodes.get_mut(&voter).unwrap();
            let replica = node.replica.as_mut().unwrap();
            if has_new_voters || replica.file_bytes() > FILE_BYTES_MAX {
                replica.compact(&encode_state(&node.values));
            }
            if is_done {
                return;
            }
        }
    }

    fn apply(&mut self, voter: VoterId, committed: Committed) {
        let node = self.nodes.get_mut(&voter).unwrap();
        match committed {
            Committed::Value { index, data } => {
                let agreed = self.agreed.entry(index).or_insert_with(|| data.clone());
                assert_eq!(*agreed, data, "voters disagree on entry {index}");
                node.values.push(data);
            }
            Committed::Voters { .. } => (),
        }
    }

    fn send(&mut self, from: VoterId, to: VoterId, bytes: Vec<u8>) {
        if self.random.one_in(self.faults.loss) {
            return;
        }
        let copies = 1 + u64::from(self.random.one_in(self.faults.repeat));
        for _ in 0..copies {
            let arrives = self.now + 1 + self.random.below(self.faults.delay_max + 1);
            self.in_flight.push(InFlight { arrives, from, to, bytes: bytes.clone() });
        }
    }

    /// Loses the snapshots on their way. Returns whether there were any.
    pub fn lose_snapshots(&mut self) -> bool {
        let before = self.in_flight.len();
        self.in_flight.retain(|message| message.bytes[1] != SNAPSHOT_KIND);
        self.in_flight.len() < before
    }

    /// Moves time by one step.
    pub fn step(&mut self) {
        self.now += 1;
        let now = self.now;
        let (arrived, rest) = std::mem::take(&mut self.in_flight).into_iter().partition(|it| it.arrives <= now);
        self.in_flight = rest;
        let arrived: Vec<InFlight> = arrived;
        for InFlight { from, to, bytes, .. } in arrived {
            let is_alive = self.nodes.get(&to).is_some_and(|node| node.replica.is_some() && !node.is_paused);
            if is_alive && !self.cut.contains(&(from, to)) {
                self.with(to, |replica| replica.receive(from, &bytes)).expect("voters understand each other");
            }
        }
        for voter in self.living() {
            self.sync(voter);
            if now.is_multiple_of(TICK_STEPS) {
                self.with(voter, Replica::tick);
            }
        }
    }

    fn sync(&mut self, voter: VoterId) {
        let now = self.now;
        loop {
            let node = self.nodes.get_mut(&voter).unwrap();
            let is_due = node.disk.pending.first().is_some_and(|(at, _)| *at <= now);
            if !is_due {
                return;
            }
            let (_, write) = node.disk.pending.remove(0);
            let bytes = write.bytes.len();
            node.disk.perform(&write, bytes);
            if !self.answers_early {
                self.with(voter, |replica| replica.note_written(write.number));
            }
        }
    }

    pub fn run(&mut self, steps: u64) {
        (0..steps).for_each(|_| self.step());
    }

    /// Steps until the condition holds. Returns their number.
    pub fn run_until(&mut self, steps_max: u64, mut condition: impl FnMut(&Cluster) -> bool) -> u64 {
        for step in 0..steps_max {
            if condition(self) {
                return step;
            }
            self.step();
        }
        panic!("the condition does not hold after {steps_max} steps");
    }

    /// Proposes a value at the leader.
    pub fn propose(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let leader = self.leader().ok_or(Refusal::NotAccepted)?;
        self.with(leader, |replica| replica.propose(value.to_vec()))
    }
}
