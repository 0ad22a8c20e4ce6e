//! The server as MySQL clients query it: SHOW, the virtual tables, and system and user variables.

pub mod show;
pub mod variable;

pub use junctor_model::schema::{SYSTEM_DATABASES, is_open_database, is_open_table};

/// Whether a database has only virtual tables. No statement can create or change anything in it.
pub fn is_system_database(name: &str) -> bool {
    SYSTEM_DATABASES.iter().any(|known| known.eq_ignore_ascii_case(name))
}
