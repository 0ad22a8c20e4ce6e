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
    /// A transaction: the coordinating node in the upper 8 bits, its tc instance in the next 8, a counter
    /// below. 0 means none. Two lives of a node never meet under one id, because the epoch that evicts the
    /// first life undoes its transactions; [`GlobalTransactionId`] tells them apart for longer.
    TransactionId(u64)
}
id! {
    /// The dense number that orders commits. 0 precedes every commit.
    CommitNumber(u64)
}
id! {
    /// The number of a committed membership of the cluster, below 2^24. 0 precedes every membership.
    Epoch(u32)
}
id! {
    /// One admission of a node to the cluster. Never used again, so it tells two lives of a node apart.
    Incarnation(u32)
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
id! {
    /// A session that has tables of its own. The number tells lives of a node apart, as far as tables of more
    /// than one can exist.
    TableOwner(u64)
}

impl TableOwner {
    /// The last bits of the incarnation, above those of the count.
    const LIFE_BITS: u32 = 12;
    const COUNT_BITS: u32 = 20;

    /// The session of this connection, as the owner of tables, in this life of its node. `count` differs for
    /// each session that has the connection.
    pub fn new(connection: ConnectionId, life: Incarnation, count: u64) -> TableOwner {
        let life = u64::from(life.0) & ((1 << Self::LIFE_BITS) - 1);
        let count = count & ((1 << Self::COUNT_BITS) - 1);
        TableOwner(u64::from(connection.0) << 32 | life << Self::COUNT_BITS | count)
    }

    /// The connection of the session.
    pub fn connection(self) -> ConnectionId {
        ConnectionId((self.0 >> 32) as u32)
    }

    /// Whether the session is of an earlier life of its node than this one.
    pub fn is_before(self, life: Incarnation) -> bool {
        let lives_between = life.0.wrapping_sub((self.0 >> Self::COUNT_BITS) as u32) & ((1 << Self::LIFE_BITS) - 1);
        (1..1 << (Self::LIFE_BITS - 1)).contains(&lives_between)
    }
}

/// One partition of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// The table, or the hidden table of a unique index.
    pub table: TableId,
    /// From 0 to the table's partition count minus 1.
    pub index: u16,
}

/// A transaction, unique in the cluster: no id returns after a restart of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GlobalTransactionId {
    /// The counter of the coordinating tc.
    pub counter: u64,
    /// The incarnation of the coordinating node.
    pub incarnation: Incarnation,
    /// The tc instance on that node.
    pub tc: u16,
    /// The coordinating node.
    pub node: u8,
}

impl std::fmt::Display for GlobalTransactionId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { counter, incarnation, tc, node } = self;
        write!(formatter, "{node}.{incarnation}.{tc}.{counter}")
    }
}

impl CommitNumber {
    /// Bits of the counter. The epoch is above them.
    const COUNTER_BITS: u32 = 40;
    /// The largest counter of an epoch.
    pub const COUNTER_MAX: u64 = (1 << Self::COUNTER_BITS) - 1;

    /// Number `counter` of an epoch. Numbers of one epoch are dense, and below those of later epochs.
    pub const fn new(epoch: Epoch, counter: u64) -> CommitNumber {
        CommitNumber((epoch.0 as u64) << Self::COUNTER_BITS | counter)
    }

    /// The number that starts an epoch: above every number of earlier epochs, and of no transaction.
    pub const fn start_of(epoch: Epoch) -> CommitNumber {
        CommitNumber::new(epoch, 0)
    }

    /// The epoch in which the number was taken.
    pub const fn epoch(self) -> Epoch {
        Epoch((self.0 >> Self::COUNTER_BITS) as u32)
    }

    /// The position within the epoch, from 1.
    pub const fn counter(self) -> u64 {
        self.0 & Self::COUNTER_MAX
    }
}

impl Incarnation {
    /// The number below the first one that main and sql blocks use in this life of their node. Lives have
    /// separate ranges, so a late answer to an earlier life matches no request. 0 on a node alone.
    pub fn first_number(self) -> u64 {
        u64::from(self.0) << 32
    }

    /// The life that uses this number.
    pub fn of_number(number: u64) -> Incarnation {
        Incarnation((number >> 32) as u32)
    }
}

impl TransactionId {
    /// Bits of the counter.
    pub const COUNTER_BITS: u32 = 48;

    /// The id of transaction `counter` (below 2^48) of instance `tc` (below 2^8) of a node.
    pub fn new(node: u8, tc: u16, counter: u64) -> TransactionId {
        let coordinator = u64::from(node) << 8 | u64::from(tc & 0xFF);
        TransactionId(coordinator << Self::COUNTER_BITS | (counter & ((1 << Self::COUNTER_BITS) - 1)))
    }

    /// The node that coordinates this transaction.
    pub fn node(self) -> u8 {
        (self.0 >> (Self::COUNTER_BITS + 8)) as u8
    }

    /// The tc instance of that node.
    pub fn tc(self) -> u16 {
        u16::from((self.0 >> Self::COUNTER_BITS) as u8)
    }

    /// Whether this names a transaction.
    pub fn is_some(self) -> bool {
        self.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_names_its_coordinator() {
        let transaction = TransactionId::new(255, 254, u64::MAX);
        assert_eq!((transaction.node(), transaction.tc()), (255, 254));
        let transaction = TransactionId::new(1, 2, 3);
        assert_eq!((transaction.node(), transaction.tc(), transaction.0 & 0xFF), (1, 2, 3));
    }

    #[test]
    fn an_owner_of_tables_names_its_connection_and_its_life() {
        let owner = |life, count| TableOwner::new(ConnectionId(3 << 24 | 7), Incarnation(life), count);
        assert_eq!(owner(5, 9).connection(), ConnectionId(3 << 24 | 7));
        assert_ne!(owner(5, 9), owner(6, 9), "ids of connections and counts begin anew in each life");
        let is_before = |life, later| owner(life, u64::MAX).is_before(Incarnation(later));
        assert_eq!([is_before(5, 5), is_before(5, 6), is_before(6, 5)], [false, true, false]);
        assert!(is_before(4095, 4097) && !is_before(4097, 4095));
    }

    #[test]
    fn numbers_of_later_epochs_are_larger() {
        let last = CommitNumber::new(Epoch(7), CommitNumber::COUNTER_MAX);
        assert_eq!((last.epoch(), last.counter()), (Epoch(7), CommitNumber::COUNTER_MAX));
        assert!(last < CommitNumber::start_of(Epoch(8)));
        assert_eq!(CommitNumber::new(Epoch(8), 0), CommitNumber::start_of(Epoch(8)));
    }
}
