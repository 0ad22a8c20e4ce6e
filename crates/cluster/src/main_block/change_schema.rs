//! Runs schema changes one at a time, stage by stage. If a stage fails, undoes the stages before it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use junctor_kernel::{Context, NodeId, Outbox, Time, require};
use junctor_model::error::{Error, Result};
use junctor_model::stored_schema::DictionaryChange;
use junctor_signals::change_schema::{
    Catalog, ChangePartition, ChangePartitionReply, ChangeSchemaReply, PartitionChange, PublishCatalogReply,
};
use junctor_signals::crash_point;
use junctor_signals::crash_point::CrashStep;
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::inbox::ContinueWork;
use junctor_signals::read_rows::OperationId;
use junctor_signals::{LdmSignal, MainSignal, Signal, SqlSignal};

use super::block::MainBlock;
use super::state::{
    AlterationStep, Change, NO_OPERATION, PartitionWork, PartitionWorkKind, Requester, StageWork, WaitingChange,
};
use crate::membership::NodeSet;

/// Maximum number of signals sent to ldm instances in one turn.
const SIGNALS_PER_TURN: usize = 48;

impl MainBlock {
    /// Starts ready changes until one has stages to run.
    pub(super) fn begin_changes(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        if !self.may_begin_changes() {
            return;
        }
        if self.running.is_some() {
            return self.request_exclusions(outbox);
        }
        while self.running.is_none() {
            let Some(waiting) = self.next_ready(now, outbox) else { return };
            self.notify_started(&waiting, outbox);
            if waiting.task.is_lock() {
                self.lock_tables(waiting, now, outbox);
                continue;
            }
            let WaitingChange { number, requester, task, names, tables, .. } = waiting;
            let step_on_table = task.step_on_table();
            let step = task.step();
            let plan = match self.plan(task, requester.foreign_key_checks) {
                Ok(plan) => plan,
                Err(error) => {
                    self.unblock_tables(number, &tables, outbox);
                    self.fail_change((&requester, step), error, now, outbox);
                    continue;
                }
            };
            let Some(next_table) = self.next_table.0.checked_add(plan.tables_made) else {
                junctor_kernel::invariant::fail("table ids are not used twice", format_args!("{:?}", self.next_table))
            };
            self.next_table.0 = next_table;
            self.next_place = (self.next_place + plan.partitions_placed) % self.places();
            for (table, counter) in plan.counters {
                let before = self.counters.insert(table, counter);
                require!(before.is_none(), "a table gets its AUTO_INCREMENT counter once: {table:?}");
            }
            for (table, least) in plan.raised_counters {
                if let Some(counter) = self.counters.get_mut(&table) {
                    counter.raise_floor(least);
                }
            }
            self.running = Some(Change {
                number,
                requester,
                names,
                tables,
                step_on_table,
                notes: plan.notes,
                successor: plan.successor,
                stages: plan.stages.into(),
                undo: VecDeque::new(),
                error: None,
                is_decided: false,
                record_step: record_step(step),
                unsent: VecDeque::new(),
                outstanding: 0,
                owed: BTreeMap::new(),
                step: None,
            });
            self.advance(now, outbox);
        }
    }

    /// Starts stages until one has to wait for answers. Ends the change after its last stage.
    fn advance(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        while let Some(change) = &mut self.running {
            if change.outstanding > 0 {
                return;
            }
            if let Some(step) = change.step.take() {
                outbox.crash_point(step.after());
            }
            let is_undo = change.error.is_some();
            let work = match (&change.error, change.stages.pop_front()) {
                (None, Some(stage)) => {
                    if let Some(undo) = stage.undo {
                        change.undo.push_front(undo);
                    }
                    Some(stage.work)
                }
                (None, None) => None,
                (Some(_), _) => {
                    // A restart would find the change done.
                    require!(!change.is_decided, "a change with a durable record is not undone");
                    change.undo.pop_front()
                }
            };
            if let Some(work) = &work {
                change.step = if is_undo { Some(crash_point::JOB_UNDO) } else { work.crash_step() };
                if let Some(step) = change.step {
                    outbox.crash_point(step.before());
                }
            }
            match work {
                Some(work) => self.begin_stage(work, outbox),
                None => self.end_change(now, outbox),
            }
        }
    }

