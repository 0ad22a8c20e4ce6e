//! Checks of invariants. A broken invariant stops the node, because its data can no longer be trusted.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set in simulations. After a panic, the simulator's runner can report the failing seed and shrink its plan.
static PANICS: AtomicBool = AtomicBool::new(false);

/// Makes broken invariants panic instead of aborting the process. For simulations and tests.
pub fn panic_on_failure() {
    PANICS.store(true, Ordering::Relaxed);
}

/// Reports a broken invariant and the last signals of every thread, then aborts the process.
#[cold]
#[inline(never)]
#[track_caller]
pub fn fail(condition: &str, explanation: fmt::Arguments<'_>) -> ! {
    let place = std::panic::Location::caller();
    if PANICS.load(Ordering::Relaxed) {
        panic!("invariant broken: {condition}: {explanation}");
    }
    let mut errors = std::io::stderr().lock();
    // If standard error is closed, the report has nowhere else to go.
    let _ = writeln!(errors, "invariant broken at {}:{}: {condition}: {explanation}", place.file(), place.line());
    crate::trace::dump_all(&mut errors);
    let _ = errors.flush();
    std::process::abort();
}

/// Reports why the node cannot go on, and ends the process with status 3. For faults of a device, which are
/// not faults of the program.
#[cold]
pub(crate) fn halt(message: &str) -> ! {
    if PANICS.load(Ordering::Relaxed) {
        panic!("the node stops: {message}");
    }
    let mut errors = std::io::stderr().lock();
    // If standard error is closed, the report has nowhere else to go.
    let _ = writeln!(errors, "the node stops: {message}");
    let _ = errors.flush();
    std::process::exit(3);
}

/// Stops the node if an invariant is broken, in release builds too. Do not use it for a condition that a
/// user, a client, a disk or another node can break.
#[macro_export]
macro_rules! require {
    ($condition:expr $(,)?) => {
        if !$condition {
            $crate::invariant::fail(stringify!($condition), format_args!("it must hold"));
        }
    };
    ($condition:expr, $($explanation:tt)+) => {
        if !$condition {
            $crate::invariant::fail(stringify!($condition), format_args!($($explanation)+));
        }
    };
}

/// Like [`require!`](crate::require), but in debug builds only (tests and simulations). For checks that are
/// too expensive for release builds.
#[macro_export]
macro_rules! verify {
    ($($check:tt)+) => {
        if cfg!(debug_assertions) {
            $crate::require!($($check)+);
        }
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_broken_invariant_names_its_condition() {
        super::panic_on_failure();
        let broken = std::panic::catch_unwind(|| {
            let answer = 41;
            crate::require!(answer == 42, "the answer was {answer}");
        });
        let message = *broken.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(message, "invariant broken: answer == 42: the answer was 41");
    }
}
