//! MySQL statements: parses, binds and plans them, and executes them through the gateway.
//!
//! The folders, in the order of their dependencies. A folder uses only those above it:
//! 1. [`parse`]: the syntax tree of a statement, and its shape (its text without literals).
//! 2. `statistics`: what samples of rows tell about the values in tables.
//! 3. `access`: accounts and rights, and what statements need of them.
//! 4. [`bind`]: resolves names and determines types.
//! 5. [`result`]: the interface through which sessions send results.
//! 6. [`mysql_catalog`]: SHOW, the virtual tables, system and user variables.
//! 7. [`definition`]: turns CREATE, ALTER and DROP into schema changes.
//! 8. [`plan`]: plans, which are made once for all executions of a statement, and their caches.
//! 9. `execute`: the state of a session and the executors, one file for each form of plan.
//! 10. [`session`]: the commands of the protocol; finds or makes the plan of a text or prepared statement.

#![forbid(unsafe_code)]

mod access;
pub mod bind;
pub mod definition;
mod execute;
pub mod mysql_catalog;
pub mod parse;
pub mod plan;
pub mod result;
pub mod session;
mod statistics;

pub use access::{
    AccountUsage, Block, CountedName, FailedLogins, Form, FormRights, LoginSettings, Right, RightOn, privileges_page,
};
pub use execute::memory::QueryResources;
pub use execute::{
    DigestTask, Engine, LockReport, QUERY_LIMIT_TIMER, ServerSettings, Session, SessionOpening, ThreadPoolSettings,
};
pub use mysql_catalog::variable::{HighPriorityMode, QueryAttribute};
pub use session::{
    BACKGROUND_CONNECTION, KeyReadRequest, KeyReaderRequest, PreparedExecution, PurgeSettings, SqlCommand,
    check_start_variable,
};
pub use statistics::StatisticsBook;
