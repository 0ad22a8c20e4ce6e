//! Numbers and byte strings in messages, values and files, little-endian.

use std::fmt;

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "malformed bytes: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// Appends a number.
pub fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Appends the length of the bytes as u32, and the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("values of the log are far below 4 GiB");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Takes numbers and byte strings from the front of a slice. Accepts any bytes.
#[derive(Debug)]
pub struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    /// A reader of these bytes.
    pub fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { rest: bytes }
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed("they end too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next number.
    ///
    /// # Errors
    /// The bytes end too early.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    /// The next byte as a flag.
    ///
    /// # Errors
    /// The bytes end too early, or the byte is neither 0 nor 1.
    pub fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("a flag is neither 0 nor 1")),
        }
    }

    /// The next number.
    ///
    /// # Errors
    /// The bytes end too early.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes were taken")))
    }

    /// The next number.
    ///
    /// # Errors
    /// The bytes end too early.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes were taken")))
    }

    /// The next byte string.
    ///
    /// # Errors
    /// The bytes end too early.
    pub fn bytes(&mut self) -> Result<&'b [u8], Malformed> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    /// A count of items that take at least `bytes_min` bytes each. A larger count than the rest of the bytes
    /// can hold is refused, so that a count never makes its reader reserve more memory than was received.
    ///
    /// # Errors
    /// The bytes end too early, or the count is too large.
    pub fn count(&mut self, bytes_min: usize) -> Result<usize, Malformed> {
        let count = self.u32()? as usize;
        if count > self.rest.len() / bytes_min {
            return Err(Malformed("a count exceeds the bytes"));
        }
        Ok(count)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &'b [u8] {
        self.rest
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// Bytes follow.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(Malformed("bytes follow the end")) }
    }
}
