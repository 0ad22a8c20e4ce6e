//! A model of the global durable cut: two groups of two replicas whose logs are synced one by one, nodes that
//! die, are evicted and join again, the loss of all nodes, and restarts from some of the disks, of which one
//! may have been put back to an older state. Every transaction writes both groups. Each deliberately broken
//! variant shows that the model would detect that error; `docs/decisions/0016-cluster-models.md` has the
//! counterexamples.
//!
//! Commits are one step here; `epoch_model` has their messages.
//!
//! Run with `cargo test -p junctor-cluster --test cut_model -- --nocapture` to see the state counts.

mod checking;

use stateright::{Model, Property};

const NODES: usize = 4;
const GROUPS: [u8; 2] = [0b0011, 0b1100];
const ALL: u8 = 0b1111;
const TRANSACTIONS: usize = 3;
/// Memberships that one run can commit.
const EPOCHS: usize = 12;

/// The epoch in the upper four bits, a counter in the lower four.
type Number = u8;

const fn number(epoch: u8, counter: u8) -> Number {
    epoch << 4 | counter
}

fn nodes_of(mask: u8) -> impl Iterator<Item = usize> {
    (0..NODES).filter(move |node| mask & 1 << node != 0)
}

/// The designed protocol, or the rule that a broken variant breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Designed,
    /// A node is marked as durable before the sequencer waits for its syncs, as cluster-protocol.md has it.
    MarkedBeforeCounted,
    /// While a group has no durable node, S counts a node whatever its log covers.
    CountedWithoutPrefix,
    /// A counted node makes up for a durable one before raft has marked it.
    CountedMakesUp,
    /// A returning node obeys the latest cut only, a possible reading of cluster-protocol.md.
    LatestCutOnly,
    /// A group whose last durable node was evicted has none, as cluster-protocol.md has it.
    LastDurableForgotten,
    /// A disk counts without a look at the epoch in which its node has started last.
    OlderDiskCounts,
    /// The cut is the largest stable number of those present.
    CutIsMaximum,
    /// A commit is acknowledged when one node of each group has synced it.
    AcknowledgedByOneOfEach,
    /// A returning node recovers to its last stable number, whatever was cut.
    CutsIgnored,
    /// A node counts as durable although the disk of another marked node is older than its copy.
    CountedAboveOlderDisk,
    /// A node is marked although the disk of an evicted node of the other group, which keeps its mark, is
    /// older than its copy.
    MarkedBesideOlderDisk,
    /// A node is marked as durable before the checkpoint of its copy.
    MarkedBeforeCheckpoint,
    /// Disks of nodes that the last membership does not name as durable count.
    AnyMembershipCounts,
    /// Nodes start at the cut although raft has not committed the cut and its membership.
    CutNotCommitted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
struct Disk {
    /// The stable number of the last group of the log.
    stable: Number,
    /// The transactions up to there.
    content: u8,
    /// The epoch in which the node has started last.
    started: u8,
    /// The disk has no state below: it is the number of the copy that the node took when it joined.
    copied_at: Number,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
struct Node {
    is_up: bool,
    memory: u8,
    disk: Disk,
    /// The disk before the node's last start.
    earlier: Disk,
    /// Whether the log covers the node's memory. False between a copy and its checkpoint.
    has_checkpoint: bool,
    /// The number of the last copy.
    copied_at: Number,
}

/// The committed membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Membership {
    epoch: u8,
    serving: u8,
    /// Durable nodes, and of a group without one the last that was.
    durable: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    nodes: [Node; NODES],
    committed: Membership,
    /// The membership by which the sequencer works.
    installed: Membership,
    /// Nodes that the sequencer counts as durable before raft marks them.
    counted: u8,
    /// The last number before `installed`: every earlier answer is at or below it.
    prefix: Number,
    /// For each epoch that a restart of all began, its cut.
    cuts: [Option<Number>; EPOCHS],
    /// The epoch in which each node is known to have started.
    known_starts: [u8; NODES],
    numbers: [Number; TRANSACTIONS],
    /// Transactions whose client waits.
    waiting: u8,
    acknowledged: u8,
    /// The membership of a restart of all, until its nodes have recovered.
    restart: Option<(Membership, Number)>,
    crashes_left: u8,
    joins_left: u8,
    blackouts_left: u8,
    exchanges_left: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Commit,
    Sync {
        node: usize,
    },
    Acknowledge {
        transaction: usize,
    },
    Crash {
        node: usize,
    },
    Evict {
        node: usize,
    },
    Install,
    /// The node recovers, copies and serves.
    Join {
        node: usize,
    },
    Checkpoint {
        node: usize,
    },
    Count {
        node: usize,
    },
    MarkDurable {
        node: usize,
    },
    /// All nodes lose power.
    Blackout,
    /// The disk of a node that is down is put back to its state before the last start.
    PutBack {
        node: usize,
    },
    /// The nodes agree on a cut.
    Restart {
        present: u8,
    },
    /// A node discards all that is above the cut and starts.
    Recover {
        node: usize,
    },
}

