use std::sync::Arc;

use proptest::prelude::*;

use super::{BlockStore, Location, MemoryNeed, OutOfMemory, OverflowStore, PAGE_BYTES, PageKind, PagePool};

#[test]
fn freed_pages_can_be_reused_by_all_and_the_reserve_is_kept() {
    let pool = PagePool::new(64 * PAGE_BYTES).unwrap();
    let mut pages = Vec::new();
    while let Ok(page) = pool.take(PageKind::Rows, MemoryNeed::Growth) {
        pages.push(page);
    }
    assert_eq!(pool.available_bytes(), 0);
    assert_eq!(pool.used_bytes() + pool.reserve_bytes(), pool.total_bytes());
    let kept = pool.take(PageKind::Overflow, MemoryNeed::Release).unwrap();
    assert_eq!(pool.used_bytes_of(PageKind::Overflow), PAGE_BYTES as u64);
    pages.pop();
    assert_eq!(pool.take(PageKind::HashIndex, MemoryNeed::Growth).err(), Some(OutOfMemory));
    drop(kept);
    let page = pool.take(PageKind::HashIndex, MemoryNeed::Growth).unwrap();
    assert_eq!(pool.used_bytes_of(PageKind::HashIndex), PAGE_BYTES as u64);
    drop((page, pages));
    assert_eq!(pool.used_bytes(), 0);
}

#[test]
fn pages_do_not_overlap() {
    let pool = PagePool::new(16 * PAGE_BYTES).unwrap();
    let mut pages: Vec<_> = (0..10).map(|_| pool.take(PageKind::Rows, MemoryNeed::Growth).unwrap()).collect();
    for (number, page) in pages.iter_mut().enumerate() {
        page.fill(number as u8);
    }
    for (number, page) in pages.iter().enumerate() {
        assert!(page.iter().all(|byte| *byte == number as u8));
    }
}

#[test]
fn a_long_value_that_does_not_fit_occupies_no_pages() {
    let pool = PagePool::new(16 * PAGE_BYTES).unwrap();
    let mut overflow = OverflowStore::new(Arc::clone(&pool));
    assert_eq!(overflow.put(&vec![1; 20 * PAGE_BYTES], MemoryNeed::Growth), Err(OutOfMemory));
    assert_eq!((pool.used_bytes(), overflow.used_blocks()), (0, 0));
    let value: Vec<u8> = (0..5 * PAGE_BYTES + 17).map(|at| (at * 7 / 3) as u8).collect();
    let location = overflow.put(&value, MemoryNeed::Growth).unwrap();
    let mut read = Vec::new();
    overflow.append_to(location, value.len(), &mut read);
    assert_eq!(read, value);
    assert_eq!(overflow.blocks_of(location), overflow.used_blocks());
    overflow.free(location);
    overflow.check().unwrap();
    assert_eq!(pool.used_bytes(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn blocks_keep_their_bytes_and_empty_pages_are_freed(
        steps in proptest::collection::vec((1usize..9_000, 0usize..40, any::<bool>()), 1..300),
    ) {
        let pool = PagePool::new(2_000 * PAGE_BYTES).unwrap();
        let mut store = BlockStore::new(Arc::clone(&pool), PageKind::Rows);
        let mut blocks: Vec<(Location, usize, u8)> = Vec::new();
        for (number, (bytes, which, is_free)) in steps.into_iter().enumerate() {
            if is_free && !blocks.is_empty() {
                let (location, bytes, mark) = blocks.swap_remove(which % blocks.len());
                prop_assert!(store.at(location)[..bytes].iter().all(|byte| *byte == mark));
                store.free(location);
            } else {
                let bytes = if number % 3 == 0 { bytes } else { bytes % 300 + 1 };
                let location = store.allocate(bytes, MemoryNeed::Growth).unwrap();
                store.at_mut(location)[..bytes].fill(number as u8);
                blocks.push((location, bytes, number as u8));
            }
            store.check().unwrap();
            prop_assert_eq!(store.used_blocks(), blocks.len());
        }
        for (location, bytes, mark) in blocks {
            prop_assert!(store.at(location)[..bytes].iter().all(|byte| *byte == mark));
            store.free(location);
        }
        prop_assert_eq!(pool.used_bytes(), 0);
    }
}
