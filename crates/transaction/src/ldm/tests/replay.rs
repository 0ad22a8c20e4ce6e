//! Recovery: the records of one life, replayed into a new node, give the same partitions.

use std::collections::BTreeMap;

use junctor_kernel::{Buffer, Random};
use junctor_model::id::RowId;
use junctor_model::row::RowView;
use junctor_model::schema::TableLayout;
use junctor_storage::log::{Operation, RecordBuffer, RecordHeader, RecordKind, SectionHeader, decode_record};

use super::random::{check_entries, random_history};
use super::*;

/// A section and the number of its commit.
type Change = (CommitNumber, PartitionId, Vec<u8>);

/// The sections of records in the order of replay: those of a chunk follow with the commit of the chunks.
fn changes(records: &[u8]) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut chunks: BTreeMap<TransactionId, Vec<(PartitionId, Vec<u8>)>> = BTreeMap::new();
    let mut rest = records;
    while !rest.is_empty() {
        let (record, length) = decode_record(rest).expect("a whole record");
        let sections = record.sections().map(|section| (section.header.partition, section.bytes().to_vec()));
        let RecordHeader { kind, number, transaction, .. } = record.header;
        match kind {
            RecordKind::Commit => changes.extend(sections.map(|(partition, bytes)| (number, partition, bytes))),
            RecordKind::Chunk => chunks.entry(transaction).or_default().extend(sections),
            _ => {
                let chunks = chunks.remove(&transaction).unwrap_or_default();
                changes.extend(chunks.into_iter().map(|(partition, bytes)| (number, partition, bytes)));
            }
        }
        rest = &rest[length..];
    }
    changes
}

/// Batches of at most `sections_max` sections for each owner, in order.
fn batches(harness: &Harness, changes: &[Change], sections_max: usize) -> Vec<(Address, Buffer)> {
    let mut batches: Vec<(Address, Buffer, usize)> = Vec::new();
    for (number, partition, bytes) in changes {
        let owner = harness.owner(*partition);
        let open = batches.iter_mut().rev().find(|(ldm, ..)| *ldm == owner).filter(|(.., count)| *count < sections_max);
        let (_, batch, count) = match open {
            Some(open) => open,
            None => {
                batches.push((owner, Buffer::new(), 0));
                batches.last_mut().expect("pushed above")
            }
        };
        batch.extend_from_slice(&number.0.to_le_bytes());
        batch.extend_from_slice(bytes);
        *count += 1;
    }
    batches.into_iter().map(|(ldm, batch, _)| (ldm, batch)).collect()
}

/// A new node with the empty tables of the first one.
fn restarted(before: &Harness, table: &SampleTable) -> Harness {
    let mut harness = Harness::restarted(2, before.stable(), 64 << 20);
    harness.create_tables(&[&table.layout, &table.entries]);
    harness
}

/// Asserts that both nodes have the same rows under the same ids, and the same results of index scans.
fn assert_equal(before: &mut Harness, after: &mut Harness, table: &SampleTable, note: &str) {
    after.check_idle();
    let layouts: [&TableLayout; 2] = [&table.layout, &table.entries];
    for layout in layouts {
        for index in 0..layout.definition.partition_count {
            let partition = PartitionId { table: layout.definition.id, index };
            let rows = |harness: &Harness| harness.ldm(harness.owner(partition)).committed_rows(partition);
            assert_eq!(rows(after), rows(before), "{note}: {partition:?}");
        }
    }
    let program = table.reading(RANGES, None, Output::Images);
    let scan = |harness: &mut Harness| -> Vec<Buffer> {
        let stable = harness.stable();
        let replies = harness.read(&program, table.range(i64::from(i32::MIN), i64::from(i32::MAX)), stable, NONE);
        assert!(replies.iter().all(|reply| reply.error.is_none()));
        replies.into_iter().map(|reply| reply.output).collect()
    };
    assert_eq!(scan(after), scan(before), "{note}: index scans");
}

