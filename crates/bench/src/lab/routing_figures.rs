//! Counts how many reads of each kind ran on which threads of the node in a measurement. The counts come from
//! `junctor_info.routing` and are sums over all sql blocks.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Outcome;
use crate::mysql::Connection;

/// The routing decisions for one kind of read. They are counted only while routing is adaptive.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RoutingFigures {
    /// Name of the table.
    pub table: String,
    /// Kind of access, and how large a part of the rows is returned.
    pub operation: String,
    /// Reads sent to the thread of the session.
    pub chosen_here: u64,
    /// Reads sent to the ldm that owns the rows.
    pub chosen_owner: u64,
    /// Reads sent to another thread of the read group.
    pub chosen_query: u64,
    /// Reads sent to another thread only to measure their cost.
    pub explored: u64,
    /// Predicted cost of these exploratory reads, in microseconds.
    pub regret_us: u64,
    /// Estimated nanoseconds per key or range on the thread of the session, at the end of the measurement:
    /// the mean over the sql blocks.
    pub here_ns: Option<f64>,
    /// As `here_ns`, but on another thread.
    pub away_ns: Option<f64>,
}

/// Counts at one moment, by table and operation.
#[derive(Clone, Debug, Default)]
pub struct RoutingState(BTreeMap<(String, String), State>);

#[derive(Clone, Debug, Default)]
struct State {
    counts: [u64; 5],
    here_ns: Vec<f64>,
    away_ns: Vec<f64>,
}

/// Reads the counts.
///
/// # Errors
/// The node refuses the statement.
pub fn read(connection: &mut Connection) -> Outcome<RoutingState> {
    let statement = "SELECT table_name, operation, here_ns, away_ns, chosen_here, chosen_owner, chosen_query, explored, \
                     regret_us FROM junctor_info.routing";
    let mut state = RoutingState::default();
    for row in connection.query(statement)?.rows {
        state.add(&row);
    }
    Ok(state)
}

impl RoutingState {
    fn add(&mut self, row: &[Option<String>]) {
        let [Some(table), Some(operation), here_ns, away_ns, counts @ ..] = row else { return };
        let state = self.0.entry((table.clone(), operation.clone())).or_default();
        for (sum, count) in state.counts.iter_mut().zip(counts) {
            *sum += count.as_ref().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
        }
        for (times, time) in [(&mut state.here_ns, here_ns), (&mut state.away_ns, away_ns)] {
            times.extend(time.as_ref().and_then(|time| time.parse::<f64>().ok()));
        }
    }

    /// The decisions since an earlier snapshot, without kinds of read that did not occur.
    pub fn since(&self, before: &RoutingState) -> Vec<RoutingFigures> {
        let none = State::default();
        let mean = |times: &[f64]| (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64);
        let figures = self.0.iter().map(|(name, state)| {
            let earlier = before.0.get(name).unwrap_or(&none);
            let count = |place: usize| state.counts[place].saturating_sub(earlier.counts[place]);
            RoutingFigures {
                table: name.0.clone(),
                operation: name.1.clone(),
                chosen_here: count(0),
                chosen_owner: count(1),
                chosen_query: count(2),
                explored: count(3),
                regret_us: count(4),
                here_ns: mean(&state.here_ns),
                away_ns: mean(&state.away_ns),
            }
        });
        figures.filter(|figures| figures.chosen() > 0).collect()
    }
}

impl RoutingFigures {
    /// Total number of reads.
    pub fn chosen(&self) -> u64 {
        self.chosen_here + self.chosen_owner + self.chosen_query
    }

    /// Adds the counts of a later measurement of the same kind, and takes over its estimates.
    pub fn add(&mut self, later: &RoutingFigures) {
        self.chosen_here += later.chosen_here;
        self.chosen_owner += later.chosen_owner;
        self.chosen_query += later.chosen_query;
        self.explored += later.explored;
        self.regret_us += later.regret_us;
        (self.here_ns, self.away_ns) = (later.here_ns.or(self.here_ns), later.away_ns.or(self.away_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(words: &str) -> Vec<Option<String>> {
        words.split(' ').map(|word| (word != "-").then(|| word.to_string())).collect()
    }

    #[test]
    fn choices_are_summed_over_blocks_and_subtracted_over_time() {
        let mut before = RoutingState::default();
        before.add(&row("t keys 100 - 10 0 1 1 7"));
        let mut after = RoutingState::default();
        after.add(&row("t keys 100 300 20 5 1 2 9"));
        after.add(&row("t keys 200 - 1 0 0 0 0"));
        after.add(&row("t ranges - - 0 0 0 0 0"));
        after.add(&row("- keys 1 1 1 1 1 1 1"));
        let seen = after.since(&before);
        let expected = RoutingFigures {
            table: "t".into(),
            operation: "keys".into(),
            chosen_here: 11,
            chosen_owner: 5,
            chosen_query: 0,
            explored: 1,
            regret_us: 2,
            here_ns: Some(150.0),
            away_ns: Some(300.0),
        };
        assert_eq!(seen, [expected]);
        assert_eq!(after.since(&after), []);
    }
}
