//! TLS between nodes (`docs/decisions/0026-tls-between-nodes.md`) and with clients
//! (`docs/decisions/0036-tls-and-logins.md`).
//!
//! - [`certificate`]: the certificate authority of a cluster, and the certificates that it issues;
//! - [`session`]: the sessions of connections, for the kernel's links;
//! - [`client_tls`]: TLS for clients, and the files of its certificates;
//! - `distinguished_name`: the names in the certificates of clients;
//! - `password_key`: the key with which clients encrypt passwords on connections without TLS;
//! - `validity`: when a certificate is valid.

#![forbid(unsafe_code)]

pub mod certificate;
pub mod client_tls;
mod distinguished_name;
mod password_key;
pub mod session;
mod validity;

#[cfg(test)]
mod tests;
