//! Storage of long values: they are removed from the row image and stored in overflow pages.
//!
//! A stored image with the overflow flag is the image without the ranges that are in overflow pages. The
//! offsets in its fixed part still refer to the whole image. A trailer follows: `[start in the whole image:
//! 4][length: 4][location: 8]` for each range, and last the number of ranges (2 bytes).

use std::ops::Range;

use junctor_model::limit;
use junctor_model::row::{FLAG_OVERFLOW, RowFormat};

use crate::invariant::require;
use crate::page::{Location, MemoryNeed, OutOfMemory, OverflowStore};

/// Bytes of a range in the trailer.
const RANGE_BYTES: usize = 16;
const COUNT_BYTES: usize = 2;

/// A range of the image whose bytes are in overflow pages.
#[derive(Clone, Copy)]
struct OverflowRange {
    start: usize,
    length: usize,
    location: Location,
}

/// Whether an image is stored whole.
pub(crate) fn is_inline(image: &[u8]) -> bool {
    // A value is never longer than its image, so the length of the image alone decides.
    const { assert!(limit::VALUE_INLINE_BYTES_MAX >= limit::ROW_INLINE_BYTES_MAX) };
    image.len() <= limit::ROW_INLINE_BYTES_MAX
}

/// Moves the longest values of `image` to `overflow`, and writes the stored form of the remainder to `out`.
pub(crate) fn move_to_overflow(
    format: &RowFormat,
    image: &[u8],
    overflow: &mut OverflowStore,
    need: MemoryNeed,
    out: &mut Vec<u8>,
) -> Result<(), OutOfMemory> {
    let ranges = choose_ranges(format, image);
    out.clear();
    let mut moved: Vec<OverflowRange> = Vec::with_capacity(ranges.len());
    let mut at = 0;
    for range in ranges {
        let Ok(location) = overflow.put(&image[range.clone()], need) else {
            // A failed write must leave no overflow blocks behind.
            moved.iter().for_each(|range| overflow.free(range.location));
            return Err(OutOfMemory);
        };
        out.extend_from_slice(&image[at..range.start]);
        at = range.end;
        moved.push(OverflowRange { start: range.start, length: range.len(), location });
    }
    out.extend_from_slice(&image[at..]);
    out[0] |= FLAG_OVERFLOW;
    for range in &moved {
        out.extend_from_slice(&(range.start as u32).to_le_bytes());
        out.extend_from_slice(&(range.length as u32).to_le_bytes());
        out.extend_from_slice(&range.location.bits().to_le_bytes());
    }
    out.extend_from_slice(&(moved.len() as u16).to_le_bytes());
    Ok(())
}

/// Reassembles the whole image in `out`.
pub(crate) fn reassemble_image(stored: &[u8], overflow: &OverflowStore, out: &mut Vec<u8>) {
    out.clear();
    let mut at = 0;
    for range in overflow_ranges(stored) {
        require!(range.start >= out.len(), "the overflow ranges of a stored image ascend");
        let kept = range.start - out.len();
        out.extend_from_slice(&stored[at..at + kept]);
        at += kept;
        overflow.append_to(range.location, range.length, out);
    }
    out.extend_from_slice(&stored[at..stored.len() - trailer_bytes(stored)]);
    out[0] &= !FLAG_OVERFLOW;
}

/// Frees the overflow blocks of a stored image's values.
pub(crate) fn free_overflow(stored: &[u8], overflow: &mut OverflowStore) {
    overflow_ranges(stored).for_each(|range| overflow.free(range.location));
}

/// Number of overflow blocks that a stored image uses; for checks.
pub(crate) fn overflow_blocks(stored: &[u8], overflow: &OverflowStore) -> usize {
    overflow_ranges(stored).map(|range| overflow.blocks_of(range.location)).sum()
}

fn overflow_ranges(stored: &[u8]) -> impl Iterator<Item = OverflowRange> {
    let end = stored.len() - COUNT_BYTES;
    let start = stored.len() - trailer_bytes(stored);
    stored[start..end].chunks_exact(RANGE_BYTES).map(|entry| {
        let word = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().expect("4 bytes")) as usize;
        let location = u64::from_le_bytes(entry[8..16].try_into().expect("8 bytes"));
        OverflowRange { start: word(0), length: word(4), location: Location::from_bits(location) }
    })
}

fn trailer_bytes(stored: &[u8]) -> usize {
    require!(stored.len() >= COUNT_BYTES, "a stored image with overflow ranges ends with their count");
    let count = [stored[stored.len() - 2], stored[stored.len() - 1]];
    usize::from(u16::from_le_bytes(count)) * RANGE_BYTES + COUNT_BYTES
}

/// The ranges to move, ascending and disjoint: the longest values, until the remainder is short enough.
fn choose_ranges(format: &RowFormat, image: &[u8]) -> Vec<Range<usize>> {
    let mut values: Vec<Range<usize>> =
        (0..format.var_column_count()).map(|ordinal| format.var_extent(image, ordinal, ordinal)).collect();
    // The values of added columns move together.
    values.extend(Some(format.added_extent(image)).filter(|added| !added.is_empty()));
    values.sort_by_key(|range| (std::cmp::Reverse(range.len()), range.start));
    let mut left = image.len() + COUNT_BYTES;
    let mut chosen = Vec::new();
    for range in values {
        if left <= limit::ROW_INLINE_BYTES_MAX {
            break;
        }
        left = left + RANGE_BYTES - range.len().min(left);
        chosen.push(range);
    }
    chosen.sort_by_key(|range| range.start);
    // Adjacent values become one range, so that many short values do not need a long trailer.
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in chosen {
        match merged.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => merged.push(range),
        }
    }
    merged
}
