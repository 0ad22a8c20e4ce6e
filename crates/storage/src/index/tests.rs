use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use junctor_model::id::RowId;
use proptest::prelude::*;

use super::{Direction, HashIndex, OrderedIndex, RangeBounds};
use crate::page::{MemoryNeed, PAGE_BYTES, PagePool};

fn pool() -> Arc<PagePool> {
    PagePool::new(4096 * PAGE_BYTES).expect("address space")
}

fn tree(key_bytes_max: usize) -> OrderedIndex {
    OrderedIndex::new(pool(), key_bytes_max)
}

fn insert(tree: &mut OrderedIndex, key: &[u8], row: u32) -> bool {
    tree.reserve(key, RowId(row), MemoryNeed::Growth).unwrap();
    tree.insert(key, RowId(row))
}

fn entries(
    tree: &OrderedIndex,
    bounds: RangeBounds<'_>,
    direction: Direction,
    after: Option<(&[u8], RowId)>,
) -> Vec<(Vec<u8>, u32)> {
    let mut found = Vec::new();
    let flow = tree.scan(bounds, direction, after, |key, row| {
        found.push((key.to_vec(), row.0));
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    found
}

#[test]
fn ascending_keys_fill_nodes() {
    let mut tree = tree(5);
    for row in 0..100_000u32 {
        assert!(insert(&mut tree, &row.to_be_bytes(), row));
    }
    tree.check(|_, _| Ok(())).unwrap();
    let each = tree.bytes() as f64 / 100_000.0;
    assert!(each < 12.6, "{each} bytes an entry");
}

#[test]
fn random_keys_take_at_most_18_bytes_an_entry_on_average() {
    let mut tree = tree(5);
    let mut random = 1u64;
    let mut means = Vec::new();
    for row in 0..120_000u32 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        insert(&mut tree, &((random >> 32) as u32).to_be_bytes(), row);
        // Nodes fill at the same time, so the figure oscillates with the size of the tree. One doubling of
        // the size shows the whole range.
        if row >= 60_000 && row % 1_000 == 0 {
            means.push(tree.bytes() as f64 / f64::from(row));
        }
    }
    tree.check(|_, _| Ok(())).unwrap();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    assert!(mean < 18.0, "{mean} bytes an entry");
}

#[test]
fn removing_most_entries_gives_most_pages_back() {
    let mut tree = tree(5);
    for row in 0..50_000u32 {
        insert(&mut tree, &row.to_be_bytes(), row);
    }
    let full = tree.bytes();
    for row in (0..50_000u32).filter(|row| row % 50 != 0) {
        assert!(tree.remove(&row.to_be_bytes(), RowId(row)));
    }
    tree.check(|_, _| Ok(())).unwrap();
    assert_eq!(tree.len(), 1000);
    assert!(tree.bytes() < full / 4, "{} of {full}", tree.bytes());
    for row in (0..50_000u32).filter(|row| row % 50 == 0) {
        assert!(tree.remove(&row.to_be_bytes(), RowId(row)));
    }
    tree.check(|_, _| Ok(())).unwrap();
    assert_eq!(tree.bytes(), 0);
}

#[test]
fn keys_of_ten_thousand_bytes_are_kept_in_order() {
    let mut tree = tree(20_000);
    let key = |number: u32| {
        let mut key = vec![b'a'; 10_000];
        key.extend_from_slice(&number.to_be_bytes());
        key
    };
    for number in (0..60u32).rev() {
        assert!(insert(&mut tree, &key(number), number));
    }
    tree.check(|_, _| Ok(())).unwrap();
    let found = entries(&tree, RangeBounds::ALL, Direction::Forward, None);
    assert!(found.iter().map(|(_, row)| *row).eq(0..60));
    assert_eq!(tree.truncated(&key(3)), key(3));
    for number in 0..60u32 {
        assert!(tree.remove(&key(number), RowId(number)));
        tree.check(|_, _| Ok(())).unwrap();
    }
    assert_eq!(tree.bytes(), 0);
}

#[test]
fn keys_that_are_truncated_in_the_index_have_separate_entries() {
    let mut tree = tree(100_000);
    let key = |number: u32| [&[7u8; 40_000][..], &number.to_be_bytes()].concat();
    for number in 0..20u32 {
        assert!(insert(&mut tree, &key(number), number));
    }
    tree.check(|_, _| Ok(())).unwrap();
    let wanted = key(5);
    let bounds = RangeBounds { lower: Bound::Excluded(&wanted), upper: Bound::Unbounded };
    assert_eq!(entries(&tree, bounds, Direction::Forward, None).len(), 20);
    (0..20u32).for_each(|number| assert!(tree.remove(&key(number), RowId(number))));
    assert!(tree.is_empty());
}

#[test]
fn a_prefix_of_the_columns_bounds_a_scan() {
    let mut tree = tree(10);
    for row in 0..90u32 {
        insert(&mut tree, &[(row / 10) as u8, (row % 10) as u8], row);
    }
    let rows = |bounds, direction| -> Vec<u32> {
        entries(&tree, bounds, direction, None).into_iter().map(|(_, row)| row).collect()
    };
    assert_eq!(rows(RangeBounds::prefix(&[4]), Direction::Forward), (40..50).collect::<Vec<_>>());
    assert_eq!(rows(RangeBounds::prefix(&[4]), Direction::Backward), (40..50).rev().collect::<Vec<_>>());
    let open = RangeBounds { lower: Bound::Excluded(&[4][..]), upper: Bound::Excluded(&[6][..]) };
    assert_eq!(rows(open, Direction::Forward), (50..60).collect::<Vec<_>>());
    let mixed = RangeBounds { lower: Bound::Included(&[4, 7][..]), upper: Bound::Included(&[5][..]) };
    assert_eq!(rows(mixed, Direction::Backward), (47..60).rev().collect::<Vec<_>>());
}

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    // No string is a prefix of another, because a terminator follows bytes that are never zero.
    let length = prop_oneof![6 => 0usize..6, 1 => 200usize..900, 1 => 3_000usize..4_000];
    (length, proptest::collection::vec(1u8..4, 6)).prop_map(|(length, letters)| {
        let mut key: Vec<u8> = letters.iter().copied().cycle().take(length).collect();
        key.extend_from_slice(&[0, 0]);
        key
    })
}

