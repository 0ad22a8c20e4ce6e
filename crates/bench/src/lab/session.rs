//! A whole run: starts nodes, repeats the setups in changing order, checks the tables, and reports.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::LabOptions;
use super::calm::{OtherLoadMeter, RetryBudget};
use super::client::{Client, Schedule, Tally};
use super::data::{self, DATABASE};
use super::node::{Node, start_filled};
use super::page::{verdict_page, workload_page};
use super::plots::write_plots;
use super::record::{Record, clients_of};
use super::routing_figures::{self, RoutingFigures};
use super::setup::{Setup, cpu_count};
use super::thread_figures::{ThreadFigures, ThreadSampler};
use super::verdict::Comparison;
use super::workload::{Clients, Workload};
use crate::autobench::program::Interrupt;
use crate::autobench::target::server_binary;
use crate::failure::Explain;
use crate::mysql::Connection;
use crate::random::Random;
use crate::{Failure, Outcome};

/// Maximum number of checks while we wait for closed connections to disappear.
const DISCONNECT_CHECKS_MAX: u32 = 1000;
const DISCONNECT_CHECK_INTERVAL: Duration = Duration::from_millis(3);

/// Runs `junctor lab`.
///
/// # Errors
/// A node does not start, an answer is wrong, a file cannot be written, or the user interrupts.
pub fn run(options: &LabOptions) -> Outcome<()> {
    if options.list {
        print!("{}", super::list_page());
        return Ok(());
    }
    let plan = Plan::of(options)?;
    let interrupt = Interrupt::install()?;
    println!("{}", plan.announcement());
    let mut nodes = Vec::new();
    let binary = server_binary(options.junctor.as_ref())?;
    for setup in &plan.setups {
        interrupt.check()?;
        let started = start_filled(&binary, setup, plan.rows);
        // The signal may have made a system call fail. Report the interruption, not that failure.
        interrupt.check()?;
        nodes.push(started?);
    }
    let mut records = Vec::new();
    let measured = plan.measure_all(&mut nodes, &interrupt, &mut records);
    // Write the measurements made so far even after an interruption or a failure.
    if let Some(path) = options.json.as_ref().filter(|_| !records.is_empty()) {
        let text = serde_json::to_string_pretty(&records)?;
        fs::write(path, text + "\n").explain(path.display())?;
    }
    interrupt.check()?;
    measured?;
    for (setup, node) in plan.setups.iter().zip(nodes) {
        node.resume()?;
        data::check(&mut node.connect("")?, plan.rows, 1).map_err(|failure| failure.to_string()).explain(setup.name)?;
        node.stop()?;
    }
    let comparisons: Vec<Comparison> =
        plan.workloads.iter().map(|workload| Comparison::new(workload, &plan.setups, &records)).collect();
    for (workload, comparison) in plan.workloads.iter().zip(&comparisons) {
        println!("{}", workload_page(workload, &plan.setups, &records, comparison));
    }
    println!("{}", verdict_page(&plan.setups, &comparisons));
    println!("{}", super::hardware_line(&records));
    println!("{}", super::disturbance_line(&records));
    if let Some(folder) = &options.plots {
        write_plots(folder, &plan.workloads, &plan.setups, &records, &comparisons)?;
    }
    Ok(())
}

/// The plan of a run.
#[derive(Debug)]
pub struct Plan {
    /// Workloads in order.
    pub workloads: Vec<&'static Workload>,
    /// Setups in the order of the tables.
    pub setups: Vec<Setup>,
    /// Number of repetitions.
    pub repetitions: u32,
    /// Seconds per measurement.
    pub seconds: f64,
    /// Seconds of warm-up before each measurement.
    pub warm_up_seconds: f64,
    /// Number of clients of workloads that have more than one.
    pub clients: u32,
    /// Number of rows of the larger table.
    pub rows: u64,
    /// Time for repeating disturbed measurements, as a fraction of the planned time.
    pub retry_budget: f64,
}

impl Plan {
    /// Makes the plan from the options.
    ///
    /// # Errors
    /// An unknown workload or setup.
    pub fn of(options: &LabOptions) -> Outcome<Plan> {
        let cpus = cpu_count();
        let workloads = super::workload::WORKLOADS.iter().collect();
        let setups = super::setup::setups(cpus);
        let (repetitions, seconds) = if options.quick { (3, 1.0) } else { (7, 4.0) };
        let seconds = options.seconds.unwrap_or(seconds);
        Ok(Plan {
            workloads: chosen(workloads, &options.workloads, |workload: &&Workload| workload.name)?,
            setups: chosen(setups, &options.setups, |setup| setup.name)?,
            repetitions: options.repetitions.unwrap_or(repetitions),
            seconds,
            warm_up_seconds: (seconds / 4.0).min(0.5),
            clients: options.clients.unwrap_or((cpus as u32 * 4).min(64)),
            rows: options.rows,
            retry_budget: if options.quick { 0.15 } else { 1.0 },
        })
    }

