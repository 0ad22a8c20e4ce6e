//! Transactions with many rows: each step is bounded, and other work runs in between.

use junctor_model::id::{PartitionId, TransactionId};
use junctor_signals::end_transaction::Ending;
use junctor_signals::program::{Access, Output};
use junctor_storage::log::{CHUNK_BYTES_MAX, RecordKind, decode_record};

use super::{NONE, Row, filled};
use crate::tests::harness::{Harness, K, SampleTable, TestSession, U};

/// Rows of the transaction.
const ROWS: i64 = 5000;
/// Added to unique keys. It is larger than all of them.
const MOVED: i64 = 10_000;
/// Maximum number of rows, locks and similar items that one signal may process.
const STEP_MAX: usize = 2048;

fn locks_and_versions(harness: &Harness, table: &SampleTable) -> usize {
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    harness.ldm(harness.owner(partition)).work().lock_requests
}

/// Delivers all signals, with an occasional read. Returns the number of reads that were answered before the
/// end.
fn run_with_reads(harness: &mut Harness, table: &SampleTable) -> usize {
    let program = table.reading(Access::PrimaryKeys, None, Output::Images);
    let snapshot = harness.stable();
    let (mut answered, mut steps) = (0, 0);
    let mut locks = locks_and_versions(harness, table);
    let mut recorded = harness.records.len();
    let mut open = None;
    while harness.step() {
        steps += 1;
        let now = locks_and_versions(harness, table);
        assert!(locks.saturating_sub(now) <= STEP_MAX, "{} locks went at once", locks - now);
        locks = now;
        assert!(
            harness.records.len() - recorded <= CHUNK_BYTES_MAX,
            "{} bytes of records at once",
            harness.records.len() - recorded
        );
        recorded = harness.records.len();
        if let Some(operation) = open
            && harness.rows_read(operation).is_some()
        {
            answered += 1;
            open = None;
        }
        if open.is_none() && steps % 4 == 0 && locks > 0 {
            open = Some(harness.begin_read(&program, table.keys(&[1]), snapshot));
        }
    }
    answered
}

/// The chunks of a transaction, the count in the record that commits them, and their changes.
fn chunks_of(harness: &Harness, transaction: TransactionId) -> (u32, Vec<u32>, usize) {
    let (mut chunks, mut commits, mut changes) = (0, Vec::new(), 0);
    let mut rest = &harness.records[..];
    while !rest.is_empty() {
        let (record, length) = decode_record(rest).expect("a whole record");
        rest = &rest[length..];
        if record.header.transaction == transaction {
            match record.header.kind {
                RecordKind::Chunk => {
                    assert_eq!(record.header.chunk, chunks);
                    chunks += 1;
                }
                kind => {
                    assert_eq!(kind, RecordKind::ChunkCommit);
                    commits.push(record.header.chunk);
                }
            }
            changes += record.sections().map(|section| section.operations().count()).sum::<usize>();
        }
    }
    (chunks, commits, changes)
}

#[test]
fn a_long_commit_lets_others_read_and_records_every_row_once() {
    let (mut harness, table) = filled(1, 1, ROWS);
    let program = table.add_to(K, Access::AllRows, 1);
    let mut transaction = NONE;
    for _ in 0..2 {
        let reply = harness.execute(transaction, false, &program, table.everything());
        assert_eq!((reply.error, reply.changed), (None, ROWS as u64));
        transaction = reply.transaction;
    }
    harness.begin_end(transaction, Ending::Commit);
    let answered = run_with_reads(&mut harness, &table);
    assert!(answered > 5, "{answered} reads were answered meanwhile");
    let rows: Vec<Row> = (1..=ROWS).map(|id| (id, id * 10 + 2, Some(id))).collect();
    assert_eq!(table.rows(&mut harness), rows);
    let (chunks, commits, changes) = chunks_of(&harness, transaction);
    assert!(chunks > 10, "{chunks} chunks");
    assert_eq!((commits, changes), (vec![chunks], ROWS as usize));
    harness.check_idle();
}

