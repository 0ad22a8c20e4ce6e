//! Frames and page tables as bytes.

use junctor_model::id::{CommitNumber, PartitionId, SchemaVersion, TableId};
use proptest::prelude::*;

use super::*;
use crate::bytes::{checksum_without, u32_at, u64_at};

const HEADER: FrameHeader = FrameHeader {
    partition: PartitionId { table: TableId(9), index: 3 },
    row_format: SchemaVersion(4),
    page: 7,
    begin: CommitNumber(80),
    part: 0,
    is_whole: true,
    is_last: false,
};

/// A frame with two cells, one of them continued, at byte 5,000 of file 6.
fn sample() -> (Vec<u8>, FrameLocation, u32) {
    let mut builder = FrameBuilder::new();
    builder.begin(FrameHeader { part: 1, ..HEADER });
    assert_eq!(builder.continue_row(b"end"), 3);
    builder.begin_cell(1, None);
    assert_eq!(builder.put(70, CommitNumber(5), b"image"), 5);
    builder.begin_cell(2, Some(0b101));
    builder.put(128, CommitNumber(6), b"first");
    builder.put(130, CommitNumber(7), b"");
    builder.set_last();
    let (location, checksum, row_count) = builder.seal(6, 5_000);
    assert_eq!(row_count, 3);
    (builder.sealed().to_vec(), location, checksum)
}

#[test]
fn a_frame_gives_back_what_was_put_in() {
    let (bytes, location, checksum) = sample();
    let frame = decode_frame(&bytes).unwrap();
    assert_eq!(frame.header, FrameHeader { part: 1, is_last: true, ..HEADER });
    assert_eq!((frame.location, frame.checksum), (location, checksum));
    assert_eq!((frame.continued, frame.row_count), (&b"end"[..], 3));
    let cells: Vec<_> = frame.cells().collect();
    assert_eq!(cells.iter().map(|cell| (cell.cell, cell.live)).collect::<Vec<_>>(), [(1, None), (2, Some(5))]);
    let rows: Vec<_> = cells.iter().flat_map(Cell::rows).map(|row| (row.row, row.number.0, row.image)).collect();
    assert_eq!(rows, [(70, 5, &b"image"[..]), (128, 6, b"first"), (130, 7, b"")]);
}

