//! Decides whether a sender of signals wakes the receiving thread, or handles the signals itself in a
//! delegated turn: a turn that it runs in the sleeping thread's slot.
//!
//! A wake-up costs the waker a system call and the machine a thread switch, a few microseconds together. As
//! much time again passes before the woken thread runs. Handling most signals takes less time than that. The
//! sender therefore handles little work itself, unless it is saturated and the other thread has spare time.

/// Load from which a thread is saturated, in thousandths.
const SATURATED_PER_MILLE: u32 = 900;

/// Load below which a thread has spare time, in thousandths.
const SPARE_PER_MILLE: u32 = 600;

/// Maximum number of signals from one turn to one thread that count as little work, fit for a delegated turn.
pub(crate) const INLINE_SIGNALS_MAX: u64 = 4;

/// Whether a thread with this recent load, in thousandths, leaves work to threads with spare time.
pub(crate) fn is_saturated(own_per_mille: u32) -> bool {
    own_per_mille >= SATURATED_PER_MILLE
}

/// Whether a thread with this recent load, in thousandths, has time for the work of a saturated thread.
pub(crate) fn has_spare_time(other_per_mille: u32) -> bool {
    other_per_mille < SPARE_PER_MILLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equally_busy_threads_leave_no_work_to_each_other() {
        assert!((0..=1_000).all(|busy| !(is_saturated(busy) && has_spare_time(busy))));
    }

    #[test]
    fn a_saturated_thread_leaves_work_to_one_with_spare_time() {
        assert!(is_saturated(1_000) && has_spare_time(0));
    }
}
