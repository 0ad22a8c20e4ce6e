//! Measures how much faster point reads become if they run in phases, whose cache misses overlap, than in a
//! plain loop.
//!
//! ```text
//! cargo run --release -p junctor-storage --example group_prefetch 10000 1000000 8000000
//! ```
//!
//! For each number of rows, a round reads the same keys in the plain loop and in groups of each size, in
//! changing order. The program prints the median time per key. It also prints the median ratio to the plain
//! loop of the same round, with its 95 per cent confidence interval (order statistics).

mod table;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use junctor_model::id::CommitNumber;
use junctor_storage::page::PagePool;
use junctor_storage::partition_store::{Batch, PartitionStore};
use table::{Run, key};

const ROUNDS: usize = 31;
/// Ranks among 31 sorted values that bound the median with 95 per cent confidence.
const INTERVAL: [usize; 2] = [9, 21];
const KEYS_PER_ROUND: u32 = 64 * 1_500;
/// Group sizes; 1 is the plain loop.
const GROUPS: [usize; 6] = [1, 4, 8, 16, 32, 64];

fn main() {
    println!("{:>10} {:>6} {:>8} {:>6}  95%", "rows", "group", "ns/key", "ratio");
    for rows in std::env::args().skip(1).filter_map(|argument| argument.parse::<u32>().ok()) {
        measure(rows.max(1));
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement is no block code")]
fn measure(rows: u32) {
    let mut run = Run::new(rows, KEYS_PER_ROUND);
    let pool = PagePool::new(16 << 30).expect("address space");
    let mut store = PartitionStore::new(Arc::clone(&run.layout), pool);
    (0..rows).for_each(|id| run.insert(&mut store, id));
    let snapshot = CommitNumber(run.last_commit);
    let mut times = vec![Vec::new(); GROUPS.len()];
    for round in 0..ROUNDS {
        let keys: Vec<_> = (0..run.operations).map(|_| key(run.any_id())).collect();
        let mut sums = Vec::new();
        for turn in 0..GROUPS.len() {
            let at = (turn + round) % GROUPS.len();
            let start = Instant::now();
            sums.push(match GROUPS[at] {
                1 => read_plainly(&store, &keys, snapshot),
                group => read_in_groups(&store, &keys, group, snapshot),
            });
            times[at].push(start.elapsed().as_nanos() as f64 / f64::from(KEYS_PER_ROUND));
        }
        assert!(sums.iter().all(|sum| *sum == sums[0]), "they read different rows: {sums:?}");
    }
    for (times_of_group, group) in times.iter().zip(GROUPS) {
        let ratios = sorted(times_of_group.iter().zip(&times[0]).map(|(time, plain)| time / plain));
        let time = sorted(times_of_group.iter().copied())[ROUNDS / 2];
        let [low, high] = INTERVAL.map(|rank| ratios[rank]);
        println!("{rows:>10} {group:>6} {time:>8.0} {:>6.2}  {low:.2} to {high:.2}", ratios[ROUNDS / 2]);
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Loads one byte at each end of a row, which is what copying the row would bring into the cache.
fn touch(row: &[u8]) -> u64 {
    u64::from(*row.first().expect("the row")) + u64::from(*row.last().expect("the row")) + row.len() as u64
}

#[inline(never)]
fn read_plainly(store: &PartitionStore, keys: &[([u8; 4], u64)], snapshot: CommitNumber) -> u64 {
    let mut sum = 0;
    for (key, hash) in keys {
        let found = store.read_primary(key, *hash, snapshot, None);
        sum += touch(found.expect("the row").1.stored());
    }
    black_box(sum)
}

#[inline(never)]
fn read_in_groups(store: &PartitionStore, keys: &[([u8; 4], u64)], group: usize, snapshot: CommitNumber) -> u64 {
    let mut sum = 0;
    for keys in keys.chunks(group) {
        let mut images = Batch::new();
        store.read_batch(keys.iter().map(|(key, hash)| (&key[..], *hash)), snapshot, None, &mut images);
        sum += images.iter().map(|row| touch(row)).sum::<u64>();
    }
    black_box(sum)
}
