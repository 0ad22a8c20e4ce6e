//! The trait of everything that can be sent, and the two ends of an encoded signal. Encoding allocates
//! nothing once the buffer has its capacity.

use std::sync::Arc;

use junctor_kernel::wire_signal::SIGNAL_BYTES_MAX;
use junctor_kernel::{Buffer, BufferPool, DecodeError, EncodeError};

use super::definition::{LinkDecoder, LinkEncoder};
use super::page::Page;
#[cfg(test)]
use super::sample::Draw;
use super::{NEXT_BYTES, THIS_VERSION};

/// The result of decoding.
pub(crate) type Result<T> = std::result::Result<T, DecodeError>;

/// Maximum number of buffers of one signal that come from the pool. The pool's buffers are larger than short
/// contents need, so their number is bounded for the case that a damaged signal has very many.
const POOLED_BUFFERS_MAX: u8 = 16;

/// Bytes that a list allocates in advance for each byte that is left of the signal. A damaged count therefore
/// cannot make a short signal allocate much.
const LIST_BYTES_PER_BYTE: usize = 16;

/// A value that can be sent to another node.
pub(crate) trait Wire: Sized {
    /// Appends the encoded value.
    fn encode(&self, writer: &mut Writer<'_>);

    /// Takes the value at the front of the reader.
    fn decode(reader: &mut Reader<'_>) -> Result<Self>;

    /// Appends a count and that many values.
    fn encode_all(items: &[Self], writer: &mut Writer<'_>) {
        writer.count(items.len());
        for item in items {
            item.encode(writer);
        }
    }

    /// Takes a count and that many values.
    fn decode_all(reader: &mut Reader<'_>) -> Result<Vec<Self>> {
        let count = reader.count()?;
        let mut items = Vec::with_capacity(capacity::<Self>(count, reader.left()));
        for _ in 0..count {
            items.push(Self::decode(reader)?);
        }
        Ok(items)
    }

    /// Appends a shared value: the value itself, or a reference to its definition on this link.
    fn encode_shared(shared: &Arc<Self>, writer: &mut Writer<'_>) {
        (**shared).encode(writer);
    }

    /// Reverses [`Wire::encode_shared`].
    fn decode_shared(reader: &mut Reader<'_>) -> Result<Arc<Self>> {
        Self::decode(reader).map(Arc::new)
    }

    /// Gives the value's buffers to the pool, after it was sent.
    fn recycle(self, buffers: &mut BufferPool) {
        let _ = buffers;
    }

    /// The name of the type on the page of signals. A structure or enum adds its description to the page.
    fn describe(page: &mut Page) -> String;

    /// A random value.
    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Self;
}

/// Number of items for which a list allocates in advance, if it claims `count` items and `left` bytes are
/// left.
fn capacity<T>(count: usize, left: usize) -> usize {
    count.min(left * LIST_BYTES_PER_BYTE / size_of::<T>().max(1) + 1)
}

/// The sending end of one signal.
pub(crate) struct Writer<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) link: &'a mut LinkEncoder,
    start: usize,
    defined: u64,
    /// Open levels of expressions.
    pub(super) levels: u32,
    refused: Option<EncodeError>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(link: &'a mut LinkEncoder, out: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { start: out.len(), defined: link.defined(), out, link, levels: 0, refused: None }
    }

    /// Ends the signal. After an error, neither the buffer nor the link has anything of it.
    pub(crate) fn end(self) -> std::result::Result<(), EncodeError> {
        if cfg!(feature = "next_version") && self.link.version > THIS_VERSION {
            self.out.extend_from_slice(NEXT_BYTES);
        }
        let length = self.out.len() - self.start;
        let refused = self.refused.or((length > SIGNAL_BYTES_MAX).then_some(EncodeError::TooLong));
        let Some(refused) = refused else { return Ok(()) };
        self.out.truncate(self.start);
        self.link.forget_from(self.defined);
        Err(refused)
    }

    /// The version of the link.
    #[allow(dead_code, reason = "only declarations with `since` use it")]
    #[inline(always)]
    pub(crate) fn version(&self) -> u16 {
        self.link.version
    }

    /// Notes that the signal needs a version; [`Writer::end`] refuses the signal if the link has a lower one.
    #[allow(dead_code, reason = "only declarations with `since` use it")]
    #[inline(always)]
    pub(crate) fn needs(&mut self, name: &'static str, since: u16) {
        let version = self.version();
        if version < since {
            self.refuse(EncodeError::UnknownToPeer { name, since, version });
        }
    }

    /// Lets [`Writer::end`] refuse the signal. The first reason counts.
    #[cold]
    pub(super) fn refuse(&mut self, reason: EncodeError) {
        self.refused.get_or_insert(reason);
    }

    /// Appends bytes as they are.
    #[inline(always)]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends a count or length: seven bits a byte, the lowest first; all bytes but the last have bit 7 set.
    #[inline(always)]
    pub(crate) fn count(&mut self, count: usize) {
        match count {
            0..0x80 => self.put(&[count as u8]),
            _ => self.long_count(count),
        }
    }

