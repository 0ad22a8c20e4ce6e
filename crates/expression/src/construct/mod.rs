//! Constructors of expressions: each applies MySQL's typing rules and gives an error where MySQL refuses.

mod arithmetic;
mod cast;
mod choice;
mod collation;
mod comparison;
mod leaf;
mod logic;
mod unify;

pub(crate) use collation::aggregate_collations;
pub(crate) use unify::{convert_to, unify};
