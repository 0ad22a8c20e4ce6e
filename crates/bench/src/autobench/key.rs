//! All known keys of an `autobench.conf`: the supported keys, and the keys of other benchmark kits that have
//! no meaning here.

use std::fmt::Write;

/// A supported key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Value that applies if the file omits the key or leaves its value empty.
    pub default: &'static str,
    /// Explanation for users.
    pub meaning: &'static str,
}

const fn key(name: &'static str, default: &'static str, meaning: &'static str) -> Key {
    Key { name, default, meaning }
}

/// The supported keys, in the order of the generated page.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key("BENCHMARK_TO_RUN", "sysbench", "sysbench, dbt2, ycsb or thread_pool."),
    key("TEST_DESCRIPTION", "", "First line of every .res file."),
    key("DATA_DIR_BASE", "", "Folder for the files of the started node, in a subfolder that is deleted at the end; relative to the directory of the file. Empty: no node is started, and servers run at SERVER_HOST and SERVER_PORT."),
    key("SERVER_HOST", "127.0.0.1", "List: hosts of the MySQL servers. A started node listens there."),
    key("SERVER_PORT", "3306", "List: ports of the hosts; a single one applies to all. 0 takes a free port for a started node."),
    key("MYSQL_USER", "root", "User of the clients; users other than root need a password."),
    key("MYSQL_PASSWORD", "", "Password of MYSQL_USER."),
    key("ENGINE", "ndb", "ENGINE of the tables."),
    key("MAX_CONNECTIONS", "1000", "Maximum number of connections of the started node."),
    key("TRANSACTION_ISOLATION", "", "Isolation level of the sessions, such as READ-COMMITTED. Empty: the server's."),
    key("NDB_AUTOMATIC_THREAD_CONFIG", "yes", "yes places threads by the number of CPUs, no by NDB_THREAD_CONFIG."),
    key("NDB_NUM_CPUS", "", "Maximum number of CPUs for the automatic placement."),
    key("NDB_THREAD_CONFIG", "", "ThreadConfig of the started node, used with NDB_AUTOMATIC_THREAD_CONFIG=\"no\"."),
    key("NDB_TOTAL_MEMORY", "", "TotalMemory of the started node, such as 4G."),
    key("NDB_PARTITIONS_PER_NODE", "0", "PartitionsPerNode; 0 is the server's default."),
    key("NDB_MAX_NO_OF_CONCURRENT_TRANSACTIONS", "", "MaxNoOfConcurrentTransactions; a larger value is reduced to the server's maximum."),
    key("NDB_DEADLOCK_TIMEOUT", "", "Maximum wait for a row lock in milliseconds, rounded up to seconds. Deadlocks are found immediately."),
    key("NDB_AUTOINCREMENT_OPTION", "", "Number of AUTO_INCREMENT values that a thread reserves at a time."),
    key("NDB_DISKLESS", "no", "no: each commit is on disk before it is acknowledged, in DATA_DIR_BASE. yes: data is in memory only (Diskless)."),
    key("NDB_SPIN_METHOD", "", "SpinMethod, where the server has that setting."),
    key("NDB_SCHEDULER_SPIN_TIMER", "", "SchedulerSpinTimer in microseconds, where the server has that setting."),
    key("NDB_ENABLE_ADAPTIVE_SPINNING", "", "EnableAdaptiveSpinning, where the server has that setting."),
    key("NDB_ALLOWED_SPIN_OVERHEAD", "", "AllowedSpinOverhead in per cent, where the server has that setting."),
    key("NDB_SPINTIME_PER_CALL", "", "SpintimePerCall in nanoseconds, where the server has that setting."),
    key("NDB_MAX_SEND_DELAY", "", "MaxSendDelay in microseconds, where the server has that setting."),
    key("TASKSET", "", "taskset or numactl: binds the server and sysbench to CPUs. If numactl is not installed, taskset is used instead."),
    key("SERVER_CPUS", "", "CPUs of the server, such as 8-27,40-59. Threads that NDB_THREAD_CONFIG binds stay on its CPUs."),
    key("SERVER_BIND", "", "NUMA nodes of the server, for numactl."),
    key("SERVER_MEM_POLICY", "interleaved", "interleaved or local, for numactl."),
    key("NDBD_CPUS", "", "More CPUs of the server: data nodes and SQL are one process here."),
    key("BENCHMARK_CPUS", "", "List: CPUs of sysbench; one entry for all instances, or one for each."),
    key("BENCHMARK_BIND", "", "List: NUMA nodes of sysbench, for numactl."),
    key("BENCHMARK_MEM_POLICY", "local", "interleaved or local, for numactl."),
    key("BENCHMARK_SERVERS", "localhost", "Where sysbench runs: this machine."),
    key("THREAD_COUNTS_TO_RUN", "1", "List: threads of each sysbench instance, one run each (sysbench and ycsb); connections of thread_pool."),
    key("MAX_TIME", "60", "Seconds per run (sysbench, ycsb and thread_pool)."),
    key("NUM_TEST_RUNS", "1", "Rounds of all runs; results are means over them."),
    key("BETWEEN_RUNS", "1", "Seconds of pause before each run."),
    key("NUM_CREATE_DB_ATTEMPTS", "40", "Maximum number of attempts to reach a server."),
    key("BETWEEN_CREATE_DB_TEST", "5", "Seconds between two attempts."),
    key("SYSBENCH_INSTANCES", "1", "Concurrent sysbench programs, each with tables of its own, assigned to the servers in turn."),
    key("SYSBENCH_TEST", "oltp_rw", "oltp_rw; oltp_ro: no writes; oltp_ro_ps: one point select; oltp_rw_write_intensive: 10 index updates; oltp_rw_less_read: 1 point select, ranges of 5 rows; oltp_complex_write: no reads; oltp_nontrx: SB_NONTRX_MODE."),
    key("SYSBENCH_DB", "sbtest", "Database; several instances append _0, _1 and so on."),
    key("SYSBENCH_ROWS", "1000000", "Rows per table."),
    key("SB_NUM_TABLES", "1", "Tables per instance."),
    key("SB_POINT_SELECTS", "10", "Point selects per transaction (oltp_rw, oltp_ro)."),
    key("SB_USE_IN_STATEMENT", "0", "Keys of a point select with an IN list; 0 uses an equality (oltp_rw, oltp_ro)."),
    key("SB_RANGE_SIZE", "100", "Rows per range (oltp_rw, oltp_ro)."),
    key("SB_SIMPLE_RANGES", "1", "Plain ranges per transaction (oltp_rw, oltp_ro)."),
    key("SB_SUM_RANGES", "1", "SUM ranges per transaction (oltp_rw, oltp_ro)."),
    key("SB_ORDER_RANGES", "1", "ORDER BY ranges per transaction (oltp_rw, oltp_ro)."),
    key("SB_DISTINCT_RANGES", "1", "DISTINCT ranges per transaction (oltp_rw, oltp_ro)."),
    key("SB_USE_FILTER", "no", "Ranges read SB_RANGE_SIZE rows and return one."),
    key("SB_USE_SECONDARY_INDEX", "no", "id has a secondary index instead of the primary key."),
    key("SB_USE_TRX", "", "yes puts BEGIN and COMMIT around oltp_ro; oltp_ro_ps and oltp_nontrx have none."),
    key("SB_USE_AUTO_INC", "no", "Row ids come from AUTO_INCREMENT."),
    key("SB_NUM_PARTITIONS", "0", "Partitions by key; 0 for the default of the server."),
    key("SB_DIST_TYPE", "uniform", "uniform, gaussian, special or pareto."),
    key("SB_AVOID_DEADLOCKS", "yes", "Writes of a transaction are ordered by key."),
    key("SB_NONTRX_MODE", "insert", "select, update_key, update_nokey, insert or delete."),
    key("SB_MAX_REQUESTS", "0", "Events after which a run ends; 0 for no limit."),
    key("SB_TX_RATE", "", "Transactions to begin per second; empty for no limit."),
    key("SB_VERBOSITY", "3", "Verbosity of sysbench, 0 to 5."),
    key("SB_USE_PREPARED", "yes", "Junctor only: no sends statements as text."),
    key("SB_USE_LEFT_OUTER_JOIN_STAR", "no", "yes is refused: there are no joins."),
    key("SB_USE_LEFT_OUTER_JOIN_FK", "no", "yes is refused: there are no joins."),
    key("SB_USE_MYSQL_HANDLER", "no", "yes is refused: there is no HANDLER."),
    key("SB_USE_RANGE", "no", "yes is refused: there are no RANGE partitions."),
    key("NDB_USE_DISK_DATA", "no", "yes is refused: there are no columns on disk."),
    key("DBT2_WAREHOUSES", "10", "Number of loaded warehouses."),
    key("DBT2_RUN_WAREHOUSES", "1;2;4", "List: warehouses of each run; a file dbt2_run_1.conf in the same directory overrides this key."),
    key("DBT2_TERMINALS", "1", "Threads per warehouse."),
    key("DBT2_NUM_SERVERS", "1", "sysbench programs that share the warehouses, assigned to the servers in turn."),
    key("DBT2_TIME", "90", "Seconds per run."),
    key("DBT2_LOADERS", "4", "Loading threads."),
    key("DBT2_PARTITION_TYPE", "KEY", "KEY; other types are refused."),
    key("DBT2_NUM_PARTITIONS", "", "Partitions by warehouse; empty for the default of the server."),
    key("DBT2_PK_USING_HASH", "on", "on or off: primary keys that are not read in order have only a hash index."),
    key("DBT2_INTERMEDIATE_TIMER_RESOLUTION", "3", "Seconds between lines of a .res file."),
    key("DBT2_ITEMS", "100000", "Junctor only: items; fewer make a smaller database than TPC-C's."),
    key("DBT2_CUSTOMERS", "3000", "Junctor only: customers per district."),
    key("YCSB_WORKLOADS", "A;B;C;D;E;F", "Junctor only, list: the workloads, in this order."),
    key("YCSB_RECORDS", "1000000", "Junctor only: loaded records."),
    key("YCSB_DISTRIBUTION", "", "Junctor only: zipfian, latest or uniform instead of the distribution of the workload."),
    key("YCSB_FIELDS", "10", "Junctor only: fields per record."),
    key("YCSB_FIELD_BYTES", "100", "Junctor only: bytes per field."),
    key("THREAD_POOL_WORKS", "update-non-index;update-transaction;read-write", "Junctor only, list: operations of thread_pool."),
    key("THREAD_POOL_WARM_UP", "3", "Junctor only: seconds before each measurement of thread_pool."),
    key("THREAD_POOL_MARIADB", "yes", "Junctor only: no leaves MariaDB's pool-of-threads out."),
];

