//! Checkpoints: where replay starts, and which segments stay.

use junctor_kernel::{FileLane, WorldRequest};
use junctor_model::id::{CommitNumber, RowId, SchemaVersion, TransactionId};
use junctor_signals::append_records::AppendRecords;
use junctor_signals::checkpoint::{BeginCheckpoint, BeginCheckpointReply, ReadLogUsage, TrimLog};
use junctor_signals::recover_log::CheckpointBounds;
use junctor_signals::{LogSignal, MainSignal, Module, Signal};
use junctor_storage::log::{RecordBuffer, RecordHeader, RecordKind, SectionHeader, commit_blocks, record_blocks};

use super::{PARTITION, SEGMENT_BYTES, Stage, address};

impl Stage {
    fn begin_checkpoint(&mut self) -> BeginCheckpointReply {
        self.sent.clear();
        self.handle(LogSignal::BeginCheckpoint(BeginCheckpoint { reply_to: address(Module::Main, 0) }));
        match self.sent.pop() {
            Some((_, Signal::Main(MainSignal::BeginCheckpointReply(reply)))) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// A round in which the ldms write nothing above its first number. Later lives find its manifest.
    pub(super) fn checkpoint(&mut self) -> CheckpointBounds {
        let BeginCheckpointReply { begin, replay_from } = self.begin_checkpoint();
        self.checkpoint = CheckpointBounds { begin, newest: begin, replay_from };
        self.handle(LogSignal::TrimLog(TrimLog { replay_from }));
        self.run_disk();
        self.checkpoint
    }

    /// A life after this one that has the manifest of the last checkpoint.
    fn after_checkpoint(before: &Stage) -> Stage {
        let mut stage = Stage::after(before);
        stage.checkpoint = before.checkpoint;
        stage
    }

    /// Forms a record of a long transaction at stream 0 and delivers it.
    fn deliver_chunk_record(&mut self, kind: RecordKind, number: CommitNumber, chunk: u32) {
        let mut buffer = RecordBuffer::new();
        let participants = u16::from(number.0 > 0);
        buffer.begin(&RecordHeader { kind, participants, number, transaction: TransactionId(1 << 30), chunk });
        if kind == RecordKind::Chunk {
            buffer.begin_section(&SectionHeader { partition: PARTITION, origin: 0, row_format: SchemaVersion(1) });
            buffer.put(RowId(9), b"of a long transaction");
        }
        buffer.end();
        let bytes = buffer.take(Vec::new());
        match number.0 {
            0 => assert!(self.exchange(record_blocks(bytes.len()))),
            _ => self.reserve(number, commit_blocks(bytes.len())),
        }
        self.records[0] += 1;
        self.formed.publish(0, self.records[0]);
        let from = address(Module::Ldm, 0);
        self.handle(LogSignal::AppendRecords(AppendRecords {
            from,
            stream: 0,
            records_formed: self.records[0],
            bytes,
        }));
    }

    pub(super) fn commit_durably(&mut self, image: &[u8]) -> CommitNumber {
        let number = self.commit_row(PARTITION, image);
        self.await_durable(0, number);
        self.run_disk();
        number
    }

    /// Numbers of the segments that have a file.
    fn segments(&self) -> Vec<u64> {
        self.files.keys().filter_map(|path| junctor_storage::log::segment_number(&path[4..])).collect()
    }
}

#[test]
fn only_commits_after_the_checkpoint_are_replayed() {
    let mut stage = Stage::started();
    stage.commit_durably(b"in the checkpoint");
    let begin = stage.commit_durably(b"in the checkpoint too");
    let bounds = stage.checkpoint();
    assert_eq!((bounds.begin, bounds.replay_from), (begin, 2), "the last synced group");
    let after = stage.commit_durably(b"later");
    let mut next = Stage::after_checkpoint(&stage);
    let recovered = next.recover().expect("a whole log");
    assert_eq!((recovered.incarnation, recovered.last_commit_kept), (1, after));
    assert_eq!(next.replay(PARTITION), [(after.0, b"later".to_vec())]);
    next.start(2, &recovered);
    let last = next.commit_durably(b"in the next life");
    // The manifest of the first life still counts.
    let mut third = Stage::after_checkpoint(&next);
    third.recover().expect("a whole log");
    let expected = [(after.0, b"later".to_vec()), (last.0, b"in the next life".to_vec())];
    assert_eq!(third.replay(PARTITION), expected);
}

#[test]
fn a_log_without_commits_after_the_checkpoint_replays_nothing() {
    let mut stage = Stage::started();
    stage.commit_durably(b"one");
    stage.checkpoint();
    let mut next = Stage::after_checkpoint(&stage);
    let recovered = next.recover().expect("a whole log");
    assert_eq!(next.replay(PARTITION), []);
    // A checkpoint right after the start names the start group.
    next.start(2, &recovered);
    let bounds = next.checkpoint();
    assert_eq!((bounds.begin, bounds.replay_from), (recovered.ceiling, recovered.position));
    let mut third = Stage::after_checkpoint(&next);
    let recovered = third.recover().expect("a whole log");
    assert_eq!((recovered.incarnation, third.replay(PARTITION).len()), (2, 0));
}

#[test]
fn a_commit_that_is_not_stable_at_the_checkpoint_is_replayed() {
    let mut stage = Stage::started();
    let first = stage.commit_durably(b"one");
    let number = stage.sequence.take(0).expect("a free number");
    let mut buffer = RecordBuffer::new();
    let (kind, transaction) = (RecordKind::Commit, TransactionId(7));
    buffer.begin(&RecordHeader { kind, participants: 1, number, transaction, chunk: 0 });
    buffer.begin_section(&SectionHeader { partition: PARTITION, origin: 0, row_format: SchemaVersion(1) });
    buffer.put(RowId(1), b"two");
    buffer.end();
    let (from, bytes) = (address(Module::Ldm, 0), buffer.take(Vec::new()));
    stage.reserve(number, commit_blocks(bytes.len()));
    stage.records[0] += 1;
    stage.formed.publish(0, stage.records[0]);
    stage.handle(LogSignal::AppendRecords(AppendRecords { from, stream: 0, records_formed: stage.records[0], bytes }));
    stage.await_durable(0, first);
    // The sync timer writes the record, whose number is not stable.
    stage.advance(junctor_kernel::Duration::from_millis(2100));
    stage.run_disk();
    let bounds = stage.checkpoint();
    assert_eq!(bounds.begin, first);
    stage.mark_applied(number);
    stage.commit_durably(b"three");
    let mut next = Stage::after_checkpoint(&stage);
    next.recover().expect("a whole log");
    assert_eq!(next.replay(PARTITION), [(2, b"two".to_vec()), (3, b"three".to_vec())]);
}

#[test]
fn chunks_before_the_checkpoint_are_replayed_if_their_commit_is_after_it() {
    let mut stage = Stage::started();
    stage.deliver_chunk_record(RecordKind::Chunk, CommitNumber(0), 0);
    stage.commit_durably(b"one");
    stage.commit_durably(b"two");
    let bounds = stage.checkpoint();
    assert_eq!((bounds.begin, bounds.replay_from), (CommitNumber(2), 1));
    let number = stage.sequence.take(0).expect("a free number");
    stage.deliver_chunk_record(RecordKind::ChunkCommit, number, 1);
    stage.mark_applied(number);
    stage.await_durable(0, number);
    stage.run_disk();
    let mut next = Stage::after_checkpoint(&stage);
    next.recover().expect("a whole log");
    assert_eq!(next.replay(PARTITION), [(number.0, b"of a long transaction".to_vec())]);
    // The next checkpoint contains the transaction.
    assert!(stage.begin_checkpoint().replay_from > 2);
}

#[test]
fn an_undone_long_transaction_does_not_hold_the_log() {
    let mut stage = Stage::started();
    stage.deliver_chunk_record(RecordKind::Chunk, CommitNumber(0), 0);
    stage.commit_durably(b"one");
    assert_eq!(stage.begin_checkpoint().replay_from, 1);
    stage.deliver_chunk_record(RecordKind::ChunkUndo, CommitNumber(0), 0);
    stage.commit_durably(b"two");
    assert_eq!(stage.begin_checkpoint().replay_from, 2);
    let mut next = Stage::after_checkpoint(&stage);
    next.recover().expect("a whole log");
    assert_eq!(next.replay(PARTITION).len(), 2);
}

#[test]
fn trimmed_segments_are_renamed_and_the_surplus_is_deleted() {
    let mut stage = Stage::started();
    let image = vec![1; 300_000];
    for _ in 0..40 {
        stage.commit_durably(&image);
    }
    let before = stage.segments().len();
    assert!(before > 10, "{before} segments");
    let bounds = stage.checkpoint();
    let first = bounds.replay_from * 4096 / SEGMENT_BYTES;
    // Eight spare segments, the one of the last group, and the next one.
    assert_eq!(stage.segments().len(), 10);
    for _ in 0..20 {
        stage.commit_durably(&image);
    }
    assert!(stage.segments().len() <= 11, "{:?}", stage.segments());
    assert!(stage.segments().iter().filter(|segment| **segment >= first).count() > 6);
    stage.handle(LogSignal::ReadLogUsage(ReadLogUsage { reply_to: address(Module::Main, 0) }));
    match stage.sent.pop() {
        Some((_, Signal::Main(MainSignal::ReadLogUsageReply(usage)))) => {
            assert!((20 * 300_000..22 << 20).contains(&(usage.used_bytes as usize)), "{usage:?}");
            assert!(usage.written_bytes > 60 * 300_000, "{usage:?}");
            assert!(usage.records == 60 && usage.syncs >= 60, "{usage:?}");
        }
        other => panic!("{other:?}"),
    }
    let mut next = Stage::after_checkpoint(&stage);
    let recovered = next.recover().expect("a whole log");
    assert_eq!(next.replay(PARTITION).len(), 20);
    next.start(2, &recovered);
    // Spare segments of the earlier life are used and trimmed too.
    for _ in 0..20 {
        next.commit_durably(&image);
    }
    next.checkpoint();
    assert!(next.segments().len() <= 11, "{:?}", next.segments());
    let mut last = Stage::after_checkpoint(&next);
    last.recover().expect("a whole log");
    assert_eq!(last.replay(PARTITION).len(), 0);
}

#[test]
fn a_log_that_ends_before_its_checkpoint_is_refused() {
    let mut stage = Stage::started();
    let begin = stage.commit_durably(b"one");
    let mut bounds = stage.checkpoint();
    bounds.newest = CommitNumber(begin.0 + 1);
    let mut next = Stage::after(&stage);
    next.checkpoint = bounds;
    let error = next.recover().expect_err("the checkpoint contains a later commit");
    assert!(error.contains("the checkpoint contains commit 2"), "{error}");
    // The group that the manifest names is gone.
    let mut lost = Stage::after_checkpoint(&stage);
    lost.files.clear();
    assert_eq!(lost.recover().map(|recovered| recovered.incarnation), Ok(0), "main refuses a log without groups");
}

#[test]
fn the_log_goes_on_while_a_segment_is_deleted() {
    let mut stage = Stage::started();
    let image = vec![1; 300_000];
    for _ in 0..40 {
        stage.commit_durably(&image);
    }
    let BeginCheckpointReply { replay_from, .. } = stage.begin_checkpoint();
    stage.handle(LogSignal::TrimLog(TrimLog { replay_from }));
    assert!(stage.requests.iter().all(|request| request.file_lane() == Some(FileLane::Bulk)));
    assert!(stage.requests.iter().any(|request| matches!(request, WorldRequest::DeleteFile { .. })));
    let number = stage.commit_row(PARTITION, b"small");
    stage.await_durable(0, number);
    stage.run_log_lane();
    assert_eq!(stage.block.durable(), number);
}
