//! One run: create tables, run the sessions over all lives of the nodes, audit each workload, wait until the
//! cluster is idle, and check it.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use junctor_kernel::random::mix;
use junctor_kernel::simulated::{NodeEnd, SocketFaults};
use junctor_kernel::{Duration, NodeId, Time};

use crate::check::{check_at_rest, check_nothing_held, wait_for_rest};
use crate::cluster::{Cluster, SERVING};
use crate::crashes::Crashes;
use crate::draw::RunParameters;
use crate::fleet::{Fleet, FleetEnd, FleetOptions, FleetReport, run_alone};
use crate::lives::{EndCounts, Ends};
use crate::member_faults::{FaultCounts, MemberDriver};
use crate::members::Members;
use crate::plan::Plan;
use crate::statement::Statement;
use crate::workload::{Audit, Backup, Diagnosis, Script, Workload, by_name};

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
    /// How often the nodes ended.
    pub ends: EndCounts,
    /// The faults of a cluster with voters.
    pub faults: FaultCounts,
    /// Lines that the nodes logged and the faults that struck them, if the cluster has voters.
    pub log: Vec<String>,
    /// The crashes at crash points.
    pub crashes: Crashes,
    /// The hits of each crash point that was hit, by name.
    pub crash_points: BTreeMap<String, u64>,
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
        if self.ends != EndCounts::default() {
            let EndCounts { stops, moments, points, disk, halts, full, flips, refusals, restores } = self.ends;
            write!(formatter, " stops={stops} crashes={moments} point_crashes={points} disk_crashes={disk}")?;
            write!(formatter, " halts={halts} full={full} flips={flips} refusals={refusals} restores={restores}")?;
        }
        if self.faults != FaultCounts::default() {
            write!(formatter, " {:?}", self.faults)?;
        }
        if !self.crash_points.is_empty() {
            write!(formatter, " {POINTS}{}", show_hits(&self.crash_points))?;
        }
        for violation in &self.violations {
            write!(formatter, "\n  violation: {violation}")?;
        }
        Ok(())
    }
}

/// Begins the hits of crash points in an outcome's text.
const POINTS: &str = "points=";

fn show_hits(hits: &BTreeMap<String, u64>) -> String {
    hits.iter().map(|(point, count)| format!("{point}:{count}")).collect::<Vec<_>>().join(",")
}

/// Adds the hits of crash points in the text of an outcome to `hits`.
pub fn add_hits(text: &str, hits: &mut BTreeMap<String, u64>) {
    let list = text.split_whitespace().find_map(|word| word.strip_prefix(POINTS)).unwrap_or_default();
    for (point, count) in list.split(',').filter_map(|entry| entry.split_once(':')) {
        *hits.entry(point.to_owned()).or_default() += count.parse().unwrap_or(0);
    }
}

/// The required crash points of a plan that no run has hit. None if its nodes are not durable.
pub fn missing_points(plan: &Plan, hits: &BTreeMap<String, u64>) -> Vec<String> {
    let restarts = plan.restarts.iter().filter(|_| plan.is_durable());
    let required = restarts.flat_map(|restarts| restarts.required_points.iter());
    required.filter(|&point| !hits.contains_key(point)).cloned().collect()
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
    let started = RunParameters::new(seed, &plan.world)
        .and_then(|parameters| Ok((Cluster::start(&parameters, plan.is_durable(), &plan.world)?, parameters)));
    let (mut cluster, parameters) = match started {
        Ok(started) => started,
        Err(fault) => return Outcome { violations: vec![fault], ..outcome },
    };
    let ended = match cluster.members() {
        Some(members) => run_members(plan, &parameters, (&members, &mut cluster), &mut outcome),
        None => run_sessions(plan, &parameters, &mut cluster, &mut outcome),
    };
    if let Err(fault) = ended {
        outcome.violations.push(fault);
        let halts = cluster.simulation.take_halts();
        outcome.violations.extend(halts.iter().map(|(node, message)| format!("node {} stopped: {message}", node.0)));
        if cluster.members().is_none() {
            outcome.violations.extend(diagnose(&parameters, &mut cluster));
        }
    } else if let Err(faults) = check_at_rest(&mut cluster) {
        outcome.violations = faults;
    }
    if let Some(members) = cluster.members() {
        outcome.log = members.last_lines(cluster.simulation.now());
        outcome.log.extend(outcome.clients.samples.iter().map(|(errno, sample)| {
            let at = |(time, node): (Time, NodeId)| format!("{} ms at node {}", time.0 / 1_000_000, node.0);
            format!("error {errno}: first {}, last {}: {}", at(sample.first), at(sample.last), sample.message)
        }));
    }
    outcome.crash_points = cluster.crash_point_hits();
    let simulation = &cluster.simulation;
    outcome.digest = mix(simulation.digest() ^ outcome.clients.observed);
    outcome.signals = simulation.signals();
    outcome.virtual_ms = Duration(simulation.now().0).as_millis();
    outcome
}

