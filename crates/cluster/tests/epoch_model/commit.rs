//! Steps of commits: writes, prepares, images, numbers, decisions and answers.
//!
//! A message that only grows in content has no state of its own. Its receiver reads what the sender holds or
//! held when it ended, as long as the receiver's membership accepts the sender. A late delivery is an earlier
//! reading followed by a pause.

use super::cluster::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Write {
        transaction: usize,
        partition: usize,
    },
    SendPrepare {
        transaction: usize,
    },
    Prepare {
        transaction: usize,
        partition: usize,
        primary: usize,
    },
    Replicate {
        transaction: usize,
        partition: usize,
        to: usize,
    },
    /// A backup cannot keep the image.
    Refuse {
        transaction: usize,
        partition: usize,
    },
    /// tc has heard from all chains, and one has refused.
    Fail {
        transaction: usize,
    },
    Ask {
        transaction: usize,
        epoch: u8,
    },
    Number {
        transaction: usize,
        epoch: u8,
    },
    /// The mirror receives the next decision and passes it to its blocks.
    Pass {
        node: usize,
    },
    Apply {
        node: usize,
        transaction: usize,
    },
    /// The mirror hears that its blocks have applied what it passed.
    Advance {
        node: usize,
    },
    /// The mirror hears what the others have applied.
    Hear {
        node: usize,
        stable: Number,
    },
    Answer {
        transaction: usize,
    },
    Undo {
        transaction: usize,
        node: usize,
    },
}

impl Cluster {
    pub fn commit_steps(&self, state: &State, steps: &mut Vec<Step>) {
        for transaction in 0..TRANSACTIONS {
            self.write_steps(state, transaction, steps);
            self.prepare_steps(state, transaction, steps);
            self.number_steps(state, transaction, steps);
            if self.may_answer(state, transaction) {
                steps.push(Step::Answer { transaction });
            }
        }
        for node in 0..NODES {
            self.mirror_steps(state, node, steps);
        }
    }

    fn write_steps(&self, state: &State, transaction: usize, steps: &mut Vec<Step>) {
        let own = &state.transactions[transaction];
        let home = self.plans[transaction].home;
        let epoch = state.epoch(state.nodes[home].started);
        if !state.nodes[home].is_alive {
            return;
        }
        if own.coordinator == Coordinator::Undone {
            // A participant parks the rollback until it has started tc's epoch, and obeys an older one.
            let started = state.nodes[home].started;
            let is_parked = |node: usize| state.nodes[node].started < started;
            let has_locks = |node: &usize| state.nodes[*node].parts[transaction].is_undecided() && !is_parked(*node);
            let replicas = self.partitions_of(transaction).flat_map(|it| self.chain(epoch, it));
            let reached = replicas.filter(has_locks).filter(|node| state.accepts(*node, home));
            steps.extend(reached.map(|node| Step::Undo { transaction, node }));
        }
        if own.coordinator != Coordinator::Active {
            return;
        }
        let next = self.partitions_of(transaction).find(|it| own.written & 1 << it == 0);
        let Some(partition) = next else {
            steps.push(Step::SendPrepare { transaction });
            return;
        };
        let Some(primary) = self.primary(epoch, partition) else { return };
        let there = &state.nodes[primary];
        let is_primary = self.primary(state.epoch(there.started), partition) == Some(primary);
        let is_free = there.parts.iter().all(|part| !part.is_undecided());
        if is_primary && is_free && state.accepts(primary, home) && state.accepts(home, primary) {
            steps.push(Step::Write { transaction, partition });
        }
    }

    fn prepare_steps(&self, state: &State, transaction: usize, steps: &mut Vec<Step>) {
        let own = &state.transactions[transaction];
        let Some(sent) = own.prepare_sent else { return };
        let home = self.plans[transaction].home;
        for partition in self.partitions_of(transaction) {
            let Some(primary) = self.primary(state.epoch(sent), partition) else { continue };
            let there = &state.nodes[primary];
            let is_current = match self.rule {
                Rule::PrepareWithoutEpoch => true,
                _ => there.started == sent,
            };
            if is_current && there.parts[transaction] == Part::Active && state.accepts(primary, home) {
                steps.push(Step::Prepare { transaction, partition, primary });
            }
            for node in 0..NODES {
                self.image_steps(state, (transaction, partition, node), steps);
            }
        }
        let has_answered = |partition: usize| {
            let is_prepared = |node: usize| state.nodes[node].parts[transaction] == Part::Prepared;
            own.refused & 1 << partition != 0 || self.chain(state.epoch(sent), partition).all(is_prepared)
        };
        let is_waiting = own.coordinator == Coordinator::Preparing && state.nodes[home].is_alive;
        let is_current = is_waiting && state.nodes[home].started == sent;
        if own.refused != 0 && is_current && self.partitions_of(transaction).all(has_answered) {
            steps.push(Step::Fail { transaction });
        }
    }

