//! Command line of `junctor-bench`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use junctor_bench::{
    Outcome, api, applications, attacks, ch, checkpoints, cluster_cost, cluster_kill, compare, connections,
    consistency, deadlocks, demo, durable_writes, echo, event_load, history, instructions, lab, log_limit,
    long_statements, long_transactions, redo, relaxed_writes, restarts, scale, sysbench_matrix, torn_reads, tpch,
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
    /// Start a node, run sysbench, show how each thread spent its time
    Demo(demo::DemoOptions),
    /// Measure the throughput of served clients while others attack the server
    Attacks(attacks::AttacksOptions),
    /// Run every sysbench script in every placement and check the tables against their indexes
    SysbenchMatrix(sysbench_matrix::MatrixOptions),
    /// Compare Junctor with MariaDB and with an echo server that returns the same bytes
    Compare(compare::CompareOptions),
    /// Compare DBT2 and YCSB with MariaDB
    CompareApplications(applications::ApplicationsOptions),
    /// Compare the 22 queries of TPC-H with MariaDB, and optionally with DuckDB
    Tpch(tpch::TpchOptions),
    /// CH-benCHmark: transactions of TPC-C alone and with a stream of queries, compared with MariaDB
    Ch(ch::ChOptions),
    /// Compare durable writes, on disk when acknowledged, with MariaDB and with an echo server that syncs
    DurableWrites(durable_writes::DurableWritesOptions),
    /// Compare writes that are acknowledged before they are on disk with those of a node in memory
    RelaxedWrites(relaxed_writes::RelaxedWritesOptions),
    /// Measure the time from the start of a server with data to its first answer, compared with MariaDB
    Restarts(restarts::RestartsOptions),
    /// Measure writers during checkpoints, and the speed of checkpoints and backups
    Checkpoints(checkpoints::CheckpointsOptions),
    /// Fill the log many times, and check what a restart replays
    LogLimit(log_limit::LogLimitOptions),
    /// Measure the memory of idle connections, and exceed the limit of connections
    Connections(connections::ConnectionsOptions),
    /// Measure loads of up to 16,384 connections, one connection against an echo server, and an idle server
    Load(event_load::LoadOptions),
    /// Compare the modes of the thread pool and MariaDB's pool-of-threads with up to 16,384 connections
    ThreadPool(event_load::thread_pool::ThreadPoolOptions),
    /// Simulate placements for more CPUs than this machine has
    Scale(scale::ScaleOptions),
    /// Look for torn rows and partly visible transactions under load
    TornReads(torn_reads::TornReadsOptions),
    /// Run random concurrent transactions and check their results against each isolation level
    History(history::HistoryOptions),
    /// Measure how fast Junctor finds deadlocks when very many occur, compared with MariaDB
    Deadlocks(deadlocks::DeadlocksOptions),
    /// Measure point selects that run concurrently with statements that read a whole table
    LongStatements(long_statements::LongStatementsOptions),
    /// Measure the pauses of other sessions during transactions of very many rows
    LongTransactions(long_transactions::LongTransactionsOptions),
    /// Measure the bytes of the log for each update
    Redo(redo::RedoOptions),
    /// Count the server's instructions per statement with callgrind
    Instructions(instructions::InstructionsOptions),
    /// Compare reads by key through the Rust client with the same reads through SQL, in one process
    Api(api::ApiOptions),
    /// Kill, cut off and stop random nodes of a cluster under bank transfers; needs root
    ClusterKill(cluster_kill::ClusterKillOptions),
    /// Count messages, bytes, syncs and CPU time of the commits of a cluster, compared with a node alone
    ClusterCost(cluster_cost::ClusterCostOptions),
    /// Count the bytes of code that each thread executes, by setups of the laboratory
    CodeSize(lab::code_size::CodeSizeOptions),
    /// Check a table of a running server against its indexes
    Check(consistency::CheckOptions),
    /// Answer every request with the same bytes (used by `compare`)
    Echo(echo::EchoOptions),
}

fn run(command: Command) -> Outcome<()> {
    match command {
        Command::Demo(options) => demo::run(&options),
        Command::SysbenchMatrix(options) => sysbench_matrix::run(options),
        Command::Compare(options) => compare::run(&options),
        Command::CompareApplications(options) => applications::run(&options),
        Command::Tpch(options) => tpch::run(&options),
        Command::Ch(options) => ch::run(&options),
        Command::DurableWrites(options) => durable_writes::run(&options),
        Command::RelaxedWrites(options) => relaxed_writes::run(&options),
        Command::Restarts(options) => restarts::run(&options),
        Command::Checkpoints(options) => checkpoints::run(&options),
        Command::ClusterKill(options) => cluster_kill::run(&options),
        Command::ClusterCost(options) => cluster_cost::run(&options),
        Command::LogLimit(options) => log_limit::run(&options),
        Command::Attacks(options) => attacks::run(&options),
        Command::Connections(options) => connections::run(&options),
        Command::Load(options) => event_load::run(&options),
        Command::ThreadPool(options) => event_load::thread_pool::run(&options),
        Command::Scale(options) => scale::run(&options),
        Command::TornReads(options) => torn_reads::run(&options),
        Command::History(options) => history::run(&options),
        Command::Deadlocks(options) => deadlocks::run(&options),
        Command::LongStatements(options) => long_statements::run(&options),
        Command::LongTransactions(options) => long_transactions::run(&options),
        Command::Redo(options) => redo::run(&options),
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
