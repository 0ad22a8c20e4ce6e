//! One run: create tables, run the sessions, audit each workload, wait until the cluster is idle, and check
//! it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use junctor_kernel::Duration;
use junctor_kernel::random::mix;

use crate::check::{check_at_rest, check_nothing_held};
use crate::cluster::{Cluster, SERVING};
use crate::draw::Draw;
use crate::fleet::{Fleet, FleetOptions, FleetReport, PlainDriver};
use crate::plan::Plan;
use crate::statement::Statement;
use crate::workload::{Audit, Diagnosis, Script, Workload, by_name};

/// The database of all workloads.
const DATABASE: &str = "sim";

/// Timeout of an answer. It is shorter than the lock wait timeout, which would hide an undetected deadlock.
const ANSWER_TIMEOUT: Duration = Duration::from_seconds(30);

/// The result of a run. Equal seeds, plans and programs give equal outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// A hash of every signal delivered and every byte received by clients.
    pub digest: u64,
    /// Number of signals delivered.
    pub signals: u64,
    /// Virtual duration in milliseconds.
    pub virtual_ms: u64,
    /// How many times the slow reader held a partition.
    pub held: u64,
    /// Statistics of the clients.
    pub clients: FleetReport,
    /// Descriptions of everything that went wrong; empty if the run passed.
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

/// Runs a plan with a seed. A panic of a node is a violation.
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
        outcome.violations.extend(diagnose(&draw, &mut cluster));
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
        workloads.push(made.ok_or_else(|| format!("unknown workload '{}'", workload.name))?);
    }
    // The database does not exist yet, so the connection names none.
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
    let (simulation, mut slow_reader) = cluster.with_slow_reader(plan.world.hold_one_in, draw.slow_reader_seed);
    let ran = Fleet::new(options, &mut members, draw.client_seed).run(simulation, &mut slow_reader);
    outcome.held = slow_reader.held();
    outcome.clients = ran?;

    let mut calm_sockets = draw.simulation.sockets.clone();
    calm_sockets.reset_one_in = 0;
    cluster.simulation.set_socket_faults(calm_sockets);
    for workload in &mut workloads {
        let mut audit = Audit::new(&mut **workload);
        let mut member: [&mut dyn Workload; 1] = [&mut audit];
        let fleet = Fleet::new(calm.clone(), &mut member, draw.client_seed);
        fleet.run(&mut cluster.simulation, &mut PlainDriver)?;
        if !audit.is_complete() {
            return Err(format!("{}: the connection was lost during the audit", audit.name()));
        }
    }
    Ok(())
}

/// The transactions and locks of a cluster after a violation, as far as it still answers.
fn diagnose(draw: &Draw, cluster: &mut Cluster) -> Vec<String> {
    let tables = ["transactions", "lock_waits", "locks"];
    let statement = |table: &str| Statement::plain(format!("SELECT * FROM junctor_info.{table}"));
    let mut look = Diagnosis::new(tables.map(statement).to_vec());
    let options = fleet_options(draw, None);
    let mut member: [&mut dyn Workload; 1] = [&mut look];
    let looked = Fleet::new(options, &mut member, draw.client_seed).run(&mut cluster.simulation, &mut PlainDriver);
    let mut lines = look.into_lines();
    lines.extend(check_nothing_held(cluster));
    lines.extend(looked.err());
    lines
}

fn fleet_options(draw: &Draw, database: Option<&'static str>) -> FleetOptions {
    FleetOptions {
        node: SERVING,
        poll_us_max: draw.poll_us_max,
        vanish_one_in: 0,
        answer_timeout: ANSWER_TIMEOUT,
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
    Fleet::new(options.clone(), &mut [&mut script], seed).run(&mut cluster.simulation, &mut PlainDriver)?;
    match script.is_complete() {
        true => Ok(()),
        false => Err("the connection was lost during a script".to_owned()),
    }
}
