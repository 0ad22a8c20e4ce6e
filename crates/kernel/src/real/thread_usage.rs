//! What the operating system has counted for the calling thread.
//!
//! The unsafe code rests on one fact: a call fills the whole structure that it is given, or says that it did not. The C library is
//! called because it finds the clocks of the operating system under valgrind too, which hides them from everybody else.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

use crate::context::Time;
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

/// How long the calling thread has waited for a CPU, as the scheduler of the operating system counts it: from when it could run,
/// woken or preempted, until it ran.
#[derive(Default)]
pub(super) enum RunDelay {
    /// Not asked yet; the file is that of the thread that asks first.
    #[default]
    Closed,
    /// Its file.
    Open(File),
    /// The system does not tell.
    Unknown,
}

impl RunDelay {
    /// Nanoseconds since the thread began, if they are told by now; a system call of about a microsecond.
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

/// Whether others have the CPUs that the calling thread could use.
#[derive(Default)]
pub(super) struct Contention {
    run_delay: RunDelay,
    looked: Time,
    waited_ns: u64,
}

impl Contention {
    /// A thread that waited for a CPU for more than this part of the time, in thousandths, shares it with others.
    const WAITED_PER_MILLE: u64 = 50;

    /// Whether the thread waited for a CPU for much of the time since it was asked last. No where the system does not tell.
    pub(super) fn is_contended(&mut self, now: Time) -> bool {
        let Some(waited_ns) = self.run_delay.nanoseconds() else { return false };
        let new_ns = waited_ns.saturating_sub(std::mem::replace(&mut self.waited_ns, waited_ns));
        let all_ns = now.since(std::mem::replace(&mut self.looked, now)).0;
        new_ns * 1_000 > all_ns * Self::WAITED_PER_MILLE
    }
}

/// What a file of Linux's says that has the time run, the time waited and the turns. All are 0 where these are not counted; a thread that
/// has begun just now has not run by that count yet, and is told the next time.
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

    /// Looks at its usage so often that it has used some, by any clock.
    const LOOKS_MAX: u32 = 5_000_000;

    /// Looks for a wait, a second or two of them.
    const WAIT_LOOKS_MAX: u32 = 1_000_000;

    #[test]
    fn work_is_cpu_time() {
        let cpu_ns = |usage: OsUsage| usage.user_ns + usage.system_ns;
        let (before, ran_before_ns) = (cpu_ns(thread_usage()), thread_ran_ns());
        assert!((0..LOOKS_MAX).any(|_| cpu_ns(thread_usage()) > before));
        assert!(thread_ran_ns() > ran_before_ns);
    }

    #[test]
    fn one_of_more_threads_than_there_are_cpus_waits_for_one() {
        // What a thread has run is counted now at the latest.
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
    fn a_wait_is_the_second_field_where_waits_are_counted() {
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
