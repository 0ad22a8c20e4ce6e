//! `scale`: simulates placements for more CPUs than this machine has. The simulation is a queueing network.
//!
//! In reading order:
//! - [`demand`]: the CPU time of each step of a request; [`measure`] measures it;
//! - [`request`]: requests as chains of steps;
//! - [`layout`]: placements, made by the node's own code;
//! - [`router`]: chooses the threads of reads, with the node's own controller;
//! - [`engine`]: threads as queues; [`node`]: a node under load;
//! - [`study`]: searches for the best numbers of threads; [`changing`]: a workload that changes every second;
//! - [`cluster`]: the commits of clusters;
//! - [`command`]: the command line; [`page`]: tables and plots.

pub mod changing;
pub mod cluster;
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
