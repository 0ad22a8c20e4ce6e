//! Tests of the data plane as a whole, and the harness shared by tests of its blocks.

pub(crate) mod harness;
mod log_space;
mod threads;
