//! The checked and typed settings of an `autobench.conf`, with defaults filled in.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::binding::{Binder, CpuBinding};
use super::entry::read_entries;
use super::key;
use super::test::SysbenchTest;
use crate::event_load::work::Work;
use crate::{Failure, Outcome};

/// The settings of an `autobench.conf`.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// First line of every `.res` file; may be empty.
    pub description: String,
    /// Which benchmark runs, with its settings.
    pub benchmark: Benchmark,
    /// The servers to use, or the node to start.
    pub server: ServerPart,
    /// CPUs of the server and of sysbench.
    pub binding: CpuBinding,
    /// `ENGINE` of the tables.
    pub engine: String,
    /// Isolation level of the sessions; empty for the default of the server.
    pub isolation: String,
    /// Whether statements are prepared.
    pub prepared: bool,
    /// Verbosity of sysbench, from 0 to 5.
    pub verbosity: u32,
    /// Thread counts, one run for each.
    pub thread_counts: Vec<u32>,
    /// Seconds per run.
    pub time_s: u64,
    /// Number of times that all runs are repeated.
    pub test_runs: u32,
    /// Seconds of pause before each run.
    pub pause_s: u64,
    /// Number of concurrent sysbench programs.
    pub instances: u32,
    /// Messages for the user, for example about keys that have no meaning here.
    pub notices: Vec<String>,
}

/// A benchmark with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// `oltp.lua`.
    Sysbench(SysbenchPart),
    /// `dbt2.lua`.
    Dbt2(Dbt2Part),
    /// `ycsb.lua`.
    Ycsb(YcsbPart),
    /// Modes of the thread pool, by a client of its own.
    ThreadPool(ThreadPoolPart),
}

/// The servers to use, or the node to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerPart {
    /// Hosts, at least one.
    pub hosts: Vec<String>,
    /// Ports: one for all hosts, or one for each.
    pub ports: Vec<u16>,
    /// User name of the clients.
    pub user: String,
    /// Password of the clients.
    pub password: String,
    /// Folder below which a node keeps its files. `None` starts no node.
    pub data_folder: Option<String>,
    /// `ThreadConfig`; `None` for the automatic placement.
    pub thread_config: Option<String>,
    /// Maximum number of CPUs that the automatic placement uses.
    pub cpus_max: Option<u32>,
    /// Value of `TotalMemory`.
    pub total_memory: Option<String>,
    /// Maximum number of client connections.
    pub connections_max: u32,
    /// Further settings of the node: name in its configuration file, value in TOML, and the key of
    /// `autobench.conf` that sets it.
    pub settings: Vec<(&'static str, String, &'static str)>,
    /// Maximum number of attempts to reach a server.
    pub attempts_max: u32,
    /// Seconds between two attempts.
    pub attempt_pause_s: u64,
}

/// Settings of sysbench.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysbenchPart {
    /// The test.
    pub test: SysbenchTest,
    /// Name of the database.
    pub database: String,
    /// Tables per instance.
    pub tables: u32,
    /// Options of `oltp.lua` and of sysbench itself.
    pub options: Vec<String>,
}

/// Settings of DBT2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dbt2Part {
    /// Number of loaded warehouses.
    pub warehouses: u32,
    /// Warehouses of each run, unless a matrix file lists the runs.
    pub run_warehouses: Vec<u32>,
    /// Threads per warehouse.
    pub terminals: u32,
    /// Number of concurrent sysbench programs.
    pub servers: u32,
    /// Seconds per run.
    pub time_s: u64,
    /// Number of loading threads.
    pub loaders: u32,
    /// Seconds between lines of a `.res` file.
    pub interval_s: u32,
    /// Options of `dbt2.lua`.
    pub options: Vec<String>,
}

/// Settings of YCSB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YcsbPart {
    /// Workloads by their letters A to F.
    pub workloads: Vec<char>,
    /// Options of `ycsb.lua`.
    pub options: Vec<String>,
}

