//! The server as MySQL clients query it: SHOW, the virtual tables, and system and user variables.

pub mod show;
pub mod variable;

pub use junctor_model::schema::SYSTEM_DATABASES;

/// Whether a database has only virtual tables. No statement can create or change anything in it.
pub fn is_system_database(name: &str) -> bool {
    SYSTEM_DATABASES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether every session may read the tables of a database: those of `information_schema` have the rows that
/// the session may see, and those of `performance_schema` its own variables and the figures of the server, as
/// in MySQL.
pub fn is_open_database(name: &str) -> bool {
    ["information_schema", "performance_schema"].iter().any(|open| open.eq_ignore_ascii_case(name))
}
