//! Storage of long values: they are cut out of the row image and kept in overflow pages.
//!
//! A stored image with the overflow flag is the image without the cut ranges. The fixed part therefore keeps
//! its offsets. Then follow, for each cut, `[start in the whole image: 4][length: 4][location: 8]`, and last
//! the number of cuts (2 bytes).

use std::ops::Range;

use junctor_model::limit;
use junctor_model::row::{FLAG_OVERFLOW, RowFormat};

use crate::invariant::require;
use crate::page::{Location, Need, OutOfMemory, OverflowStore};

const CUT_BYTES: usize = 16;
const COUNT_BYTES: usize = 2;

#[derive(Clone, Copy)]
struct Cut {
    start: usize,
    length: usize,
    location: Location,
}

/// Whether an image is stored whole, without cuts.
pub(crate) fn is_inline(image: &[u8]) -> bool {
    // A value is never longer than its image, so the image's length decides alone.
    const { assert!(limit::VALUE_INLINE_BYTES_MAX >= limit::ROW_INLINE_BYTES_MAX) };
    image.len() <= limit::ROW_INLINE_BYTES_MAX
}

/// Moves the longest values of `image` to `overflow` and writes the stored form of the rest to `out`.
pub(crate) fn cut_image(
    format: &RowFormat,
    image: &[u8],
    overflow: &mut OverflowStore,
    need: Need,
    out: &mut Vec<u8>,
) -> Result<(), OutOfMemory> {
    let ranges = choose_ranges(format, image);
    out.clear();
    let mut cuts: Vec<Cut> = Vec::with_capacity(ranges.len());
    let mut at = 0;
    for range in ranges {
        let Ok(location) = overflow.put(&image[range.clone()], need) else {
            // A failed write keeps nothing.
            cuts.iter().for_each(|cut| overflow.free(cut.location));
            return Err(OutOfMemory);
        };
        out.extend_from_slice(&image[at..range.start]);
        at = range.end;
        cuts.push(Cut { start: range.start, length: range.len(), location });
    }
    out.extend_from_slice(&image[at..]);
    out[0] |= FLAG_OVERFLOW;
    for cut in &cuts {
        out.extend_from_slice(&(cut.start as u32).to_le_bytes());
        out.extend_from_slice(&(cut.length as u32).to_le_bytes());
        out.extend_from_slice(&cut.location.bits().to_le_bytes());
    }
    out.extend_from_slice(&(cuts.len() as u16).to_le_bytes());
    Ok(())
}

/// Reassembles the whole image in `out`.
pub(crate) fn join_image(stored: &[u8], overflow: &OverflowStore, out: &mut Vec<u8>) {
    out.clear();
    let mut at = 0;
    for cut in cuts_of(stored) {
        require!(cut.start >= out.len(), "the cuts of a stored image ascend");
        let kept = cut.start - out.len();
        out.extend_from_slice(&stored[at..at + kept]);
        at += kept;
        overflow.append_to(cut.location, cut.length, out);
    }
    out.extend_from_slice(&stored[at..stored.len() - trailer_bytes(stored)]);
    out[0] &= !FLAG_OVERFLOW;
}

/// Frees the overflow blocks of a stored image's values.
pub(crate) fn free_cuts(stored: &[u8], overflow: &mut OverflowStore) {
    cuts_of(stored).for_each(|cut| overflow.free(cut.location));
}

/// Number of overflow blocks that a stored image uses; for checks.
pub(crate) fn overflow_blocks(stored: &[u8], overflow: &OverflowStore) -> usize {
    cuts_of(stored).map(|cut| overflow.blocks_of(cut.location)).sum()
}

fn cuts_of(stored: &[u8]) -> impl Iterator<Item = Cut> {
    let end = stored.len() - COUNT_BYTES;
    let start = stored.len() - trailer_bytes(stored);
    stored[start..end].chunks_exact(CUT_BYTES).map(|entry| {
        let word = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().expect("4 bytes")) as usize;
        let location = u64::from_le_bytes(entry[8..16].try_into().expect("8 bytes"));
        Cut { start: word(0), length: word(4), location: Location::from_bits(location) }
    })
}

fn trailer_bytes(stored: &[u8]) -> usize {
    require!(stored.len() >= COUNT_BYTES, "a stored image with cuts ends with their count");
    let count = [stored[stored.len() - 2], stored[stored.len() - 1]];
    usize::from(u16::from_le_bytes(count)) * CUT_BYTES + COUNT_BYTES
}

/// The ranges to cut, ascending and disjoint: the longest values, until the rest is short enough.
fn choose_ranges(format: &RowFormat, image: &[u8]) -> Vec<Range<usize>> {
    let mut values: Vec<Range<usize>> =
        (0..format.var_column_count()).map(|ordinal| format.var_extent(image, ordinal, ordinal)).collect();
    values.sort_by_key(|range| (std::cmp::Reverse(range.len()), range.start));
    let mut left = image.len() + COUNT_BYTES;
    let mut chosen = Vec::new();
    for range in values {
        if left <= limit::ROW_INLINE_BYTES_MAX {
            break;
        }
        left = left + CUT_BYTES - range.len().min(left);
        chosen.push(range);
    }
    chosen.sort_by_key(|range| range.start);
    // Adjacent values become one cut, so that many short values do not need a long trailer.
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in chosen {
        match merged.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => merged.push(range),
        }
    }
    merged
}
