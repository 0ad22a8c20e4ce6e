//! The execution modules, by the names that users and code share.

use std::fmt;

use junctor_kernel::ModuleId;

/// An execution module: a kind of block, or a kind of work that the kernel carries out itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Module {
    /// Schema, distribution, membership, checkpoint and epoch coordination.
    Main = 0,
    /// The change stream.
    Rep = 1,
    /// Coordination of transactions.
    Tc = 2,
    /// Owner of a set of partitions.
    Ldm = 3,
    /// Reader of any partition of its group.
    Query = 4,
    /// Read side of client and node sockets.
    Recv = ModuleId::SOCKETS.number(),
    /// Write side of sockets, when threads do not send for themselves.
    Send = ModuleId::SEND.number(),
    /// Files.
    Io = ModuleId::FILES.number(),
    /// Sessions, statements, plans and cursors.
    Sql = 8,
    /// The log of commits.
    Log = 9,
    /// Statements that take long: threads of low priority, whose sql blocks take sessions of other blocks.
    Work = 10,
}

impl Module {
    /// Every module, in the order of its number.
    pub const ALL: [Module; 11] = [
        Module::Main,
        Module::Rep,
        Module::Tc,
        Module::Ldm,
        Module::Query,
        Module::Recv,
        Module::Send,
        Module::Io,
        Module::Sql,
        Module::Log,
        Module::Work,
    ];

    /// The lower-case name used in settings, status tables and thread names.
    pub const fn name(self) -> &'static str {
        match self {
            Module::Main => "main",
            Module::Rep => "rep",
            Module::Tc => "tc",
            Module::Ldm => "ldm",
            Module::Query => "query",
            Module::Recv => "recv",
            Module::Send => "send",
            Module::Io => "io",
            Module::Sql => "sql",
            Module::Log => "log",
            Module::Work => "work",
        }
    }

    /// The module of this exact lower-case name, or `None`.
    pub fn from_name(name: &str) -> Option<Module> {
        Module::ALL.into_iter().find(|module| module.name() == name)
    }

    /// The module of this number, or `None`.
    pub fn from_number(number: u8) -> Option<Module> {
        Module::ALL.get(usize::from(number)).copied()
    }

    /// The module that the kernel knows by `id`, which must come from one of these modules.
    #[inline]
    pub fn of(id: ModuleId) -> Module {
        match Module::from_number(id.number()) {
            Some(module) => module,
            None => {
                junctor_kernel::invariant::fail("a module has a name", format_args!("module number {}", id.number()))
            }
        }
    }

    /// The number, as an index into tables of [`Module::ALL`]'s length.
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl From<Module> for ModuleId {
    #[inline(always)]
    fn from(module: Module) -> ModuleId {
        ModuleId::new(module as u8)
    }
}

impl PartialEq<Module> for ModuleId {
    #[inline(always)]
    fn eq(&self, module: &Module) -> bool {
        self.number() == *module as u8
    }
}

impl fmt::Display for Module {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_their_ids_convert_both_ways() {
        for (number, module) in Module::ALL.into_iter().enumerate() {
            assert_eq!(module.index(), number);
            assert_eq!(Module::of(module.into()), module);
            assert_eq!(Module::from_name(module.name()), Some(module));
        }
    }
}
