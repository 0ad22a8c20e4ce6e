//! Derives the runs, in order and with their options, from the configuration alone.

use super::configuration::{Benchmark, Configuration, Dbt2Part, SysbenchPart, YcsbPart};
use super::matrix::MatrixRow;
use super::script::Script;
use crate::{Failure, Outcome};

/// Seed of sysbench. Each instance adds its number to it, so instances differ and a run can be repeated.
const SEED: u64 = 1_103_515_245;
/// Seconds between two report lines in the `.res` files of sysbench and YCSB.
const INTERVAL_S: u32 = 3;

/// Maximum number of loading threads per instance.
const LOADERS_MAX: u32 = 4;

/// All steps between the start and the stop of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Script of the runs.
    pub script: Script,
    /// Name in results and of `.res` files.
    pub name: String,
    /// Folder for `.res` files, within the directory of the configuration.
    pub folder: &'static str,
    /// Databases to create at the start and to drop at the end.
    pub databases: Vec<String>,
    /// Programs that load the tables, all at the same time.
    pub prepare: Vec<Program>,
    /// Whether tables are loaded before each case instead of once per round of all cases.
    pub loads_for_each_case: bool,
    /// Runs in order.
    pub cases: Vec<Case>,
    /// Programs that check the tables after all runs.
    pub check: Vec<Program>,
    /// Unit of the results, as reports print it.
    pub unit: &'static str,
}

/// One run: all instances at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name in results, such as `Threads: 8`.
    pub label: String,
    /// Duration in seconds.
    pub time_s: u64,
    /// One program per instance.
    pub programs: Vec<Program>,
}

/// One sysbench program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Number of the instance, from 0. It selects server and CPUs.
    pub instance: u32,
    /// Database of the instance.
    pub database: String,
    /// Options, then the command.
    pub arguments: Vec<String>,
}

impl Plan {
    /// Plans the runs of a configuration. `matrix` holds the runs of `dbt2_run_1.conf`, if that file exists.
    ///
    /// # Errors
    /// A line of the matrix uses more warehouses than are loaded, or has more servers than warehouses.
    pub fn of(configuration: &Configuration, matrix: Option<&[MatrixRow]>) -> Outcome<Plan> {
        match &configuration.benchmark {
            Benchmark::Sysbench(part) => Ok(sysbench_plan(configuration, part)),
            Benchmark::Dbt2(part) => dbt2_plan(configuration, part, matrix),
            Benchmark::Ycsb(part) => Ok(ycsb_plan(configuration, part)),
            Benchmark::ThreadPool(_) => Err(Failure::new("the thread pool's experiment has no runs of sysbench")),
        }
    }
}

/// Options that every script gets.
fn table_options(configuration: &Configuration) -> Vec<String> {
    let mut options = vec![format!("--engine={}", configuration.engine)];
    if !configuration.isolation.is_empty() {
        options.push(format!("--isolation={}", configuration.isolation));
    }
    options
}

fn run_options(
    configuration: &Configuration,
    instance: u32,
    interval_s: u32,
    time_s: u64,
    threads: u32,
) -> Vec<String> {
    vec![
        format!("--threads={threads}"),
        format!("--time={time_s}"),
        format!("--report-interval={interval_s}"),
        format!("--rand-seed={}", SEED + u64::from(instance)),
        format!("--verbosity={}", configuration.verbosity),
        format!("--db-ps-mode={}", if configuration.prepared { "auto" } else { "disable" }),
    ]
}

fn program(instance: u32, database: &str, parts: &[&[String]], command: &str) -> Program {
    let mut arguments: Vec<String> = parts.concat();
    arguments.push(command.into());
    Program { instance, database: database.into(), arguments }
}

/// One database per instance.
fn databases(name: &str, instances: u32) -> Vec<String> {
    match instances {
        1 => vec![name.into()],
        _ => (0..instances).map(|instance| format!("{name}_{instance}")).collect(),
    }
}

