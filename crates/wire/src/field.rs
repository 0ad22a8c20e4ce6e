//! Reads fields with bounds checks. Integers are little-endian. A string has a two-byte length prefix.

use std::fmt;

/// A payload that does not follow the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Name of the first field that could not be read.
    pub field: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Malformed communication packet: {}", self.field)
    }
}

impl std::error::Error for Malformed {}

/// A cursor over a payload.
#[derive(Clone, Copy, Debug)]
pub struct FieldReader<'a> {
    rest: &'a [u8],
}

impl<'a> FieldReader<'a> {
    /// A cursor at the start of `payload`.
    #[inline]
    pub fn new(payload: &'a [u8]) -> FieldReader<'a> {
        FieldReader { rest: payload }
    }

    /// The unread bytes.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads the next `count` bytes.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn bytes(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(Malformed { field })?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads the next `N` bytes.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed { field })?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// No byte is left.
    #[inline]
    pub fn u8(&mut self, field: &'static str) -> Result<u8, Malformed> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    /// Reads an integer of two bytes.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn u16(&mut self, field: &'static str) -> Result<u16, Malformed> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// Reads an integer of four bytes.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn u32(&mut self, field: &'static str) -> Result<u32, Malformed> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// Reads an integer of eight bytes.
    ///
    /// # Errors
    /// Fewer bytes are left.
    #[inline]
    pub fn u64(&mut self, field: &'static str) -> Result<u64, Malformed> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// Reads a string with a two-byte length prefix.
    ///
    /// # Errors
    /// The string is incomplete or not UTF-8.
    pub fn text(&mut self, field: &'static str) -> Result<&'a str, Malformed> {
        let length = usize::from(self.u16(field)?);
        std::str::from_utf8(self.bytes(length, field)?).map_err(|_| Malformed { field })
    }

    /// Reads all remaining bytes as a string.
    ///
    /// # Errors
    /// The bytes are not UTF-8.
    pub fn last_text(&mut self, field: &'static str) -> Result<&'a str, Malformed> {
        std::str::from_utf8(std::mem::take(&mut self.rest)).map_err(|_| Malformed { field })
    }

    /// Checks that the whole payload has been read.
    ///
    /// # Errors
    /// Unread bytes are left.
    pub fn expect_end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed { field: "end" }) }
    }
}

/// Appends a string with a two-byte length prefix. Returns false and appends nothing if the string has more
/// than 65,535 bytes: a truncated name would be the name of something else.
#[must_use]
pub fn encode_text(text: &str, out: &mut Vec<u8>) -> bool {
    let Ok(length) = u16::try_from(text.len()) else { return false };
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    true
}
