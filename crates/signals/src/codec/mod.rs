//! The encoding of signals between nodes (`docs/format.md`, "Signals between nodes").
//!
//! A signal's layout is declared once, beside its structure: `layout!` lists the fields in the order in which
//! they are sent, `choices!` gives each variant of an enum its tag. The list in `inbox.rs` says for each
//! signal whether it crosses nodes, and under which number. The compiler refuses a signal without a decision,
//! and a field or a variant without a place.
//!
//! A field that a later version adds is declared with `[since VERSION]`. On a link of an earlier version it
//! is not sent, and its receiver sees its default.
//!
//! - [`wire`]: the trait that declarations implement, the writer and the reader;
//! - [`declare`]: the macros; [`primitive`]: numbers, text, lists;
//! - [`definition`]: programs and layouts, which a link defines once;
//! - [`database`], [`schema`], [`expression`], [`program`]: types that several signals share;
//! - [`page`]: the description of all signals in `docs/generated/signals.md`.

#[macro_use]
mod declare;
mod database;
mod definition;
mod expression;
pub(crate) mod page;
mod primitive;
mod program;
mod schema;
pub(crate) mod wire;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

pub use definition::{DEFINITION_BYTES_MAX, DEFINITIONS_MAX, LinkDecoder, LinkEncoder};
pub(crate) use page::layouts;
pub use page::signals_page;
pub(crate) use wire::{Reader, Result, Wire, Writer};

/// The newest version of the signals' encoding that this program speaks. With the feature `next_version`, a
/// program plays the next release: in its version every signal is longer by [`NEXT_BYTES`], so a link that
/// mixes versions breaks at its first signal.
pub const VERSION: u16 = THIS_VERSION + cfg!(feature = "next_version") as u16;

const THIS_VERSION: u16 = 1;

/// What ends every signal in the version of the feature `next_version`.
const NEXT_BYTES: &[u8] = &[0x4e];

/// The oldest version that this program still speaks: that of the previous release, so that nodes of both
/// releases can be in one cluster.
pub const VERSION_MIN: u16 = 1;
