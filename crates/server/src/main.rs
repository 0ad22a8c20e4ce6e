//! The binary `junctor`.
#![forbid(unsafe_code)]

mod cli;
mod restart_report;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
