//! Typed expressions over rows, MySQL's functions and aggregates. The ldm, query and sql blocks share this
//! evaluator.
#![forbid(unsafe_code)]

pub mod aggregate;
mod construct;
mod decimal;
mod describe;
mod distinct;
mod evaluate;
pub mod function;
mod number;
pub mod parameter;
pub mod program;
pub mod result_type;
pub mod scratch;
pub mod store;

pub use aggregate::{Accumulator, AggregateKind};
pub use evaluate::compare_values;
pub use parameter::{ParameterList, Parameters, ParametersBuilder};
pub use program::{
    ArithmeticOperator, BitOperator, CastTarget, CompareDomain, CompareOperator, Expression, IsTest, Node,
};
pub use result_type::{Coercibility, Kind, ResultType};
pub use scratch::{Scratch, Warning};
pub use store::{StoreMode, StoreTarget};

#[cfg(test)]
mod tests;
