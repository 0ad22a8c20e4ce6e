//! What the operating system has counted for the calling thread.
//!
//! The unsafe code rests on one fact: a call fills the whole structure that it is given, or says that it did not. The C library is
//! called because it finds the clocks of the operating system under valgrind too, which hides them from everybody else.

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

/// Nanoseconds for which the calling thread has run since it began; 0 where it is not told. Other than the usage, which is as of the last
/// tick of the operating system, this is as of now.
pub(super) fn thread_ran_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a whole `timespec`, writable and not shared, which lives longer than the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    if result == 0 { time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at its usage so often that it has used some, by any clock.
    const LOOKS_MAX: u32 = 5_000_000;

    #[test]
    fn work_is_cpu_time() {
        let cpu_ns = |usage: OsUsage| usage.user_ns + usage.system_ns;
        let (before, ran_before_ns) = (cpu_ns(thread_usage()), thread_ran_ns());
        assert!((0..LOOKS_MAX).any(|_| cpu_ns(thread_usage()) > before));
        assert!(thread_ran_ns() > ran_before_ns);
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
