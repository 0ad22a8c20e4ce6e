//! Status flags: the state of the session and of the last result, sent in every OK and EOF packet.

use super::bit_set::bit_set;

/// A set of status flags. Drivers read AUTOCOMMIT and IN_TRANSACTION from every OK packet, so every packet
/// must have them whenever they are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusFlags(u16);

impl StatusFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// A transaction is open.
    pub const IN_TRANSACTION: Self = Self(1);
    /// Statements outside a transaction commit immediately.
    pub const AUTOCOMMIT: Self = Self(1 << 1);
    /// Another result of the same command follows.
    pub const MORE_RESULTS_EXIST: Self = Self(1 << 3);
    /// No index was good enough for the query.
    pub const NO_GOOD_INDEX_USED: Self = Self(1 << 4);
    /// The query read a whole table.
    pub const NO_INDEX_USED: Self = Self(1 << 5);
    /// A cursor is open for the statement.
    pub const CURSOR_EXISTS: Self = Self(1 << 6);
    /// The cursor has no more rows.
    pub const LAST_ROW_SENT: Self = Self(1 << 7);
    /// The statement dropped a database.
    pub const DATABASE_DROPPED: Self = Self(1 << 8);
    /// A backslash is an ordinary character in string literals.
    pub const NO_BACKSLASH_ESCAPES: Self = Self(1 << 9);
    /// The statement must be prepared again, because its columns changed.
    pub const METADATA_CHANGED: Self = Self(1 << 10);
    /// The open transaction is read only.
    pub const IN_TRANSACTION_READONLY: Self = Self(1 << 13);

    /// The packet reports changes of the session's state.
    pub const SESSION_STATE_CHANGED: Self = Self(1 << 14);

    /// This set with the flags of `other` added or removed.
    pub const fn with(self, other: Self, on: bool) -> Self {
        if on { Self(self.0 | other.0) } else { Self(self.0 & !other.0) }
    }
}

bit_set!(StatusFlags, u16);
