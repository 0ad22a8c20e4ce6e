//! `load`: drives many connections from one or two threads, with epoll. Each connection has one statement in
//! flight.
//!
//! In reading order:
//! - [`command`]: the measurements, their order, and the targets;
//! - [`client`]: opens connections and runs the closed loop;
//! - [`connection`]: one connection;
//! - [`work`]: the statements;
//! - [`connect`]: how many connections this machine allows, and from which addresses they come;
//! - [`single_connection`]: a single connection compared with an echo server, and an idle server;
//! - [`record`]: the figures as JSON;
//! - [`thread_pool`]: the modes of the thread pool, beside MariaDB's.

pub mod single_connection;
pub mod client;
pub mod command;
pub mod connect;
pub mod connection;
pub mod record;
pub mod thread_pool;
pub mod work;

pub use command::{LoadOptions, run};
