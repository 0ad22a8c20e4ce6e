//! Connection attributes, with which a client describes itself at login (program, library, process).

use super::error::ProtocolError;
use super::field::{FieldReader, put_length_encoded_bytes, put_length_encoded_integer};

/// Maximum length of a client's attributes in bytes.
pub const CONNECT_ATTRIBUTES_BYTES_MAX: usize = 64 * 1024;

/// Attributes that have been checked: every name and value lies inside the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectAttributes<'a> {
    bytes: &'a [u8],
}

impl<'a> ConnectAttributes<'a> {
    /// Checks `bytes`, a sequence of length-encoded names and values.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if a name or value is truncated, or if `bytes` has more than
    /// [`CONNECT_ATTRIBUTES_BYTES_MAX`] bytes.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ProtocolError> {
        const FIELD: &str = "connect_attributes";
        if bytes.len() > CONNECT_ATTRIBUTES_BYTES_MAX {
            return Err(ProtocolError::Malformed { field: FIELD });
        }
        let mut fields = FieldReader::new(bytes);
        while !fields.is_empty() {
            fields.length_encoded_bytes(FIELD)?;
            fields.length_encoded_bytes(FIELD)?;
        }
        Ok(Self { bytes })
    }

    /// Decodes the attributes at the front of `fields`. A client without attributes omits even their length.
    pub(super) fn parse(fields: &mut FieldReader<'a>) -> Result<Self, ProtocolError> {
        if fields.is_empty() {
            return Ok(Self::default());
        }
        Self::new(fields.length_encoded_bytes("connect_attributes")?)
    }

    /// Appends the attributes with their length prefix.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_length_encoded_bytes(out, self.bytes);
    }

    /// The encoded attributes, in the form that [`ConnectAttributes::new`] reads.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Names and values in the client's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut fields = FieldReader::new(self.bytes);
        std::iter::from_fn(move || {
            let name = fields.length_encoded_bytes("attribute_name").ok()?;
            Some((name, fields.length_encoded_bytes("attribute_value").ok()?))
        })
    }
}

/// Appends one attribute to `attributes`, in the form [`ConnectAttributes::new`] reads.
pub fn put_attribute(attributes: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    put_length_encoded_integer(attributes, name.len() as u64);
    attributes.extend_from_slice(name);
    put_length_encoded_bytes(attributes, value);
}
