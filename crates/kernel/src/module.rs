//! Modules, which are the kinds of blocks, by number.

/// A module: a kind of block. The program above the kernel gives each number its meaning and its name. The
/// kernel knows three modules, because it carries out their work.
///
/// A thread's blocks are ordered by module number. The kernel's three numbers are in the middle, so that the
/// program can order its own modules before and after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ModuleId(u8);

impl ModuleId {
    /// Number of possible modules, which are numbered from 0.
    pub const COUNT: usize = 16;

    /// Blocks that own sockets: they get the bytes received and request the bytes to send.
    pub const SOCKETS: ModuleId = ModuleId(5);

    /// Threads that write to the sockets of other threads. This module has no block that handles signals.
    pub const SEND: ModuleId = ModuleId(6);

    /// Threads whose CPUs and priority the file workers take over. File workers are threads outside the
    /// layout. This module has no block that handles signals.
    pub const FILES: ModuleId = ModuleId(7);

    /// The module of this number; `number` must be below [`ModuleId::COUNT`].
    pub const fn new(number: u8) -> ModuleId {
        assert!((number as usize) < ModuleId::COUNT, "a module number is below ModuleId::COUNT");
        ModuleId(number)
    }

    /// The number, below [`ModuleId::COUNT`].
    #[inline(always)]
    pub const fn number(self) -> u8 {
        self.0
    }
}