fn sysbench_plan(configuration: &Configuration, part: &SysbenchPart) -> Plan {
    let databases = databases(&part.database, configuration.instances);
    let options = [table_options(configuration), part.options.clone()].concat();
    // These tests run statements outside transactions. A statement may then meet rows that another thread has
    // just inserted or deleted, and fails with one of these errors.
    let ignored = match part.test.changes_row_count() {
        true => "--mysql-ignore-errors=1213,1205,1020,1062",
        false => "--mysql-ignore-errors=1213,1205,1020",
    };
    let program_for_each = |command: &str, more: &dyn Fn(u32) -> Vec<String>| {
        let number = |(place, database): (usize, &String)| {
            program(place as u32, database, &[&options, &more(place as u32)], command)
        };
        databases.iter().enumerate().map(number).collect::<Vec<Program>>()
    };
    let case = |threads: u32| Case {
        label: format!("Threads: {threads}"),
        time_s: configuration.time_s,
        programs: program_for_each("run", &|instance| {
            let mut more = run_options(configuration, instance, INTERVAL_S, configuration.time_s, threads);
            more.push(ignored.into());
            more
        }),
    };
    Plan {
        script: Script::Oltp,
        name: part.test.name().into(),
        folder: "sysbench_results",
        prepare: program_for_each("prepare", &|_| vec![format!("--threads={}", part.tables.min(LOADERS_MAX))]),
        loads_for_each_case: part.test.changes_row_count(),
        cases: configuration.thread_counts.iter().map(|threads| case(*threads)).collect(),
        check: if part.test.changes_row_count() { Vec::new() } else { program_for_each("check", &|_| Vec::new()) },
        unit: "transactions a second",
        databases,
    }
}

fn ycsb_plan(configuration: &Configuration, part: &YcsbPart) -> Plan {
    let databases = databases("ycsb", configuration.instances);
    let options = [table_options(configuration), part.options.clone()].concat();
    let program_for_each = |command: &str, more: &dyn Fn(u32) -> Vec<String>| {
        let number = |(place, database): (usize, &String)| {
            program(place as u32, database, &[&options, &more(place as u32)], command)
        };
        databases.iter().enumerate().map(number).collect::<Vec<Program>>()
    };
    let case = |workload: char, threads: u32| Case {
        label: format!("Workload: {workload} Threads: {threads}"),
        time_s: configuration.time_s,
        programs: program_for_each("run", &|instance| {
            let mut more = run_options(configuration, instance, INTERVAL_S, configuration.time_s, threads);
            more.push(format!("--workload={workload}"));
            more
        }),
    };
    let counts = &configuration.thread_counts;
    Plan {
        script: Script::Ycsb,
        name: "ycsb".into(),
        folder: "ycsb_results",
        prepare: program_for_each("prepare", &|_| vec![format!("--threads={LOADERS_MAX}")]),
        loads_for_each_case: false,
        cases: part
            .workloads
            .iter()
            .flat_map(|workload| counts.iter().map(|threads| case(*workload, *threads)))
            .collect(),
        check: program_for_each("check", &|_| Vec::new()),
        unit: "operations a second",
        databases,
    }
}

fn dbt2_plan(configuration: &Configuration, part: &Dbt2Part, matrix: Option<&[MatrixRow]>) -> Outcome<Plan> {
    const DATABASE: &str = "dbt2";
    let generated: Vec<MatrixRow> = part
        .run_warehouses
        .iter()
        .map(|warehouses| MatrixRow { servers: part.servers, warehouses: *warehouses, terminals: part.terminals })
        .collect();
    let options = [table_options(configuration), part.options.clone()].concat();
    let mut cases = Vec::new();
    for row in matrix.unwrap_or(&generated) {
        let MatrixRow { servers, warehouses, terminals } = *row;
        if warehouses > part.warehouses || servers > warehouses {
            return Err(Failure::new(format!(
                "a run with {servers} servers and {warehouses} warehouses: allowed are at most {} warehouses \
                 (DBT2_WAREHOUSES), and at most as many servers",
                part.warehouses
            )));
        }
        let share = |instance: u32| (warehouses * instance / servers, warehouses * (instance + 1) / servers);
        let programs = (0..servers).map(|instance| {
            let (first, end) = share(instance);
            let threads = (end - first) * terminals;
            let mut more = run_options(configuration, instance, part.interval_s, part.time_s, threads);
            more.push(format!("--first_warehouse={}", first + 1));
            more.push(format!("--run_warehouses={}", end - first));
            program(instance, DATABASE, &[&options, &more], "run")
        });
        cases.push(Case { label: row.label(), time_s: part.time_s, programs: programs.collect() });
    }
    Ok(Plan {
        script: Script::Dbt2,
        name: "dbt2".into(),
        folder: "dbt2_results",
        databases: vec![DATABASE.into()],
        prepare: vec![program(0, DATABASE, &[&options, &[format!("--threads={}", part.loaders)]], "prepare")],
        loads_for_each_case: false,
        cases,
        check: vec![program(0, DATABASE, &[&options], "check")],
        unit: "new orders a minute",
    })
}
