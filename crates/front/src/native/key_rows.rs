//! Hot path: at most 20 instructions per key.
//!
//! Joins the replies of partitions into one frame, with an index from keys to rows.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::limit::PARTITIONS_PER_TABLE_MAX;
use junctor_sql::result::{KeyRows, NO_PARTITION};
use junctor_wire::frame;
use junctor_wire::reply::{KEY_ROWS_HEADER_BYTES, NOT_FOUND, begin_key_rows, end_key_rows};

/// Writes the frame to `out`, which must be empty. If the first reply has space for the frame's header, its
/// buffer becomes the frame's buffer.
///
/// Errors: 1153 if the frame is too long, 1105 if a reply has fewer packets than keys.
pub(super) fn assemble(number: u32, status: u8, rows: &mut KeyRows, out: &mut Vec<u8>) -> Result<()> {
    let KeyRows { partition_of_key, parts, head_bytes } = rows;
    parts.sort_by_key(|(partition, ..)| *partition);
    let mut starts = [0u32; PARTITIONS_PER_TABLE_MAX as usize];
    let mut parts = parts.iter_mut().peekable();
    // The sort is stable: the replies of one partition are now adjacent, in the order in which it sent them.
    let mut last = NO_PARTITION;
    match parts.next_if(|(_, is_prefixed, _)| *is_prefixed) {
        Some((partition, _, bytes)) => {
            std::mem::swap(out, bytes);
            last = *partition;
            note_start(&mut starts, last, KEY_ROWS_HEADER_BYTES);
        }
        None => begin_key_rows(out),
    }
    out.reserve(partition_of_key.len() * 4);
    for (partition, is_prefixed, bytes) in parts {
        if *partition != last {
            last = *partition;
            note_start(&mut starts, last, out.len());
        }
        out.extend_from_slice(&bytes[if *is_prefixed { *head_bytes } else { 0 }..]);
    }
    let body_end = out.len();
    out.resize(body_end + partition_of_key.len() * 4, 0);
    let (body, index) = out.split_at_mut(body_end);
    // A partition's packets are in the order of its keys, so one cursor per partition finds the packet of
    // each key.
    for (entry, partition) in index.as_chunks_mut().0.iter_mut().zip(&*partition_of_key) {
        let mut at = NOT_FOUND;
        if let Some(start) = starts.get_mut(usize::from(*partition)) {
            let (_, length) = body.get(*start as usize..).and_then(frame::decode_header).ok_or_else(broken)?;
            if length > 0 {
                at = *start - KEY_ROWS_HEADER_BYTES as u32;
            }
            *start += (frame::HEADER_BYTES + length) as u32;
        }
        *entry = at.to_le_bytes();
    }
    if end_key_rows(number, status, partition_of_key.len(), out) { Ok(()) } else { Err(too_long()) }
}

fn note_start(starts: &mut [u32], partition: u16, at: usize) {
    if let Some(start) = starts.get_mut(usize::from(partition)) {
        *start = at as u32;
    }
}

#[cold]
fn broken() -> Box<Error> {
    Error::new(ErrorCode::UnknownError, "A reply of the data plane has too few rows")
}

#[cold]
fn too_long() -> Box<Error> {
    Error::new(ErrorCode::PacketTooLarge, "The rows of these keys are longer than one answer may be")
}

#[cfg(test)]
mod tests {
    use junctor_wire::next_frame;
    use junctor_wire::reply::{KeyRows as Parsed, Reply};

    use super::*;

    fn packet(byte: u8) -> Vec<u8> {
        vec![2, 0, 0, 0, 0, byte]
    }

    /// The last byte of the row of each key.
    fn found(rows: &mut KeyRows) -> Vec<Option<u8>> {
        let mut out = Vec::new();
        assemble(7, 1, rows, &mut out).expect("a short frame");
        let (frame, rest) = next_frame(&out).expect("a complete frame");
        let Ok((7, Reply::KeyRows(Parsed { body, index, status: 1 }))) = Reply::parse(frame) else { panic!("{out:?}") };
        assert_eq!(rest, &[] as &[u8]);
        let row = |at: &[u8; 4]| match u32::from_le_bytes(*at) {
            NOT_FOUND => None,
            at => next_frame(&body[at as usize..]).and_then(|(frame, _)| frame.payload.last().copied()),
        };
        index.iter().map(row).collect()
    }

    #[test]
    fn rows_are_in_the_order_of_their_keys_whatever_the_order_of_replies() {
        let missing = vec![0; 4];
        let head = || {
            let mut head = Vec::new();
            begin_key_rows(&mut head);
            head
        };
        let partition_of_key = vec![3, 0, NO_PARTITION, 0, 3, 3, 0];
        let three = [head(), packet(b'a'), missing.clone()].concat();
        let zero = [head(), packet(b'b'), packet(b'c')].concat();
        let parts = vec![(3, true, three), (0, true, zero), (3, false, packet(b'd')), (0, false, missing)];
        let mut rows = KeyRows { partition_of_key, parts, head_bytes: head().len() };
        assert_eq!(found(&mut rows), [Some(b'a'), Some(b'b'), None, Some(b'c'), None, Some(b'd'), None]);
    }

    #[test]
    fn keys_that_no_row_can_have_need_no_partition() {
        let mut rows = KeyRows { partition_of_key: vec![NO_PARTITION; 2], parts: Vec::new(), head_bytes: 0 };
        assert_eq!(found(&mut rows), [None, None]);
    }

    #[test]
    fn an_answer_that_lacks_packets_is_an_error() {
        let mut rows = KeyRows { partition_of_key: vec![0, 0], parts: vec![(0, false, packet(1))], head_bytes: 0 };
        assert!(assemble(7, 1, &mut rows, &mut Vec::new()).is_err());
    }
}
