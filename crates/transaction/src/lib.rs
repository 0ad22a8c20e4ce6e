//! The data plane: the blocks tc, ldm, query and log.
#![forbid(unsafe_code)]

pub mod ldm;
pub mod log;
pub mod query;
mod read;
pub mod tc;
#[cfg(test)]
mod tests;

use junctor_storage::guard::PartitionGuard;
use junctor_storage::partition_store::PartitionStore;

/// The content of a `PartitionHandle`: a partition that one ldm writes and that the query blocks of its node
/// read.
pub type GuardedPartition = PartitionGuard<PartitionStore>;
