//! Kinds of blocks, by number.

/// A kind of block. The program above the kernel gives each number its meaning and its name; the kernel
/// itself knows three of them, because it carries out their work.
///
/// A thread's blocks are ordered by module number. The kernel's three numbers therefore lie in the middle,
/// where the program can order its own modules before and after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ModuleId(u8);

impl ModuleId {
    /// Number of module numbers, 0 to 15. The directory has one list of threads for each.
    pub const COUNT: usize = 16;

    /// Blocks that own sockets: they receive from them and decide what is written to them.
    pub const SOCKETS: ModuleId = ModuleId(5);

    /// Threads that write to the sockets of others. No block handles signals here.
    pub const SEND: ModuleId = ModuleId(6);

    /// The thread that accesses files for all blocks of the node. No block handles signals here.
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
