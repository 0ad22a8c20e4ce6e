//! The contract between the kernel and a program whose signals cross nodes.
//!
//! A link carries signals one way between two nodes. Its two ends have states, an encoder and a decoder, that
//! change with each signal: a signal can refer to something that an earlier one has defined. The decoder
//! therefore gets every encoded signal, once and in order. When a link loses a signal or refuses one, both
//! ends begin with new states.
//!
//! On a link, signals follow each other as records: `[length u32][to u32][from u32] signal`. The length
//! counts the bytes after it. Addresses have the form of [`Address::to_bits`]. All numbers are little-endian.

use std::fmt;
use std::ops::RangeInclusive;

use crate::address::Address;
use crate::block::{Endpoints, Signal};
use crate::buffer::BufferPool;
use crate::invariant::fail;
use crate::module::ModuleId;
use crate::require;

/// Maximum number of bytes of an encoded signal.
pub const SIGNAL_BYTES_MAX: usize = 1 << 30;

/// Bytes of a record before the signal.
pub const RECORD_HEADER_BYTES: usize = 12;

/// A signal type whose values can be sent to other nodes.
pub trait WireSignal: Signal {
    /// The sending end of a link.
    type Encoder: Send;

    /// The receiving end of a link.
    type Decoder: Send;

    /// The versions of the encoding that this program speaks. A link uses the highest one that both ends
    /// speak.
    const VERSIONS: RangeInclusive<u16>;

    /// The fingerprint of the layouts of all signals in one of these versions. Two programs that have
    /// different ones refuse each other.
    fn layouts(version: u16) -> u64;

    /// The sending end of a new link.
    fn encoder(version: u16) -> Self::Encoder;

    /// The receiving end of a new link.
    fn decoder(version: u16) -> Self::Decoder;

    /// Appends the encoded signal. A signal that never leaves its node breaks an invariant.
    ///
    /// # Errors
    /// The peer's version does not know the signal or a part of it, or the signal is too long. `out` is as
    /// before then, and the link can go on.
    fn encode(&self, link: &mut Self::Encoder, out: &mut Vec<u8>) -> Result<(), EncodeError>;

    /// The signal that the bytes encode. Accepts any bytes.
    ///
    /// # Errors
    /// The bytes are not exactly one signal. The link cannot go on then.
    fn decode(link: &mut Self::Decoder, bytes: &[u8], buffers: &mut BufferPool) -> Result<Self, DecodeError>;

    /// Whether blocks of this module handle the signal.
    fn is_for(&self, module: ModuleId) -> bool;

    /// Gives the buffers of a signal that was encoded back to the pool.
    fn recycle(self, buffers: &mut BufferPool) {
        let _ = buffers;
    }
}

/// Both ends of a simulated link.
pub(crate) trait LinkEnds<S> {
    /// The record of a signal, whose buffers return to the sender's pool.
    fn encode(&mut self, endpoints: Endpoints, signal: S, buffers: &mut BufferPool) -> Vec<u8>;

    /// The signal of the next record.
    fn decode(&mut self, record: &[u8], buffers: &mut BufferPool) -> (Endpoints, S);
}

/// Makes the ends of simulated links. Without it, a simulation hands signals to other nodes as they are.
pub struct LinkMaker<S> {
    make: fn() -> Box<dyn LinkEnds<S>>,
}

impl<S: WireSignal> LinkMaker<S> {
    /// Makes links that encode signals in the newest version.
    pub fn newest() -> LinkMaker<S> {
        LinkMaker {
            make: || {
                let version = *S::VERSIONS.end();
                Box::new(Ends::<S> { encoder: S::encoder(version), decoder: S::decoder(version) })
            },
        }
    }
}

impl<S> LinkMaker<S> {
    pub(crate) fn make(&self) -> Box<dyn LinkEnds<S>> {
        (self.make)()
    }
}

struct Ends<S: WireSignal> {
    encoder: S::Encoder,
    decoder: S::Decoder,
}

