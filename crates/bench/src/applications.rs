//! `compare-applications`: runs DBT2 and YCSB on Junctor and MariaDB in turn, with the same scripts and
//! options, and then checks the tables for consistency.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::autobench::configuration::Configuration;
use crate::autobench::plan::{Plan, Program};
use crate::autobench::program::{Interrupt, Job, run_all};
use crate::autobench::script::{Script, write_scripts};
use crate::process::{JunctorOptions, Server, TemporaryFolder, start_junctor, start_mariadb};
use crate::report::Table;
use crate::statistics::median;
use crate::sysbench::parse_report;
use crate::{Failure, Outcome};

const LOAD_TIMEOUT: Duration = Duration::from_secs(3600);
const RUN_GRACE: Duration = Duration::from_secs(180);

/// Options of `compare-applications`.
#[derive(Clone, Debug, clap::Args)]
pub struct ApplicationsOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Warehouses of DBT2
    #[arg(long, default_value_t = 2)]
    warehouses: u32,
    /// Records of YCSB
    #[arg(long, default_value_t = 200_000)]
    records: u64,
    /// Number of threads, each with a connection; a multiple of the warehouses
    #[arg(long, default_value_t = 8)]
    threads: u32,
    /// Seconds per run
    #[arg(long, value_name = "S", default_value_t = 5)]
    seconds: u64,
    /// Runs of each kind on each server; medians are reported
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 3)]
    repetitions: u32,
}

/// Figures of one run.
#[derive(Clone, Copy, Debug)]
struct Figures {
    per_s: f64,
    p95_ms: f64,
    cpu_us: f64,
}

/// Runs the comparison and prints its results as a Markdown table.
///
/// # Errors
/// A server that does not start, an error of sysbench, or inconsistent tables afterwards.
pub fn run(options: &ApplicationsOptions) -> Outcome<()> {
    let junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    let servers = [start_junctor(&junctor)?, start_mariadb(&[])?];
    let scripts = TemporaryFolder::new("scripts")?;
    write_scripts(scripts.path())?;
    let mut table = Table::new(&[
        "benchmark",
        "events/s",
        "MariaDB",
        "ratio",
        "p95 ms",
        "MariaDB",
        "CPU us/event",
        "MariaDB",
        "ratio",
    ]);
    for text in [dbt2_text(options), ycsb_text(options)] {
        let configuration = Configuration::read(&text)?;
        let plan = Plan::of(&configuration, None)?;
        let comparison =
            Comparison { servers: &servers, plan: &plan, folder: scripts.path(), interrupt: Interrupt::default() };
        comparison.measure(options, &mut table)?;
    }
    println!(
        "DBT2 with {} warehouses, YCSB with {} records of 10 fields of 100 bytes; {} threads, medians of {} runs of {} s.\n",
        options.warehouses, options.records, options.threads, options.repetitions, options.seconds
    );
    println!("{table}");
    let [junctor, mariadb] = servers;
    junctor.stop()?;
    mariadb.stop()
}

fn dbt2_text(options: &ApplicationsOptions) -> String {
    let ApplicationsOptions { warehouses, seconds, threads, .. } = options;
    let terminals = (threads / warehouses).max(1);
    format!(
        "BENCHMARK_TO_RUN=dbt2\nENGINE=innodb\nDBT2_WAREHOUSES={warehouses}\nDBT2_RUN_WAREHOUSES={warehouses}\n\
         DBT2_TERMINALS={terminals}\nDBT2_TIME={seconds}\n"
    )
}

fn ycsb_text(options: &ApplicationsOptions) -> String {
    let ApplicationsOptions { records, seconds, threads, .. } = options;
    format!(
        "BENCHMARK_TO_RUN=ycsb\nENGINE=innodb\nYCSB_RECORDS={records}\nTHREAD_COUNTS_TO_RUN={threads}\nMAX_TIME={seconds}\n"
    )
}

struct Comparison<'a> {
    servers: &'a [Server; 2],
    plan: &'a Plan,
    folder: &'a Path,
    interrupt: Interrupt,
}

