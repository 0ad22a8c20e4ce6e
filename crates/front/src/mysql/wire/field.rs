//! Hot path: at most 10 instructions per field; no allocation, no formatting.
//!
//! The encodings of fields in all messages: little-endian integers, length-encoded integers and strings,
//! zero-terminated strings. [`FieldReader`] decodes a payload with bounds checks; the `put_` functions
//! encode.

use super::error::ProtocolError;

/// First byte of a length-encoded NULL.
pub const NULL_MARK: u8 = 0xfb;

/// Reads fields from the front of a payload. A field that does not lie completely inside the payload is
/// [`ProtocolError::Malformed`], with the field name that the caller passes. No length in the payload is
/// trusted.
#[derive(Debug, Clone, Copy)]
pub struct FieldReader<'a> {
    rest: &'a [u8],
}

impl<'a> FieldReader<'a> {
    /// A reader of the whole payload.
    #[inline]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// Whether the whole payload has been read.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Number of unread bytes.
    #[inline]
    pub const fn remaining_bytes(&self) -> usize {
        self.rest.len()
    }

    /// Reads all remaining bytes.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Reads `count` bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], ProtocolError> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(ProtocolError::Malformed { field }),
        }
    }

    /// Reads `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], ProtocolError> {
        match self.rest.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => Err(ProtocolError::Malformed { field }),
        }
    }

    /// Reads one byte.
    #[inline]
    pub fn u8(&mut self, field: &'static str) -> Result<u8, ProtocolError> {
        Ok(self.array::<1>(field)?[0])
    }

    /// Reads a little-endian integer of two bytes.
    #[inline]
    pub fn u16(&mut self, field: &'static str) -> Result<u16, ProtocolError> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    /// Reads a little-endian integer of four bytes.
    #[inline]
    pub fn u32(&mut self, field: &'static str) -> Result<u32, ProtocolError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    /// Reads a little-endian integer of eight bytes.
    #[inline]
    pub fn u64(&mut self, field: &'static str) -> Result<u64, ProtocolError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// Reads a length-encoded integer of one, three, four or nine bytes. The markers of NULL and of an error
    /// packet are not integers.
    #[inline]
    pub fn length_encoded_integer(&mut self, field: &'static str) -> Result<u64, ProtocolError> {
        match self.u8(field)? {
            small @ 0..=0xfa => Ok(u64::from(small)),
            0xfc => Ok(u64::from(self.u16(field)?)),
            0xfd => {
                let [low, middle, high] = self.array(field)?;
                Ok(u64::from(u32::from_le_bytes([low, middle, high, 0])))
            }
            0xfe => self.u64(field),
            NULL_MARK | 0xff => Err(ProtocolError::Malformed { field }),
        }
    }

    /// Reads a byte string with a length prefix.
    #[inline]
    pub fn length_encoded_bytes(&mut self, field: &'static str) -> Result<&'a [u8], ProtocolError> {
        let length = self.length_encoded_integer(field)?;
        match usize::try_from(length) {
            Ok(length) => self.bytes(length, field),
            Err(_) => Err(ProtocolError::Malformed { field }),
        }
    }

    /// Reads a byte string with a length prefix, or NULL.
    #[inline]
    pub fn length_encoded_nullable(&mut self, field: &'static str) -> Result<Option<&'a [u8]>, ProtocolError> {
        if self.rest.first() == Some(&NULL_MARK) {
            self.rest = &self.rest[1..];
            return Ok(None);
        }
        self.length_encoded_bytes(field).map(Some)
    }

    /// Reads a byte string up to its terminating zero byte, which is not returned.
    pub fn zero_terminated(&mut self, field: &'static str) -> Result<&'a [u8], ProtocolError> {
        match self.rest.iter().position(|&byte| byte == 0) {
            Some(length) => {
                let taken = &self.rest[..length];
                self.rest = &self.rest[length + 1..];
                Ok(taken)
            }
            None => Err(ProtocolError::Malformed { field }),
        }
    }

    /// Reads a byte string up to its zero byte, or to the end of the payload: some clients omit the last
    /// zero.
    pub fn zero_terminated_or_rest(&mut self) -> &'a [u8] {
        match self.rest.iter().position(|&byte| byte == 0) {
            Some(length) => {
                let taken = &self.rest[..length];
                self.rest = &self.rest[length + 1..];
                taken
            }
            None => self.rest(),
        }
    }
}

/// Appends a little-endian integer of two bytes.
#[inline]
pub fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a little-endian integer of four bytes.
#[inline]
pub fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a little-endian integer of eight bytes.
#[inline]
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends an integer in the shortest of its length-encoded forms.
#[inline]
pub fn put_length_encoded_integer(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => out.extend_from_slice(&[0xfc, bytes[0], bytes[1]]),
        0x1_0000..=0xff_ffff => out.extend_from_slice(&[0xfd, bytes[0], bytes[1], bytes[2]]),
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a byte string with a length prefix.
#[inline]
pub fn put_length_encoded_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length_encoded_integer(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a byte string and a zero byte. The string is truncated at its first zero, which the encoding
/// cannot represent.
pub fn put_zero_terminated(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    out.extend_from_slice(&bytes[..length]);
    out.push(0);
}