    fn planned_seconds(&self) -> f64 {
        let one: f64 = self.workloads.iter().map(|one| one.seconds(self.seconds) + self.warm_up_seconds + 0.1).sum();
        one * self.setups.len() as f64 * f64::from(self.repetitions)
    }

    fn announcement(&self) -> String {
        format!(
            "{} workloads, {} setups, {} repetitions: about {:.1} minutes. {} CPUs, {} clients, {} rows.",
            self.workloads.len(),
            self.setups.len(),
            self.repetitions,
            self.planned_seconds() / 60.0,
            cpu_count(),
            self.clients,
            self.rows
        )
    }

    /// Runs all measurements and appends each to the records.
    fn measure_all(
        &self,
        nodes: &mut [Box<dyn Node>],
        interrupt: &Interrupt,
        records: &mut Vec<Record>,
    ) -> Outcome<()> {
        let mut retry_budget = RetryBudget::new(Duration::from_secs_f64(self.planned_seconds() * self.retry_budget));
        for repetition in 0..self.repetitions {
            for (workload_index, workload) in self.workloads.iter().enumerate() {
                for setup in order(self.setups.len(), repetition, workload_index) {
                    let run = Run { plan: self, workload, workload_index, repetition, name: self.setups[setup].name };
                    let record = retry_budget
                        .measure(interrupt, |attempt| run.measure(nodes[setup].as_mut(), attempt, interrupt))?;
                    eprintln!(
                        "repetition {} of {}, {}, {}: {:.0} operations/s; other programs used {:.0}% of the CPUs",
                        repetition + 1,
                        self.repetitions,
                        record.workload,
                        record.setup,
                        record.operations_per_second,
                        record.others_cpu_percent
                    );
                    records.push(record);
                }
            }
        }
        Ok(())
    }
}

/// Opens the control connection, and waits until the node has no other.
fn connect_when_idle(node: &dyn Node, interrupt: &Interrupt) -> Outcome<Connection> {
    let mut connection = node.connect("")?;
    for _ in 0..DISCONNECT_CHECKS_MAX {
        if number(&mut connection, "SELECT COUNT(*) FROM information_schema.processlist")? <= 1 {
            return Ok(connection);
        }
        interrupt.pause(DISCONNECT_CHECK_INTERVAL)?;
    }
    Err(Failure::new("closed connections are still open on the node"))
}

/// Number of recv threads.
fn recv_threads(connection: &mut Connection) -> Outcome<u64> {
    number(connection, "SELECT COUNT(*) FROM junctor_info.threads WHERE name LIKE 'recv%'")
}

fn number(connection: &mut Connection, statement: &str) -> Outcome<u64> {
    let value = connection.query_value(statement)?;
    value.and_then(|value| value.parse().ok()).ok_or("not a number").explain(statement)
}

/// Distance between the seeds of two attempts. It exceeds the seeds of all repetitions and workloads.
const ATTEMPT_SEED_STRIDE: u64 = 10_000_000;

/// Returns the seed of a measurement, which is the same for every setup. A node never gets a seed twice: the
/// updates would write the values that are already there, and would change no row.
fn seed(repetition: u32, workload: usize) -> u64 {
    u64::from(repetition) * 1000 + workload as u64 + 1
}

/// The order of the setups. It differs between the repetitions of a workload, but is the same in every run.
fn order(setups: usize, repetition: u32, workload: usize) -> Vec<usize> {
    let mut random = Random::new(seed(repetition, workload));
    let mut order: Vec<usize> = (0..setups).collect();
    for index in (1..setups).rev() {
        order.swap(index, random.below(index as u64 + 1) as usize);
    }
    order
}

/// Selects entries by name; all of them if `names` is empty.
fn chosen<T>(all: Vec<T>, names: &[String], name_of: fn(&T) -> &'static str) -> Outcome<Vec<T>> {
    let known: Vec<&str> = all.iter().map(name_of).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Failure::new(format!("unknown name {unknown}; the known names are {}", known.join(", "))));
    }
    let is_wanted = |one: &T| names.is_empty() || names.iter().any(|name| name == name_of(one));
    Ok(all.into_iter().filter(is_wanted).collect())
}

/// Figures of the threads and reads of a node, and the CPU use of other programs.
struct NodeFigures {
    threads: Vec<ThreadFigures>,
    routing: Vec<RoutingFigures>,
    others_cpu_percent: f64,
}

