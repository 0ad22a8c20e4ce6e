//! CPU time, context switches and waiting time of the calling thread, as the operating system counts them.
//!
//! The unsafe code relies on one fact: a call fills the whole structure passed to it, or reports an error.
//! The calls go through the C library, because direct system calls do not reach the clocks under valgrind.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

use crate::context::Time;
use crate::scheduler::load::OsUsage;

/// Usage of the calling thread since it began; zeros if the system does not report it. One system call of
/// about 300 ns.
pub(super) fn thread_usage() -> OsUsage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole `rusage` that is writable, not shared, and outlives the call.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    if result != 0 {
        return OsUsage::default();
    }
    // SAFETY: the structure was zeroed, which is valid for each of its integers, and then filled.
    let usage = unsafe { usage.assume_init() };
    let nanoseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    OsUsage {
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}

/// CPU time of the calling thread since it began, in nanoseconds; 0 if unknown. The time is exact, while that
/// of [`thread_usage`] is as of the operating system's last tick.
pub(super) fn thread_ran_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a whole `timespec` that is writable, not shared, and outlives the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    if result == 0 { time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 } else { 0 }
}

/// Measures how long the calling thread has waited for a CPU: the time in which it was runnable but did not
/// run, because it was just woken or was preempted.
#[derive(Default)]
pub(super) enum RunDelay {
    /// Not opened yet. The file shows the thread that opens it.
    #[default]
    Closed,
    /// The thread's schedstat file.
    Open(File),
    /// The system does not report it.
    Unknown,
}

impl RunDelay {
    /// Waiting time since the thread began, in nanoseconds, if the system reports it. One system call of
    /// about a microsecond.
    pub(super) fn nanoseconds(&mut self) -> Option<u64> {
        if matches!(self, RunDelay::Closed) {
            *self = File::open("/proc/thread-self/schedstat").map_or(RunDelay::Unknown, RunDelay::Open);
        }
        let RunDelay::Open(file) = self else { return None };
        let mut text = [0; 64];
        let length = file.read_at(&mut text, 0).ok()?;
        waited_ns(&text[..length])
    }
}

/// Detects whether other threads compete for the calling thread's CPUs.
#[derive(Default)]
pub(super) struct Contention {
    run_delay: RunDelay,
    last_check: Time,
    waited_ns: u64,
}

impl Contention {
    /// Share of the time, in thousandths, above which waiting for a CPU means that others use it too.
    const WAITED_PER_MILLE: u64 = 50;

    /// Whether the thread waited for a CPU for much of the time since the last call. False if the system does
    /// not report waiting times.
    pub(super) fn is_contended(&mut self, now: Time) -> bool {
        let Some(waited_ns) = self.run_delay.nanoseconds() else { return false };
        let new_ns = waited_ns.saturating_sub(std::mem::replace(&mut self.waited_ns, waited_ns));
        let all_ns = now.since(std::mem::replace(&mut self.last_check, now)).0;
        new_ns * 1_000 > all_ns * Self::WAITED_PER_MILLE
    }
}

/// Parses Linux's schedstat file: time run, time waited, number of time slices. Returns the time waited.
/// `None` if all are 0: the kernel does not count them, or the thread has only just begun.
fn waited_ns(text: &[u8]) -> Option<u64> {
    let mut fields = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
    let ran_ns: u64 = fields.next()?.parse().ok()?;
    let waited_ns = fields.next()?.parse().ok()?;
    (ran_ns > 0).then_some(waited_ns)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Number of samples after which every clock must show that the thread has used CPU time.
    const LOOKS_MAX: u32 = 5_000_000;

    /// Maximum number of samples while waiting for contention; they take a second or two.
    const WAIT_LOOKS_MAX: u32 = 1_000_000;

    #[test]
    fn work_is_cpu_time() {
        let cpu_ns = |usage: OsUsage| usage.user_ns + usage.system_ns;
        let (before, ran_before_ns) = (cpu_ns(thread_usage()), thread_ran_ns());
        assert!((0..LOOKS_MAX).any(|_| cpu_ns(thread_usage()) > before));
        assert!(thread_ran_ns() > ran_before_ns);
    }

    #[test]
    fn with_more_threads_than_cpus_a_thread_waits_for_a_cpu() {
        // By now the thread has run for a while. If no time is counted, the system does not count it.
        if thread_ran_ns() == 0 || RunDelay::default().nanoseconds().is_none() {
            return;
        }
        let has_waited = AtomicBool::new(false);
        let look = || {
            let (mut delay, mut before_ns) = (RunDelay::default(), None);
            for _ in 0..WAIT_LOOKS_MAX {
                let now_ns = delay.nanoseconds();
                if before_ns.is_some() && now_ns > before_ns {
                    has_waited.store(true, Ordering::Relaxed);
                }
                before_ns = before_ns.or(now_ns);
                if has_waited.load(Ordering::Relaxed) {
                    return;
                }
            }
        };
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            (0..cpus).for_each(|_| drop(scope.spawn(look)));
            look();
        });
        assert!(has_waited.into_inner());
    }

    #[test]
    fn the_second_field_of_schedstat_is_the_waiting_time() {
        assert_eq!(waited_ns(b"2178344 913 27\n"), Some(913));
        assert_eq!(waited_ns(b"2178344 0 1\n"), Some(0));
        assert_eq!(waited_ns(b"18446744073709551615 18446744073709551615 1\n"), Some(u64::MAX));
        assert_eq!(waited_ns(b"0 0 0\n"), None);
        for text in ["", "\n", "5", "5 x 1", "x 5 1", "5 -1 1"] {
            assert_eq!(waited_ns(text.as_bytes()), None, "{text}");
        }
        assert_eq!(waited_ns(&[b'5', b' ', 0xFF]), None);
    }

    #[test]
    fn a_waiting_thread_releases_its_cpu() {
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
