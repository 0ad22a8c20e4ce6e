//! The logs of all parts as one new log.
//!
//! Each log is read twice, as recovery reads it: the first reading finds the records that count, and the
//! second one writes them. A commit may have records in several parts. So its number of participants is
//! counted anew. The new log has one life, whose streams are those of all lives of all parts.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use junctor_model::id::CommitNumber;
use junctor_model::stored_schema::DictionaryChange;
use junctor_signals::crash_point::BACKUP_RESTORE;
use junctor_storage::log::{
    BLOCK_BYTES, Decision, GROUP_BYTES_MAX, GROUP_HEADER_BYTES, Group, GroupError, GroupHeader, GroupKind, LOG_FOLDER,
    LogAnalysis, MAIN_STREAM, PIECE_HEADER_BYTES, Piece, Record, RecordBuffer, RecordHeader, RecordKind, RecoveryPlan,
    SegmentSize, StreamCutter, StreamId, StreamReader, decode_group, encode_group, group_blocks, segment_path,
};

use super::checkpoint::MergedCheckpoint;
use crate::BackupError;
use crate::contents::{ClusterContents, Contents};
use crate::crash::reach;
use crate::object::read_object;
use crate::restore::Target;
use crate::store::BackupStore;

/// Bytes of records that are gathered before they are written.
const GATHERED_BYTES: usize = 512 << 10;

/// How many streams have a record of each commit, in all parts.
type Participants = BTreeMap<CommitNumber, u16>;

pub(super) async fn write(
    store: &BackupStore,
    name: &str,
    cluster: &ClusterContents,
    (checkpoint, target): (&MergedCheckpoint, Target<'_>),
) -> Result<(), BackupError> {
    let cut = CommitNumber(cluster.cut);
    let mut participants = Participants::new();
    let mut plans = Vec::new();
    for (index, part) in cluster.parts.iter().enumerate() {
        let has_schema = index == checkpoint.schema_part;
        let analysis = LogAnalysis::new(checkpoint.begins[index]).up_to(cut);
        let first = FirstReading { analysis, counts: BTreeMap::new(), has_schema };
        let first = read_log(store, name, &part.contents, first).await?;
        let damaged = |error| BackupError::refused(format!("the log of node {}: {error}", part.node));
        let plan = first.analysis.finish(CommitNumber(0)).map_err(damaged)?;
        if plan.cut != cut {
            let text = format!("the log of node {} ends at commit {}, not at {cut}", part.node, plan.cut);
            return Err(BackupError::refused(text));
        }
        for ((incarnation, number), count) in first.counts {
            if plan.keeps(incarnation, number) {
                *participants.entry(number).or_default() += count;
            }
        }
        plans.push(plan);
    }
    let segment_bytes = cluster.parts.first().map_or(0, |part| part.contents.segment_bytes);
    let size = SegmentSize::of_bytes(segment_bytes)
        .ok_or_else(|| BackupError::refused("the backup has an invalid size of segments"))?;
    let mut log = NewLog::begin(size, (checkpoint.begin, cut), target);
    log.wall_clock_us = cluster.parts.iter().map(|part| part.contents.log.wall_clock_us).min().unwrap_or(0);
    log.put_group(GroupKind::Start, &[]).map_err(not_written)?;
    for (index, (part, plan)) in cluster.parts.iter().zip(plans).enumerate() {
        reach(target.crashes, BACKUP_RESTORE.before())?;
        let has_schema = index == checkpoint.schema_part;
        log.streams.clear();
        let second =
            SecondReading { plan, participants: &participants, has_schema, node_groups: target.node_groups, log };
        log = read_log(store, name, &part.contents, second).await?.log;
        reach(target.crashes, BACKUP_RESTORE.after())?;
    }
    log.finish().map_err(not_written)
}

fn not_written(error: std::io::Error) -> BackupError {
    BackupError::refused(format!("cannot write the log: {error}"))
}

/// Receives the groups and records of a log, in their order.
trait Reading {
    fn group(&mut self, _header: &GroupHeader) {}

    fn record(&mut self, incarnation: u32, stream: StreamId, record: &Record<'_>) -> std::io::Result<()>;
}

struct FirstReading {
    analysis: LogAnalysis,
    /// Records of each commit of each life.
    counts: BTreeMap<(u32, CommitNumber), u16>,
    has_schema: bool,
}

impl Reading for FirstReading {
    fn group(&mut self, header: &GroupHeader) {
        self.analysis.observe_group(header);
    }

    fn record(&mut self, incarnation: u32, stream: StreamId, record: &Record<'_>) -> std::io::Result<()> {
        self.analysis.observe_record(stream, record);
        let counts = match record.header.kind {
            RecordKind::Commit | RecordKind::ChunkCommit => true,
            RecordKind::Dictionary => self.has_schema,
            RecordKind::Chunk | RecordKind::Mark | RecordKind::ChunkUndo => false,
        };
        if counts {
            *self.counts.entry((incarnation, record.header.number)).or_default() += 1;
        }
        Ok(())
    }
}

struct SecondReading<'a> {
    plan: RecoveryPlan,
    participants: &'a Participants,
    has_schema: bool,
    node_groups: u8,
    log: NewLog,
}

impl Reading for SecondReading<'_> {
    fn record(&mut self, incarnation: u32, stream: StreamId, record: &Record<'_>) -> std::io::Result<()> {
        let header = record.header;
        let is_kept = match header.kind {
            RecordKind::Commit | RecordKind::Chunk => {
                matches!(self.plan.decide(incarnation, stream, record), Decision::Apply(_))
            }
            RecordKind::ChunkCommit => self.plan.keeps(incarnation, header.number),
            RecordKind::Dictionary => self.has_schema && self.plan.keeps(incarnation, header.number),
            RecordKind::Mark => self.has_schema,
            RecordKind::ChunkUndo => false,
        };
        if !is_kept {
            return Ok(());
        }
        let participants = self.participants.get(&header.number).copied().unwrap_or(0);
        let stream = self.log.stream_of(incarnation, stream)?;
        let header = RecordHeader { participants, ..header };
        if header.kind == RecordKind::Dictionary {
            let change = DictionaryChange::decode(record.body);
            let mut change = change.map_err(|error| invalid(format!("a schema change: {error}")))?;
            super::place(&mut change, self.node_groups);
            return self.log.add(stream, &header, &change.encode());
        }
        self.log.add(stream, &header, record.body)
    }
}

