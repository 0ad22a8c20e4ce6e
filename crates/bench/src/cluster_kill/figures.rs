//! The distribution of what the faults did.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use super::Measured;
use crate::report::{Table, Verdict, print_verdicts};
use crate::statistics::percentile;
use crate::{Failure, Outcome};

/// What each fault did, by its name.
#[derive(Default)]
pub struct Figures(BTreeMap<String, Vec<Measured>>);

/// The longest time between two acknowledgements to any client that overlaps a span of time.
pub fn longest_gap(times: &[(Instant, u32)], from: Instant, to: Instant) -> Duration {
    let mut last = from;
    let mut longest = Duration::ZERO;
    for (time, _) in times.iter().filter(|(time, _)| *time >= from) {
        longest = longest.max(time.saturating_duration_since(last));
        last = *time;
        if *time > to {
            return longest;
        }
    }
    longest.max(to.saturating_duration_since(last))
}

/// The longest time of one client between two acknowledgements that overlaps a span of time.
pub fn longest_wait(times: &[(Instant, u32)], from: Instant, to: Instant) -> Duration {
    let clients = times.iter().map(|(_, client)| *client).max().map_or(0, |last| last + 1);
    let of_client = |client| {
        let own: Vec<_> = times.iter().filter(|(_, it)| *it == client).copied().collect();
        longest_gap(&own, from, to)
    };
    (0..clients).map(of_client).max().unwrap_or_default()
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

impl fmt::Display for Measured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [quiet, gap, wait, return_gap, back] =
            [self.quiet, self.gap, self.wait, self.return_gap, self.back].map(milliseconds);
        write!(
            out,
            "gap {gap} ms (quiet {quiet} ms), one client {wait} ms, return {return_gap} ms, whole after {back} ms"
        )
    }
}

impl Figures {
    pub fn add(&mut self, fault: String, measured: Measured) {
        self.0.entry(fault).or_default().push(measured);
    }

    /// Compares the gaps after kills with a limit.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub fn judge(&self, gap_max_ms: u64) -> Outcome<()> {
        if gap_max_ms == 0 {
            return Ok(());
        }
        let kills = self.0.iter().filter(|(fault, _)| fault.starts_with("kill"));
        let verdicts: Vec<Verdict> = kills
            .map(|(fault, measured)| {
                let mut gaps: Vec<u32> = measured.iter().map(|it| milliseconds(it.gap)).collect();
                let measured = f64::from(percentile(&mut gaps, 99));
                Verdict { what: format!("{fault}, p99 of the gap in ms"), allowed_max: gap_max_ms as f64, measured }
            })
            .collect();
        match print_verdicts(&verdicts) {
            0 => Ok(()),
            missed => Err(Failure::new(format!("{missed} gaps of service are too long"))),
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = ["ms: p50, p99, maximum", "faults", "quiet", "gap", "one client", "return", "whole after"];
        let mut table = Table::new(&columns);
        for (fault, measured) in &self.0 {
            let spread = |part: fn(&Measured) -> Duration| {
                let mut values: Vec<u32> = measured.iter().map(|it| milliseconds(part(it))).collect();
                let [half, most, all] = [50, 99, 100].map(|percent| percentile(&mut values, percent));
                format!("{half}, {most}, {all}")
            };
            table.row(vec![
                fault.clone(),
                measured.len().to_string(),
                spread(|it| it.quiet),
                spread(|it| it.gap),
                spread(|it| it.wait),
                spread(|it| it.return_gap),
                spread(|it| it.back),
            ]);
        }
        write!(out, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_begins_at_the_fault_and_lasts_until_the_next_acknowledgement() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let times = [(at(1), 0), (at(3), 1), (at(90), 0), (at(95), 1), (at(97), 0)];
        assert_eq!(longest_gap(&times, at(2), at(100)), Duration::from_millis(87));
        assert_eq!(longest_gap(&times, at(4), at(50)), Duration::from_millis(86), "it ends after the span");
        assert_eq!(longest_gap(&times, at(96), at(120)), Duration::from_millis(23), "it has not ended");
        assert_eq!(longest_wait(&times, at(2), at(96)), Duration::from_millis(92));
    }
}
