//! Checks the page tables and frames that a manifest names.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use junctor_model::checkpoint::{CHECKPOINT_FOLDER, FrameLocation, PageTableLocation, checkpoint_file};
use junctor_model::id::PartitionId;
use junctor_model::stored_lists::{decode_partitions, decode_schema};
use junctor_model::stored_manifest::{ListPlace, Manifest};
use junctor_storage::checkpoint::{
    CheckpointError, PageEntries, StoredFrame, append_file_checksum, decode_frame, decode_page_table,
};

use super::CheckReport;
use crate::BackupError;

/// The files of a checkpoint that could be opened, with their names.
type Files = BTreeMap<u32, (String, File)>;

pub(super) fn check_checkpoint(
    folder: &Path,
    manifest: &Manifest,
    report: &mut CheckReport,
) -> Result<(), BackupError> {
    let files = open_files(folder, manifest, report)?;
    let (mut frames, mut rows) = (0u64, 0u64);
    for (partition, table) in &partitions(&files, manifest, report)? {
        for page in check_page_table(&files, *partition, table, report)? {
            let mut part = 0;
            for frame in &page.frames {
                part = if frame.is_first { 0 } else { part + 1 };
                let name = place(&files, &frame.location);
                let checked = match read(&files, &frame.location)? {
                    Some(bytes) => check_frame(&bytes, *partition, (page.page, part), frame),
                    None => Err(CheckpointError::Damaged),
                };
                if let Err(error) = checked {
                    let PartitionId { table, index } = partition;
                    let owner = format!("page {} of partition {index} of table {table}", page.page);
                    report.damaged(name, format!("the frame of {owner}: {error}"));
                }
                frames += 1;
                rows += u64::from(frame.row_count);
            }
        }
    }
    let Manifest { generation, newest, .. } = manifest;
    report.note(format!("checkpoint {generation} up to commit {newest}: {frames} frames, {rows} rows"));
    Ok(())
}

/// The partitions of the checkpoint; empty if their list is damaged. Checks the schema, too.
fn partitions(
    files: &Files,
    manifest: &Manifest,
    report: &mut CheckReport,
) -> Result<Vec<(PartitionId, PageTableLocation)>, BackupError> {
    let (schema, list) = match &manifest.lists {
        ListPlace::Inline(lists) => return Ok(lists.partitions.clone()),
        ListPlace::Files { schema, partitions } => (*schema, *partitions),
    };
    if let Some((name, bytes)) = read_list(files, manifest, schema, report)?
        && let Err(error) = decode_schema(&bytes)
    {
        report.damaged(name, error);
    }
    let Some((name, bytes)) = read_list(files, manifest, list, report)? else { return Ok(Vec::new()) };
    match decode_partitions(&bytes) {
        Ok((_, partitions)) => {
            if let Err(error) = manifest.check_partitions(&partitions) {
                report.damaged(name, error);
            }
            Ok(partitions)
        }
        Err(error) => {
            report.damaged(name, error);
            Ok(Vec::new())
        }
    }
}

/// The name and the bytes of a list; `None` if it is damaged, or if the file is missing, which is reported.
fn read_list<'a>(
    files: &'a Files,
    manifest: &Manifest,
    number: u32,
    report: &mut CheckReport,
) -> Result<Option<(&'a str, Vec<u8>)>, BackupError> {
    let (Some((name, file)), Some(named)) = (files.get(&number), manifest.file(number)) else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(named.bytes).read_to_end(&mut bytes).map_err(BackupError::of_file(Path::new(name)))?;
    let is_whole = bytes.len() as u64 == named.bytes && named.checksum == Some(append_file_checksum(0, &bytes));
    if !is_whole {
        report.damaged(name, "the list of the checkpoint is damaged");
    }
    Ok(is_whole.then_some((name, bytes)))
}

/// Opens the files of the manifest. Their names contain their numbers.
fn open_files(folder: &Path, manifest: &Manifest, report: &mut CheckReport) -> Result<Files, BackupError> {
    let path = folder.join(CHECKPOINT_FOLDER);
    let mut files = Files::new();
    if let Ok(entries) = std::fs::read_dir(&path) {
        for entry in entries {
            let entry = entry.map_err(BackupError::of_file(&path))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(number) = checkpoint_file(&name) else { continue };
            if manifest.file(number).is_some() {
                let file = File::open(entry.path()).map_err(BackupError::of_file(&entry.path()))?;
                files.insert(number, (format!("{CHECKPOINT_FOLDER}/{name}"), file));
            }
        }
    }
    for file in &manifest.files {
        let Some((name, open)) = files.get(&file.number) else {
            report.damaged(format!("checkpoint file {}", file.number), "the file is missing");
            continue;
        };
        let length = open.metadata().map_err(BackupError::of_file(Path::new(name)))?.len();
        if length < file.bytes {
            report.damaged(name, format!("the file has {length} of its {} bytes", file.bytes));
        }
    }
    Ok(files)
}

/// The pages of a partition; empty if the table is damaged.
fn check_page_table(
    files: &Files,
    partition: PartitionId,
    table: &PageTableLocation,
    report: &mut CheckReport,
) -> Result<Vec<PageEntries>, BackupError> {
    let bytes = read(files, &table.location)?.unwrap_or_default();
    let is_named = bytes.get(4..8) == Some(&table.checksum.to_le_bytes());
    let decoded = match decode_page_table(&bytes) {
        Ok((header, pages)) if is_named && header.partition == partition => Ok(pages),
        Ok(_) => Err(CheckpointError::Misplaced),
        Err(error) => Err(error),
    };
    Ok(decoded.unwrap_or_else(|error| {
        let PartitionId { table: id, index } = partition;
        let owner = format!("the page table of partition {index} of table {id}");
        report.damaged(place(files, &table.location), format!("{owner}: {error}"));
        Vec::new()
    }))
}

fn check_frame(
    bytes: &[u8],
    partition: PartitionId,
    (page, part): (u32, u32),
    named: &StoredFrame,
) -> Result<(), CheckpointError> {
    let frame = decode_frame(bytes)?;
    let header = &frame.header;
    let is_named = frame.location == named.location
        && frame.checksum == named.checksum
        && frame.row_count == named.row_count
        && (header.partition, header.page, header.part) == (partition, page, part);
    if is_named { Ok(()) } else { Err(CheckpointError::Misplaced) }
}

/// The bytes at a location; `None` if the file is missing or too short, which is reported once for the file.
fn read(files: &Files, location: &FrameLocation) -> Result<Option<Vec<u8>>, BackupError> {
    let Some((name, file)) = files.get(&location.file) else { return Ok(None) };
    let mut bytes = vec![0; location.length as usize];
    match file.read_exact_at(&mut bytes, location.offset) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(BackupError::of_file(Path::new(name))(error)),
    }
}

fn place(files: &Files, location: &FrameLocation) -> String {
    let FrameLocation { file, offset, length } = location;
    match files.get(file) {
        Some((name, _)) => format!("{name}, {length} bytes from byte {offset}"),
        None => format!("checkpoint file {file}, {length} bytes from byte {offset}"),
    }
}
