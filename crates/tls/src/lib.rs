//! TLS between nodes (`docs/decisions/0026-tls-between-nodes.md`).
//!
//! - [`certificate`]: the certificate authority of a cluster, and the certificates of its nodes;
//! - [`session`]: the sessions of connections, for the kernel's links.

#![forbid(unsafe_code)]

pub mod certificate;
pub mod session;

#[cfg(test)]
mod tests;
