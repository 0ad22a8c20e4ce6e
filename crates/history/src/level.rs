//! The anomalies, and the isolation levels that forbid them.

use std::fmt;

/// An isolation level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A snapshot for each statement.
    ReadCommitted,
    /// A snapshot for each transaction; writes act on the newest committed version.
    RepeatableRead,
    /// Repeatable read that also rejects a write of a row that changed after the snapshot
    /// (`innodb_snapshot_isolation`).
    Snapshot,
    /// Transactions appear to run one after the other.
    Serializable,
}

impl Level {
    /// All levels, weakest first.
    pub const ALL: [Self; 4] = [Self::ReadCommitted, Self::RepeatableRead, Self::Snapshot, Self::Serializable];

    /// The name in plans and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read_committed",
            Self::RepeatableRead => "repeatable_read",
            Self::Snapshot => "snapshot",
            Self::Serializable => "serializable",
        }
    }

    /// Finds a level by its name in plans and options.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// The statements that set a session to this level.
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

    /// Whether the level rules out the anomaly.
    pub fn forbids(self, anomaly: Anomaly) -> bool {
        match anomaly {
            Anomaly::ReadSkew => self >= Self::RepeatableRead,
            Anomaly::LostUpdate | Anomaly::SingleAntiDependency => self >= Self::Snapshot,
            Anomaly::WriteSkew | Anomaly::Phantom => self >= Self::Serializable,
            _ => true,
        }
    }
}

/// An observation that no serial execution of the transactions can produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// A read returned a value that was never written, or not yet.
    InventedValue,
    /// A transaction missed its own write.
    OwnWriteMissed,
    /// A committed write is missing at the end.
    LostWrite,
    /// Two reads of an object imply different orders of its writes.
    ConflictingOrder,
    /// G1a: a read returned a write of an aborted transaction, or one rolled back to a savepoint.
    AbortedRead,
    /// G1b: a read returned a write that its transaction later replaced.
    IntermediateRead,
    /// G0: a cycle of write dependencies.
    DirtyWrite,
    /// G1c: a cycle of write and read dependencies.
    CircularInformation,
    /// A cycle of write and read dependencies and anti-dependencies of locking reads: a write overtook a read
    /// lock.
    LockedReadOvertaken,
    /// A cycle that needs real-time order: a transaction began after another was acknowledged but precedes
    /// it.
    RealTimeViolation,
    /// One statement observed only part of a transaction, or missed a commit acknowledged before it was sent.
    StatementSkew,
    /// G-single: a cycle with one anti-dependency whose reader also observed the later state. Read skew.
    ReadSkew,
    /// G-single (P4): a cycle with one anti-dependency whose reader overwrote the version that it had missed.
    LostUpdate,
    /// G-single: any other cycle with one anti-dependency.
    SingleAntiDependency,
    /// G2-item: a cycle with several anti-dependencies on objects.
    WriteSkew,
    /// G2: a cycle with several anti-dependencies, at least one of them on a predicate that new rows came to
    /// match.
    Phantom,
}

impl Anomaly {
    /// All anomalies.
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
        Self::RealTimeViolation,
        Self::StatementSkew,
        Self::ReadSkew,
        Self::LostUpdate,
        Self::SingleAntiDependency,
        Self::WriteSkew,
        Self::Phantom,
    ];

    /// The name, with Adya's symbol if there is one.
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
            Self::RealTimeViolation => "real-time violation",
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
