use junctor_model::id::{CommitNumber, PartitionId, RowId, SchemaVersion, TableId, TransactionId};
use proptest::prelude::*;

use super::REDO_VERSION;
use super::{REDO_RECORD_BYTES_MAX, RedoBuffer, RedoError, RedoHeader, RedoOperation, RedoRecords};

fn header(number: u64) -> RedoHeader {
    RedoHeader {
        commit_number: CommitNumber(number),
        transaction: TransactionId(number << 40 | 5),
        participant_count: 2,
        partition: PartitionId { table: TableId(number as u32 + 9), index: 3 },
        schema_version: SchemaVersion(4),
    }
}

fn sample() -> Vec<u8> {
    let mut buffer = RedoBuffer::new();
    for number in 1..4 {
        buffer.begin(header(number));
        buffer.put(RowId(number as u32), b"an image");
        buffer.delete(RowId(7), b"key");
        buffer.end();
    }
    assert_eq!(buffer.record_count(), 3);
    buffer.take(Vec::new())
}

#[test]
fn records_say_what_was_written() {
    let bytes = sample();
    let records: Vec<_> = RedoRecords::new(&bytes).map(Result::unwrap).collect();
    assert_eq!(records.len(), 3);
    for (record, number) in records.iter().zip(1..) {
        assert_eq!(record.header, header(number));
        assert!(!record.is_continued);
        let operations: Vec<_> = record.operations().collect();
        let put = RedoOperation::Put { row: RowId(number as u32), image: b"an image" };
        assert_eq!(operations, [put, RedoOperation::Delete { row: RowId(7), key: b"key" }]);
    }
}

#[test]
fn a_record_has_the_bytes_of_the_format_page() {
    let bytes = sample();
    assert_eq!(bytes[8..12], [2, 0, 3, 0]);
    assert_eq!(bytes[12..16], 10u32.to_le_bytes());
    assert_eq!(bytes[24..32], 1u64.to_le_bytes());
    assert_eq!(bytes[40..56], [2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0]);
    assert_eq!(bytes[..4], (44 + 12 + 8 + 12 + 3u32).to_le_bytes());
}

#[test]
fn room_not_written_yet_is_the_end() {
    let mut bytes = sample();
    bytes.resize(bytes.len() + 4096, 0);
    assert_eq!(RedoRecords::new(&bytes).map(Result::unwrap).count(), 3);
}

#[test]
fn a_record_may_be_continued_after_those_of_others() {
    let mut buffer = RedoBuffer::new();
    buffer.begin(header(1));
    buffer.put(RowId(1), b"one");
    buffer.end_continued();
    buffer.begin(header(2));
    buffer.end();
    buffer.begin(header(1));
    buffer.end();
    let bytes = buffer.take(Vec::new());
    let seen = RedoRecords::new(&bytes).map(Result::unwrap).map(|record| (record.header, record.is_continued));
    assert_eq!(seen.collect::<Vec<_>>(), [(header(1), true), (header(2), false), (header(1), false)]);
}

#[test]
fn a_long_transaction_takes_several_records() {
    let mut buffer = RedoBuffer::new();
    buffer.begin(header(1));
    let image = vec![5; 400_000];
    (0..5).for_each(|row| buffer.put(RowId(row), &image));
    buffer.put(RowId(9), &vec![6; 3 * REDO_RECORD_BYTES_MAX]);
    assert_eq!(RedoRecords::new(buffer.bytes()).count(), buffer.record_count());
    let bytes = buffer.take(Vec::new());
    let records: Vec<_> = RedoRecords::new(&bytes).map(Result::unwrap).collect();
    let continued: Vec<bool> = records.iter().map(|record| record.is_continued).collect();
    assert_eq!(continued, [true, true, true, false]);
    let counts: Vec<usize> = records.iter().map(|record| record.operations().count()).collect();
    assert_eq!(counts, [2, 2, 1, 1]);
    assert!(records.iter().all(|record| record.header == header(1)));
}

#[test]
fn another_version_is_refused() {
    let mut buffer = RedoBuffer::new();
    buffer.begin(header(1));
    let mut bytes = buffer.take(Vec::new());
    for version in [0, 1, REDO_VERSION + 1] {
        bytes[8] = version;
        let checksum = super::record::checksum(&bytes);
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(RedoRecords::new(&bytes).next().unwrap().err(), Some(RedoError::UnknownVersion(version)));
    }
}

proptest! {
    #[test]
    fn a_cut_stream_gives_whole_records_and_then_says_torn(cut in 1usize..200) {
        let bytes = sample();
        let record_bytes = bytes.len() / 3;
        let cut = cut.min(bytes.len() - 1);
        let read: Vec<_> = RedoRecords::new(&bytes[..cut]).collect();
        let whole = cut / record_bytes;
        prop_assert!(read[..whole].iter().all(Result::is_ok));
        prop_assert_eq!(read.len(), whole + usize::from(cut % record_bytes != 0));
        if let Some(Err(error)) = read.last() {
            prop_assert_eq!(*error, RedoError::Torn);
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed(at in 0usize..237, bit in 0u8..8) {
        let mut bytes = sample();
        prop_assume!(at < bytes.len());
        let record = at / (bytes.len() / 3);
        bytes[at] ^= 1 << bit;
        let read: Vec<_> = RedoRecords::new(&bytes).collect();
        prop_assert!(read[record].is_err());
        prop_assert_eq!(read.len(), record + 1);
    }

    #[test]
    fn bytes_of_no_meaning_give_an_error_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 1..300)) {
        for record in RedoRecords::new(&bytes) {
            prop_assert!(record.is_err());
        }
    }
}
