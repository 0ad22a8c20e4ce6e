//! What MySQL clients ask the server about itself: SHOW and the virtual tables, system and user variables.

pub mod show;
pub mod variable;

/// Whether a database has only tables that are computed, so that nothing can be defined in it.
pub fn is_system_database(name: &str) -> bool {
    ["information_schema", "junctor_info"].iter().any(|known| known.eq_ignore_ascii_case(name))
}
