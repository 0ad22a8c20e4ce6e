use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use junctor_kernel::context::TestContext;
use junctor_kernel::{
    Address, Duration, FileBuffer, FileError, FileId, FileLane, FileOutcome, FileResult, FolderEntry, NodeId,
    NodeLayout, Outbox, Time, WorldEvent, WorldRequest,
};
use junctor_model::id::{CommitNumber, PartitionId, RowId, SchemaVersion, TableId, TransactionId};
use junctor_signals::append_records::{AppendRecords, AwaitDurable, LogSpace, ReserveLogSpace, SpaceExchange};
use junctor_signals::recover_log::{CheckpointBounds, RecoverLog, RecoveredLog, ReplayLog, ReplayRowsReply};
use junctor_signals::start_log::StartLog;
use junctor_signals::{LdmSignal, LogSignal, MainSignal, Module, Signal, TcSignal};
use junctor_storage::commit_sequence::CommitSequence;
use junctor_storage::log::{
    ChainPosition, FormedRecords, GroupHeader, GroupKind, LogAnalysis, LogScan, MAIN_STREAM, Operation, RecordBuffer,
    RecordHeader, RecordKind, ScanStep, Section, SectionHeader, SegmentSize, StreamId, StreamReader, commit_blocks,
};

use super::{LogBlock, LogConfiguration, LogShared};

mod checkpoint;
mod space;

const NODE: NodeId = NodeId(1);
const SEGMENT_BYTES: u64 = 1 << 20;

fn address(module: Module, instance: u16) -> Address {
    Address::new(NODE, module, instance)
}

/// The block that forms a stream.
fn sender(stream: usize) -> Address {
    if stream == 2 { address(Module::Main, 0) } else { address(Module::Ldm, stream as u16) }
}

/// A log block with two ldm streams, and a disk that carries out its requests when the test says so.
struct Stage {
    block: LogBlock,
    context: TestContext,
    now: Time,
    sequence: Arc<CommitSequence>,
    formed: Arc<FormedRecords>,
    /// Requests that are not carried out yet.
    requests: Vec<WorldRequest>,
    timers: Vec<(Time, u64)>,
    files: BTreeMap<String, Vec<u8>>,
    open: Vec<String>,
    /// Signals that the block sent.
    sent: Vec<(Address, Signal)>,
    halted: Option<String>,
    /// Writes beyond this number of bytes find the disk full.
    room: u64,
    has_folder: bool,
    /// More segments do not fit on the disk.
    segments_max: usize,
    fails_syncs: bool,
    numbers: u64,
    records: [u64; 3],
    /// Blocks that tc has reserved for commits, by their numbers, and those of commits that are stable.
    reserved: BTreeMap<CommitNumber, u64>,
    spent: std::cell::Cell<u64>,
    /// What the manifest says.
    checkpoint: CheckpointBounds,
}

impl Stage {
    fn new() -> Stage {
        junctor_kernel::invariant::panic_on_failure();
        let own = address(Module::Log, 0);
        let sequence = Arc::new(CommitSequence::starting_after(CommitNumber(0)));
        let formed = Arc::new(FormedRecords::new(3));
        let (progress, formed_copy) = (Arc::default(), Arc::clone(&formed));
        let waits_for_room = Arc::default();
        let shared = LogShared { sequence: Arc::clone(&sequence), formed: formed_copy, progress, waits_for_room };
        let configuration = LogConfiguration {
            folder: "log".into(),
            segment_size: SegmentSize::of_bytes(SEGMENT_BYTES).unwrap(),
            streams: vec![StreamId(0), StreamId(1), MAIN_STREAM],
            writers: vec![address(Module::Tc, 0), address(Module::Main, 0)],
            sync_interval_ms: 2000,
            segments_max: super::SEGMENTS_MAX_DEFAULT,
            is_shared: false,
        };
        let layout = NodeLayout::new(&[&[(Module::Main, 0), (Module::Log, 0)][..]]);
        Stage {
            block: LogBlock::new(shared, configuration),
            context: TestContext::new(own, &layout, 7).expect("a layout without gaps"),
            now: Time(0),
            sequence,
            formed,
            requests: Vec::new(),
            timers: Vec::new(),
            files: BTreeMap::new(),
            open: Vec::new(),
            sent: Vec::new(),
            halted: None,
            room: u64::MAX,
            has_folder: false,
            segments_max: usize::MAX,
            fails_syncs: false,
            numbers: 0,
            records: [0; 3],
            reserved: BTreeMap::new(),
            spent: std::cell::Cell::new(0),
            checkpoint: CheckpointBounds::default(),
        }
    }

    fn started() -> Stage {
        let mut stage = Stage::new();
        stage.start(1, &RecoveredLog::default());
        stage
    }

    /// A new life on the files of another one.
    fn after(before: &Stage) -> Stage {
        let mut stage = Stage::new();
        stage.files = before.files.clone();
        stage.has_folder = before.has_folder;
        stage
    }

    /// Begins an incarnation behind a log that was read.
    fn start(&mut self, incarnation: u32, recovered: &RecoveredLog) {
        self.request_start(incarnation, recovered);
        assert!(self.take_start_reply());
        self.take_grants();
    }

    fn request_start(&mut self, incarnation: u32, recovered: &RecoveredLog) {
        let RecoveredLog { position, previous_checksum, last_commit_kept, ceiling, .. } = *recovered;
        self.sequence.restart_after(ceiling);
        self.numbers = ceiling.0;
        let start = StartLog {
            reply_to: address(Module::Main, 0),
            log_id: 5,
            life: 5 + u64::from(incarnation),
            incarnation,
            position,
            previous_checksum,
            last_commit_kept,
            highest_number: ceiling,
        };
        self.handle(LogSignal::StartLog(start));
        self.run_disk();
    }

