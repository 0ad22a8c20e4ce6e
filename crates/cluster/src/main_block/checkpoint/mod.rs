//! Checkpoints: main coordinates rounds, one at a time. A node makes them by itself while it runs.
//!
//! A round has these steps.
//! 1. The log block reads the number `begin` with which the round begins, and the position from which
//!    recovery will replay.
//! 2. Every ldm writes its changed rows to new files, and syncs them.
//! 3. Main waits until the newest commit that the rows may have is durable. Otherwise recovery could find a
//!    row in a checkpoint whose transaction it must not keep.
//! 4. Main writes the schema and the list of partitions to files, and then the manifest. From then on,
//!    recovery reads it.
//! 5. The ldm blocks forget the changes that the round has written, the log frees segments, and main deletes
//!    files that the manifest does not name.
//!
//! A failure before the fourth step abandons the round: the ldm blocks will write the same rows in a later
//! one. If writing the manifest fails, its content on disk is unknown, so the files that it names stay until
//! a later manifest is durable. That manifest goes to the other file of the pair.
//!
//! Reading order: [`round`]; [`merge`]; [`lists`]; [`manifest`]; [`files`], which files stay and which are
//! written again; [`controller`], when rounds begin and how fast they write; [`status`].

pub mod controller;
mod files;
mod lists;
mod manifest;
mod merge;
mod round;
mod status;
#[cfg(test)]
mod tests;

pub use controller::CheckpointSettings;
pub(super) use manifest::CHECKPOINT_WORK;
pub(super) use round::{CHECKPOINT_TIMER, Checkpoints};
pub(super) use status::status_rows;
