//! Main's records in the log: schema changes, and marks of AUTO_INCREMENT counters. A counter hands out only
//! numbers below its mark.
//!
//! Main writes one batch of records at a time. A batch has one commit number, which main takes like a
//! transaction. The dictionary record of the batch carries the number. If the batch contains marks only, a
//! commit record without changes carries it. The log writes a stream in order. When the number is durable,
//! the marks before the numbered record are durable as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_kernel::{Address, Buffer, Context, Outbox, require};
use junctor_model::id::{CommitNumber, TableId, TransactionId};
use junctor_model::planted_bug::PlantedBug;
use junctor_model::stored_mark::CounterMark;
use junctor_signals::append_records::{AppendRecords, AwaitDurable, AwaitDurableReply};
use junctor_signals::change_schema::Catalog;
use junctor_signals::commit_transaction::{CommitStable, MAIN_OWNER};
use junctor_signals::{LogSignal, Signal, crash_point};
use junctor_storage::commit_sequence::CommitSequence;
use junctor_storage::log::{FormedRecords, RecordBuffer, RecordHeader, RecordKind};

use super::block::MainBlock;

/// The log of the node, as main writes to it.
#[derive(Clone, Debug)]
pub struct MainLog {
    /// The log block.
    pub log: Address,
    /// The source of commit numbers.
    pub sequence: Arc<CommitSequence>,
    /// How many records each stream has formed. Main's stream is the last one.
    pub formed: Arc<FormedRecords>,
}

/// The stream of main's records.
#[derive(Debug)]
pub(super) struct RecordStream {
    /// `None` on a node without a log, which forms no records.
    target: Option<MainLog>,
    buffer: RecordBuffer,
    spare: Vec<u8>,
    /// Number of records formed since the start of the node.
    formed: u64,
    /// The next batch.
    draft: Draft,
    /// In a cluster, the catalog after the change of the next batch.
    catalog: Option<Arc<Catalog>>,
    under_way: Option<Batch>,
    /// The number of the request to the log that is not answered yet.
    asked: Option<CommitNumber>,
}

/// Records that are not formed yet.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub dictionary: Option<Vec<u8>>,
    pub marks: BTreeMap<TableId, CounterMark>,
}

/// Records that are formed and not durable yet.
#[derive(Debug)]
struct Batch {
    number: CommitNumber,
    has_dictionary: bool,
    marks: BTreeMap<TableId, CounterMark>,
}

impl RecordStream {
    pub fn new(target: Option<MainLog>) -> RecordStream {
        RecordStream {
            target,
            buffer: RecordBuffer::new(),
            spare: Vec::new(),
            formed: 0,
            draft: Draft::default(),
            catalog: None,
            under_way: None,
            asked: None,
        }
    }

    /// Whether the node has a log.
    pub fn is_enabled(&self) -> bool {
        self.target.is_some()
    }

    /// Whether records are not written or not durable yet.
    pub fn has_work(&self) -> bool {
        self.under_way.is_some() || self.draft.dictionary.is_some()
    }

    /// The number of the records that are not durable yet.
    pub fn under_way(&self) -> Option<CommitNumber> {
        self.under_way.as_ref().map(|batch| batch.number)
    }

    /// Takes the number for which main has asked the log.
    pub fn take_asked(&mut self) -> Option<CommitNumber> {
        self.asked.take()
    }

    /// Keeps a buffer that the log has written, for the next batch.
    pub fn reuse(&mut self, bytes: Buffer) {
        self.spare = bytes;
    }

    /// Adds a mark to the next batch.
    pub fn add_mark(&mut self, mark: CounterMark) {
        let added = self.draft.marks.entry(mark.table).or_insert(mark);
        added.mark = added.mark.max(mark.mark);
    }

    /// Takes the next batch, unless it is empty, or the one before is not durable.
    pub fn take_draft(&mut self) -> Option<(Draft, Option<Arc<Catalog>>)> {
        let is_empty = self.draft.dictionary.is_none() && self.draft.marks.is_empty();
        let has_room = self.target.is_some() && self.under_way.is_none();
        (has_room && !is_empty).then(|| (std::mem::take(&mut self.draft), self.catalog.take()))
    }

