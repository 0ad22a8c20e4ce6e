//! MySQL statements: parse, bind, plan, execute through the gateway.
//!
//! The folders in their order. A folder names only those above it:
//! 1. [`parse`]: the syntax tree of a statement, and its shape without literals.
//! 2. [`bind`]: names and types of expressions.
//! 3. [`result`]: how answers leave a session.
//! 4. [`mysql_catalog`]: SHOW, the virtual tables, system and user variables.
//! 5. [`definition`]: schema changes from their statements.
//! 6. [`plan`]: what a statement does, decided once for all its executions, and the caches of plans.
//! 7. `execute`: the session's record and its state machine; one file for each form of plan.
//! 8. [`session`]: commands of the protocol; from a text or prepared statement to its plan.

#![forbid(unsafe_code)]

pub mod bind;
pub mod definition;
mod execute;
pub mod mysql_catalog;
pub mod parse;
pub mod plan;
pub mod result;
pub mod session;

pub use execute::{Engine, LockReport, ServerSettings, Session, SessionOpening};
pub use session::{KeyReadRequest, KeyReaderRequest, PreparedExecution, SqlCommand};
