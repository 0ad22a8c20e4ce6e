//! The schema, where partitions are, and AUTO_INCREMENT numbers: one change after the other.
//!
//! - Owns: the newest catalog, table ids, AUTO_INCREMENT counters, the queue of schema changes, user-level locks, tables that sessions have locked.
//! - Takes: `ChangeSchema`, `CancelSchemaChange`, `BlockTablesReply`, `RecallTables`, `ChangePartitionReply`,
//!   `PublishCatalogReply`, `ReserveAutoIncrement`, `SetGlobals`, `UnlockTables`, `UseUserLock`,
//!   `CancelUserLock`, `ReleaseUserLocks`, `ReadStatus`, `ContinueWork`.
//! - Sends: `BlockTables` and `UnblockTables` to every sql block, `ChangePartition` to the ldm instances of a chain,
//!   `PublishCatalog` to every sql, tc, ldm and query block of the node, the replies to sql.
//! - Never: runs once per user operation.
//!
//! In reading order: [`block`]; [`state`], a change as stages; [`wait_for_tables`], what comes before; [`change_schema`], how
//! stages run; [`plan`], which stages a change has; [`alter_table`], those of indexes and foreign keys; [`definition`], the definitions that they make; [`foreign_key`], which other
//! tables they touch; [`reserve_auto_increment`];
//! [`use_user_lock`].

pub mod block;
mod state;
mod wait_for_tables;
mod change_schema;
mod plan;
mod alter_table;
mod definition;
mod foreign_key;
mod reserve_auto_increment;
mod lock_tables;
mod set_globals;
mod use_user_lock;
mod user_locks;

pub use block::{MainBlock, MainConfiguration};

#[cfg(test)]
mod tests;