    /// The image that `from` forwards to the next replica.
    fn image_steps(&self, state: &State, (transaction, partition, from): Image, steps: &mut Vec<Step>) {
        let sender = &state.nodes[from];
        let mut chain = self.chain(state.epoch(sender.started), partition).skip_while(|it| *it != from).skip(1);
        let Some(to) = chain.next() else { return };
        let receiver = &state.nodes[to];
        let Transaction { marks, refused, .. } = &state.transactions[transaction];
        if refused & 1 << partition != 0 {
            return;
        }
        let is_in_order = match self.rule {
            Rule::ImagesNotParked => true,
            Rule::ImageNamesNodesNumber | Rule::ImageNamesAppliedNumber => receiver.applied >= marks[partition],
            _ => receiver.parts.iter().all(|part| !part.is_undecided()),
        };
        let is_current = receiver.started == sender.started && state.accepts(to, from);
        let is_new = receiver.parts[transaction] == Part::Nothing;
        if sender.parts[transaction] == Part::Prepared && is_new && is_current && is_in_order {
            steps.push(Step::Replicate { transaction, partition, to });
            if self.prepares_fail {
                steps.push(Step::Refuse { transaction, partition });
            }
        }
    }

    fn number_steps(&self, state: &State, transaction: usize, steps: &mut Vec<Step>) {
        let own = &state.transactions[transaction];
        if own.asked.is_none() {
            let epoch = match self.partitions_of(transaction).count() {
                1 => self.epoch_of_last_replica(state, transaction),
                _ => self.epoch_of_coordinator(state, transaction),
            };
            steps.extend(epoch.map(|epoch| Step::Ask { transaction, epoch }));
        }
        let Some(asked) = own.asked else { return };
        for epoch in 0..=state.latest_index() {
            let work = state.epoch(epoch);
            let sequencer = &state.nodes[work.sequencer];
            let is_current = asked == epoch || asked < epoch && self.rule == Rule::NumberForOldRequest;
            let is_open = sequencer.is_alive && sequencer.installed == epoch && sequencer.started == epoch;
            let is_new = work.numbered().all(|(it, _)| it != transaction);
            if is_current && is_open && is_new {
                steps.push(Step::Number { transaction, epoch });
            }
        }
    }

    /// The epoch in which the last replica of the only written partition asks for a number.
    fn epoch_of_last_replica(&self, state: &State, transaction: usize) -> Option<u8> {
        let partition = self.partitions_of(transaction).next()?;
        let is_prepared = |node: &usize| state.nodes[*node].parts[transaction] == Part::Prepared;
        let is_last = |node: &usize| {
            let epoch = state.epoch(state.nodes[*node].started);
            match self.rule {
                Rule::BackupsNotAwaited => self.primary(epoch, partition) == Some(*node),
                _ => self.chain(epoch, partition).last() == Some(*node),
            }
        };
        let mut replicas = self.chains[partition].iter().copied();
        let node = replicas.find(|it| is_prepared(it) && is_last(it))?;
        Some(state.nodes[node].started)
    }

    /// The epoch in which tc asks for a number, when all replicas have answered.
    fn epoch_of_coordinator(&self, state: &State, transaction: usize) -> Option<u8> {
        let own = &state.transactions[transaction];
        let home = &state.nodes[self.plans[transaction].home];
        let sent = own.prepare_sent?;
        let can_ask = own.coordinator == Coordinator::Preparing && home.is_alive && home.started == sent;
        let has_answered = |partition: usize| {
            let awaited = match self.rule {
                Rule::BackupsNotAwaited => 1,
                _ => NODES,
            };
            let is_lost = own.written & LOST << partition != 0;
            let mut chain = self.chain(state.epoch(sent), partition).take(awaited);
            is_lost || chain.all(|node| state.nodes[node].parts[transaction] == Part::Prepared)
        };
        let is_prepared = self.partitions_of(transaction).all(has_answered);
        (can_ask && is_prepared).then_some(sent)
    }

    fn mirror_steps(&self, state: &State, node: usize, steps: &mut Vec<Step>) {
        let own = &state.nodes[node];
        if !own.is_alive {
            return;
        }
        let epoch = state.epoch(own.started);
        if !epoch.has(node) {
            return;
        }
        let is_open = own.installed == own.started || self.rule == Rule::ObeysOldSequencer;
        let is_behind = own.passed >= epoch.base && counter_of(own.passed - epoch.base) < epoch.taken();
        if is_open && is_behind {
            steps.push(Step::Pass { node });
        }
        let waits = |transaction: usize| {
            let is_passed = own.decisions[transaction] != 0;
            is_passed && own.parts[transaction] == Part::Prepared && self.has_part(node, transaction)
        };
        if self.blocks_are_slow {
            let waiting = (0..TRANSACTIONS).filter(|it| waits(*it));
            steps.extend(waiting.map(|transaction| Step::Apply { node, transaction }));
            if own.applied < own.passed && (0..TRANSACTIONS).all(|it| !waits(it)) {
                steps.push(Step::Advance { node });
            }
        }
        if own.installed != own.started || epoch.serving & 1 << node == 0 {
            return;
        }
        let least = nodes_of(epoch.serving).map(|it| state.nodes[it].applied).min().unwrap_or_default();
        let has_started = |it: usize| state.nodes[it].started == own.started;
        if nodes_of(epoch.serving).all(has_started) && least > own.stable {
            steps.push(Step::Hear { node, stable: least });
        }
    }

