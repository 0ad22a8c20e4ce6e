//! Runs bank transfers, and kills the server at random moments. Afterwards, every acknowledged transfer must
//! be there, and no transfer may be there in part.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};

use junctor_bench::mysql::Connection;

use super::server::{Server, folder, rows, run};

const ACCOUNTS: u64 = 40;
const CLIENTS: u64 = 6;
const BALANCE: i64 = 1000;
/// The environment variable with the number of kills. `make kill` sets it.
const KILLS: &str = "JUNCTOR_KILLS";
const KILLS_DEFAULT: u64 = 6;

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
    // The ordered index and the rows agree.
    let by_index = rows(&mut session, "SELECT COUNT(*) FROM bank.transfer WHERE amount >= 0");
    assert_eq!(by_index, [[found.len().to_string()]], "round {round}: an index lacks rows");
}

#[test]
fn transfers_that_were_acknowledged_survive_kills_at_random_moments() {
    let kills = std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS_DEFAULT);
    let folder = folder("kill");
    let mut server = Server::start(&folder);
    let mut session = server.session();
    run(
        &mut session,
        &[
            "CREATE DATABASE bank",
            "CREATE TABLE bank.account (id INT PRIMARY KEY, balance BIGINT)",
            "CREATE TABLE bank.transfer (id BIGINT PRIMARY KEY, source INT, target INT, amount INT, KEY (amount))",
        ],
    );
    for id in 0..ACCOUNTS {
        run(&mut session, &[&format!("INSERT INTO bank.account VALUES ({id}, {BALANCE})")]);
    }
    let numbers = AtomicU64::new(1);
    let mut acknowledged = BTreeSet::new();
    for round in 0..kills {
        let address = server.address;
        let (send, receive) = mpsc::channel();
        let done = std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (numbers, send) = (&numbers, send.clone());
                scope.spawn(move || transfer(address, numbers, client, &send));
            }
            drop(send);
            // Kill the server after a number of acknowledged transfers. A clock does not decide the moment.
            let before_kill = 1 + mix(round) % 200;
            let mut done: Vec<u64> = receive.iter().take(before_kill as usize).collect();
            server.kill();
            done.extend(receive.iter());
            done
        });
        acknowledged.extend(done);
        server = Server::start(&folder);
        check(&server, &acknowledged, round);
    }
    assert!(!acknowledged.is_empty(), "some transfers were acknowledged");
    println!("{kills} kills, {} acknowledged transfers", acknowledged.len());
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}
