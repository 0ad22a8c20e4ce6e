//! The real server is killed without warning, and started again on the same directory.

mod kill;
mod restart;
mod server;
