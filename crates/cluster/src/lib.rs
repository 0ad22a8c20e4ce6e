//! The control plane: the blocks main and rep.
#![forbid(unsafe_code)]
#![deny(clippy::too_many_arguments)]

pub mod main_block;
pub mod rep;

pub use main_block::{MainBlock, MainConfiguration};
pub use rep::RepBlock;