/// Settings of the thread pool's experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadPoolPart {
    /// Names of the operations.
    pub works: Vec<String>,
    /// Number of rows of the table.
    pub rows: u64,
    /// Seconds before each measurement.
    pub warm_up_s: u64,
    /// Whether MariaDB's pool-of-threads is measured too.
    pub with_mariadb: bool,
}

impl Configuration {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first error with its line: bad syntax, an unknown key, a value that is not allowed, or one that
    /// needs an unsupported feature.
    pub fn read(text: &str) -> Outcome<Configuration> {
        let mut values = Values::collect(text)?;
        let benchmark = match values.text("BENCHMARK_TO_RUN").as_str() {
            "sysbench" => Benchmark::Sysbench(sysbench_part(&values)?),
            "dbt2" => Benchmark::Dbt2(dbt2_part(&values)?),
            "ycsb" => Benchmark::Ycsb(ycsb_part(&values)?),
            "thread_pool" => Benchmark::ThreadPool(thread_pool_part(&values)?),
            _ => return Err(values.wrong("BENCHMARK_TO_RUN", "sysbench, dbt2, ycsb or thread_pool")),
        };
        values.require("BENCHMARK_SERVERS", &["localhost", "127.0.0.1"])?;
        values.require("NDB_USE_DISK_DATA", &["no"])?;
        let server = server_part(&mut values)?;
        Ok(Configuration {
            description: values.text("TEST_DESCRIPTION"),
            benchmark,
            server,
            binding: binding(&values)?,
            engine: values.word("ENGINE")?,
            isolation: isolation(&values)?,
            prepared: values.yes("SB_USE_PREPARED")?,
            verbosity: values.number("SB_VERBOSITY", 0..=5)?,
            thread_counts: values.numbers("THREAD_COUNTS_TO_RUN", 1..=100_000)?,
            time_s: values.number("MAX_TIME", 1..=10_000_000)?,
            test_runs: values.number("NUM_TEST_RUNS", 1..=1000)?,
            pause_s: values.number("BETWEEN_RUNS", 0..=86_400)?,
            instances: values.number("SYSBENCH_INSTANCES", 1..=256)?,
            notices: values.notices,
        })
    }
}

fn server_part(values: &mut Values) -> Outcome<ServerPart> {
    let hosts = values.list("SERVER_HOST");
    let ports: Vec<u16> = values.numbers("SERVER_PORT", 0..=65535)?;
    if ports.len() != 1 && ports.len() != hosts.len() {
        return Err(values.wrong("SERVER_PORT", "one port, or one for each of SERVER_HOST"));
    }
    let (user, password) = (values.text("MYSQL_USER"), values.text("MYSQL_PASSWORD"));
    let folder = values.text("DATA_DIR_BASE");
    let starts_node = !folder.is_empty();
    if starts_node && hosts.len() > 1 {
        return Err(values.wrong(
            "SERVER_HOST",
            "one host if DATA_DIR_BASE is set, because the node starts there; otherwise a list of running servers",
        ));
    }
    if starts_node && user != "root" && password.is_empty() {
        return Err(values.wrong("MYSQL_PASSWORD", "a password for MYSQL_USER"));
    }
    let wants_thread_config = !values.yes("NDB_AUTOMATIC_THREAD_CONFIG")?;
    let thread_config = values.optional("NDB_THREAD_CONFIG");
    if !wants_thread_config && thread_config.is_some() {
        values.notice("NDB_THREAD_CONFIG", "is not used, because NDB_AUTOMATIC_THREAD_CONFIG is yes");
    }
    if wants_thread_config && thread_config.is_none() {
        return Err(values.wrong("NDB_AUTOMATIC_THREAD_CONFIG", "yes, or no with NDB_THREAD_CONFIG"));
    }
    Ok(ServerPart {
        hosts,
        ports,
        user,
        password,
        data_folder: starts_node.then_some(folder),
        thread_config: thread_config.filter(|_| wants_thread_config),
        cpus_max: values.optional_number("NDB_NUM_CPUS", 1..=1024)?,
        total_memory: values.optional("NDB_TOTAL_MEMORY"),
        connections_max: values.number("MAX_CONNECTIONS", 1..=100_000)?,
        settings: settings(values)?,
        attempts_max: values.number("NUM_CREATE_DB_ATTEMPTS", 1..=10_000)?,
        attempt_pause_s: values.number("BETWEEN_CREATE_DB_TEST", 0..=3600)?,
    })
}

