//! The checkpoints of all parts as one.
//!
//! Each node numbers its files from 1. A frame and the page table that names it contain the number of their
//! file, and a checksum over it. So both are written again, at the same places in files of other numbers.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use junctor_model::checkpoint::{CheckpointFile, FrameLocation, PageTableLocation, checkpoint_path};
use junctor_model::id::{CommitNumber, PartitionId, TableId};
use junctor_model::stored_lists::{
    append_mark, append_partition, append_schema_part, begin_partitions, begin_schema, decode_partitions, decode_schema,
};
use junctor_model::stored_manifest::{ListPlace, Manifest};
use junctor_model::stored_schema::DictionaryChange;
use junctor_signals::crash_point::BACKUP_RESTORE;
use junctor_storage::checkpoint::{
    PageEntries, append_file_checksum, decode_frame, decode_page_table, move_frame, page_table_bytes,
};

use crate::BackupError;
use crate::contents::{ClusterContents, Contents, Object};
use crate::crash::reach;
use crate::object::read_object;
use crate::restore::{NewFile, Target};
use crate::store::BackupStore;

/// The checkpoint of the new directory.
#[derive(Debug, Default)]
pub struct MergedCheckpoint {
    /// It has every commit up to this number.
    pub begin: CommitNumber,
    /// It has no commit above this number.
    pub newest: CommitNumber,
    /// Where the checkpoint of each part begins, in their order.
    pub begins: Vec<CommitNumber>,
    /// The part that the schema is of: an index.
    pub schema_part: usize,
    /// The files of the schema and of the partition list; `None` if no node had made a checkpoint.
    pub lists: Option<(u32, u32)>,
    /// All files, in the order of their numbers.
    pub files: Vec<CheckpointFile>,
    /// The next number of a file.
    pub next_file: u32,
}

/// The contents of the lists of a part's checkpoint.
struct Lists {
    schema: DictionaryChange,
    marks: BTreeMap<TableId, u64>,
    partitions: Vec<(PartitionId, PageTableLocation)>,
}

pub(super) async fn write(
    store: &BackupStore,
    name: &str,
    cluster: &ClusterContents,
    target: Target<'_>,
) -> Result<MergedCheckpoint, BackupError> {
    let mut merged = MergedCheckpoint { next_file: 1, ..MergedCheckpoint::default() };
    let mut schema: Option<DictionaryChange> = None;
    let mut marks: BTreeMap<TableId, u64> = BTreeMap::new();
    let mut partitions = BTreeMap::new();
    for (index, part) in cluster.parts.iter().enumerate() {
        let contents = &part.contents;
        let Some(manifest) = read_manifest(store, name, contents).await? else {
            merged.begins.push(CommitNumber(0));
            continue;
        };
        merged.begins.push(manifest.begin);
        merged.newest = merged.newest.max(manifest.newest);
        let lists = read_lists(store, name, contents, &manifest).await?;
        if schema.is_none() {
            (schema, merged.schema_part) = (Some(lists.schema), index);
        }
        for (table, mark) in lists.marks {
            let known = marks.entry(table).or_default();
            *known = mark.max(*known);
        }
        let mut moved = MovedFiles::default();
        for file in manifest.files.iter().filter(|file| !manifest.is_list(file.number)) {
            let number = merged.next_file;
            merged.next_file += 1;
            moved.copy(store, name, (object_of(contents, file.number)?, file.number, number), target).await?;
            let CheckpointFile { bytes, live_bytes, .. } = *file;
            merged.files.push(CheckpointFile { number, bytes, live_bytes, checksum: None });
        }
        for (partition, table) in lists.partitions {
            let moved = moved.move_table(partition, &table)?;
            if partitions.insert(partition, moved).is_some() {
                let PartitionId { table, index } = partition;
                let text = format!("two node groups have partition {index} of table {table}");
                return Err(BackupError::refused(text));
            }
        }
        moved.sync()?;
    }
    merged.begin = merged.begins.iter().copied().min().unwrap_or_default();
    if let Some(mut schema) = schema {
        super::place(&mut schema, target.node_groups);
        let mut bytes = Vec::new();
        begin_schema(&mut bytes);
        append_schema_part(&schema, &mut bytes);
        let schema = merged.add_list(&bytes, target)?;
        let mut bytes = Vec::new();
        begin_partitions(marks.len(), partitions.len(), &mut bytes);
        marks.into_iter().for_each(|(table, mark)| append_mark(table, mark, &mut bytes));
        partitions.iter().for_each(|(partition, table)| append_partition(*partition, table, &mut bytes));
        merged.lists = Some((schema, merged.add_list(&bytes, target)?));
    }
    Ok(merged)
}

async fn read_manifest(store: &BackupStore, name: &str, contents: &Contents) -> Result<Option<Manifest>, BackupError> {
    let Some(stored) = &contents.manifest else { return Ok(None) };
    let bytes = read_object(store, name, &stored.object, Vec::new()).await?;
    Manifest::decode(&bytes).map(Some).map_err(|error| BackupError::refused(error.to_string()))
}

