//! Runs bank transfers and sysbench, and kills the server at random moments. Afterwards, every acknowledged
//! transfer must be there, no transfer may be there in part, and indexes and rows must agree.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};

use junctor_bench::consistency::check_table;
use junctor_bench::mysql::Connection;

use super::server::{Server, command_with_settings, folder, rows, run};

const ACCOUNTS: u64 = 40;
const CLIENTS: u64 = 6;
const BALANCE: i64 = 1000;
/// The environment variable with the number of kills. `make kill` sets it.
const KILLS: &str = "JUNCTOR_KILLS";
const KILLS_DEFAULT: u64 = 6;
/// A checkpoint for each 64 KiB of log, and small files.
const SETTINGS: &str = "FragmentLogFileSize = \"1M\"\nTimeBetweenLocalCheckpoints = 14\n";
const SYSBENCH_TABLES: u64 = 2;
const SYSBENCH_ROWS: u64 = 2000;

/// A generator of well-mixed numbers from a counter (splitmix64).
fn mix(seed: u64) -> u64 {
    let mut word = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}

/// Transfers money until the server is gone. Sends the number of each acknowledged transfer.
fn transfer(address: SocketAddr, numbers: &AtomicU64, client: u64, acknowledged: &Sender<u64>) {
    let Ok(mut session) = Connection::open(address, "bank") else { return };
    loop {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let word = mix(number << 8 | client);
        let (from, amount) = (word % ACCOUNTS, word >> 32 & 15);
        let to = (from + 1 + (word >> 16) % (ACCOUNTS - 1)) % ACCOUNTS;
        let statements = [
            "START TRANSACTION".to_owned(),
            format!("UPDATE account SET balance = balance - {amount} WHERE id = {from}"),
            format!("UPDATE account SET balance = balance + {amount} WHERE id = {to}"),
            format!("INSERT INTO transfer VALUES ({number}, {from}, {to}, {amount})"),
            "COMMIT".to_owned(),
        ];
        let mut is_committed = true;
        for statement in &statements {
            match session.query(statement) {
                Ok(_) => {}
                // A deadlock has rolled the transfer back.
                Err(error) if error.errno() == 1213 => {
                    is_committed = false;
                    break;
                }
                // The server is gone. Whether the last statement took effect is unknown.
                Err(_) => return,
            }
        }
        if is_committed && acknowledged.send(number).is_err() {
            return;
        }
    }
}

/// Starts `oltp_read_write`, or another command of it. `None` if sysbench is missing.
fn sysbench(address: SocketAddr, command: &str) -> Option<Child> {
    let started = Command::new("sysbench")
        .args(["oltp_read_write", "--db-driver=mysql", "--mysql-user=root", "--mysql-password=", "--mysql-db=bench"])
        .args([format!("--mysql-host={}", address.ip()), format!("--mysql-port={}", address.port())])
        .args([format!("--tables={SYSBENCH_TABLES}"), format!("--table-size={SYSBENCH_ROWS}")])
        .args(["--threads=3", "--time=600", "--mysql-ignore-errors=1213,1205", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    assert!(started.is_ok() || std::env::var_os(KILLS).is_none(), "sysbench is missing: sh tests/install-tools.sh");
    started.ok()
}

/// Checks that sysbench has met no error while the server runs.
fn require_running(bench: &mut Child) {
    if bench.try_wait().expect("sysbench is a child").is_some() {
        let mut output = String::new();
        for pipe in [
            bench.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read>),
            bench.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read>),
        ] {
            pipe.expect("a pipe").read_to_string(&mut output).expect("text");
        }
        panic!("sysbench ended before the server was killed: {output}");
    }
}

/// Checks the tables of sysbench. Each of its transactions deletes a row and inserts one with the same key.
/// Whole transactions therefore keep every key.
fn check_sysbench(server: &Server, round: u64) {
    let mut session = Connection::open(server.address, "bench").expect("root may log in");
    for table in 1..=SYSBENCH_TABLES {
        let count = check_table(&mut session, &format!("sbtest{table}"), Some(&format!("k_{table}")), round);
        let count = count.unwrap_or_else(|difference| panic!("round {round}: {difference}"));
        assert_eq!(count, SYSBENCH_ROWS, "round {round}: a transaction of sysbench is there in part");
        let ids = rows(&mut session, &format!("SELECT MIN(id), MAX(id) FROM sbtest{table}"));
        assert_eq!(ids, [["1".to_owned(), SYSBENCH_ROWS.to_string()]], "round {round}: sbtest{table}");
    }
}

