//! How many messages between nodes wait for one another until a statement is answered. Every message is
//! delayed by the same time, so the latency of the statement divided by that time is their number.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use super::load::{statement, text};
use super::options::{ClusterCostOptions, Shape};
use crate::Outcome;
use crate::fill::fill;
use crate::mysql::Connection;
use crate::process::{ClusterOptions, Server, start_cluster};
use crate::random::Random;
use crate::report::Table;

/// Rows, and pairs of rows, whose statements are timed.
const SUBJECTS: u64 = 24;
/// Each statement runs so often. Only the shortest time counts: a busy machine adds to the others.
const REPEATS: u32 = 5;
/// Rows of the table. It is filled over delayed links.
const ROWS: u64 = 2000;

/// How many subjects need each number of hops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hops(BTreeMap<u64, u64>);

impl Hops {
    /// Adds the shortest time of a statement.
    fn add(&mut self, latency: Duration, delay: Duration) {
        *self.0.entry((latency.as_secs_f64() / delay.as_secs_f64()).floor() as u64).or_default() += 1;
    }

    /// The largest number of hops.
    pub fn most(&self) -> u64 {
        self.0.keys().next_back().copied().unwrap_or(0)
    }
}

impl fmt::Display for Hops {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: u64 = self.0.values().sum::<u64>().max(1);
        let parts: Vec<String> =
            self.0.iter().map(|(hops, count)| format!("{hops}: {} %", count * 100 / all)).collect();
        write!(out, "{}", parts.join(", "))
    }
}

/// Counts the hops of a COMMIT, of an UPDATE that commits by itself, and of a SELECT, at every kind of node.
/// Prints them, and returns the most of a COMMIT in two tiers and in three.
///
/// # Errors
/// The cluster fails.
pub fn run(options: &ClusterCostOptions) -> Outcome<[u64; 2]> {
    let delay = Duration::from_millis(options.delay_ms);
    let mut cluster = ClusterOptions { delay, ..options.cluster(Shape::ThreeTier) };
    // A busy machine must not make a node leave, which would shorten all paths.
    cluster.junctor.settings.push("node_silence_max_ms = 10000".into());
    let mut cluster = start_cluster(&cluster)?;
    cluster.data()[0].execute(&["CREATE DATABASE sbtest"])?;
    fill(&cluster.data()[0], ROWS)?;
    cluster.await_ready()?;
    let sequencer = cluster.data()[0]
        .connect()?
        .query_value("SELECT node_id FROM junctor_info.nodes WHERE is_sequencer = 1")?
        .and_then(|node| node.parse::<usize>().ok());
    let mut table = Table::new(&["clients at", "COMMIT of two updates", "UPDATE that commits", "SELECT"]);
    let mut most = [0; 2];
    let places = (1..).zip(cluster.data()).map(|(node, server)| match Some(node) == sequencer {
        true => ("the data node with the sequencer", 0, server),
        false => ("the other data node", 0, server),
    });
    let places: Vec<_> = places.chain(cluster.sql().iter().take(1).map(|server| ("an SQL node", 1, server))).collect();
    for (name, tier, server) in places {
        let [commit, update, select] = measure(server, delay)?;
        most[tier] = most[tier].max(commit.most());
        table.row(vec![name.into(), commit.to_string(), update.to_string(), select.to_string()]);
    }
    cluster.await_ready()?;
    println!("{table}");
    Ok(most)
}

fn measure(server: &Server, delay: Duration) -> Outcome<[Hops; 3]> {
    let mut session = Connection::open(server.address, "sbtest")?;
    let mut random = Random::new(7);
    let mut hops = [Hops::default(), Hops::default(), Hops::default()];
    for _ in 0..SUBJECTS {
        let [first, second] = [1 + random.below(ROWS), 1 + random.below(ROWS)];
        let mut shortest = [Duration::MAX; 3];
        for _ in 0..REPEATS {
            let mut update = |key| statement(key, &text(&mut random));
            session.query("BEGIN")?;
            session.query(&update(first))?;
            session.query(&update(second))?;
            let times = [
                time_of(&mut session, "COMMIT")?,
                time_of(&mut session, &update(first))?,
                time_of(&mut session, &format!("SELECT c FROM sbtest1 WHERE id = {first}"))?,
            ];
            shortest = std::array::from_fn(|kind| shortest[kind].min(times[kind]));
        }
        hops.iter_mut().zip(shortest).for_each(|(hops, time)| hops.add(time, delay));
    }
    Ok(hops)
}

fn time_of(session: &mut Connection, statement: &str) -> Outcome<Duration> {
    let sent = Instant::now();
    session.query(statement)?;
    Ok(sent.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_delays_are_counted() {
        let (mut hops, delay) = (Hops::default(), Duration::from_millis(4));
        (0..3).for_each(|_| hops.add(Duration::from_micros(17_500), delay));
        hops.add(Duration::from_millis(25), delay);
        assert_eq!((hops.most(), hops.to_string()), (6, "4: 75 %, 6: 25 %".to_owned()));
    }
}