#[derive(Clone, Debug)]
struct CutModel {
    transactions: usize,
    crashes: u8,
    joins: u8,
    blackouts: u8,
    exchanges: u8,
    /// Whether a node of each group has joined again and has no checkpoint of its copy yet.
    has_joined: bool,
    rule: Rule,
}

impl CutModel {
    /// Both groups have a durable node that has synced the first of two transactions, and a node that has
    /// copied both.
    fn join_one_of_each(&self, state: &mut State) {
        let disk = Disk { stable: 1, content: 0b01, ..Disk::default() };
        for node in &mut state.nodes {
            *node = Node { is_up: true, memory: 0b11, disk, has_checkpoint: true, ..Node::default() };
        }
        let joined = [0, 2];
        for node in joined {
            state.nodes[node] = Node { is_up: true, memory: 0b11, copied_at: 2, ..Node::default() };
        }
        (state.committed.durable, state.installed.durable) = (0b1010, 0b1010);
        state.numbers[..2].copy_from_slice(&[1, 2]);
        (state.acknowledged, state.waiting) = (0b01, 0b10);
    }

    fn is_running(&self, state: &State) -> bool {
        state.restart.is_none() && state.nodes.iter().any(|node| node.is_up)
    }

    /// The transactions up to a number.
    fn up_to(&self, state: &State, last: Number) -> u8 {
        let is_within = |it: &usize| state.numbers[*it] != 0 && state.numbers[*it] <= last;
        (0..TRANSACTIONS).filter(is_within).fold(0, |mask, it| mask | 1 << it)
    }

    /// The number to which a node alone can recover: its stable number, or a cut since its start.
    fn own_cut(&self, state: &State, node: usize) -> Number {
        let disk = &state.nodes[node].disk;
        let mut later = state.cuts.iter().skip(disk.started as usize + 1).flatten().copied();
        let cut = match self.rule {
            Rule::CutsIgnored => None,
            Rule::LatestCutOnly => later.next_back(),
            _ => later.min(),
        };
        cut.map_or(disk.stable, |cut| disk.stable.min(cut))
    }

    /// G of the specification, if every group has a durable node that serves.
    fn durable(&self, state: &State) -> Option<Number> {
        let marked = state.installed.durable & state.installed.serving;
        let counted = marked | state.counted;
        let synced = |mask: u8| nodes_of(mask).map(|node| state.nodes[node].disk.stable);
        let by_group = GROUPS.map(|group| match self.rule {
            Rule::AcknowledgedByOneOfEach => synced(counted & group).max(),
            Rule::CountedMakesUp => synced(counted & group).min(),
            _ if marked & group == 0 => None,
            _ => synced(counted & group).min(),
        });
        let [one, other] = by_group;
        Some(one?.min(other?))
    }