/// Reads the log of a part.
async fn read_log<R: Reading>(
    store: &BackupStore,
    name: &str,
    contents: &Contents,
    reading: R,
) -> Result<R, BackupError> {
    let from = contents.log.replay_from;
    let groups = Groups { reading, from, incarnation: 0, streams: BTreeMap::new(), received: Vec::new() };
    let groups = read_object(store, name, &contents.log.object, groups).await?;
    match groups.received.is_empty() {
        true => Ok(groups.reading),
        false => Err(BackupError::refused(format!("the log of backup '{name}' ends within a group"))),
    }
}

/// Receives the bytes of groups.
struct Groups<R> {
    reading: R,
    /// Groups before this position are not needed.
    from: u64,
    incarnation: u32,
    streams: BTreeMap<StreamId, StreamReader>,
    /// Bytes of a group that is not complete.
    received: Vec<u8>,
}

impl<R: Reading> Groups<R> {
    fn take(&mut self, group: &Group<'_>) -> std::io::Result<()> {
        let header = &group.header;
        if header.position < self.from {
            return Ok(());
        }
        if header.incarnation != self.incarnation {
            self.incarnation = header.incarnation;
            self.streams.clear();
        }
        self.reading.group(header);
        for piece in group.pieces() {
            let mut failed = Ok(());
            let read = self.streams.entry(piece.stream).or_default().read(&piece, &mut |record| {
                if failed.is_ok() {
                    failed = self.reading.record(header.incarnation, piece.stream, record);
                }
            });
            read.map_err(|error| invalid(error.to_string()))?;
            failed?;
        }
        Ok(())
    }
}

impl<R: Reading> Write for Groups<R> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.received.extend_from_slice(bytes);
        let received = std::mem::take(&mut self.received);
        let mut at = 0;
        while at < received.len() {
            match decode_group(&received[at..]) {
                Ok(group) => {
                    self.take(&group)?;
                    at += group.blocks as usize * BLOCK_BYTES;
                }
                Err(GroupError::Incomplete(_)) => break,
                Err(GroupError::NoHeader) if received.len() - at < BLOCK_BYTES => break,
                Err(error) => return Err(invalid(format!("a group of the log: {error}"))),
            }
        }
        self.received.extend_from_slice(&received[at..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn invalid(text: String) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, text)
}

/// The log of the new directory.
struct NewLog {
    folder: PathBuf,
    size: SegmentSize,
    log_id: u64,
    /// Its records are of commits above the first number, and up to the second one.
    bounds: (CommitNumber, CommitNumber),
    wall_clock_us: u64,
    position: u64,
    checksum: u32,
    segment: Option<(u64, File)>,
    /// The streams of the part that is being read, by life and stream.
    streams: BTreeMap<(u32, StreamId), StreamId>,
    next_stream: u16,
    /// Whole records that are not written, in their order.
    gathered: Vec<(StreamId, RecordBuffer)>,
    gathered_bytes: usize,
}

impl NewLog {
    fn begin(size: SegmentSize, bounds: (CommitNumber, CommitNumber), target: Target<'_>) -> NewLog {
        NewLog {
            folder: target.folder.to_owned(),
            size,
            log_id: target.log_id,
            bounds,
            wall_clock_us: 0,
            position: 0,
            checksum: 0,
            segment: None,
            streams: BTreeMap::new(),
            next_stream: 0,
            gathered: Vec::new(),
            gathered_bytes: 0,
        }
    }

