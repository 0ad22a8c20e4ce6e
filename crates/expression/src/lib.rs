//! Typed expressions over rows, MySQL's functions and aggregates. The ldm, query and sql blocks share this
//! evaluator.
#![forbid(unsafe_code)]

pub mod aggregate;
mod construct;
mod describe;
mod distinct;
mod evaluate;
mod fold;
pub mod function;
mod geometry;
pub mod parameter;
pub mod program;
pub mod result_type;
mod rules;

pub use aggregate::{Accumulator, AggregateKind};
use junctor_model::{decimal, number, scratch};

pub use evaluate::compare_values;
pub use function::{JsonPath, Sought, sought_elements};
pub use junctor_model::scratch::{Scratch, Warning};
pub use parameter::{ParameterList, Parameters, ParametersBuilder};
pub use program::{
    ArithmeticOperator, BitOperator, CastTarget, CompareDomain, CompareOperator, Expression, IsTest, Node,
};
pub use result_type::{Coercibility, Kind, ResultType};

#[cfg(test)]
mod tests;
