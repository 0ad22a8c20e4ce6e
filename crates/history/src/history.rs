//! The history, which the checker reads: transactions with their statements in order, and the final state of
//! every object.

use std::collections::BTreeMap;
use std::fmt;

/// The kind of an object, which decides how its writes are observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A row with text that writes append to. A read returns all writes in order.
    List,
    /// A row with a value and the count of its writes. A read returns the last write and its position in the
    /// order.
    Register,
    /// The rows that match a condition. A read returns all writes in no order.
    Family,
}

/// An object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The kind of the object.
    pub kind: Kind,
    /// The id within the kind.
    pub id: u32,
}

impl Key {
    /// The list with this id.
    pub fn list(id: u32) -> Self {
        Self { kind: Kind::List, id }
    }

    /// The register with this id.
    pub fn register(id: u32) -> Self {
        Self { kind: Kind::Register, id }
    }

    /// The family with this id.
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

/// The result of a read of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadValue {
    /// The values of a list in order, or those of a family in any order.
    Values(Vec<u64>),
    /// A register after `version` writes. Version 0 is the initial value, which no transaction wrote.
    Version {
        /// Number of writes so far.
        version: u64,
        /// The value of the last write, or 0.
        value: u64,
    },
}

/// One access to one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A value was appended, set or inserted. No value is written to an object twice.
    Write {
        /// The written object.
        key: Key,
        /// The written value.
        value: u64,
        /// Whether ROLLBACK TO SAVEPOINT undid the write.
        is_undone: bool,
    },
    /// The object was read.
    Read {
        /// The object that was read.
        key: Key,
        /// The result.
        seen: ReadValue,
        /// Whether it was a locking read.
        locks: bool,
    },
}

/// A statement that succeeded, or may have. Time stamps are integers that grow over the whole history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// Time stamp of sending it.
    pub sent: u64,
    /// Time stamp of its answer; `u64::MAX` if none came.
    pub answered: u64,
    /// The reads and writes of the statement, in order.
    pub operations: Vec<Operation>,
}

/// The end of a transaction as its session knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its COMMIT was acknowledged.
    Committed,
    /// The session or the server rolled it back.
    Aborted,
    /// The connection was lost during the commit.
    Unknown,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The number of its session.
    pub session: u32,
    /// BEGIN, the statements and COMMIT, in order. An autocommit statement is alone.
    pub statements: Vec<Statement>,
    /// The end, as far as the session knows it.
    pub outcome: Outcome,
}

impl Transaction {
    /// Time stamp of sending the first statement.
    pub fn began(&self) -> u64 {
        self.statements.first().map_or(0, |statement| statement.sent)
    }

    /// Time stamp of the final answer; `u64::MAX` if the outcome is unknown.
    pub fn ended(&self) -> u64 {
        match self.outcome {
            Outcome::Unknown => u64::MAX,
            _ => self.statements.last().map_or(u64::MAX, |statement| statement.answered),
        }
    }

    /// All reads and writes, in order.
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
                    write!(out, "; {} {value} to {key}", if *is_undone { "wrote and rolled back" } else { "wrote" })?;
                }
                Operation::Read { key, seen, locks } => {
                    write!(out, "; read {key}{}: ", if *locks { " locking" } else { "" })?;
                    match seen {
                        ReadValue::Values(values) => write!(out, "{values:?}")?,
                        ReadValue::Version { version, value } => write!(out, "{value} as version {version}")?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// The transactions and the final state of the objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The transactions, in any order.
    pub transactions: Vec<Transaction>,
    /// The state of each object after all transactions.
    pub finals: BTreeMap<Key, ReadValue>,
}
