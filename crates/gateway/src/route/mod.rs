//! Chooses where a read runs: in a query block of this thread, in the owner ldm, or in another query block.
//!
//! In reading order: [`rule`] names the rules; [`choice`] applies one of them to each read; [`adaptive`]
//! predicts costs from the means in [`estimate`]; [`weighted`] and [`static_rule`] do not learn, and serve as
//! controls in experiments.

pub mod adaptive;
mod choice;
pub mod estimate;
mod rule;
mod static_rule;
pub mod weighted;

pub(crate) use adaptive::is_long;
pub use choice::{Choice, Readers, Route, RoutedRead, RoutingRow, Sample};
pub use junctor_signals::read_rows::BookedCost;
pub use rule::ReadRule;

#[cfg(test)]
mod tests;
