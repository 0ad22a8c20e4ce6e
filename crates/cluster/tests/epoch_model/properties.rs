//! The promises that hold in every state.

use super::change::Change;
use super::cluster::*;
use super::commit::Step;
use stateright::{Model, Property};

pub const KEPT: &str = "a transaction that was answered as committed is applied at every member";
pub const UNDONE: &str = "a transaction that was answered as rolled back is applied at no member";
pub const EXTERNAL: &str = "every snapshot covers the commits that were answered before it";
pub const PREFIX: &str = "a member has all of a snapshot's commits";
pub const ABOVE: &str = "a number is above every snapshot";
pub const UNIQUE: &str = "a number belongs to one transaction and a transaction has one number";
pub const ORDER: &str = "versions of a row lie in the order of their numbers";
pub const IMAGES: &str = "a decision finds its image";
pub const EQUAL: &str = "replicas that started an epoch have the same commits of the epochs before";
pub const SETTLED: &str = "when no step is left everything is decided, answered and free";
pub const COMMITS: &str = "all transactions are answered as committed";
pub const VOID: &str = "a number becomes void";
pub const UNCERTAIN: &str = "a client cannot learn the outcome";
pub const LEARNED: &str = "a client learns of its commit from another node";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Step(Step),
    Change(Change),
}

impl Model for Cluster {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let transaction = Transaction {
            coordinator: Coordinator::Active,
            written: 0,
            prepare_sent: None,
            asked: None,
            marks: [0; PARTITIONS],
            refused: 0,
            answer: Answer::None,
            started_before: 0,
        };
        let transactions = self.plans.map(|plan| match plan.partitions {
            0 => Transaction { coordinator: Coordinator::Undone, answer: Answer::Aborted, ..transaction.clone() },
            _ => transaction.clone(),
        });
        let epoch = Epoch {
            serving: self.serving,
            joining: self.joining,
            sequencer: self.sequencer,
            base: 0,
            numbers: [0; TRANSACTIONS],
            start: None,
        };
        let mut nodes = [const { Node::new() }; NODES];
        for (index, node) in nodes.iter_mut().enumerate() {
            node.is_alive = epoch.has(index);
            node.has_lease = epoch.has(index);
        }
        vec![State { nodes, transactions, epochs: vec![epoch], newest_snapshot: 0, faults_left: self.faults }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let mut steps = Vec::new();
        self.commit_steps(state, &mut steps);
        actions.extend(steps.into_iter().map(Action::Step));
        let mut changes = Vec::new();
        self.changes(state, &mut changes);
        actions.extend(changes.into_iter().map(Action::Change));
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Step(step) => self.on_commit_step(&mut state, step),
            Action::Change(change) => self.on_change(&mut state, change),
        }
        let choosing = (0..NODES).filter(|node| self.may_choose(&state, *node));
        let newest = choosing.map(|node| self.snapshot_of(&state, node)).max().unwrap_or_default();
        state.newest_snapshot = state.newest_snapshot.max(newest);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(KEPT, |cluster: &Self, state| cluster.keeps_committed(state)),
            Property::always(UNDONE, |cluster: &Self, state| cluster.keeps_undone(state)),
            Property::always(EXTERNAL, |cluster: &Self, state| cluster.covers_answered(state)),
            Property::always(PREFIX, |cluster: &Self, state| cluster.has_prefix(state)),
            Property::always(ABOVE, |cluster: &Self, state| cluster.is_numbered_above(state)),
            Property::always(UNIQUE, |_, state| has_unique_numbers(state)),
            Property::always(ORDER, |_, state| has_ordered_versions(state)),
            Property::always(IMAGES, |cluster: &Self, state| cluster.finds_images(state)),
            Property::always(EQUAL, |cluster: &Self, state| cluster.has_equal_replicas(state)),
            Property::always(SETTLED, |cluster: &Self, state| cluster.is_settled(state) || !cluster.is_quiet(state)),
            Property::sometimes(COMMITS, |cluster: &Self, state: &State| {
                let mut existing = (0..TRANSACTIONS).filter(|it| cluster.plans[*it].partitions != 0);
                existing.all(|it| state.transactions[it].answer == Answer::Committed)
            }),
            Property::sometimes(VOID, |_, state: &State| {
                let mut numbered = state.epochs.iter().flat_map(Epoch::numbered);
                numbered.any(|(transaction, number)| is_void(state, transaction, number))
            }),
        ];
        if self.admits != 0 {
            properties.push(Property::sometimes(UNCERTAIN, |_, state: &State| {
                state.transactions.iter().any(|it| it.answer == Answer::Unknown)
            }));
        }
        if self.joining == 0 {
            properties.push(Property::sometimes(LEARNED, |cluster: &Self, state| cluster.has_learned(state)));
        }
        properties
    }
}

impl Cluster {
    /// What the live serving nodes hold of the transaction.
    fn parts<'a>(&'a self, state: &'a State, transaction: usize) -> impl Iterator<Item = Part> + 'a {
        let serving = (0..NODES).filter(|node| state.serves(*node) && state.nodes[*node].is_alive);
        let holders = serving.filter(move |node| self.has_part(*node, transaction));
        holders.map(move |node| state.nodes[node].parts[transaction])
    }

    fn keeps_committed(&self, state: &State) -> bool {
        let is_kept = |transaction: usize| self.parts(state, transaction).all(|part| part == Part::Applied);
        (0..TRANSACTIONS).all(|it| state.transactions[it].answer != Answer::Committed || is_kept(it))
    }

