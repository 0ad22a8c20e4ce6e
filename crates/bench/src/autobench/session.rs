//! Runs `junctor bench` as a whole: reads the file, starts the server, creates databases, loads, runs,
//! checks, and writes results.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::binding::has_numactl;
use super::configuration::{Benchmark, Configuration, ThreadPoolPart};
use super::matrix::read_matrix;
use super::plan::{Case, Plan, Program};
use super::program::{Interrupt, Job, run_all};
use super::result::{InstanceResults, remove_results, write_results};
use super::script::{Script, write_scripts};
use super::target::{Target, connection_options, server_binary};
use super::{BenchOptions, key};
use crate::event_load::thread_pool::{self, ThreadPoolOptions};
use crate::failure::Explain;
use crate::process::TemporaryFolder;
use crate::sysbench::parse_report;
use crate::{Failure, Outcome};

const FILE: &str = "autobench.conf";
const MATRIX_FILE: &str = "dbt2_run_1.conf";

/// Maximum time to load the tables.
const LOAD_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Time that a run may take in addition to its duration, to connect and to finish its last statements.
const RUN_GRACE: Duration = Duration::from_secs(300);
const STATEMENT_TIME_MAX: Duration = Duration::from_secs(600);

/// Runs `junctor bench`.
///
/// # Errors
/// The configuration is invalid, the server or sysbench fails, the tables are inconsistent afterwards, or the
/// user interrupts.
pub fn run(options: &BenchOptions) -> Outcome<()> {
    if options.list_keys {
        print!("{}", key::keys_page());
        return Ok(());
    }
    let Some(folder) = &options.default_directory else {
        return Err(Failure::new("--default-directory DIR is missing: the directory with autobench.conf"));
    };
    let folder = fs::canonicalize(folder).explain(folder.display())?;
    let configuration = read_configuration(&folder, options)?;
    if let Benchmark::ThreadPool(part) = &configuration.benchmark {
        let experiment = thread_pool_options(&configuration, part, &folder, options)?;
        if options.dry_run {
            println!("would measure {} with {:?} connections", experiment.work.join(", "), experiment.connections);
            return Ok(());
        }
        return thread_pool::run(&experiment);
    }
    let (configuration, plan) = with_plan(configuration, &folder)?;
    if options.dry_run {
        print_plan(&configuration, &plan);
        return Ok(());
    }
    let interrupt = Interrupt::install()?;
    remove_results(&folder);
    let scripts = TemporaryFolder::new("scripts")?;
    write_scripts(scripts.path())?;
    let results = folder.join(plan.folder);
    fs::create_dir_all(&results).explain(results.display())?;
    let target = match options.skip_start {
        true => Target::begin(&without_start(&configuration), &configuration.binding, &folder, Path::new(""))?,
        false => {
            let binary = server_binary(options.junctor.as_ref())?;
            Target::begin(&configuration.server, &configuration.binding, &folder, &binary)?
        }
    };
    let mut session =
        Session { configuration: &configuration, plan: &plan, target, scripts: scripts.path(), results, interrupt };
    let outcome = session.run(&folder);
    // Stop the node in any case, but report the first failure.
    let stopped = session.target.end();
    outcome.and(stopped)
}

fn read_configuration(folder: &Path, options: &BenchOptions) -> Outcome<Configuration> {
    let path = folder.join(FILE);
    let text = fs::read_to_string(&path).explain(path.display())?;
    let mut configuration = Configuration::read(&text).explain(path.display())?;
    if let Some(instances) = options.sysbench_instances {
        configuration.instances = instances;
    }
    Ok(configuration)
}

/// The experiment of the thread pool: it starts its servers itself, and its report goes to the directory.
fn thread_pool_options(
    configuration: &Configuration,
    part: &ThreadPoolPart,
    folder: &Path,
    options: &BenchOptions,
) -> Outcome<ThreadPoolOptions> {
    Ok(ThreadPoolOptions {
        junctor: Some(server_binary(options.junctor.as_ref())?),
        connections: configuration.thread_counts.iter().map(|count| *count as usize).collect(),
        work: part.works.clone(),
        rows: part.rows,
        seconds: configuration.time_s,
        warm_up: part.warm_up_s,
        repetitions: configuration.test_runs,
        alone: !part.with_mariadb,
        report: Some(folder.join("thread_pool_results")),
    })
}