impl Comparison<'_> {
    fn measure(&self, options: &ApplicationsOptions, table: &mut Table) -> Outcome<()> {
        for server in self.servers {
            for database in &self.plan.databases {
                server.execute(&[&format!("CREATE DATABASE {database}")])?;
            }
            self.run_programs(server, &self.plan.prepare, LOAD_TIMEOUT)?;
        }
        for case in &self.plan.cases {
            let mut samples: [Vec<Figures>; 2] = Default::default();
            for repetition in 0..options.repetitions as usize {
                for turn in 0..2 {
                    let side = (turn + repetition) % 2;
                    samples[side].push(self.sample(&self.servers[side], &case.programs, options.seconds)?);
                }
            }
            let [junctor, mariadb] = samples.map(|samples| medians(&samples));
            eprintln!("{} {}: {:.0}, MariaDB {:.0}", self.plan.name, case.label, junctor.per_s, mariadb.per_s);
            table.row(vec![
                format!("{}, {}", self.plan.name, case.label),
                format!("{:.0}", junctor.per_s),
                format!("{:.0}", mariadb.per_s),
                format!("{:.2}", junctor.per_s / mariadb.per_s),
                format!("{:.2}", junctor.p95_ms),
                format!("{:.2}", mariadb.p95_ms),
                format!("{:.1}", junctor.cpu_us),
                format!("{:.1}", mariadb.cpu_us),
                format!("{:.2}", junctor.cpu_us / mariadb.cpu_us),
            ]);
        }
        for server in self.servers {
            self.run_programs(server, &self.plan.check, LOAD_TIMEOUT)?;
        }
        Ok(())
    }

    fn sample(&self, server: &Server, programs: &[Program], seconds: u64) -> Outcome<Figures> {
        let before = server.cpu_time()?;
        let printed = self.run_programs(server, programs, Duration::from_secs(seconds) + RUN_GRACE)?;
        let cpu = server.cpu_time()? - before;
        let report = printed.first().and_then(|text| parse_report(text)).filter(|report| report.events > 0);
        let Some(report) = report else {
            return Err(Failure::new(format!("{}: sysbench reported no events on {}", self.plan.name, server.name)));
        };
        let cpu_us = cpu.as_secs_f64() * 1e6 / report.events as f64;
        Ok(Figures { per_s: report.events_per_s, p95_ms: report.p95_ms, cpu_us })
    }

    fn run_programs(&self, server: &Server, programs: &[Program], time_max: Duration) -> Outcome<Vec<String>> {
        let job = |program: &Program| self.job(self.plan.script, server, program);
        run_all(&programs.iter().map(job).collect::<Vec<Job>>(), time_max, &self.interrupt)
    }

    fn job(&self, script: Script, server: &Server, program: &Program) -> Job {
        let mut words = vec!["sysbench".into(), script.path(self.folder).to_string_lossy().into_owned()];
        words.push(format!("--mysql-host={}", server.address.ip()));
        words.push(format!("--mysql-port={}", server.address.port()));
        words.push("--mysql-user=root".into());
        words.push(format!("--mysql-db={}", program.database));
        words.extend(program.arguments.iter().cloned());
        Job { words, output: self.folder.join(format!("{}_{}.log", self.plan.name, server.name)) }
    }
}

fn medians(samples: &[Figures]) -> Figures {
    let of = |figure: fn(&Figures) -> f64| median(&samples.iter().map(figure).collect::<Vec<f64>>());
    Figures { per_s: of(|f| f.per_s), p95_ms: of(|f| f.p95_ms), cpu_us: of(|f| f.cpu_us) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_benchmarks_have_a_plan_for_the_options() {
        let options =
            ApplicationsOptions { junctor: None, warehouses: 2, records: 1000, threads: 8, seconds: 1, repetitions: 1 };
        for (text, cases) in [(dbt2_text(&options), 1), (ycsb_text(&options), 6)] {
            let plan = Plan::of(&Configuration::read(&text).expect("a configuration"), None).expect("a plan");
            assert_eq!(plan.cases.len(), cases);
            for case in &plan.cases {
                assert!(case.programs[0].arguments.contains(&"--threads=8".to_string()), "{case:?}");
            }
        }
    }
}
