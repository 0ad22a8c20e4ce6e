//! What the operating system has counted for the calling thread.
//!
//! The unsafe code rests on one fact: getrusage fills the whole structure that it is given, or says that it did not.

use std::mem::MaybeUninit;

use crate::scheduler::load::OsUsage;

/// What the calling thread has used since it began; one system call of about 300 ns. Nothing where it is not told.
pub(super) fn thread_usage() -> OsUsage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole `rusage`, writable and not shared, which lives longer than the call.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    if result != 0 {
        return OsUsage::default();
    }
    // SAFETY: it was zeroed, which is a good value of each of its integers, and then filled.
    let usage = unsafe { usage.assume_init() };
    let nanoseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    OsUsage {
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at its usage so often that it has used some, by any clock.
    const LOOKS_MAX: u32 = 5_000_000;

    #[test]
    fn work_is_cpu_time() {
        let cpu_ns = |usage: OsUsage| usage.user_ns + usage.system_ns;
        let before = cpu_ns(thread_usage());
        assert!((0..LOOKS_MAX).any(|_| cpu_ns(thread_usage()) > before));
    }

    #[test]
    fn waiting_gives_the_cpu_away() {
        let barrier = std::sync::Barrier::new(2);
        let meet = || {
            let before = thread_usage().voluntary_switches;
            (0..1_000).for_each(|_| _ = barrier.wait());
            thread_usage().voluntary_switches - before
        };
        let switches = std::thread::scope(|scope| {
            let other = scope.spawn(meet);
            meet() + other.join().expect("it ends")
        });
        assert!(switches > 0, "in each round one of the two waited for the other");
    }
}
