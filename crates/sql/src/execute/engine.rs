//! The state that all sessions of one sql block share.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use junctor_gateway::Gateway;
use junctor_model::access::{AccountName, Rights};
use junctor_model::id::TableId;
use junctor_signals::counter::SqlCounters;

use super::digest::StatementDigests;
use super::estimates::TableEstimates;
use super::latency::Latencies;
use super::lending::LendingRule;
use super::numbers::AutoIncrementRanges;
use super::query_limit::QueryLimits;
use super::settings::ServerSettings;
use super::state::Workspace;
use super::table_statistics::StatementStatistics;
use super::table_use::BlockingChanges;
use super::turn_ends::TurnEnds;
use super::user_lock::LockCalls;
use crate::mysql_catalog::variable::GlobalVariables;
use crate::parse::Shape;
use crate::plan::{PlanCache, SharedStatements};

/// Seed of the hashes of all shapes (statement texts without their literals). It is constant, so that a
/// statement has the same hash in every run.
pub(crate) const SHAPE_SEED: u64 = 0x7368_6170_6573_2121;
/// Maximum number of idle shapes kept for reuse.
const SPARE_SHAPES_MAX: usize = 4;

/// The version of the accounts, an account and its active roles.
pub(crate) type RightsKey = (u64, AccountName, BTreeSet<AccountName>);

/// The state that all sessions of one sql block share.
pub struct Engine {
    /// Access to the node's data.
    pub gateway: Gateway,
    pub(crate) settings: Arc<ServerSettings>,
    pub(crate) globals: GlobalVariables,
    /// Plans of text statements, by shape.
    pub(crate) cache: PlanCache,
    pub(crate) shared_statements: SharedStatements,
    pub(crate) shape: Shape,
    /// Idle shapes. A statement that waits keeps the last scanned shape, and one of these replaces it.
    pub(crate) spare_shapes: Vec<Shape>,
    pub(crate) work: Workspace,
    /// The calls of GET_LOCK and related functions. They are in a cell, because planning has only a shared
    /// borrow of the engine but adds calls.
    pub(crate) lock_calls: RefCell<LockCalls>,
    pub(crate) table_statistics: StatementStatistics,
    pub(crate) estimates: TableEstimates,
    /// The version of the statistics whose plans the caches have.
    pub(crate) statistics_version: u64,
    /// Reserved AUTO_INCREMENT values.
    pub(crate) ranges: AutoIncrementRanges,
    pub(crate) tables: BlockingChanges,
    pub(crate) query_limits: QueryLimits,
    /// Whether the node stops: statements that are stopped fail with error 1053, and no AUTO_INCREMENT values
    /// are kept.
    pub is_stopping: bool,
    /// How many owners and private keys sessions have got.
    pub(crate) private_count: u64,
    /// Tables of sessions that have ended, which main has not been asked to drop.
    pub(crate) undropped_tables: Vec<TableId>,
    pub(crate) prepared_count: usize,
    /// Bytes of the rows of all open cursors.
    pub(crate) cursor_bytes: usize,
    /// Estimated bytes of the prepared statements of all sessions.
    pub(crate) prepared_bytes: usize,
    pub(crate) session_count: usize,
    /// Sets of rights by version of the accounts, account and roles, with their numbers.
    pub(crate) known_rights: Vec<(RightsKey, u64, Arc<Rights>)>,
    /// The number of the newest set of rights.
    pub(crate) rights_count: u64,
    /// The counters of SHOW STATUS and `junctor_info.counters`.
    pub counters: SqlCounters,
    pub(crate) ends: TurnEnds,
    pub(crate) latencies: Latencies,
    pub(crate) digests: StatementDigests,
    /// How queries leave for a `work` thread; `None` if none leaves.
    pub(crate) lending: Option<LendingRule>,
}

impl Engine {
    /// Removes the last scanned shape, because its statement has to wait.
    pub(crate) fn take_shape(&mut self) -> Shape {
        let spare = self.spare_shapes.pop().unwrap_or_else(|| Shape::new(SHAPE_SEED));
        std::mem::replace(&mut self.shape, spare)
    }

    /// Restores a shape as the last scanned one, because its statement continues.
    pub(crate) fn return_shape(&mut self, shape: Shape) {
        let spare = std::mem::replace(&mut self.shape, shape);
        if self.spare_shapes.len() < SPARE_SHAPES_MAX {
            self.spare_shapes.push(spare);
        }
    }
}