fn any_bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    let prefix = (any_key(), any::<bool>()).prop_map(|(mut key, is_whole)| {
        if !is_whole {
            key.truncate(key.len() - 2);
        }
        key
    });
    (prefix, 0..3).prop_map(|(key, kind)| match kind {
        0 => Bound::Included(key),
        1 => Bound::Excluded(key),
        _ => Bound::Unbounded,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_tree_agrees_with_a_sorted_set(
        steps in proptest::collection::vec((any_key(), 0u32..20, 0..3), 1..400),
        lower in any_bound(),
        upper in any_bound(),
    ) {
        let mut tree = tree(4_002);
        let mut set: BTreeSet<(Vec<u8>, u32)> = BTreeSet::new();
        for (key, row, kind) in steps {
            prop_assert_eq!(tree.contains(&key, RowId(row)), set.contains(&(key.clone(), row)));
            match kind {
                0 => prop_assert_eq!(tree.remove(&key, RowId(row)), set.remove(&(key, row))),
                _ => prop_assert_eq!(insert(&mut tree, &key, row), set.insert((key, row))),
            }
        }
        tree.check(|key, row| if set.contains(&(key.to_vec(), row.0)) { Ok(()) } else { Err("unknown".into()) }).unwrap();
        prop_assert_eq!(tree.len(), set.len() as u64);
        let borrow = |bound: &Bound<Vec<u8>>| bound.clone();
        let (lower, upper) = (borrow(&lower), borrow(&upper));
        let bounds = RangeBounds { lower: lower.as_ref().map(|key| &key[..]), upper: upper.as_ref().map(|key| &key[..]) };
        let mut expected: Vec<(Vec<u8>, u32)> = set.into_iter().filter(|(key, _)| bounds.contains(key)).collect();
        prop_assert_eq!(&entries(&tree, bounds, Direction::Forward, None), &expected);
        if let Some((key, row)) = expected.get(expected.len() / 2) {
            let after = entries(&tree, bounds, Direction::Forward, Some((key, RowId(*row))));
            prop_assert_eq!(&after[..], &expected[expected.len() / 2 + 1..]);
            let before = entries(&tree, bounds, Direction::Backward, Some((key, RowId(*row))));
            prop_assert_eq!(before.into_iter().rev().collect::<Vec<_>>(), &expected[..expected.len() / 2]);
        }
        expected.reverse();
        prop_assert_eq!(entries(&tree, bounds, Direction::Backward, None), expected);
    }

    #[test]
    fn a_hash_index_agrees_with_a_map(
        // Few distinct hashes, so that chains become long.
        steps in proptest::collection::vec((0u64..40, 0u32..3_000, 0..4), 1..3_000),
    ) {
        let mut index = HashIndex::new(pool());
        let mut map: BTreeMap<u32, u64> = BTreeMap::new();
        for (hash, row, kind) in steps {
            match (kind, map.contains_key(&row)) {
                (0, true) => prop_assert!(index.remove(map.remove(&row).unwrap(), RowId(row))),
                (0, false) => prop_assert!(!index.remove(hash, RowId(row))),
                (_, false) => {
                    index.reserve(hash, MemoryNeed::Growth).unwrap();
                    index.insert(hash, RowId(row));
                    map.insert(row, hash);
                }
                (_, true) => {
                    let found = index.find(map[&row], |other| (other == RowId(row)).then_some(other));
                    prop_assert_eq!(found, Some(RowId(row)));
                }
            }
        }
        index.check(|hash, row| if map[&row.0] as u32 == hash { Ok(()) } else { Err("another hash".into()) }).unwrap();
        prop_assert_eq!(index.len(), map.len());
    }
}

#[test]
fn a_hash_index_grows_without_losing_rows_and_shrinks_to_nothing() {
    let mut index = HashIndex::new(pool());
    let hash = |row: u32| u64::from(row).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7;
    for row in 0..60_000 {
        index.reserve(hash(row), MemoryNeed::Growth).unwrap();
        index.insert(hash(row), RowId(row));
    }
    index.check(|_, _| Ok(())).unwrap();
    let each = index.bytes() as f64 / 60_000.0;
    assert!(each < 18.0, "{each} bytes an entry");
    for row in 0..60_000 {
        assert_eq!(index.find(hash(row), |other| (other == RowId(row)).then_some(other)), Some(RowId(row)));
        assert!(index.remove(hash(row), RowId(row)));
    }
    assert_eq!(index.bytes(), 0);
}
