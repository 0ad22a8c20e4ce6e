//! Memory: exhaustion, bytes per row, compaction.

use super::*;

#[test]
fn a_write_without_memory_changes_nothing_and_a_delete_frees_memory() {
    let pool = pool(64);
    let mut store = PartitionStore::new(layout(), Arc::clone(&pool));
    let layout = store.layout().clone();
    let mut count = 0;
    let error = loop {
        match insert(&mut store, count, count, FIRST) {
            Ok(row) => store.commit(row, FIRST, CommitNumber(1)),
            Err(error) => break error,
        }
        count += 1;
    };
    assert_eq!(error, WriteError::OutOfMemory);
    assert!(count > 1000);
    store.check().unwrap();
    assert_eq!(store.statistics().live_rows, count as u64);
    let big = Values { k: Some(1), name: "y".into(), body_bytes: 300_000 };
    let before = (store.statistics(), pool.used_bytes());
    assert_eq!(store.update(RowId(3), &row_image(&layout, 3, &big), writer(FIRST, ONE)), Err(WriteError::OutOfMemory));
    assert_eq!((store.statistics(), pool.used_bytes()), before);
    store.check().unwrap();
    for row in (0..count as u32).map(RowId) {
        let commit_number = CommitNumber(2 + u64::from(row.0));
        store.delete(row, writer(SECOND, ONE)).unwrap();
        store.commit(row, SECOND, commit_number);
        store.purge_step(commit_number, 10);
    }
    store.check().unwrap();
    assert_eq!((store.statistics(), pool.used_bytes()), (Default::default(), 0));
    let mut other = PartitionStore::new(sysbench_layout(), Arc::clone(&pool));
    let text = [b'a'; 120];
    for id in 0..count {
        let (key, hash) = integer_key(id);
        let values =
            [ValueRef::Int(i64::from(id)), ValueRef::Int(1), ValueRef::Bytes(&text[..1]), ValueRef::Bytes(b"")];
        let row =
            other.insert(HashedKey { hash, key: &key }, &image(other.layout(), &values), writer(FIRST, ONE)).unwrap();
        other.commit(row, FIRST, CommitNumber(1));
    }
    other.check().unwrap();
    drop(other);
    assert_eq!(pool.used_bytes(), 0);
}

#[test]
fn a_sysbench_row_takes_at_most_340_bytes_with_its_indexes() {
    const ROWS: i32 = 120_000;
    let layout = sysbench_layout();
    let mut definition = layout.definition.clone();
    let secondary = definition.indexes.pop().unwrap();
    let mut store = PartitionStore::new(Arc::new(TableLayout::new(definition)), pool(8192));
    let (c, pad) = ([b'c'; 119], [b'p'; 59]);
    let mut random = 1u64;
    for id in 1..=ROWS {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let k = (random >> 33) as i64 % i64::from(ROWS);
        let values = [ValueRef::Int(i64::from(id)), ValueRef::Int(k), ValueRef::Bytes(&c), ValueRef::Bytes(&pad)];
        let (key, hash) = integer_key(id);
        let row = store.insert(HashedKey { hash, key: &key }, &image(&layout, &values), writer(FIRST, ONE)).unwrap();
        store.commit(row, FIRST, CommitNumber(id as u64));
    }
    store.add_index(&secondary);
    let mut from = Some(RowId(0));
    while let Some(next) = from {
        from = store.build_index_step(secondary.id, next, 64).unwrap();
    }
    let sizes = store.statistics();
    let each = |bytes: u64| bytes as f64 / f64::from(ROWS);
    println!(
        "bytes a row: {:.1} = versions {:.1} + map {:.1} + hash {:.1} + ordered {:.1}",
        each(sizes.total_bytes()),
        each(sizes.row_bytes),
        each(sizes.row_map_bytes),
        each(sizes.hash_bytes),
        each(sizes.ordered_bytes)
    );
    assert!(each(sizes.total_bytes()) <= 340.0);
    assert!(each(sizes.ordered_bytes) <= 36.0);
}

#[test]
fn pages_of_a_table_with_many_deletions_return_to_the_pool() {
    let mut store = store();
    for id in 0..5_000 {
        let row = insert(&mut store, id, id, FIRST).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
    }
    let full = store.statistics().row_bytes;
    for row in (0..5_000).filter(|id| id % 10 != 0).map(RowId) {
        store.delete(row, writer(FIRST, ONE)).unwrap();
        store.commit(row, FIRST, CommitNumber(2));
    }
    store.purge_step(CommitNumber(2), usize::MAX);
    let before = store.digest(CommitNumber(2));
    assert!(store.statistics().row_bytes > full / 2);
    for _ in 0..3 {
        while store.compact_step(64) {
            store.rows.check().unwrap();
        }
    }
    store.check().unwrap();
    assert_eq!(store.digest(CommitNumber(2)), before);
    assert!(store.statistics().row_bytes <= full / 5, "{} of {full}", store.statistics().row_bytes);
}

#[test]
fn pages_are_compacted_during_inserts_and_deletes() {
    let mut store = store();
    let layout = store.layout().clone();
    let mut random = 1u64;
    let mut moved = 0;
    for number in 1..6_000u64 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let id = (random >> 33) as i32 % 700;
        // Rows grow and shrink alternately, so that pages become sparse.
        let is_growing = number / 1_000 % 2 == 0;
        let transaction = TransactionId(number);
        let (key, hash) = integer_key(id);
        let row = match store.find_primary(&key, hash) {
            Some(row) if is_growing => {
                let body_bytes = (random >> 20) as usize % 900;
                let values = Values { k: Some(id), name: "n".into(), body_bytes };
                store.update(row, &row_image(&layout, id, &values), writer(transaction, ONE)).map(|()| row)
            }
            Some(row) => store.delete(row, writer(transaction, ONE)).map(|()| row),
            None => insert(&mut store, id, id, transaction),
        };
        match row {
            Ok(row) if number % 7 == 0 => store.undo(row, transaction, NOTHING),
            Ok(row) => store.commit(row, transaction, CommitNumber(number)),
            Err(error) => assert_eq!(error, WriteError::NotFound),
        }
        let before = store.digest(CommitNumber(number));
        moved += usize::from(store.compact_step(3));
        assert_eq!(store.digest(CommitNumber(number)), before);
        if number % 50 == 0 {
            store.purge_step(CommitNumber(number - 10), 100);
            store.check().unwrap();
        }
    }
    assert!(moved > 1_000, "{moved} steps had work");
}
