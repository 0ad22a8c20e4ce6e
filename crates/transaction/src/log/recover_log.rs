//! Recovery reads the log twice, both times from the position that the checkpoint names. The first reading
//! finds the last commit that is kept; the second sends every kept change to the owner of its partition.

use std::collections::BTreeMap;

use junctor_kernel::{
    Address, Buffer, FileBuffer, FileError, FileId, FileLane, FileMode, FileOutcome, FileResult, FolderEntry, Outbox,
    WorldRequest,
};
use junctor_model::id::{CommitNumber, PartitionId};
use junctor_model::planted_bug::PlantedBug;
use junctor_signals::recover_log::{
    CheckpointBounds, DAMAGE_ADVICE, RELEASE_ADVICE, RecoverLog, RecoverLogReply, RecoveredLog, ReplayLog,
    ReplayLogReply, ReplayRows, ReplayRowsReply, advice_about,
};
use junctor_signals::{LdmSignal, MainSignal, Signal, crash_point};
use junctor_storage::log::{
    BLOCK_BYTES, ChainPosition, Decision, Group, LogAnalysis, LogScan, Record, RecordKind, RecoveryPlan, ScanStep,
    SegmentSize, StreamId, StreamReader, TAIL_BLOCKS, is_beyond_end, segment_number, segment_path,
};

use super::block::LogBlock;
use super::cycle::{RECOVER, TOKEN_KIND_SHIFT};
use super::segment::Segments;

/// Bytes of one read. Larger than the largest group.
const WINDOW_BYTES: u64 = 4 << 20;
/// Size at which a batch of changes leaves for its owner.
const BATCH_BYTES: usize = 256 * 1024;
/// Batches under way to one owner.
const BATCHES_PER_OWNER_MAX: usize = 4;

/// The readings of the log, before a life begins.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    reader: Option<Reader>,
    pub pass: Pass,
    plan: Option<RecoveryPlan>,
    replay: Replay,
}

/// The purpose of the reading under way.
#[derive(Debug, Default)]
pub(super) enum Pass {
    #[default]
    None,
    /// Lists the segments.
    List { reply_to: Address, log_id: u64, checkpoint: CheckpointBounds, limit: CommitNumber },
    /// Finds the end of the log and the commits that it keeps.
    Analyse(Box<Analyse>),
    /// Examines what lies behind the end.
    Tail(Box<Analyse>),
    /// Writes groups again that no later group knows as synced, and syncs them.
    Resync(Box<Analyse>),
    /// Sends changes to their owners.
    Replay { reply_to: Address },
}

#[derive(Debug)]
pub(super) struct Analyse {
    reply_to: Address,
    checkpoint: CheckpointBounds,
    analysis: LogAnalysis,
    /// (incarnation, stream, record header and body) of dictionary records.
    dictionary: Vec<(CommitNumber, u32, Vec<u8>)>,
    marks: Vec<Vec<u8>>,
    /// Behind the last group that was accepted.
    end: ChainPosition,
    /// The highest position that a group names as synced.
    synced: u64,
    /// The next position to examine behind the end, or to sync.
    next: u64,
}

/// Reads the segments in windows.
#[derive(Debug)]
struct Reader {
    folder: Box<str>,
    size: SegmentSize,
    /// Where reading begins.
    start: ChainPosition,
    /// Segments that exist. A segment that was prepared and not used is among them.
    segments: Vec<u64>,
    file: Option<(u64, FileId)>,
    scan: LogScan,
    streams: BTreeMap<StreamId, StreamReader>,
    incarnation: u32,
    window: FileBuffer,
    /// Position of the first block of the window.
    window_at: u64,
    /// Whether a read of the window is under way.
    is_reading: bool,
}

/// Changes on their way to their owners.
#[derive(Debug, Default)]
struct Replay {
    owners: BTreeMap<PartitionId, Address>,
    batches: BTreeMap<Address, Buffer>,
    under_way: BTreeMap<Address, usize>,
    spare: Vec<Buffer>,
    error: Option<Box<str>>,
    is_read: bool,
}