/// One measurement.
struct Run<'a> {
    plan: &'a Plan,
    workload: &'a Workload,
    /// Index of the workload in the plan.
    workload_index: usize,
    repetition: u32,
    name: &'static str,
}

impl Run<'_> {
    fn measure(&self, node: &mut dyn Node, attempt: u32, interrupt: &Interrupt) -> Outcome<Record> {
        node.resume()?;
        let measured = self.measure_on(node, attempt, interrupt);
        if measured.is_err() {
            // If the node has ended, its log explains the failure better.
            node.require_alive()?;
        }
        let record = measured.map_err(|failure| failure.to_string());
        let record = record.explain(format!("{}, {}", self.workload.name, self.name))?;
        node.pause()?;
        Ok(record)
    }

    fn measure_on(&self, node: &dyn Node, attempt: u32, interrupt: &Interrupt) -> Outcome<Record> {
        let count = clients_of(self.workload, self.plan.clients);
        let seconds = self.workload.seconds(self.plan.seconds);
        let schedule = &Schedule::new(count, seconds);
        let seed = (seed(self.repetition, self.workload_index) + u64::from(attempt) * ATTEMPT_SEED_STRIDE) << 32;
        // Wait until the connections of the last measurement are closed. The node then spreads new
        // connections over its threads in the same way each time.
        let mut control = connect_when_idle(node, interrupt)?;
        let is_crowded = self.workload.clients == Clients::Crowded;
        let recv_threads = if is_crowded { recv_threads(&mut control)? } else { 1 };
        let (tally, figures) = thread::scope(|scope| {
            let mut idle = Vec::new();
            let clients: Vec<_> = (0..count)
                .map(|number| {
                    let connection = node.connect(DATABASE);
                    // The node assigns new connections to the recv threads in turn.
                    idle.extend((1..recv_threads).map(|_| node.connect(DATABASE)));
                    let mut client = Client::new(self.workload, self.plan.rows, seed | u64::from(number));
                    scope.spawn(move || client.run(connection, schedule))
                })
                .collect();
            let start = Instant::now() + Duration::from_secs_f64(self.plan.warm_up_seconds);
            schedule.begin_at(start);
            schedule.ready.wait();
            let figures = self.sample_during_run(node, &mut control, start, interrupt);
            if figures.is_err() {
                schedule.stop();
            }
            let mut sum = Tally::default();
            let mut first_failure = None;
            for client in clients {
                match client.join().map_err(|_| Failure::new("a client panicked")).flatten() {
                    Ok(tally) => sum.add(&tally),
                    Err(failure) => first_failure = first_failure.or(Some(failure)),
                }
            }
            // A failed node or an interruption makes clients fail too, so report it first.
            let figures = figures?;
            first_failure.map_or(Ok((sum, figures)), Err)
        })?;
        let what = (self.workload, self.name, self.repetition);
        let mut record = Record::new(what, count, seconds, tally, (figures.threads, figures.routing));
        record.others_cpu_percent = figures.others_cpu_percent;
        Ok(record)
    }

    fn sample_during_run(
        &self,
        node: &dyn Node,
        connection: &mut Connection,
        start: Instant,
        interrupt: &Interrupt,
    ) -> Outcome<NodeFigures> {
        let seconds = self.workload.seconds(self.plan.seconds);
        interrupt.pause(start.saturating_duration_since(Instant::now()))?;
        let routing = routing_figures::read(connection)?;
        let others = OtherLoadMeter::begin()?;
        let sampler = ThreadSampler::begin(node.process_id(), connection)?;
        let begun = Instant::now();
        interrupt.pause(Duration::from_secs_f64(seconds))?;
        let threads = sampler.end(begun.elapsed().as_secs_f64(), connection)?;
        let others_cpu_percent = others.percent()?;
        let routing = routing_figures::read(connection)?.since(&routing);
        Ok(NodeFigures { threads, routing, others_cpu_percent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_repetition_measures_all_setups_and_orders_differ() {
        let orders: Vec<Vec<usize>> = (0..4).map(|repetition| order(8, repetition, 0)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..8).collect::<Vec<usize>>());
        }
        assert!(orders.windows(2).all(|pair| pair[0] != pair[1]), "{orders:?}");
        assert_eq!(order(8, 1, 0), orders[1]);
    }

    #[test]
    fn names_select_and_unknown_names_are_reported() {
        let all = || vec!["a", "b", "c"];
        assert_eq!(chosen(all(), &["c".into(), "a".into()], |name| name).expect("known"), ["a", "c"]);
        assert_eq!(chosen(all(), &[], |name| name).expect("known"), ["a", "b", "c"]);
        let failure = chosen(all(), &["d".into()], |name| name).expect_err("unknown");
        assert_eq!(failure.to_string(), "unknown name d; the known names are a, b, c");
    }
}
