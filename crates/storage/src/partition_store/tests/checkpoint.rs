//! Checkpoint rounds: writing, loading, and recovery with replay.

use super::*;
use crate::checkpoint::{
    CheckpointError, FRAME_BYTES_MAX, FrameBuilder, FrameLocation, PageTableLocation, decode_frame, page_table_checksum,
};
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
    write_again(store, files, (file, stable), &[]).expect("the partition has changed")
}

/// The same with files that are to become free. `None` if nothing has to be written.
fn write_again(
    store: &mut PartitionStore,
    files: &mut Files,
    (file, stable): (u32, u64),
    rewritten_files: &[u32],
) -> Option<(CheckpointCursor, Vec<u8>)> {
    let mut cursor = store.begin_checkpoint(PARTITION, CommitNumber(stable), rewritten_files)?;
    run(store, &mut cursor, files, file, stable);
    assert_eq!(cursor.cells_left(), 0);
    let table = place_table(store, &mut cursor, file);
    Some((cursor, table))
}

/// The page table of a finished round, which has its place at the end of an imaginary file.
pub(super) fn place_table(store: &PartitionStore, cursor: &mut CheckpointCursor, file: u32) -> Vec<u8> {
    let mut table = Vec::new();
    store.encode_page_table(cursor, &mut table);
    store.place_page_table(cursor, location_of(&table, file));
    table
}

fn location_of(table: &[u8], file: u32) -> PageTableLocation {
    let location = FrameLocation { file, offset: 1 << 40, length: table.len() as u32 };
    PageTableLocation { location, checksum: page_table_checksum(table).expect("a page table") }
}

/// The bytes of each file that the round's frames need.
fn live_bytes(cursor: &CheckpointCursor, table: &[u8]) -> BTreeMap<u32, u64> {
    let mut live = BTreeMap::new();
    let location = cursor.table(|file, bytes| *live.entry(file).or_insert(0) += bytes);
    let file = location.location.file;
    *live.entry(file).or_default() -= table.len() as u64;
    live.retain(|_, bytes| *bytes > 0);
    live
}

fn run(store: &PartitionStore, cursor: &mut CheckpointCursor, files: &mut Files, file: u32, stable: u64) {
    let mut frame = FrameBuilder::new();
    loop {
        match store.checkpoint_step(cursor, CommitNumber(stable), &mut frame) {
            CheckpointStep::MoreRows => {}
            CheckpointStep::FrameFull => files.place(cursor, &mut frame, file),
            CheckpointStep::Done => break,
        }
    }
}