impl Reader {
    fn rewind(&mut self) {
        self.scan = LogScan::new(self.start, self.size);
        self.streams.clear();
        self.incarnation = 0;
        self.window.clear();
    }

    /// The bytes of the window from a position on; `None` if it does not hold the position.
    fn bytes_at(&self, position: u64) -> Option<&[u8]> {
        bytes_at(&self.window, self.window_at, position)
    }

    /// Whether the window reaches the end of its segment.
    fn reaches_segment_end(&self) -> bool {
        let end = self.window_at + (self.window.len() / BLOCK_BYTES) as u64;
        self.size.is_start(end) || (self.window.len() as u64) < WINDOW_BYTES
    }

    /// Requests the window at a position: opens its segment first if necessary. False if the segment does
    /// not exist.
    fn request(&mut self, position: u64, outbox: &mut Outbox<Signal>) -> bool {
        let segment = self.size.segment_of(position);
        if !self.segments.contains(&segment) {
            return false;
        }
        let token = RECOVER << TOKEN_KIND_SHIFT;
        self.window_at = position;
        self.is_reading = true;
        match self.file {
            Some((open, file)) if open == segment => {
                let offset = self.size.offset_of(position);
                let length = WINDOW_BYTES.min(self.size.bytes() - offset) as u32;
                let bytes = std::mem::take(&mut self.window);
                outbox.request(WorldRequest::ReadFile { file, offset, length, bytes, token });
            }
            open => {
                if let Some((_, file)) = open {
                    self.file = None;
                    outbox.request(WorldRequest::CloseFile { file, token: token | CLOSED });
                }
                let path = segment_path(&self.folder, segment);
                let (mode, lane) = (FileMode::ReadWrite, FileLane::Read);
                outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: true, token });
            }
        }
        true
    }
}

/// Marks the token of a request whose answer is ignored.
const CLOSED: u64 = 1;

impl LogBlock {
    pub(super) fn on_recover_log(&mut self, signal: RecoverLog, outbox: &mut Outbox<Signal>) {
        let RecoverLog { reply_to, log_id, segment_bytes, checkpoint, limit } = signal;
        let Some(segment_size) = SegmentSize::of_bytes(segment_bytes) else {
            let text =
                format!("the identity names segments of {segment_bytes} bytes, which no log has; {DAMAGE_ADVICE}");
            return reply_damage(reply_to, &text, outbox);
        };
        self.configuration.segment_size = segment_size;
        self.segments = Segments::new(&self.configuration);
        // A cluster may have decided to keep less than the first analysis found.
        if let Some((_, file)) = std::mem::take(&mut self.recovery).reader.and_then(|reader| reader.file) {
            outbox.request(WorldRequest::CloseFile { file, token: RECOVER << TOKEN_KIND_SHIFT | CLOSED });
        }
        self.recovery.pass = Pass::List { reply_to, log_id, checkpoint, limit };
        outbox.crash_point(crash_point::RECOVERY_SCAN.before());
        let (path, lane, token) = (self.configuration.folder.clone(), FileLane::Read, RECOVER << TOKEN_KIND_SHIFT);
        outbox.request(WorldRequest::ListFolder { path, lane, token });
    }

    pub(super) fn on_replay_log(&mut self, signal: ReplayLog, outbox: &mut Outbox<Signal>) {
        let ReplayLog { reply_to, owners } = signal;
        outbox.crash_point(crash_point::RECOVERY_APPLY.before());
        self.recovery.replay = Replay { owners: owners.into_iter().collect(), ..Replay::default() };
        self.recovery.pass = Pass::Replay { reply_to };
        match &mut self.recovery.reader {
            Some(reader) => {
                reader.rewind();
                if !reader.request(reader.start.position, outbox) {
                    self.end_reading(outbox);
                }
            }
            None => self.end_reading(outbox),
        }
    }

