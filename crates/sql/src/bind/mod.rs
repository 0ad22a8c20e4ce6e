//! From names to columns and from syntax to types: a statement's expressions become typed programs, or MySQL's errors.

mod binder;
mod call;
mod environment;
mod literal;
pub mod message;
mod operator;
mod scope;
mod select_list;

pub use binder::{Aggregation, Binder, Clause, InsertedRow};
pub use call::operand_type;
pub use environment::{Environment, Folded, ParameterKind};
pub(crate) use literal::among_numbers;
pub use literal::decimal_of_text;
pub use scope::{RowSource, Scope};
pub use select_list::{SelectList, bind_select_list, item_named};