    /// The stream in this log of a stream in a life of the part that is being read.
    fn stream_of(&mut self, incarnation: u32, stream: StreamId) -> std::io::Result<StreamId> {
        if stream == MAIN_STREAM {
            return Ok(MAIN_STREAM);
        }
        if let Some(known) = self.streams.get(&(incarnation, stream)) {
            return Ok(*known);
        }
        if self.next_stream == MAIN_STREAM.0 {
            return Err(invalid("the logs have too many streams".to_owned()));
        }
        let new = StreamId(self.next_stream);
        self.next_stream += 1;
        self.streams.insert((incarnation, stream), new);
        Ok(new)
    }

    fn add(&mut self, stream: StreamId, header: &RecordHeader, body: &[u8]) -> std::io::Result<()> {
        if self.gathered.last().is_none_or(|(last, _)| *last != stream) {
            self.gathered.push((stream, RecordBuffer::new()));
        }
        if let Some((_, buffer)) = self.gathered.last_mut() {
            buffer.begin(header);
            buffer.append_body(body);
            self.gathered_bytes += buffer.end();
        }
        match self.gathered_bytes >= GATHERED_BYTES {
            true => self.write_gathered(),
            false => Ok(()),
        }
    }

    /// Writes the gathered records in as few groups as possible.
    fn write_gathered(&mut self) -> std::io::Result<()> {
        self.gathered_bytes = 0;
        let gathered = std::mem::take(&mut self.gathered);
        let gathered: Vec<(StreamId, Vec<u8>)> =
            gathered.into_iter().map(|(stream, mut buffer)| (stream, buffer.take(Vec::new()))).collect();
        let mut pieces: Vec<Piece<'_>> = Vec::new();
        let mut left = ROOM;
        for (stream, bytes) in &gathered {
            let mut cutter = StreamCutter::new();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let room = left.saturating_sub(PIECE_HEADER_BYTES);
                let (length, first_record) = if room == 0 { (0, None) } else { cutter.cut(rest, room) };
                if length == 0 {
                    // The header of the next record does not fit.
                    self.put_group(GroupKind::Data, &pieces)?;
                    pieces.clear();
                    left = ROOM;
                    continue;
                }
                pieces.push(Piece { stream: *stream, first_record, bytes: &rest[..length] });
                rest = &rest[length..];
                left = room - length;
            }
        }
        match pieces.is_empty() {
            true => Ok(()),
            false => self.put_group(GroupKind::Data, &pieces),
        }
    }

    fn put_group(&mut self, kind: GroupKind, pieces: &[Piece<'_>]) -> std::io::Result<()> {
        let (begin, cut) = self.bounds;
        let blocks = group_blocks(pieces.len(), pieces.iter().map(|piece| piece.bytes.len()).sum());
        let position = self.size.place(self.position, blocks);
        let (stable, taken) = match kind {
            GroupKind::Start => (begin, begin),
            GroupKind::Data => (begin, cut),
            GroupKind::Closing => (cut, cut),
        };
        let header = GroupHeader {
            kind,
            position,
            log_id: self.log_id,
            life: self.log_id,
            incarnation: 1,
            previous_checksum: self.checksum,
            stable,
            taken,
            ceiling: cut,
            // Everything is on disk before the directory has its name.
            synced: position,
            previous_cut: CommitNumber(0),
            wall_clock_us: self.wall_clock_us,
        };
        let mut group = vec![0; blocks as usize * BLOCK_BYTES];
        self.checksum = encode_group(&header, pieces.iter().copied(), &mut group);
        self.open_segment(self.size.segment_of(position))?;
        if let Some((_, file)) = &self.segment {
            file.write_all_at(&group, self.size.offset_of(position))?;
        }
        self.position = position + blocks;
        Ok(())
    }

    fn open_segment(&mut self, segment: u64) -> std::io::Result<()> {
        if self.segment.as_ref().is_some_and(|(number, _)| *number == segment) {
            return Ok(());
        }
        if let Some((_, file)) = self.segment.take() {
            file.sync_all()?;
        }
        let path = self.folder.join(&*segment_path(LOG_FOLDER, segment));
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.set_len(self.size.bytes())?;
        self.segment = Some((segment, file));
        Ok(())
    }

    fn finish(mut self) -> std::io::Result<()> {
        self.write_gathered()?;
        self.put_group(GroupKind::Closing, &[])?;
        match self.segment.take() {
            Some((_, file)) => file.sync_all(),
            None => Ok(()),
        }
    }
}

/// Bytes of a group for the headers of pieces and the pieces.
const ROOM: usize = GROUP_BYTES_MAX - GROUP_HEADER_BYTES;
