//! The source of a node's commit numbers.

/// The block that takes the commit numbers of a node, and says when they are stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// The node alone: tc and ldm take numbers and mark them as applied.
    #[default]
    Local,
    /// The sequencer of a cluster. tc asks main of its node, which passes the decisions to tc and ldm.
    Cluster,
}