    fn running_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let has_all = nodes_of(state.installed.serving).all(|node| state.nodes[node].is_up);
        let taken = state.numbers.iter().filter(|it| **it != 0).count();
        if has_all && taken < self.transactions {
            actions.push(Action::Commit);
        }
        for transaction in 0..taken {
            let is_durable = self.durable(state) >= Some(state.numbers[transaction]);
            if is_durable && state.waiting & 1 << transaction != 0 {
                actions.push(Action::Acknowledge { transaction });
            }
        }
        if state.installed.epoch != state.committed.epoch {
            actions.push(Action::Install);
        }
        for node in 0..NODES {
            self.membership_actions(state, node, actions);
        }
    }

    fn membership_actions(&self, state: &State, node: usize, actions: &mut Vec<Action>) {
        let own = &state.nodes[node];
        let is_member = state.committed.serving & 1 << node != 0;
        let is_current = state.installed.epoch == state.committed.epoch;
        let mut peers = nodes_of(group_of(node) & state.committed.serving & !(1 << node));
        let has_peer = peers.any(|it| state.nodes[it].is_up);
        if !own.is_up {
            if is_member && has_peer {
                actions.push(Action::Evict { node });
            }
            let has_mark = state.committed.durable & 1 << node != 0;
            if !is_member && !has_mark && has_peer && is_current && state.joins_left > 0 {
                actions.push(Action::Join { node });
            }
            return;
        }
        if is_member && has_peer && state.crashes_left > 0 {
            actions.push(Action::Crash { node });
        }
        if own.has_checkpoint && self.synced(state, node) != own.disk {
            actions.push(Action::Sync { node });
        }
        if !own.has_checkpoint {
            actions.push(Action::Checkpoint { node });
        }
        let is_counted = (state.installed.durable | state.counted) & 1 << node != 0;
        let wanted = match self.durable(state) {
            None if self.rule != Rule::CountedWithoutPrefix => state.prefix,
            durable => durable.unwrap_or_default(),
        };
        let reaches = own.has_checkpoint && own.disk.stable >= wanted;
        let is_older = |it: usize| state.nodes[it].disk.stable < own.disk.copied_at;
        let marked = state.installed.durable & state.installed.serving;
        let has_older = self.rule != Rule::CountedAboveOlderDisk && nodes_of(marked).any(is_older);
        if !is_counted && reaches && is_current && !has_older {
            actions.push(Action::Count { node });
        }
        let may_be_marked = match self.rule {
            Rule::MarkedBeforeCounted => reaches,
            Rule::MarkedBeforeCheckpoint => true,
            _ => is_counted,
        };
        let is_marked = state.committed.durable & 1 << node != 0;
        // Marks of evicted nodes of the other group.
        let away = state.committed.durable & !state.committed.serving & !group_of(node);
        let is_beside = away != 0 && self.rule != Rule::MarkedBesideOlderDisk;
        if is_member && is_current && may_be_marked && !is_marked && !is_beside {
            actions.push(Action::MarkDurable { node });
        }
    }

    /// The disk of the node after a sync.
    fn synced(&self, state: &State, node: usize) -> Disk {
        let own = &state.nodes[node];
        let last = (0..TRANSACTIONS).filter(|it| own.memory & 1 << it != 0).map(|it| state.numbers[it]).max();
        let stable = last.unwrap_or_default().max(own.disk.stable);
        Disk { stable, content: own.memory, started: own.disk.started, copied_at: own.copied_at }
    }

    fn restart_actions(&self, state: &State, actions: &mut Vec<Action>) {
        for present in 1..=ALL {
            if self.restart(state, present).is_some() {
                actions.push(Action::Restart { present });
            }
        }
        for node in 0..NODES {
            let own = &state.nodes[node];
            if state.exchanges_left > 0 && own.earlier.started < own.disk.started {
                actions.push(Action::PutBack { node });
            }
        }
    }

    /// The membership and the cut of a restart with the disks that are present.
    fn restart(&self, state: &State, present: u8) -> Option<(Membership, Number)> {
        let is_durable = |node: &usize| match self.rule {
            Rule::AnyMembershipCounts => true,
            _ => state.committed.durable & 1 << node != 0,
        };
        let is_newest = |node: &usize| match self.rule {
            Rule::OlderDiskCounts => true,
            _ => state.nodes[*node].disk.started >= state.known_starts[*node],
        };
        let counted = nodes_of(present).filter(|it| is_durable(it) && is_newest(it));
        let counted = counted.fold(0, |mask, node| mask | 1 << node);
        let is_exact = counted == present && GROUPS.iter().all(|group| counted & group != 0);
        let cuts = nodes_of(counted).map(|node| self.own_cut(state, node));
        let cut = if self.rule == Rule::CutIsMaximum { cuts.max() } else { cuts.min() };
        let membership = Membership { epoch: state.committed.epoch + 1, serving: counted, durable: counted };
        is_exact.then_some((membership, cut?))
    }

    fn commit_membership(&self, state: &mut State, serving: u8, durable: u8) {
        state.committed = Membership { epoch: state.committed.epoch + 1, serving, durable };
    }

    fn begin_restart(&self, state: &mut State, (membership, cut): (Membership, Number)) {
        if self.rule != Rule::CutNotCommitted {
            state.committed = membership;
            state.cuts[membership.epoch as usize] = Some(cut);
        }
        state.restart = Some((membership, cut));
    }

    fn on_recover(&self, state: &mut State, node: usize) {
        let Some((membership, cut)) = state.restart else { return };
        let disk = state.nodes[node].disk;
        // All transactions write the same rows: the last one up to the copy has replaced the earlier ones.
        let content = if cut < disk.copied_at { 0 } else { disk.content };
        let kept = self.up_to(state, cut) & content;
        let own = &mut state.nodes[node];
        own.earlier = own.disk;
        own.disk = Disk { stable: cut, content: kept, started: membership.epoch, copied_at: 0 };
        own.copied_at = 0;
        own.memory = kept;
        own.is_up = true;
        own.has_checkpoint = true;
        if nodes_of(membership.serving).all(|it| state.nodes[it].is_up) {
            state.installed = membership;
            state.counted = 0;
            nodes_of(membership.serving).for_each(|it| state.known_starts[it] = membership.epoch);
            state.restart = None;
        }
    }

    fn on_join(&self, state: &mut State, node: usize) {
        state.joins_left -= 1;
        let own_cut = self.own_cut(state, node);
        let kept = self.up_to(state, own_cut);
        let mut donors = nodes_of(group_of(node) & state.committed.serving).filter(|it| state.nodes[*it].is_up);
        let copied = donors.next().map_or(0, |donor| state.nodes[donor].memory & !kept);
        let last = |memory: u8| (0..TRANSACTIONS).filter(|it| memory & 1 << it != 0).map(|it| state.numbers[it]).max();
        let copied_at = if copied == 0 { 0 } else { last(copied).unwrap_or_default() };
        let Membership { serving, durable, .. } = state.committed;
        self.commit_membership(state, serving | 1 << node, durable);
        let started = state.committed.epoch;
        state.known_starts[node] = started;
        let own = &mut state.nodes[node];
        let content = own.disk.content & kept;
        own.earlier = own.disk;
        own.disk = Disk { stable: own_cut, content, started, copied_at: 0 };
        own.copied_at = copied_at;
        own.memory = content | copied;
        own.is_up = true;
        own.has_checkpoint = false;
    }

    fn on_evict(&self, state: &mut State, node: usize) {
        let Membership { serving, durable, .. } = state.committed;
        let left = durable & !(1 << node);
        let is_last = left & group_of(node) == 0;
        let kept = if is_last && self.rule != Rule::LastDurableForgotten { durable } else { left };
        self.commit_membership(state, serving & !(1 << node), kept);
    }

    fn on_commit(&self, state: &mut State) {
        let taken = state.numbers.iter().filter(|it| **it != 0).count();
        let newest = |node: usize| {
            let memory = state.nodes[node].memory;
            (0..TRANSACTIONS).filter(|it| memory & 1 << it != 0).map(|it| state.numbers[it]).max()
        };
        let last = nodes_of(state.installed.serving).filter_map(newest).max().unwrap_or_default();
        state.numbers[taken] = last.max(number(state.installed.epoch, 0)) + 1;
        state.waiting |= 1 << taken;
        let receiving = state.installed.serving | state.committed.serving;
        for node in nodes_of(receiving) {
            if state.nodes[node].is_up {
                state.nodes[node].memory |= 1 << taken;
            }
        }
    }

    fn keeps_acknowledged(&self, state: &State) -> bool {
        let mut serving = nodes_of(state.committed.serving).filter(|node| state.nodes[*node].is_up);
        let keeps = |node: usize| state.nodes[node].memory & state.acknowledged == state.acknowledged;
        !self.is_running(state) || serving.all(keeps)
    }

    fn keeps_whole(&self, state: &State) -> bool {
        let serving = nodes_of(state.committed.serving).filter(|node| state.nodes[*node].is_up);
        let mut contents = serving.map(|node| state.nodes[node].memory);
        let first = contents.next();
        !self.is_running(state) || contents.all(|it| Some(it) == first)
    }

    /// Whether the cluster starts when all disks are present and the newest ones.
    fn can_start(&self, state: &State) -> bool {
        let is_down = state.nodes.iter().all(|node| !node.is_up);
        let has_older = state.exchanges_left < self.exchanges;
        !is_down || has_older || (1..=ALL).any(|present| self.restart(state, present).is_some())
    }
}

