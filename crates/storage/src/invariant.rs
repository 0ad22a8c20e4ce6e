//! Checks of conditions that must always hold. They stay enabled in release builds.
//!
//! A failed check panics. On a thread of the node, a panic prints the traces and aborts the process. The
//! crate defines its own macro because `kernel` and `storage` are on the same level and do not depend on each
//! other.

/// Reports a failed check and panics. A separate cold function, so that a check costs only a comparison and a
/// jump.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn fail(condition: &str, explanation: std::fmt::Arguments<'_>) -> ! {
    panic!("invariant broken: {condition}: {explanation}");
}

/// Panics if a condition that must always hold is false. Never use it for anything that a user, a client, a
/// disk or another node can cause. The explanation says what must hold.
macro_rules! require {
    ($condition:expr, $($explanation:tt)+) => {
        if !$condition {
            $crate::invariant::fail(stringify!($condition), format_args!($($explanation)+));
        }
    };
}

/// Like `require!`, for checks that cost too much in release builds. Enabled in debug builds, and thus in
/// tests and simulations.
macro_rules! verify {
    ($($check:tt)+) => {
        if cfg!(debug_assertions) {
            $crate::invariant::require!($($check)+);
        }
    };
}

pub(crate) use {require, verify};