/// Runs the sessions of a plan over all lives of the nodes, then the audits.
fn run_sessions(
    plan: &Plan,
    parameters: &RunParameters,
    cluster: &mut Cluster,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let goes_on = plan.restarts.as_ref().is_some_and(|restarts| restarts.durable);
    let mut ends = Ends::new(plan.restarts.as_ref(), parameters.restart_seed);
    let mut workloads = make_workloads(plan)?;
    cluster.backup_program = workloads.iter().find_map(|workload| workload.backup_program());
    set_up(&workloads, parameters, cluster)?;
    let mut fleet = make_fleet((plan, cluster), parameters, &mut workloads, parameters.client_seed);
    loop {
        cluster.simulation.set_socket_faults(parameters.simulation.sockets.clone());
        let slow_reader = (plan.world.hold_one_in, parameters.slow_reader_seed);
        let end = run_life(slow_reader, (&mut fleet, &mut workloads), cluster, &mut ends, outcome);
        cluster.simulation.set_socket_faults(calm_sockets(parameters));
        if end? == FleetEnd::Finished {
            outcome.clients.add(fleet.report());
            break;
        }
        if goes_on && let Some(random) = ends.next_flip() {
            outcome.ends.flips += u64::from(cluster.flip_bit(random));
        }
        cluster.restart(NodeEnd::Process)?;
        if goes_on {
            recheck(parameters, cluster, &mut workloads, &mut ends, outcome)?;
            if cluster.backup_program.is_some() && ends.next_restore() {
                move_to_backup(parameters, cluster, outcome)?;
                recheck(parameters, cluster, &mut workloads, &mut ends, outcome)?;
            }
        } else {
            outcome.clients.add(fleet.report());
            workloads = make_workloads(plan)?;
            set_up(&workloads, parameters, cluster)?;
            let seed = mix(parameters.client_seed ^ outcome.ends.total());
            fleet = make_fleet((plan, cluster), parameters, &mut workloads, seed);
        }
    }
    if plan.restarts.is_some() {
        // A COMMIT whose client is gone may still be under way. The checks need its outcome.
        wait_for_rest(cluster).map_err(|held| held.join("; "))?;
        recheck(parameters, cluster, &mut workloads, &mut Ends::new(None, 0), outcome)?;
        move_to_backup(parameters, cluster, outcome)?;
    }
    for workload in &mut workloads {
        let mut audit = Audit::new(&mut **workload);
        run_alone(
            fleet_options(cluster, parameters, Some(DATABASE)),
            &mut audit,
            parameters.client_seed,
            &mut cluster.simulation,
        )?;
        if !audit.is_complete() {
            return Err(format!("{}: the connection was lost during the audit", audit.name()));
        }
    }
    Ok(())
}

