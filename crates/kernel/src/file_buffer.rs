//! A buffer of bytes that are read from or written to a file, in memory aligned to blocks.
//!
//! The operating system moves bytes between a device and memory without a copy only if the memory, the offset
//! and the length are multiples of the device's block. [`FileBuffer`] provides the memory; the caller chooses
//! offset and length.
//!
//! # Safety
//! A [`Block`] consists of bytes only, without padding, so a slice of blocks is also a slice of bytes of the
//! same memory. `length` is at most the bytes of `blocks`.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::require;

/// Alignment and unit of the memory of a [`FileBuffer`], in bytes. A multiple of the logical block of every
/// common device.
pub const FILE_BLOCK_BYTES: usize = 4096;

#[derive(Clone)]
#[repr(C, align(4096))]
struct Block([u8; FILE_BLOCK_BYTES]);

const ZERO_BLOCK: Block = Block([0; FILE_BLOCK_BYTES]);

/// A growable buffer of bytes whose memory is aligned to [`FILE_BLOCK_BYTES`]. File requests take it, and
/// their answers give it back, so that its memory can be used again.
#[derive(Default)]
pub struct FileBuffer {
    /// Every byte is initialised, also those beyond `length`.
    blocks: Vec<Block>,
    length: usize,
}

impl FileBuffer {
    /// An empty buffer without memory.
    pub const fn new() -> Self {
        Self { blocks: Vec::new(), length: 0 }
    }

    /// An empty buffer with space for `bytes` bytes, rounded up to whole blocks.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut buffer = Self::new();
        buffer.reserve(bytes);
        buffer
    }

    /// Bytes that fit without new memory, a multiple of [`FILE_BLOCK_BYTES`].
    pub fn capacity(&self) -> usize {
        self.blocks.len() * FILE_BLOCK_BYTES
    }

    /// Makes space for `bytes` bytes in addition to the present ones.
    pub fn reserve(&mut self, bytes: usize) {
        let wanted = (self.length + bytes).div_ceil(FILE_BLOCK_BYTES);
        if wanted > self.blocks.len() {
            // `Vec` grows its allocation geometrically, and all of it is made usable.
            self.blocks.reserve(wanted - self.blocks.len());
            self.blocks.resize(self.blocks.capacity(), ZERO_BLOCK);
        }
    }

    /// Appends bytes.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let start = self.length;
        self.reserve(bytes.len());
        self.length += bytes.len();
        self[start..].copy_from_slice(bytes);
    }

    /// Changes the length. New bytes are `fill`.
    pub fn resize(&mut self, length: usize, fill: u8) {
        let start = self.length;
        if length > start {
            self.reserve(length - start);
        }
        self.length = length;
        if length > start {
            self[start..].fill(fill);
        }
    }

    /// Changes the length without filling. New bytes have any value. For a caller that overwrites them.
    pub fn set_length(&mut self, length: usize) {
        self.reserve(length.saturating_sub(self.length));
        self.length = length;
    }

    /// Appends zeros up to the end of the block. Returns how many.
    pub fn pad_to_block(&mut self) -> usize {
        let padding = self.length.next_multiple_of(FILE_BLOCK_BYTES) - self.length;
        self.resize(self.length + padding, 0);
        padding
    }

    /// Shortens the buffer to at most `length` bytes. Keeps the memory.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Removes all bytes. Keeps the memory.
    pub fn clear(&mut self) {
        self.length = 0;
    }
}

impl Deref for FileBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        require!(self.length <= self.capacity(), "the bytes of a buffer are in its memory");
        // SAFETY: `length` bytes are within the blocks, which are bytes without padding (top of the file).
        unsafe { std::slice::from_raw_parts(self.blocks.as_ptr().cast(), self.length) }
    }
}

impl DerefMut for FileBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        require!(self.length <= self.capacity(), "the bytes of a buffer are in its memory");
        // SAFETY: as in `deref`; any value of a byte is a valid block, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.blocks.as_mut_ptr().cast(), self.length) }
    }
}

impl Clone for FileBuffer {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl From<&[u8]> for FileBuffer {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Self::with_capacity(bytes.len());
        buffer.extend_from_slice(bytes);
        buffer
    }
}

impl PartialEq for FileBuffer {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for FileBuffer {}

impl fmt::Debug for FileBuffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FileBuffer({} of {} bytes)", self.length, self.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_whole_blocks() {
        for bytes in [1, 4095, 4096, 4097, 100_000] {
            let buffer = FileBuffer::from(&*vec![7; bytes]);
            assert_eq!(buffer.as_ptr().addr() % FILE_BLOCK_BYTES, 0);
            assert!(buffer.capacity() >= bytes && buffer.capacity() % FILE_BLOCK_BYTES == 0);
            assert!(buffer.len() == bytes && buffer.iter().all(|&byte| byte == 7));
        }
        assert_eq!(FileBuffer::new().capacity(), 0);
        assert!(FileBuffer::new().is_empty());
    }

    #[test]
    fn bytes_survive_growth_and_padding_is_zero() {
        let mut buffer = FileBuffer::new();
        let mut wanted = Vec::new();
        for piece in 0..300_usize {
            let bytes = vec![piece as u8; piece];
            buffer.extend_from_slice(&bytes);
            wanted.extend_from_slice(&bytes);
        }
        assert_eq!(&*buffer, &*wanted);
        let padding = buffer.pad_to_block();
        assert_eq!(padding, 4096 - wanted.len() % 4096);
        assert!(buffer[wanted.len()..].iter().all(|&byte| byte == 0));
        assert_eq!(buffer.pad_to_block(), 0);
    }

    #[test]
    fn an_emptied_buffer_keeps_its_memory_and_shows_no_old_bytes() {
        let mut buffer = FileBuffer::from(&[9; 5000][..]);
        let address = buffer.as_ptr();
        buffer.clear();
        buffer.resize(5000, 1);
        assert!(buffer.as_ptr() == address && buffer.iter().all(|&byte| byte == 1));
        buffer.truncate(10);
        buffer.resize(20, 0);
        assert_eq!(&*buffer, &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
