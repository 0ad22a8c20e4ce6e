//! Binds a statement: resolves names to columns and determines types, so that its expressions become typed
//! programs. Errors are MySQL's.

mod binder;
pub(crate) mod block;
mod call;
mod column_default;
mod environment;
pub(crate) mod group_function;
mod literal;
pub mod message;
mod operator;
mod scope;
mod select_list;
mod stored_expression;
mod unstored_column;
pub(crate) mod window;

pub use binder::{Aggregation, Binder, Clause, InsertedRow, SelectedRow, Subqueries, SubqueryForm};
pub use call::operand_type;
pub(crate) use column_default::{default_into, no_default};
pub use environment::{Environment, Modes, NumberRules, ParameterKind, PatternPrefix, PlanNotes, SessionConstant};
pub use literal::decimal_of_text;
pub(crate) use literal::{as_condition, as_stored, number_of_literal, takes_bytes, text_behind_introducer};
pub(crate) use scope::shown;
pub use scope::{FoundColumn, RowSource, Scope};
pub(crate) use select_list::bind_item;
pub use select_list::{SelectList, bind_returning_list, bind_select_list, item_named};
pub(crate) use stored_expression::{BoundArray, StoredExpressions};
pub(crate) use unstored_column::UnstoredColumns;
