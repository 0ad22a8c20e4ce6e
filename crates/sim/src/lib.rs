//! A whole cluster in one deterministic process, driven by MySQL clients, judged by checkers.
//!
//! In reading order:
//! - [`plan`]: what a run does, as a file; [`draw`]: what the seed decides about it;
//! - [`run`]: one run from its seed to its outcome;
//! - [`statement`], [`client`], [`fleet`]: what clients say, how it travels, and when;
//! - [`workload`]: what is said and how the answers are judged; [`check`]: how the nodes are judged at the end;
//! - [`cluster`]: nodes from production's role assembly; [`ci`]: many seeds, each in two processes.
#![forbid(unsafe_code)]

pub mod client;
pub mod fleet;
pub mod plan;
pub mod statement;
pub mod workload;

#[cfg(test)]
mod fake_server;