/// Runs the sessions of a plan while nodes of a cluster with voters fail and return. Then the cluster becomes
/// whole, and all checks follow: at once, and after all nodes were down.
fn run_members(
    plan: &Plan,
    parameters: &RunParameters,
    (members, cluster): (&Rc<Members>, &mut Cluster),
    outcome: &mut Outcome,
) -> Result<(), String> {
    let faults = plan.world.members.as_ref().map_or((0, false), |members| (members.faults_max, members.loses_groups));
    let mut workloads = make_workloads(plan)?;
    let mut driver = MemberDriver::new(members, 0, (0, false), &mut outcome.faults);
    driver.hold_added(&mut cluster.simulation);
    driver.finish(&mut cluster.simulation)?;
    set_up(&workloads, parameters, cluster)?;
    check_at_rest(cluster).map_err(|faults| format!("after the setup: {}", faults.join("; ")))?;
    let mut fleet = make_fleet((plan, cluster), parameters, &mut workloads, parameters.client_seed);
    cluster.simulation.set_socket_faults(parameters.simulation.sockets.clone());
    let mut driver = MemberDriver::new(members, parameters.restart_seed, faults, &mut outcome.faults);
    driver.grow(&mut cluster.simulation);
    let end = fleet.run(&mut borrowed(&mut workloads), &mut cluster.simulation, &mut driver);
    outcome.clients.add(fleet.report());
    if let Some(fault) = driver.failed() {
        return Err(fault.to_owned());
    }
    end?;
    members.note(cluster.simulation.now(), "the sessions have ended");
    cluster.simulation.set_socket_faults(calm_sockets(parameters));
    driver.finish(&mut cluster.simulation)?;
    check_members((members, cluster), parameters, &mut workloads, outcome)?;
    // A stop loses nothing. After a loss of power, everything is there whose client has waited for the disks.
    let is_stop = !faults.1 || parameters.restart_seed.is_multiple_of(2);
    let mut driver = MemberDriver::new(members, 0, (0, true), &mut outcome.faults);
    driver.restart_all(&mut cluster.simulation, is_stop)?;
    check_members((members, cluster), parameters, &mut workloads, outcome)
}

/// Lets every workload check what is left, and checks the nodes.
fn check_members(
    (members, cluster): (&Rc<Members>, &mut Cluster),
    parameters: &RunParameters,
    workloads: &mut Workloads,
    outcome: &mut Outcome,
) -> Result<(), String> {
    // A COMMIT whose client is gone may still be under way. The checks need its outcome.
    wait_for_rest(cluster).map_err(|held| held.join("; "))?;
    for node in cluster.client_nodes() {
        for workload in workloads.iter_mut() {
            run_audit((members, cluster), node, Audit::recheck(&mut **workload), parameters, outcome)?;
            run_audit((members, cluster), node, Audit::new(&mut **workload), parameters, outcome)?;
        }
    }
    check_at_rest(cluster).map_err(|faults| faults.join("; "))
}

/// Runs an audit at one node, while no fault is made.
fn run_audit(
    (members, cluster): (&Rc<Members>, &mut Cluster),
    node: NodeId,
    mut audit: Audit<'_>,
    parameters: &RunParameters,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let options = FleetOptions { nodes: vec![node], ..fleet_options(cluster, parameters, Some(DATABASE)) };
    let mut driver = MemberDriver::new(members, 0, (0, false), &mut outcome.faults);
    let mut member: [&mut dyn Workload; 1] = [&mut audit];
    let mut fleet = Fleet::new(options, &member, parameters.client_seed);
    let end = fleet.run(&mut member, &mut cluster.simulation, &mut driver);
    outcome.clients.add(fleet.report());
    if let Some(fault) = driver.failed() {
        return Err(fault.to_owned());
    }
    end.map_err(|fault| format!("at node {}: {fault}", node.0))?;
    match audit.is_complete() {
        true => Ok(()),
        false => Err(format!("{}: the connection to node {} was lost during the checks", audit.name(), node.0)),
    }
}