#[test]
fn a_long_rollback_lets_others_read_and_undoes_everything() {
    let (mut harness, table) = filled(1, 1, ROWS);
    let before = table.rows(&mut harness);
    let reply = harness.execute(NONE, false, &table.add_to(K, Access::AllRows, 1), table.everything());
    let second = harness.execute(reply.transaction, false, &table.delete(Access::AllRows), table.everything());
    assert_eq!((second.error, second.changed), (None, ROWS as u64));
    harness.begin_end(reply.transaction, Ending::Rollback);
    let answered = run_with_reads(&mut harness, &table);
    assert!(answered > 5, "{answered} reads were answered meanwhile");
    assert_eq!(table.rows(&mut harness), before);
    harness.check_idle();
}

#[test]
fn unique_keys_of_many_rows_follow_them() {
    let (mut harness, table) = filled(1, 2, ROWS);
    let reply = harness.execute(NONE, true, &table.add_to(U, Access::AllRows, MOVED), table.everything());
    assert_eq!((reply.error, reply.changed), (None, ROWS as u64));
    // Each row has two entries, and one turn handles several hundred rows.
    assert!(harness.follow_ups_max <= STEP_MAX, "{} follow-ups at once", harness.follow_ups_max);
    let rows: Vec<Row> = (1..=ROWS).map(|id| (id, id * 10, Some(id + MOVED))).collect();
    assert_eq!(table.rows(&mut harness), rows);
    let taken = harness.execute(NONE, true, &table.insert_unique(), table.images(&[(ROWS + 1, 1, Some(MOVED + 7))]));
    assert!(taken.error.is_some_and(|error| error.message.contains(&format!("'{}'", MOVED + 7))));
    let free = harness.execute(NONE, true, &table.insert_unique(), table.images(&[(ROWS + 1, 1, Some(1))]));
    assert_eq!(free.error, None);
    harness.check_idle();
}

#[test]
fn a_waiter_for_a_row_of_a_long_transaction_sees_its_commit() {
    let (mut harness, table) = filled(1, 1, ROWS);
    let program = table.add_to(K, Access::AllRows, 1);
    let first = harness.execute(NONE, false, &program, table.everything());
    let add = table.add_to(K, Access::PrimaryKeys, 1);
    let waiting: Vec<_> = [1, ROWS / 2, ROWS]
        .map(|id| harness.begin_execute(TestSession::autocommit(1), &add, table.keys(&[id])))
        .to_vec();
    harness.run();
    harness.end(first.transaction, Ending::Commit);
    for operation in waiting {
        assert_eq!(harness.statement(operation).expect("the lock was granted").error, None);
    }
    let rows = table.rows(&mut harness);
    assert_eq!((rows[0].1, rows[1].1, rows[ROWS as usize - 1].1), (12, 21, ROWS * 10 + 2));
    harness.check_idle();
}

#[test]
fn a_long_transaction_is_replicated_in_pieces() {
    for (nodes, ending) in [(2, Ending::Commit), (3, Ending::Commit), (3, Ending::Rollback)] {
        let (mut harness, table) = filled(nodes, 2, ROWS);
        let before = table.rows(&mut harness);
        let mut transaction = NONE;
        let statements = [
            (table.add_to(K, Access::AllRows, 1), table.everything()),
            (table.add_to(U, Access::AllRows, MOVED), table.everything()),
            (table.delete(Access::PrimaryKeys), table.keys(&[1, 2, ROWS])),
            (table.insert_unique(), table.images(&[(2, 7, None), (ROWS + 1, 8, Some(2))])),
        ];
        for (program, parts) in statements {
            let reply = harness.execute(transaction, false, &program, parts);
            assert_eq!(reply.error, None);
            transaction = reply.transaction;
        }
        harness.end(transaction, ending);
        let mut rows: Vec<Row> = (2..ROWS).map(|id| (id, id * 10 + 1, Some(id + MOVED))).collect();
        rows[0] = (2, 7, None);
        rows.push((ROWS + 1, 8, Some(2)));
        assert_eq!(table.rows(&mut harness), if ending == Ending::Commit { rows } else { before });
        harness.check_idle();
    }
}