/// Known keys without a meaning here, grouped by the reason that the user is shown. A star matches any
/// ending.
#[rustfmt::skip]
pub const MEANINGLESS: &[(&str, &[&str])] = &[
    ("nothing is unpacked or built: the server is this binary, and sysbench is installed", &[
        "USE_RONDB", "USE_MYSQL", "USE_BINARY_MYSQL_TARBALL", "TARBALL_DIR", "MYSQL_BIN_INSTALL_DIR",
        "REMOTE_BIN_INSTALL_DIR", "REMOTE_SRC_INSTALL_DIR", "SRC_INSTALL_DIR", "MYSQL_VERSION", "MYSQL_SERVER_VERSION",
        "MYSQL_NDB_VERSION", "CLIENT_MYSQL_VERSION", "DBT2_VERSION", "SYSBENCH_VERSION", "MYSQL_BASE", "MYSQL_SERVER_BASE",
        "MYSQL_NDB_BASE", "BUILD_REMOTE", "BOOST_VERSION", "CMAKE_GENERATOR", "COMPILER", "COMPILER_FLAG",
        "COMPILE_SIZE_FLAG", "DEBUG_FLAG", "DEBUG_INFO", "WITH_DEBUG", "PACKAGE", "PERFSCHEMA_FLAG", "WITH_PERFSCHEMA_FLAG",
        "WITH_NDB_TEST_FLAG", "WITH_FAST_MUTEXES_FLAG", "ERROR_INSERT_FLAG", "FAST_FLAG", "MSO_FLAG", "STATIC_LINKING_FLAG",
        "LINK_TIME_OPTIMIZER", "LINK_TIME_OPTIMIZER_FLAG", "FEEDBACK_COMPILATION", "FEEDBACK_FLAG", "FEEDBACK_PREPARED",
        "USE_FEEDBACK_PATH", "USE_FAST_MYSQL", "USE_DBT2_BUILD", "SB_USE_FAST_GCC", "SB_SYSBENCH_64BIT_BUILD",
        "USE_MALLOC_LIB", "MALLOC_LIB", "PREPARE_JEMALLOC", "WINDOWS_INSTALL", "WINDOWS_REMOTE", "USE_DRIZZLE",
        "DRIZZLE_VERSION", "LIBDRIZZLE_VERSION", "CORE_FILE_USED", "CORE_FILE_OPTIONS",
    ]),
    ("everything runs on this machine, as this user, outside of containers", &[
        "SSH_PORT", "SSH_USER", "USE_DOCKER", "USE_SUDO_DOCKER", "DOCKER_NAME", "USE_SELINUX", "RUN_AS_ROOT", "CLUSTER_HOME",
        "USE_INFINIBAND", "INFINIBAND_LIB", "USE_SUPERSOCKET", "SUPERSOCKET_LIB", "TMP_BASE", "FIRST_CLIENT_PORT",
    ]),
    ("one node serves, without management servers and replicas", &[
        "NDB_MGMD_NODES", "NDB_MGMD_PORT", "NDBD_NODES", "NDB_EXTRA_CONNECTIONS", "NDB_MULTI_CONNECTION", "NDB_REPLICAS",
        "NDB_READ_BACKUP", "NDB_FULLY_REPLICATED", "NDB_DATA_NODE_NEIGHBOUR", "NDB_SERVER_PORT", "NDB_START_MAX_WAIT",
        "NDB_MAX_START_WAIT", "NDB_RESTART_TEST", "NDB_RESTART_TEST_INITIAL", "NDB_RESTART_NODE*",
        "NDB_NODE_GROUP_TRANSPORTERS", "NDB_USE_ONLY_IPV4", "NUM_MYSQL_SERVERS", "SERVER_DOMAIN_ID", "NDBD_DOMAIN_ID",
        "API_DOMAIN_ID", "SLAVE_*", "NUM_CHANGE_MASTER_ATTEMPTS", "BETWEEN_CHANGE_MASTER_TEST",
    ]),
    ("SQL and data are one process: nothing is sent between them, and conditions always run at the rows", &[
        "NDB_FORCE_SEND", "NDB_SEND_BUFFER", "NDB_SEND_BUFFER_MEMORY", "NDB_RECEIVE_BUFFER_MEMORY",
        "NDB_TOTAL_SEND_BUFFER_MEMORY", "NDB_LONG_MESSAGE_BUFFER", "NDB_SHM_*", "NDB_TCP_*", "USE_SHM",
        "NDB_RECV_THREAD_ACTIVATION_THRESHOLD", "NDB_RECV_THREAD_CPU_MASK", "ENGINE_CONDITION_PUSHDOWN_OPTION",
        "NDB_USE_EXACT_COUNT_OPTION", "NDB_USE_TRANSACTIONS_OPTION",
    ]),
    ("memory is divided by the server itself; NDB_TOTAL_MEMORY is all of it", &[
        "NDB_DATA_MEMORY", "NDB_INDEX_MEMORY", "NDB_SHARED_GLOBAL_MEMORY", "NDB_TRANSACTION_MEMORY",
        "NDB_MAX_NO_OF_CONCURRENT_OPERATIONS", "NDB_MAX_NO_OF_CONCURRENT_SCANS", "NDB_MAX_NO_OF_LOCAL_SCANS",
        "NDB_MAX_ATTRIBUTES", "NDB_MAX_TABLES", "NDB_MAX_TRIGGERS", "NDB_MAX_ORDERED_INDEXES",
        "NDB_MAX_UNIQUE_HASH_INDEXES", "NDB_LOCK_PAGES_IN_MAIN_MEMORY", "NDB_NUMA", "USE_LARGE_PAGES", "LOCK_ALL",
    ]),
    ("redo and checkpoints have no such setting", &[
        "NDB_FRAGMENT_LOG_FILE_SIZE", "NDB_NO_OF_FRAGMENT_LOG_FILES", "NDB_NO_OF_FRAGMENT_LOG_PARTS", "NDB_REDO_BUFFER",
        "NDB_MIN_DISK_WRITE_SPEED", "NDB_MAX_DISK_WRITE_SPEED*", "MIN_DISK_WRITE_SPEED", "MAX_DISK_WRITE_SPEED*",
        "DISK_CHECKPOINT_SPEED", "NDB_RECOVERY_WORK", "NDB_INSERT_RECOVERY_WORK", "NDB_ENABLE_REDO_CONTROL",
        "NDB_TIME_BETWEEN_GLOBAL_CHECKPOINTS", "NDB_TIME_BETWEEN_LOCAL_CHECKPOINTS",
        "NDB_COMPRESSED_BACKUP", "NDB_COMPRESSED_LCP", "USE_NDB_O_DIRECT", "NDB_DISK_*", "NDB_TABLESPACE_SIZE",
        "NDB_EXTENT_SIZE", "NDB_UNDO_*", "NDB_BACKUP_*",
    ]),
    ("threads are placed by NDB_THREAD_CONFIG or by the number of CPUs", &[
        "NDB_MAX_NO_OF_EXECUTION_THREADS", "NDB_COLOCATED_LDM_AND_TC", "NDB_EXECUTE_CPU", "NDB_MAINT_CPU",
        "NDB_REALTIME_SCHEDULER", "NDB_SCHEDULER_RESPONSIVENESS", "NDB_SCHED_SCAN_PRIORITY", "USE_NDBMTD",
        "NDB_TIME_BETWEEN_WATCHDOG_CHECK_INITIAL", "THREADPOOL_*", "THREAD_REGISTER_CONFIG", "NDBD_BIND",
        "NDBD_MEM_POLICY", "BENCH_TASKSET",
    ]),
    ("tables have no such option", &[
        "NDB_DEFAULT_COLUMN_FORMAT", "NDB_USE_ROW_CHECKSUM", "NDB_INDEX_STAT_*", "SB_PARTITION_BALANCE", "TRX_ENGINE",
    ]),
    ("this server has no such setting of mysqld", &[
        "INNODB_*", "KEY_BUFFER_SIZE", "MAX_HEAP_TABLE_SIZE", "TMP_TABLE_SIZE", "MAX_TMP_TABLES", "SORT_BUFFER_SIZE",
        "JOIN_BUFFER_SIZE", "TABLE_CACHE_SIZE", "TABLE_CACHE_INSTANCES", "META_DATA_CACHE_SIZE", "GRANT_TABLE_OPTION",
        "CHARACTER_SET_SERVER", "COLLATION_SERVER", "BINLOG*", "SYNC_BINLOG", "RELAY_LOG", "GENERAL_QUERY_LOG",
        "SLOW_QUERY_LOG", "OPEN_FILES_LIMIT", "STACKSIZE",
    ]),
    ("the server reports when it is ready and when it has stopped, and there is no initial run", &[
        "AFTER_SERVER_START", "AFTER_SERVER_STOP", "WAIT_STOP", "AFTER_INITIAL_RUN",
    ]),
    ("SYSBENCH_TEST names the test", &["RUN_RW", "RUN_RO", "RUN_RW_WRITE_INT", "RUN_RW_LESS_READ", "RUN_WRITE"]),
    ("sysbench 1.0 draws the times of a rate by itself", &["SB_TX_JITTER"]),
    ("results are written into the directory of the file", &["SYSBENCH_RESULTS"]),
    ("rows are generated while they are loaded", &["DBT2_DATA_DIR", "DBT2_CREATE_LOAD_FILES", "DBT2_GENERATE_FILES"]),
    ("warehouses are divided evenly, in one way", &[
        "DBT2_SCI", "DBT2_SPREAD", "DBT2_USE_ALTERED_MODE", "USE_MYISAM_FOR_ITEM", "DBT2_PARTITION_FLAG",
        "DBT2_PK_USING_HASH_FLAG",
    ]),
    ("this benchmark is not supported", &["DBT3_*", "FLEX_ASYNCH_*"]),
];

