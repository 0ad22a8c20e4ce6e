//! Tests whole files: every key with good and bad values, the shipped files, and the plans derived from them.

use std::fs;
use std::path::Path;

use super::configuration::{Benchmark, Configuration};
use super::key::{KEYS, MEANINGLESS};
use super::matrix::{MatrixRow, read_matrix};
use super::plan::Plan;

fn read(text: &str) -> Configuration {
    Configuration::read(text).unwrap_or_else(|failure| panic!("{text}: {failure}"))
}

fn refusal(text: &str) -> String {
    match Configuration::read(text) {
        Ok(_) => panic!("{text}: was accepted"),
        Err(failure) => failure.to_string(),
    }
}

/// Everything that is derived from a file, as one comparable text.
fn shown(text: &str) -> String {
    let configuration = read(text);
    if matches!(configuration.benchmark, Benchmark::ThreadPool(_)) {
        return format!("{configuration:?}");
    }
    let plan = Plan::of(&configuration, None).unwrap_or_else(|failure| panic!("{text}: {failure}"));
    format!("{configuration:?} {plan:?}")
}

/// In each row: a key, a good value other than the default, a bad value (empty if there is none), and the
/// lines that the key needs in the same file.
const VALUES: &[(&str, &str, &str, &str)] = &[
    ("BENCHMARK_TO_RUN", "dbt2", "flexAsynch", ""),
    ("TEST_DESCRIPTION", "a test", "", ""),
    ("DATA_DIR_BASE", "data", "", ""),
    ("SERVER_HOST", "10.0.0.1;10.0.0.2", "", ""),
    ("SERVER_PORT", "3316", "66000", ""),
    ("MYSQL_USER", "me", "", ""),
    ("MYSQL_PASSWORD", "secret", "", ""),
    ("ENGINE", "innodb", "a b", ""),
    ("MAX_CONNECTIONS", "200", "0", ""),
    ("TRANSACTION_ISOLATION", "READ-COMMITTED", "SNAPSHOT", ""),
    ("NDB_AUTOMATIC_THREAD_CONFIG", "no", "maybe", "NDB_THREAD_CONFIG=\"ldm={count=1}\""),
    ("NDB_NUM_CPUS", "4", "x", ""),
    ("NDB_THREAD_CONFIG", "ldm={count=1},recv={count=2,cpubind=0,1}", "", "NDB_AUTOMATIC_THREAD_CONFIG=no"),
    ("NDB_TOTAL_MEMORY", "2G", "", ""),
    ("NDB_PARTITIONS_PER_NODE", "4", "1000", ""),
    ("NDB_MAX_NO_OF_CONCURRENT_TRANSACTIONS", "100", "-1", ""),
    ("NDB_DEADLOCK_TIMEOUT", "10000", "soon", ""),
    ("NDB_AUTOINCREMENT_OPTION", "256", "0", ""),
    ("NDB_DISKLESS", "yes", "perhaps", ""),
    ("NDB_SPIN_METHOD", "CostBasedSpinning", "Spinning", ""),
    ("NDB_SCHEDULER_SPIN_TIMER", "100", "1s", ""),
    ("NDB_ENABLE_ADAPTIVE_SPINNING", "yes", "perhaps", ""),
    ("NDB_ALLOWED_SPIN_OVERHEAD", "200", "20000", ""),
    ("NDB_SPINTIME_PER_CALL", "300", "x", ""),
    ("NDB_MAX_SEND_DELAY", "100", "x", ""),
    ("TASKSET", "taskset", "cpuset", ""),
    ("SERVER_CPUS", "8-27,40-59", "", ""),
    ("SERVER_BIND", "0", "", ""),
    ("SERVER_MEM_POLICY", "local", "spread", ""),
    ("NDBD_CPUS", "0", "", ""),
    ("BENCHMARK_CPUS", "28-31", "1;2;3", ""),
    ("BENCHMARK_BIND", "0", "0;1", ""),
    ("BENCHMARK_MEM_POLICY", "interleaved", "spread", ""),
    ("BENCHMARK_SERVERS", "127.0.0.1", "elsewhere", ""),
    ("THREAD_COUNTS_TO_RUN", "1;2;4", "1,2", ""),
    ("MAX_TIME", "20000", "0", ""),
    ("NUM_TEST_RUNS", "3", "0", ""),
    ("BETWEEN_RUNS", "0", "x", ""),
    ("NUM_CREATE_DB_ATTEMPTS", "1", "0", ""),
    ("BETWEEN_CREATE_DB_TEST", "1", "x", ""),
    ("SYSBENCH_INSTANCES", "2", "0", ""),
    ("SYSBENCH_TEST", "oltp_ro", "oltp", ""),
    ("SYSBENCH_DB", "other", "a-b", ""),
    ("SYSBENCH_ROWS", "1000", "0", ""),
    ("SB_NUM_TABLES", "4", "0", ""),
    ("SB_POINT_SELECTS", "0", "x", ""),
    ("SB_USE_IN_STATEMENT", "100", "x", ""),
    ("SB_RANGE_SIZE", "10", "0", ""),
    ("SB_SIMPLE_RANGES", "0", "x", ""),
    ("SB_SUM_RANGES", "0", "x", ""),
    ("SB_ORDER_RANGES", "0", "x", ""),
    ("SB_DISTINCT_RANGES", "0", "x", ""),
    ("SB_USE_FILTER", "yes", "x", ""),
    ("SB_USE_SECONDARY_INDEX", "yes", "x", ""),
    ("SB_USE_TRX", "yes", "x", "SYSBENCH_TEST=oltp_ro"),
    ("SB_USE_AUTO_INC", "yes", "x", ""),
    ("SB_NUM_PARTITIONS", "4", "x", ""),
    ("SB_DIST_TYPE", "special", "normal", ""),
    ("SB_AVOID_DEADLOCKS", "no", "x", ""),
    ("SB_NONTRX_MODE", "delete", "x", "SYSBENCH_TEST=oltp_nontrx"),
    ("SB_MAX_REQUESTS", "1000", "x", ""),
    ("SB_TX_RATE", "100", "x", ""),
    ("SB_VERBOSITY", "5", "6", ""),
    ("SB_USE_PREPARED", "no", "x", ""),
    ("DBT2_WAREHOUSES", "16", "0", "BENCHMARK_TO_RUN=dbt2"),
    ("DBT2_RUN_WAREHOUSES", "1;2", "11", "BENCHMARK_TO_RUN=dbt2"),
    ("DBT2_TERMINALS", "2", "0", "BENCHMARK_TO_RUN=dbt2"),
    ("DBT2_NUM_SERVERS", "2", "0", "BENCHMARK_TO_RUN=dbt2\nDBT2_RUN_WAREHOUSES=4"),
    ("DBT2_TIME", "10", "0", "BENCHMARK_TO_RUN=dbt2"),
    ("DBT2_LOADERS", "1", "0", "BENCHMARK_TO_RUN=dbt2"),
    ("DBT2_PARTITION_TYPE", "KEY", "RANGE", "BENCHMARK_TO_RUN=dbt2"),
    ("DBT2_NUM_PARTITIONS", "4", "x", "BENCHMARK_TO_RUN=dbt2"),
    ("DBT2_PK_USING_HASH", "off", "x", "BENCHMARK_TO_RUN=dbt2"),
    ("DBT2_INTERMEDIATE_TIMER_RESOLUTION", "1", "0", "BENCHMARK_TO_RUN=dbt2"),
    ("DBT2_ITEMS", "1000", "1", "BENCHMARK_TO_RUN=dbt2"),
    ("DBT2_CUSTOMERS", "300", "1", "BENCHMARK_TO_RUN=dbt2"),
    ("YCSB_WORKLOADS", "A;F", "G", "BENCHMARK_TO_RUN=ycsb"),
    ("YCSB_RECORDS", "1000", "0", "BENCHMARK_TO_RUN=ycsb"),
    ("YCSB_DISTRIBUTION", "uniform", "x", "BENCHMARK_TO_RUN=ycsb"),
    ("YCSB_FIELDS", "5", "0", "BENCHMARK_TO_RUN=ycsb"),
    ("YCSB_FIELD_BYTES", "50", "0", "BENCHMARK_TO_RUN=ycsb"),
    ("THREAD_POOL_WORKS", "read-write", "select", "BENCHMARK_TO_RUN=thread_pool"),
    ("THREAD_POOL_WARM_UP", "1", "x", "BENCHMARK_TO_RUN=thread_pool"),
    ("THREAD_POOL_MARIADB", "no", "x", "BENCHMARK_TO_RUN=thread_pool"),
];

