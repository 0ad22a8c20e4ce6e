//! The main block: the schema, the distribution of partitions, and AUTO_INCREMENT numbers. It runs the stages
//! of one schema change at a time. Alterations fill indexes and check rows beside other changes.
//!
//! - Owns: the newest catalog, table ids, AUTO_INCREMENT counters, the queue of schema changes, user-level
//!   locks, tables locked by sessions, alterations, and the transactions in which they fill indexes.
//! - Takes: `ChangeSchema`, `CancelSchemaChange`, `BlockTablesReply`, `RecallTables`, `ChangePartitionReply`,
//!   `PublishCatalogReply`, `ReserveAutoIncrement`, `SetGlobals`, `UnlockTables`, `UseUserLock`,
//!   `CancelUserLock`, `ReleaseUserLocks`, `ReadStatus`, `ReadStatusReply`, `ControlNode`,
//!   `InterruptSessionReply`, `AppendRecordsReply`, `CommitStable`, `AwaitDurableReply`, `ContinueWork`; as
//!   the requester of a read or statement `ReadRowsReply`, `ExecuteStatementReply` and `EndTransactionReply`;
//!   during recovery `RecoverLogReply`, `ReplayLogReply`, `BuildIndexesReply` and `StartLogReply`.
//! - Sends: `AppendRecords` and `AwaitDurable` to log, `CommitStable` to the tc that owns the number,
//!   `BlockTables`, `UnblockTables` and `ApplyGlobals` to every sql block, `ReadRows` to ldm and query,
//!   `ExecuteStatement`, `InterruptStatement` and `EndTransaction` to tc, `ChangePartition` to the ldm
//!   instances of a chain, `PublishCatalog` to every sql, tc, ldm and query block of the node, the replies to
//!   sql; during recovery `RecoverLog`, `ReplayLog` and `StartLog` to log, `ChangePartition` and
//!   `BuildIndexes` to ldm, and `OpenToClients` to recv.
//! - Never: runs for each operation of a user.
//!
//! Reading order: [`block`]; [`state`], a change as stages; [`wait_for_tables`], waiting before a change;
//! [`change_schema`], running stages; [`plan`], the stages of each change; [`alter_table`], the stages of
//! alterations; [`alteration`], their other work; [`definition`], completed definitions; [`foreign_key`],
//! related tables; [`lock_tables`]; [`lost_sessions`]; [`records`], what main writes to the log; [`epochs`],
//! the node's part in the epochs of a cluster; [`rejoin`], the copy of all rows; [`recover`], the start of a
//! durable node; [`restore`], the schema from the log; [`reserve_auto_increment`]; [`persisted_settings`],
//! SET GLOBAL and SET PERSIST; [`member`], the node's part in a cluster; [`ask_node`], questions to other
//! nodes; [`use_user_lock`], [`own_user_locks`], [`user_locks`], [`backup_lock`] and
//! [`backup_part`].

pub mod block;
mod state;
mod stop;
mod read_lists;
mod recover;
mod checkpoint;
mod view;
mod wait_for_tables;
mod change_schema;
mod own_table;
mod own_user_locks;
mod plan;
mod alter_table;
mod replace_table;
mod alteration;
mod ask_node;
mod ask_outcome;
mod backup_lock;
mod backup_part;
mod definition;
mod foreign_key;
mod reserve_auto_increment;
mod records;
mod rejoin;
mod share_schema;
mod epochs;
mod tc_waits;
mod first_accounts;
mod persisted_settings;
mod restart_info;
mod restore;
mod lock_tables;
mod lost_sessions;
mod member;
mod use_user_lock;
mod user_locks;

pub use ask_node::Supervision;
pub use backup_part::{BackupDesk, PartOrder};
pub use block::{MainBlock, MainConfiguration};
pub use checkpoint::CheckpointSettings;
pub use epochs::EpochSettings;
pub use records::MainLog;
pub use restore::{RestoredPartition, RestoredSchema};

#[cfg(test)]
mod tests;
