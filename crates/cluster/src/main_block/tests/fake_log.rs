//! A log block that keeps main's records in memory.

use std::sync::Arc;

use junctor_kernel::{Address, NodeId};
use junctor_model::id::CommitNumber;
use junctor_signals::append_records::{AppendRecords, AppendRecordsReply, AwaitDurable, AwaitDurableReply};
use junctor_signals::checkpoint::{BeginCheckpointReply, ReadLogUsageReply, TrimLog};
use junctor_signals::{LogSignal, MainSignal, Module};
use junctor_storage::commit_sequence::CommitSequence;
use junctor_storage::log::{FormedRecords, RecordKind, decode_record};

use super::super::records::MainLog;

/// Streams of the fake node: two ldm instances, then main.
const STREAMS: usize = 3;

#[derive(Debug)]
pub(in super::super) struct FakeLog {
    pub target: MainLog,
    /// Records that a crash loses.
    pub appended: Vec<(RecordKind, CommitNumber, Vec<u8>)>,
    /// Records that survive a crash.
    pub durable: Vec<(RecordKind, CommitNumber, Vec<u8>)>,
    /// Whether requests stay unanswered.
    pub is_stalled: bool,
    pub awaited: Option<CommitNumber>,
    formed: u64,
    pub used_bytes: u64,
    pub written_bytes: u64,
}

impl FakeLog {
    pub fn new() -> FakeLog {
        FakeLog::after(CommitNumber(0))
    }

    /// An empty log whose numbers begin after this one.
    pub fn after(last: CommitNumber) -> FakeLog {
        let log = Address::new(NodeId(1), Module::Log, 0);
        let sequence = Arc::new(CommitSequence::starting_after(last));
        FakeLog {
            target: MainLog { log, sequence, formed: Arc::new(FormedRecords::new(STREAMS)) },
            appended: Vec::new(),
            durable: Vec::new(),
            is_stalled: false,
            awaited: None,
            formed: 0,
            used_bytes: 0,
            written_bytes: 0,
        }
    }

    pub fn take(&mut self, signal: LogSignal, events: &mut Vec<String>) -> Option<MainSignal> {
        match signal {
            LogSignal::AppendRecords(AppendRecords { stream, records_formed, bytes, .. }) => {
                assert_eq!(usize::from(stream), STREAMS - 1);
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let (record, length) = decode_record(rest).expect("a whole record");
                    events.push(format!("append {:?}", record.header.kind));
                    self.appended.push((record.header.kind, record.header.number, record.body.to_vec()));
                    self.formed += 1;
                    rest = &rest[length..];
                }
                assert_eq!((self.formed, self.target.formed.count(STREAMS - 1)), (records_formed, records_formed));
                Some(MainSignal::AppendRecordsReply(AppendRecordsReply { bytes }))
            }
            LogSignal::AwaitDurable(AwaitDurable { number, .. }) => {
                assert!(number <= self.target.sequence.stable(), "{number} is stable");
                assert_eq!(self.awaited.replace(number), None, "one request is under way");
                if self.is_stalled { None } else { self.sync(events) }
            }
            LogSignal::ReadLogUsage(_) => {
                let (used_bytes, limit_bytes) = (self.used_bytes, 1 << 30);
                let usage = ReadLogUsageReply {
                    used_bytes,
                    limit_bytes,
                    written_bytes: self.written_bytes,
                    ..ReadLogUsageReply::default()
                };
                Some(MainSignal::ReadLogUsageReply(usage))
            }
            LogSignal::BeginCheckpoint(_) => {
                let begin = self.target.sequence.stable();
                events.push(format!("begin at {begin}"));
                let replay_from = self.written_bytes / 4096;
                Some(MainSignal::BeginCheckpointReply(BeginCheckpointReply { begin, replay_from }))
            }
            LogSignal::TrimLog(TrimLog { replay_from }) => {
                events.push(format!("trim to {replay_from}"));
                None
            }
            other => panic!("main sends {other:?}"),
        }
    }

    /// Makes the records durable, and answers main if it waits.
    pub fn sync(&mut self, events: &mut Vec<String>) -> Option<MainSignal> {
        self.durable.append(&mut self.appended);
        let durable = self.awaited.take()?;
        events.push("durable".to_owned());
        Some(MainSignal::AwaitDurableReply(AwaitDurableReply { durable }))
    }

    /// The bodies of the durable records of this kind.
    pub fn bodies(&self, kind: RecordKind) -> Vec<Vec<u8>> {
        self.durable.iter().filter(|record| record.0 == kind).map(|record| record.2.clone()).collect()
    }
}