/// Keys with a single allowed value. Any other value is refused.
const REFUSED: &[&str] = &[
    "SB_USE_LEFT_OUTER_JOIN_STAR",
    "SB_USE_LEFT_OUTER_JOIN_FK",
    "SB_USE_MYSQL_HANDLER",
    "SB_USE_RANGE",
    "NDB_USE_DISK_DATA",
];

/// Keys that allow a second value with the same meaning as the default.
const WITHOUT_EFFECT: &[&str] = &["BENCHMARK_SERVERS", "DBT2_PARTITION_TYPE"];

#[test]
fn these_tests_cover_every_key() {
    let mut tried: Vec<&str> = VALUES.iter().map(|(key, ..)| *key).chain(REFUSED.iter().copied()).collect();
    let mut known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    tried.sort_unstable();
    known.sort_unstable();
    assert_eq!(tried, known);
}

#[test]
fn every_key_does_something() {
    for (key, good, _, beside) in VALUES {
        let with = shown(&format!("{beside}\n{key}=\"{good}\"\n"));
        // NDB_THREAD_CONFIG and NDB_AUTOMATIC_THREAD_CONFIG="no" have an effect only together.
        let without = if key.contains("THREAD_CONFIG") { shown("") } else { shown(beside) };
        assert_eq!(with == without, WITHOUT_EFFECT.contains(key), "{key}");
    }
}

