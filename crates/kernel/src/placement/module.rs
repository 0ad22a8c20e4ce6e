//! The execution modules, by the names that users and code share.

use std::fmt;

/// An execution module: the kind of work that a thread carries.
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
    Recv = 5,
    /// Write side of sockets, when threads do not send for themselves.
    Send = 6,
    /// Files.
    Io = 7,
    /// Sessions, statements, plans and cursors.
    Sql = 8,
}

impl Module {
    /// Every module, in the order of its number.
    pub const ALL: [Module; 9] = [
        Module::Main,
        Module::Rep,
        Module::Tc,
        Module::Ldm,
        Module::Query,
        Module::Recv,
        Module::Send,
        Module::Io,
        Module::Sql,
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
        }
    }

    /// The module of this exact lower-case name, or nothing.
    pub fn from_name(name: &str) -> Option<Module> {
        Module::ALL.into_iter().find(|module| module.name() == name)
    }

    /// The module of this number, or nothing.
    pub fn from_number(number: u8) -> Option<Module> {
        Module::ALL.get(usize::from(number)).copied()
    }

    /// The number, as an index into tables of [`Module::ALL`]'s length.
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Module {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}
