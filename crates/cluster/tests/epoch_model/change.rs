//! Steps of failures and epoch changes.

use super::cluster::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Crash {
        node: usize,
    },
    /// The raft leader commits a membership without the node.
    Evict {
        node: usize,
    },
    /// The raft leader commits a membership with another joining node.
    Admit {
        node: usize,
    },
    /// A joining node gets its copy.
    Copy {
        node: usize,
        donor: usize,
    },
    /// The raft leader commits a membership in which the joining node serves.
    Promote {
        node: usize,
    },
    Install {
        node: usize,
        epoch: u8,
    },
    /// The sequencer has every report, and decides how the epoch starts.
    Decide {
        epoch: u8,
    },
    Start {
        node: usize,
    },
    EndLease {
        node: usize,
    },
    /// A client that lost its tc learns the outcome from the data nodes.
    Learn {
        transaction: usize,
        answer: Answer,
    },
    /// An evicted tc gives up waiting.
    GiveUp {
        transaction: usize,
    },
}

impl Cluster {
    pub fn changes(&self, state: &State, changes: &mut Vec<Change>) {
        for node in 0..NODES {
            self.membership_changes(state, node, changes);
            self.changes_at(state, node, changes);
        }
        for epoch in 1..=state.latest_index() {
            let own = state.epoch(epoch);
            let reported = |node: usize| state.nodes[node].installed == epoch;
            let missing = nodes_of(own.members()).filter(|it| !reported(*it)).count();
            let allowed = usize::from(self.rule == Rule::StartWithoutOne);
            let sequencer = &state.nodes[own.sequencer];
            let is_open = own.start.is_none() && sequencer.is_alive && sequencer.installed == epoch;
            if is_open && missing <= allowed {
                changes.push(Change::Decide { epoch });
            }
        }
        for transaction in 0..TRANSACTIONS {
            self.lost_coordinator_changes(state, transaction, changes);
        }
    }

    fn membership_changes(&self, state: &State, node: usize, changes: &mut Vec<Change>) {
        let latest = state.latest();
        let all_started = state.started_everywhere() == state.latest_index();
        if !latest.has(node) {
            let is_new = state.epochs.iter().all(|epoch| !epoch.has(node));
            if self.admits & 1 << node != 0 && is_new && all_started {
                changes.push(Change::Admit { node });
            }
            return;
        }
        let is_alive = state.nodes[node].is_alive;
        if state.faults_left > 0 && is_alive && self.can_lose(state, node) {
            changes.push(Change::Crash { node });
            changes.push(Change::Evict { node });
        }
        if !is_alive {
            changes.push(Change::Evict { node });
        }
        if latest.joining & 1 << node != 0 && all_started && is_alive && !state.nodes[node].awaits_copy {
            changes.push(Change::Promote { node });
        }
    }

    /// Whether every group keeps a live node that has served since the last epoch that all have started.
    fn can_lose(&self, state: &State, node: usize) -> bool {
        let serving = match self.rule {
            Rule::CommittedEpochCounts => state.latest().serving,
            _ => state.latest().serving & state.epoch(state.started_everywhere()).serving,
        };
        let stays = |it: &usize| *it != node && state.nodes[*it].is_alive && serving & 1 << it != 0;
        let keeps = |chain: &&'static [usize]| chain.is_empty() || chain.iter().any(&stays);
        self.chains.iter().all(keeps)
    }

    fn changes_at(&self, state: &State, node: usize, changes: &mut Vec<Change>) {
        let own = &state.nodes[node];
        if !own.is_alive {
            return;
        }
        let later = own.installed + 1..=state.latest_index();
        let admitting = later.filter(|epoch| state.epoch(*epoch).has(node));
        changes.extend(admitting.map(|epoch| Change::Install { node, epoch }));
        if own.started < own.installed && state.epoch(own.installed).start.is_some() {
            changes.push(Change::Start { node });
        }
        let admitted = state.admitted(node);
        if own.awaits_copy && own.started >= admitted {
            // The donor's stable number covers all that is before the node's first images.
            let is_donor = |it: &usize| {
                let there = &state.nodes[*it];
                there.is_alive && state.serves(*it) && there.stable >= number(admitted, 0)
            };
            let chain = self.partition_at(node).map_or(&[][..], |partition| self.chains[partition]);
            let donors = chain.iter().copied().filter(is_donor).filter(|it| state.accepts(node, *it));
            changes.extend(donors.map(|donor| Change::Copy { node, donor }));
        }
        if own.has_lease && !state.latest().has(node) {
            changes.push(Change::EndLease { node });
        }
    }