/// Derives the plan of a configuration.
fn with_plan(configuration: Configuration, folder: &Path) -> Outcome<(Configuration, Plan)> {
    let matrix_path = folder.join(MATRIX_FILE);
    let matrix = match matches!(configuration.benchmark, Benchmark::Dbt2(_)) && matrix_path.exists() {
        true => Some(read_matrix(&fs::read_to_string(&matrix_path)?).explain(matrix_path.display())?),
        false => None,
    };
    let plan = Plan::of(&configuration, matrix.as_deref())?;
    let of_binding = configuration.binding.notice(has_numactl());
    for notice in configuration.notices.iter().map(String::as_str).chain(of_binding) {
        println!("{notice}");
    }
    Ok((configuration, plan))
}

/// The servers that the file names, for a run that starts no node.
fn without_start(configuration: &Configuration) -> super::configuration::ServerPart {
    let mut part = configuration.server.clone();
    part.data_folder = None;
    part
}

fn print_plan(configuration: &Configuration, plan: &Plan) {
    let server = &configuration.server;
    match &server.data_folder {
        Some(folder) => println!("would start a node with files below {folder}"),
        None => println!("would use the servers {:?} with ports {:?}", server.hosts, server.ports),
    }
    let show = |program: &Program| {
        println!("  {}: sysbench {} {}", program.database, plan.script.name(), program.arguments.join(" "))
    };
    println!("would load:");
    plan.prepare.iter().for_each(show);
    for case in &plan.cases {
        println!("would run {} times, {} s, {}:", configuration.test_runs, case.time_s, case.label);
        case.programs.iter().for_each(show);
    }
}

struct Session<'a> {
    configuration: &'a Configuration,
    plan: &'a Plan,
    target: Target,
    scripts: &'a Path,
    /// Folder for `.res` files.
    results: PathBuf,
    interrupt: Interrupt,
}

