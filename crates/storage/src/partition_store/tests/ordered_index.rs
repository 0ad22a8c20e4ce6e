//! Ordered indexes: scans and builds.

use junctor_model::types::DataType;

use super::*;
use crate::partition_store::PartitionStatistics;

#[test]
fn a_scan_finds_each_row_once_under_the_key_that_its_reader_sees() {
    let mut store = store();
    let layout = store.layout().clone();
    for id in 0..20 {
        let row = insert(&mut store, id, id % 5, FIRST).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
        store.update(row, &row_image(&layout, id, &values(100 - id)), writer(SECOND, ONE)).unwrap();
        store.commit(row, SECOND, CommitNumber(2));
    }
    let forward = ids_by_k(&store, RangeBounds::ALL, Direction::Forward, 2);
    assert_eq!(forward, (0..20).rev().collect::<Vec<i64>>());
    let old = ids_by_k(&store, RangeBounds::ALL, Direction::Backward, 1);
    assert_eq!(old.len(), 20);
    assert!(old.windows(2).all(|pair| (pair[0] % 5, pair[0]) > (pair[1] % 5, pair[1])));
    let mut bound = Vec::new();
    append_value(INT.key_part(), true, ValueRef::Int(90), &mut bound);
    let bounds = RangeBounds { lower: Bound::Excluded(&bound), upper: Bound::Unbounded };
    assert_eq!(ids_by_k(&store, bounds, Direction::Forward, 2), (0..10).rev().collect::<Vec<i64>>());
    store.check().unwrap();
}

#[test]
fn a_range_of_truncated_keys_is_exact() {
    let body = DataType::text_or_blob(4, CollationId::BINARY);
    let columns = vec![column("id", INT, false), column("body", body.clone(), false)];
    let indexes = vec![index(0, IndexKind::Primary { ordered: false }, &[0]), index(1, IndexKind::Ordered, &[1])];
    let mut store = PartitionStore::new(table(columns, indexes), pool(1024));
    let body_of = |id: i32| [&[b'a'; 40_000][..], &[b'0' + id as u8]].concat();
    for id in 0..8 {
        let (key, hash) = integer_key(id);
        let body = body_of(id);
        let image = image(store.layout(), &[ValueRef::Int(i64::from(id)), ValueRef::Bytes(&body)]);
        let row = store.insert(HashedKey { hash, key: &key }, &image, writer(FIRST, ONE)).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
    }
    store.check().unwrap();
    let mut bound = Vec::new();
    append_value(body.key_part(), false, ValueRef::Bytes(&body_of(5)), &mut bound);
    let bounds = RangeBounds { lower: Bound::Excluded(&bound), upper: Bound::Unbounded };
    assert_eq!(ids_by_k(&store, bounds, Direction::Forward, 1), [6, 7]);
    assert_eq!(ids_by_k(&store, RangeBounds::prefix(&bound), Direction::Backward, 1), [5]);
}

#[test]
fn an_index_built_while_rows_are_written_is_complete() {
    let layout = layout();
    let mut definition = layout.definition.clone();
    let added = definition.indexes.remove(1);
    let mut store = PartitionStore::new(Arc::new(TableLayout::new(definition)), pool(1024));
    for id in 0..100 {
        let row = insert(&mut store, id, id, FIRST).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
    }
    store.add_index(&added);
    assert!(!store.has_index(IndexId(1)));
    let mut from = Some(RowId(0));
    let mut step = 0;
    while let Some(next) = from {
        from = store.build_index_step(IndexId(1), next, 7).unwrap();
        let row = store.find_primary(&integer_key(step).0, integer_key(step).1).unwrap();
        store.update(row, &row_image(&layout, step, &values(1000 + step)), writer(SECOND, ONE)).unwrap();
        store.commit(row, SECOND, CommitNumber(2 + step as u64));
        step += 1;
        store.check().unwrap();
    }
    store.replace_layout(layout);
    assert!(store.has_index(IndexId(1)));
    store.check().unwrap();
    assert_eq!(ids_by_k(&store, RangeBounds::ALL, Direction::Forward, 1), (0..100).collect::<Vec<i64>>());
    store.drop_index(IndexId(1));
    assert!(!store.has_index(IndexId(1)));
    store.check().unwrap();
}

