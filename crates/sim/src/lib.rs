//! A whole cluster in one deterministic process, driven by MySQL clients, judged by checkers.
//!
//! In reading order:
//! - [`plan`]: what a run does, as a file; [`draw`]: what the seed decides about it;
//! - [`run`]: one run from its seed to its outcome; [`ci`]: many seeds, each in two processes; [`shrink`]: a smaller plan
//!   that still fails;
//! - [`cluster`]: nodes from production's role assembly; [`fleet`]: clients that look now and then;
//! - [`statement`], [`client`]: what clients say and how it travels;
//! - [`workload`]: what is said and how the answers are judged; [`check`]: how the nodes are judged at the end.
#![forbid(unsafe_code)]

pub mod draw;
pub mod plan;

pub mod ci;
pub mod run;
pub mod shrink;

pub mod cluster;
pub mod fleet;

pub mod client;
pub mod statement;

pub mod check;
pub mod workload;

#[cfg(test)]
mod fake_server;
