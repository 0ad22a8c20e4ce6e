//! Measures recovery of one partition on one core: replay of sysbench rows by row id, and the build of the
//! hash index and both ordered indexes. Prints nanoseconds of processor time a row. The first replay includes
//! the kernel's work to provide memory that was never touched.
//!
//! `cargo run --release -p junctor-storage --example replay -- [rows]`, 2,000,000 rows by default.

#[allow(dead_code, reason = "this example uses only the layout and the images")]
mod table;

use std::sync::Arc;

use junctor_model::id::{CommitNumber, RowId};
use junctor_storage::page::PagePool;
use junctor_storage::partition_store::{IndexRebuild, PartitionStore};

fn main() {
    let rows: u32 = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(2_000_000);
    let layout = table::layout();
    let pool = PagePool::new(rows as usize * 512 + (64 << 20)).expect("address space");
    let mut store = PartitionStore::new(Arc::clone(&layout), pool);
    // One image, of which each row changes the two numbers, so that encoding is not measured.
    let mut image = table::image(&layout, 1, 2, b'c');
    let mut random = 1u64;
    let mut put = |store: &mut PartitionStore, row: u32, number: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        image[1..5].copy_from_slice(&row.to_le_bytes());
        image[5..9].copy_from_slice(&((random >> 33) as u32).to_le_bytes());
        store.replay_put(RowId(row), &image, CommitNumber(number)).expect("memory");
    };
    let per_row = |start: u64| (processor_ns() - start) as f64 / f64::from(rows);
    for round in ["first replay", "second replay"] {
        let start = processor_ns();
        for row in 0..rows {
            put(&mut store, row, u64::from(row) + 1);
        }
        let replayed = per_row(start);
        let start = processor_ns();
        let (mut rebuild, mut slowest) = (IndexRebuild::new(), 0);
        loop {
            let step = processor_ns();
            let is_done = store.build_indexes_step(&mut rebuild, 8192).expect("memory");
            slowest = slowest.max((processor_ns() - step) / 1_000_000);
            if is_done {
                break;
            }
        }
        let built = per_row(start);
        let million = 1e3 / (replayed + built);
        println!("{round}: {replayed:.0} ns, indexes {built:.0} ns, {million:.2} million rows a second");
        println!("slowest step of the build: {slowest} ms");
    }
}

/// Nanoseconds that the processor has worked for this thread. Other processes of the machine do not change
/// it.
fn processor_ns() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux kernel with schedstat");
    statistics.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}