type Workloads = Vec<Box<dyn Workload>>;

fn make_workloads(plan: &Plan) -> Result<Workloads, String> {
    let made = plan.workloads.iter().map(|workload| {
        let made = by_name(&workload.name, workload.sessions, workload.rounds, workload.rows);
        made.ok_or_else(|| format!("unknown workload '{}'", workload.name))
    });
    made.collect()
}

fn borrowed(workloads: &mut Workloads) -> Vec<&mut dyn Workload> {
    workloads.iter_mut().map(|workload| &mut **workload as _).collect()
}

fn make_fleet(
    (plan, cluster): (&Plan, &Cluster),
    parameters: &RunParameters,
    workloads: &mut Workloads,
    seed: u64,
) -> Fleet {
    let calm = fleet_options(cluster, parameters, Some(DATABASE));
    Fleet::new(FleetOptions { vanish_one_in: plan.world.vanish_one_in, ..calm }, &borrowed(workloads), seed)
}

/// Creates the database, the tables and the rows of the workloads.
fn set_up(workloads: &Workloads, parameters: &RunParameters, cluster: &mut Cluster) -> Result<(), String> {
    // The database does not exist yet, so the connection names none.
    let create = vec![Statement::plain(format!("CREATE DATABASE {DATABASE}"))];
    let first = cluster.client_nodes().first().copied().unwrap_or(SERVING);
    let options = |database| FleetOptions { nodes: vec![first], ..fleet_options(cluster, parameters, database) };
    let (first, options) = (options(None), options(Some(DATABASE)));
    run_script(create, &first, cluster, parameters.client_seed)?;
    for workload in workloads {
        run_script(workload.setup(), &options, cluster, parameters.client_seed)?;
    }
    if cluster.fails_over() && cluster.members().is_none() {
        cluster.spread_schema();
    }
    Ok(())
}

/// Runs the sessions until they or the nodes end. `slow_reader` is how rarely it holds partitions, and its
/// seed.
fn run_life(
    slow_reader: (u64, u64),
    (fleet, workloads): (&mut Fleet, &mut Workloads),
    cluster: &mut Cluster,
    ends: &mut Ends<'_>,
    outcome: &mut Outcome,
) -> Result<FleetEnd, String> {
    let planned = ends.next_end(cluster.simulation.now());
    let evictions = cluster.next_evictions();
    let (simulation, mut driver) = cluster.with_driver(slow_reader, planned, (&mut outcome.ends, &mut outcome.crashes));
    driver.evict(evictions);
    let end = fleet.run(&mut borrowed(workloads), simulation, &mut driver);
    if end == Ok(FleetEnd::Finished) {
        driver.finish_evictions(simulation);
    }
    outcome.held += driver.held();
    driver.into_result()?;
    cluster.disarm();
    end
}

/// Lets every workload check what survived a restart, and checks the nodes. Nodes may end and start again
/// during it.
fn recheck(
    parameters: &RunParameters,
    cluster: &mut Cluster,
    workloads: &mut Workloads,
    ends: &mut Ends<'_>,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let mut checked = 0;
    while checked < workloads.len() {
        let mut recheck = Audit::recheck(&mut *workloads[checked]);
        let planned = ends.next_end_of_recovery(cluster.simulation.now());
        let options = fleet_options(cluster, parameters, Some(DATABASE));
        let (simulation, mut driver) = cluster.with_driver((0, 0), planned, (&mut outcome.ends, &mut outcome.crashes));
        let mut member: [&mut dyn Workload; 1] = [&mut recheck];
        let mut fleet = Fleet::new(options, &member, parameters.client_seed);
        let end = fleet.run(&mut member, simulation, &mut driver);
        let has_halted = driver.has_halted();
        driver.into_result()?;
        cluster.disarm();
        match end? {
            FleetEnd::NodesEnded => {
                if has_halted {
                    cluster.end_rot(true);
                }
                cluster.restart(NodeEnd::Process)?;
                checked = 0;
            }
            FleetEnd::Finished if recheck.is_complete() => checked += 1,
            FleetEnd::Finished => {
                return Err(format!("{}: the connection was lost during the recheck", recheck.name()));
            }
        }
    }
    cluster.end_rot(false);
    cluster.check_numbers()?;
    check_at_rest(cluster).map_err(|faults| format!("after a recheck: {}", faults.join("; ")))
}