    fn keeps_undone(&self, state: &State) -> bool {
        let is_undone = |transaction: usize| self.parts(state, transaction).all(|part| part != Part::Applied);
        (0..TRANSACTIONS).all(|it| state.transactions[it].answer != Answer::Aborted || is_undone(it))
    }

    fn covers_answered(&self, state: &State) -> bool {
        let covers = |transaction: usize| {
            let decisions = state.nodes.iter().map(|node| node.decisions[transaction]);
            let decided = decisions.max().unwrap_or_default();
            let mut choosing = (0..NODES).filter(|node| self.may_choose(state, *node));
            choosing.all(|node| self.snapshot_of(state, node) >= decided)
        };
        (0..TRANSACTIONS).all(|it| state.transactions[it].answer != Answer::Committed || covers(it))
    }

    fn has_prefix(&self, state: &State) -> bool {
        let snapshot = state.newest_snapshot;
        let has_all = |transaction: usize, number: Number| {
            if number > snapshot {
                return true;
            }
            let is_void = is_void(state, transaction, number);
            self.parts(state, transaction).all(|part| (part == Part::Applied) != is_void)
        };
        // A void number may be followed by another one of the same transaction only in broken variants, which
        // the uniqueness of numbers catches.
        state.epochs.iter().all(|epoch| epoch.numbered().all(|(transaction, number)| has_all(transaction, number)))
    }

    fn is_numbered_above(&self, state: &State) -> bool {
        let is_open = |epoch: u8| state.nodes[state.epoch(epoch).sequencer].started == epoch;
        let next = |epoch: &Epoch| epoch.base + 1 + epoch.taken() as u8;
        (0..=state.latest_index()).all(|it| {
            let is_last = it == state.latest_index();
            !is_last || !is_open(it) || next(state.epoch(it)) > state.newest_snapshot
        })
    }

    fn finds_images(&self, state: &State) -> bool {
        let finds = |node: usize, transaction: usize| {
            let own = &state.nodes[node];
            let has_image = matches!(own.parts[transaction], Part::Prepared | Part::Applied);
            own.decisions[transaction] == 0 || !self.has_part(node, transaction) || has_image
        };
        let members = || nodes_of(state.latest().members());
        members().all(|node| (0..TRANSACTIONS).all(|transaction| finds(node, transaction)))
    }

    fn has_equal_replicas(&self, state: &State) -> bool {
        let latest = state.latest();
        let committed = |node: usize| {
            let own = &state.nodes[node];
            let is_old = |transaction: &usize| own.decisions[*transaction] < latest.base;
            let applied = (0..TRANSACTIONS).filter(|it| own.parts[*it] == Part::Applied && is_old(it));
            applied.fold(0_u8, |mask, it| mask | 1 << it)
        };
        let is_complete = |node: &usize| {
            let own = &state.nodes[*node];
            own.started == state.latest_index() && !own.awaits_copy
        };
        (0..PARTITIONS).all(|partition| {
            let mut replicas = self.chain(latest, partition).filter(is_complete).map(committed);
            let first = replicas.next();
            replicas.all(|it| Some(it) == first)
        })
    }

    fn is_settled(&self, state: &State) -> bool {
        let answered = state.transactions.iter().all(|it| it.answer != Answer::None);
        let latest = state.latest();
        let members = || nodes_of(latest.members()).map(|node| &state.nodes[node]);
        let is_free = |node: &Node| node.parts.iter().all(|part| !part.is_undecided());
        answered && members().all(|node| node.started == state.latest_index() && is_free(node))
    }

    /// Whether a client knows of a commit that its tc did not.
    fn has_learned(&self, state: &State) -> bool {
        let is_unknown = |it: usize| state.nodes[self.plans[it].home].decisions[it] == 0;
        (0..TRANSACTIONS).any(|it| state.transactions[it].answer == Answer::Committed && is_unknown(it))
    }

    /// Whether only failures and planned changes can follow.
    fn is_quiet(&self, state: &State) -> bool {
        let mut actions = Vec::new();
        self.actions(state, &mut actions);
        actions.iter().all(|action| match action {
            Action::Step(_) => false,
            Action::Change(
                Change::Crash { .. } | Change::Admit { .. } | Change::Copy { .. } | Change::Promote { .. },
            ) => true,
            Action::Change(Change::Evict { node }) => state.nodes[*node].is_alive,
            Action::Change(_) => false,
        })
    }
}

/// Whether a later epoch began without anybody who knew this number.
fn is_void(state: &State, transaction: usize, number: Number) -> bool {
    let later = state.epochs.iter().skip(epoch_of(number) as usize + 1);
    let knows = |node: usize| state.nodes[node].decisions[transaction] == number;
    later.filter(|epoch| epoch.start.is_some()).any(|epoch| !nodes_of(epoch.members()).any(knows))
}

fn has_unique_numbers(state: &State) -> bool {
    let decided = |node: &Node| node.decisions.into_iter().enumerate().filter(|(_, number)| *number != 0);
    let all = || state.nodes.iter().flat_map(move |node| decided(node));
    all().all(|(one, first)| all().all(|(other, second)| (first == second) == (one == other)))
}

fn has_ordered_versions(state: &State) -> bool {
    state.nodes.iter().all(|node| {
        let mut below = 0;
        let mut is_ordered = true;
        for version in node.versions.iter().filter(|it| **it != 0) {
            let transaction = *version as usize - 1;
            let number = match node.parts[transaction] {
                Part::Applied => node.decisions[transaction],
                _ => Number::MAX,
            };
            is_ordered &= number > below;
            below = number;
        }
        is_ordered
    })
}