    /// Replies to the requester, or lets its alteration go on.
    fn end_change(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(change) = self.running.take() else {
            junctor_kernel::invariant::fail("a change that ends was running", format_args!("stage {}", self.stage))
        };
        require!(
            change.outstanding == 0 && change.unsent.is_empty(),
            "a change ends only after every block has answered"
        );
        let is_over = if change.error.is_some() { change.undo.is_empty() } else { change.stages.is_empty() };
        require!(is_over, "a change ends after its last stage");
        self.remove_counters(outbox);
        self.unblock_tables(change.number, &change.tables, outbox);
        let requester = change.requester;
        match (change.error, change.step_on_table) {
            (Some(error), step) => self.fail_change((&requester, step.map(|(step, _)| step)), error, now, outbox),
            (None, Some(done)) => self.on_step_done(requester.connection, done, now, outbox),
            (None, None) => {
                reply(&requester, Ok(ChangeResult { notes: change.notes, ..ChangeResult::default() }), outbox)
            }
        }
        self.publish_to_next(outbox);
        self.begin_changes(now, outbox);
    }

    /// Replies with the error of a failed change. If the change is a step of an alteration, the alteration is
    /// undone first.
    pub(super) fn fail_change(
        &mut self,
        (requester, step): (&Requester, Option<AlterationStep>),
        error: Box<Error>,
        now: Time,
        outbox: &mut Outbox<Signal>,
    ) {
        match step {
            None => reply(requester, Err(error), outbox),
            Some(step) => self.on_step_failed((requester.connection, step), error, now, outbox),
        }
    }

    fn begin_stage(&mut self, work: StageWork, outbox: &mut Outbox<Signal>) {
        self.stage += 1;
        match work {
            StageWork::Partitions(works) => {
                let (own, operation) = (self.own, OperationId(self.stage));
                let epoch = self.published_epoch();
                let Some(change) = &mut self.running else {
                    junctor_kernel::invariant::fail(
                        "a stage belongs to the running change",
                        format_args!("{operation:?}"),
                    )
                };
                require!(change.unsent.is_empty() && change.outstanding == 0, "stages run one after the other");
                let gone = self.epochs.as_ref().map_or(NodeSet::EMPTY, |epochs| epochs.all_gone());
                let late = self.epochs.as_ref().map(|epochs| epochs.late().clone()).unwrap_or_default();
                for work in works {
                    let PartitionWork { partition, layout, chain, kind } = work;
                    // A new partition knows all nodes that are configured: one that is away now may return.
                    let members = late.order(&chain, &gone.to_words());
                    let requests = members.into_iter().map(|member| {
                        let change = match kind {
                            PartitionWorkKind::Create => PartitionChange::Create { chain: chain.clone() },
                            PartitionWorkKind::Drop => PartitionChange::Drop,
                            PartitionWorkKind::ReplaceLayout => PartitionChange::ReplaceLayout,
                            PartitionWorkKind::BuildIndex(index) => PartitionChange::BuildIndex(index),
                        };
                        let layout = Arc::clone(&layout);
                        (member, ChangePartition { operation, reply_to: own, partition, layout, change, epoch })
                    });
                    change.unsent.extend(requests);
                }
                change.outstanding = change.unsent.len();
                change.owed.clear();
                for (to, _) in change.unsent.iter().filter(|(to, _)| to.node != own.node) {
                    *change.owed.entry(to.node).or_default() += 1;
                }
                self.send_unsent(outbox);
            }
            StageWork::Persist(catalog) => self.persist(&catalog, outbox),
            StageWork::Publish(catalog) => self.publish(catalog, outbox),
        }
    }

    /// Writes the change to the log. Nothing follows before the record is durable; a failed log keeps the
    /// change waiting.
    fn persist(&mut self, catalog: &Arc<Catalog>, outbox: &mut Outbox<Signal>) {
        if !self.records.is_enabled() {
            return;
        }
        let Some(change) = &mut self.running else { return };
        require!(change.error.is_none(), "a failed change has no record");
        change.is_decided = true;
        change.outstanding = 1;
        self.add_first_marks();
        let mut change = DictionaryChange::between(&self.catalog.dictionary, &catalog.dictionary, self.next_table);
        self.store_placements(catalog, &mut change);
        self.write_dictionary(change.encode(), catalog, outbox);
    }

    /// The record of the running change is durable.
    pub(super) fn on_record_durable(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.count_answer(OperationId(self.stage));
        self.advance(context.turn_start, outbox);
    }

    /// Sends the next signals of the current stage.
    pub(super) fn send_unsent(&mut self, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let Some(change) = &mut self.running else { return };
        let count = change.unsent.len().min(SIGNALS_PER_TURN);
        for (to, request) in change.unsent.drain(..count) {
            outbox.send(to, Signal::Ldm(LdmSignal::ChangePartition(request)));
        }
        if !change.unsent.is_empty() {
            outbox.send(own, Signal::Main(MainSignal::ContinueWork(ContinueWork { work: 0 })));
        }
    }

    /// Sends the newest catalog to every block that needs it. Returns how many will answer.
    pub(super) fn send_catalog(&self, operation: OperationId, outbox: &mut Outbox<Signal>) -> usize {
        for to in &self.subscribers {
            self.publish_to(*to, operation, outbox);
        }
        self.subscribers.len()
    }

