//! The command line of the simulator.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use junctor_sim::ci::{read_plan, run_all};
use junctor_sim::coverage::Coverage;
use junctor_sim::draw::RunParameters;
use junctor_sim::plan::Plan;
use junctor_sim::planted::find_all;
use junctor_sim::run::{add_hits, run};
use junctor_sim::shrink::shrink;

/// Runs a whole cluster in one deterministic process.
#[derive(Parser)]
#[command(name = "sim")]
struct CommandLine {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Run a plan with one or more seeds.
    Run {
        /// Plan file.
        #[arg(long, value_name = "FILE")]
        plan: PathBuf,
        /// First seed.
        #[arg(long, value_name = "N")]
        seed: u64,
        /// Number of consecutive seeds.
        #[arg(long, value_name = "N", default_value_t = 1)]
        seeds: u64,
        /// Print the parameters that each seed draws.
        #[arg(long)]
        show_draw: bool,
        /// Print what the nodes of a cluster with voters have logged.
        #[arg(long)]
        show_log: bool,
        /// Let the sequencer of a cluster number the commits.
        #[arg(long)]
        cluster: bool,
        /// Maximum number of node groups of the cluster.
        #[arg(long, value_name = "N", requires = "cluster", value_parser = clap::value_parser!(u8).range(1..=3))]
        groups: Option<u8>,
    },
    /// Run every plan of a folder with its CI seeds, each in two processes.
    Ci {
        /// Folder of plan files.
        #[arg(long, value_name = "FOLDER", default_value = "crates/sim/plans/fast")]
        plans: PathBuf,
    },
    /// Crash nodes at each crash point, with consecutive seeds, and print how often they crashed where.
    CrashPoints {
        /// Plan file.
        #[arg(long, value_name = "FILE", default_value = "crates/sim/plans/fast/crash_points.toml")]
        plan: PathBuf,
        /// First seed.
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
        /// Number of crashes that each point needs.
        #[arg(long, value_name = "N", default_value_t = 50)]
        least: u64,
        /// The only points to crash at, such as log.sync.before; may be repeated.
        #[arg(long = "point", value_name = "NAME")]
        points: Vec<String>,
    },
    /// Plant known bugs into the nodes, and check that the plans find them.
    Planted {
        /// Folder of plan files.
        #[arg(long, value_name = "FOLDER", default_value = "crates/sim/plans/fast")]
        plans: PathBuf,
        /// The only bug to plant.
        #[arg(long, value_name = "NAME")]
        bug: Option<String>,
    },
    /// Search for a smaller plan that still fails.
    Shrink {
        /// Plan file.
        #[arg(long, value_name = "FILE")]
        plan: PathBuf,
        /// Failing seed.
        #[arg(long, value_name = "N")]
        seed: u64,
    },
}

fn main() -> ExitCode {
    let outcome = match CommandLine::parse().command {
        Action::Run { plan, seed, seeds, show_draw, show_log, cluster, groups } => read_plan(&plan).map(|mut plan| {
            plan.world.is_cluster |= cluster;
            plan.world.groups_max = groups.unwrap_or(plan.world.groups_max);
            run_seeds(&plan, (seed, seeds), show_draw, show_log)
        }),
        Action::Ci { plans } => std::env::current_exe()
            .map_err(|error| error.to_string())
            .and_then(|program| run_all(&program, &plans, |line| println!("{line}"))),
        Action::CrashPoints { plan, seed, least, points } => read_plan(&plan)
            .and_then(|plan| Coverage::new(plan, seed, least, &points))
            .map(|coverage| coverage.run(|line| println!("{line}"))),
        Action::Planted { plans, bug } => find_all(&plans, bug.as_deref(), |line| println!("{line}")),
        Action::Shrink { plan, seed } => read_plan(&plan).map(|plan| print_smallest(&plan, seed)),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::from(2)
        }
    }
}

fn run_seeds(plan: &Plan, (first, seeds): (u64, u64), show_draw: bool, show_log: bool) -> bool {
    let mut all_held = true;
    let mut hits = BTreeMap::new();
    for seed in first..first.saturating_add(seeds) {
        if show_draw && let Ok(draw) = RunParameters::new(seed, &plan.world) {
            println!("seed={seed} {draw}");
        }
        let outcome = run(plan, seed);
        println!("seed={seed} {outcome}");
        for line in outcome.log.iter().filter(|_| show_log) {
            println!("  {line}");
        }
        all_held &= outcome.violations.is_empty();
        add_hits(&outcome.to_string(), &mut hits);
    }
    for (point, count) in &hits {
        println!("hits of {point}: {count}");
    }
    all_held
}

fn print_smallest(plan: &Plan, seed: u64) -> bool {
    let fails = |plan: &Plan, seed: u64| {
        let outcome = run(plan, seed);
        if let Some(violation) = outcome.violations.first() {
            eprintln!("seed={seed} signals={} {violation}", outcome.signals);
        }
        !outcome.violations.is_empty()
    };
    match shrink(plan, seed, fails) {
        Some((smallest, seed)) => println!("# seed {seed}\n{}", smallest.to_text()),
        None => println!("seed {seed} holds"),
    }
    true
}