    fn lost_coordinator_changes(&self, state: &State, transaction: usize, changes: &mut Vec<Change>) {
        let home = self.plans[transaction].home;
        let own = &state.transactions[transaction];
        if own.answer != Answer::None || own.coordinator == Coordinator::Undone || state.latest().has(home) {
            return;
        }
        let waits = state.nodes[home].is_alive && own.coordinator == Coordinator::Preparing;
        if waits && self.rule == Rule::EvictedSaysAborted {
            changes.push(Change::GiveUp { transaction });
        }
        let without = (0..=state.latest_index()).find(|it| !state.epoch(*it).has(home));
        let Some(without) = without else { return };
        let members = || nodes_of(state.latest().serving);
        let has_started = |node: usize| match self.rule {
            Rule::OutcomeBeforeStart => true,
            _ => state.nodes[node].started >= without,
        };
        if !members().all(has_started) {
            return;
        }
        let decided = members().map(|node| state.nodes[node].known(transaction)).max().unwrap_or_default();
        let is_confirmed = || self.is_confirmed(state, state.latest_index(), decided);
        if decided == 0 {
            let last_admission = match self.rule {
                Rule::OutcomeOfYoungMember => without,
                _ => own.started_before,
            };
            let would_know =
                |node: &usize| state.latest().serving & 1 << node != 0 && state.admitted(*node) <= last_admission;
            let is_certain = self.chains.iter().all(|chain| chain.is_empty() || chain.iter().any(would_know));
            let answer = if is_certain { Answer::Aborted } else { Answer::Unknown };
            changes.push(Change::Learn { transaction, answer });
        } else if self.rule == Rule::OutcomeUnconfirmed || is_confirmed() {
            changes.push(Change::Learn { transaction, answer: Answer::Committed });
        }
    }

    pub fn on_change(&self, state: &mut State, change: Change) {
        match change {
            Change::Crash { node } => {
                state.nodes[node].is_alive = false;
                state.nodes[node].has_lease = false;
                state.faults_left -= 1;
            }
            Change::Evict { node } => {
                state.faults_left -= u8::from(state.nodes[node].is_alive);
                let latest = state.latest().clone();
                self.commit_membership(state, latest.serving & !(1 << node), latest.joining & !(1 << node));
            }
            Change::Admit { node } => {
                let latest = state.latest().clone();
                self.commit_membership(state, latest.serving, latest.joining | 1 << node);
                state.nodes[node].is_alive = true;
                state.nodes[node].awaits_copy = true;
            }
            Change::Copy { node, donor } => {
                let donor = state.nodes[donor].clone();
                let own = &mut state.nodes[node];
                own.awaits_copy = false;
                let versions = donor.versions.iter().rev().filter(|version| **version != 0);
                for transaction in versions.map(|version| *version as usize - 1) {
                    let decided = donor.decisions[transaction];
                    let is_visible = donor.parts[transaction] == Part::Applied && decided <= donor.stable;
                    if is_visible && own.parts[transaction] == Part::Nothing {
                        own.place_copy(transaction, decided);
                    }
                }
            }
            Change::Promote { node } => {
                let latest = state.latest().clone();
                self.commit_membership(state, latest.serving | 1 << node, latest.joining & !(1 << node));
            }
            Change::Install { node, epoch } => state.nodes[node].installed = epoch,
            Change::Decide { epoch } => self.on_decide(state, epoch),
            Change::Start { node } => self.on_start(state, node),
            Change::EndLease { node } => state.nodes[node].has_lease = false,
            Change::Learn { transaction, answer } => state.transactions[transaction].answer = answer,
            Change::GiveUp { transaction } => state.transactions[transaction].answer = Answer::Aborted,
        }
    }

