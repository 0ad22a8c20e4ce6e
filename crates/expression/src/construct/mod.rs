//! Constructors of expressions. Each applies MySQL's typing rules and fails where MySQL rejects the operands.

mod arithmetic;
mod cast;
mod choice;
mod collation;
mod comparison;
mod encoding;
mod leaf;
mod logic;
mod unify;

pub(crate) use collation::aggregate_collations;
pub(crate) use encoding::{DECODE, ENCODE, in_one_encoding};
pub(crate) use unify::{as_chosen, convert_to, unify};
