//! How many messages between nodes wait for one another until a statement is answered. Every message is
//! delayed by the same time, so the latency of the statement divided by that time is their number.

use std::fmt;
use std::time::{Duration, Instant};

use super::load::update;
use super::options::{ClusterCostOptions, Shape};
use crate::fill::fill;
use crate::mysql::Connection;
use crate::process::{ClusterOptions, Server, start_cluster};
use crate::random::Random;
use crate::report::Table;
use crate::Outcome;

/// Statements of one kind at one node.
const STATEMENTS: usize = 60;
/// Rows of the table. It is filled over delayed links.
const ROWS: u64 = 2000;
/// Longer paths count as this.
const HOPS_MAX: usize = 16;

/// How often each number of hops was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hops([u32; HOPS_MAX + 1]);

impl Hops {
    fn add(&mut self, latency: Duration, delay: Duration) {
        // The machine adds less than one delay, except where it is busy.
        let hops = (latency.as_secs_f64() / delay.as_secs_f64()).floor() as usize;
        self.0[hops.min(HOPS_MAX)] += 1;
    }

    /// The number that nine tenths of the statements do not exceed. The rest may have met a busy machine.
    pub fn most(&self) -> usize {
        let all: u32 = self.0.iter().sum();
        let mut seen = 0;
        let reaches = |count: &u32| {
            seen += count;
            seen * 10 >= all * 9
        };
        self.0.iter().position(reaches).unwrap_or(0)
    }
}

impl fmt::Display for Hops {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: u32 = self.0.iter().sum::<u32>().max(1);
        let seen = self.0.iter().enumerate().filter(|(_, count)| **count * 20 >= all);
        let parts: Vec<String> = seen.map(|(hops, count)| format!("{hops}: {} %", count * 100 / all)).collect();
        write!(out, "{}", parts.join(", "))
    }
}

/// Counts the hops of a COMMIT, of an UPDATE that commits by itself, and of a SELECT, at every kind of node.
/// Prints them, and returns the most of a COMMIT in two tiers and in three.
///
/// # Errors
/// The cluster fails.
pub fn run(options: &ClusterCostOptions) -> Outcome<[usize; 2]> {
    let delay = Duration::from_millis(options.delay_ms);
    let mut cluster =
        start_cluster(&ClusterOptions { delay, ..options.cluster(Shape::ThreeTier) })?;
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
    println!("{table}");
    Ok(most)
}

fn measure(server: &Server, delay: Duration) -> Outcome<[Hops; 3]> {
    let mut session = Connection::open(server.address, "sbtest")?;
    let mut random = Random::new(7);
    let [mut commits, mut updates, mut selects] = [Hops::default(), Hops::default(), Hops::default()];
    for _ in 0..STATEMENTS {
        session.query("BEGIN")?;
        for _ in 0..2 {
            let key = 1 + random.below(ROWS);
            session.query(&update(key, &mut random))?;
        }
        commits.add(time_of(&mut session, "COMMIT")?, delay);
        let key = 1 + random.below(ROWS);
        updates.add(time_of(&mut session, &update(key, &mut random))?, delay);
        selects.add(time_of(&mut session, &format!("SELECT c FROM sbtest1 WHERE id = {key}"))?, delay);
    }
    Ok([commits, updates, selects])
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
    fn delays_are_counted_and_rare_ones_left_out() {
        let mut hops = Hops::default();
        let delay = Duration::from_millis(4);
        (0..19).for_each(|_| hops.add(Duration::from_micros(17_500), delay));
        assert_eq!((hops.most(), hops.to_string()), (4, "4: 100 %".to_owned()));
        hops.add(Duration::from_secs(9), delay);
        assert_eq!((hops.most(), hops.to_string()), (4, "4: 95 %, 16: 5 %".to_owned()));
    }
}
