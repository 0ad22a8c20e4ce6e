//! The kernel's limits, in one table.

/// Limits of one node's kernel. The defaults suit machines of any size; tests use smaller limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLimits {
    /// Slots of the normal mailbox ring from one thread to another, a power of two of at least 4. If it is 0,
    /// the number follows from the number of threads and [`KernelLimits::RING_BYTES_MAX`].
    pub ring_slots: u32,
    /// Slots of the high-priority ring from one thread to another, a power of two of at least 4.
    pub high_ring_slots: u32,
    /// Maximum number of signals taken from one normal ring in one turn.
    pub quota: u32,
    /// Maximum number of signals that may wait in one thread: local queue, deferred signals and backlogs
    /// together. The blocks' own limits keep the number lower, so a node that reaches it stops.
    pub waiting_max: u32,
    /// Maximum number of running timers on one thread. A node that reaches it stops.
    pub timers_max: u32,
    /// Maximum total size of the idle buffers of one thread, in bytes.
    pub buffer_bytes_max: usize,
    /// Number of signals kept in a thread's trace, a power of two.
    pub trace_entries: u32,
    /// Maximum number of open sockets on a node. A connection beyond it is closed immediately.
    pub sockets_max: u32,
    /// Maximum size of one read from a socket, in bytes.
    pub read_bytes: usize,
    /// Queued output of a socket, in bytes, above which its block gets `SendBlocked`.
    pub send_high_water_bytes: usize,
    /// Queued output, in bytes, below which the block gets `SendDrained` after a `SendBlocked`.
    pub send_low_water_bytes: usize,
    /// Queued output, in bytes, at which the socket is closed.
    pub send_bytes_max: usize,
    /// Maximum number of buffers in flight in one direction of an in-memory connection, rounded up to a power
    /// of two.
    pub stream_buffers_max: u32,
    /// An in-memory connection accepts a buffer while fewer bytes than this are in flight in that direction.
    pub stream_bytes_max: usize,
    /// Maximum number of file requests that wait in one lane of a node. A request beyond it fails with
    /// `FileError::QueueFull`.
    pub file_requests_max: u32,
    /// If a thread has handled no deferred signal for this many nanoseconds, it handles some without waiting
    /// for space.
    pub stall_ns: u64,
}

impl KernelLimits {
    /// Maximum number of threads on a node.
    pub const THREADS_MAX: usize = 256;

    /// Maximum size of all rings of a node, in bytes, when `ring_slots` is 0.
    pub const RING_BYTES_MAX: usize = 32 << 20;

    /// Slots of a normal ring on a node of `threads` threads, for envelopes of `envelope_bytes` bytes.
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
            file_requests_max: 4096,
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