    pub(super) fn on_recovery_file(
        &mut self,
        (value, result, bytes): (u64, FileResult, FileBuffer),
        outbox: &mut Outbox<Signal>,
    ) {
        if value == CLOSED {
            return;
        }
        match result {
            Ok(FileOutcome::Listed(entries)) => self.begin_analysis(&entries, outbox),
            Ok(FileOutcome::Opened { file, .. }) => {
                let Some(reader) = &mut self.recovery.reader else { return };
                let position = reader.window_at;
                reader.file = Some((reader.size.segment_of(position), file));
                reader.request(position, outbox);
            }
            Ok(FileOutcome::Read { .. }) => {
                let Some(reader) = &mut self.recovery.reader else { return };
                reader.window = bytes;
                reader.is_reading = false;
                match &self.recovery.pass {
                    Pass::Tail(_) => self.examine_tail(outbox),
                    Pass::Resync(_) => self.rewrite_window(outbox),
                    _ => self.read_groups(outbox),
                }
            }
            Ok(FileOutcome::Written { .. }) => self.advance_rewrite(bytes, outbox),
            Ok(FileOutcome::Synced) => self.next_resync(outbox),
            Err(FileError::NotFound) if matches!(self.recovery.pass, Pass::List { .. }) => {
                // The first start ended before it made the folder.
                self.begin_analysis(&[], outbox);
            }
            Ok(other) => self.fail_recovery(&format!("unexpected answer {other:?}"), outbox),
            Err(error) => {
                let position = self.recovery.reader.as_ref().map_or(0, |reader| reader.window_at);
                let segment = self.configuration.segment_size.segment_of(position);
                let path = segment_path(&self.configuration.folder, segment);
                let action = if matches!(self.recovery.pass, Pass::Resync(_)) { "read and sync" } else { "read" };
                self.fail_recovery(&format!("cannot {action} {path}: {error}; {}", advice_about(error)), outbox);
            }
        }
    }

    fn begin_analysis(&mut self, entries: &[FolderEntry], outbox: &mut Outbox<Signal>) {
        let Pass::List { reply_to, log_id, checkpoint, limit } = self.recovery.pass else { return };
        let size = self.configuration.segment_size;
        let mut segments: Vec<u64> = entries
            .iter()
            .filter(|entry| !entry.is_folder && entry.length >= size.bytes())
            .filter_map(|entry| segment_number(&entry.name))
            .collect();
        segments.sort_unstable();
        self.segments.adopt(&segments, checkpoint.replay_from);
        let start = match checkpoint.replay_from {
            0 => ChainPosition::beginning(log_id),
            position => ChainPosition { previous_checksum: None, position, ..ChainPosition::beginning(log_id) },
        };
        let mut reader = Reader {
            folder: self.configuration.folder.clone(),
            size,
            segments,
            file: None,
            start,
            scan: LogScan::new(start, size),
            streams: BTreeMap::new(),
            incarnation: 0,
            window: FileBuffer::new(),
            window_at: 0,
            is_reading: false,
        };
        self.recovery.pass = Pass::Analyse(Box::new(Analyse {
            reply_to,
            checkpoint,
            analysis: LogAnalysis::new(checkpoint.begin).up_to(limit),
            dictionary: Vec::new(),
            marks: Vec::new(),
            end: start,
            synced: start.position,
            next: 0,
        }));
        let has_segment = reader.request(start.position, outbox);
        self.recovery.reader = Some(reader);
        if !has_segment {
            self.end_reading(outbox);
        }
    }

