//! Epochs: how commits get their numbers and become stable, and how an epoch ends and the next one starts.
//!
//! - [`sequencer`]: numbers commits on one node of the cluster, and tells every node what all have applied.
//! - [`mirror`]: on every data node, passes decisions to the blocks and reports what they have applied.
//! - [`epoch_change`]: gathers what the members know, and starts the next epoch with it.
//!
//! All of it is pure: messages and times come in, messages and effects go out. Channels between two lives of
//! two nodes deliver each message once and in order. No rule needs an order between channels.
//! `docs/decisions/0021-sequencer.md` has the rules, and the plan for their use by the blocks.

pub mod epoch_change;
pub mod mirror;
pub mod outcomes;
pub mod sequencer;

pub use epoch_change::EpochChange;
pub use mirror::Mirror;
pub use sequencer::Sequencer;

#[cfg(test)]
mod tests;
