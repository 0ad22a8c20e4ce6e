//! Identifiers: a separate type for each kind, so that they cannot be confused.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, formatter)
            }
        }
    };
}

id! {
    /// A table of the dictionary. Hidden tables (of unique indexes) have ids too. Never reused.
    TableId(u32)
}
id! {
    /// An index of one table: its position in `TableDefinition::indexes` at its creation. 0 is the primary
    /// key.
    IndexId(u16)
}
id! {
    /// The position of a column in its table, from 0.
    ColumnNumber(u16)
}
id! {
    /// The version of one table's definition. Every signal that names a table carries it.
    SchemaVersion(u32)
}
id! {
    /// A transaction: the tc instance in the upper 16 bits, a counter below. 0 means none.
    TransactionId(u64)
}
id! {
    /// The dense number that orders commits. 0 precedes every commit.
    CommitNumber(u64)
}
id! {
    /// The number of a statement within its transaction, from 1.
    StatementNumber(u32)
}
id! {
    /// A row of one partition. Stable for the life of the row, even when its versions move.
    RowId(u32)
}
id! {
    /// A client connection of one node, as CONNECTION_ID() returns it.
    ConnectionId(u32)
}

/// One partition of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// The table, or the hidden table of a unique index.
    pub table: TableId,
    /// From 0 to the table's partition count minus 1.
    pub index: u16,
}

impl TransactionId {
    /// The id of transaction `counter` (below 2^48) of tc instance `instance`.
    pub fn new(instance: u16, counter: u64) -> TransactionId {
        TransactionId((u64::from(instance) << 48) | (counter & 0xFFFF_FFFF_FFFF))
    }

    /// The tc instance that coordinates this transaction.
    pub fn instance(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Whether this names a transaction.
    pub fn is_some(self) -> bool {
        self.0 != 0
    }
}