/// Upper limit of `MaxNoOfConcurrentTransactions`.
const TRANSACTIONS_MAX: u32 = 32_768;

fn settings(values: &mut Values) -> Outcome<Vec<(&'static str, String, &'static str)>> {
    let mut settings = Vec::new();
    let mut add = |name, value: Option<String>, key| settings.extend(value.map(|value| (name, value, key)));
    let partitions: u32 = values.number("NDB_PARTITIONS_PER_NODE", 0..=256)?;
    add("PartitionsPerNode", (partitions > 0).then(|| partitions.to_string()), "NDB_PARTITIONS_PER_NODE");
    let key = "NDB_MAX_NO_OF_CONCURRENT_TRANSACTIONS";
    let transactions: Option<u32> = values.optional_number(key, 1..=u32::MAX)?;
    if transactions.is_some_and(|wanted| wanted > TRANSACTIONS_MAX) {
        values.notice(key, &format!("is reduced to {TRANSACTIONS_MAX}, the server's maximum"));
    }
    let transactions = transactions.map(|wanted| wanted.clamp(16, TRANSACTIONS_MAX).to_string());
    add("MaxNoOfConcurrentTransactions", transactions, key);
    let key = "NDB_DEADLOCK_TIMEOUT";
    let wait_ms: Option<u64> = values.optional_number(key, 1..=1_000_000_000)?;
    add("lock_wait_timeout_s", wait_ms.map(|ms| ms.div_ceil(1000).to_string()), key);
    let key = "NDB_AUTOINCREMENT_OPTION";
    add("auto_increment_prefetch", values.optional_number::<u32>(key, 1..=65_536)?.map(|count| count.to_string()), key);
    let key = "NDB_DISKLESS";
    add("Diskless", Some(values.yes(key)?.to_string()), key);
    let key = "NDB_SPIN_METHOD";
    let methods = ["StaticSpinning", "CostBasedSpinning", "LatencyOptimisedSpinning", "DatabaseMachineSpinning"];
    let method = values.optional(key);
    if method.as_ref().is_some_and(|method| !methods.contains(&method.as_str())) {
        return Err(values.wrong(key, &methods.join(", ")));
    }
    add("SpinMethod", method.map(|method| format!("\"{method}\"")), key);
    let key = "NDB_ENABLE_ADAPTIVE_SPINNING";
    let adaptive = match values.optional(key) {
        Some(_) => Some(values.yes(key)?.to_string()),
        None => None,
    };
    add("EnableAdaptiveSpinning", adaptive, key);
    for (name, key, most) in [
        ("SchedulerSpinTimer", "NDB_SCHEDULER_SPIN_TIMER", 9000),
        ("AllowedSpinOverhead", "NDB_ALLOWED_SPIN_OVERHEAD", 10_000),
        ("SpintimePerCall", "NDB_SPINTIME_PER_CALL", 8000),
        ("MaxSendDelay", "NDB_MAX_SEND_DELAY", 11_000),
    ] {
        add(name, values.optional_number::<u32>(key, 0..=most)?.map(|value| value.to_string()), key);
    }
    Ok(settings)
}

