//! Checks of conditions that cannot be false. They stay on in release builds.
//!
//! A broken one panics. On a thread of the node a panic prints the traces and aborts the process. The crate
//! has its own macro because `kernel` and `storage` are on the same level and do not depend on each other.

/// Reports a broken condition and panics. A separate cold function, so that a check costs a comparison and a
/// jump.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn fail(condition: &str, explanation: std::fmt::Arguments<'_>) -> ! {
    panic!("invariant broken: {condition}: {explanation}");
}

/// Panics if a condition is false that cannot be false. Never for anything that a user, a client, a disk or
/// another node can cause. The explanation says what must hold.
macro_rules! require {
    ($condition:expr, $($explanation:tt)+) => {
        if !$condition {
            $crate::invariant::fail(stringify!($condition), format_args!($($explanation)+));
        }
    };
}

/// Like `require!`, for checks that cost too much in release builds. On in debug builds, and thus in tests
/// and simulations.
macro_rules! verify {
    ($($check:tt)+) => {
        if cfg!(debug_assertions) {
            $crate::invariant::require!($($check)+);
        }
    };
}

pub(crate) use {require, verify};
