//! Hot path: at most 20 instructions per key; no allocation once the buffer has its capacity.
//!
//! Encodes the input of a request for one partition: parameters, then keys, ranges or row images.
//!
//! ```text
//! input    := [parameter bytes u32] parameters  item*  
//! key      := [hash u64] [length u16] bytes
//! range    := [flags u8] [lower length u16] lower [upper length u16] upper
//! image    := [hash u64] [key length u16] [image length u32] key image
//! ```
//! All lengths are little-endian. The program determines the kind of the items.

pub use junctor_model::partition::HashedKey;

/// Flag: the range has a lower bound.
pub const RANGE_HAS_LOWER: u8 = 1;
/// Flag: the lower bound belongs to the range.
pub const RANGE_LOWER_INCLUSIVE: u8 = 2;
/// Flag: the range has an upper bound.
pub const RANGE_HAS_UPPER: u8 = 4;
/// Flag: the upper bound belongs to the range. A bound is a prefix: every key that begins with it counts as
/// equal.
pub const RANGE_UPPER_INCLUSIVE: u8 = 8;

/// Bytes of hash and length before a key.
const KEY_HEAD_BYTES: usize = 10;

/// A range of index keys. A bound shorter than the keys is a prefix of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange<'a> {
    /// Lower bound, and whether keys with this prefix belong to the range; `None` means from the first key.
    pub lower: Option<(&'a [u8], bool)>,
    /// Upper bound, and whether keys with this prefix belong to the range; `None` means to the last key.
    pub upper: Option<(&'a [u8], bool)>,
}

/// A row to insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedImage<'a> {
    /// Primary key of the row.
    pub key: HashedKey<'a>,
    /// The encoded row.
    pub image: &'a [u8],
}

/// Begins an input with its parameter bytes.
pub fn begin(input: &mut Vec<u8>, parameters: &[u8]) {
    input.clear();
    input.extend_from_slice(&(parameters.len() as u32).to_le_bytes());
    input.extend_from_slice(parameters);
}

/// Appends a key.
#[inline(always)]
pub fn push_key(input: &mut Vec<u8>, key: HashedKey<'_>) {
    let head = u128::from(key.hash) | (key.key.len() as u128 & 0xFFFF) << 64;
    match <&[u8; 4]>::try_from(key.key) {
        // The most frequent length, copied as an array of constant size.
        Ok(key) => {
            let whole = head | u128::from(u32::from_le_bytes(*key)) << (8 * KEY_HEAD_BYTES);
            input.extend_from_slice(&whole.to_le_bytes()[..KEY_HEAD_BYTES + 4]);
        }
        Err(_) => {
            input.extend_from_slice(&head.to_le_bytes()[..KEY_HEAD_BYTES]);
            input.extend_from_slice(key.key);
        }
    }
}

/// Appends a range.
pub fn push_range(input: &mut Vec<u8>, range: KeyRange<'_>) {
    let mut flags = 0;
    if let Some((_, inclusive)) = range.lower {
        flags |= RANGE_HAS_LOWER | if inclusive { RANGE_LOWER_INCLUSIVE } else { 0 };
    }
    if let Some((_, inclusive)) = range.upper {
        flags |= RANGE_HAS_UPPER | if inclusive { RANGE_UPPER_INCLUSIVE } else { 0 };
    }
    input.push(flags);
    for bound in [range.lower, range.upper] {
        let bytes = bound.map_or(&[][..], |(bytes, _)| bytes);
        input.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
        input.extend_from_slice(bytes);
    }
}

/// Appends a row to insert.
pub fn push_image(input: &mut Vec<u8>, row: KeyedImage<'_>) {
    input.extend_from_slice(&row.key.hash.to_le_bytes());
    input.extend_from_slice(&(row.key.key.len() as u16).to_le_bytes());
    input.extend_from_slice(&(row.image.len() as u32).to_le_bytes());
    input.extend_from_slice(row.key.key);
    input.extend_from_slice(row.image);
}

/// Reads an input from its beginning. Inputs are made by this module, at this node or another one, so a
/// malformed input is a defect. Reading such an input ends early, and never goes beyond its bytes.
#[derive(Clone, Copy, Debug)]
pub struct InputReader<'a> {
    bytes: &'a [u8],
    parameters: &'a [u8],
    position: usize,
}

