//! Bytes of packets.

/// `COM_QUIT`.
pub const COM_QUIT: u8 = 0x01;
/// `COM_QUERY`.
pub const COM_QUERY: u8 = 0x03;
/// `COM_STMT_PREPARE`.
pub const COM_STMT_PREPARE: u8 = 0x16;
/// `COM_STMT_EXECUTE`.
pub const COM_STMT_EXECUTE: u8 = 0x17;

const TYPE_LONGLONG: u16 = 8;

/// Appends a command's packet, sequence number 0; commands are far below 16 MiB.
pub fn push_packet(out: &mut Vec<u8>, sequence: u8, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
    out.push(sequence);
    out.extend_from_slice(payload);
}

/// Appends the packet of `COM_QUERY`.
pub fn push_query(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes()[..3]);
    out.extend_from_slice(&[0, COM_QUERY]);
    out.extend_from_slice(text.as_bytes());
}

/// Appends the packet of `COM_STMT_EXECUTE` with whole numbers as parameters.
pub fn push_execute(out: &mut Vec<u8>, statement: u32, parameters: &[i64]) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, COM_STMT_EXECUTE]);
    out.extend_from_slice(&statement.to_le_bytes());
    // No cursor; one iteration.
    out.push(0);
    out.extend_from_slice(&1_u32.to_le_bytes());
    if !parameters.is_empty() {
        out.resize(out.len() + parameters.len().div_ceil(8), 0);
        out.push(1);
        for _ in parameters {
            out.extend_from_slice(&TYPE_LONGLONG.to_le_bytes());
        }
        for parameter in parameters {
            out.extend_from_slice(&parameter.to_le_bytes());
        }
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 3].copy_from_slice(&length.to_le_bytes()[..3]);
}

/// Reads numbers and texts from the front of a packet; `None` when the packet is too short.
pub struct PacketReader<'a>(pub &'a [u8]);

impl<'a> PacketReader<'a> {
    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of `count` bytes, at most 8, least significant first.
    pub fn number(&mut self, count: usize) -> Option<u64> {
        let bytes = self.bytes(count)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A length-encoded number.
    pub fn encoded_number(&mut self) -> Option<u64> {
        match self.number(1)? {
            0xfc => self.number(2),
            0xfd => self.number(3),
            0xfe => self.number(8),
            0xfb | 0xff => None,
            small => Some(small),
        }
    }

    /// A length-encoded text.
    pub fn encoded_bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.encoded_number()?;
        self.bytes(usize::try_from(length).ok()?)
    }

    /// Bytes up to a zero, which is taken too.
    pub fn zero_ended(&mut self) -> Option<&'a [u8]> {
        let length = self.0.iter().position(|byte| *byte == 0)?;
        let taken = self.bytes(length)?;
        self.bytes(1)?;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_one_packet() {
        let mut out = Vec::new();
        push_query(&mut out, "SELECT 1");
        assert_eq!(out, b"\x09\0\0\0\x03SELECT 1");
    }

    #[test]
    fn an_execution_carries_types_and_values() {
        let mut out = Vec::new();
        push_execute(&mut out, 7, &[-1]);
        let expected = [[21, 0, 0, 0, 0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8].as_slice(), &[0], &[0xff; 8]].concat();
        assert_eq!(out[4..], expected[4..]);
        assert_eq!(usize::from(out[0]), out.len() - 4);
    }

    #[test]
    fn encoded_numbers_of_every_length_are_read() {
        for (bytes, number) in [
            (&[250][..], Some(250)),
            (&[0xfc, 1, 2], Some(0x201)),
            (&[0xfd, 1, 2, 3], Some(0x3_0201)),
            (&[0xfe, 1, 0, 0, 0, 0, 0, 0, 0], Some(1)),
            (&[0xfc, 1], None),
            (&[], None),
        ] {
            assert_eq!(PacketReader(bytes).encoded_number(), number);
        }
    }
}
