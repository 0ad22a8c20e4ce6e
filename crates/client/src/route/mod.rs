//! Where a read runs: in a query block of the own thread, in the owner ldm, or in another query block.

mod static_rule;

pub use static_rule::{ReadRule, Route};