    /// Whether the log has started.
    fn take_start_reply(&mut self) -> bool {
        let is_reply = |signal: &Signal| matches!(signal, Signal::Main(MainSignal::StartLogReply(_)));
        self.sent.extract_if(.., |(_, signal)| is_reply(signal)).count() == 1
    }

    /// Exchanges blocks as tc does. Returns whether all that was asked for is granted already.
    fn exchange(&mut self, wanted: u64) -> bool {
        let exchange = SpaceExchange { wanted: Some(wanted), spent: self.spent.take(), returned: 0 };
        let reply_to = address(Module::Tc, 0);
        self.handle(LogSignal::ReserveLogSpace(ReserveLogSpace { reply_to, exchange }));
        self.take_grants() == [wanted]
    }

    /// Reserves blocks for the commit with this number.
    fn reserve(&mut self, number: CommitNumber, blocks: u64) {
        assert!(self.exchange(blocks), "the log has room for {blocks} blocks");
        *self.reserved.entry(number).or_default() += blocks;
    }

    /// Takes the grants to tc.
    fn take_grants(&mut self) -> Vec<u64> {
        let is_grant =
            |(_, signal): &mut (Address, Signal)| matches!(signal, Signal::Tc(TcSignal::ReserveLogSpaceReply(_)));
        let granted = |(_, signal): (Address, Signal)| match signal {
            Signal::Tc(TcSignal::ReserveLogSpaceReply(reply)) => reply.grant.granted,
            other => panic!("{other:?}"),
        };
        self.sent.extract_if(.., is_grant).map(granted).collect()
    }

    /// The first reading.
    fn recover(&mut self) -> Result<Box<RecoveredLog>, Box<str>> {
        self.handle(LogSignal::RecoverLog(RecoverLog {
            reply_to: address(Module::Main, 0),
            log_id: 5,
            segment_bytes: SEGMENT_BYTES,
            checkpoint: self.checkpoint,
            limit: CommitNumber(u64::MAX),
        }));
        self.run_disk();
        match self.sent.pop() {
            Some((_, Signal::Main(MainSignal::RecoverLogReply(reply)))) => reply.result,
            other => panic!("{other:?}"),
        }
    }