#[test]
fn replayed_records_give_equal_partitions_however_often_they_are_replayed() {
    for seed in 0..40 {
        let (mut before, table) = random_history(seed, 1);
        before.delivery.random = None;
        let changes = changes(&before.records);
        let mut random = Random::new(seed);
        let mut after = restarted(&before, &table);
        for round in 0..2 {
            let batches = batches(&after, &changes, 1 + random.below(9) as usize);
            if random.one_in(2) {
                after.shuffle(seed);
            }
            assert_eq!(after.replay(batches), Vec::<Box<str>>::new());
            assert_eq!(after.build_indexes(), Vec::<Box<str>>::new());
            after.delivery.random = None;
            assert_equal(&mut before, &mut after, &table, &format!("seed {seed}, round {round}"));
            check_entries(&after, &table, seed);
        }
        // The node works: keys are found, and new commits lie above replayed ones.
        let rows = table.rows(&mut after);
        let ids: Vec<i64> = rows.iter().map(|(id, ..)| *id).collect();
        let reply = after.execute(NONE, true, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&ids));
        assert_eq!((reply.error, reply.changed), (None, ids.len() as u64));
        let added: Vec<Row> = rows.iter().map(|(id, k, u)| (*id, k + 1, *u)).collect();
        assert_eq!(table.rows(&mut after), added);
        after.advance(Duration::from_millis(100));
        after.check_idle();
    }
}

#[test]
fn long_transactions_and_long_values_are_replayed() {
    let (mut before, table) = started(1, 3);
    let rows: Vec<Row> = (0..3_000).map(|id| (id, id % 100, (id % 2 == 0).then_some(id))).collect();
    let first = before.execute(NONE, false, &table.insert_unique(), table.images(&rows));
    let long = table.images_with_text(&[(5_000, 1, Some(5_000)), (5_001, 2, None)], &"long".repeat(40_000));
    before.execute(first.transaction, false, &table.insert_unique(), long);
    before.execute(first.transaction, false, &table.delete(RANGES), table.range(10, 19));
    before.end(first.transaction, Ending::Commit);
    before.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[5_000]));
    before.execute(NONE, true, &table.add_to(K, RANGES, 7), table.range(0, 50));
    before.advance(Duration::from_millis(500));
    let changes = changes(&before.records);
    let mut after = restarted(&before, &table);
    let batches = batches(&after, &changes, 100);
    assert_eq!(after.replay(batches), Vec::<Box<str>>::new());
    assert_eq!(after.build_indexes(), Vec::<Box<str>>::new());
    assert_equal(&mut before, &mut after, &table, "long");
    let long = |(_, image): &(_, Vec<u8>)| RowView::new(&table.layout.row_format, image).image().len() > 100_000;
    let index = table.key(5_001).0;
    let partition = PartitionId { table: table.layout.definition.id, index };
    let rows = after.ldm(after.owner(partition)).committed_rows(partition).unwrap();
    assert_eq!(rows.iter().filter(|row| long(row)).count(), 1);
}

/// Numbers of whole images, edits and deletions in records.
fn counts(records: &[u8]) -> (usize, usize, usize) {
    let (mut puts, mut edits, mut deletions) = (0, 0, 0);
    let mut rest = records;
    while !rest.is_empty() {
        let (record, length) = decode_record(rest).expect("a whole record");
        for operation in record.sections().flat_map(|section| section.operations()) {
            match operation {
                Operation::Put { .. } => puts += 1,
                Operation::Edit { .. } => edits += 1,
                Operation::Delete { .. } => deletions += 1,
            }
        }
        rest = &rest[length..];
    }
    (puts, edits, deletions)
}

