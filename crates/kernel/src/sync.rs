//! Atomics, cells and threads: those of the standard library, or under `--cfg loom` and `--cfg shuttle` those
//! of a model checker.
//!
//! Code that shares memory between threads imports from here, so that the checkers can run it unchanged.

#[cfg(loom)]
pub use loom::{
    cell::UnsafeCell,
    hint,
    sync::{Arc, Condvar, Mutex, atomic},
    thread,
};

#[cfg(all(shuttle, not(loom)))]
pub use shuttle::{
    hint,
    sync::{Arc, Condvar, Mutex, atomic},
    thread,
};

#[cfg(not(any(loom, shuttle)))]
pub use std::{
    hint,
    sync::{Arc, Condvar, Mutex, atomic},
    thread,
};

/// A cell whose callers ensure exclusive access. It has the interface of loom's cell, which checks them.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Calls `action` with a pointer for reading.
    #[inline(always)]
    pub fn with<R>(&self, action: impl FnOnce(*const T) -> R) -> R {
        action(self.0.get())
    }

    /// Calls `action` with a pointer for writing.
    #[inline(always)]
    pub fn with_mut<R>(&self, action: impl FnOnce(*mut T) -> R) -> R {
        action(self.0.get())
    }
}

/// Keeps its content on cache lines that hold nothing else. Aligned to 128 bytes, because CPUs prefetch lines
/// of 64 bytes in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CachePadded<T>(pub T);

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