    /// Forms the records of a batch. Returns the batch and the number of its records.
    fn form(&mut self, number: CommitNumber, draft: Draft) -> (Batch, u64) {
        let transaction = TransactionId(0);
        let Draft { dictionary, marks } = draft;
        for mark in marks.values() {
            let header = RecordHeader {
                kind: RecordKind::Mark,
                participants: 0,
                number: CommitNumber(0),
                transaction,
                chunk: 0,
            };
            self.buffer.begin(&header);
            self.buffer.append_body(&mark.encode());
            self.buffer.end();
        }
        let kind = if dictionary.is_some() { RecordKind::Dictionary } else { RecordKind::Commit };
        self.buffer.begin(&RecordHeader { kind, participants: 1, number, transaction, chunk: 0 });
        if let Some(body) = &dictionary {
            self.buffer.append_body(body);
        }
        self.buffer.end();
        let count = marks.len() as u64 + 1;
        (Batch { number, has_dictionary: dictionary.is_some(), marks }, count)
    }
}

impl MainBlock {
    /// Writes a dictionary record, with the first values of the counters that the change creates. The running
    /// change goes on when the record is durable.
    pub(super) fn write_dictionary(&mut self, body: Vec<u8>, catalog: &Arc<Catalog>, outbox: &mut Outbox<Signal>) {
        require!(self.records.draft.dictionary.is_none(), "one schema change writes its record at a time");
        self.records.draft.dictionary = Some(body);
        self.records.catalog = self.member.is_some().then(|| Arc::clone(catalog));
        self.write_records(outbox);
    }

    /// Begins the next batch if there is something to write and no batch is under way.
    pub(super) fn write_records(&mut self, outbox: &mut Outbox<Signal>) {
        if self.are_marks_exact && self.records.under_way.is_none() {
            self.lower_marks();
        }
        if self.member.is_some() {
            return self.share_records(outbox);
        }
        let RecordStream { target: Some(target), under_way: None, draft, .. } = &self.records else {
            return;
        };
        if draft.dictionary.is_none() && draft.marks.is_empty() {
            return;
        }
        if self.epochs.is_some() {
            return self.request_records_number(0, &[self.own.node], outbox);
        }
        let number = match target.sequence.take(MAIN_OWNER) {
            Ok(number) => number,
            Err(error) => junctor_kernel::invariant::fail("main gets a commit number", format_args!("{error}")),
        };
        let Some((draft, _)) = self.records.take_draft() else { return };
        self.write_numbered(number, draft, true, outbox);
        self.mark_records(number, outbox);
        self.ask_for_durable(outbox);
    }

    /// Forms a batch with this number, and sends it to the log. `is_own` says whether the batch is of this
    /// main, which goes on once the batch is durable.
    pub(super) fn write_numbered(
        &mut self,
        number: CommitNumber,
        draft: Draft,
        is_own: bool,
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(target) = self.records.target.clone() else { return };
        let is_change = is_own && draft.dictionary.is_some();
        let record_step = self.running.as_ref().filter(|_| is_change).map(|change| change.record_step);
        if !draft.marks.is_empty() {
            outbox.crash_point(crash_point::MARK_EXTEND.before());
        }
        if let Some(step) = record_step {
            outbox.crash_point(step.before());
        }
        let (batch, count) = self.records.form(number, draft);
        self.records.formed += count;
        // Before the log makes the number durable, it waits for every record that is counted here. Publish
        // the count before the number is marked as applied.
        target.formed.publish(target.formed.len() - 1, self.records.formed);
        let bytes = self.records.buffer.take(std::mem::take(&mut self.records.spare));
        let stream = target.formed.len() as u16 - 1;
        let signal = AppendRecords { from: self.own, stream, records_formed: self.records.formed, bytes };
        outbox.send(target.log, Signal::Log(LogSignal::AppendRecords(signal)));
        if let Some(step) = record_step {
            outbox.crash_point(step.after());
            outbox.crash_point(crash_point::JOB_DURABLE.before());
        }
        self.records.under_way = is_own.then_some(batch).or(self.records.under_way.take());
    }

