//! The binary `junctor-bench`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use junctor_bench::{
    Outcome, api, applications, compare, connections, consistency, deadlocks, demo, echo, event_load, history,
    instructions, lab, long_transactions, scale, sysbench_matrix, torn_reads,
};

/// Comparisons, load generators and load tests of Junctor.
#[derive(Debug, Parser)]
#[command(name = "junctor-bench", version, about, max_term_width = 110)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a node, run sysbench, show what each thread did
    Demo(demo::DemoOptions),
    /// Run every sysbench script in every placement and check the tables
    SysbenchMatrix(sysbench_matrix::MatrixOptions),
    /// Compare Junctor with MariaDB and with an echo of equal bytes
    Compare(compare::CompareOptions),
    /// Compare DBT2 and YCSB with MariaDB
    CompareApplications(applications::ApplicationsOptions),
    /// Measure the memory of idle connections, and try one too many
    Connections(connections::ConnectionsOptions),
    /// Drive a server by up to 16,384 connections; one alone beside an echo; an idle server
    Load(event_load::LoadOptions),
    /// Simulate placements for more CPUs than this machine has
    Scale(scale::ScaleOptions),
    /// Look for half-written rows and halves of transactions under load
    TornReads(torn_reads::TornReadsOptions),
    /// Judge what concurrent transactions see by their isolation level
    History(history::HistoryOptions),
    /// Find deadlocks fast under a storm of them, compared with MariaDB
    Deadlocks(deadlocks::DeadlocksOptions),
    /// Measure the pauses of sessions beside transactions of very many rows
    LongTransactions(long_transactions::LongTransactionsOptions),
    /// Count the server's instructions for each statement
    Instructions(instructions::InstructionsOptions),
    /// Compare keys by the Rust client with the same keys by SQL, node and client in this process
    Api(api::ApiOptions),
    /// Count the code that each thread runs through, by setups of the laboratory
    CodeSize(lab::code_size::CodeSizeOptions),
    /// Check that a table of a running server agrees with its indexes
    Check(consistency::CheckOptions),
    /// Answer every request with the same bytes (used by compare)
    Echo(echo::EchoOptions),
}

fn run(command: Command) -> Outcome<()> {
    match command {
        Command::Demo(options) => demo::run(&options),
        Command::SysbenchMatrix(options) => sysbench_matrix::run(options),
        Command::Compare(options) => compare::run(&options),
        Command::CompareApplications(options) => applications::run(&options),
        Command::Connections(options) => connections::run(&options),
        Command::Load(options) => event_load::run(&options),
        Command::Scale(options) => scale::run(&options),
        Command::TornReads(options) => torn_reads::run(&options),
        Command::History(options) => history::run(&options),
        Command::Deadlocks(options) => deadlocks::run(&options),
        Command::LongTransactions(options) => long_transactions::run(&options),
        Command::Instructions(options) => instructions::run(&options),
        Command::Api(options) => api::run(&options),
        Command::CodeSize(options) => lab::code_size::run(&options),
        Command::Check(options) => consistency::run(&options),
        Command::Echo(options) => echo::run(&options),
    }
}

fn main() -> ExitCode {
    match run(CommandLine::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("junctor-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}