pub(super) fn load(files: &Files, table: &[u8]) -> Result<PartitionStore, CheckpointError> {
    let mut store = PartitionStore::new(layout(), pool(8192));
    for location in store.load_page_table(PARTITION, location_of(table, 0), table)? {
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
    let live = live_bytes(&cursor, &table);
    assert_eq!(live[&1], files.files[&1].len() as u64);
    assert!(live[&2] == files.files[&2].len() as u64 && live[&2] < 1_000, "{live:?}");
    store.end_checkpoint(cursor, true);
    let mut loaded = load(&files, &table).unwrap();
    build(&mut loaded);
    assert_eq!(loaded.digest(CommitNumber(2)), store.digest(CommitNumber(2)));
    assert_ne!(loaded.digest(CommitNumber(2)), store.digest(CommitNumber(1)));
    // Pages that are written again free the file. Each round writes about half of the bytes.
    let (cursor, _) = write_again(&mut store, &mut files, (3, 2), &[1]).expect("pages to write");
    store.end_checkpoint(cursor, true);
    let written = files.files[&3].len() as u64;
    assert!((live[&1] / 2..live[&1]).contains(&written), "{written} of {live:?}");
    let (cursor, table) = write_again(&mut store, &mut files, (4, 2), &[1]).expect("pages to write");
    let live = live_bytes(&cursor, &table);
    assert!(!live.contains_key(&1) && live.values().sum::<u64>() >= written, "{live:?}");
    store.end_checkpoint(cursor, true);
    let mut loaded = load(&files, &table).unwrap();
    build(&mut loaded);
    assert_eq!(loaded.digest(CommitNumber(2)), store.digest(CommitNumber(2)));
}

#[test]
fn rows_longer_than_a_frame_and_cells_of_long_rows_take_several_frames() {
    let mut store = store();
    let layout = store.layout().clone();
    let mut files = Files::default();
    for id in 0..200 {
        let (key, hash) = integer_key(id);
        let body_bytes = if id % 90 == 5 { 700_000 } else { 7_000 };
        let image = row_image(&layout, id, &Values { body_bytes, ..values(id) });
        let row = store.insert(HashedKey { hash, key: &key }, &image, writer(FIRST, ONE)).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
    }
    let (cursor, table) = write(&mut store, &mut files, 1, 1);
    store.end_checkpoint(cursor, true);
    let bytes = files.files[&1].len();
    assert!((3_480_000..3_520_000).contains(&bytes), "{bytes} bytes");
    let mut loaded = load(&files, &table).unwrap();
    build(&mut loaded);
    assert_eq!(loaded.digest(CommitNumber(1)), store.digest(CommitNumber(1)));
}

#[test]
fn an_emptied_table_needs_no_frames() {
    let mut store = store();
    let mut files = Files::default();
    let rows: Vec<RowId> = (0..5_000).map(|id| insert(&mut store, id, id, FIRST).unwrap()).collect();
    rows.iter().for_each(|row| store.commit(*row, FIRST, CommitNumber(1)));
    let (cursor, _) = write(&mut store, &mut files, 1, 1);
    store.end_checkpoint(cursor, true);
    rows.iter().for_each(|row| store.delete(*row, writer(SECOND, ONE)).unwrap());
    rows.iter().for_each(|row| store.commit(*row, SECOND, CommitNumber(2)));
    store.purge_step(CommitNumber(2), usize::MAX);
    assert_eq!(store.statistics().total_bytes(), 0);
    let (cursor, table) = write(&mut store, &mut files, 2, 2);
    assert_eq!(live_bytes(&cursor, &table), BTreeMap::new());
    store.end_checkpoint(cursor, true);
    assert!(!files.files.contains_key(&2));
    let mut loaded = load(&files, &table).unwrap();
    build(&mut loaded);
    assert_eq!(loaded.statistics(), Default::default());
}

#[test]
fn an_unchanged_partition_keeps_its_page_table() {
    let mut store = store();
    let mut files = Files::default();
    assert!(write_again(&mut store, &mut files, (1, 1), &[]).is_none(), "an empty partition has no page table");
    assert_eq!(store.checkpointed_table(|file, _| panic!("file {file}")), None);
    let row = insert(&mut store, 1, 1, FIRST).unwrap();
    store.commit(row, FIRST, CommitNumber(1));
    let (cursor, table) = write(&mut store, &mut files, 1, 1);
    store.end_checkpoint(cursor, true);
    let location = location_of(&table, 1);
    let frame_bytes = files.files[&1].len() as u64;
    let check = |store: &PartitionStore| {
        let mut live = Vec::new();
        assert_eq!(store.checkpointed_table(|file, bytes| live.push((file, bytes))), Some(location));
        assert_eq!(live, [(1, frame_bytes + table.len() as u64)]);
    };
    check(&store);
    assert!(write_again(&mut store, &mut files, (2, 2), &[]).is_none());
    check(&store);
    let mut loaded = PartitionStore::new(layout(), pool(8192));
    for frame in loaded.load_page_table(PARTITION, location, &table).unwrap() {
        loaded.load_frame(frame, files.read(frame)).unwrap();
    }
    build(&mut loaded);
    check(&loaded);
    assert!(write_again(&mut loaded, &mut files, (2, 2), &[5]).is_none());
    // A change that is undone again touches its cell.
    for mut store in [store, loaded] {
        let second = insert(&mut store, 2, 2, SECOND).unwrap();
        store.undo(second, SECOND, StatementNumber(0));
        let (cursor, _) = write(&mut store, &mut files, 3, 2);
        // An abandoned round leaves the page table, and the next one visits the cell again.
        store.end_checkpoint(cursor, false);
        check(&store);
        let (cursor, table) = write(&mut store, &mut files, 4, 2);
        store.end_checkpoint(cursor, true);
        assert_eq!(store.checkpointed_table(|_, _| {}), Some(location_of(&table, 4)));
        assert!(write_again(&mut store, &mut files, (5, 2), &[]).is_none());
        // The file of the page table is to become free.
        assert!(write_again(&mut store, &mut files, (5, 2), &[4]).is_some());
    }
}

#[test]
fn the_next_round_writes_a_version_that_was_open_in_this_one() {
    let mut store = store();
    let mut files = Files::default();
    let row = insert(&mut store, 1, 1, FIRST).unwrap();
    store.commit(row, FIRST, CommitNumber(1));
    store.update(row, &row_image(&store.layout().clone(), 1, &values(2)), writer(SECOND, ONE)).unwrap();
    let (cursor, _) = write(&mut store, &mut files, 1, 1);
    store.end_checkpoint(cursor, true);
    store.commit(row, SECOND, CommitNumber(2));
    let (cursor, table) = write(&mut store, &mut files, 2, 2);
    store.end_checkpoint(cursor, true);
    let mut loaded = load(&files, &table).unwrap();
    build(&mut loaded);
    assert_eq!(loaded.digest(CommitNumber(2)), store.digest(CommitNumber(2)));
}

#[test]
fn the_next_round_writes_rows_that_were_copied_after_this_one() {
    let copied = CommitNumber(10);
    let mut store = store();
    let layout = store.layout().clone();
    store.begin_copy(copied);
    let put = |store: &mut PartitionStore, id: i32| {
        let (key, hash) = integer_key(id);
        let image = row_image(&layout, id, &values(id));
        store.put_copy(RowId(id as u32), HashedKey { hash, key: &key }, &image, copied).unwrap();
    };
    (0..20).for_each(|id| put(&mut store, id));
    let mut files = Files::default();
    let (cursor, _) = write(&mut store, &mut files, 1, 12);
    // This one comes during the round.
    put(&mut store, 20);
    store.end_checkpoint(cursor, true);
    (21..40).for_each(|id| put(&mut store, id));
    store.end_copy(copied);
    let (cursor, table) = write(&mut store, &mut files, 2, 13);
    store.end_checkpoint(cursor, true);
    let mut loaded = load(&files, &table).unwrap();
    build(&mut loaded);
    assert_eq!(loaded.digest(CommitNumber(13)), store.digest(CommitNumber(13)));
}

#[test]
fn deltas_of_a_page_do_not_pile_up() {
    let mut store = store();
    let layout = store.layout().clone();
    let mut files = Files::default();
    for id in 0..4_000 {
        let row = insert(&mut store, id, id, FIRST).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
    }
    let mut whole_rounds = Vec::new();
    for round in 1..30 {
        let id = round as i32 * 100;
        let (key, hash) = integer_key(id);
        let row = store.find_primary(&key, hash).unwrap();
        store.update(row, &row_image(&layout, id, &values(-1)), writer(FIRST, ONE)).unwrap();
        store.commit(row, FIRST, CommitNumber(round + 1));
        let (cursor, table) = write(&mut store, &mut files, round as u32, round + 1);
        store.end_checkpoint(cursor, true);
        if files.files[&(round as u32)].len() > 100_000 {
            whole_rounds.push(round);
        }
        let mut loaded = load(&files, &table).unwrap();
        build(&mut loaded);
        assert_eq!(loaded.digest(CommitNumber(round + 1)), store.digest(CommitNumber(round + 1)));
    }
    assert_eq!(whole_rounds, [1, 9, 17, 25]);
}

#[test]
fn a_round_in_a_backup_ends_after_every_commit_that_its_purge_has_used() {
    let everything = CommitNumber(u64::MAX);
    for is_deleted in [false, true] {
        let mut store = store();
        let layout = store.layout().clone();
        let rows: Vec<RowId> = (0..2).map(|id| insert(&mut store, id, id, FIRST).unwrap()).collect();
        rows.iter().for_each(|row| store.commit(*row, FIRST, CommitNumber(1)));
        let mut cursor = store.begin_checkpoint(PARTITION, CommitNumber(1), &[]).expect("it has rows");
        match is_deleted {
            true => store.delete(rows[0], writer(SECOND, ONE)).unwrap(),
            false => store.update(rows[0], &row_image(&layout, 0, &values(9)), writer(SECOND, ONE)).unwrap(),
        }
        store.commit(rows[0], SECOND, CommitNumber(2));
        store.purge_step(everything, 100);
        let mut files = Files::default();
        // Commit 2 is not stable yet, but its row has no other version.
        run(&store, &mut cursor, &mut files, 1, 1);
        assert_eq!(cursor.newest(), CommitNumber(2));
    }
}

#[test]
fn frames_of_another_place_order_or_round_are_refused() {
    let mut store = store();
    let mut files = Files::default();
    for id in 0..5_000 {
        let row = insert(&mut store, id, id, FIRST).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
    }
    let long = row_image(&layout(), 9_999, &Values { body_bytes: 700_000, ..values(1) });
    let (key, hash) = integer_key(9_999);
    let row = store.insert(HashedKey { hash, key: &key }, &long, writer(FIRST, ONE)).unwrap();
    store.commit(row, FIRST, CommitNumber(1));
    let (cursor, table) = write(&mut store, &mut files, 1, 1);
    store.end_checkpoint(cursor, false);
    let other = PartitionId { index: 4, ..PARTITION };
    let empty = || PartitionStore::new(layout(), pool(8192));
    let location = location_of(&table, 1);
    assert_eq!(empty().load_page_table(other, location, &table).err(), Some(CheckpointError::Misplaced));
    let earlier = PageTableLocation { checksum: location.checksum ^ 1, ..location };
    assert_eq!(empty().load_page_table(PARTITION, earlier, &table).err(), Some(CheckpointError::Misplaced));
    let mut loaded = empty();
    let locations = loaded.load_page_table(PARTITION, location, &table).unwrap();
    // The frame before it begins the long row.
    let third = loaded.load_frame(locations[2], files.read(locations[2]));
    assert_eq!(third, Err(CheckpointError::OutOfOrder));
    let swapped = load_first(&table, locations[0], files.read(locations[1]));
    assert_eq!(swapped, Err(CheckpointError::Misplaced));
    let cut = load_first(&table, locations[0], &files.read(locations[0])[..100]);
    assert_eq!(cut, Err(CheckpointError::Damaged));
    // The abandoned round wrote a frame of the same length at the same place.
    let row = store.find_primary(&integer_key(7).0, integer_key(7).1).unwrap();
    let image = row_image(&layout(), 7, &values(8));
    store.update(row, &image, writer(SECOND, ONE)).unwrap();
    store.commit(row, SECOND, CommitNumber(2));
    let mut again = Files::default();
    let (cursor, _) = write(&mut store, &mut again, 1, 2);
    store.end_checkpoint(cursor, true);
    let stale = load_first(&table, locations[0], again.read(locations[0]));
    assert_eq!(stale, Err(CheckpointError::Misplaced));
    assert!(load_first(&table, locations[0], files.read(locations[0])).is_ok());
}

/// Loads the first frame of a page table from these bytes.
fn load_first(table: &[u8], location: FrameLocation, bytes: &[u8]) -> Result<u64, CheckpointError> {
    let mut store = PartitionStore::new(layout(), pool(8192));
    store.load_page_table(PARTITION, location_of(table, 1), table)?;
    store.load_frame(location, bytes)
}