#[test]
fn bad_values_are_refused_with_their_line_and_what_is_allowed() {
    for (key, _, bad, beside) in VALUES.iter().filter(|(_, _, bad, _)| !bad.is_empty()) {
        let beside = if key.contains("THREAD_CONFIG") { "" } else { beside };
        let failure = refusal(&format!("{key}=\"{bad}\"\n{beside}\n"));
        assert!(failure.starts_with(&format!("line 1: {key}=\"{bad}\": allowed is ")), "{failure}");
    }
    for key in REFUSED {
        let failure = refusal(&format!("\n{key}=\"yes\"\n"));
        assert!(failure.starts_with(&format!("line 2: {key}=\"yes\": allowed is no; yes is refused")), "{failure}");
    }
}

#[test]
fn unknown_keys_are_refused_with_a_similar_key() {
    assert_eq!(refusal("\n\nMAXTIME=\"1\""), "line 3: unknown key MAXTIME; MAX_TIME is similar");
    assert_eq!(refusal("QWERTZUIOP=\"1\""), "line 1: unknown key QWERTZUIOP");
}

#[test]
fn keys_without_a_meaning_are_reported_with_the_reason() {
    for (reason, names) in MEANINGLESS {
        for name in *names {
            let name = name.replace('*', "X");
            let notices = read(&format!("{name}=\"1\"\n")).notices;
            assert_eq!(notices, [format!("line 1: {name} means nothing here: {reason}")]);
        }
    }
}

#[test]
fn the_later_of_two_lines_counts_and_is_reported() {
    let configuration = read("MAX_TIME=\"1\"\nMAX_TIME=\"2\"\n");
    assert_eq!(configuration.time_s, 2);
    assert_eq!(configuration.notices, ["line 2: MAX_TIME replaces the value of line 1"]);
}

