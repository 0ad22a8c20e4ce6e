//! Bounded reading of fields. Integers are little-endian; a text has its length in two bytes before it.

use std::fmt;

/// Bytes that do not hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The field that could not be read.
    pub field: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Malformed communication packet: {}", self.field)
    }
}

impl std::error::Error for Malformed {}

/// A payload, and how far it has been read.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of a payload.
    #[inline]
    pub fn new(payload: &'a [u8]) -> Fields<'a> {
        Fields { rest: payload }
    }

    /// What has not been read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next so many bytes.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn bytes(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(Malformed { field })?;
        self.rest = rest;
        Ok(bytes)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed { field })?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// One byte.
    ///
    /// # Errors
    /// There is none.
    #[inline]
    pub fn u8(&mut self, field: &'static str) -> Result<u8, Malformed> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    /// Two bytes.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn u16(&mut self, field: &'static str) -> Result<u16, Malformed> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// Four bytes.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn u32(&mut self, field: &'static str) -> Result<u32, Malformed> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// Eight bytes.
    ///
    /// # Errors
    /// There are fewer.
    #[inline]
    pub fn u64(&mut self, field: &'static str) -> Result<u64, Malformed> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// A text with its length before it.
    ///
    /// # Errors
    /// It is cut, or not UTF-8.
    pub fn text(&mut self, field: &'static str) -> Result<&'a str, Malformed> {
        let length = usize::from(self.u16(field)?);
        std::str::from_utf8(self.bytes(length, field)?).map_err(|_| Malformed { field })
    }

    /// Everything that is left, as text.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub fn last_text(&mut self, field: &'static str) -> Result<&'a str, Malformed> {
        std::str::from_utf8(std::mem::take(&mut self.rest)).map_err(|_| Malformed { field })
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// Something is.
    pub fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed { field: "end" }) }
    }
}

/// Appends a text with its length before it. False when it has more than 65,535 bytes, and then nothing is appended: the beginning of
/// a name is another name.
#[must_use]
pub fn put_text(text: &str, out: &mut Vec<u8>) -> bool {
    let Ok(length) = u16::try_from(text.len()) else { return false };
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    true
}
