//! The real server is killed without warning, and started again on the same directory.

mod disk_full;
mod kill;
mod memory;
mod restart;
mod server;
