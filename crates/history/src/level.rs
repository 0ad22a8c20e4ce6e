//! The anomalies, and which isolation level forbids which.

use std::fmt;

/// An isolation level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A snapshot for each statement.
    ReadCommitted,
    /// A snapshot for each transaction; writes act on the newest committed version.
    RepeatableRead,
    /// The same, and a write of a row that changed after the snapshot is refused (`innodb_snapshot_isolation`).
    Snapshot,
    /// As if one transaction ran after the other.
    Serializable,
}

impl Level {
    /// Every level, the weakest first.
    pub const ALL: [Self; 4] = [Self::ReadCommitted, Self::RepeatableRead, Self::Snapshot, Self::Serializable];

    /// Its name, as plans and options spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read_committed",
            Self::RepeatableRead => "repeatable_read",
            Self::Snapshot => "snapshot",
            Self::Serializable => "serializable",
        }
    }

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// The statements that give a session this level.
    pub fn statements(self) -> &'static [&'static str] {
        match self {
            Self::ReadCommitted => &["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"],
            Self::RepeatableRead => &["SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"],
            Self::Snapshot => &[
                "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
                "SET SESSION innodb_snapshot_isolation = ON",
            ],
            Self::Serializable => &["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"],
        }
    }

    /// Whether the anomaly must not be seen at this level.
    pub fn forbids(self, anomaly: Anomaly) -> bool {
        match anomaly {
            Anomaly::ReadSkew => self >= Self::RepeatableRead,
            Anomaly::LostUpdate | Anomaly::SingleAntiDependency => self >= Self::Snapshot,
            Anomaly::WriteSkew | Anomaly::Phantom => self >= Self::Serializable,
            _ => true,
        }
    }
}

/// What a history can show that one transaction after the other could not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// A value that nobody wrote, or that was read before it was written.
    InventedValue,
    /// A transaction did not see what it had written itself.
    OwnWriteMissed,
    /// A committed write is not there at the end.
    LostWrite,
    /// Two reads of an object tell its writes in different orders.
    ConflictingOrder,
    /// A write of an aborted transaction, or one that was taken back, was seen: G1a.
    AbortedRead,
    /// A write was seen that its transaction replaced before the end: G1b.
    IntermediateRead,
    /// A cycle of writes over writes: G0.
    DirtyWrite,
    /// A cycle of writes over writes and reads of writes: G1c.
    CircularInformation,
    /// A cycle of those and of locking reads that were overtaken by writes.
    LockedReadOvertaken,
    /// A cycle of those and of the order in which transactions began after others were acknowledged.
    OutOfTime,
    /// One statement saw a part of a transaction, or less than what was acknowledged before it was sent.
    StatementSkew,
    /// A cycle with one anti-dependency into a transaction that then read what came later: read skew, of G-single.
    ReadSkew,
    /// A cycle with one anti-dependency, of a transaction that then wrote over what it had not read: P4, of G-single.
    LostUpdate,
    /// Any other cycle with one anti-dependency: G-single.
    SingleAntiDependency,
    /// A cycle with several anti-dependencies between objects: G2-item.
    WriteSkew,
    /// A cycle with several anti-dependencies, one of them by a condition that new rows came to fulfil: G2.
    Phantom,
}

impl Anomaly {
    /// Every anomaly.
    pub const ALL: [Self; 16] = [
        Self::InventedValue,
        Self::OwnWriteMissed,
        Self::LostWrite,
        Self::ConflictingOrder,
        Self::AbortedRead,
        Self::IntermediateRead,
        Self::DirtyWrite,
        Self::CircularInformation,
        Self::LockedReadOvertaken,
        Self::OutOfTime,
        Self::StatementSkew,
        Self::ReadSkew,
        Self::LostUpdate,
        Self::SingleAntiDependency,
        Self::WriteSkew,
        Self::Phantom,
    ];

    /// Its name, with Adya's sign where there is one.
    pub fn name(self) -> &'static str {
        match self {
            Self::InventedValue => "invented value",
            Self::OwnWriteMissed => "own write missed",
            Self::LostWrite => "lost write",
            Self::ConflictingOrder => "conflicting order",
            Self::AbortedRead => "aborted read (G1a)",
            Self::IntermediateRead => "intermediate read (G1b)",
            Self::DirtyWrite => "dirty write (G0)",
            Self::CircularInformation => "circular information (G1c)",
            Self::LockedReadOvertaken => "locked read overtaken",
            Self::OutOfTime => "out of time",
            Self::StatementSkew => "statement skew",
            Self::ReadSkew => "read skew (G-single)",
            Self::LostUpdate => "lost update (G-single)",
            Self::SingleAntiDependency => "single anti-dependency (G-single)",
            Self::WriteSkew => "write skew (G2-item)",
            Self::Phantom => "phantom (G2)",
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
