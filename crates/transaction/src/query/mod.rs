//! The query block: committed and snapshot reads of any partition of the node, concurrent with the
//! partition's owner.
//!
//! - Owns: a reader slot of the partition guards, and working memory; no data.
//! - Takes: `ReadRows`, `OpenPartition`, `ReadStatus`, `PublishCatalog`.
//! - Sends: `ReadRowsReply` to sql; `ReadRows` to the owner when a guard is busy; `PublishCatalogReply`.
//! - Never: writes, locks, or sees uncommitted versions; waits for a guard.

pub mod block;

pub use block::QueryBlock;
