//! Schema changes: from sql to main, which orders them one after the other, has the partitions made or changed by their ldm
//! instances, and publishes the new dictionary to every block before it answers.

use std::any::Any;
use std::sync::Arc;

use junctor_kernel::Address;
use junctor_model::alteration::Alteration;
use junctor_model::collation::CollationId;
use junctor_model::error::Error;
use junctor_model::id::{ConnectionId, IndexId, PartitionId, TableId};
use junctor_model::schema::{Dictionary, TableDefinition, TableLayout};

use crate::read_rows::OperationId;

/// One change. Definitions come without ids and versions; main gives them.
#[derive(Clone, Debug)]
pub enum SchemaChange {
    /// CREATE DATABASE.
    CreateDatabase {
        /// The name.
        name: Box<str>,
        /// The default collation.
        collation: CollationId,
        /// IF NOT EXISTS.
        if_not_exists: bool,
    },
    /// DROP DATABASE with its tables.
    DropDatabase {
        /// The name.
        name: Box<str>,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// CREATE TABLE, hidden tables of unique indexes made with it.
    CreateTable {
        /// The table.
        definition: Box<TableDefinition>,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// The first AUTO_INCREMENT value.
        auto_increment: u64,
    },
    /// DROP TABLE.
    DropTables {
        /// (database, table) of each.
        names: Vec<(Box<str>, Box<str>)>,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// TRUNCATE TABLE: the table is made anew under a new id, AUTO_INCREMENT begins again.
    TruncateTable {
        /// The table.
        table: TableId,
    },
    /// ALTER TABLE, CREATE INDEX and DROP INDEX, all or nothing. With the answer everything is done, unless
    /// `Alteration::has_session_work`: then the new indexes are in state Building, or there is none yet; the asking session fills
    /// unique ones, holds the tables and looks for parents, and then says `FinishAlteration` or `UndoAlteration`.
    AlterTable {
        /// The table.
        table: TableId,
        /// What changes.
        alteration: Arc<Alteration>,
    },
    /// RENAME TABLE: one after the other, all or none.
    RenameTables {
        /// (database, table) as it is called, and as it is to be called.
        renames: Vec<TableRename>,
    },
    /// LOCK TABLES: nothing changes, and others are kept out until the session gives the tables back (`UnlockTables`).
    LockTables {
        /// The tables, each once.
        tables: Vec<TableLockRequest>,
    },
    /// The entries of ordered indexes that are being built are made from the rows that exist. Main asks itself for this.
    BuildIndexes {
        /// The table.
        table: TableId,
        /// The change that they belong to.
        alteration: Arc<Alteration>,
    },
    /// Nobody else writes to the table or to the parents of its new foreign keys until the session gives them back (`UnlockTables`).
    HoldTables {
        /// The table.
        table: TableId,
        /// The change.
        alteration: Arc<Alteration>,
    },
    /// The session's work for an alteration is done.
    FinishAlteration {
        /// The table.
        table: TableId,
        /// The change.
        alteration: Arc<Alteration>,
    },
    /// An alteration is taken back: its indexes go away.
    UndoAlteration {
        /// The table.
        table: TableId,
    },
}

/// One table of LOCK TABLES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLockRequest {
    /// (database, table).
    pub name: (Box<str>, Box<str>),
    /// Whether nobody else may read it; others may write it neither way.
    pub writes: bool,
}

/// One table of RENAME TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRename {
    /// (database, table) as it is called.
    pub from: (Box<str>, Box<str>),
    /// (database, table) as it is to be called.
    pub to: (Box<str>, Box<str>),
}

/// Change the schema, once nobody else uses the tables that it concerns.
#[derive(Debug)]
pub struct ChangeSchema {
    /// Goes back in the reply.
    pub operation: OperationId,
    /// Who gets the reply.
    pub reply_to: Address,
    /// The session that asks.
    pub connection: ConnectionId,
    /// How long others are waited for, in milliseconds, until error 1205.
    pub wait_ms: u64,
    /// Whether tables that foreign keys name stay.
    pub foreign_key_checks: bool,
    /// The change.
    pub change: Box<SchemaChange>,
}