#[test]
fn a_frame_has_the_bytes_of_the_format_page() {
    let (bytes, location, checksum) = sample();
    assert_eq!((&bytes[..4], u32_at(&bytes, 4), u32_at(&bytes, 8)), (&b"JCKF"[..], checksum, location.length));
    assert_eq!(bytes[12..16], [1, 0, 3, 0]);
    assert_eq!((u32_at(&bytes, 16), u32_at(&bytes, 20), u64_at(&bytes, 24)), (6, 1, 5_000));
    assert_eq!((u32_at(&bytes, 32), &bytes[36..40], u32_at(&bytes, 40)), (9, &[3, 0, 3, 0][..], 7));
    assert_eq!((u32_at(&bytes, 44), u64_at(&bytes, 48), u32_at(&bytes, 56)), (4, 80, 3));
    assert_eq!(bytes[60..80], [0; 20]);
    assert_eq!(bytes[80..83], *b"end");
    assert_eq!(bytes[83..99], [1, 1, 1, 0, 19, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[99..118], *b"\x46\0\x05\0\0\0\x05\0\0\0\0\0\0\0image");
    assert_eq!(bytes[118..134], [2, 0, 2, 0, 33, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes.len(), 134 + 33);
}

#[test]
fn a_row_continues_when_the_frame_is_full() {
    let image = vec![7; FRAME_BYTES_MAX];
    let mut builder = FrameBuilder::new();
    builder.begin(HEADER);
    builder.begin_cell(0, Some(1));
    assert!(builder.fits_row(image.len()));
    let placed = builder.put(0, CommitNumber(1), &image);
    assert!(!builder.fits_row(0) && !builder.fits_cell());
    let (location, ..) = builder.seal(1, 0);
    assert_eq!(location.length as usize, FRAME_BYTES_MAX);
    let frame = decode_frame(builder.sealed()).unwrap();
    let rows: Vec<_> = frame.cells().flat_map(|cell| cell.rows()).collect();
    assert_eq!((rows[0].image_bytes as usize, rows[0].image), (image.len(), &image[..placed]));
    builder.begin(FrameHeader { part: 1, ..HEADER });
    assert_eq!(builder.continue_row(&image[placed..]), image.len() - placed);
    builder.set_last();
    builder.seal(1, u64::from(location.length));
    assert_eq!(decode_frame(builder.sealed()).unwrap().continued, &image[placed..]);
}

fn sample_table() -> Vec<u8> {
    let frame = |file, offset, is_first| StoredFrame {
        location: FrameLocation { file, offset, length: 300 },
        checksum: file + 1,
        row_count: 12,
        is_first,
    };
    let header = PageTableHeader { partition: HEADER.partition, begin: CommitNumber(80) };
    let pages = [
        (2, CommitNumber(70), vec![frame(1, 0, true), frame(1, 300, false), frame(3, 0, true)]),
        (5, CommitNumber(75), vec![]),
        (1 << 18, CommitNumber(80), vec![frame(4, 1 << 40, true)]),
    ];
    // The table may follow other bytes.
    let mut bytes = vec![1, 2];
    let checksum = encode_page_table(&header, pages.clone().into_iter(), &mut bytes);
    assert_eq!(checksum, u32_at(&bytes, 6));
    bytes.drain(..2);
    let (decoded, entries) = decode_page_table(&bytes).unwrap();
    assert_eq!(decoded, header);
    let expected = pages.into_iter().filter(|(.., frames)| !frames.is_empty());
    let expected: Vec<_> = expected.map(|(page, written, frames)| PageEntries { page, written, frames }).collect();
    assert_eq!(entries, expected);
    bytes
}

#[test]
fn a_page_table_gives_back_what_was_put_in_and_has_the_bytes_of_the_format_page() {
    let bytes = sample_table();
    assert_eq!((&bytes[..4], u32_at(&bytes, 8)), (&b"JCPT"[..], 32 + 16 * 2 + 24 * 4));
    assert_eq!(bytes[12..24], [1, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0]);
    assert_eq!((u64_at(&bytes, 24), u32_at(&bytes, 32), u32_at(&bytes, 36), u64_at(&bytes, 40)), (80, 2, 3, 70));
    assert_eq!((u64_at(&bytes, 48), u32_at(&bytes, 56), u32_at(&bytes, 60), u32_at(&bytes, 64)), (0, 1, 300, 2));
    assert_eq!(bytes[68..72], [12, 0, 1, 0]);
}

/// Makes the checksum of changed bytes right.
fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = checksum_without(&bytes, 4);
    bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn other_versions_and_tables_out_of_order_are_refused() {
    for decode in [|bytes: &[u8]| decode_frame(bytes).err(), |bytes: &[u8]| decode_page_table(bytes).err()] {
        for mut bytes in [sample().0, sample_table()] {
            bytes[12] = 2;
            let error = decode(&seal(bytes));
            assert!(matches!(error, Some(CheckpointError::UnknownVersion(2) | CheckpointError::Damaged)));
        }
    }
    let mut bytes = sample_table();
    // The first page has the number of the second one.
    bytes[34] = 4;
    assert_eq!(decode_page_table(&seal(bytes)).err(), Some(CheckpointError::Damaged));
}

proptest! {
    #[test]
    fn a_flipped_bit_is_noticed(at in 0usize..167, bit in 0u8..8) {
        let (mut bytes, ..) = sample();
        bytes[at] ^= 1 << bit;
        prop_assert!(decode_frame(&bytes).is_err());
        let mut bytes = sample_table();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(decode_page_table(&bytes).is_err());
    }

    #[test]
    fn bytes_with_a_right_checksum_and_no_meaning_give_no_panic(
        (at, bytes) in (12usize..167, proptest::collection::vec(any::<u8>(), 1..20)),
    ) {
        let (mut frame, ..) = sample();
        let mut table = sample_table();
        for (offset, byte) in bytes.iter().enumerate() {
            if let Some(old) = frame.get_mut(at + offset) {
                *old = *byte;
            }
            if let Some(old) = table.get_mut(at + offset) {
                *old = *byte;
            }
        }
        if let Ok(frame) = decode_frame(&seal(frame)) {
            frame.cells().flat_map(|cell| cell.rows()).for_each(drop);
        }
        _ = decode_page_table(&seal(table));
    }
}