    fn commit_membership(&self, state: &mut State, serving: u8, joining: u8) {
        let before = state.latest().sequencer;
        let sequencer = if serving & 1 << before != 0 { before } else { serving.trailing_zeros() as usize };
        let base = number(state.epochs.len() as u8, 0);
        let numbers = [0; TRANSACTIONS];
        state.epochs.push(Epoch { serving, joining, sequencer, base, numbers, start: None });
    }

    fn on_decide(&self, state: &mut State, epoch: u8) {
        let own = state.epoch(epoch);
        let reported = |node: &usize| match self.rule {
            Rule::UnionForgotten => *node == own.sequencer,
            _ => state.nodes[*node].installed == epoch,
        };
        let prefix_at = |node: usize| match self.rule {
            Rule::PrefixEndsAtApplied => state.nodes[node].applied,
            _ => state.nodes[node].passed,
        };
        // A member keeps decisions until all members, joining ones too, have applied them. Decisions below
        // make no difference to anybody, so only the broken rule forgets.
        let kept_at = |node: usize, transaction: usize| {
            let decided = state.nodes[node].known(transaction);
            let is_kept = self.rule != Rule::ForgotForJoining || decided > state.nodes[node].stable;
            if is_kept { decided } else { 0 }
        };
        let reports = || nodes_of(own.members()).filter(reported);
        let prefix = nodes_of(own.members()).filter(|it| state.nodes[*it].installed == epoch).map(prefix_at);
        let prefix = prefix.max().unwrap_or_default();
        let mut decisions = [0; TRANSACTIONS];
        for (transaction, decided) in decisions.iter_mut().enumerate() {
            let known = reports().map(|node| kept_at(node, transaction)).max().unwrap_or_default();
            *decided = if known <= prefix { known } else { 0 };
        }
        let own = &mut state.epochs[epoch as usize];
        if self.rule == Rule::NumberReused {
            own.base = prefix;
        }
        own.start = Some(Start { prefix, decisions });
    }

    /// StartEpoch arrives behind the decisions that the mirror has passed.
    fn on_start(&self, state: &mut State, node: usize) {
        let epoch_index = state.nodes[node].installed;
        let epoch = state.epoch(epoch_index).clone();
        let before = state.epoch(state.nodes[node].started).clone();
        let Some(start) = &epoch.start else { return };
        let admitted = state.admitted(node);
        let own = &mut state.nodes[node];
        own.has_lease |= epoch_index == admitted;
        for transaction in 0..TRANSACTIONS {
            // A decision reaches only the lives that were members when it was made.
            let decided = start.decisions[transaction];
            if decided != 0 && epoch_of(decided) >= admitted && self.hears_of(node, transaction) {
                own.decisions[transaction] = decided;
            }
            let is_decided = own.decisions[transaction] != 0;
            match own.parts[transaction] {
                Part::Prepared if is_decided => own.parts[transaction] = Part::Applied,
                Part::Prepared if self.rule != Rule::ImageSurvivesStart => own.undo(transaction),
                Part::Active
                    if !epoch.has(self.plans[transaction].home) && self.rule != Rule::SurvivesItsCoordinator =>
                {
                    own.undo(transaction);
                }
                _ => {}
            }
        }
        own.started = epoch_index;
        own.passed = epoch.base;
        own.applied = epoch.base;
        for transaction in (0..TRANSACTIONS).filter(|it| self.plans[*it].home == node) {
            self.start_coordinator(state, transaction, (&before, &epoch));
        }
    }

    fn start_coordinator(&self, state: &mut State, transaction: usize, (before, epoch): (&Epoch, &Epoch)) {
        let is_decided = state.nodes[self.plans[transaction].home].decisions[transaction] != 0;
        let own = &mut state.transactions[transaction];
        let has_changed = |partition: usize| self.primary(before, partition) != self.primary(epoch, partition);
        let changed = self.partitions_of(transaction).filter(|it| own.written & 1 << it != 0 && has_changed(*it));
        let is_undone = match own.coordinator {
            Coordinator::Active if self.rule == Rule::SurvivesItsPrimary => {
                own.written |= changed.fold(0, |lost, partition| lost | LOST << partition);
                false
            }
            Coordinator::Active => changed.count() > 0,
            Coordinator::Preparing => !is_decided,
            Coordinator::Undone => false,
        };
        if is_undone {
            own.coordinator = Coordinator::Undone;
            own.answer = Answer::Aborted;
        }
    }
}