    /// Marks the number of main's records as applied: it changes no rows.
    fn mark_records(&mut self, number: CommitNumber, outbox: &mut Outbox<Signal>) {
        let Some(target) = &self.configuration.log else { return };
        let node = self.own.node;
        let marked = target.sequence.mark_applied(number, &mut |stable, owner| {
            if stable != number {
                let (to, signal) = CommitStable::for_owner(stable, owner, node);
                outbox.send(to, signal);
            }
        });
        require!(marked.is_ok(), "commit {number} of main: {marked:?}");
    }

    /// Asks the log to report when the number of the batch, or of the checkpoint, is durable. Does so only
    /// once the number is stable: it and all earlier numbers are applied. The log takes one request at a
    /// time.
    pub(super) fn ask_for_durable(&mut self, outbox: &mut Outbox<Signal>) {
        let RecordStream { target: Some(target), asked, under_way, .. } = &mut self.records else { return };
        let batch = under_way.as_ref().map(|batch| batch.number);
        let of_main = batch.max(self.checkpoints.awaited());
        if let (Some(epochs), Some(number)) = (&mut self.epochs, of_main) {
            epochs.want_on_disk(number);
        }
        let stable = target.sequence.stable();
        let of_clients = self.epochs.as_ref().and_then(|epochs| epochs.wanted_on_disk());
        // In a cluster, main waits for other nodes after its own log has answered.
        let durable = self.epochs.as_ref().map_or(CommitNumber(0), |epochs| epochs.durable());
        let wanted = [batch, self.checkpoints.awaited(), of_clients].into_iter().flatten();
        let wanted = wanted.filter(|number| *number <= stable && *number > durable);
        if let (None, Some(number)) = (*asked, wanted.min()) {
            *asked = Some(number);
            // Number 0 is always durable.
            let is_early = batch == Some(number) && PlantedBug::PublishSchemaEarly.is_planted();
            let number = if is_early { CommitNumber(0) } else { number };
            let signal = AwaitDurable { number, reply_to: self.own };
            outbox.send(target.log, Signal::Log(LogSignal::AwaitDurable(signal)));
        }
    }

    /// Handles the news that a number of main became stable. Main may already have seen this, and may have
    /// begun its next batch.
    pub(super) fn on_commit_stable(&mut self, number: CommitNumber, outbox: &mut Outbox<Signal>) {
        if self.records.under_way.as_ref().is_some_and(|batch| batch.number == number) {
            self.ask_for_durable(outbox);
        }
    }

    /// The number up to which commits are durable, by the log's answer to the last request.
    fn awaited_durable(&mut self, durable: CommitNumber) -> CommitNumber {
        let Some(asked) = self.records.asked.take() else {
            junctor_kernel::invariant::fail("the log answers main once", format_args!("{durable:?}"))
        };
        let durable = if PlantedBug::PublishSchemaEarly.is_planted() { durable.max(asked) } else { durable };
        require!(durable >= asked, "the log reports at least the awaited number: {durable}, {asked}");
        durable
    }

    pub(super) fn on_await_durable_reply(
        &mut self,
        reply: AwaitDurableReply,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let durable = self.awaited_durable(reply.durable);
        self.on_durable(durable, context, outbox);
    }

    /// Commits up to here survive a crash.
    pub(super) fn on_durable(&mut self, durable: CommitNumber, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.install_shared(durable);
        if let Some(batch) = self.records.under_way.take_if(|batch| batch.number <= durable) {
            if !batch.marks.is_empty() {
                outbox.crash_point(crash_point::MARK_EXTEND.after());
                self.raise_durable_marks(&batch.marks, outbox);
            }
            if batch.has_dictionary {
                outbox.crash_point(crash_point::JOB_DURABLE.after());
                self.on_record_durable(context, outbox);
            }
        }
        // After the batch: a manifest needs the schema with all changes up to its number.
        self.on_checkpoint_durable(self.durable_for_round(durable), context.turn_start, outbox);
        self.write_records(outbox);
        self.ask_for_durable(outbox);
    }
}