    /// The second reading, for one partition: the commit numbers and images that its owner gets.
    fn replay(&mut self, partition: PartitionId) -> Vec<(u64, Vec<u8>)> {
        let owner = address(Module::Ldm, 0);
        let owners = vec![(partition, owner)];
        self.handle(LogSignal::ReplayLog(ReplayLog { reply_to: address(Module::Main, 0), owners }));
        let mut found = Vec::new();
        loop {
            self.run_disk();
            match self.sent.pop() {
                Some((to, Signal::Ldm(LdmSignal::ReplayRows(rows)))) => {
                    assert_eq!(to, owner);
                    let mut rest = &rows.sections[..];
                    while !rest.is_empty() {
                        let (number, section) = rest.split_first_chunk::<8>().expect("a number");
                        let (section, after) = Section::decode(section).expect("a section");
                        rest = after;
                        for operation in section.operations() {
                            match operation {
                                Operation::Put { image, .. } => {
                                    found.push((u64::from_le_bytes(*number), image.to_vec()))
                                }
                                Operation::Edit { .. } | Operation::Delete { .. } => panic!("every row was inserted"),
                            }
                        }
                    }
                    let reply = ReplayRowsReply { from: owner, bytes: rows.sections, error: None };
                    self.handle(LogSignal::ReplayRowsReply(reply));
                }
                Some((_, Signal::Main(MainSignal::ReplayLogReply(reply)))) => {
                    assert_eq!(reply.error, None);
                    // Several batches are under way together, so they are taken in any order here.
                    found.sort();
                    return found;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Commits the image of a row, and waits until it is durable.
    fn commit_row(&mut self, partition: PartitionId, image: &[u8]) -> CommitNumber {
        let number = self.sequence.take(0).expect("a free number");
        self.numbers = number.0;
        let mut buffer = RecordBuffer::new();
        let (kind, transaction) = (RecordKind::Commit, TransactionId(number.0));
        buffer.begin(&RecordHeader { kind, participants: 1, number, transaction, chunk: 0 });
        buffer.begin_section(&SectionHeader { partition, origin: 0, row_format: SchemaVersion(1) });
        buffer.put(RowId(1), image);
        buffer.end();
        let bytes = buffer.take(Vec::new());
        self.reserve(number, commit_blocks(bytes.len()));
        self.deliver(0, bytes, number);
        number
    }

    fn deliver(&mut self, stream: usize, bytes: Vec<u8>, number: CommitNumber) {
        self.records[stream] += 1;
        self.formed.publish(stream, self.records[stream]);
        self.mark_applied(number);
        let from = sender(stream);
        let append = AppendRecords { from, stream: stream as u16, records_formed: self.records[stream], bytes };
        self.handle(LogSignal::AppendRecords(append));
    }

    fn with_block(
        &mut self,
        action: impl FnOnce(&mut LogBlock, &mut junctor_kernel::Context<'_>, &mut Outbox<Signal>),
    ) {
        let mut outbox = Outbox::for_test(address(Module::Log, 0));
        action(&mut self.block, &mut self.context.at(self.now), &mut outbox);
        self.sent.extend(outbox.take_sent());
        for request in outbox.take_requests() {
            match request {
                WorldRequest::StartTimer { after, token } => self.timers.push((self.now.plus(after), token)),
                WorldRequest::Halt { message } => self.halted = Some(message.into()),
                request => self.requests.push(request),
            }
        }
    }

    fn handle(&mut self, signal: LogSignal) {
        self.with_block(|block, context, outbox| block.handle(signal, context, outbox));
    }

    /// Carries out the requests of a lane, or of all, with those that follow from them.
    fn run_disk(&mut self) {
        while !self.requests.is_empty() {
            self.run_request(0);
        }
    }

    fn run_request(&mut self, index: usize) {
        let request = self.requests.remove(index);
        let (token, result, bytes) = self.carry_out(request);
        let event = WorldEvent::FileDone { token, result, bytes };
        self.with_block(|block, context, outbox| block.on_world(event, context, outbox));
    }

    /// Carries out requests of the lane `Log` only.
    fn run_log_lane(&mut self) {
        while let Some(index) = self.requests.iter().position(|request| request.file_lane() == Some(FileLane::Log)) {
            self.run_request(index);
        }
    }

    fn carry_out(&mut self, request: WorldRequest) -> (u64, FileResult, FileBuffer) {
        let none = FileBuffer::new();
        match request {
            WorldRequest::CreateFolder { token, .. } if self.room == 0 => (token, Err(FileError::DiskFull), none),
            WorldRequest::CreateFolder { token, .. } => {
                self.has_folder = true;
                (token, Ok(FileOutcome::FolderCreated), none)
            }
            WorldRequest::OpenFile { token, .. } if !self.has_folder => (token, Err(FileError::NotFound), none),
            WorldRequest::SyncFolder { token, .. } => (token, Ok(FileOutcome::FolderSynced), none),
            WorldRequest::OpenFile { path, lane, token, .. } => {
                let length = self.files.entry(path.to_string()).or_default().len() as u64;
                self.open.push(path.into());
                let file = FileId::new(lane, self.open.len() - 1, 0);
                (token, Ok(FileOutcome::Opened { file, length, is_direct: true }), none)
            }
            WorldRequest::DeleteFile { path, token, .. } => {
                self.files.remove(&*path);
                (token, Ok(FileOutcome::Deleted), none)
            }
            WorldRequest::FillFile { token, .. } if self.files.len() > self.segments_max => {
                (token, Err(FileError::DiskFull), none)
            }
            WorldRequest::FillFile { file, length, token } => {
                let path = self.open[file.slot()].clone();
                self.files.insert(path, vec![0; length as usize]);
                (token, Ok(FileOutcome::Filled), none)
            }
            WorldRequest::CloseFile { token, .. } => (token, Ok(FileOutcome::Closed), none),
            WorldRequest::RenameFile { from, to, token, .. } => {
                let content = self.files.remove(&*from).expect("the file exists");
                self.files.insert(to.into(), content);
                (token, Ok(FileOutcome::Renamed), none)
            }
            WorldRequest::WriteFile { file, offset, bytes, token } => {
                if self.room < bytes.len() as u64 {
                    return (token, Err(FileError::DiskFull), bytes);
                }
                self.room -= bytes.len() as u64;
                let content = self.files.get_mut(&self.open[file.slot()]).expect("the file exists");
                content[offset as usize..offset as usize + bytes.len()].copy_from_slice(&bytes);
                (token, Ok(FileOutcome::Written { offset, length: bytes.len() as u32 }), bytes)
            }
            WorldRequest::ListFolder { token, .. } => {
                let entry = |(path, content): (&String, &Vec<u8>)| FolderEntry {
                    name: path.strip_prefix("log/").expect("a file of the log").into(),
                    length: content.len() as u64,
                    is_folder: false,
                };
                (token, Ok(FileOutcome::Listed(self.files.iter().map(entry).collect())), none)
            }
            WorldRequest::ReadFile { file, offset, length, mut bytes, token } => {
                let content = &self.files[&self.open[file.slot()]];
                let end = content.len().min(offset as usize + length as usize);
                bytes.clear();
                bytes.extend_from_slice(&content[offset as usize..end]);
                (token, Ok(FileOutcome::Read { length: bytes.len() as u32 }), bytes)
            }
            WorldRequest::SyncFile { token, .. } if self.fails_syncs => (token, Err(FileError::System(5)), none),
            WorldRequest::SyncFile { token, .. } => (token, Ok(FileOutcome::Synced), none),
            other => panic!("{other:?}"),
        }
    }

    /// Moves time on, and fires the timers that are due.
    fn advance(&mut self, duration: Duration) {
        self.now = self.now.plus(duration);
        let now = self.now;
        let due: Vec<u64> = self.timers.extract_if(.., |(time, _)| *time <= now).map(|(_, token)| token).collect();
        for token in due {
            self.with_block(|block, context, outbox| block.on_world(WorldEvent::Timer { token }, context, outbox));
        }
    }

    /// Takes a number and forms its record of this size at a stream. Returns the records for delivery.
    fn form(&mut self, stream: usize, size: usize) -> (CommitNumber, AppendRecords) {
        let number = self.sequence.take(0).expect("a free number");
        self.numbers += 1;
        assert_eq!(number.0, self.numbers);
        let mut buffer = RecordBuffer::new();
        let kind = if size == 0 { RecordKind::Commit } else { RecordKind::Dictionary };
        buffer.begin(&RecordHeader { kind, participants: 1, number, transaction: TransactionId(number.0), chunk: 0 });
        if size > 0 {
            buffer.append_body(&vec![number.0 as u8; size]);
        }
        buffer.end();
        let bytes = buffer.take(Vec::new());
        self.reserve(number, commit_blocks(bytes.len()));
        self.records[stream] += 1;
        self.formed.publish(stream, self.records[stream]);
        let from = sender(stream);
        (number, AppendRecords { from, stream: stream as u16, records_formed: self.records[stream], bytes })
    }

    fn mark_applied(&self, number: CommitNumber) {
        self.spent.set(self.spent.get() + self.reserved.get(&number).copied().unwrap_or(0));
        self.sequence.mark_applied(number, &mut |_, _| {}).expect("a number that was taken");
    }

    /// Forms a record, delivers it and makes it stable.
    fn commit(&mut self, stream: usize, size: usize) -> CommitNumber {
        let (number, append) = self.form(stream, size);
        self.mark_applied(number);
        self.handle(LogSignal::AppendRecords(append));
        number
    }

    fn await_durable(&mut self, tc: u16, number: CommitNumber) {
        self.handle(LogSignal::AwaitDurable(AwaitDurable { number, reply_to: address(Module::Tc, tc) }));
    }

    /// The answers to tc since the last call: instance and durable number.
    fn answers(&mut self) -> Vec<(u16, u64)> {
        let answers = self.sent.iter().filter_map(|(to, signal)| match signal {
            Signal::Tc(TcSignal::AwaitDurableReply(reply)) => Some((to.instance, reply.durable.0)),
            _ => None,
        });
        let answers = answers.collect();
        self.sent.clear();
        answers
    }

    /// Takes the reports about the space of the log, with their receivers.
    fn space_reports(&mut self) -> Vec<(Module, LogSpace)> {
        let reports = self.sent.extract_if(.., |(_, signal)| {
            matches!(signal, Signal::Tc(TcSignal::LogSpaceChanged(_)) | Signal::Main(MainSignal::LogSpaceChanged(_)))
        });
        let report = |(to, signal): (Address, Signal)| match signal {
            Signal::Tc(TcSignal::LogSpaceChanged(signal)) => (Module::of(to.module), signal.space),
            Signal::Main(MainSignal::LogSpaceChanged(signal)) => (Module::of(to.module), signal.space),
            other => panic!("{other:?}"),
        };
        reports.map(report).collect()
    }

    /// Reads the files back as recovery would: the headers of all groups, and the numbers of all records.
    fn read_back(&self) -> (Vec<GroupHeader>, Vec<u64>) {
        let size = SegmentSize::of_bytes(SEGMENT_BYTES).unwrap();
        let mut scan = LogScan::new(ChainPosition::beginning(5), size);
        let (mut headers, mut numbers) = (Vec::new(), Vec::new());
        let mut readers: BTreeMap<StreamId, StreamReader> = BTreeMap::new();
        let mut analysis = LogAnalysis::new(CommitNumber(0));
        loop {
            let position = scan.chain().position;
            let path = junctor_storage::log::segment_path("log", size.segment_of(position));
            let segment = self.files.get(&*path).map_or(&[][..], Vec::as_slice);
            match scan.step(segment.get(size.offset_of(position) as usize..).unwrap_or(&[])) {
                ScanStep::Group(group) => {
                    headers.push(group.header);
                    analysis.observe_group(&group.header);
                    for piece in group.pieces() {
                        let reader = readers.entry(piece.stream).or_default();
                        let mut visit = |record: &junctor_storage::log::Record<'_>| {
                            numbers.push(record.header.number.0);
                            analysis.observe_record(piece.stream, record);
                        };
                        reader.read(&piece, &mut visit).expect("a stream without gaps");
                    }
                }
                ScanStep::NoGroup => {
                    if scan.skip_to_next_segment().is_none() {
                        analysis.finish(CommitNumber(0)).expect("a log without gaps");
                        return (headers, numbers);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_commit_is_durable_once_its_group_is_synced() {
    let mut stage = Stage::started();
    let number = stage.commit(0, 0);
    assert!(stage.requests.iter().all(|request| request.file_lane() != Some(FileLane::Log)), "nobody awaits it");
    stage.await_durable(3, number);
    assert!(stage.answers().is_empty());
    stage.run_disk();
    assert_eq!(stage.answers(), [(3, 1)]);
    assert_eq!(stage.block.durable(), number);
    let (headers, numbers) = stage.read_back();
    assert_eq!(headers.iter().map(|header| header.kind).collect::<Vec<_>>(), [GroupKind::Start, GroupKind::Data]);
    assert_eq!((headers[1].stable, numbers), (number, vec![1]));
    // A commit that is durable already is answered without a group.
    stage.await_durable(4, number);
    assert_eq!(stage.answers(), [(4, 1)]);
}

#[test]
fn a_cycle_waits_for_records_that_are_formed_and_on_their_way() {
    let mut stage = Stage::started();
    let (one, append_one) = stage.form(0, 0);
    let (two, append_two) = stage.form(1, 0);
    stage.mark_applied(one);
    stage.mark_applied(two);
    stage.await_durable(0, two);
    stage.handle(LogSignal::AppendRecords(append_two));
    stage.run_log_lane();
    assert!(stage.answers().is_empty(), "the record of the first commit is not delivered");
    stage.handle(LogSignal::AppendRecords(append_one));
    stage.run_disk();
    assert_eq!(stage.answers(), [(0, 2)]);
    assert_eq!(stage.read_back().1.len(), 2);
}

#[test]
fn a_commit_that_becomes_stable_while_records_are_collected_waits_for_the_next_cycle() {
    let mut stage = Stage::started();
    let (one, append_one) = stage.form(0, 0);
    stage.mark_applied(one);
    stage.await_durable(0, one);
    // The cycle has begun, and waits for the first record.
    let (two, append_two) = stage.form(1, 0);
    stage.mark_applied(two);
    stage.await_durable(1, two);
    stage.handle(LogSignal::AppendRecords(append_one));
    stage.run_disk();
    assert_eq!((stage.answers(), stage.block.durable()), (vec![(0, 1)], one));
    assert_eq!(stage.read_back().0.last().map(|header| header.stable), Some(one));
    stage.handle(LogSignal::AppendRecords(append_two));
    stage.run_disk();
    assert_eq!(stage.answers(), [(1, 2)]);
}

#[test]
fn a_record_above_the_stable_number_is_written_and_not_durable() {
    let mut stage = Stage::started();
    let first = stage.commit(0, 0);
    let (_open, append) = stage.form(1, 0);
    stage.handle(LogSignal::AppendRecords(append));
    stage.await_durable(0, first);
    stage.run_disk();
    assert_eq!((stage.answers(), stage.block.durable()), (vec![(0, 1)], first));
    let (headers, numbers) = stage.read_back();
    assert_eq!((headers[1].stable, headers[1].taken), (CommitNumber(1), CommitNumber(2)));
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn commits_during_a_sync_share_the_next_one() {
    let mut stage = Stage::started();
    let number = stage.commit(0, 0);
    stage.await_durable(0, number);
    let (second, third) = (stage.commit(0, 0), stage.commit(1, 0));
    stage.await_durable(1, second);
    stage.await_durable(2, third);
    stage.run_disk();
    assert_eq!(stage.answers(), [(0, 1), (1, 3), (2, 3)]);
    assert_eq!(stage.read_back().0.len(), 3, "the start group and two groups of commits");
}

/// One commit each of so many clients. Returns the last number.
fn commit_together(stage: &mut Stage, count: usize) -> CommitNumber {
    let mut last = CommitNumber(0);
    for client in 0..count {
        last = stage.commit(client % 2, 0);
    }
    last
}

#[test]
fn a_cycle_waits_for_clients_that_usually_commit_again_soon() {
    let mut stage = Stage::started();
    let sync = Duration::from_micros(100);
    for _ in 0..4 {
        let last = commit_together(&mut stage, 4);
        stage.await_durable(0, last);
        stage.advance(sync);
        stage.run_disk();
        assert_eq!(stage.answers(), [(0, last.0)]);
        stage.advance(Duration::from_micros(20));
    }
    let groups = stage.read_back().0.len();
    let third = commit_together(&mut stage, 3);
    stage.await_durable(0, third);
    stage.run_log_lane();
    assert!(stage.answers().is_empty(), "the fourth client is expected");
    let fourth = commit_together(&mut stage, 1);
    stage.run_disk();
    assert_eq!(stage.answers(), [(0, fourth.0)]);
    assert_eq!(stage.read_back().0.len(), groups + 1, "one sync for four clients");
    // The fourth client does not return.
    stage.advance(Duration::from_micros(20));
    let third = commit_together(&mut stage, 3);
    stage.await_durable(0, third);
    stage.run_log_lane();
    assert!(stage.answers().is_empty());
    stage.advance(Duration::from_micros(300));
    stage.run_disk();
    assert_eq!(stage.answers(), [(0, third.0)]);
}

#[test]
fn records_that_nobody_awaits_are_synced_after_the_interval() {
    let mut stage = Stage::started();
    stage.commit(0, 0);
    stage.advance(Duration::from_millis(1900));
    stage.run_disk();
    assert_eq!(stage.block.durable(), CommitNumber(0));
    stage.advance(Duration::from_millis(200));
    stage.run_disk();
    assert_eq!(stage.block.durable(), CommitNumber(1));
}

#[test]
fn an_idle_log_closes_itself_once() {
    let mut stage = Stage::started();
    let number = stage.commit(0, 0);
    stage.await_durable(0, number);
    stage.run_disk();
    for _ in 0..3 {
        stage.advance(Duration::from_millis(150));
        stage.run_disk();
    }
    let (headers, _) = stage.read_back();
    let kinds: Vec<GroupKind> = headers.iter().map(|header| header.kind).collect();
    assert_eq!(kinds, [GroupKind::Start, GroupKind::Data, GroupKind::Closing]);
    assert_eq!(headers[2].synced, headers[2].position, "everything before the closing group is synced");
}

#[test]
fn a_stop_writes_what_waits() {
    let mut stage = Stage::started();
    stage.commit(0, 0);
    stage.with_block(|block, context, outbox| block.on_world(WorldEvent::Stopping, context, outbox));
    stage.run_disk();
    let (headers, numbers) = stage.read_back();
    assert_eq!((headers.last().map(|header| header.kind), numbers), (Some(GroupKind::Closing), vec![1]));
}

#[test]
fn a_stop_writes_records_that_came_after_the_closing_group() {
    for comes_late in [false, true] {
        let mut stage = Stage::started();
        let number = stage.commit(0, 0);
        stage.await_durable(0, number);
        stage.run_disk();
        stage.advance(Duration::from_millis(150));
        stage.run_disk();
        let stop = |stage: &mut Stage| {
            stage.with_block(|block, context, outbox| block.on_world(WorldEvent::Stopping, context, outbox));
        };
        if comes_late {
            stop(&mut stage);
            stage.commit(0, 0);
        } else {
            stage.commit(0, 0);
            stop(&mut stage);
        }
        stage.run_disk();
        let (headers, numbers) = stage.read_back();
        assert_eq!((headers.last().map(|header| header.kind), numbers), (Some(GroupKind::Closing), vec![1, 2]));
    }
}

#[test]
fn a_cycle_asks_for_records_that_are_formed_and_not_delivered() {
    let mut stage = Stage::started();
    let asked = |stage: &mut Stage| {
        let is_request =
            |(_, signal): &mut (Address, Signal)| matches!(signal, Signal::Ldm(LdmSignal::DeliverRecords(_)));
        stage.sent.extract_if(.., is_request).map(|(to, _)| to).collect::<Vec<_>>()
    };
    // Nobody awaits the first commit, so the second one's record may be kept until the timer fires.
    stage.commit(0, 0);
    let (kept, append) = stage.form(1, 0);
    stage.mark_applied(kept);
    assert!(stage.formed.is_awaited() && asked(&mut stage).is_empty());
    stage.advance(Duration::from_millis(2000));
    assert_eq!(asked(&mut stage), [address(Module::Ldm, 1)]);
    assert!(!stage.formed.is_awaited());
    stage.handle(LogSignal::AppendRecords(append));
    stage.run_disk();
    assert_eq!(stage.block.durable(), kept);
    let (awaited, append) = stage.form(0, 0);
    stage.mark_applied(awaited);
    stage.await_durable(0, awaited);
    assert!(stage.formed.is_awaited());
    assert_eq!(asked(&mut stage), [address(Module::Ldm, 0)]);
    stage.handle(LogSignal::AppendRecords(append));
    stage.run_disk();
    assert_eq!(stage.answers(), [(0, 3)]);
}

#[test]
fn large_records_pass_groups_and_segments() {
    let mut stage = Stage::started();
    let mut last = CommitNumber(0);
    for size in [3 << 20, 100, 700_000, 2 << 20, 5] {
        last = stage.commit(0, size);
        stage.commit(1, size / 3 + 1);
    }
    stage.await_durable(0, last);
    stage.run_disk();
    assert_eq!(stage.answers().len(), 1);
    let (headers, numbers) = stage.read_back();
    assert_eq!(numbers.len(), 10);
    assert!(headers.last().unwrap().position >= 7 * SEGMENT_BYTES / 4096);
    let blocks = SEGMENT_BYTES / 4096;
    assert!(headers.windows(2).all(|two| two[1].position - two[0].position <= blocks), "no block remains unused");
    assert_eq!(headers.last().unwrap().stable, CommitNumber(10));
    assert_eq!(headers[1].stable, CommitNumber(0), "only the last group of a cycle raises the number");
}

#[test]
fn a_turn_encodes_few_groups_however_long_the_records_are() {
    let mut stage = Stage::started();
    let last = stage.commit(0, 10 << 20);
    stage.await_durable(0, last);
    let is_write = |request: &&WorldRequest| matches!(request, WorldRequest::WriteFile { .. });
    while !stage.requests.is_empty() {
        assert!(stage.requests.iter().filter(is_write).count() <= 2);
        stage.run_request(0);
    }
    assert_eq!(stage.answers().len(), 1);
    assert_eq!(stage.read_back().1, [last.0]);
}

#[test]
fn a_disk_that_becomes_full_amid_a_cycle_delays_the_rest_of_it() {
    for room in [0, 100_000, (1 << 20) + 100_000, 3 << 20] {
        let mut stage = Stage::started();
        stage.run_disk();
        stage.room = room;
        let last = stage.commit(0, 5 << 20);
        stage.await_durable(0, last);
        stage.run_disk();
        assert!(stage.answers().is_empty() && stage.halted.is_none());
        stage.room = u64::MAX;
        stage.advance(Duration::from_millis(1100));
        stage.run_disk();
        assert_eq!(stage.answers(), [(0, last.0)]);
        assert_eq!(stage.read_back().1, [last.0]);
    }
}

#[test]
fn buffers_return_to_the_blocks_that_filled_them() {
    let mut stage = Stage::started();
    let number = stage.commit(1, 0);
    stage.await_durable(0, number);
    stage.run_disk();
    let returned: Vec<Address> = stage
        .sent
        .iter()
        .filter_map(|(to, signal)| matches!(signal, Signal::Ldm(LdmSignal::AppendRecordsReply(_))).then_some(*to))
        .collect();
    assert_eq!(returned, [address(Module::Ldm, 1)]);
}

#[test]
fn a_failed_sync_stops_the_node_and_is_not_repeated() {
    let mut stage = Stage::started();
    let number = stage.commit(0, 0);
    stage.fails_syncs = true;
    stage.await_durable(0, number);
    stage.run_log_lane();
    assert!(
        stage.halted.as_deref().is_some_and(|message| message.contains("cannot sync the log")),
        "{:?}",
        stage.halted
    );
    assert!(stage.answers().is_empty(), "nothing is acknowledged, although other threads still run");
    stage.fails_syncs = false;
    let later = stage.commit(0, 0);
    stage.await_durable(1, later);
    stage.advance(Duration::from_millis(5000));
    stage.run_disk();
    assert!(stage.answers().is_empty(), "a later sync proves nothing");
}

#[test]
fn a_stop_tries_a_full_disk_once_more() {
    let mut stage = Stage::started();
    stage.room = 0;
    let number = stage.commit(0, 0);
    stage.await_durable(0, number);
    stage.run_disk();
    let stop = |stage: &mut Stage| {
        stage.with_block(|block, context, outbox| block.on_world(WorldEvent::Stopping, context, outbox));
        stage.run_disk();
        stage.block.shared.waits_for_room.load(Ordering::Relaxed)
    };
    assert!(stop(&mut stage), "the disk is still full");
    assert!(stage.read_back().1.is_empty());
    stage.room = u64::MAX;
    assert!(!stop(&mut stage), "no timer has run");
    let (headers, numbers) = stage.read_back();
    assert_eq!((headers.last().map(|header| header.kind), numbers), (Some(GroupKind::Closing), vec![1]));
}

#[test]
fn a_full_disk_delays_commits_until_there_is_room() {
    let mut stage = Stage::started();
    stage.run_disk();
    stage.room = 0;
    let number = stage.commit(0, 0);
    stage.await_durable(0, number);
    stage.run_disk();
    stage.advance(Duration::from_millis(1100));
    stage.run_disk();
    assert_eq!(
        stage.space_reports(),
        [(Module::Tc, LogSpace::DeviceFull), (Module::Main, LogSpace::DeviceFull)],
        "reported once"
    );
    assert!(stage.answers().is_empty() && stage.halted.is_none());
    stage.room = u64::MAX;
    stage.advance(Duration::from_millis(1100));
    stage.run_disk();
    assert_eq!(stage.space_reports(), [(Module::Tc, LogSpace::Free), (Module::Main, LogSpace::Free)]);
    assert_eq!(stage.answers(), [(0, 1)]);
    assert_eq!(stage.read_back().1, [1]);
}

#[test]
fn a_segment_that_does_not_fit_is_reported_once_the_log_needs_it() {
    let mut stage = Stage::started();
    stage.run_disk();
    // The second segment is prepared ahead of need. The third one finds the disk full.
    stage.segments_max = 2;
    let mut number = CommitNumber(0);
    let mut filled = 0;
    while stage.space_reports().is_empty() {
        number = stage.commit(0, 200_000);
        stage.await_durable(0, number);
        stage.run_disk();
        filled += 1;
        assert!(filled < 100, "two segments hold fewer records");
    }
    assert!(stage.halted.is_none());
    assert!(!stage.files.contains_key("log/prepared"), "the unfinished file is deleted");
    stage.answers();
    stage.segments_max = usize::MAX;
    stage.advance(Duration::from_millis(1100));
    stage.run_disk();
    assert_eq!(stage.space_reports(), [(Module::Tc, LogSpace::Free), (Module::Main, LogSpace::Free)]);
    assert_eq!(stage.answers(), [(0, number.0)]);
    stage.advance(Duration::from_millis(20_000));
    stage.run_disk();
    assert_eq!(stage.read_back().1.last(), Some(&number.0));
}

/// The folder of the log did not fit, so its files have no place before it exists.
#[test]
fn a_first_start_on_a_full_disk_waits_for_room() {
    let mut stage = Stage::new();
    stage.room = 0;
    stage.request_start(1, &RecoveredLog::default());
    assert!(!stage.take_start_reply());
    for _ in 0..2 {
        stage.advance(Duration::from_seconds(11));
        stage.run_disk();
        assert_eq!(stage.halted, None);
    }
    stage.room = u64::MAX;
    stage.advance(Duration::from_seconds(11));
    stage.run_disk();
    assert!(stage.take_start_reply());
    stage.take_grants();
    let number = stage.commit(0, 100);
    stage.await_durable(0, number);
    stage.run_disk();
    assert_eq!(stage.answers(), [(0, number.0)]);
}

const PARTITION: PartitionId = PartitionId { table: TableId(3), index: 1 };
const OTHER: PartitionId = PartitionId { table: TableId(4), index: 0 };

#[test]
fn a_log_without_files_is_empty() {
    let mut stage = Stage::new();
    let recovered = stage.recover().expect("an empty log");
    assert_eq!((recovered.incarnation, recovered.position), (0, 0));
}

#[test]
fn what_was_durable_is_replayed_in_the_next_life_and_in_those_after_it() {
    let mut stage = Stage::started();
    for image in [&b"one"[..], b"two"] {
        let number = stage.commit_row(PARTITION, image);
        stage.commit_row(OTHER, b"of a dropped table");
        stage.await_durable(0, number);
        stage.run_disk();
    }
    let mut expected = vec![(1, b"one".to_vec()), (3, b"two".to_vec())];
    for incarnation in 2..5 {
        stage = Stage::after(&stage);
        let recovered = stage.recover().expect("a whole log");
        assert_eq!(recovered.incarnation, incarnation - 1);
        assert_eq!(stage.replay(PARTITION), expected);
        stage.start(incarnation, &recovered);
        let image = format!("life {incarnation}").into_bytes();
        let number = stage.commit_row(PARTITION, &image);
        assert!(number > recovered.ceiling, "no number returns");
        expected.push((number.0, image));
        stage.await_durable(0, number);
        stage.run_disk();
    }
}

#[test]
fn a_commit_above_the_last_stable_number_is_not_kept() {
    let mut stage = Stage::started();
    let first = stage.commit_row(PARTITION, b"kept");
    let (_, append) = stage.form(1, 0);
    stage.handle(LogSignal::AppendRecords(append));
    stage.await_durable(0, first);
    stage.run_disk();
    let mut next = Stage::after(&stage);
    let recovered = next.recover().expect("a whole log");
    assert_eq!((recovered.last_commit_kept, recovered.ceiling >= CommitNumber(2)), (first, true));
    assert_eq!(next.replay(PARTITION), [(1, b"kept".to_vec())]);
    next.start(2, &recovered);
    // The next start does not keep it either, although a later life has higher numbers.
    let number = next.commit_row(PARTITION, b"later");
    next.await_durable(0, number);
    next.run_disk();
    let mut last = Stage::after(&next);
    last.recover().expect("a whole log");
    assert_eq!(last.replay(PARTITION).len(), 2);
}

#[test]
fn schema_changes_come_back_in_the_order_of_their_commits() {
    let mut stage = Stage::started();
    let mut last = CommitNumber(0);
    for size in [5, 300_000, 7] {
        last = stage.commit(2, size);
    }
    stage.await_durable(0, last);
    stage.run_disk();
    let mut next = Stage::after(&stage);
    let recovered = next.recover().expect("a whole log");
    let bodies: Vec<(usize, u8)> = recovered.dictionary.iter().map(|body| (body.len(), body[0])).collect();
    assert_eq!(bodies, [(5, 1), (300_000, 2), (7, 3)]);
}

#[test]
fn recovery_syncs_what_no_later_group_knows_as_synced() {
    let mut stage = Stage::started();
    let number = stage.commit_row(PARTITION, b"one");
    stage.await_durable(0, number);
    stage.run_disk();
    let mut next = Stage::after(&stage);
    next.fails_syncs = true;
    let error = next.recover().expect_err("the group may be in the operating system's cache only");
    assert!(error.contains("cannot read and sync log/0000000000.log"), "{error}");
    let mut next = Stage::after(&stage);
    assert_eq!(next.recover().expect("a whole log").last_commit_kept, number);
}

#[test]
fn a_torn_tail_is_dropped_and_a_lost_group_is_refused() {
    let mut stage = Stage::started();
    for image in [&b"one"[..], b"two", b"three"] {
        let number = stage.commit_row(PARTITION, image);
        stage.await_durable(0, number);
        stage.run_disk();
    }
    let path = "log/0000000000.log";
    let damage = |block: usize| {
        let mut damaged = Stage::after(&stage);
        damaged.files.get_mut(path).unwrap()[block * 4096 + 200] ^= 1;
        damaged
    };
    // Blocks: the start group, then one for each commit. No later group knows the last one as synced.
    let mut torn = damage(3);
    let recovered = torn.recover().expect("a torn tail");
    assert_eq!((recovered.last_commit_kept, torn.replay(PARTITION).len()), (CommitNumber(2), 2));
    for block in [0, 1] {
        let error = damage(block).recover().expect_err("a synced group is gone");
        assert!(error.contains("damaged"), "{error}");
    }
}

#[test]
fn a_long_log_is_replayed_over_segments_with_bounded_batches() {
    let mut stage = Stage::started();
    let mut last = CommitNumber(0);
    for index in 0..60u8 {
        last = stage.commit_row(PARTITION, &vec![index; 100_000]);
    }
    stage.await_durable(0, last);
    stage.run_disk();
    let mut next = Stage::after(&stage);
    next.recover().expect("a whole log");
    let found = next.replay(PARTITION);
    assert_eq!(found.len(), 60);
    assert!(
        found.iter().zip(0u8..).all(|((number, image), index)| *number == u64::from(index) + 1 && image[0] == index)
    );
}

#[test]
fn commits_go_on_at_once_after_the_disk_was_full() {
    let mut stage = Stage::started();
    stage.run_disk();
    // Four clients that come back soon.
    let us = |count| Duration::from_micros(count);
    let mut last = CommitNumber(0);
    for _ in 0..10 {
        (0..4).for_each(|_| last = stage.commit(0, 0));
        stage.await_durable(0, last);
        stage.now = stage.now.plus(us(100));
        stage.run_disk();
        assert_eq!(stage.answers(), [(0, last.0)]);
        stage.now = stage.now.plus(us(50));
    }
    // The device is full for ten minutes.
    stage.room = 0;
    (0..4).for_each(|_| last = stage.commit(0, 0));
    stage.await_durable(0, last);
    stage.run_disk();
    for _ in 0..545 {
        stage.advance(Duration::from_millis(1100));
        stage.run_disk();
    }
    assert!(stage.answers().is_empty());
    stage.room = u64::MAX;
    stage.advance(Duration::from_millis(1100));
    stage.run_disk();
    assert_eq!(stage.answers(), [(0, last.0)]);
    // Three of the four clients come back at once. They wait for the fourth for two syncs at most.
    stage.now = stage.now.plus(us(50));
    (0..3).for_each(|_| last = stage.commit(0, 0));
    stage.await_durable(0, last);
    stage.run_disk();
    stage.advance(us(200));
    stage.run_disk();
    assert_eq!(stage.answers(), [(0, last.0)]);
}

#[test]
fn many_bytes_that_arrived_during_a_cycle_begin_the_next_one() {
    let mut stage = Stage::started();
    stage.run_disk();
    // Nobody awaits these records: they are chunks of a prepare, or commits in memory.
    stage.commit(0, 300_000);
    assert_ne!(stage.requests.len(), 0, "a cycle has begun");
    let last = stage.commit(0, 4 << 20);
    stage.run_disk();
    assert_eq!(stage.block.durable(), last, "no timer has passed");
}