#[test]
fn a_multi_valued_index_built_while_rows_are_written_is_complete() {
    let layout = lists_layout();
    let mut definition = layout.definition.clone();
    let added = definition.indexes.split_off(3);
    let mut store = PartitionStore::new(Arc::new(TableLayout::new(definition)), pool(1024));
    let row_of = |id: i32| row_image(&layout, id, &Values { name: format!("{:b}", id % 8), ..values(id) });
    for id in 0..60 {
        let (key, hash) = integer_key(id);
        let row = store.insert(HashedKey { hash, key: &key }, &row_of(id), writer(FIRST, ONE)).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
    }
    let mut number = 1;
    for index in &added {
        store.add_index(index);
        let (mut from, mut step) = (Some(RowId(0)), 0);
        while let Some(next) = from {
            from = store.build_index_step(index.id, next, 7).unwrap();
            let row = store.find_primary(&integer_key(step).0, integer_key(step).1).unwrap();
            store.update(row, &row_image(&layout, step, &values(step)), writer(SECOND, ONE)).unwrap();
            store.update(row, &row_image(&layout, step, &row_of_name("a1")), writer(SECOND, TWO)).unwrap();
            if step % 2 == 0 {
                store.undo(row, SECOND, NOTHING);
            } else {
                number += 1;
                store.commit(row, SECOND, CommitNumber(number));
            }
            step += 1;
            store.check().unwrap();
        }
    }
    store.replace_layout(layout);
    store.check().unwrap();
    let mut one = Vec::new();
    append_element_key(b"1\0", &mut one);
    let reader = Reader { snapshot: CommitNumber(1), own: None };
    let mut found = ids_with(&store, (3, &one), reader);
    found.sort_unstable();
    assert_eq!(found, (0..60).filter(|id| id % 8 != 0).collect::<Vec<i64>>());
}

fn row_of_name(name: &str) -> Values {
    Values { name: name.into(), ..values(7) }
}

/// Fills the memory with rows, then inserts one with very many elements.
#[test]
fn a_write_of_many_elements_without_memory_changes_nothing() {
    let layout = lists_layout();
    let mut store = PartitionStore::new(Arc::clone(&layout), pool(40));
    let list_image = |id: i32, elements: u32| {
        let mut list = Vec::new();
        (0..elements).for_each(|element| append_element(&(element * 7 + id as u32).to_be_bytes(), &mut list));
        let values = [ValueRef::Int(id.into()), ValueRef::Int(1), ValueRef::Bytes(b"n"), ValueRef::Null];
        image(&layout, &[&values[..], &[ValueRef::Bytes(&list)]].concat())
    };
    let mut id = 0;
    let refused = loop {
        let (key, hash) = integer_key(id);
        let before = store.statistics();
        match store.insert(HashedKey { hash, key: &key }, &list_image(id, 2_000), writer(FIRST, ONE)) {
            Ok(row) => store.commit(row, FIRST, CommitNumber(1)),
            Err(error) => break (error, before),
        }
        id += 1;
    };
    assert!(id > 0);
    let (error, before) = refused;
    // Nodes that were split stay so.
    let after = PartitionStatistics { ordered_bytes: before.ordered_bytes, ..store.statistics() };
    assert_eq!((error, after), (WriteError::OutOfMemory, before));
    store.check().unwrap();
    // Fewer elements than before always fit.
    let row = store.find_primary(&integer_key(0).0, integer_key(0).1).unwrap();
    store.update(row, &list_image(0, 1), writer(SECOND, ONE)).unwrap();
    store.check().unwrap();
    store.undo(row, SECOND, NOTHING);
    store.check().unwrap();
}
