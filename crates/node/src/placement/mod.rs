//! Which modules run on which threads, and which CPUs those threads use.
//!
//! The node decides its placement once at start, from a `ThreadConfig` text or from the CPUs that the process
//! may really use. Everything here is a pure function of its arguments, except [`Topology::read`], which
//! reads files under a root that the caller names. Nothing here starts or binds a thread: a [`PlacementPlan`]
//! is only a description.

mod automatic;
mod cgroup;
mod cpu_list;
mod error;
mod fold;
mod layout;
mod parse;
mod plan;
mod read_group;
mod setup;
mod thread_config;
mod topology;

pub use automatic::AutomaticPlacement;
pub use cpu_list::{CPU_NUMBER_MAX, CpuList};
pub use error::{PlacementError, UnsatisfiablePlacement};
pub use junctor_signals::Module;
pub use plan::{CpuBinding, PlacementPlan, READER_SLOTS_MAX, THREAD_COUNT_MAX, ThreadPlan, ThreadPriority};
pub use setup::{Placement, SeparateThreads};
pub use thread_config::{EntryBinding, SPIN_EFFECTIVE_US_MAX, ThreadConfig, ThreadCounts, ThreadEntry, ThreadKind};
pub use topology::{CPU_COUNT_MAX, Cpu, Topology};

#[cfg(test)]
mod tests;
