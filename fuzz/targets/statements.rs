//! Statements in a whole node: whatever a session executes, the node goes on. Each line is one statement.
//! Statements that would wait for long, or end the process, are left out.
#![no_main]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use junctor_client::{Options, block_on};
use junctor_node::NodeConfig;
use junctor_node::start::{RunningServer, start};
use libfuzzer_sys::fuzz_target;

static SERVER: Mutex<Option<RunningServer>> = Mutex::new(None);
static RUNS: AtomicU32 = AtomicU32::new(0);

const PREPARE: &[&str] = &[
    "CREATE DATABASE IF NOT EXISTS f",
    "USE f",
    "SET max_execution_time = 200, innodb_lock_wait_timeout = 1, lock_wait_timeout = 1",
    "CREATE TABLE IF NOT EXISTS a (id INT PRIMARY KEY, n INT, s VARCHAR(20), d DECIMAL(10,2), t DATETIME, j JSON, KEY (n))",
    "CREATE TABLE IF NOT EXISTS b (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, u VARCHAR(10) UNIQUE, e ENUM('x','y'), f DOUBLE)",
    "INSERT IGNORE INTO a VALUES (1, 10, 'one', 1.5, '2020-01-01', '{}'), (2, NULL, 'two', -2, NULL, NULL), (3, 30, '', 0, '1999-12-31 23:59:59', '[1,2]')",
    "INSERT IGNORE INTO b (id, a, u, e, f) VALUES (1, 1, 'k', 'x', 1e10), (2, 2, NULL, 'y', NULL)",
];

async fn run(lines: &str) {
    let guard = SERVER.lock().unwrap_or_else(|error| error.into_inner());
    let Some(server) = guard.as_ref() else { return };
    let Ok(connection) = server.connector().open(&Options::new("root")).await else { return };
    // A cluster of statements may have dropped the tables.
    if RUNS.fetch_add(1, Ordering::Relaxed) % 64 == 0 {
        let _ = connection.query("DROP DATABASE IF EXISTS f", &[]).await;
    }
    for statement in PREPARE {
        let _ = connection.query(statement, &[]).await;
    }
    for line in lines.lines().take(8) {
        let upper = line.to_ascii_uppercase();
        if [
            "SLEEP",
            "SHUTDOWN",
            "RESTART",
            "BENCHMARK",
            "GET_LOCK",
            "WAIT_",
            "TIMEOUT",
            "SET",
            "DATABASE",
            "SCHEMA",
            "OUTFILE",
            "INFILE",
        ]
        .iter()
        .any(|word| upper.contains(word))
        {
            continue;
        }
        let _ = connection.query(line, &[]).await;
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    {
        let mut server = SERVER.lock().unwrap_or_else(|error| error.into_inner());
        if server.is_none() {
            let config = NodeConfig {
                listens: false,
                thread_config: Some("recv={count=1},ldm={count=0},main={count=0},io={count=0}".into()),
                total_memory_bytes: Some(256 << 20),
                cpu_binding: false,
                ..NodeConfig::default()
            };
            *server = Some(start(&config).expect("a node"));
        }
    }
    block_on(run(text));
});
