//! Role assembly: the blocks of one thread, and what the blocks of a node share.

mod host;
mod shared;

pub use host::NodeHost;
pub use shared::Shared;

#[cfg(test)]
mod tests;
