//! CREATE, ALTER, DROP, RENAME and TRUNCATE: turns a parsed statement into a
//! [`SchemaChange`](junctor_signals::change_schema::SchemaChange).
//!
//! This folder checks every rule of MySQL that needs only the statement and the dictionary. The main block
//! assigns ids and versions. It also decides which objects exist when the change runs, because the dictionary
//! of the sql block may be older.

mod check;
mod column;
mod create_table;
mod default_value;
mod expression;
mod foreign_key;
mod implicit_timestamps;
mod index;
mod redefine;
mod key_expression;
mod manner;
mod message;
mod own_table;
pub(crate) mod access;
mod alter_table;
mod schema;
mod structure;
mod time_to_live;
mod view;

#[cfg(test)]
mod tests;

pub use alter_table::{alter_table, create_index, drop_index};
pub(crate) use column::column_of;
pub use create_table::{HIDDEN_KEY_NAME, create_table};
pub(crate) use implicit_timestamps::with_implicit_timestamps;
pub use schema::{
    alter_database, create_database, create_table_like, drop_database, drop_tables, rename_tables, truncate_table,
};
pub use structure::{CheckedDefinition, DefinitionContext};
pub use view::{ViewQuery, check_view_query, create_view, drop_views};
