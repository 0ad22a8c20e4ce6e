//! The maxima of the kernel, in one table.

/// The maxima of a node's kernel. The defaults suit a machine of any size; tests make them small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLimits {
    /// Slots of the normal ring of an ordered pair of threads, a power of two of at least 4; 0 chooses by the number
    /// of threads, within [`KernelLimits::RING_BYTES_MAX`].
    pub ring_slots: u32,
    /// Slots of the high-priority ring of an ordered pair of threads, a power of two of at least 4.
    pub high_ring_slots: u32,
    /// The most signals taken from one normal ring in one turn.
    pub quota: u32,
    /// The most signals that may wait in one thread, in its local queue, its deferred requests and its backlogs
    /// together. The blocks' pools keep it from being reached, so reaching it stops the node.
    pub waiting_max: u32,
    /// The most timers that may run on one thread; reaching it stops the node.
    pub timers_max: u32,
    /// Bytes of idle buffers that a thread keeps.
    pub buffer_bytes_max: usize,
    /// Signals that a thread's trace remembers, a power of two.
    pub trace_entries: u32,
    /// The most open sockets of a node; a connection beyond it is closed at once.
    pub sockets_max: u32,
    /// The most bytes read from a socket at once.
    pub read_bytes: usize,
    /// Queued output of a socket, in bytes, above which its block is told to hold back.
    pub send_high_water_bytes: usize,
    /// Queued output, in bytes, below which the block is told that it may go on.
    pub send_low_water_bytes: usize,
    /// Queued output, in bytes, at which the socket is closed.
    pub send_bytes_max: usize,
    /// The most buffers under way in one direction of a connection in memory, rounded up to a power of two.
    pub stream_buffers_max: u32,
    /// A connection in memory takes a buffer while fewer bytes than this are under way in its direction.
    pub stream_bytes_max: usize,
    /// After how long without taking a request a thread that has no room takes one nevertheless, in nanoseconds.
    pub stall_ns: u64,
}

impl KernelLimits {
    /// The most threads that a node may have.
    pub const THREADS_MAX: usize = 256;

    /// Bytes that all rings of a node may take when the slots are chosen by the number of threads.
    pub const RING_BYTES_MAX: usize = 32 << 20;

    /// Slots of a normal ring for a node of so many threads and envelopes of so many bytes.
    pub fn ring_slots_for(&self, threads: usize, envelope_bytes: usize) -> u32 {
        if self.ring_slots != 0 {
            return self.ring_slots.next_power_of_two().max(4);
        }
        let pairs = (threads * threads.saturating_sub(1)).max(1);
        let fitting = Self::RING_BYTES_MAX / pairs / envelope_bytes.max(1);
        let power = (fitting.max(1) as u32 + 1).next_power_of_two() / 2;
        power.clamp(64, 1024)
    }
}

impl Default for KernelLimits {
    fn default() -> Self {
        Self {
            ring_slots: 0,
            high_ring_slots: 64,
            quota: 75,
            waiting_max: 1 << 20,
            timers_max: 1 << 17,
            buffer_bytes_max: 8 << 20,
            trace_entries: 4096,
            sockets_max: 65_536,
            read_bytes: 16 << 10,
            send_high_water_bytes: 256 << 10,
            send_low_water_bytes: 64 << 10,
            send_bytes_max: 256 << 20,
            stream_buffers_max: 32,
            stream_bytes_max: 256 << 10,
            stall_ns: 1_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_shrink_with_the_number_of_threads_and_stay_powers_of_two() {
        let limits = KernelLimits::default();
        for threads in 1..=KernelLimits::THREADS_MAX {
            let slots = limits.ring_slots_for(threads, 136);
            assert!(slots.is_power_of_two() && (64..=1024).contains(&slots));
            let bytes = threads * (threads - 1) * slots as usize * 136;
            assert!(slots == 64 || bytes <= KernelLimits::RING_BYTES_MAX, "{threads} threads take {bytes} bytes");
        }
    }
}
