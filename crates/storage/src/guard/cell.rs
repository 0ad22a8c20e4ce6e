//! The cell of a guarded value: the standard one, or loom's, which detects overlapping accesses.

#[cfg(loom)]
pub(super) use loom::cell::{MutPtr as MutPointer, UnsafeCell as ValueCell};

#[cfg(not(loom))]
pub(super) use plain::{MutPointer, ValueCell};

/// A zero-cost cell with the interface of loom's.
#[cfg(not(loom))]
mod plain {
    use std::cell::UnsafeCell;

    pub(in crate::guard) struct ValueCell<T>(UnsafeCell<T>);

    impl<T> ValueCell<T> {
        pub(in crate::guard) fn new(value: T) -> Self {
            Self(UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(in crate::guard) fn get(&self) -> ConstPointer<T> {
            ConstPointer(self.0.get())
        }

        #[inline(always)]
        pub(in crate::guard) fn get_mut(&self) -> MutPointer<T> {
            MutPointer(self.0.get())
        }
    }

    pub(in crate::guard) struct ConstPointer<T>(*const T);

    impl<T> ConstPointer<T> {
        /// # Safety
        /// The cell outlives the reference, and nothing writes the value while it lives.
        #[inline(always)]
        pub(in crate::guard) unsafe fn deref(&self) -> &T {
            // SAFETY: the pointer is that of a cell, hence aligned and initialised; the rest is the caller's
            // promise.
            unsafe { &*self.0 }
        }
    }

    pub(in crate::guard) struct MutPointer<T>(*mut T);

    impl<T> MutPointer<T> {
        /// # Safety
        /// The cell outlives the reference, and it is the only reference to the value while it lives.
        #[inline(always)]
        #[allow(clippy::mut_from_ref)]
        pub(in crate::guard) unsafe fn deref(&self) -> &mut T {
            // SAFETY: the pointer is that of a cell, hence aligned and initialised; the rest is the caller's
            // promise.
            unsafe { &mut *self.0 }
        }
    }
}
