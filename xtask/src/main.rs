//! Project commands.
#![forbid(unsafe_code)]

mod generate_collation;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((command, rest)) if command == "generate-collation" => generate_collation::run(rest),
        _ => Err("usage: xtask generate-collation ALLKEYS GENERAL_CI_WEIGHTS".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