#[test]
fn changes_of_long_rows_are_recorded_as_edits_and_replayed() {
    for nodes in [1, 2] {
        let (mut before, table) = started(nodes, 2);
        let ids: Vec<i64> = (1..=40).collect();
        let rows: Vec<Row> = ids.iter().map(|id| (*id, id % 7, Some(*id))).collect();
        let long = "a long text ".repeat(1_000);
        before.execute(NONE, true, &table.insert_unique(), table.images_with_text(&rows, &long));
        before.records.clear();
        // Some rows change in one transaction, twice: the base is the committed version. A short participant.
        let write = table.add_to(K, Access::PrimaryKeys, 1);
        let first = before.execute(NONE, false, &write, table.keys(&[1, 2, 3]));
        before.execute(first.transaction, false, &write, table.keys(&[2, 3, 4]));
        before.end(first.transaction, Ending::Commit);
        let partitions_here = |harness: &Harness, ids: &[i64]| {
            let here = |id: &&i64| {
                let partition = PartitionId { table: table.layout.definition.id, index: table.key(**id).0 };
                nodes == 2 || harness.owner(partition).node == NodeId(1)
            };
            ids.iter().filter(here).count()
        };
        assert_eq!(counts(&before.records), (0, partitions_here(&before, &[1, 2, 3, 4]), 0));
        assert!(before.records.len() < 1_000, "{} bytes", before.records.len());
        before.records.clear();
        // A long participant, in chunks.
        let all = before.execute(NONE, false, &table.add_to(K, Access::AllRows, 1), table.everything());
        before.end(all.transaction, Ending::Commit);
        let again = before.execute(NONE, false, &table.add_to(K, Access::AllRows, 1), table.everything());
        before.end(again.transaction, Ending::Commit);
        assert_eq!(counts(&before.records), (0, 2 * partitions_here(&before, &ids), 0));
        assert!(before.records.len() < 10_000, "{} bytes", before.records.len());
    }
}

#[test]
fn rows_that_are_deleted_and_inserted_again_have_whole_images() {
    let (mut before, table) = started(1, 1);
    let (long, other) = ("a long text ".repeat(1_000), "another text ".repeat(1_000));
    let insert = |harness: &mut Harness, transaction, is_autocommit, text: &str| {
        let images = table.images_with_text(&[(1, 1, None)], text);
        let reply = harness.execute(transaction, is_autocommit, &table.insert(), images);
        assert_eq!(reply.error, None);
        reply.transaction
    };
    insert(&mut before, NONE, true, &long);
    // In the same transaction the committed version is still the base.
    let delete = table.delete(Access::PrimaryKeys);
    let first = before.execute(NONE, false, &delete, table.keys(&[1]));
    insert(&mut before, first.transaction, false, &long);
    before.end(first.transaction, Ending::Commit);
    assert_eq!(counts(&before.records), (1, 1, 0));
    // After a commit it is gone.
    before.execute(NONE, true, &delete, table.keys(&[1]));
    insert(&mut before, NONE, true, &long);
    assert_eq!(counts(&before.records), (2, 1, 1));
    // Another text is as long as the image.
    let first = before.execute(NONE, false, &delete, table.keys(&[1]));
    insert(&mut before, first.transaction, false, &other);
    before.end(first.transaction, Ending::Commit);
    assert_eq!(counts(&before.records), (3, 1, 1));
    before.execute(NONE, true, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[1]));
    assert_eq!(counts(&before.records), (3, 2, 1));
    before.advance(Duration::from_millis(500));
    let changes = changes(&before.records);
    let mut after = restarted(&before, &table);
    let batches = batches(&after, &changes, 1);
    assert_eq!(after.replay(batches), Vec::<Box<str>>::new());
    assert_eq!(after.build_indexes(), Vec::<Box<str>>::new());
    assert_equal(&mut before, &mut after, &table, "inserted again");
}

#[test]
fn the_log_without_the_base_of_an_edit_is_an_error() {
    let (mut before, table) = started(1, 1);
    let long = table.images_with_text(&[(1, 1, None)], &"long".repeat(1_000));
    before.execute(NONE, true, &table.insert(), long);
    let first = changes(&before.records).len();
    before.execute(NONE, true, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[1]));
    let second = changes(&before.records).len();
    before.execute(NONE, true, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[1]));
    let all = changes(&before.records);
    let mut after = restarted(&before, &table);
    let gap = [&all[..first], &all[second..]].concat();
    let errors = after.replay(batches(&after, &gap, 10));
    let number = all[second].0;
    let expected = format!(
        "commit {number} in the log: table 't', partition 0: the change of row 0 is not one of the row found; restore \
         the directory from a backup"
    );
    assert_eq!(errors, [expected.into()]);
    let mut after = restarted(&before, &table);
    assert_eq!(after.replay(batches(&after, &all[first..], 10)), Vec::<Box<str>>::new());
    let expected = "table 't', partition 0: row 0, which was changed, is missing; restore the directory from a backup";
    assert_eq!(after.build_indexes(), [expected.into()]);
}