    /// Takes the groups of the window, and requests the next window.
    fn read_groups(&mut self, outbox: &mut Outbox<Signal>) {
        loop {
            if self.is_replay_blocked() {
                return;
            }
            let Recovery { reader: Some(reader), pass, plan, replay } = &mut self.recovery else { return };
            if reader.is_reading {
                return;
            }
            let position = reader.scan.chain().position;
            if reader.bytes_at(position).is_none() {
                // The window ends with a group. The next one may follow in the segment.
                if reader.size.is_start(position) || !reader.reaches_segment_end() {
                    if !reader.request(position, outbox) {
                        self.end_reading(outbox);
                    }
                    return;
                }
                match reader.scan.skip_to_next_segment() {
                    Some(_) => continue,
                    None => return self.end_reading(outbox),
                }
            }
            let Reader { window, window_at, scan, streams, incarnation, .. } = reader;
            let Some(bytes) = bytes_at(window, *window_at, position) else { return };
            match scan.step(bytes) {
                ScanStep::Group(group) => {
                    self.shared.progress.add(0, group.blocks * BLOCK_BYTES as u64);
                    let mut sink = Sink { plan: plan.as_ref(), replay };
                    let error = take_group(&group, (streams, incarnation), pass, &mut sink);
                    if let Some(error) = error {
                        let text = format!("the log is damaged at block {position}: {error}; {DAMAGE_ADVICE}");
                        return self.fail_recovery(&text, outbox);
                    }
                    self.send_full_batches(outbox);
                }
                ScanStep::NeedBlocks(_) if reader.window_at < position => {
                    if !reader.request(position, outbox) {
                        self.end_reading(outbox);
                    }
                    return;
                }
                ScanStep::NeedBlocks(_) | ScanStep::NoGroup => match reader.scan.skip_to_next_segment() {
                    Some(_) => {}
                    None => return self.end_reading(outbox),
                },
                ScanStep::UnknownVersion(version) => {
                    let text = format!("the log has the unknown version {version}; {RELEASE_ADVICE}");
                    return self.fail_recovery(&text, outbox);
                }
            }
        }
    }

    /// The chain of groups has ended.
    fn end_reading(&mut self, outbox: &mut Outbox<Signal>) {
        match std::mem::take(&mut self.recovery.pass) {
            Pass::Analyse(mut analyse) => {
                analyse.next = analyse.end.position;
                self.recovery.pass = Pass::Tail(analyse);
                match self.recovery.reader.as_ref().is_some_and(|reader| !reader.segments.is_empty()) {
                    true => self.next_tail_window(outbox),
                    false => self.finish_analysis(outbox),
                }
            }
            Pass::Replay { reply_to } => {
                self.recovery.replay.is_read = true;
                self.recovery.pass = Pass::Replay { reply_to };
                self.send_batches(1, outbox);
                self.end_replay(outbox);
            }
            other => self.recovery.pass = other,
        }
    }

    /// Requests the next window behind the end of the log: the rest of its segment, then the first block of
    /// later segments.
    fn next_tail_window(&mut self, outbox: &mut Outbox<Signal>) {
        let (Pass::Tail(analyse), Some(reader)) = (&mut self.recovery.pass, &mut self.recovery.reader) else { return };
        while analyse.next < analyse.end.position + TAIL_BLOCKS {
            if reader.request(analyse.next, outbox) {
                return;
            }
            analyse.next = reader.size.next_start(analyse.next + 1);
        }
        // Segments further on are looked at once each, because a lost segment may lie between.
        let size = reader.size;
        let later = reader.segments.iter().map(|segment| segment * size.bytes() / BLOCK_BYTES as u64);
        match later.filter(|start| *start >= analyse.next).min() {
            Some(start) => {
                analyse.next = start;
                reader.request(start, outbox);
            }
            None => self.begin_resync(outbox),
        }
    }

