//! Tests of the data plane as a whole, and the harness that its blocks share.

pub(crate) mod harness;
mod threads;