impl<S: WireSignal> LinkEnds<S> for Ends<S> {
    fn encode(&mut self, endpoints: Endpoints, signal: S, buffers: &mut BufferPool) -> Vec<u8> {
        let mut record = Vec::new();
        let encoded = append_record(endpoints, &signal, &mut self.encoder, &mut record);
        require!(encoded.is_ok(), "the newest version knows {} completely: {encoded:?}", signal.name());
        signal.recycle(buffers);
        record
    }

    fn decode(&mut self, mut record: &[u8], buffers: &mut BufferPool) -> (Endpoints, S) {
        match take_record(&mut record, &mut self.decoder, buffers) {
            Ok(taken) if record.is_empty() => taken,
            Ok((_, signal)) => {
                fail("a record is one signal", format_args!("{} bytes follow {}", record.len(), signal.name()))
            }
            Err(error) => fail("a record decodes", format_args!("{error}")),
        }
    }
}

/// Why a signal cannot be sent on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The version of the link is lower than the first one that knows the signal, or a part of it.
    UnknownToPeer {
        /// The signal, or the part of it.
        name: &'static str,
        /// The first version that knows it.
        since: u16,
        /// The version of the link.
        version: u16,
    },
    /// The signal would have more than [`SIGNAL_BYTES_MAX`] bytes, or its parts are nested more deeply than a
    /// receiver accepts.
    TooLong,
}

/// Why bytes are not a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end within the signal.
    Truncated,
    /// Bytes follow the signal.
    Trailing,
    /// No signal of the link's version has this number.
    UnknownSignal(u16),
    /// A kind, an alternative or a flag has a number without a meaning.
    UnknownTag {
        /// The kind of thing that the number stands for.
        name: &'static str,
        /// The number.
        tag: u32,
    },
    /// A count or length is above what the remaining bytes can hold, or above its maximum.
    TooMany(&'static str),
    /// Parts are nested too deeply.
    TooDeep,
    /// The signal refers to something that was not defined on this link, or no longer is, or is of another
    /// kind.
    UnknownDefinition(u32),
    /// A part is well-formed and has no meaning.
    Invalid(&'static str),
    /// An address names no possible block, or one that does not handle the signal.
    WrongReceiver,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::UnknownToPeer { name, since, version } => {
                write!(formatter, "{name} needs version {since} of the signals, and the link has version {version}")
            }
            EncodeError::TooLong => formatter.write_str("a signal is too long or nested too deeply"),
        }
    }
}