    fn examine_tail(&mut self, outbox: &mut Outbox<Signal>) {
        let (Pass::Tail(analyse), Some(reader)) = (&mut self.recovery.pass, &self.recovery.reader) else { return };
        let bytes = reader.bytes_at(analyse.next).unwrap_or(&[]);
        let blocks = bytes.chunks_exact(BLOCK_BYTES).zip(analyse.next..);
        let mut damaged = blocks.filter(|(block, position)| is_beyond_end(block, *position, &analyse.end));
        let damaged = damaged.next().filter(|_| !PlantedBug::TakeRotForTail.is_planted());
        if let Some((_, position)) = damaged {
            let text = format!(
                "the log is damaged: its chain of groups ends at block {}, but the group at block {position} was written \
                 after later blocks were synced; {DAMAGE_ADVICE}",
                analyse.end.position
            );
            return self.fail_recovery(&text, outbox);
        }
        let read = (bytes.len() / BLOCK_BYTES) as u64;
        let is_near = analyse.next < analyse.end.position + TAIL_BLOCKS;
        analyse.next = match is_near && read > 0 {
            true => analyse.next + read,
            false => reader.size.next_start(analyse.next + 1),
        };
        self.next_tail_window(outbox);
    }

    /// Makes sure that what was read is on disk: after a failed sync, or a killed process, it may be in the
    /// operating system's cache only.
    fn begin_resync(&mut self, outbox: &mut Outbox<Signal>) {
        outbox.crash_point(crash_point::RECOVERY_SCAN.after());
        let Pass::Tail(mut analyse) = std::mem::take(&mut self.recovery.pass) else { return };
        outbox.crash_point(crash_point::RECOVERY_RESYNC.before());
        analyse.next = if PlantedBug::SkipResync.is_planted() { analyse.end.position } else { analyse.synced };
        self.recovery.pass = Pass::Resync(analyse);
        self.next_resync(outbox);
    }

    /// Reads the next groups that no later group knows as synced. Ends the first reading after the last one.
    fn next_resync(&mut self, outbox: &mut Outbox<Signal>) {
        let (Pass::Resync(analyse), Some(reader)) = (&mut self.recovery.pass, &mut self.recovery.reader) else {
            return;
        };
        if analyse.next >= analyse.end.position {
            return self.finish_analysis(outbox);
        }
        reader.request(analyse.next, outbox);
    }

    /// Writes the window again, as far as the log reaches.
    fn rewrite_window(&mut self, outbox: &mut Outbox<Signal>) {
        let (Pass::Resync(analyse), Some(reader)) = (&mut self.recovery.pass, &mut self.recovery.reader) else {
            return;
        };
        let Some((_, file)) = reader.file else { return };
        let mut bytes = std::mem::take(&mut reader.window);
        let blocks = (analyse.end.position - analyse.next).min((bytes.len() / BLOCK_BYTES) as u64);
        if blocks == 0 {
            let text = format!("the log ends at block {} but was longer before; {DAMAGE_ADVICE}", analyse.next);
            return self.fail_recovery(&text, outbox);
        }
        bytes.truncate(blocks as usize * BLOCK_BYTES);
        let (offset, token) = (reader.size.offset_of(analyse.next), RECOVER << TOKEN_KIND_SHIFT);
        outbox.request(WorldRequest::WriteFile { file, offset, bytes, token });
    }

    fn advance_rewrite(&mut self, bytes: FileBuffer, outbox: &mut Outbox<Signal>) {
        let (Pass::Resync(analyse), Some(reader)) = (&mut self.recovery.pass, &mut self.recovery.reader) else {
            return;
        };
        let Some((_, file)) = reader.file else { return };
        analyse.next += (bytes.len() / BLOCK_BYTES) as u64;
        reader.window = bytes;
        outbox.request(WorldRequest::SyncFile { file, token: RECOVER << TOKEN_KIND_SHIFT });
    }

