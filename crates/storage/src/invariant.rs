//! Checks of conditions that cannot be false, on in release builds.
//!
//! A broken one panics, and a panic on a thread of the node aborts the process after the kernel has printed the traces.
//! The crate has its own macro because `kernel` and `storage` stand on the same level and neither sees the other.

/// Reports a broken condition and panics. Apart from the checks, so that a check costs them one comparison and a jump.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn fail(condition: &str, explanation: std::fmt::Arguments<'_>) -> ! {
    panic!("invariant broken: {condition}: {explanation}");
}

/// Panics if a condition is false that cannot be false. Never for what a user, a client, a disk or another node can
/// cause. The explanation says what must hold.
macro_rules! require {
    ($condition:expr, $($explanation:tt)+) => {
        if !$condition {
            $crate::invariant::fail(stringify!($condition), format_args!($($explanation)+));
        }
    };
}

/// Like `require!`, for checks that cost too much in release: on in debug builds, that is in tests and simulations.
macro_rules! verify {
    ($($check:tt)+) => {
        if cfg!(debug_assertions) {
            $crate::invariant::require!($($check)+);
        }
    };
}

pub(crate) use {require, verify};
