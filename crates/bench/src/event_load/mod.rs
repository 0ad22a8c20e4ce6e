//! `junctor-bench load`: many connections in one or two threads that wait with epoll, each with one statement under way.
//!
//! In reading order:
//! - [`command`]: what is measured, in which order, and the targets;
//! - [`client`]: opens connections, runs the closed loop, counts;
//! - [`peer`]: one connection: what it sends next, and what came back;
//! - [`work`]: the statements;
//! - [`opening`]: how many connections this machine allows, and from which addresses they come;
//! - [`alone`]: one connection alone beside an echo, and what an idle server uses;
//! - [`record`]: the figures as JSON.

pub mod alone;
pub mod client;
pub mod command;
pub mod opening;
pub mod peer;
pub mod record;
pub mod work;

pub use command::{LoadOptions, run};
