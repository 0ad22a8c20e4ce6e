//! Schema changes. sql sends them to main, which has ldm instances create or change the partitions, and
//! publishes the new dictionary to every block before it replies.

use std::any::Any;
use std::sync::Arc;

use junctor_kernel::Address;
use junctor_model::access::{AccessChange, AccessControl};
use junctor_model::alteration::Alteration;
use junctor_model::collation::CollationId;
use junctor_model::error::Error;
use junctor_model::id::{ConnectionId, Epoch, IndexId, PartitionId, TableId};
use junctor_model::schema::{Dictionary, Sharing, TableDefinition, TableLayout};

use crate::diagnostics::Diagnostics;
use crate::read_rows::OperationId;
use crate::row_expressions::RowExpressions;

/// One change. Main assigns the ids and versions of new definitions.
#[derive(Clone, Debug)]
pub enum SchemaChange {
    /// CREATE DATABASE.
    CreateDatabase {
        /// Name of the database.
        name: Box<str>,
        /// Default collation of its tables.
        collation: CollationId,
        /// IF NOT EXISTS.
        if_not_exists: bool,
    },
    /// ALTER DATABASE.
    AlterDatabase {
        /// Name of the database.
        name: Box<str>,
        /// Default collation of tables that are created later.
        collation: CollationId,
    },
    /// DROP DATABASE with its tables.
    DropDatabase {
        /// Name of the database.
        name: Box<str>,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// CREATE TABLE, with the hidden tables of its unique indexes.
    CreateTable {
        /// The definition, without ids and version.
        definition: Box<TableDefinition>,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// The first AUTO_INCREMENT value.
        auto_increment: u64,
    },
    /// DROP TABLE.
    DropTables {
        /// (database, table) pairs.
        names: Vec<(Box<str>, Box<str>)>,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// TRUNCATE TABLE: replaces the table by an empty one with a new id, and restarts AUTO_INCREMENT.
    TruncateTable {
        /// The table to empty.
        table: TableId,
    },
    /// ALTER TABLE, CREATE INDEX and DROP INDEX, all or nothing. Main fills new indexes and checks the rows
    /// of new foreign keys before it replies.
    AlterTable {
        /// The table to alter.
        table: TableId,
        /// The requested changes.
        alteration: Arc<Alteration>,
        /// If rows are copied: what the new table computes for them.
        expressions: Arc<RowExpressions>,
    },
    /// RENAME TABLE: in the given order, all or none.
    RenameTables {
        /// Old and new names.
        renames: Vec<TableRename>,
    },
    /// LOCK TABLES: changes nothing, and excludes other sessions until `UnlockTables`.
    LockTables {
        /// Each table once.
        tables: Vec<TableLockRequest>,
    },
    /// CREATE TEMPORARY TABLE, and the first step of CREATE TABLE ... SELECT.
    CreateOwnTable {
        /// The definition, without ids and version.
        definition: Box<TableDefinition>,
        /// The session that finds the table.
        sharing: Sharing,
        /// The first AUTO_INCREMENT value.
        auto_increment: u64,
    },
    /// Drops tables of one session, as far as they exist.
    DropOwnTables {
        /// The tables.
        tables: Vec<TableId>,
    },
    /// The last step of CREATE TABLE ... SELECT: all sessions find the table.
    FinishTable {
        /// The table that the session has filled.
        table: TableId,
    },
    /// CREATE VIEW, or ALTER VIEW.
    CreateView {
        /// The definition, without id and version.
        definition: Box<TableDefinition>,
        /// OR REPLACE: an existing view is replaced.
        or_replace: bool,
        /// ALTER VIEW: the view must exist.
        alters: bool,
    },
    /// DROP VIEW.
    DropViews {
        /// (database, view) pairs.
        names: Vec<(Box<str>, Box<str>)>,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// CREATE USER, GRANT and their kin. Refused with error 1412 if the accounts have changed since the
    /// session has looked at them; it then repeats the statement.
    ChangeAccess {
        /// The new, changed and dropped accounts.
        change: AccessChange,
    },
}

/// One table of LOCK TABLES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLockRequest {
    /// (database, table).
    pub name: (Box<str>, Box<str>),
    /// WRITE: no other session may read the table. READ: none may write it.
    pub writes: bool,
}

/// One table of RENAME TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRename {
    /// Old (database, table).
    pub from: (Box<str>, Box<str>),
    /// New (database, table).
    pub to: (Box<str>, Box<str>),
}

/// Changes the schema, once no other session uses the tables concerned.
#[derive(Debug)]
pub struct ChangeSchema {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// Connection of the requesting session.
    pub connection: ConnectionId,
    /// Maximum wait for other sessions, in milliseconds, before error 1205.
    pub wait_ms: u64,
    /// Maximum wait for a row lock while an index is filled, in milliseconds.
    pub lock_wait_ms: u32,
    /// Whether tables that foreign keys refer to are protected.
    pub foreign_key_checks: bool,
    /// The change.
    pub change: Box<SchemaChange>,
}

layout! { ChangeSchema { operation, reply_to, connection, wait_ms, lock_wait_ms, foreign_key_checks, change } }

/// The reply to [`ChangeSchema`]: every block has the new dictionary.
#[derive(Debug)]
pub struct ChangeSchemaReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// Notes of IF EXISTS and IF NOT EXISTS, as (errno, message).
    pub notes: Vec<(u16, Box<str>)>,
    /// Number of rows that an alteration has checked for their parents.
    pub rows: u64,
    /// Warnings of the values that an alteration has adjusted.
    pub diagnostics: Option<Box<Diagnostics>>,
    /// Why the change failed; nothing has changed then.
    pub error: Option<Box<Error>>,
}