/// A batch with one section that puts this image.
fn batch(partition: PartitionId, row: RowId, image: &[u8]) -> Buffer {
    let mut buffer = RecordBuffer::new();
    let (kind, number) = (RecordKind::Commit, CommitNumber(1));
    buffer.begin(&RecordHeader { kind, participants: 1, number, transaction: NONE, chunk: 0 });
    buffer.begin_section(&SectionHeader { partition, origin: 0, row_format: SchemaVersion(1) });
    buffer.put(row, image);
    buffer.end();
    let bytes = buffer.take(Vec::new());
    let (record, _) = decode_record(&bytes).unwrap();
    let section = record.sections().next().unwrap();
    [&number.0.to_le_bytes()[..], section.bytes()].concat()
}

#[test]
fn a_section_of_a_dropped_table_is_skipped_and_a_damaged_one_is_an_error() {
    let (mut harness, table) = started(1, 1);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let owner = harness.owner(partition);
    let dropped = batch(PartitionId { table: junctor_model::id::TableId(99), index: 0 }, RowId(0), b"anything");
    let whole = batch(partition, RowId(0), &table.image(1, 10, None, "text"));
    assert_eq!(harness.replay(vec![(owner, [&dropped[..], &whole].concat())]), Vec::<Box<str>>::new());
    for damaged in [whole[..whole.len() - 1].to_vec(), whole[..5].to_vec(), vec![0xFF; 60]] {
        let errors = harness.replay(vec![(owner, damaged)]);
        assert_eq!(errors, ["a section of the log is damaged; restore the directory from a backup".into()]);
    }
    let errors = harness.replay(vec![(owner, batch(partition, RowId(1), b"\xFFnonsense"))]);
    assert_eq!(errors, ["commit 1 in the log: table 't', partition 0: the image of row 1 is damaged; restore the directory from a backup".into()]);
    assert_eq!(harness.build_indexes(), Vec::<Box<str>>::new());
    harness.check();
    let rows = harness.ldm(owner).committed_rows(partition).unwrap();
    assert_eq!(rows, [(RowId(0), table.image(1, 10, None, "text"))]);
}

#[test]
fn a_lack_of_memory_names_the_setting() {
    let table = SampleTable::new(1);
    let mut harness = Harness::restarted(1, CommitNumber(1), 1 << 20);
    harness.create_tables(&[&table.layout, &table.entries]);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let owner = harness.owner(partition);
    let batches = (0..100).map(|id| {
        let image = table.image(id, 1, None, &"long".repeat(5_000));
        (owner, batch(partition, RowId(id as u32), &image))
    });
    let errors = harness.replay(batches.collect());
    let expected = "the data memory is exhausted while table 't' is recovered; raise TotalMemory";
    assert!(!errors.is_empty() && errors.iter().all(|error| **error == *expected), "{errors:?}");
}

#[test]
fn replay_waits_for_a_reader_and_keeps_the_order() {
    let (mut harness, table) = started(1, 1);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let owner = harness.owner(partition);
    let guard = Arc::clone(&harness.guards[&partition]);
    let (_, slots) = junctor_storage::guard::ReadGroup::new(1);
    let slot = std::mem::replace(&mut harness.spare_slot, slots.into_iter().next().expect("one slot"));
    let inside = guard.read(&slot, |_| {
        for k in [10, 20] {
            let reply_to = Address::new(NodeId(1), Module::Log, 0);
            let sections = batch(partition, RowId(0), &table.image(1, k, None, "text"));
            let signal = junctor_signals::recover_log::ReplayRows { reply_to, sections };
            harness.send(owner, reply_to, Signal::Ldm(LdmSignal::ReplayRows(signal)));
        }
        for _ in 0..20 {
            harness.step();
        }
        assert_eq!(harness.ldm(owner).work().deferred, 3, "two batches and their continuation");
    });
    assert!(inside.is_ok());
    harness.run();
    assert_eq!(harness.build_indexes(), Vec::<Box<str>>::new());
    harness.check_idle();
    let rows = harness.ldm(owner).committed_rows(partition).unwrap();
    assert_eq!(rows, [(RowId(0), table.image(1, 20, None, "text"))]);
}