fn binding(values: &Values) -> Outcome<CpuBinding> {
    let binder = match values.text("TASKSET").as_str() {
        "" => Binder::None,
        "taskset" => Binder::Taskset,
        "numactl" => Binder::Numactl,
        _ => return Err(values.wrong("TASKSET", "taskset, numactl or nothing")),
    };
    values.require("SERVER_MEM_POLICY", &["interleaved", "local"])?;
    values.require("BENCHMARK_MEM_POLICY", &["interleaved", "local"])?;
    let instances: usize = values.number("SYSBENCH_INSTANCES", 1..=256)?;
    for key in ["BENCHMARK_CPUS", "BENCHMARK_BIND"] {
        if ![0, 1, instances].contains(&values.list(key).len()) {
            return Err(values.wrong(key, "one entry, or one for each of SYSBENCH_INSTANCES"));
        }
    }
    Ok(CpuBinding {
        binder,
        server_cpus: ["SERVER_CPUS", "NDBD_CPUS"].iter().flat_map(|key| values.list(key)).collect(),
        server_nodes: values.list("SERVER_BIND"),
        server_interleaves: values.text("SERVER_MEM_POLICY") == "interleaved",
        benchmark_cpus: values.list("BENCHMARK_CPUS"),
        benchmark_nodes: values.list("BENCHMARK_BIND"),
        benchmark_interleaves: values.text("BENCHMARK_MEM_POLICY") == "interleaved",
    })
}

