use std::collections::BTreeMap;
use std::ops::Bound;

use junctor_model::id::{IndexId, PartitionId, RowId, TableId, TransactionId};
use proptest::prelude::*;

use crate::index::RangeBounds;
use crate::lock::LockMode::{Exclusive, Shared};
use crate::lock::{
    IndexPartition, LockKey, LockReply, LockTable, LockTableFull, WIDE_RANGES_MAX, WaiterId, WaiterToken,
};

const PARTITION: PartitionId = PartitionId { table: TableId(1), index: 0 };
const PLACE: IndexPartition = IndexPartition { partition: PARTITION, index: IndexId(2) };

fn table() -> LockTable {
    LockTable::new(7, 1000)
}

fn between<'a>(lower: &'a [u8], upper: &'a [u8]) -> RangeBounds<'a> {
    RangeBounds { lower: Bound::Included(lower), upper: Bound::Excluded(upper) }
}

fn lock(table: &mut LockTable, bounds: RangeBounds<'_>, transaction: u64) {
    table.lock_range(PLACE, bounds, TransactionId(transaction), Shared).unwrap();
}

fn is_blocked(table: &LockTable, key: &[u8], transaction: u64) -> bool {
    table.is_range_locked_by_other(PLACE, key, TransactionId(transaction))
}

fn wait(table: &mut LockTable, key: &[u8], transaction: u64) -> WaiterId {
    assert!(is_blocked(table, key, transaction));
    let keys = vec![(IndexId(9), b"elsewhere"[..].into()), (PLACE.index, key.into())];
    table.wait_for_ranges(PARTITION, keys, TransactionId(transaction), WaiterToken(transaction))
}

fn release(table: &mut LockTable, transaction: u64) -> Vec<u64> {
    let mut granted = Vec::new();
    table.release_all(TransactionId(transaction), &mut granted);
    granted.into_iter().map(|token| token.0).collect()
}

#[test]
fn a_range_keeps_keys_of_others_out_and_lets_readers_in() {
    let mut table = table();
    assert!(!table.has_ranges(PARTITION));
    lock(&mut table, between(b"b", b"d"), 1);
    lock(&mut table, between(b"c", b"e"), 2);
    assert!(table.has_ranges(PARTITION));
    assert!(!table.has_ranges(PartitionId { index: 1, ..PARTITION }));
    let blocked: Vec<bool> =
        [&b"a"[..], b"b", b"cz", b"d", b"e"].iter().map(|key| is_blocked(&table, key, 3)).collect();
    assert_eq!(blocked, [false, true, true, true, false]);
    assert!(!is_blocked(&table, b"b", 1), "the own range");
    assert!(is_blocked(&table, b"cc", 1), "the range of the other reader");
    assert!(!table.is_range_locked_by_other(IndexPartition { index: IndexId(1), ..PLACE }, b"cc", TransactionId(3)));
    assert_eq!((release(&mut table, 1), release(&mut table, 2)), (vec![], vec![]));
    assert_eq!(table.request_count(), 0);
}

#[test]
fn a_key_waits_for_all_ranges_that_contain_it_in_order_of_arrival() {
    let mut table = table();
    lock(&mut table, RangeBounds::prefix(b"k"), 1);
    let first = wait(&mut table, b"k1", 3);
    let second = wait(&mut table, b"k2", 4);
    lock(&mut table, RangeBounds::ALL, 2);
    assert_eq!(table.take_newly_blocked(), [WaiterToken(3), WaiterToken(4)]);
    let whom =
        |table: &LockTable, waiter| table.blockers_of(waiter).iter().map(|blocker| blocker.0.0).collect::<Vec<u64>>();
    assert_eq!((whom(&table, first), whom(&table, second)), (vec![1, 2], vec![1, 2]));
    assert_eq!(release(&mut table, 1), [0; 0]);
    assert_eq!(whom(&table, first), [2]);
    assert_eq!(release(&mut table, 2), [3, 4]);
    assert!(!table.is_waiting(first));
    assert_eq!(table.request_count(), 0);
}

#[test]
fn many_ranges_are_released_in_bounded_steps() {
    let mut table = table();
    for key in 0..1000u32 {
        lock(&mut table, RangeBounds::prefix(&key.to_be_bytes()), 1);
    }
    let waiter = wait(&mut table, &3u32.to_be_bytes(), 2);
    let (mut steps, mut granted) = (1, Vec::new());
    let mut held = table.request_count();
    while table.release_some(TransactionId(1), 256, &mut granted) {
        assert!(held - table.request_count() <= 256, "{held} to {}", table.request_count());
        held = table.request_count();
        steps += 1;
    }
    assert_eq!((steps, granted.as_slice()), (4, &[WaiterToken(2)][..]), "the waiter is let go once");
    assert!(!table.is_waiting(waiter));
    assert_eq!((table.request_count(), release(&mut table, 1)), (0, vec![]));
}

#[test]
fn a_transaction_that_ends_while_it_waits_is_granted_nothing() {
    let mut table = table();
    lock(&mut table, RangeBounds::ALL, 1);
    let waiter = wait(&mut table, b"k", 2);
    let other = wait(&mut table, b"k", 3);
    assert!(table.cancel(waiter, &mut Vec::new()));
    assert!(!table.cancel(waiter, &mut Vec::new()));
    assert_eq!(release(&mut table, 3), [0; 0]);
    assert!(!table.is_waiting(other));
    assert_eq!((release(&mut table, 1), table.request_count()), (vec![], 0));
}