    #[inline(never)]
    fn long_count(&mut self, mut count: usize) {
        while count >= 0x80 {
            self.put(&[count as u8 | 0x80]);
            count >>= 7;
        }
        self.put(&[count as u8]);
    }

    /// Appends bytes after their length.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.put(bytes);
    }
}

/// The receiving end of one signal: its bytes that were not taken yet.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    pub(super) link: &'a mut LinkDecoder,
    pub(super) buffers: &'a mut BufferPool,
    /// Open levels of expressions.
    pub(super) levels: u32,
    pooled: u8,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(link: &'a mut LinkDecoder, bytes: &'a [u8], buffers: &'a mut BufferPool) -> Reader<'a> {
        Reader { rest: bytes, link, buffers, levels: 0, pooled: 0 }
    }

    /// Ends the signal, which must have no more bytes.
    pub(crate) fn end(mut self) -> Result<()> {
        if cfg!(feature = "next_version") && self.link.version > THIS_VERSION {
            self.rest = self.rest.strip_suffix(NEXT_BYTES).ok_or(DecodeError::Truncated)?;
        }
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError::Trailing) }
    }

    /// The version of the link.
    #[allow(dead_code, reason = "only declarations with `since` use it")]
    #[inline(always)]
    pub(crate) fn version(&self) -> u16 {
        self.link.version
    }

    /// Number of bytes that were not taken yet.
    #[inline(always)]
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The bytes that were not taken yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes bytes until `left` are left; `left` is at most [`Reader::left`].
    pub(super) fn take_until(&mut self, left: usize) {
        self.rest = &self.rest[self.rest.len() - left..];
    }

    /// Takes bytes whose number is known.
    #[inline(always)]
    pub(crate) fn take<const COUNT: usize>(&mut self) -> Result<[u8; COUNT]> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// Takes a count or length. Everything that is counted has at least one byte, so a count above the number
    /// of remaining bytes is refused.
    #[inline(always)]
    pub(crate) fn count(&mut self) -> Result<usize> {
        let [first] = self.take()?;
        let count = if first < 0x80 { usize::from(first) } else { self.long_count(first)? };
        if count > self.left() { Err(DecodeError::TooMany("items or bytes")) } else { Ok(count) }
    }

    #[inline(never)]
    fn long_count(&mut self, first: u8) -> Result<usize> {
        let mut count = usize::from(first & 0x7F);
        for shift in [7, 14, 21, 28] {
            let [byte] = self.take()?;
            count |= usize::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(count);
            }
        }
        Err(DecodeError::TooMany("items or bytes"))
    }

    /// Takes bytes after their length.
    #[inline]
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.count()?;
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Takes bytes after their length into a buffer of the pool.
    #[inline]
    pub(crate) fn buffer(&mut self) -> Result<Buffer> {
        let bytes = self.bytes()?;
        if self.pooled == POOLED_BUFFERS_MAX {
            return Ok(bytes.to_vec());
        }
        self.pooled += 1;
        let mut buffer = self.buffers.take(bytes.len());
        buffer.extend_from_slice(bytes);
        Ok(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_count_allocates_little() {
        assert_eq!(capacity::<[u8; 96]>(usize::MAX, 60), 11);
        assert_eq!(capacity::<[u8; 96]>(3, 60), 3);
        assert_eq!(capacity::<u8>(usize::MAX, 0), 1);
    }

    #[test]
    fn counts_decode_to_themselves_and_never_exceed_the_bytes_that_are_left() {
        for count in [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, 1 << 20] {
            let (mut encoder, mut out) = (LinkEncoder::new(1), Vec::new());
            Writer::new(&mut encoder, &mut out).count(count);
            let head = out.len();
            out.resize(head + count, 0);
            let (mut decoder, mut buffers) = (LinkDecoder::new(1), BufferPool::new(0));
            assert_eq!(Reader::new(&mut decoder, &out, &mut buffers).count(), Ok(count));
            if count > 0 {
                let short = &out[..head + count - 1];
                let refused = Reader::new(&mut decoder, short, &mut buffers).count();
                assert!(matches!(refused, Err(DecodeError::TooMany(_))));
            }
        }
    }

    #[test]
    fn a_signal_takes_a_bounded_number_of_buffers_from_the_pool() {
        let bytes = vec![0; 100];
        let (mut decoder, mut buffers) = (LinkDecoder::new(1), BufferPool::new(0));
        let mut reader = Reader::new(&mut decoder, &bytes, &mut buffers);
        let taken: Vec<Buffer> = (0..100).map(|_| reader.buffer().unwrap()).collect();
        let pooled = taken.iter().filter(|buffer| buffer.capacity() > 0).count();
        assert_eq!(pooled, usize::from(POOLED_BUFFERS_MAX));
    }
}