impl std::error::Error for EncodeError {}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Truncated => formatter.write_str("the signal is truncated"),
            DecodeError::Trailing => formatter.write_str("bytes follow the signal"),
            DecodeError::UnknownSignal(number) => write!(formatter, "signal {number:#06x} is unknown"),
            DecodeError::UnknownTag { name, tag } => write!(formatter, "{name} has the unknown number {tag}"),
            DecodeError::TooMany(name) => write!(formatter, "a count of {name} is too high"),
            DecodeError::TooDeep => formatter.write_str("parts of the signal are nested too deeply"),
            DecodeError::UnknownDefinition(number) => write!(formatter, "definition {number} is unknown"),
            DecodeError::Invalid(name) => write!(formatter, "{name} is invalid"),
            DecodeError::WrongReceiver => formatter.write_str("the signal is for another module"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Appends the record of a signal.
///
/// # Errors
/// As [`WireSignal::encode`]; `out` is as before then.
pub fn append_record<S: WireSignal>(
    endpoints: Endpoints,
    signal: &S,
    link: &mut S::Encoder,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let start = out.len();
    let addresses = u64::from(endpoints.to.to_bits()) | u64::from(endpoints.from.to_bits()) << 32;
    out.extend_from_slice(&(u128::from(addresses) << 32).to_le_bytes()[..RECORD_HEADER_BYTES]);
    if let Err(error) = signal.encode(link, out) {
        out.truncate(start);
        return Err(error);
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Decodes the record at the front of `input`, and moves `input` behind it. The receiver is a possible block
/// that handles such signals. The caller checks that it exists, and that the sender belongs to the link.
///
/// # Errors
/// The bytes are not a record. The link cannot go on then.
pub fn take_record<S: WireSignal>(
    input: &mut &[u8],
    link: &mut S::Decoder,
    buffers: &mut BufferPool,
) -> Result<(Endpoints, S), DecodeError> {
    let (length, rest) = take_u32(input)?;
    let (record, rest) = rest.split_at_checked(length as usize).ok_or(DecodeError::Truncated)?;
    let (to, record) = take_u32(record)?;
    let (from, record) = take_u32(record)?;
    let (Some(to), Some(from)) = (Address::from_bits(to), Address::from_bits(from)) else {
        return Err(DecodeError::WrongReceiver);
    };
    let signal = S::decode(link, record, buffers)?;
    if !signal.is_for(to.module) {
        return Err(DecodeError::WrongReceiver);
    }
    *input = rest;
    Ok((Endpoints { to, from }, signal))
}

/// The number of the first signal in these records; 0 if they end before it.
pub fn signal_number(records: &[u8]) -> u16 {
    records.get(12..14).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
}

fn take_u32(bytes: &[u8]) -> Result<(u32, &[u8]), DecodeError> {
    let (number, rest) = bytes.split_first_chunk::<4>().ok_or(DecodeError::Truncated)?;
    Ok((u32::from_le_bytes(*number), rest))
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;
    use crate::address::NodeId;
    use crate::toy::{ECHO, PLAYER, ToySignal};

    const FROM_PLAYER_TO_PLAYER: Endpoints = Endpoints {
        to: Address { node: NodeId(2), module: PLAYER, instance: 3 },
        from: Address { node: NodeId(1), module: PLAYER, instance: 0 },
    };

    fn take(mut input: &[u8]) -> Result<(Endpoints, ToySignal, usize), DecodeError> {
        let mut buffers = BufferPool::new(1 << 20);
        let (endpoints, signal) = take_record(&mut input, &mut ToySignal::decoder(1), &mut buffers)?;
        Ok((endpoints, signal, input.len()))
    }

    fn two_records() -> (Vec<u8>, usize) {
        let mut out = Vec::new();
        append_record(FROM_PLAYER_TO_PLAYER, &ToySignal::Ball(7), &mut (), &mut out).expect("a ball is known");
        let first = out.len();
        append_record(FROM_PLAYER_TO_PLAYER, &ToySignal::Numbered(8), &mut (), &mut out).expect("a number is known");
        (out, first)
    }

    #[test]
    fn records_are_taken_one_by_one() {
        let (bytes, first) = two_records();
        let (endpoints, signal, left) = take(&bytes).expect("the first record");
        assert_eq!((endpoints, left), (FROM_PLAYER_TO_PLAYER, bytes.len() - first));
        assert!(matches!(signal, ToySignal::Ball(7)));
        assert!(matches!(take(&bytes[first..]), Ok((_, ToySignal::Numbered(8), 0))));
    }

    #[test]
    fn a_truncated_record_is_refused_at_every_length() {
        let (bytes, first) = two_records();
        for length in 0..first {
            assert!(matches!(take(&bytes[..length]), Err(DecodeError::Truncated)), "{length} bytes");
        }
    }

    #[test]
    fn a_record_for_a_block_that_does_not_handle_the_signal_is_refused() {
        let (bytes, first) = two_records();
        for module in [ECHO.number(), 16, 255] {
            let mut bytes = bytes[..first].to_vec();
            bytes[5] = module;
            assert!(matches!(take(&bytes), Err(DecodeError::WrongReceiver)), "module {module}");
        }
    }

    #[test]
    fn a_length_beyond_the_signal_is_refused() {
        let (mut bytes, first) = two_records();
        bytes[0] += 1;
        assert!(matches!(take(&bytes), Err(DecodeError::Trailing)));
        bytes[0] -= 2;
        assert!(matches!(take(&bytes[..first]), Err(DecodeError::Truncated)));
    }
}