/// Takes a backup while nothing else happens, and restarts the nodes with a directory that is restored from
/// it. Nothing that was acknowledged may be missing then. Does nothing without a backup program.
fn move_to_backup(parameters: &RunParameters, cluster: &mut Cluster, outcome: &mut Outcome) -> Result<(), String> {
    let Some(program) = cluster.backup_program.clone() else { return Ok(()) };
    let mut backup = Backup::once(Rc::clone(&program));
    let options = fleet_options(cluster, parameters, Some(DATABASE));
    let (simulation, mut driver) = cluster.with_driver((0, 0), None, (&mut outcome.ends, &mut outcome.crashes));
    let mut members: [&mut dyn Workload; 1] = [&mut backup];
    let mut fleet = Fleet::new(options, &members, parameters.client_seed);
    fleet.run(&mut members, simulation, &mut driver)?;
    driver.into_result()?;
    if backup.completed() == 0 {
        return Err("a backup of an idle node did not complete".to_owned());
    }
    let disk = program.borrow_mut().restore()?;
    outcome.ends.restores += 1;
    cluster.restart_from(disk)
}

fn calm_sockets(parameters: &RunParameters) -> SocketFaults {
    SocketFaults { reset_one_in: 0, ..parameters.simulation.sockets.clone() }
}

/// The transactions and locks of a cluster after a violation, as far as it still answers.
fn diagnose(parameters: &RunParameters, cluster: &mut Cluster) -> Vec<String> {
    let tables = ["transactions", "lock_waits", "locks"];
    let statement = |table: &str| Statement::plain(format!("SELECT * FROM junctor_info.{table}"));
    let mut look = Diagnosis::new(tables.map(statement).to_vec());
    let options = fleet_options(cluster, parameters, None);
    let looked = run_alone(options, &mut look, parameters.client_seed, &mut cluster.simulation);
    let mut lines = look.into_lines();
    lines.extend(check_nothing_held(cluster));
    lines.extend(looked.err());
    lines
}

fn fleet_options(cluster: &Cluster, parameters: &RunParameters, database: Option<&'static str>) -> FleetOptions {
    FleetOptions {
        nodes: cluster.client_nodes(),
        poll_us_max: parameters.poll_us_max,
        vanish_one_in: 0,
        answer_timeout: ANSWER_TIMEOUT,
        database,
        loses_nodes: cluster.members().is_some(),
    }
}

fn run_script(
    statements: Vec<Statement>,
    options: &FleetOptions,
    cluster: &mut Cluster,
    seed: u64,
) -> Result<(), String> {
    let mut script = Script::new(statements);
    run_alone(options.clone(), &mut script, seed, &mut cluster.simulation)?;
    match script.is_complete() {
        true => Ok(()),
        false => Err("the connection was lost during a script".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hits_of_crash_points_survive_the_text_of_an_outcome() {
        let crash_points = BTreeMap::from([("log.write.after".to_owned(), 3), ("log.sync.before".to_owned(), 1)]);
        let outcome = Outcome { crash_points: crash_points.clone(), ..Outcome::default() };
        let mut hits = BTreeMap::new();
        add_hits(&outcome.to_string(), &mut hits);
        assert_eq!(hits, crash_points);
        add_hits(&Outcome::default().to_string(), &mut hits);
        add_hits(&outcome.to_string(), &mut hits);
        assert_eq!(hits["log.write.after"], 6);
    }
}
