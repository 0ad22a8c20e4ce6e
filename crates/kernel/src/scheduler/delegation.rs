//! Whether a thread does for another what it has just sent to it, rather than to wake it.
//!
//! To wake a thread costs the waker a system call and the machine a switch, a few microseconds, and as long again passes before the
//! thread runs; most of what threads send each other is done in less. So little work is done at once by who has it at hand, unless
//! that one has no time and the other has.

/// A thread that is so busy, in thousandths, has no time.
const SATURATED_PER_MILLE: u32 = 900;

/// A thread that is less busy than this has time.
const SPARE_PER_MILLE: u32 = 600;

/// What a thread sends another in one turn is little up to so many signals.
pub(crate) const INLINE_SIGNALS_MAX: u64 = 4;

/// Whether a thread that was so busy lately, in thousandths, is to leave work to others that have time.
pub(crate) fn is_saturated(own_per_mille: u32) -> bool {
    own_per_mille >= SATURATED_PER_MILLE
}

/// Whether a thread that was so busy lately, in thousandths, has time for work that another is to leave to it.
pub(crate) fn has_spare_time(other_per_mille: u32) -> bool {
    other_per_mille < SPARE_PER_MILLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_are_as_busy_as_each_other_leave_nothing_to_each_other() {
        assert!((0..=1_000).all(|busy| !(is_saturated(busy) && has_spare_time(busy))));
    }

    #[test]
    fn a_thread_without_time_leaves_work_to_one_with_time() {
        assert!(is_saturated(1_000) && has_spare_time(0));
    }
}
