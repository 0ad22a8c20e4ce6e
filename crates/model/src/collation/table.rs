//! The weight tables in the files of `tables/`: 16-bit numbers, least significant byte first.
//!
//! A header of four numbers (index entries, pages, weights of expansions, maximum weights of one character);
//! the index, with a page number for each 128 code points; the pages of 128 numbers each; the expansions.

const PAGE_BITS: u32 = 7;
const HEADER_NUMBERS: usize = 4;

/// The sizes in the header of a table file.
pub(super) struct Shape {
    pub(super) index_count: usize,
    page_count: usize,
    pub(super) expansion_count: usize,
    pub(super) weights_per_character_max: usize,
}

impl Shape {
    pub(super) const fn of(blob: &[u8]) -> Self {
        let shape = Self {
            index_count: number_at(blob, 0) as usize,
            page_count: number_at(blob, 1) as usize,
            expansion_count: number_at(blob, 2) as usize,
            weights_per_character_max: number_at(blob, 3) as usize,
        };
        assert!(blob.len() == 2 * (shape.expansions_start() + shape.expansion_count), "a table file has a wrong size");
        shape
    }

    pub(super) const fn index_start(&self) -> usize {
        HEADER_NUMBERS
    }

    pub(super) const fn pages_start(&self) -> usize {
        self.index_start() + self.index_count
    }

    pub(super) const fn page_number_count(&self) -> usize {
        self.page_count << PAGE_BITS
    }

    pub(super) const fn expansions_start(&self) -> usize {
        self.pages_start() + self.page_number_count()
    }
}

/// `COUNT` numbers of `blob` from number `start` on. Evaluated at compile time.
pub(super) const fn decode_numbers<const COUNT: usize>(blob: &[u8], start: usize) -> [u16; COUNT] {
    let mut numbers = [0; COUNT];
    let mut at = 0;
    while at < COUNT {
        numbers[at] = number_at(blob, start + at);
        at += 1;
    }
    numbers
}

/// The position of a code point's page in the index.
#[inline]
pub(super) const fn page_of(code: u32) -> usize {
    (code >> PAGE_BITS) as usize
}

/// The position of a code point among the numbers of all pages.
#[inline]
pub(super) const fn position_in(page: u16, code: u32) -> usize {
    (page as usize) << PAGE_BITS | (code as usize & ((1 << PAGE_BITS) - 1))
}

const fn number_at(blob: &[u8], position: usize) -> u16 {
    u16::from_le_bytes([blob[2 * position], blob[2 * position + 1]])
}
