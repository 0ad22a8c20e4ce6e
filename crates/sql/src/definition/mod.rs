//! CREATE, ALTER, DROP, RENAME and TRUNCATE: from what was written to a [`SchemaChange`](junctor_signals::change_schema::SchemaChange),
//! every rule of MySQL checked that needs nothing but the statement and the dictionary. Main gives ids and versions, and
//! decides what exists.

mod column;
mod create_table;
mod default_value;
mod foreign_key;
mod index;
mod message;
mod alter_table;
mod schema;
mod structure;

#[cfg(test)]
mod tests;

pub use alter_table::{alter_table, create_index, drop_index};
pub use create_table::{HIDDEN_KEY_NAME, create_table};
pub use schema::{create_database, drop_database, drop_tables, rename_tables, truncate_table};
pub use structure::{Defined, DefinitionContext};
