//! MySQL statements: parse, bind, plan, execute through the gateway.

#![forbid(unsafe_code)]

pub mod bind;
pub mod definition;
pub mod engine;
mod execute;
pub mod mysql_catalog;
pub mod parse;
pub mod plan;
pub mod result;
pub mod session;

pub use engine::{Engine, KeyReadRequest, KeyReaderRequest, PreparedExecution, ServerSettings, SqlCommand};
pub use session::{Session, SessionOpening};
