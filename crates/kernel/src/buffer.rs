//! Byte buffers that are reused, in one pool for each thread.

/// Bytes that were read from, or will be written to, a socket or file. The last user of the buffer gives it
/// back to a pool.
pub type Buffer = Vec<u8>;

/// Capacities of new buffers, ascending. A larger request gets exactly the capacity that it asks for.
const CLASS_BYTES: [usize; 4] = [512, 4 << 10, 16 << 10, 64 << 10];

/// Maximum number of idle buffers in one class.
const CLASS_COUNT_MAX: usize = 1024;

/// Idle buffers of one thread, bounded in number and bytes.
#[derive(Debug)]
pub struct BufferPool {
    idle: [Vec<Buffer>; CLASS_BYTES.len()],
    idle_bytes: usize,
    idle_bytes_max: usize,
}

impl BufferPool {
    /// A pool that keeps at most `idle_bytes_max` bytes of idle buffers.
    pub fn new(idle_bytes_max: usize) -> Self {
        Self { idle: Default::default(), idle_bytes: 0, idle_bytes_max }
    }

    /// An empty buffer with space for at least `capacity` bytes.
    #[inline]
    pub fn take(&mut self, capacity: usize) -> Buffer {
        let Some(class) = CLASS_BYTES.iter().position(|&bytes| bytes >= capacity) else {
            return Vec::with_capacity(capacity);
        };
        match self.idle[class].pop() {
            Some(buffer) => {
                self.idle_bytes -= buffer.capacity();
                buffer
            }
            None => Vec::with_capacity(CLASS_BYTES[class]),
        }
    }

    /// Empties a buffer and keeps it for reuse. Frees the buffer instead if the pool is full, or if its
    /// capacity is less than 512 bytes or more than 128 KiB.
    #[inline]
    pub fn give(&mut self, mut buffer: Buffer) {
        let capacity = buffer.capacity();
        let Some(class) = CLASS_BYTES.iter().rposition(|&bytes| bytes <= capacity) else { return };
        let oversized = capacity > 2 * CLASS_BYTES[CLASS_BYTES.len() - 1];
        let full = self.idle_bytes + capacity > self.idle_bytes_max || self.idle[class].len() >= CLASS_COUNT_MAX;
        if oversized || full {
            return;
        }
        buffer.clear();
        self.idle_bytes += capacity;
        self.idle[class].push(buffer);
    }

    /// Moves the idle buffers of another pool into this one.
    pub(crate) fn take_over(&mut self, other: &mut BufferPool) {
        for class in 0..other.idle.len() {
            while let Some(buffer) = other.idle[class].pop() {
                self.give(buffer);
            }
        }
        other.idle_bytes = 0;
    }

    /// Total capacity of the idle buffers, in bytes.
    pub fn idle_bytes(&self) -> usize {
        self.idle_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_buffer_is_reused_empty() {
        let mut pool = BufferPool::new(1 << 20);
        let mut buffer = pool.take(100);
        buffer.extend_from_slice(b"old");
        let address = buffer.as_ptr();
        pool.give(buffer);
        let again = pool.take(512);
        assert!(again.is_empty() && again.as_ptr() == address);
        assert_eq!(pool.idle_bytes(), 0);
    }

    #[test]
    fn idle_bytes_never_exceed_the_maximum() {
        let mut pool = BufferPool::new(10_000);
        for size in [0, 100, 600, 5_000, 20_000, 70_000, 1 << 20] {
            for _ in 0..20 {
                pool.give(Vec::with_capacity(size));
            }
        }
        assert!(pool.idle_bytes() <= 10_000 && pool.idle_bytes() > 0);
    }

    #[test]
    fn every_requested_capacity_is_available() {
        let mut pool = BufferPool::new(1 << 20);
        for capacity in [0, 1, 512, 513, 4096, 65_536, 65_537, 1_000_000] {
            let buffer = pool.take(capacity);
            assert!(buffer.capacity() >= capacity);
            pool.give(buffer);
        }
    }
}