async fn read_lists(
    store: &BackupStore,
    name: &str,
    contents: &Contents,
    manifest: &Manifest,
) -> Result<Lists, BackupError> {
    let (schema, partitions) = match &manifest.lists {
        ListPlace::Inline(lists) => {
            let lists = (**lists).clone();
            return Ok(Lists { schema: lists.schema, marks: lists.marks, partitions: lists.partitions });
        }
        ListPlace::Files { schema, partitions } => (*schema, *partitions),
    };
    let refused = |error: &dyn std::fmt::Display| BackupError::refused(format!("a list of the checkpoint: {error}"));
    let bytes = read_object(store, name, object_of(contents, schema)?, Vec::new()).await?;
    let schema = decode_schema(&bytes).map_err(|error| refused(&error))?;
    let bytes = read_object(store, name, object_of(contents, partitions)?, Vec::new()).await?;
    let (marks, partitions) = decode_partitions(&bytes).map_err(|error| refused(&error))?;
    manifest.check_partitions(&partitions).map_err(|error| refused(&error))?;
    Ok(Lists { schema, marks, partitions })
}

fn object_of(contents: &Contents, number: u32) -> Result<&Object, BackupError> {
    let file = contents.files.iter().find(|file| file.number == number);
    let file = file.ok_or_else(|| BackupError::refused(format!("the backup lacks checkpoint file {number}")))?;
    Ok(&file.object)
}

impl MergedCheckpoint {
    /// Writes a list. Returns the number of its file.
    fn add_list(&mut self, bytes: &[u8], target: Target<'_>) -> Result<u32, BackupError> {
        let number = self.next_file;
        self.next_file += 1;
        target.write_file(&checkpoint_path(number), bytes)?;
        let length = bytes.len() as u64;
        let checksum = Some(append_file_checksum(0, bytes));
        self.files.push(CheckpointFile { number, bytes: length, live_bytes: length, checksum });
        Ok(number)
    }
}

/// The files of one part in the new directory, by their numbers in the part.
#[derive(Default)]
struct MovedFiles(BTreeMap<u32, (u32, File)>);

impl MovedFiles {
    async fn copy(
        &mut self,
        store: &BackupStore,
        name: &str,
        (object, before, number): (&Object, u32, u32),
        target: Target<'_>,
    ) -> Result<(), BackupError> {
        reach(target.crashes, BACKUP_RESTORE.before())?;
        let path = target.folder.join(&*checkpoint_path(number));
        read_object(store, name, object, NewFile::create(&path)?).await?;
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(BackupError::of_file(&path))?;
        self.0.insert(before, (number, file));
        reach(target.crashes, BACKUP_RESTORE.after())
    }

    fn read(&self, location: &FrameLocation) -> Result<(u32, &File, Vec<u8>), BackupError> {
        let (number, file) = self.0.get(&location.file).ok_or_else(|| damaged(location, "the file is missing"))?;
        let mut bytes = vec![0; location.length as usize];
        file.read_exact_at(&mut bytes, location.offset).map_err(|error| damaged(location, &error))?;
        Ok((*number, file, bytes))
    }

    /// Writes the page table of a partition and its frames again.
    fn move_table(&self, partition: PartitionId, table: &PageTableLocation) -> Result<PageTableLocation, BackupError> {
        let place = &table.location;
        let (number, file, bytes) = self.read(place)?;
        let (header, mut pages) = decode_page_table(&bytes).map_err(|error| damaged(place, error))?;
        if bytes.get(4..8) != Some(&table.checksum.to_le_bytes()) || header.partition != partition {
            return Err(damaged(place, "it is another page table"));
        }
        for page in &mut pages {
            self.move_frames(page)?;
        }
        let (moved, checksum) = page_table_bytes(&header, pages);
        if moved.len() != bytes.len() {
            return Err(damaged(place, "a page has no frames"));
        }
        file.write_all_at(&moved, place.offset).map_err(|error| damaged(place, &error))?;
        Ok(PageTableLocation { location: FrameLocation { file: number, ..*place }, checksum })
    }

    fn move_frames(&self, page: &mut PageEntries) -> Result<(), BackupError> {
        for frame in &mut page.frames {
            let place = frame.location;
            let (number, file, mut bytes) = self.read(&place)?;
            let found = decode_frame(&bytes).map_err(|error| damaged(&place, error))?;
            if found.checksum != frame.checksum || found.location != place {
                return Err(damaged(&place, "it is another frame"));
            }
            frame.checksum = move_frame(&mut bytes, number);
            frame.location.file = number;
            file.write_all_at(&bytes, place.offset).map_err(|error| damaged(&place, &error))?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), BackupError> {
        for (number, file) in self.0.values() {
            let path = checkpoint_path(*number);
            file.sync_all().map_err(|error| BackupError::refused(format!("cannot sync {path}: {error}")))?;
        }
        Ok(())
    }
}

fn damaged(location: &FrameLocation, why: impl std::fmt::Display) -> BackupError {
    BackupError::refused(format!("{location}: {why}"))
}
