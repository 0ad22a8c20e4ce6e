//! The streams beside the transactions: queries one after the other, and point selects with pauses.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::queries::Query;
use crate::Outcome;
use crate::latency::Latencies;
use crate::mysql::{ClientError, Connection};
use crate::process::Server;
use crate::random::Random;

/// Pause between two point selects, so that they are no load of their own.
const SELECT_PAUSE: Duration = Duration::from_millis(1);
const DISTRICTS: u64 = 10;
/// KILL QUERY ended the query.
const INTERRUPTED: u16 = 1317;

/// Connects with the time zone of all queries.
///
/// # Errors
/// The server refuses the connection.
pub fn connect(server: &Server, database: &str) -> Outcome<Connection> {
    let mut connection = Connection::open(server.address, database)?;
    connection.query("SET time_zone = '+00:00'")?;
    Ok(connection)
}

/// The queries that a stream has finished.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    pub queries: u32,
    /// The time of all finished queries.
    pub elapsed: Duration,
    /// Queries that failed, by message.
    pub failures: Vec<String>,
}

/// Repeats the queries, beginning with the one at `first`, until `stop` is set. The last query is then
/// stopped and does not count.
///
/// # Errors
/// The connection breaks.
pub fn run_queries(
    server: &Server,
    database: &str,
    queries: &[Query],
    first: usize,
    stop: &AtomicBool,
) -> Outcome<Finished> {
    let mut connection = connect(server, database)?;
    let id = connection.query_value("SELECT CONNECTION_ID()")?.unwrap_or_default();
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| kill_when_stopped(server, &id, stop, &has_ended));
        let mut finished = Finished::default();
        let mut outcome = Ok(());
        for query in queries.iter().cycle().skip(first) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let start = Instant::now();
            match connection.query(&query.text) {
                Ok(_) => {
                    finished.queries += 1;
                    finished.elapsed += start.elapsed();
                }
                Err(ClientError::Server { errno: INTERRUPTED, .. }) => break,
                Err(error @ ClientError::Server { .. }) => {
                    finished.failures.push(format!("query {}: {error}", query.number));
                }
                Err(error) => {
                    outcome = Err(error.into());
                    break;
                }
            }
        }
        has_ended.store(true, Ordering::Relaxed);
        outcome.map(|()| finished)
    })
}

/// Stops the last query, once the stream has to end. KILL may meet the pause between two queries.
fn kill_when_stopped(server: &Server, id: &str, stop: &AtomicBool, has_ended: &AtomicBool) {
    while !has_ended.load(Ordering::Relaxed) {
        if stop.load(Ordering::Relaxed)
            && let Ok(mut connection) = server.connect()
        {
            // The query may have ended by itself.
            let _ = connection.query(&format!("KILL QUERY {id}"));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Selects customers by primary key until `stop` is set. Returns the latencies.
///
/// # Errors
/// A select fails.
pub fn run_selects(
    server: &Server,
    database: &str,
    (warehouses, customers): (u32, u32),
    stop: &AtomicBool,
) -> Outcome<Latencies> {
    let mut connection = connect(server, database)?;
    let mut random = Random::new(7);
    let mut latencies = Latencies::default();
    while !stop.load(Ordering::Relaxed) {
        let warehouse = 1 + random.below(u64::from(warehouses));
        let district = 1 + random.below(DISTRICTS);
        let customer = 1 + random.below(u64::from(customers));
        let text = format!(
            "SELECT c_last, c_balance FROM customer \
             WHERE c_w_id = {warehouse} AND c_d_id = {district} AND c_id = {customer}"
        );
        let start = Instant::now();
        connection.query(&text)?;
        latencies.add(start.elapsed().as_nanos() as u64);
        thread::sleep(SELECT_PAUSE);
    }
    Ok(latencies)
}
