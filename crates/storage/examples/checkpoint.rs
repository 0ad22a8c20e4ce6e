//! Measures a checkpoint of one partition on one core: frames of sysbench rows are formed in memory, and
//! loaded into another partition. Prints nanoseconds of processor time a row. Disks are not involved.
//!
//! `cargo run --release -p junctor-storage --example checkpoint -- [rows]`, 2,000,000 rows by default.

#[allow(dead_code, reason = "this example uses only the layout and the images")]
mod table;

use std::sync::Arc;

use junctor_model::id::{CommitNumber, PartitionId, RowId};
use junctor_storage::checkpoint::{FrameBuilder, FrameLocation, PageTableLocation};
use junctor_storage::page::PagePool;
use junctor_storage::partition_store::{CheckpointStep, IndexRebuild, PartitionStore};

fn main() {
    let rows: u32 = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(2_000_000);
    let layout = table::layout();
    let partition = PartitionId { table: layout.definition.id, index: 0 };
    let pool = PagePool::new(rows as usize * 1024 + (64 << 20)).expect("address space");
    let mut store = PartitionStore::new(Arc::clone(&layout), Arc::clone(&pool));
    let mut image = table::image(&layout, 1, 2, b'c');
    for row in 0..rows {
        image[1..5].copy_from_slice(&row.to_le_bytes());
        store.replay_put(RowId(row), &image, CommitNumber(1)).expect("memory");
    }
    build_indexes(&mut store);
    let print = |phase: &str, start: u64, bytes: usize| {
        let per_row = (processor_ns() - start) as f64 / f64::from(rows);
        let (million, bytes) = (1e3 / per_row, bytes / rows as usize);
        println!("{phase}: {per_row:.0} ns a row, {million:.2} million rows a second and core, {bytes} bytes a row");
    };
    let start = processor_ns();
    let begin = CommitNumber(1);
    let mut cursor = store.begin_checkpoint(partition, begin, &[]).expect("the partition has rows");
    let mut frame = FrameBuilder::new();
    let mut file = Vec::with_capacity(rows as usize * 256);
    loop {
        match store.checkpoint_step(&mut cursor, begin, &mut frame) {
            CheckpointStep::MoreRows => {}
            CheckpointStep::FrameFull => {
                let offset = file.len() as u64;
                file.extend_from_slice(cursor.place_frame(&mut frame, 1, offset));
            }
            CheckpointStep::Done => break,
        }
    }
    let mut page_table = Vec::new();
    let checksum = store.encode_page_table(&cursor, &mut page_table);
    let location = FrameLocation { file: 1, offset: file.len() as u64, length: page_table.len() as u32 };
    let location = PageTableLocation { location, checksum };
    store.place_page_table(&mut cursor, location);
    store.end_checkpoint(cursor, true);
    print("write", start, file.len());
    println!("page table: {} bytes", page_table.len());
    for round in ["load", "load again"] {
        let mut loaded = PartitionStore::new(Arc::clone(&layout), Arc::clone(&pool));
        let start = processor_ns();
        for location in loaded.load_page_table(partition, location, &page_table).expect("a page table") {
            let frame = &file[location.offset as usize..][..location.length as usize];
            loaded.load_frame(location, frame).expect("a frame");
        }
        print(round, start, file.len());
        build_indexes(&mut loaded);
        assert_eq!(loaded.digest(begin), store.digest(begin), "the loaded rows are those that were written");
    }
}

fn build_indexes(store: &mut PartitionStore) {
    let mut rebuild = IndexRebuild::new();
    while !store.build_indexes_step(&mut rebuild, 8192).expect("memory") {}
}

/// Nanoseconds that the processor has worked for this thread. Other processes of the machine do not change
/// it.
fn processor_ns() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux kernel with schedstat");
    statistics.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}
