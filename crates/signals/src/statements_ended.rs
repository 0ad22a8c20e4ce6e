//! The end of the statements of a node without data that stops.

/// No statement is under way on this sql block, and none will be, because the node stops. From each sql block
/// to main of its node.
#[derive(Clone, Copy, Debug)]
pub struct StatementsEnded;
