//! What happened: transactions with their statements in order, and what every object held at the end.

use std::collections::BTreeMap;
use std::fmt;

/// How an object remembers its writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A row whose text is appended to: a read shows every write in order.
    List,
    /// A row with a value and the count of its writes: a read shows the last write and its place in the order.
    Register,
    /// Rows found by a condition: a read shows every write, in no order.
    Family,
}

/// An object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// How it remembers.
    pub kind: Kind,
    /// Which of its kind.
    pub id: u32,
}

impl Key {
    /// A list.
    pub fn list(id: u32) -> Self {
        Self { kind: Kind::List, id }
    }

    /// A register.
    pub fn register(id: u32) -> Self {
        Self { kind: Kind::Register, id }
    }

    /// A family.
    pub fn family(id: u32) -> Self {
        Self { kind: Kind::Family, id }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::List => "list",
            Kind::Register => "register",
            Kind::Family => "family",
        };
        write!(out, "{kind} {}", self.id)
    }
}

/// What a read showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The values of a list in order, or those of a family in any order.
    Values(Vec<u64>),
    /// A register after so many writes; 0 is the first value, that nobody wrote.
    Version {
        /// Writes until then.
        version: u64,
        /// The last value written.
        value: u64,
    },
}

/// One access to one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A value was appended, set or inserted; no value is written to an object twice.
    Write {
        /// The object.
        key: Key,
        /// The value.
        value: u64,
        /// Whether ROLLBACK TO SAVEPOINT has taken it back.
        is_undone: bool,
    },
    /// The object was read.
    Read {
        /// The object.
        key: Key,
        /// What it held.
        seen: Seen,
        /// Whether the read locked what it found.
        locks: bool,
    },
}

/// A statement that succeeded, or may have. Stamps grow: whatever has the smaller one came first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// When it was sent.
    pub sent: u64,
    /// When its answer had come.
    pub answered: u64,
    /// What it did.
    pub operations: Vec<Operation>,
}

/// How a transaction ended, as far as its session knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its COMMIT was acknowledged.
    Committed,
    /// It was undone, by its session or by the server.
    Aborted,
    /// The connection was lost while it was committed.
    Unknown,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Whose.
    pub session: u32,
    /// BEGIN, the statements and COMMIT, in order; a statement that stands alone is all of them.
    pub statements: Vec<Statement>,
    /// Its end.
    pub outcome: Outcome,
}

impl Transaction {
    /// When its first statement was sent.
    pub fn began(&self) -> u64 {
        self.statements.first().map_or(0, |statement| statement.sent)
    }

    /// When its end was known; never, if it is not.
    pub fn ended(&self) -> u64 {
        match self.outcome {
            Outcome::Unknown => u64::MAX,
            _ => self.statements.last().map_or(u64::MAX, |statement| statement.answered),
        }
    }

    /// All accesses, in order.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.statements.iter().flat_map(|statement| &statement.operations)
    }
}

impl fmt::Display for Transaction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "session {} from {} to {}", self.session, self.began(), self.ended())?;
        for operation in self.operations() {
            match operation {
                Operation::Write { key, value, is_undone } => {
                    write!(out, "; {} {value} to {key}", if *is_undone { "wrote and took back" } else { "wrote" })?;
                }
                Operation::Read { key, seen, locks } => {
                    write!(out, "; read {key}{}: ", if *locks { " locking" } else { "" })?;
                    match seen {
                        Seen::Values(values) => write!(out, "{values:?}")?,
                        Seen::Version { version, value } => write!(out, "{value} as version {version}")?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// Transactions, and what was read after all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The transactions, in any order.
    pub transactions: Vec<Transaction>,
    /// What objects held at the end.
    pub finals: BTreeMap<Key, Seen>,
}
