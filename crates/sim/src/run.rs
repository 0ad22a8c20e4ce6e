//! One run: tables are made, sessions run, workloads audit, the cluster comes to rest and is checked.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use junctor_kernel::Duration;
use junctor_kernel::random::mix;

use crate::check::{check_at_rest, check_nothing_held};
use crate::cluster::{Cluster, SERVING};
use crate::draw::Draw;
use crate::fleet::{Fleet, FleetOptions, FleetReport, PlainPassage};
use crate::plan::Plan;
use crate::statement::Statement;
use crate::workload::{Audit, Look, Script, Workload, by_name};

/// The database that all workloads use.
const DATABASE: &str = "sim";

/// An answer that takes longer than this will not come; below the time that a lock is waited for.
const ANSWER_LONGEST: Duration = Duration::from_seconds(30);

/// How a run ended. Equal seeds, plans and programs give equal outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// A hash of every signal delivered and every byte that clients got.
    pub digest: u64,
    /// Signals delivered.
    pub signals: u64,
    /// Virtual milliseconds.
    pub virtual_ms: u64,
    /// How often a reader stayed inside a partition.
    pub held: u64,
    /// What the clients saw.
    pub clients: FleetReport,
    /// What did not hold; empty for a good run.
    pub violations: Vec<String>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "digest={:016x} signals={} virtual_ms={} ", self.digest, self.signals, self.virtual_ms)?;
        let clients = &self.clients;
        write!(formatter, "statements={} disconnects={} ", clients.statements, clients.disconnects)?;
        write!(formatter, "held={} errors={:?}", self.held, clients.errors)?;
        for violation in &self.violations {
            write!(formatter, "\n  violation: {violation}")?;
        }
        Ok(())
    }
}

/// Runs a plan under a seed. A panic of a node is a violation like any other.
pub fn run(plan: &Plan, seed: u64) -> Outcome {
    match catch_unwind(AssertUnwindSafe(|| run_unprotected(plan, seed))) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            let violation = format!("panic: {}", text.unwrap_or_default());
            Outcome { violations: vec![violation], ..Outcome::default() }
        }
    }
}

fn run_unprotected(plan: &Plan, seed: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let started = Draw::new(seed, &plan.world).and_then(|draw| Ok((Cluster::start(&draw)?, draw)));
    let (mut cluster, draw) = match started {
        Ok(started) => started,
        Err(fault) => return Outcome { violations: vec![fault], ..outcome },
    };
    if let Err(fault) = run_sessions(plan, &draw, &mut cluster, &mut outcome) {
        outcome.violations.push(fault);
        outcome.violations.extend(look_at(&draw, &mut cluster));
    } else if let Err(faults) = check_at_rest(&mut cluster) {
        outcome.violations = faults;
    }
    let simulation = &cluster.simulation;
    outcome.digest = mix(simulation.digest() ^ outcome.clients.observed);
    outcome.signals = simulation.signals();
    outcome.virtual_ms = Duration(simulation.now().0).as_millis();
    outcome
}

fn run_sessions(plan: &Plan, draw: &Draw, cluster: &mut Cluster, outcome: &mut Outcome) -> Result<(), String> {
    let mut workloads: Vec<Box<dyn Workload>> = Vec::new();
    for workload in &plan.workloads {
        let made = by_name(&workload.name, workload.sessions, workload.rounds, workload.rows);
        workloads.push(made.ok_or_else(|| format!("there is no workload {}", workload.name))?);
    }
    let calm = fleet_options(draw, None);
    let create = vec![Statement::plain(format!("CREATE DATABASE {DATABASE}"))];
    run_script(create, &calm, cluster, draw.client_seed)?;
    let calm = fleet_options(draw, Some(DATABASE));
    for workload in &workloads {
        run_script(workload.setup(), &calm, cluster, draw.client_seed)?;
    }

    cluster.simulation.set_socket_faults(draw.simulation.sockets.clone());
    let options = FleetOptions { vanish_one_in: plan.world.vanish_one_in, ..calm.clone() };
    let mut members: Vec<&mut dyn Workload> = workloads.iter_mut().map(|workload| &mut **workload as _).collect();
    let (simulation, mut observer) = cluster.observe(plan.world.hold_one_in, draw.observer_seed);
    let ran = Fleet::new(options, &mut members, draw.client_seed).run(simulation, &mut observer);
    outcome.held = observer.held();
    outcome.clients = ran?;

    let mut calm_sockets = draw.simulation.sockets.clone();
    calm_sockets.reset_one_in = 0;
    cluster.simulation.set_socket_faults(calm_sockets);
    for workload in &mut workloads {
        let mut audit = Audit::new(&mut **workload);
        let mut member: [&mut dyn Workload; 1] = [&mut audit];
        let fleet = Fleet::new(calm.clone(), &mut member, draw.client_seed);
        fleet.run(&mut cluster.simulation, &mut PlainPassage)?;
        if !audit.is_complete() {
            return Err(format!("{}: the connection of the audit was lost", audit.name()));
        }
    }
    Ok(())
}

/// Transactions and locks of a cluster that has gone wrong, if it still answers.
fn look_at(draw: &Draw, cluster: &mut Cluster) -> Vec<String> {
    let tables = ["transactions", "lock_waits", "locks"];
    let statement = |table: &str| Statement::plain(format!("SELECT * FROM junctor_info.{table}"));
    let mut look = Look::new(tables.map(statement).to_vec());
    let options = fleet_options(draw, None);
    let mut member: [&mut dyn Workload; 1] = [&mut look];
    let looked = Fleet::new(options, &mut member, draw.client_seed).run(&mut cluster.simulation, &mut PlainPassage);
    let mut lines = look.into_lines();
    lines.extend(check_nothing_held(cluster));
    lines.extend(looked.err());
    lines
}

fn fleet_options(draw: &Draw, database: Option<&'static str>) -> FleetOptions {
    FleetOptions {
        node: SERVING,
        look_us_max: draw.look_us_max,
        vanish_one_in: 0,
        answer_longest: ANSWER_LONGEST,
        database,
    }
}

fn run_script(
    statements: Vec<Statement>,
    options: &FleetOptions,
    cluster: &mut Cluster,
    seed: u64,
) -> Result<(), String> {
    let mut script = Script::new(statements);
    Fleet::new(options.clone(), &mut [&mut script], seed).run(&mut cluster.simulation, &mut PlainPassage)?;
    match script.is_complete() {
        true => Ok(()),
        false => Err("the connection of a script was lost".to_owned()),
    }
}
