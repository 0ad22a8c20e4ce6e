//! The control plane: the blocks main and rep.
#![forbid(unsafe_code)]

pub mod main_block;
pub mod rep;

pub use main_block::{MainBlock, MainConfiguration};
pub use rep::RepBlock;