impl<'a> InputReader<'a> {
    /// Begins at the first item.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> InputReader<'a> {
        let length = read_u32(bytes, 0).unwrap_or(0) as usize;
        let parameters = bytes.get(4..4 + length).unwrap_or(&[]);
        InputReader { bytes, parameters, position: 4 + length }
    }

    /// The parameter bytes, in the form of `expression::Parameters`.
    pub fn parameters(&self) -> &'a [u8] {
        self.parameters
    }

    /// Byte position of the next item.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Continues at an item whose position [`InputReader::position`] returned.
    pub fn seek(&mut self, position: usize) {
        self.position = position;
    }

    #[inline]
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let bytes = self.bytes.get(self.position..self.position + length)?;
        self.position += length;
        Some(bytes)
    }

    #[inline]
    fn take_u16(&mut self) -> Option<usize> {
        self.take(2).map(|bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    }

    /// Reads the next key; `None` at the end.
    #[inline]
    pub fn next_key(&mut self) -> Option<HashedKey<'a>> {
        let (head, rest) = self.bytes.get(self.position..)?.split_first_chunk::<KEY_HEAD_BYTES>()?;
        let [hash @ .., a, b] = *head;
        let length = usize::from(u16::from_le_bytes([a, b]));
        let key = rest.get(..length)?;
        self.position += KEY_HEAD_BYTES + length;
        Some(HashedKey { hash: u64::from_le_bytes(hash), key })
    }

    /// Reads the next range; `None` at the end.
    pub fn next_range(&mut self) -> Option<KeyRange<'a>> {
        let flags = self.take(1)?[0];
        let length = self.take_u16()?;
        let lower = self.take(length)?;
        let length = self.take_u16()?;
        let upper = self.take(length)?;
        Some(KeyRange {
            lower: (flags & RANGE_HAS_LOWER != 0).then_some((lower, flags & RANGE_LOWER_INCLUSIVE != 0)),
            upper: (flags & RANGE_HAS_UPPER != 0).then_some((upper, flags & RANGE_UPPER_INCLUSIVE != 0)),
        })
    }

    /// Reads the next row to insert; `None` at the end.
    pub fn next_image(&mut self) -> Option<KeyedImage<'a>> {
        let hash = u64::from_le_bytes(self.take(8)?.try_into().ok()?);
        let key_length = self.take_u16()?;
        let image_length = read_u32(self.bytes, self.position)? as usize;
        self.position += 4;
        let key = self.take(key_length)?;
        Some(KeyedImage { key: HashedKey { hash, key }, image: self.take(image_length)? })
    }
}

#[inline]
fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_decodes_to_what_was_pushed() {
        let mut input = Vec::new();
        begin(&mut input, b"parameters");
        push_key(&mut input, HashedKey { hash: 7, key: b"key" });
        push_range(&mut input, KeyRange { lower: Some((b"a", true)), upper: None });
        push_range(&mut input, KeyRange { lower: None, upper: Some((b"zz", false)) });
        push_image(&mut input, KeyedImage { key: HashedKey { hash: 9, key: b"k" }, image: b"image" });
        let mut reader = InputReader::new(&input);
        assert_eq!(reader.parameters(), b"parameters");
        assert_eq!(reader.next_key(), Some(HashedKey { hash: 7, key: b"key" }));
        assert_eq!(reader.next_range(), Some(KeyRange { lower: Some((b"a", true)), upper: None }));
        assert_eq!(reader.next_range(), Some(KeyRange { lower: None, upper: Some((b"zz", false)) }));
        let image = reader.next_image().expect("an image was pushed");
        assert_eq!((image.key.key, image.image), (&b"k"[..], &b"image"[..]));
        assert_eq!(reader.next_key(), None);
    }

    #[test]
    fn a_truncated_input_ends_the_reading() {
        let mut input = Vec::new();
        begin(&mut input, b"");
        push_key(&mut input, HashedKey { hash: 7, key: b"key" });
        for length in 0..input.len() {
            assert_eq!(InputReader::new(&input[..length]).next_key(), None);
        }
    }
}