    fn publish(&mut self, catalog: Arc<Catalog>, outbox: &mut Outbox<Signal>) {
        let (before, after) = (self.catalog.dictionary.version, catalog.dictionary.version);
        require!(
            after > before,
            "each published catalog has a higher version than the one before: {after:?} after {before:?}"
        );
        self.catalog = catalog;
        let outstanding = self.send_catalog(OperationId(self.stage), outbox);
        let own = self.own.node;
        if let Some(change) = &mut self.running {
            change.is_decided = true;
            change.outstanding = outstanding;
            change.owed.clear();
            for to in self.subscribers.iter().filter(|to| to.node != own) {
                *change.owed.entry(to.node).or_default() += 1;
            }
        }
    }

    /// Counts one block's answer to the current stage, and returns the running change.
    fn count_answer(&mut self, operation: OperationId) -> &mut Change {
        let stage = self.stage;
        let Some(change) = self.running.as_mut().filter(|_| operation.0 == stage) else {
            junctor_kernel::invariant::fail(
                "a block answers the stage that runs",
                format_args!("{operation:?}, {stage}"),
            )
        };
        require!(change.outstanding > 0, "each block answers a stage once");
        change.outstanding -= 1;
        change
    }

    /// Whether the answers of the node no longer count. One may have been under way when the node was lost.
    fn has_left(&self, node: NodeId) -> bool {
        self.epochs.as_ref().is_some_and(|epochs| epochs.all_gone().contains(node))
    }

    pub(super) fn on_change_partition_reply(
        &mut self,
        (from, reply): (NodeId, ChangePartitionReply),
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        if self.has_left(from) {
            return;
        }
        let change = self.count_answer(reply.operation);
        if let Some(owed) = change.owed.get_mut(&from) {
            *owed = owed.saturating_sub(1);
        }
        // Only the first error is reported. A failure during the undo does not replace it.
        if let Some(error) = reply.error {
            change.error.get_or_insert(error);
        }
        self.advance(context.turn_start, outbox);
    }

    /// These nodes have left the cluster, and answer nothing any more.
    pub(super) fn leave_nodes(&mut self, gone: NodeSet, now: Time, outbox: &mut Outbox<Signal>) {
        self.configuration.backup_nodes.retain(|node| !gone.contains(*node));
        self.forget_blocks(&gone, outbox);
        if let Some(change) = &mut self.running {
            let owed: usize = gone.iter().filter_map(|node| change.owed.remove(&node)).sum();
            if owed > 0 {
                change.unsent.retain(|(to, _)| !gone.contains(to.node));
                change.outstanding -= owed;
                self.advance(now, outbox);
            }
        }
        self.leave_lost_sessions(now, outbox);
    }

    pub(super) fn on_publish_catalog_reply(
        &mut self,
        (from, reply): (NodeId, PublishCatalogReply),
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        if self.takes_introduction_reply(reply.operation, context.turn_start, outbox) {
            return;
        }
        if self.has_left(from) {
            return;
        }
        let change = self.count_answer(reply.operation);
        if let Some(owed) = change.owed.get_mut(&from) {
            *owed = owed.saturating_sub(1);
        }
        self.advance(context.turn_start, outbox);
    }
}

/// The step of a change's dictionary record. Tests crash the node around it.
fn record_step(step: Option<AlterationStep>) -> CrashStep {
    match step {
        Some(AlterationStep::Finish) => crash_point::JOB_FINISH,
        Some(AlterationStep::Undo) => crash_point::JOB_UNDO,
        _ => crash_point::JOB_RECORD,
    }
}

/// The result of a change.
#[derive(Debug, Default)]
pub(super) struct ChangeResult {
    pub notes: Vec<(u16, Box<str>)>,
    /// Number of rows that an alteration has checked for their parents.
    pub rows: u64,
    /// Warnings of the values that an alteration has adjusted.
    pub diagnostics: Option<Box<Diagnostics>>,
}

/// Replies to the requester of a change, unless main of a node asked for it. A failed change returns no
/// notes.
pub(super) fn reply(requester: &Requester, result: Result<ChangeResult>, outbox: &mut Outbox<Signal>) {
    if requester.operation == NO_OPERATION {
        return;
    }
    let (ChangeResult { notes, rows, diagnostics }, error) = match result {
        Ok(result) => (result, None),
        Err(error) => (ChangeResult::default(), Some(error)),
    };
    let reply = ChangeSchemaReply { operation: requester.operation, notes, rows, diagnostics, error };
    outbox.send(requester.reply_to, Signal::Sql(SqlSignal::ChangeSchemaReply(reply)));
}
