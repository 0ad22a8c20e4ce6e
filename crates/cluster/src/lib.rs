//! The control plane: the main block (schema and distribution) and the rep block (change stream). Beside
//! them, the state machines of the cluster's protocol: [`membership`], [`epoch`] and [`member`]. They get
//! messages and the time, and return messages and effects.
#![forbid(unsafe_code)]

pub mod epoch;
pub mod main_block;
pub mod member;
pub mod membership;
pub mod rep;

pub use main_block::{
    BackupDesk, CheckpointSettings, EpochSettings, MainBlock, MainConfiguration, MainLog, PartOrder, Supervision,
};
pub use rep::RepBlock;