#[test]
fn values_that_contradict_each_other_are_refused() {
    for text in [
        "NDB_AUTOMATIC_THREAD_CONFIG=no",
        "DATA_DIR_BASE=d\nSERVER_HOST=\"a;b\"",
        "DATA_DIR_BASE=d\nMYSQL_USER=me",
        "SERVER_HOST=\"a;b;c\"\nSERVER_PORT=\"1;2\"",
    ] {
        refusal(text);
    }
    let configuration = read("NDB_THREAD_CONFIG=\"ldm={count=1}\"");
    assert_eq!(configuration.server.thread_config, None);
    assert_eq!(configuration.notices.len(), 1);
}

#[test]
fn instances_have_databases_of_their_own() {
    let plan = Plan::of(&read("SYSBENCH_INSTANCES=2\nTHREAD_COUNTS_TO_RUN=\"1;8\""), None).expect("a plan");
    assert_eq!(plan.databases, ["sbtest_0", "sbtest_1"]);
    let labels: Vec<&str> = plan.cases.iter().map(|case| case.label.as_str()).collect();
    assert_eq!(labels, ["Threads: 1", "Threads: 8"]);
    let seeds: Vec<bool> = plan.cases[0]
        .programs
        .iter()
        .map(|program| program.arguments.contains(&"--rand-seed=1103515245".into()))
        .collect();
    assert_eq!(seeds, [true, false]);
}

#[test]
fn warehouses_are_divided_among_the_servers() {
    let configuration = read("BENCHMARK_TO_RUN=dbt2\nDBT2_WAREHOUSES=5");
    let row = MatrixRow { servers: 2, warehouses: 5, terminals: 3 };
    let plan = Plan::of(&configuration, Some(&[row])).expect("a plan");
    let has = |place: usize, option: &str| plan.cases[0].programs[place].arguments.contains(&option.into());
    assert!(has(0, "--first_warehouse=1") && has(0, "--run_warehouses=2") && has(0, "--threads=6"));
    assert!(has(1, "--first_warehouse=3") && has(1, "--run_warehouses=3") && has(1, "--threads=9"));
    for (servers, warehouses) in [(1, 6), (3, 2)] {
        assert!(Plan::of(&configuration, Some(&[MatrixRow { servers, warehouses, terminals: 1 }])).is_err());
    }
}

#[test]
fn the_shipped_directories_can_be_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("autobench");
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).expect("the shipped directories") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(path.join("autobench.conf")).expect("a configuration");
        let configuration = read(&text);
        assert!(configuration.notices.is_empty(), "{path:?}: {:?}", configuration.notices);
        found.push(path.file_name().expect("a name").to_string_lossy().into_owned());
        if let Benchmark::ThreadPool(part) = &configuration.benchmark {
            assert_eq!((part.works.len(), part.with_mariadb), (3, true));
            continue;
        }
        let matrix = fs::read_to_string(path.join("dbt2_run_1.conf")).ok();
        let matrix = matrix.map(|text| read_matrix(&text).expect("a matrix"));
        assert!(!Plan::of(&configuration, matrix.as_deref()).expect("a plan").cases.is_empty());
    }
    found.sort_unstable();
    assert_eq!(found, ["dbt2_multi", "dbt2_single", "sysbench_multi", "sysbench_single", "thread_pool", "ycsb"]);
}

/// The file of the published experiments with thread pipelines. Only its paths, CPUs, times and memory sizes
/// are changed.
#[test]
fn the_published_file_starts_a_node_with_its_threads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/autobench/autobench.conf");
    let configuration = read(&fs::read_to_string(path).expect("the file"));
    assert!(matches!(configuration.benchmark, Benchmark::Sysbench(_)));
    assert!(configuration.server.data_folder.is_some() && configuration.server.thread_config.is_some());
    assert_eq!(configuration.thread_counts, [48]);
    assert!(configuration.notices.iter().all(|notice| notice.contains("means nothing here")));
}