fn isolation(values: &Values) -> Outcome<String> {
    let name = values.text("TRANSACTION_ISOLATION").replace('-', " ").to_ascii_uppercase();
    let levels = ["", "READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
    if levels.contains(&name.as_str()) {
        Ok(name)
    } else {
        Err(values.wrong("TRANSACTION_ISOLATION", &levels[1..].join(", ")))
    }
}

fn thread_pool_part(values: &Values) -> Outcome<ThreadPoolPart> {
    let works = values.list("THREAD_POOL_WORKS");
    if works.iter().any(|name| Work::of_name(name).is_none()) {
        let names = Work::ALL.map(Work::name).join(", ");
        return Err(values.wrong("THREAD_POOL_WORKS", &names));
    }
    Ok(ThreadPoolPart {
        works,
        rows: values.number("SYSBENCH_ROWS", 1..=2_000_000_000)?,
        warm_up_s: values.number("THREAD_POOL_WARM_UP", 0..=3600)?,
        with_mariadb: values.yes("THREAD_POOL_MARIADB")?,
    })
}

fn sysbench_part(values: &Values) -> Outcome<SysbenchPart> {
    for key in ["SB_USE_LEFT_OUTER_JOIN_STAR", "SB_USE_LEFT_OUTER_JOIN_FK", "SB_USE_MYSQL_HANDLER", "SB_USE_RANGE"] {
        values.require(key, &["no"])?;
    }
    let Some(test) = SysbenchTest::find(&values.text("SYSBENCH_TEST")) else {
        return Err(values.wrong("SYSBENCH_TEST", &SysbenchTest::NAMES.join(", ")));
    };
    let modes = ["select", "update_key", "update_nokey", "insert", "delete"];
    values.require("SB_NONTRX_MODE", &modes)?;
    values.require("SB_DIST_TYPE", &["uniform", "gaussian", "special", "pareto"])?;
    let rows: u64 = values.number("SYSBENCH_ROWS", 1..=2_000_000_000)?;
    let mut options = vec![format!("--table_size={rows}")];
    let mut counts = |pairs: &[(&str, &'static str, RangeInclusive<u64>)]| -> Outcome<()> {
        for (option, key, range) in pairs {
            options.push(format!("--{option}={}", values.number::<u64>(key, range.clone())?));
        }
        Ok(())
    };
    counts(&[
        ("tables", "SB_NUM_TABLES", 1..=10_000),
        ("partitions", "SB_NUM_PARTITIONS", 0..=256),
        ("events", "SB_MAX_REQUESTS", 0..=u64::from(u32::MAX)),
    ])?;
    if test.takes_counts() {
        counts(&[
            ("point_selects", "SB_POINT_SELECTS", 0..=100_000),
            ("in_keys", "SB_USE_IN_STATEMENT", 0..=10_000),
            ("range_size", "SB_RANGE_SIZE", 1..=1_000_000),
            ("simple_ranges", "SB_SIMPLE_RANGES", 0..=10_000),
            ("sum_ranges", "SB_SUM_RANGES", 0..=10_000),
            ("order_ranges", "SB_ORDER_RANGES", 0..=10_000),
            ("distinct_ranges", "SB_DISTINCT_RANGES", 0..=10_000),
        ])?;
    }
    for (option, key) in [
        ("filter", "SB_USE_FILTER"),
        ("secondary", "SB_USE_SECONDARY_INDEX"),
        ("auto_inc", "SB_USE_AUTO_INC"),
        ("ordered_locks", "SB_AVOID_DEADLOCKS"),
    ] {
        options.push(format!("--{option}={}", if values.yes(key)? { "on" } else { "off" }));
    }
    options.push(format!("--rand-type={}", values.text("SB_DIST_TYPE")));
    if let Some(rate) = values.optional_number::<u32>("SB_TX_RATE", 1..=u32::MAX)? {
        options.push(format!("--rate={rate}"));
    }
    let wraps_reads = values.optional("SB_USE_TRX").is_some() && values.yes("SB_USE_TRX")?;
    options.extend(test.options(wraps_reads, &values.text("SB_NONTRX_MODE")));
    let tables = values.number("SB_NUM_TABLES", 1..=10_000)?;
    Ok(SysbenchPart { test, database: values.word("SYSBENCH_DB")?, tables, options })
}

fn dbt2_part(values: &Values) -> Outcome<Dbt2Part> {
    values.require("DBT2_PARTITION_TYPE", &["KEY"])?;
    let warehouses: u32 = values.number("DBT2_WAREHOUSES", 1..=100_000)?;
    let run_warehouses: Vec<u32> = values.numbers("DBT2_RUN_WAREHOUSES", 1..=100_000)?;
    if run_warehouses.iter().any(|count| *count > warehouses) {
        return Err(values.wrong("DBT2_RUN_WAREHOUSES", "at most DBT2_WAREHOUSES"));
    }
    let mut options = vec![format!("--warehouses={warehouses}")];
    options.push(format!("--items={}", values.number::<u32>("DBT2_ITEMS", 15..=10_000_000)?));
    options.push(format!("--customers={}", values.number::<u32>("DBT2_CUSTOMERS", 10..=1_000_000)?));
    options.push(format!("--pk_using_hash={}", if values.yes("DBT2_PK_USING_HASH")? { "on" } else { "off" }));
    if let Some(partitions) = values.optional_number::<u32>("DBT2_NUM_PARTITIONS", 1..=256)? {
        options.push(format!("--partitions={partitions}"));
    }
    Ok(Dbt2Part {
        warehouses,
        run_warehouses,
        terminals: values.number("DBT2_TERMINALS", 1..=10_000)?,
        servers: values.number("DBT2_NUM_SERVERS", 1..=256)?,
        time_s: values.number("DBT2_TIME", 1..=10_000_000)?,
        loaders: values.number("DBT2_LOADERS", 1..=1000)?,
        interval_s: values.number("DBT2_INTERMEDIATE_TIMER_RESOLUTION", 1..=3600)?,
        options,
    })
}

fn ycsb_part(values: &Values) -> Outcome<YcsbPart> {
    let names = values.list("YCSB_WORKLOADS");
    let workloads: Vec<char> = names.iter().filter_map(|name| name.parse().ok()).collect();
    if workloads.len() != names.len() || !workloads.iter().all(|name| ('A'..='F').contains(name)) {
        return Err(values.wrong("YCSB_WORKLOADS", "letters A to F, separated by ;"));
    }
    values.require("YCSB_DISTRIBUTION", &["", "zipfian", "latest", "uniform"])?;
    let options = vec![
        format!("--records={}", values.number::<u64>("YCSB_RECORDS", 1..=999_999_999)?),
        format!("--fields={}", values.number::<u32>("YCSB_FIELDS", 1..=100)?),
        format!("--field_bytes={}", values.number::<u32>("YCSB_FIELD_BYTES", 1..=500)?),
        format!("--distribution={}", values.text("YCSB_DISTRIBUTION")),
    ];
    Ok(YcsbPart { workloads, options })
}

/// The values by key, with line numbers for error messages.
struct Values {
    given: BTreeMap<&'static str, (usize, String)>,
    notices: Vec<String>,
}

impl Values {
    fn collect(text: &str) -> Outcome<Values> {
        let mut values = Values { given: BTreeMap::new(), notices: Vec::new() };
        for entry in read_entries(text)? {
            let line = entry.line;
            if let Some(key) = key::find(&entry.key) {
                if let Some((earlier, _)) = values.given.insert(key.name, (line, entry.value)) {
                    values.notices.push(format!("line {line}: {} replaces the value of line {earlier}", key.name));
                }
            } else if let Some(reason) = key::why_meaningless(&entry.key) {
                values.notices.push(format!("line {line}: {} means nothing here: {reason}", entry.key));
            } else {
                let near = key::nearest(&entry.key).map(|near| format!("; {near} is similar")).unwrap_or_default();
                return Err(Failure::new(format!("line {line}: unknown key {}{near}", entry.key)));
            }
        }
        Ok(values)
    }

    fn text(&self, key: &'static str) -> String {
        self.optional(key).unwrap_or_else(|| key::find(key).map_or("", |key| key.default).to_string())
    }

    fn optional(&self, key: &str) -> Option<String> {
        self.given.get(key).map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    }

    fn list(&self, key: &'static str) -> Vec<String> {
        self.text(key).split(';').map(str::trim).filter(|part| !part.is_empty()).map(String::from).collect()
    }

    /// Returns the value of a key that must be a name which SQL accepts without quotes.
    fn word(&self, key: &'static str) -> Outcome<String> {
        let text = self.text(key);
        let is_word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_word { Ok(text) } else { Err(self.wrong(key, "letters, digits and underscores")) }
    }

    fn yes(&self, key: &'static str) -> Outcome<bool> {
        match self.text(key).to_ascii_lowercase().as_str() {
            "yes" | "y" | "on" | "1" | "true" => Ok(true),
            "no" | "n" | "off" | "0" | "false" => Ok(false),
            _ => Err(self.wrong(key, "yes or no")),
        }
    }

    fn require(&self, key: &'static str, allowed: &[&str]) -> Outcome<()> {
        let value = self.text(key);
        if allowed.contains(&value.as_str()) {
            return Ok(());
        }
        let meaning = key::find(key).map(|key| key.meaning).filter(|meaning| meaning.contains("refused"));
        let names: Vec<&str> = allowed.iter().copied().filter(|name| !name.is_empty()).collect();
        Err(self.wrong(
            key,
            &meaning.map_or_else(|| names.join(", "), |meaning| format!("{}; {meaning}", names.join(", "))),
        ))
    }

    fn number<T: FromStr + PartialOrd + Display>(&self, key: &'static str, range: RangeInclusive<T>) -> Outcome<T> {
        self.parse(key, &self.text(key), &range)
    }

    fn optional_number<T: FromStr + PartialOrd + Display>(
        &self,
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> Outcome<Option<T>> {
        self.optional(key).map(|text| self.parse(key, &text, &range)).transpose()
    }

    fn numbers<T: FromStr + PartialOrd + Display>(
        &self,
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> Outcome<Vec<T>> {
        let list = self.list(key);
        if list.is_empty() {
            return Err(self.wrong(key, "at least one number"));
        }
        list.iter().map(|text| self.parse(key, text, &range)).collect()
    }

    fn parse<T: FromStr + PartialOrd + Display>(
        &self,
        key: &'static str,
        text: &str,
        range: &RangeInclusive<T>,
    ) -> Outcome<T> {
        let allowed = || format!("a whole number from {} to {}", range.start(), range.end());
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| self.wrong(key, &allowed()))
    }

    fn wrong(&self, key: &'static str, allowed: &str) -> Failure {
        match self.given.get(key) {
            Some((line, value)) => Failure::new(format!("line {line}: {key}=\"{value}\": allowed is {allowed}")),
            None => Failure::new(format!("{key} is \"{}\" by default: allowed is {allowed}", self.text(key))),
        }
    }

    fn notice(&mut self, key: &'static str, what: &str) {
        let line = self.given.get(key).map_or(0, |(line, _)| *line);
        self.notices.push(format!("line {line}: {key} {what}"));
    }
}
