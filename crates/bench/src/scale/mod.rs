//! `junctor-bench scale`: placements for more CPUs than this machine has, as queues.
//!
//! In reading order:
//! - [`demand`]: what each step of a request takes, and where the figure comes from; [`measure`] measures it;
//! - [`request`]: requests as chains of steps;
//! - [`layout`]: placements, made by the real code;
//! - [`router`]: where reads go, decided by the real controller;
//! - [`engine`]: threads as queues; [`node`]: a node under load;
//! - [`study`]: which numbers of threads are best; [`changing`]: a workload that changes each second;
//! - [`command`]: what is simulated; [`page`]: tables and plots.

pub mod changing;
pub mod command;
pub mod demand;
pub mod engine;
pub mod layout;
pub mod measure;
pub mod node;
pub mod page;
pub mod request;
pub mod router;
pub mod study;
#[cfg(test)]
mod tests;

pub use command::{ScaleOptions, run};