#[test]
fn a_range_requested_again_uses_no_memory_and_gets_the_stronger_mode() {
    let mut table = table();
    for bounds in [RangeBounds::prefix(b"k"), between(b"a", b"z"), RangeBounds::ALL, between(b"b", b"c")] {
        lock(&mut table, bounds, 1);
        table.lock_range(PLACE, bounds, TransactionId(1), Exclusive).unwrap();
    }
    let held: Vec<bool> = table.ranges().map(|range| range.mode == Exclusive).collect();
    assert_eq!(held, [true, true, true], "one key, one range, all; what lies in all is held already");
    release(&mut table, 1);
    assert_eq!(table.request_count(), 0);
}

#[test]
fn a_waiter_for_a_row_that_holds_a_range_may_block_others() {
    let mut table = table();
    let row = LockKey { partition: PARTITION, row: RowId(1) };
    assert_eq!(table.request(row, TransactionId(1), Exclusive, WaiterToken(1)), Ok(LockReply::Granted));
    let wait_for_row = |table: &mut LockTable, transaction: u64| match table.request(
        row,
        TransactionId(transaction),
        Exclusive,
        WaiterToken(transaction),
    ) {
        Ok(LockReply::Waiting(waiter)) => waiter,
        other => panic!("{other:?}"),
    };
    lock(&mut table, RangeBounds::ALL, 2);
    let holder = wait_for_row(&mut table, 2);
    let other = wait_for_row(&mut table, 3);
    assert_eq!((table.has_other_requests(holder), table.has_other_requests(other)), (true, false));
}

#[test]
fn ranges_are_bounded() {
    let mut table = table();
    let key = |number: usize| (number as u32).to_be_bytes();
    for number in 0..WIDE_RANGES_MAX {
        lock(&mut table, between(&key(number), &key(number + 1)), 1);
    }
    let one_more = table.lock_range(PLACE, between(b"x", b"y"), TransactionId(2), Shared);
    assert_eq!(one_more, Err(LockTableFull));
    lock(&mut table, RangeBounds::prefix(b"x"), 2);
    release(&mut table, 1);
    lock(&mut table, between(b"x", b"y"), 2);
    release(&mut table, 2);
    assert_eq!(table.request_count(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Lock { transaction: u64, lower: Option<(u8, bool)>, upper: Option<(u8, bool)> },
    Wait { transaction: u64, key: u8 },
    Release { transaction: u64 },
}

fn any_step() -> impl Strategy<Value = Step> {
    let bound = || proptest::option::of((0u8..6, any::<bool>()));
    prop_oneof![
        3 => (1u64..5, bound(), bound()).prop_map(|(transaction, lower, upper)| Step::Lock { transaction, lower, upper }),
        3 => (1u64..5, 0u8..6).prop_map(|(transaction, key)| Step::Wait { transaction, key }),
        1 => (1u64..5).prop_map(|transaction| Step::Release { transaction }),
    ]
}

proptest! {
    #[test]
    fn range_locks_agree_with_a_simple_model(steps in proptest::collection::vec(any_step(), 1..60)) {
        let mut table = table();
        let mut held: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut waiting: BTreeMap<u64, u8> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Lock { transaction, lower, upper } => {
                    let (low, high) = (lower.map(|bound| [bound.0]), upper.map(|bound| [bound.0]));
                    let bound = |key: &'_ Option<[u8; 1]>, given: Option<(u8, bool)>| match (key, given) {
                        (Some(key), Some((_, true))) => Bound::Included(key.to_vec()),
                        (Some(key), Some((_, false))) => Bound::Excluded(key.to_vec()),
                        _ => Bound::Unbounded,
                    };
                    let (low, high) = (bound(&low, lower), bound(&high, upper));
                    let bounds = RangeBounds {
                        lower: low.as_ref().map(|key| &key[..]),
                        upper: high.as_ref().map(|key| &key[..]),
                    };
                    lock(&mut table, bounds, transaction);
                    held.push((transaction, (0..6).filter(|key| bounds.contains(&[*key])).collect()));
                }
                Step::Wait { transaction, key } => {
                    let is_held = held.iter().any(|(holder, keys)| *holder != transaction && keys.contains(&key));
                    prop_assert_eq!(is_blocked(&table, &[key], transaction), is_held);
                    if is_held && !waiting.contains_key(&transaction) {
                        wait(&mut table, &[key], transaction);
                        waiting.insert(transaction, key);
                    }
                }
                Step::Release { transaction } => {
                    waiting.remove(&transaction);
                    held.retain(|(holder, _)| *holder != transaction);
                    let is_free = |waiter: u64, key: u8| {
                        held.iter().all(|(holder, keys)| *holder == waiter || !keys.contains(&key))
                    };
                    let mut expected: Vec<u64> =
                        waiting.iter().filter(|(waiter, key)| is_free(**waiter, **key)).map(|(waiter, _)| *waiter).collect();
                    waiting.retain(|waiter, _| !expected.contains(waiter));
                    let mut granted = release(&mut table, transaction);
                    granted.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(granted, expected);
                }
            }
        }
        (1..5).for_each(|transaction| drop(release(&mut table, transaction)));
        prop_assert_eq!(table.request_count(), 0);
    }
}