/// The answer: every block has the new dictionary.
#[derive(Debug)]
pub struct ChangeSchemaReply {
    /// From the request.
    pub operation: OperationId,
    /// Warnings (IF EXISTS notes), as (errno, message).
    pub notes: Vec<(u16, Box<str>)>,
    /// Why it was refused; nothing has changed then.
    pub error: Option<Box<Error>>,
}

/// The guarded partition as its readers reach it; only the data plane knows what is inside.
#[derive(Clone)]
pub struct PartitionHandle(pub Arc<dyn Any + Send + Sync>);

impl std::fmt::Debug for PartitionHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("PartitionHandle")
    }
}

/// What main asks of the ldm that owns (or backs up) a partition.
#[derive(Debug)]
pub enum PartitionChange {
    /// Make an empty partition and open it to the readers of its group.
    Create {
        /// The chain of ldm addresses, the primary first.
        chain: Vec<Address>,
    },
    /// Close it, and free it when no transaction holds anything in it any more; the answer does not wait for that.
    Drop,
    /// Use a new layout that differs in indexes only.
    ReplaceLayout,
    /// Build the entries of an ordered index of the layout in bounded steps.
    BuildIndex(IndexId),
}

/// Change one partition.
#[derive(Debug)]
pub struct ChangePartition {
    /// Main's number for the answer.
    pub operation: OperationId,
    /// Main.
    pub reply_to: Address,
    /// The partition.
    pub partition: PartitionId,
    /// The table's layout after the change.
    pub layout: Arc<TableLayout>,
    /// The change.
    pub change: PartitionChange,
}

/// The answer.
#[derive(Debug)]
pub struct ChangePartitionReply {
    /// From the request.
    pub operation: OperationId,
    /// From the request.
    pub partition: PartitionId,
    /// Why it failed (memory); the partition is as before.
    pub error: Option<Box<Error>>,
}

/// From an ldm to the query blocks of its group: the partition may be read, or no longer.
#[derive(Debug)]
pub struct OpenPartition {
    /// The partition.
    pub partition: PartitionId,
    /// The owner, for reads that bounce.
    pub owner: Address,
    /// The guard; `None` closes.
    pub handle: Option<PartitionHandle>,
}

/// Where every partition is: part of the published snapshot.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    chains: std::collections::BTreeMap<PartitionId, Vec<Address>>,
}

impl Distribution {
    /// The chain of a partition, the primary first.
    pub fn chain(&self, partition: PartitionId) -> Option<&[Address]> {
        self.chains.get(&partition).map(Vec::as_slice)
    }

    /// The owner of a partition.
    pub fn owner(&self, partition: PartitionId) -> Option<Address> {
        self.chain(partition).and_then(|chain| chain.first().copied())
    }

    /// Sets the chain of a partition.
    pub fn put(&mut self, partition: PartitionId, chain: Vec<Address>) {
        self.chains.insert(partition, chain);
    }

    /// Forgets the partitions of a table.
    pub fn remove_table(&mut self, table: TableId) {
        self.chains.retain(|partition, _| partition.table != table);
    }
}

/// The schema and where its partitions are, at one moment; immutable.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// The schema.
    pub dictionary: Dictionary,
    /// Where the partitions are.
    pub distribution: Distribution,
}

/// From main to every sql, tc, ldm and query block.
#[derive(Debug)]
pub struct PublishCatalog {
    /// Goes back in the reply.
    pub operation: OperationId,
    /// Main.
    pub reply_to: Address,
    /// From now on.
    pub catalog: Arc<Catalog>,
}

/// The answer: requests sent by this block from now on name the new versions.
#[derive(Debug)]
pub struct PublishCatalogReply {
    /// From the request.
    pub operation: OperationId,
}