const fn group_of(node: usize) -> u8 {
    GROUPS[node / 2]
}

impl Model for CutModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let membership = Membership { epoch: 0, serving: ALL, durable: ALL };
        let mut state = State {
            nodes: [Node { is_up: true, has_checkpoint: true, ..Node::default() }; NODES],
            committed: membership,
            installed: membership,
            counted: 0,
            prefix: 0,
            cuts: [None; EPOCHS],
            known_starts: [0; NODES],
            numbers: [0; TRANSACTIONS],
            waiting: 0,
            acknowledged: 0,
            restart: None,
            crashes_left: self.crashes,
            joins_left: self.joins,
            blackouts_left: self.blackouts,
            exchanges_left: self.exchanges,
        };
        if self.has_joined {
            self.join_one_of_each(&mut state);
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let is_up = state.nodes.iter().any(|node| node.is_up);
        if state.blackouts_left > 0 && (is_up || state.restart.is_some()) {
            actions.push(Action::Blackout);
        }
        if let Some((membership, _)) = state.restart {
            let waiting = nodes_of(membership.serving).filter(|node| !state.nodes[*node].is_up);
            // The order makes a difference only if power is lost in between.
            let most = if state.blackouts_left > 0 { NODES } else { 1 };
            actions.extend(waiting.take(most).map(|node| Action::Recover { node }));
        } else if is_up {
            self.running_actions(state, actions);
        } else {
            self.restart_actions(state, actions);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Commit => self.on_commit(&mut state),
            Action::Sync { node } => state.nodes[node].disk = self.synced(before, node),
            Action::Acknowledge { transaction } => {
                state.waiting &= !(1 << transaction);
                state.acknowledged |= 1 << transaction;
            }
            Action::Crash { node } => {
                state.nodes[node].is_up = false;
                state.nodes[node].memory = 0;
                state.crashes_left -= 1;
            }
            Action::Evict { node } => self.on_evict(&mut state, node),
            Action::Install => {
                state.installed = state.committed;
                state.counted = 0;
                state.prefix = before.numbers.into_iter().max().unwrap_or_default();
            }
            Action::Join { node } => self.on_join(&mut state, node),
            Action::Checkpoint { node } => {
                state.nodes[node].has_checkpoint = true;
                state.nodes[node].disk = self.synced(before, node);
            }
            Action::Count { node } => state.counted |= 1 << node,
            Action::MarkDurable { node } => {
                let Membership { serving, durable, .. } = state.committed;
                let replaced = group_of(node) & !serving;
                self.commit_membership(&mut state, serving, durable & !replaced | 1 << node);
            }
            Action::Blackout => {
                for node in &mut state.nodes {
                    node.is_up = false;
                    node.memory = 0;
                }
                state.restart = None;
                state.waiting = 0;
                state.blackouts_left -= 1;
            }
            Action::PutBack { node } => {
                state.nodes[node].disk = state.nodes[node].earlier;
                state.exchanges_left -= 1;
            }
            Action::Restart { present } => {
                let restart = self.restart(before, present)?;
                self.begin_restart(&mut state, restart);
            }
            Action::Recover { node } => self.on_recover(&mut state, node),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(KEPT, |model: &Self, state| model.keeps_acknowledged(state)),
            Property::always(WHOLE, |model: &Self, state| model.keeps_whole(state)),
            Property::always(STARTS, |model: &Self, state| model.can_start(state)),
            Property::sometimes(LOST, |model: &Self, state: &State| {
                let taken = state.numbers.iter().filter(|it| **it != 0).count();
                let is_lost = |node: &Node| node.is_up && (node.memory.count_ones() as usize) < taken;
                model.is_running(state) && state.nodes.iter().any(is_lost)
            }),
            Property::sometimes(RETURNED, |model: &Self, state: &State| {
                let has_cut = state.cuts.iter().any(Option::is_some);
                has_cut && state.acknowledged != 0 && model.is_running(state)
            }),
        ]
    }
}

