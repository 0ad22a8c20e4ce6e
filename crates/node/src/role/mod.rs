//! Role assembly: the blocks of one thread, and the shared memory of a node's blocks.

mod host;
mod shared;

pub use host::NodeHost;
pub use shared::Shared;

#[cfg(test)]
mod tests;
