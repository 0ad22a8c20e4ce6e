//! Binds a statement: resolves names to columns and determines types, so that its expressions become typed
//! programs. Errors are MySQL's.

mod binder;
mod call;
mod column_default;
mod environment;
mod literal;
pub mod message;
mod operator;
mod scope;
mod select_list;
mod stored_expression;

pub use binder::{Aggregation, Binder, Clause, InsertedRow, SelectedRow};
pub use call::operand_type;
pub(crate) use column_default::{default_into, no_default};
pub use environment::{Environment, Modes, ParameterKind, PatternPrefix, SessionConstant};
pub use literal::decimal_of_text;
pub(crate) use literal::{among_numbers, number_of_literal};
pub use scope::{RowSource, Scope};
pub use select_list::{SelectList, bind_returning_list, bind_select_list, item_named};
pub(crate) use stored_expression::StoredExpressions;