    /// Answers the first reading.
    fn finish_analysis(&mut self, outbox: &mut Outbox<Signal>) {
        let analyse = match std::mem::take(&mut self.recovery.pass) {
            Pass::Tail(analyse) => analyse,
            Pass::Resync(analyse) => {
                outbox.crash_point(crash_point::RECOVERY_RESYNC.after());
                analyse
            }
            other => return self.recovery.pass = other,
        };
        let Analyse { reply_to, checkpoint, analysis, mut dictionary, marks, end, .. } = *analyse;
        let result = match analysis.finish(checkpoint.newest) {
            Err(damage) => Err(format!("the log is damaged: {damage}; {DAMAGE_ADVICE}").into()),
            Ok(plan) => {
                dictionary.retain(|(number, incarnation, _)| plan.keeps(*incarnation, *number));
                dictionary.sort_by_key(|(number, ..)| *number);
                let recovered = RecoveredLog {
                    incarnation: end.incarnation,
                    position: end.position,
                    previous_checksum: end.previous_checksum.unwrap_or(0),
                    last_commit_kept: plan.cut,
                    ceiling: plan.ceiling,
                    dictionary: dictionary.into_iter().map(|(_, _, body)| body).collect(),
                    marks,
                    bytes: (end.position - checkpoint.replay_from) * BLOCK_BYTES as u64,
                };
                self.recovery.plan = Some(plan);
                Ok(Box::new(recovered))
            }
        };
        outbox.send(reply_to, Signal::Main(MainSignal::RecoverLogReply(RecoverLogReply { result })));
    }

    /// Ends the reading under way with an error. The node does not start.
    fn fail_recovery(&mut self, text: &str, outbox: &mut Outbox<Signal>) {
        match std::mem::take(&mut self.recovery.pass) {
            Pass::None => {}
            Pass::List { reply_to, .. } => reply_damage(reply_to, text, outbox),
            Pass::Analyse(analyse) | Pass::Tail(analyse) | Pass::Resync(analyse) => {
                reply_damage(analyse.reply_to, text, outbox);
            }
            Pass::Replay { reply_to } => {
                let reply = ReplayLogReply { error: Some(text.into()) };
                outbox.send(reply_to, Signal::Main(MainSignal::ReplayLogReply(reply)));
            }
        }
    }

    /// Whether an owner has so many batches under way that reading pauses.
    fn is_replay_blocked(&self) -> bool {
        let Replay { batches, under_way, .. } = &self.recovery.replay;
        matches!(self.recovery.pass, Pass::Replay { .. })
            && batches.iter().any(|(owner, batch)| {
                batch.len() >= BATCH_BYTES && under_way.get(owner).copied().unwrap_or(0) >= BATCHES_PER_OWNER_MAX
            })
    }

    fn send_full_batches(&mut self, outbox: &mut Outbox<Signal>) {
        self.send_batches(BATCH_BYTES, outbox);
    }

    /// Sends the batches of at least this size to owners that have room.
    fn send_batches(&mut self, bytes_min: usize, outbox: &mut Outbox<Signal>) {
        let own = outbox.own();
        let Replay { batches, under_way, spare, .. } = &mut self.recovery.replay;
        for (owner, batch) in batches.iter_mut().filter(|(_, batch)| batch.len() >= bytes_min) {
            let count = under_way.entry(*owner).or_default();
            if *count < BATCHES_PER_OWNER_MAX {
                *count += 1;
                let sections = std::mem::replace(batch, spare.pop().unwrap_or_default());
                let signal = ReplayRows { reply_to: own, sections };
                outbox.send(*owner, Signal::Ldm(LdmSignal::ReplayRows(signal)));
            }
        }
    }

    pub(super) fn on_replay_rows_reply(&mut self, reply: ReplayRowsReply, outbox: &mut Outbox<Signal>) {
        let ReplayRowsReply { from, mut bytes, error } = reply;
        let replay = &mut self.recovery.replay;
        bytes.clear();
        replay.spare.push(bytes);
        if let Some(count) = replay.under_way.get_mut(&from) {
            *count = count.saturating_sub(1);
        }
        if let Some(error) = error {
            replay.error.get_or_insert(error);
        }
        let is_read = replay.is_read;
        self.send_batches(if is_read { 1 } else { BATCH_BYTES }, outbox);
        match is_read {
            true => self.end_replay(outbox),
            false => self.read_groups(outbox),
        }
    }

