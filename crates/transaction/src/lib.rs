//! The data plane: the blocks tc, ldm and query.
#![forbid(unsafe_code)]

pub mod tc;
