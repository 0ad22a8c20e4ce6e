//! The vocabulary of the database: identifiers, limits, errors, values, schema, collations, row formats and
//! encodings.
#![forbid(unsafe_code)]

pub mod id;
pub mod limit;
pub mod locale;
pub mod error;
pub mod value;
pub mod decimal;
pub mod number;
pub mod collation;
pub mod schema;
pub mod table_options;
pub mod access;
pub mod checkpoint;
pub mod stored_identity;
pub mod stored_schema;
mod stored_type;
mod stored_value;
pub mod stored_mark;
pub mod stored_lists;
pub mod stored_manifest;
pub mod stored_settings;
pub mod planted_bug;
pub mod foreign_key;
mod foreign_key_rule;
pub mod alteration;
pub mod json;
pub mod geometry;
pub mod password;
pub mod scratch;
pub mod session_call;
pub mod user_value;
pub mod temporal;
pub mod time_to_live;
pub mod store;
pub mod types;
pub mod key;
pub mod key_list;
pub mod quoted_name;
pub mod partition;
pub mod row;
pub mod row_encoding;
