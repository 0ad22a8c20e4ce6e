//! Project commands.
#![forbid(unsafe_code)]

mod tested_by;
mod generate;
mod generate_collation;
mod generate_collation_order;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: xtask COMMAND
  tidy                  check the house rules (docs/style.md)
  list [CRATE]          list every violation of the rules for prose and test layout; CRATE can be xtask or docs
  generate              write docs/generated from the tables in the code
  generate-collation ALLKEYS GENERAL_CI_WEIGHTS
                        write the weight tables of crates/model
  generate-collation-order FOLDER
                        write the orders of Japanese and Chinese of crates/model";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((command, [])) if command == "tidy" => tidy::run(),
        Some((command, [])) if command == "list" => tidy::list(None),
        Some((command, [area])) if command == "list" => tidy::list(Some(area)),
        Some((command, [])) if command == "generate" => generate::run(),
        Some((command, rest)) if command == "generate-collation" => generate_collation::run(rest),
        Some((command, rest)) if command == "generate-collation-order" => generate_collation_order::run(rest),
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