    fn may_answer(&self, state: &State, transaction: usize) -> bool {
        let own = &state.transactions[transaction];
        let home = &state.nodes[self.plans[transaction].home];
        let decided = home.decisions[transaction];
        let can_answer = own.answer == Answer::None && own.coordinator == Coordinator::Preparing;
        if !can_answer || !home.is_alive || decided == 0 || home.installed != home.started {
            return false;
        }
        match self.rule {
            Rule::AnswerAtOwnStable => home.stable >= decided,
            Rule::AnswerAtApplied => home.applied >= decided,
            _ => self.is_confirmed(state, home.started, decided),
        }
    }

    /// Whether C of an epoch covers the number: every serving node reported a stable number that does, and no
    /// evicted node has a lease.
    pub fn is_confirmed(&self, state: &State, epoch: u8, wanted: Number) -> bool {
        let epoch_of = state.epoch(epoch);
        let confirms = |node: usize| state.nodes[node].started == epoch && state.nodes[node].stable >= wanted;
        let is_evicted = |node: usize| !epoch_of.has(node);
        let leases_are_over = (0..NODES).filter(|it| is_evicted(*it)).all(|it| !state.nodes[it].has_lease);
        nodes_of(epoch_of.serving).all(confirms) && (leases_are_over || self.rule == Rule::LeasesIgnored)
    }

    pub fn on_commit_step(&self, state: &mut State, step: Step) {
        match step {
            Step::Write { transaction, partition } => {
                let home = self.plans[transaction].home;
                let primary = self.primary(state.epoch(state.nodes[home].started), partition);
                state.nodes[primary.unwrap_or_default()].place(transaction, Part::Active);
                state.transactions[transaction].written |= 1 << partition;
            }
            Step::SendPrepare { transaction } => {
                let home = self.plans[transaction].home;
                state.transactions[transaction].prepare_sent = Some(state.nodes[home].started);
                state.transactions[transaction].coordinator = Coordinator::Preparing;
                if self.admits != 0 {
                    state.transactions[transaction].started_before = state.started_everywhere();
                }
            }
            Step::Prepare { transaction, partition, primary } => {
                let node = &mut state.nodes[primary];
                node.parts[transaction] = Part::Prepared;
                state.transactions[transaction].marks[partition] = match self.rule {
                    Rule::ImageNamesNodesNumber => node.applied,
                    _ => node.newest_applied(),
                };
            }
            Step::Refuse { transaction, partition } => state.transactions[transaction].refused |= 1 << partition,
            Step::Fail { transaction } => {
                state.transactions[transaction].coordinator = Coordinator::Undone;
                state.transactions[transaction].answer = Answer::Aborted;
            }
            Step::Replicate { transaction, to, .. } => state.nodes[to].place(transaction, Part::Prepared),
            Step::Ask { transaction, epoch } => state.transactions[transaction].asked = Some(epoch),
            Step::Number { transaction, epoch } => {
                let numbers = &mut state.epochs[epoch as usize].numbers;
                if let Some(free) = numbers.iter_mut().find(|it| **it == 0) {
                    *free = transaction as u8 + 1;
                }
            }
            Step::Pass { node } => self.on_pass(state, node),
            Step::Apply { node, transaction } => state.nodes[node].parts[transaction] = Part::Applied,
            Step::Advance { node } => state.nodes[node].applied = state.nodes[node].passed,
            Step::Hear { node, stable } => state.nodes[node].stable = stable,
            Step::Answer { transaction } => state.transactions[transaction].answer = Answer::Committed,
            Step::Undo { transaction, node } => state.nodes[node].undo(transaction),
        }
    }

    fn on_pass(&self, state: &mut State, node: usize) {
        let epoch = &state.epochs[state.nodes[node].started as usize];
        let passed = state.nodes[node].passed + 1;
        let decided = epoch.numbered().find(|(_, number)| *number == passed).map(|(it, _)| it);
        let own = &mut state.nodes[node];
        own.passed = passed;
        let Some(transaction) = decided else { return };
        if self.hears_of(node, transaction) {
            own.decisions[transaction] = passed;
        }
        if self.blocks_are_slow {
            return;
        }
        own.applied = passed;
        if own.parts[transaction] == Part::Prepared {
            own.parts[transaction] = Part::Applied;
        }
    }
}

/// A transaction, a partition, and the node that sends its image.
type Image = (usize, usize, usize);
