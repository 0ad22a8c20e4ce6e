//! Reports the progress of recovery: lines of the log, and a bar if standard error is a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use junctor_node::restart_progress::{PhaseProgress, RestartPhase, RestartProgress};

/// Time between two lines about a phase that is under way.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// The bar of a phase whose work is known in bytes.
const BYTES: &str = "{msg:16} {wide_bar} {bytes} of {total_bytes}, {eta} left";
/// The bar of a phase whose work is known in rows.
const ROWS: &str = "{msg:16} {wide_bar} {human_pos} of {human_len} rows, {eta} left";
/// The line of a phase whose work is not known.
const UNKNOWN: &str = "{msg:16} {spinner} {bytes}, {elapsed}";

/// Reports the recovery of one start.
pub struct RestartReport {
    lines: RestartLines,
    started: Instant,
    /// Hidden if standard error is no terminal.
    bar: ProgressBar,
    /// The phase of the bar.
    shown: Option<RestartPhase>,
}

impl RestartReport {
    /// A report of a start that begins now.
    #[expect(clippy::disallowed_methods, reason = "the program's first thread, not a block, reports by the clock")]
    pub fn new() -> RestartReport {
        let bar = ProgressBar::no_length();
        RestartReport { lines: RestartLines::default(), started: Instant::now(), bar, shown: None }
    }

    /// Prints what has happened since the last call.
    pub fn report(&mut self, progress: &RestartProgress) {
        let phases: Vec<PhaseProgress> = progress.phases().collect();
        let lines = self.lines.take(&phases, self.started.elapsed());
        if !lines.is_empty() {
            self.bar.suspend(|| lines.iter().for_each(|line| eprintln!("{line}")));
        }
        if let Some(last) = phases.last() {
            self.show(last);
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&mut self, PhaseProgress { phase, done, total, .. }: &PhaseProgress) {
        let (template, position, length) = match (total.bytes, total.rows) {
            (0, 0) => (UNKNOWN, done.bytes, None),
            (0, rows) => (ROWS, done.rows, Some(rows)),
            (bytes, _) => (BYTES, done.bytes, Some(bytes)),
        };
        if self.shown.replace(*phase) != Some(*phase) {
            self.bar.reset();
            self.bar.set_message(phase.name());
        }
        // The work may become known after the phase has begun.
        self.bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        match length {
            Some(length) => self.bar.set_length(length),
            None => self.bar.unset_length(),
        }
        self.bar.set_position(position);
        self.bar.tick();
    }
}

/// Decides which lines the log gets.
#[derive(Debug, Default)]
struct RestartLines {
    /// Phases that have begun, and those that have ended.
    begun: usize,
    ended: usize,
    /// When the phase under way had its last line.
    last_line: Duration,
}

impl RestartLines {
    /// The lines that are due, `elapsed` after the start. `phases` are all that have begun.
    fn take(&mut self, phases: &[PhaseProgress], elapsed: Duration) -> Vec<String> {
        let mut lines = Vec::new();
        for (position, PhaseProgress { phase, begun, ended, done, total }) in phases.iter().enumerate() {
            let name = phase.name();
            if position >= self.begun {
                self.begun = position + 1;
                self.last_line = elapsed;
                lines.push(format!("level=info recovery phase=\"{name}\" begins"));
            }
            match ended {
                Some(ended) if position >= self.ended => {
                    self.ended = position + 1;
                    let seconds = Duration::from_nanos(ended.since(*begun).0).as_secs_f64();
                    let (rows, bytes) = (done.rows, done.bytes);
                    lines.push(format!(
                        "level=info recovery phase=\"{name}\" ended seconds={seconds:.3} rows={rows} bytes={bytes}"
                    ));
                }
                None if elapsed.saturating_sub(self.last_line) >= LINE_INTERVAL => {
                    self.last_line = elapsed;
                    let (rows, bytes) = (of(done.rows, total.rows), of(done.bytes, total.bytes));
                    lines.push(format!("level=info recovery phase=\"{name}\" rows={rows} bytes={bytes}"));
                }
                _ => {}
            }
        }
        lines
    }
}

/// A count with its total, if that is known.
fn of(done: u64, total: u64) -> String {
    if total > 0 { format!("{done}/{total}") } else { done.to_string() }
}

#[cfg(test)]
mod tests {
    use junctor_node::Time;

    use super::*;

    #[test]
    fn a_phase_has_a_line_at_its_ends_and_every_ten_seconds() {
        let progress = RestartProgress::default();
        let mut lines = RestartLines::default();
        let mut at = |progress: &RestartProgress, seconds: u64| {
            lines.take(&progress.phases().collect::<Vec<_>>(), Duration::from_secs(seconds)).join("; ")
        };
        assert_eq!(at(&progress, 0), "");
        progress.begin(RestartPhase::ReadManifest, Time(0));
        progress.begin(RestartPhase::LoadCheckpoint, Time(1_500_000));
        progress.add_total(0, 1000);
        assert_eq!(
            at(&progress, 1),
            "level=info recovery phase=\"read manifest\" begins; \
             level=info recovery phase=\"read manifest\" ended seconds=0.002 rows=0 bytes=0; \
             level=info recovery phase=\"load checkpoint\" begins"
        );
        progress.add(70, 500);
        assert_eq!(at(&progress, 10), "");
        let line = "level=info recovery phase=\"load checkpoint\" rows=70 bytes=500/1000";
        assert_eq!(at(&progress, 11), line);
        assert_eq!(at(&progress, 20), "");
        assert_eq!(at(&progress, 25), line);
        progress.add(1, 500);
        progress.end(Time(30_001_500_000));
        let line = "level=info recovery phase=\"load checkpoint\" ended seconds=30.000 rows=71 bytes=1000";
        assert_eq!(at(&progress, 31), line);
        assert_eq!(at(&progress, 99), "");
    }
}
