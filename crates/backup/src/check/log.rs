//! Checks the log as recovery reads it: the chain of groups, the records, and what lies behind the end.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use futures_lite::future::block_on;
use junctor_model::id::CommitNumber;
use junctor_model::stored_identity::Identity;
use junctor_model::stored_manifest::Manifest;
use junctor_storage::log::{
    BLOCK_BYTES, ChainPosition, GroupKind, LOG_FOLDER, LogAnalysis, SegmentSize, StreamId, StreamReader, TAIL_BLOCKS,
    decode_group, is_beyond_end, segment_number, segment_path,
};

use super::CheckReport;
use crate::BackupError;
use crate::data_directory::{DataDirectory, FolderFiles};

/// Blocks that are read at a time.
const READ_BLOCKS: u64 = 256;

pub(super) fn check_log(
    folder: &Path,
    identity: &Identity,
    manifest: Option<&Manifest>,
    report: &mut CheckReport,
) -> Result<(), BackupError> {
    let Some(size) = SegmentSize::of_bytes(identity.segment_bytes) else {
        report.damaged("identity", format!("no log has segments of {} bytes", identity.segment_bytes));
        return Ok(());
    };
    if manifest.is_some_and(|manifest| manifest.log_id != identity.log_id) {
        report.damaged("manifest", "it belongs to the log of another directory");
        return Ok(());
    }
    let (begin, newest, from) = match manifest {
        Some(manifest) => (manifest.begin, manifest.newest, manifest.replay_from),
        None => (CommitNumber(0), CommitNumber(0), 0),
    };
    let place = |position: u64| {
        let segment = segment_path(LOG_FOLDER, size.segment_of(position));
        format!("{segment}, byte {}", size.offset_of(position))
    };
    let directory = DataDirectory::new(FolderFiles(folder.into()));
    let mut reader = directory.log(identity, from)?;
    let mut analysis = LogAnalysis::new(begin);
    let mut streams: BTreeMap<StreamId, StreamReader> = BTreeMap::new();
    let mut end: Option<(ChainPosition, GroupKind)> = None;
    let mut groups = 0u64;
    while let Some(raw) = block_on(reader.next_group())? {
        let header = &raw.header;
        // The reader has checked the group.
        let Ok(group) = decode_group(&raw.bytes) else { break };
        if end.is_none_or(|(end, _)| end.incarnation != header.incarnation) {
            streams.clear();
        }
        analysis.observe_group(header);
        for piece in group.pieces() {
            let stream = streams.entry(piece.stream).or_default();
            let read = stream.read(&piece, &mut |record| analysis.observe_record(piece.stream, record));
            if let Err(error) = read {
                report.damaged(place(header.position), error);
                return Ok(());
            }
        }
        groups += 1;
        end = Some((ChainPosition::after(&group), header.kind));
    }
    let Some((end, kind)) = end else {
        report.damaged(place(from), "the log does not begin here");
        return Ok(());
    };
    for segment in size.segment_of(from)..=size.segment_of(end.position - 1) {
        let name = segment_path(LOG_FOLDER, segment);
        let path = folder.join(&*name);
        let length = path.metadata().map_err(BackupError::of_file(&path))?.len();
        // Recovery takes a short segment for one that was not prepared completely, and does not read it.
        if length < size.bytes() {
            report.damaged(name, format!("the segment has {length} of its {} bytes", size.bytes()));
        }
    }
    if let Some(beyond) = find_beyond_end(folder, size, &end)? {
        let problem =
            format!("the chain of groups ends here, but {} proves that synced groups followed", place(beyond));
        report.damaged(place(end.position), problem);
        return Ok(());
    }
    match analysis.finish(newest) {
        Ok(plan) => report.note(format!("log: {groups} groups up to commit {}", plan.cut)),
        Err(damage) => report.damaged("log", damage),
    }
    if kind != GroupKind::Closing {
        report.note(format!("{}: the log ends without a closing group, as after a kill", place(end.position)));
    }
    Ok(())
}

/// The position of a group that proves that the log is damaged at its end.
fn find_beyond_end(folder: &Path, size: SegmentSize, end: &ChainPosition) -> Result<Option<u64>, BackupError> {
    let blocks_per_segment = size.bytes() / BLOCK_BYTES as u64;
    let last_segment = last_segment(folder, end.position / blocks_per_segment)?;
    let mut position = end.position;
    while size.segment_of(position) <= last_segment {
        // Beyond the near blocks, only the first block of each segment is examined.
        let is_near = position < end.position + TAIL_BLOCKS;
        let count = if is_near { READ_BLOCKS.min(size.next_start(position + 1) - position) } else { 1 };
        let path = folder.join(&*segment_path(LOG_FOLDER, size.segment_of(position)));
        let mut bytes = vec![0; count as usize * BLOCK_BYTES];
        let read = File::open(&path).and_then(|file| file.read_exact_at(&mut bytes, size.offset_of(position)));
        match read {
            Ok(()) => {
                let mut blocks = bytes.chunks_exact(BLOCK_BYTES).zip(position..);
                if let Some((_, found)) = blocks.find(|(block, at)| is_beyond_end(block, *at, end)) {
                    return Ok(Some(found));
                }
                position = if is_near { position + count } else { size.next_start(position + 1) };
            }
            // A missing or short segment: later ones are examined all the same.
            Err(_) => position = size.next_start(position + 1),
        }
    }
    Ok(None)
}

/// The highest number of a segment that exists, or `at_least`.
fn last_segment(folder: &Path, at_least: u64) -> Result<u64, BackupError> {
    let path = folder.join(LOG_FOLDER);
    let entries = std::fs::read_dir(&path).map_err(BackupError::of_file(&path))?;
    let mut last = at_least;
    for entry in entries {
        let name = entry.map_err(BackupError::of_file(&path))?.file_name();
        last = last.max(name.to_str().and_then(segment_number).unwrap_or(0));
    }
    Ok(last)
}
