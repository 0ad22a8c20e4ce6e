//! The real server is killed without warning, and started again on the same directory.
#![allow(clippy::disallowed_methods, reason = "clients and the server run by real time")]

mod crash_points;
mod disk_full;
mod dropped_columns;
mod faults;
mod backup;
mod folders;
mod kill;
mod long_rows;
mod memory;
mod progress;
mod restart;
mod rot;
mod script;
mod server;
mod settings;
mod stop;
mod trouble;
mod upgrade;