/// The reason why a known key has no meaning here; `None` for other keys.
pub fn why_meaningless(name: &str) -> Option<&'static str> {
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    MEANINGLESS.iter().find(|(_, patterns)| patterns.iter().any(|pattern| matches(pattern))).map(|(reason, _)| *reason)
}

/// The supported key with this name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Returns the most similar known name, if one is similar enough to be suggested.
pub fn nearest(name: &str) -> Option<&'static str> {
    let meaningless = MEANINGLESS.iter().flat_map(|(_, names)| names.iter().copied());
    let known = KEYS.iter().map(|key| key.name).chain(meaningless.filter(|name| !name.ends_with('*')));
    let upper = name.to_ascii_uppercase();
    let (distance, nearest) = known.map(|known| (distance(&upper, known), known)).min()?;
    (distance <= 2 + name.len() / 8).then_some(nearest)
}

/// Levenshtein distance: the number of letters to insert, delete or replace.
fn distance(left: &str, right: &str) -> usize {
    let right = right.as_bytes();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, l) in left.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, r) in right.iter().enumerate() {
            let changed = diagonal + usize::from(l != *r);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

/// Generates the page that lists all keys, in Markdown.
pub fn keys_page() -> String {
    let mut page = String::from(
        "# Keys of autobench.conf\n\nPrinted from the table in `crates/bench/src/autobench/key.rs`; do not edit. `docs/autobench.md` \
         describes how to use a file.\nLists are separated by `;`. An empty value is the default.\n\n| key | default | meaning |\n|---|---|---|\n",
    );
    for Key { name, default, meaning } in KEYS {
        let default = if default.is_empty() { "-".into() } else { format!("`{default}`") };
        let _ = writeln!(page, "| `{name}` | {default} | {meaning} |");
    }
    page.push_str("\n## Known keys without a meaning here\n\nThey are reported with the reason, and the run continues.\n\n| reason | keys |\n|---|---|\n");
    for (reason, names) in MEANINGLESS {
        let _ = writeln!(page, "| {reason} | {} |", names.join(", "));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_listed_once() {
        let mut names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        names.extend(MEANINGLESS.iter().flat_map(|(_, names)| names.iter().copied()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for key in KEYS {
            assert_eq!(why_meaningless(key.name), None, "{}", key.name);
        }
    }

    #[test]
    fn the_message_about_a_misspelt_key_suggests_a_similar_one() {
        assert_eq!(nearest("SB_POINT_SELECT"), Some("SB_POINT_SELECTS"));
        assert_eq!(nearest("max_time"), Some("MAX_TIME"));
        assert_eq!(nearest("NDB_THREADCONFIG"), Some("NDB_THREAD_CONFIG"));
        assert_eq!(nearest("TARBAL_DIR"), Some("TARBALL_DIR"));
        assert_eq!(nearest("COMPLETELY_DIFFERENT"), None);
    }

    #[test]
    fn a_star_matches_every_suffix() {
        assert!(why_meaningless("INNODB_IO_CAPACITY").is_some());
        assert!(why_meaningless("NDB_RESTART_NODE8").is_some());
        assert_eq!(why_meaningless("INNODB"), None);
    }
}
