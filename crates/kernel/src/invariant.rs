//! Checks of what cannot be otherwise. A broken one stops the node: nobody knows what its data are worth.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// In a process that runs simulations a broken invariant panics, so that the failing seed can be named and shrunk.
static PANICS: AtomicBool = AtomicBool::new(false);

/// From now on a broken invariant panics in place of aborting the process. For simulations and tests.
pub fn panic_on_failure() {
    PANICS.store(true, Ordering::Relaxed);
}

/// Reports a broken invariant with what ran before it on every thread, and stops the process.
#[cold]
#[inline(never)]
#[track_caller]
pub fn fail(condition: &str, explanation: fmt::Arguments<'_>) -> ! {
    let place = std::panic::Location::caller();
    if PANICS.load(Ordering::Relaxed) {
        panic!("invariant broken: {condition}: {explanation}");
    }
    let mut errors = std::io::stderr().lock();
    // Nothing is left to be done if standard error is closed.
    let _ = writeln!(errors, "invariant broken at {}:{}: {condition}: {explanation}", place.file(), place.line());
    crate::trace::dump_all(&mut errors);
    let _ = errors.flush();
    std::process::abort();
}

/// Stops the node if a condition that cannot be false is false. On in release. Never for what a user, a client, a
/// disk or another node may cause.
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

/// Like [`require!`](crate::require), for checks too dear for release: on in debug builds, so in tests and simulations.
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