const KEPT: &str = "every serving node has the acknowledged commits";
const WHOLE: &str = "all serving nodes have the same commits";
const STARTS: &str = "the cluster can start when all disks are there";
const LOST: &str = "a restart loses a commit that was not acknowledged";
const RETURNED: &str = "the cluster returns with an acknowledged commit";

/// One transaction, one loss of all power.
const SMALL: CutModel = CutModel {
    transactions: 1,
    crashes: 0,
    joins: 0,
    blackouts: 1,
    exchanges: 0,
    has_joined: false,
    rule: Rule::Designed,
};
/// A node of each group has copied, and one more node may die.
const JOINED: CutModel = CutModel { transactions: 2, crashes: 1, has_joined: true, ..SMALL };
/// A node dies, is evicted and joins again.
const REJOIN: CutModel = CutModel { crashes: 1, joins: 1, ..SMALL };
/// Power is lost twice, and one node is away in between.
const TWICE: CutModel = CutModel { transactions: 2, joins: 1, blackouts: 2, ..SMALL };
/// Power is lost twice, and a disk is put back to an older state.
const PUT_BACK: CutModel = CutModel { blackouts: 2, exchanges: 1, ..SMALL };

fn check_caught(model: CutModel, property: &'static str) {
    let name = format!("{:?}", model.rule);
    checking::assert_caught(&name, model, property);
}

