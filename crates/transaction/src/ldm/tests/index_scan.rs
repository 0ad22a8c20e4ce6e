//! Partitions and indexes that are created, changed and dropped while transactions run.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_kernel::Buffer;
use junctor_model::error::ErrorCode;
use junctor_model::id::{IndexId, PartitionId, SchemaVersion, TableId};
use junctor_model::key::append_value;
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::schema::{IndexDefinition, IndexKind, TableLayout};
use junctor_model::value::ValueRef;
use junctor_signals::change_schema::PartitionChange;
use junctor_signals::end_transaction::Ending;
use junctor_signals::input::{self, HashedKey, KeyedImage};
use junctor_signals::program::{Access, Output};

use super::{NONE, RANGES, Row, filled};
use crate::tests::harness::{INDEX_K, K, SampleTable, TestSession, insert_program};

/// The input of an insert into the hidden table.
fn entry(table: &SampleTable, key: &[u8], reference: &[u8]) -> BTreeMap<u16, Buffer> {
    let definition = &table.entries.definition;
    let mut entry_key = Vec::new();
    append_value(definition.columns[0].column_type.key_part(), false, ValueRef::Bytes(key), &mut entry_key);
    let hash = key_hash(&entry_key);
    let mut image = Vec::new();
    let values = [ValueRef::Bytes(key), ValueRef::Bytes(reference)];
    table.entries.row_format.encode(&values, &mut image).expect("two strings");
    let mut input = Buffer::new();
    input::begin(&mut input, b"");
    input::push_image(&mut input, KeyedImage { key: HashedKey { hash, key: &entry_key }, image: &image });
    BTreeMap::from([(partition_of(hash, definition.partition_count), input)])
}

#[test]
fn an_entry_that_exists_for_the_same_row_is_no_duplicate() {
    let (mut harness, table) = filled(1, 2, 3);
    let program = insert_program(&table.entries);
    let (partition, primary_key, _) = table.key(2);
    let key = [&[1], &table.key(2).1[..]].concat();
    let reference = [&partition.to_be_bytes()[..], &primary_key].concat();
    let reply = harness.execute(NONE, true, &program, entry(&table, &key, &reference));
    assert_eq!((reply.error, reply.matched, reply.changed), (None, 1, 0));
    let reply = harness.execute(NONE, true, &program, entry(&table, &key, b"another row"));
    assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::DuplicateEntry));
    harness.check_idle();
}

#[test]
fn a_partition_refuses_writers_that_do_not_know_a_new_unique_index() {
    let (mut harness, table) = filled(1, 1, 3);
    let mut newer = table.layout.definition.clone();
    newer.version = SchemaVersion(2);
    let kind = IndexKind::Unique { ordered: false, entries: TableId(9) };
    let index = IndexDefinition { id: IndexId(3), name: "v".into(), kind, ..newer.indexes[1].clone() };
    newer.indexes.push(index);
    let newer = Arc::new(TableLayout::new(newer));
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let owner = harness.owner(partition);
    // The catalog is not published yet, so tc still accepts the plan.
    let write = table.add_to(K, Access::PrimaryKeys, 1);
    let first = harness.execute(NONE, false, &write, table.keys(&[1]));
    let parked = harness.begin_execute(TestSession::autocommit(1), &write, table.keys(&[1]));
    harness.run();
    harness.change_partition(owner, partition, &newer, PartitionChange::ReplaceLayout);
    harness.run();
    let late = harness.execute(NONE, true, &write, table.keys(&[2]));
    assert_eq!(late.error.map(|error| error.code), Some(ErrorCode::TableDefinitionChanged));
    // A parked write must not continue either.
    assert_eq!(harness.end(first.transaction, Ending::Commit).error, None);
    let reply = harness.statement(parked).expect("the lock was granted");
    assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::TableDefinitionChanged));
    harness.check_idle();
}

#[test]
fn an_index_is_built_in_steps_while_rows_change() {
    let (mut harness, table) = filled(1, 1, 300);
    let mut without = table.layout.definition.clone();
    without.indexes.retain(|index| index.id != INDEX_K);
    let without = Arc::new(junctor_model::schema::TableLayout::new(without));
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let owner = harness.owner(partition);
    harness.change_partition(owner, partition, &without, PartitionChange::ReplaceLayout);
    harness.run();
    let read = table.reading(RANGES, None, Output::Images);
    let stable = harness.stable();
    let refused = harness.read(&read, table.range(0, 100), stable, NONE);
    assert_eq!(refused[0].error.as_ref().map(|error| error.code), Some(ErrorCode::TableDefinitionChanged));
    harness.change_partition(owner, partition, &table.layout, PartitionChange::ReplaceLayout);
    harness.change_partition(owner, partition, &table.layout, PartitionChange::BuildIndex(INDEX_K));
    let update =
        harness.begin_execute(TestSession::autocommit(0), &table.add_to(K, Access::AllRows, 1), table.everything());
    harness.run();
    assert_eq!(harness.statement(update).map(|reply| (reply.error, reply.changed)), Some((None, 300)));
    let stable = harness.stable();
    let replies = harness.read(&read, table.range(0, 10_000), stable, NONE);
    let rows: Vec<Row> = replies.iter().flat_map(|reply| table.rows_of(&reply.output)).collect();
    let expected: Vec<Row> = (1..=300).map(|id| (id, id * 10 + 1, Some(id))).collect();
    assert_eq!(rows, expected);
    harness.check_idle();
}

#[test]
fn a_dropped_partition_refuses_writers_and_readers_and_is_freed_after_its_transactions() {
    let (mut harness, table) = filled(1, 1, 3);
    let open = harness.execute(NONE, false, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[1]));
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let owner = harness.owner(partition);
    harness.change_partition(owner, partition, &table.layout, PartitionChange::Drop);
    harness.run();
    let reply = harness.execute(NONE, true, &table.insert(), table.images(&[(9, 9, None)]));
    assert_eq!(reply.error.expect("the partition is gone").code, ErrorCode::TableDefinitionChanged);
    let read = table.reading(Access::AllRows, None, Output::Images);
    let stable = harness.stable();
    let replies = harness.read(&read, table.everything(), stable, NONE);
    assert_eq!(replies[0].error.as_ref().map(|error| error.code), Some(ErrorCode::TableDefinitionChanged));
    assert_eq!(harness.end(open.transaction, Ending::Commit).error, None);
    harness.check_idle();
}