impl Session<'_> {
    fn run(&mut self, folder: &Path) -> Outcome<()> {
        let outcome = self.run_rounds(folder);
        if outcome.is_err() {
            // If the node has ended, its log explains the failure better.
            self.target.require_alive()?;
        }
        outcome
    }

    fn run_rounds(&mut self, folder: &Path) -> Outcome<()> {
        for (what, instance) in
            ["prepare", "check"].iter().flat_map(|what| (0..256).map(move |instance| (what, instance)))
        {
            // A missing file need not be removed.
            let _ = fs::remove_file(self.log_file(what, instance));
        }
        self.make_databases()?;
        let instances = self.plan.cases.iter().map(|case| case.programs.len()).max().unwrap_or(1);
        let mut results = vec![InstanceResults::default(); instances];
        for round in 0..self.configuration.test_runs {
            for instance in 0..instances {
                self.begin_file(instance as u32, round)?;
            }
            for (place, case) in self.plan.cases.iter().enumerate() {
                if place == 0 && round == 0 || self.plan.loads_for_each_case {
                    self.load(place > 0 || round > 0)?;
                }
                self.interrupt.pause(Duration::from_secs(self.configuration.pause_s))?;
                for (instance, result) in self.run_case(case, round)?.into_iter().enumerate() {
                    results[instance].add(&case.label, result);
                }
            }
        }
        self.check()?;
        let page = write_results(folder, &self.plan.name, &results)?;
        print!("{page}");
        println!("({}; {})", self.plan.unit, folder.join("final_result.txt").display());
        self.change_databases("drop")
    }

    /// Waits until the servers reply, then drops and creates the databases.
    fn make_databases(&self) -> Outcome<()> {
        let server = &self.configuration.server;
        let mut outcome = Ok(());
        for attempt in 0..server.attempts_max {
            outcome = self.change_databases("create");
            let Err(failure) = &outcome else { break };
            // The server replied with an error, and would repeat that error.
            if !failure.to_string().contains("unable to connect") || attempt + 1 == server.attempts_max {
                break;
            }
            println!("no server answers yet");
            self.interrupt.pause(Duration::from_secs(server.attempt_pause_s))?;
        }
        outcome
    }

    fn change_databases(&self, command: &str) -> Outcome<()> {
        for (instance, name) in self.plan.databases.iter().enumerate() {
            let arguments = vec![format!("--name={name}"), command.to_string()];
            let program = Program { instance: instance as u32, database: "information_schema".into(), arguments };
            let job = self.job(Script::Database, &program, &self.log_file("prepare", instance as u32));
            run_all(&[job], STATEMENT_TIME_MAX, &self.interrupt)?;
        }
        Ok(())
    }

    fn load(&self, again: bool) -> Outcome<()> {
        if again {
            self.change_databases("create")?;
        }
        println!("loading {}", self.plan.databases.join(", "));
        let jobs = self.jobs(&self.plan.prepare, |session, instance| session.log_file("prepare", instance));
        run_all(&jobs, LOAD_TIMEOUT, &self.interrupt).map(drop)
    }

    fn run_case(&mut self, case: &Case, round: u32) -> Outcome<Vec<u64>> {
        println!("running {}, {}, round {} of {}", self.plan.name, case.label, round + 1, self.configuration.test_runs);
        for program in &case.programs {
            self.append_line(program.instance, round, &format!("Running {} using {}", self.plan.name, case.label))?;
        }
        let jobs = self.jobs(&case.programs, |session, instance| session.result_file(instance, round));
        let printed = run_all(&jobs, Duration::from_secs(case.time_s) + RUN_GRACE, &self.interrupt)?;
        self.target.require_alive()?;
        let results = printed.iter().map(|text| self.result_of(text)).collect::<Option<Vec<u64>>>();
        let results = results.ok_or("no figures in its output").explain(format!("sysbench {}", self.plan.name))?;
        let shown: Vec<String> = results.iter().map(u64::to_string).collect();
        println!("  {} {}", shown.join(" + "), self.plan.unit);
        Ok(results)
    }

    /// The result that sysbench printed, rounded down as in the final results.
    fn result_of(&self, printed: &str) -> Option<u64> {
        if self.plan.script == Script::Dbt2 {
            let line = printed.lines().find_map(|line| line.trim().strip_prefix("new orders per minute:"))?;
            return line.trim().parse::<f64>().ok().map(|rate| rate as u64);
        }
        Some(parse_report(printed)?.events_per_s as u64)
    }

    fn check(&self) -> Outcome<()> {
        if self.plan.check.is_empty() {
            return Ok(());
        }
        println!("checking the tables");
        let jobs = self.jobs(&self.plan.check, |session, instance| session.log_file("check", instance));
        run_all(&jobs, LOAD_TIMEOUT, &self.interrupt).map(drop)
    }

    fn jobs(&self, programs: &[Program], file: impl Fn(&Self, u32) -> PathBuf) -> Vec<Job> {
        programs.iter().map(|program| self.job(self.plan.script, program, &file(self, program.instance))).collect()
    }

    fn job(&self, script: Script, program: &Program, output: &Path) -> Job {
        let addresses = &self.target.addresses;
        let address = &addresses[program.instance as usize % addresses.len()];
        let mut words = self.configuration.binding.benchmark_words(program.instance, has_numactl());
        words.extend(["sysbench".into(), script.path(self.scripts).to_string_lossy().into_owned()]);
        words.extend(connection_options(address, &self.configuration.server));
        words.push(format!("--mysql-db={}", program.database));
        words.extend(program.arguments.iter().cloned());
        Job { words, output: output.to_path_buf() }
    }

    fn log_file(&self, what: &str, instance: u32) -> PathBuf {
        self.results.join(format!("{}_{what}_{instance}.log", self.plan.name))
    }

    fn result_file(&self, instance: u32, round: u32) -> PathBuf {
        self.results.join(format!("{}_{instance}_{round}.res", self.plan.name))
    }

    /// Creates an empty `.res` file.
    fn begin_file(&self, instance: u32, round: u32) -> Outcome<()> {
        let path = self.result_file(instance, round);
        fs::write(&path, "").explain(path.display())?;
        match self.configuration.description.as_str() {
            "" => Ok(()),
            description => self.append_line(instance, round, description),
        }
    }

    fn append_line(&self, instance: u32, round: u32, line: &str) -> Outcome<()> {
        let path = self.result_file(instance, round);
        let mut file = OpenOptions::new().append(true).open(&path).explain(path.display())?;
        writeln!(file, "{line}").explain(path.display())
    }
}
