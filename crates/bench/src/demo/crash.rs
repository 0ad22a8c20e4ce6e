//! The part of the demonstration that kills a durable server in the middle of bank transfers.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::DemoOptions;
use crate::mysql::Connection;
use crate::mysql::value::Value;
use crate::process::{JunctorOptions, Server, TemporaryFolder, start_junctor};
use crate::{Failure, Outcome};

const CLIENTS: u64 = 8;
const ACCOUNTS: u64 = 1000;
const BALANCE: u64 = 1000;
/// Time from the first transfer to the kill.
const RUN_TIME: Duration = Duration::from_secs(3);

/// Kills the server while clients transfer money, starts it again and counts what is missing.
///
/// # Errors
/// The node does not start, or an acknowledged transfer or some money is lost.
pub(super) fn run(options: &DemoOptions) -> Outcome<()> {
    let folder = TemporaryFolder::new("junctor-crash")?;
    let junctor = JunctorOptions {
        binary: options.junctor.clone(),
        is_durable: true,
        data_folder: Some(folder.path().join("data")),
        ..JunctorOptions::default()
    };
    let server = start_junctor(&junctor)?;
    server.execute(&[
        "CREATE DATABASE bank",
        "CREATE TABLE bank.account (id INT PRIMARY KEY, balance BIGINT NOT NULL)",
        "CREATE TABLE bank.transfer (id BIGINT PRIMARY KEY, source INT, target INT, amount INT)",
    ])?;
    let accounts: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {BALANCE})")).collect();
    server.execute(&[&format!("INSERT INTO bank.account VALUES {}", accounts.join(", "))])?;
    println!(
        "{CLIENTS} clients transfer money between {ACCOUNTS} accounts. Each commit is on disk before it is acknowledged."
    );
    let acknowledged = transfer_until_killed(server)?;
    println!("kill -9 after {} s: {} transfers were acknowledged.", RUN_TIME.as_secs(), acknowledged.len());

    let begin = Instant::now();
    let server = start_junctor(&junctor)?;
    println!("The server has started again, {:.1} s later.", begin.elapsed().as_secs_f64());
    let mut connection = server.connect()?;
    let found: BTreeSet<u64> = numbers(&mut connection, "SELECT id FROM bank.transfer")?.into_iter().collect();
    let lost = acknowledged.difference(&found).count();
    let sum = numbers(&mut connection, "SELECT SUM(balance) FROM bank.account")?.into_iter().sum::<u64>();
    println!("Acknowledged transfers lost: {lost}. Money in all accounts: {sum} of {}.", ACCOUNTS * BALANCE);
    server.stop()?;
    match lost == 0 && sum == ACCOUNTS * BALANCE {
        true => Ok(()),
        false => Err(Failure::new("the server lost acknowledged transfers")),
    }
}

/// Runs the clients, and kills the server under them. Returns the numbers of the acknowledged transfers.
fn transfer_until_killed(server: Server) -> Outcome<BTreeSet<u64>> {
    let next = AtomicU64::new(1);
    let address = server.address;
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| transfer(address, &next))).collect();
        thread::sleep(RUN_TIME);
        server.kill()?;
        let mut acknowledged = BTreeSet::new();
        for client in clients {
            match client.join() {
                Ok(numbers) => acknowledged.extend(numbers),
                Err(_) => return Err(Failure::new("a client failed")),
            }
        }
        Ok(acknowledged)
    })
}

/// Transfers money until the server is gone.
fn transfer(address: SocketAddr, next: &AtomicU64) -> Vec<u64> {
    let mut acknowledged = Vec::new();
    let Ok(mut connection) = Connection::open(address, "bank") else { return acknowledged };
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        // Neighbouring numbers go to distant accounts.
        let word = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let (source, amount) = (word % ACCOUNTS, word % 7 + 1);
        let target = (source + 1 + (word >> 10) % (ACCOUNTS - 1)) % ACCOUNTS;
        let statements = [
            "BEGIN".to_owned(),
            format!("UPDATE account SET balance = balance - {amount} WHERE id = {source}"),
            format!("UPDATE account SET balance = balance + {amount} WHERE id = {target}"),
            format!("INSERT INTO transfer VALUES ({number}, {source}, {target}, {amount})"),
            "COMMIT".to_owned(),
        ];
        let failed = statements.iter().find_map(|statement| connection.query(statement).err());
        match failed {
            None => acknowledged.push(number),
            // The victim of a deadlock was rolled back.
            Some(error) if error.errno() == 1213 => {}
            // The server is gone. The outcome of the last transfer is unknown.
            Some(_) => return acknowledged,
        }
    }
}

/// The first column of a result.
fn numbers(connection: &mut Connection, statement: &str) -> Outcome<Vec<u64>> {
    let result = connection.query(statement)?;
    let number = |row: &Vec<Value>| row.first().and_then(|text| text.as_ref()?.parse().ok());
    match result.rows.iter().map(number).collect() {
        Some(numbers) => Ok(numbers),
        None => Err(Failure::new(format!("{statement}: a number was expected"))),
    }
}
