//! Checkpoint rounds: writing, loading, and recovery with replay.

use super::*;
use crate::checkpoint::{CheckpointError, FRAME_BYTES_MAX, FrameBuilder, FrameLocation, decode_frame};
use crate::partition_store::{CheckpointCursor, CheckpointStep, IndexRebuild};

pub(super) const PARTITION: PartitionId = PartitionId { table: junctor_model::id::TableId(1), index: 3 };

/// The checkpoint files of one partition.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    pub(super) files: BTreeMap<u32, Vec<u8>>,
}

impl Files {
    pub(super) fn place(&mut self, cursor: &mut CheckpointCursor, frame: &mut FrameBuilder, file: u32) {
        let bytes = self.files.entry(file).or_default();
        let offset = bytes.len() as u64;
        let placed = cursor.place_frame(frame, file, offset);
        assert!(placed.len() <= FRAME_BYTES_MAX && decode_frame(placed).is_ok());
        bytes.extend_from_slice(placed);
    }

    pub(super) fn read(&self, location: FrameLocation) -> &[u8] {
        let start = location.offset as usize;
        &self.files[&location.file][start..start + location.length as usize]
    }
}

/// Runs a round from begin to its page table. Returns the cursor and the table.
fn write(store: &mut PartitionStore, files: &mut Files, file: u32, stable: u64) -> (CheckpointCursor, Vec<u8>) {
    let mut cursor = store.begin_checkpoint(PARTITION, CommitNumber(stable));
    let mut frame = FrameBuilder::new();
    loop {
        match store.checkpoint_step(&mut cursor, CommitNumber(stable), &mut frame) {
            CheckpointStep::MoreRows => {}
            CheckpointStep::FrameFull => files.place(&mut cursor, &mut frame, file),
            CheckpointStep::Done => break,
        }
    }
    assert_eq!(cursor.cells_left(), 0);
    let mut table = Vec::new();
    store.encode_page_table(&cursor, &mut table);
    (cursor, table)
}

pub(super) fn load(files: &Files, table: &[u8]) -> Result<PartitionStore, CheckpointError> {
    let mut store = PartitionStore::new(layout(), pool(8192));
    for location in store.load_page_table(PARTITION, table)? {
        store.load_frame(location, files.read(location))?;
    }
    Ok(store)
}

pub(super) fn build(store: &mut PartitionStore) {
    let mut rebuild = IndexRebuild::new();
    while !store.build_indexes_step(&mut rebuild, 1_000).expect("memory") {}
    store.check().unwrap();
}

#[test]
fn a_loaded_checkpoint_has_the_rows_of_its_round() {
    let mut store = store();
    let layout = store.layout().clone();
    let mut files = Files::default();
    for id in 0..10_000 {
        let row = insert(&mut store, id, id % 77, FIRST).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
    }
    let (cursor, table) = write(&mut store, &mut files, 1, 1);
    store.end_checkpoint(cursor, true);
    let mut loaded = load(&files, &table).unwrap();
    build(&mut loaded);
    assert_eq!(loaded.digest(CommitNumber(1)), store.digest(CommitNumber(1)));
    // A delta has the changed rows only.
    for id in [5, 64, 9_999] {
        let (key, hash) = integer_key(id);
        let row = store.find_primary(&key, hash).unwrap();
        match id {
            64 => store.delete(row, writer(FIRST, ONE)).unwrap(),
            _ => store.update(row, &row_image(&layout, id, &values(-id)), writer(FIRST, ONE)).unwrap(),
        }
        store.commit(row, FIRST, CommitNumber(2));
    }
    let (cursor, table) = write(&mut store, &mut files, 2, 2);
    let mut live = BTreeMap::new();
    store.live_bytes(&cursor, |file, bytes| *live.entry(file).or_insert(0) += bytes);
    assert_eq!(live[&1], files.files[&1].len() as u64);
    assert!(live[&2] == files.files[&2].len() as u64 && live[&2] < 1_000, "{live:?}");
    store.end_checkpoint(cursor, true);
    let mut loaded = load(&files, &table).unwrap();
    build(&mut loaded);
    assert_eq!(loaded.digest(CommitNumber(2)), store.digest(CommitNumber(2)));
    assert_ne!(loaded.digest(CommitNumber(2)), store.digest(CommitNumber(1)));
    // Pages that are written again free the file.
    store.mark_pages_of_file(1);
    let (cursor, table) = write(&mut store, &mut files, 3, 2);
    live.clear();
    store.live_bytes(&cursor, |file, bytes| *live.entry(file).or_insert(0) += bytes);
    assert_eq!(live, BTreeMap::from([(3, files.files[&3].len() as u64)]));
    store.end_checkpoint(cursor, true);
    let mut loaded = load(&files, &table).unwrap();
    build(&mut loaded);
    assert_eq!(loaded.digest(CommitNumber(2)), store.digest(CommitNumber(2)));
}