#[test]
fn acknowledged_commits_survive_the_loss_of_all_power() {
    checking::assert_holds("a node dies and joins, power is lost", REJOIN);
    checking::assert_holds("power is lost twice, one disk is older", PUT_BACK);
    checking::assert_holds("two nodes have joined, one dies, power is lost", JOINED);
    if checking::is_long() {
        checking::assert_holds("power is lost twice, two transactions", TWICE);
        let model = CutModel { transactions: 2, blackouts: 2, ..REJOIN };
        checking::assert_holds("a node dies and joins, power is lost twice, two transactions", model);
        let model = CutModel { crashes: 2, ..REJOIN };
        checking::assert_holds("two nodes die, one joins, power is lost", model);
    }
}

#[test]
fn the_model_catches_wrong_cuts() {
    check_caught(CutModel { rule: Rule::CutIsMaximum, ..SMALL }, WHOLE);
    check_caught(CutModel { rule: Rule::AcknowledgedByOneOfEach, ..SMALL }, KEPT);
    check_caught(CutModel { rule: Rule::CutNotCommitted, blackouts: 2, ..SMALL }, KEPT);
}

#[test]
fn the_model_catches_returning_nodes_that_ignore_cuts() {
    check_caught(CutModel { rule: Rule::CutsIgnored, ..TWICE }, WHOLE);
    check_caught(CutModel { rule: Rule::LatestCutOnly, ..TWICE }, WHOLE);
}

#[test]
fn the_model_catches_nodes_that_count_as_durable_too_early() {
    check_caught(CutModel { rule: Rule::MarkedBeforeCounted, ..REJOIN }, KEPT);
    check_caught(CutModel { rule: Rule::MarkedBeforeCheckpoint, ..REJOIN }, KEPT);
    check_caught(CutModel { rule: Rule::CountedWithoutPrefix, crashes: 2, ..REJOIN }, KEPT);
    check_caught(CutModel { rule: Rule::CountedMakesUp, crashes: 2, ..REJOIN }, KEPT);
    check_caught(CutModel { rule: Rule::CountedAboveOlderDisk, ..JOINED }, KEPT);
    check_caught(CutModel { rule: Rule::MarkedBesideOlderDisk, ..JOINED }, KEPT);
}

#[test]
fn the_model_catches_restarts_from_the_wrong_disks() {
    check_caught(CutModel { rule: Rule::AnyMembershipCounts, ..REJOIN }, KEPT);
    check_caught(CutModel { rule: Rule::OlderDiskCounts, ..PUT_BACK }, KEPT);
    check_caught(CutModel { rule: Rule::LastDurableForgotten, crashes: 2, ..REJOIN }, STARTS);
}