/// Checks that the balances agree with the transfers, and that no acknowledged transfer is missing.
fn check(server: &Server, acknowledged: &BTreeSet<u64>, round: u64) {
    let mut session = server.session();
    let number = |text: &String| text.parse::<i64>().expect("a number");
    let mut expected: BTreeMap<i64, i64> = (0..ACCOUNTS as i64).map(|id| (id, BALANCE)).collect();
    let mut found = BTreeSet::new();
    for row in rows(&mut session, "SELECT id, source, target, amount FROM bank.transfer") {
        let amount = number(&row[3]);
        *expected.entry(number(&row[1])).or_default() -= amount;
        *expected.entry(number(&row[2])).or_default() += amount;
        found.insert(number(&row[0]) as u64);
    }
    let missing: Vec<&u64> = acknowledged.difference(&found).collect();
    assert!(missing.is_empty(), "round {round}: acknowledged transfers are lost: {missing:?}");
    let balances = rows(&mut session, "SELECT id, balance FROM bank.account");
    let balances: BTreeMap<i64, i64> = balances.iter().map(|row| (number(&row[0]), number(&row[1]))).collect();
    assert_eq!(balances, expected, "round {round}: a transfer is there in part");
    // The ordered index, the unique keys and the rows agree.
    let figures = "COUNT(*), SUM(id), SUM(source), SUM(target), SUM(amount), SUM(CRC32(CONCAT(id, ' ', amount)))";
    let by_scan = rows(&mut session, &format!("SELECT {figures} FROM bank.transfer"));
    for (index, condition) in [("PRIMARY", "id >= 0"), ("amount", "amount >= 0")] {
        let statement = format!("SELECT {figures} FROM bank.transfer FORCE INDEX ({index}) WHERE {condition}");
        assert_eq!(rows(&mut session, &statement), by_scan, "round {round}: index {index} and the rows differ");
    }
    let codes: Vec<String> = (0..ACCOUNTS).map(|id| (id + 1000).to_string()).collect();
    let by_code = format!("SELECT SUM(balance) FROM bank.account WHERE code IN ({})", codes.join(","));
    let sum = (ACCOUNTS as i64 * BALANCE).to_string();
    assert_eq!(rows(&mut session, &by_code), [[sum]], "round {round}: a unique key lacks rows");
}

#[test]
fn acknowledged_transactions_survive_kills_at_random_moments() {
    let kills = std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS_DEFAULT);
    let folder = folder("kill");
    let start = || {
        Server::spawn(command_with_settings(&folder, SETTINGS))
            .unwrap_or_else(|ended| panic!("the server did not start: {ended:?}"))
    };
    let mut server = start();
    let mut session = server.session();
    run(
        &mut session,
        &[
            "CREATE DATABASE bank",
            "CREATE TABLE bank.account (id INT PRIMARY KEY, balance BIGINT, code INT UNIQUE)",
            "CREATE DATABASE bench",
            "CREATE TABLE bank.transfer (id BIGINT PRIMARY KEY, source INT, target INT, amount INT, KEY (amount))",
        ],
    );
    for id in 0..ACCOUNTS {
        run(&mut session, &[&format!("INSERT INTO bank.account VALUES ({id}, {BALANCE}, {})", id + 1000)]);
    }
    let prepared = sysbench(server.address, "prepare");
    let has_sysbench = prepared.is_some();
    if let Some(output) = prepared.map(|prepare| prepare.wait_with_output().expect("sysbench is a child")) {
        assert!(output.status.success(), "sysbench prepare: {output:?}");
    }
    let numbers = AtomicU64::new(1);
    let mut acknowledged = BTreeSet::new();
    for round in 0..kills {
        let address = server.address;
        let (send, receive) = mpsc::channel();
        let mut bench = has_sysbench.then(|| sysbench(address, "run")).flatten();
        let done = std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (numbers, send) = (&numbers, send.clone());
                scope.spawn(move || transfer(address, numbers, client, &send));
            }
            drop(send);
            // Kill the server after a number of acknowledged transfers. A clock does not decide the moment.
            let before_kill = 1 + mix(round) % 200;
            let mut done: Vec<u64> = receive.iter().take(before_kill as usize).collect();
            if let Some(bench) = &mut bench {
                require_running(bench);
            }
            server.kill();
            done.extend(receive.iter());
            done
        });
        if let Some(mut bench) = bench {
            // sysbench ends soon, because the server is gone.
            bench.wait().expect("sysbench is a child");
        }
        acknowledged.extend(done);
        server = start();
        check(&server, &acknowledged, round);
        if has_sysbench {
            check_sysbench(&server, round);
        }
    }
    assert!(!acknowledged.is_empty(), "some transfers were acknowledged");
    println!("{kills} kills, {} acknowledged transfers", acknowledged.len());
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}
