//! System variables, user variables, and the functions that read the session, such as CONNECTION_ID().
//!
//! [`TABLE`] declares every system variable once. Most values are stored only if they differ from the
//! default. The few variables that statements read often are plain fields of [`SessionVariables`].

mod assign;
mod character_set;
mod check;
mod clock;
mod declare;
mod session_expression;
mod global;
mod high_priority;
mod read;
mod session;
mod sql_mode;
mod table;
mod user;

#[cfg(test)]
mod tests;

pub use assign::{GlobalChange, SetEffects, SetSituation, set};
pub use character_set::collation_of;
pub(crate) use check::{text_of, unsigned_of};
pub use declare::{Kind, Scope, Slot, Variable, VariableId, find};
pub use global::{GlobalVariables, ServerFacts};
pub use high_priority::HighPriorityMode;
pub(crate) use read::shown_value;
pub use read::{VariableSource, counts_diagnostics, persisted_rows, read_variable, variable_rows, variable_sources};
pub use session::{IsolationChoice, SessionVariables, TransactionCharacteristics};
pub use session_expression::{
    QueryAttribute, SessionContext, evaluate_session_expression, evaluate_typed, session_value_type,
};
pub use sql_mode::SqlMode;
pub use table::TABLE;
pub use user::{USER_VARIABLES_BYTES_MAX, USER_VARIABLES_MAX, UserVariables};

/// A warning of a successful statement: MySQL's error number and message.
pub type Note = (u16, Box<str>);
