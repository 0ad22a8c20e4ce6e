//! The binary `junctor`.
#![forbid(unsafe_code)]

mod admin;
mod backup_part;
mod cli;
mod dev;
mod restart_report;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
