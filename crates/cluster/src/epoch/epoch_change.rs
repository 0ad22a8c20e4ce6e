//! The change to a new epoch, at its sequencer: gathers what every member knows, and starts the epoch with
//! it. If a member fails meanwhile, the next membership follows, and its sequencer begins anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_kernel::{NodeId, Time, require};
use junctor_model::id::{CommitNumber, Incarnation};
use junctor_model::planted_bug::PlantedBug;

use junctor_signals::start_epoch::{Installed, StartEpoch};
use junctor_signals::take_number::Decision;

use super::Sequencer;
use crate::membership::{Membership, NodeRecord};

/// The reports of the members of one membership.
#[derive(Debug)]
pub struct EpochChange {
    membership: Arc<Membership>,
    reports: BTreeMap<NodeId, Installed>,
}

/// How an epoch starts.
#[derive(Debug)]
pub struct EpochStart {
    /// H: the last number of the epochs before.
    pub prefix: CommitNumber,
    /// The message to each member.
    pub messages: Vec<(NodeId, StartEpoch)>,
    /// The sequencer of the epoch.
    pub sequencer: Sequencer,
}

impl EpochChange {
    /// A change to this membership, which the own node has installed as its sequencer.
    pub fn new(membership: Arc<Membership>) -> EpochChange {
        EpochChange { membership, reports: BTreeMap::new() }
    }

    /// The membership.
    pub fn membership(&self) -> &Arc<Membership> {
        &self.membership
    }

    /// The members whose report is missing.
    pub fn missing(&self) -> impl Iterator<Item = NodeId> {
        let members = self.membership.members().map(|record| record.node);
        members.filter(|node| !self.reports.contains_key(node))
    }

    /// Takes the report of a member. Returns the start of the epoch when all have reported.
    pub fn on_installed(
        &mut self,
        from: NodeId,
        incarnation: Incarnation,
        report: Installed,
        now: Time,
    ) -> Option<EpochStart> {
        let is_current = report.epoch == self.membership.epoch && self.membership.has(from, incarnation);
        if !is_current || self.missing().all(|node| node != from) {
            return None;
        }
        self.reports.insert(from, report);
        let is_complete = self.missing().next().is_none();
        is_complete.then(|| self.start(now))
    }

    fn start(&mut self, now: Time) -> EpochStart {
        let prefix = self.reports.values().map(|report| report.passed).max().unwrap_or_default();
        let mut union: BTreeMap<CommitNumber, Decision> = BTreeMap::new();
        for decision in self.reports.values_mut().flat_map(|report| report.decisions.drain(..)) {
            require!(decision.number <= prefix, "a reported decision was passed: {} after {prefix}", decision.number);
            let known = union.entry(decision.number).or_insert_with(|| decision.clone());
            require!(
                known.transaction == decision.transaction,
                "a number belongs to one transaction: {}",
                known.number
            );
        }
        let epoch = self.membership.epoch;
        let message = |record: &NodeRecord| {
            let passed = self.reports[&record.node].passed;
            let is_missing = |decision: &&Decision| {
                decision.number > passed && concerns(decision, record) && !PlantedBug::ForgetMissing.is_planted()
            };
            let missing = union.values().filter(is_missing).cloned().collect();
            (record.node, StartEpoch { epoch, prefix, missing })
        };
        let messages = self.membership.members().map(message).collect();
        let durable = |node: NodeId| self.reports[&node].durable;
        EpochStart { prefix, messages, sequencer: Sequencer::new(&self.membership, &durable, now) }
    }
}

/// Whether a decision concerns this life of a node, and not an earlier one.
fn concerns(decision: &Decision, record: &NodeRecord) -> bool {
    decision.number.epoch() >= record.admitted && decision.concerns(record.node)
}
