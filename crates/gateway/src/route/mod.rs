//! Where a read runs: in a query block of the own thread, in the owner ldm, or in another query block.
//!
//! In reading order: [`rule`], the names of the rules; [`choice`], which gives each read a place by one of them;
//! [`adaptive`], the controller that predicts costs, with [`estimate`], what it has measured; [`weighted`] and
//! [`static_rule`], the rules that do not learn, which are the controls of experiments.

pub mod adaptive;
mod choice;
pub mod estimate;
mod rule;
mod static_rule;
pub mod weighted;

pub(crate) use adaptive::is_long;
pub use choice::{Choice, Readers, Route, RoutingRow, Sample};
pub use junctor_signals::read_rows::Charge;
pub use rule::ReadRule;

#[cfg(test)]
mod tests;
