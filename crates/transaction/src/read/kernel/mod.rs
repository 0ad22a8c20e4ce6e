//! Filters and sums compiled for the rows of one format.
//!
//! A kernel reads columns from the row image without making values. It is compiled when a scan meets its
//! first row, from the program's expressions with the parameters of the request. It decides only what the
//! expression would decide without an error or a warning; the expression is evaluated for everything else.

mod filter;
mod number;

#[cfg(test)]
mod tests;

pub(super) use filter::FilterKernel;
pub(super) use number::{Computed, NumberKernel};

use junctor_expression::{Expression, Node, Parameters, Scratch};
use junctor_model::value::Value;

/// A kernel of the request that is being read.
#[derive(Debug, Default)]
pub(super) enum Kernel<K> {
    /// The request uses none.
    #[default]
    Off,
    /// No row was seen. One row does not pay for compiling.
    New,
    /// One row was seen.
    Seen,
    Compiled(K),
}

impl<K> Kernel<K> {
    /// The kernel for the next row. `compile` makes it at the second row.
    #[inline]
    pub fn for_row(&mut self, compile: impl FnOnce() -> Option<K>) -> Option<&K> {
        if !matches!(self, Kernel::Compiled(_)) {
            *self = match self {
                Kernel::New => Kernel::Seen,
                Kernel::Seen => compile().map_or(Kernel::Off, Kernel::Compiled),
                _ => return None,
            };
        }
        match self {
            Kernel::Compiled(kernel) => Some(kernel),
            _ => None,
        }
    }
}

/// The value of a constant or a parameter. `None` for other expressions, and if the evaluation warns.
fn constant_of(expression: &Expression, parameters: Parameters<'_>, scratch: &Scratch) -> Option<Value> {
    if !matches!(expression.node, Node::Constant(_) | Node::Parameter(_)) {
        return None;
    }
    let mark = scratch.warning_mark();
    let warnings = scratch.warning_count();
    let value = expression.evaluate(None, parameters, scratch).ok().map(|value| value.to_value());
    if scratch.warning_count() != warnings {
        scratch.forget_warnings_after(mark);
        return None;
    }
    value
}