layout! { ChangeSchemaReply { operation, notes, rows, diagnostics, error } }

/// The guarded partition, shared with its readers. Only the data plane knows its type.
#[derive(Clone)]
pub struct PartitionHandle(pub Arc<dyn Any + Send + Sync>);

impl std::fmt::Debug for PartitionHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("PartitionHandle")
    }
}

/// Main's order to the ldm that owns or backs up a partition.
#[derive(Debug)]
pub enum PartitionChange {
    /// Creates an empty partition and opens it to the readers of its group.
    Create {
        /// The ldm instances of the chain, the primary first.
        chain: Vec<Address>,
    },
    /// Closes the partition. It is freed when no transaction holds anything in it; the reply does not wait
    /// for that.
    Drop,
    /// Installs a new layout that differs in indexes only.
    ReplaceLayout,
    /// Builds an ordered index of the layout in bounded steps.
    BuildIndex(IndexId),
}

/// Changes one partition.
#[derive(Debug)]
pub struct ChangePartition {
    /// Main's number of the current stage of the change, returned in the reply.
    pub operation: OperationId,
    /// The main block.
    pub reply_to: Address,
    /// The partition to change.
    pub partition: PartitionId,
    /// The table's layout after the change.
    pub layout: Arc<TableLayout>,
    /// The change.
    pub change: PartitionChange,
    /// In a cluster with voters, the epoch in which the node of main sends this to the members of a chain. A
    /// node that was admitted later drops it: it was meant for an earlier life of that node. 0 otherwise.
    pub epoch: Epoch,
}

layout! { ChangePartition { operation, reply_to, partition, layout, change, epoch } }

/// The reply to [`ChangePartition`].
#[derive(Debug)]
pub struct ChangePartitionReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// Copied from the request.
    pub partition: PartitionId,
    /// Why it failed (memory). The partition is unchanged then.
    pub error: Option<Box<Error>>,
}

layout! { ChangePartitionReply { operation, partition, error } }

/// From an ldm to the query blocks of its group: opens a partition for reading, or closes it.
#[derive(Debug)]
pub struct OpenPartition {
    /// The partition to open or close.
    pub partition: PartitionId,
    /// The owner, which serves reads that find the partition's guard (its lock) busy.
    pub owner: Address,
    /// The guard; `None` closes the partition.
    pub handle: Option<PartitionHandle>,
}

/// For each partition its chain: the ldm instances that store the partition, the primary first.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    chains: std::collections::BTreeMap<PartitionId, Vec<Address>>,
}

impl Distribution {
    /// The chain of a partition, the primary first.
    pub fn chain(&self, partition: PartitionId) -> Option<&[Address]> {
        self.chains.get(&partition).map(Vec::as_slice)
    }

    /// The primary of a partition.
    pub fn owner(&self, partition: PartitionId) -> Option<Address> {
        self.chain(partition).and_then(|chain| chain.first().copied())
    }

    /// Every partition with its chain, in the order of the partitions.
    pub fn chains(&self) -> impl Iterator<Item = (&PartitionId, &Vec<Address>)> {
        self.chains.iter()
    }

    /// Sets the chain of a partition.
    pub fn put(&mut self, partition: PartitionId, chain: Vec<Address>) {
        self.chains.insert(partition, chain);
    }

    /// Removes the partitions of a table.
    pub fn remove_table(&mut self, table: TableId) {
        self.chains.retain(|partition, _| partition.table != table);
    }
}

/// The schema and the distribution at one moment; immutable.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// The schema.
    pub dictionary: Dictionary,
    /// The chains of its partitions.
    pub distribution: Distribution,
}

impl Catalog {
    /// No databases and tables, and these accounts.
    pub fn with_access(access: Arc<AccessControl>) -> Catalog {
        let mut catalog = Catalog::default();
        catalog.dictionary.access = access;
        catalog
    }
}

/// From main to every sql, tc, ldm and query block: use this catalog from now on.
#[derive(Debug)]
pub struct PublishCatalog {
    /// Main's number of the current stage of the change, returned in the reply.
    pub operation: OperationId,
    /// The main block.
    pub reply_to: Address,
    /// The epoch that the main block of a node with the sequencer has started; 0 from the main block of the
    /// receiver's node while it recovers or joins, and in a cluster without voters.
    pub epoch: Epoch,
    /// The new catalog.
    pub catalog: Arc<Catalog>,
}

layout! { PublishCatalog { operation, reply_to, epoch, catalog } }

/// The reply to [`PublishCatalog`]: later requests of this block name the new versions.
#[derive(Debug)]
pub struct PublishCatalogReply {
    /// Copied from the request.
    pub operation: OperationId,
}

layout! { PublishCatalogReply { operation } }
