//! The control plane: the main block (schema and distribution) and the rep block (change stream).
#![forbid(unsafe_code)]

pub mod main_block;
pub mod rep;

pub use main_block::{CheckpointSettings, MainBlock, MainConfiguration, MainLog};
pub use rep::RepBlock;
