//! The ldm block: owns a set of partitions and is the only writer of them.
//!
//! - Owns: the partitions placed here (as primary or backup), their row locks, the record of what each
//!   transaction has touched here, the redo stream.
//! - Takes: `ReadRows`, `WriteRows`, `InterruptWrites`, `PrepareTransaction`, `CommitTransaction`,
//!   `UndoTransaction`, `ReplicateRows`, `ReplicateRowsReply`, `CopyRows`, `CancelWait`, `ReplayRows`,
//!   `BuildIndexes`, `WriteCheckpoint`, `SetCheckpointSpeed`, `EndCheckpoint`, `ChangePartition`,
//!   `ReadStatus`, `PublishCatalog`, `ContinueWork`.
//! - Sends: the replies; `LockWaitStarted`, `LockWaitEnded` and `CommitStable` to tc; `ReplicateRows` along
//!   the chain; `CopyRows` to primaries; `OpenPartition` to the query blocks of its node; file requests for
//!   the redo stream.
//! - Never: serves other partitions; blocks its thread on a lock or on a reader inside a guard.
//!
//! Reading order: [`block`]; the records in [`partition_table`], [`participant_table`] and [`state`]; the
//! life of a write in [`write_rows`], [`evaluate_rows`], [`update_row`], [`change_rows`], [`unique_entry`],
//! [`foreign_key`], [`range_lock`], [`lock_wait`] and [`interrupt_writes`]; the end of a transaction in
//! [`prepare_transaction`], [`replicate_rows`], [`resolve_transaction`], [`resolve_images`] and [`epoch`];
//! [`copy_rows`] for a node that returns; then [`read_rows`], [`deferred`], [`change_partition`],
//! [`publish_catalog`], [`purge`], [`record_stream`], [`replay`], [`checkpoint`], [`read_status`] and
//! [`verify`].

pub mod block;
mod change_partition;
mod change_rows;
mod checkpoint;
mod checkpoint_left;
mod checkpoint_speed;
mod copy_rows;
mod deferred;
mod epoch;
mod evaluate_rows;
mod foreign_key;
mod interrupt_writes;
mod load_checkpoint;
mod lock_wait;
mod participant_table;
mod partition_table;
mod prepare_transaction;
mod publish_catalog;
mod purge;
mod range_lock;
mod read_rows;
mod read_status;
mod record_images;
mod record_stream;
mod replay;
mod replicate_rows;
mod resolve_images;
mod resolve_transaction;
mod state;
mod unique_entry;
mod update_row;
mod verify;
mod write_rows;

pub use block::{LdmBlock, LdmShared};
pub use record_stream::LogTarget;
pub use verify::LdmWork;

#[cfg(test)]
pub(crate) mod tests;