    /// Answers the second reading once every owner has answered.
    fn end_replay(&mut self, outbox: &mut Outbox<Signal>) {
        let Replay { batches, under_way, error, .. } = &mut self.recovery.replay;
        if batches.values().any(|batch| !batch.is_empty()) || under_way.values().any(|count| *count > 0) {
            return;
        }
        let Pass::Replay { reply_to } = self.recovery.pass else { return };
        let error = error.take();
        outbox.crash_point(crash_point::RECOVERY_APPLY.after());
        if let Some((_, file)) = self.recovery.reader.as_ref().and_then(|reader| reader.file) {
            outbox.request(WorldRequest::CloseFile { file, token: RECOVER << TOKEN_KIND_SHIFT | CLOSED });
        }
        self.recovery = Recovery::default();
        outbox.send(reply_to, Signal::Main(MainSignal::ReplayLogReply(ReplayLogReply { error })));
    }
}

/// Where the second reading puts records.
struct Sink<'a> {
    plan: Option<&'a RecoveryPlan>,
    replay: &'a mut Replay,
}

/// Hands the records of a group to the reading under way. Returns why they are damaged, if they are.
fn take_group(
    group: &Group<'_>,
    (streams, incarnation): (&mut BTreeMap<StreamId, StreamReader>, &mut u32),
    pass: &mut Pass,
    sink: &mut Sink<'_>,
) -> Option<String> {
    let header = &group.header;
    if header.incarnation != *incarnation {
        // Records that an earlier life had not finished are lost, and were never acknowledged.
        *incarnation = header.incarnation;
        streams.clear();
    }
    if let Pass::Analyse(analyse) = pass {
        analyse.analysis.observe_group(header);
        analyse.end = ChainPosition::after(group);
        analyse.synced = analyse.synced.max(header.synced);
    }
    for piece in group.pieces() {
        let reader = streams.entry(piece.stream).or_default();
        let read = reader.read(&piece, &mut |record| match pass {
            Pass::Analyse(analyse) => analyse.take_record(header.incarnation, piece.stream, record),
            _ => sink.take_record(header.incarnation, piece.stream, record),
        });
        if let Err(error) = read {
            return Some(error.to_string());
        }
    }
    None
}

impl Analyse {
    fn take_record(&mut self, incarnation: u32, stream: StreamId, record: &Record<'_>) {
        self.analysis.observe_record(stream, record);
        match record.header.kind {
            RecordKind::Dictionary => {
                self.dictionary.push((record.header.number, incarnation, record.body.to_vec()));
            }
            RecordKind::Mark => self.marks.push(record.body.to_vec()),
            RecordKind::Commit | RecordKind::Chunk | RecordKind::ChunkCommit | RecordKind::ChunkUndo => {}
        }
    }
}

impl Sink<'_> {
    fn take_record(&mut self, incarnation: u32, stream: StreamId, record: &Record<'_>) {
        let Some(plan) = self.plan else { return };
        let Decision::Apply(number) = plan.decide(incarnation, stream, record) else { return };
        for section in record.sections() {
            // A partition without an owner belongs to a table that was dropped later.
            let Some(owner) = self.replay.owners.get(&section.header.partition) else { continue };
            let batch = self.replay.batches.entry(*owner).or_default();
            batch.extend_from_slice(&number.0.to_le_bytes());
            batch.extend_from_slice(section.bytes());
        }
    }
}

/// The bytes of a window that begins at `window_at`, from a position on.
fn bytes_at(window: &[u8], window_at: u64, position: u64) -> Option<&[u8]> {
    let offset = position.checked_sub(window_at)? as usize * BLOCK_BYTES;
    window.get(offset..).filter(|bytes| !bytes.is_empty())
}

fn reply_damage(reply_to: Address, text: &str, outbox: &mut Outbox<Signal>) {
    let reply = RecoverLogReply { result: Err(text.into()) };
    outbox.send(reply_to, Signal::Main(MainSignal::RecoverLogReply(reply)));
}
