//! The phases of the node's last start, for `junctor_info.restart_info`.

use junctor_kernel::Time;
use junctor_model::value::Value;

/// The phases of the start so far. They stay until the node ends.
#[derive(Debug, Default)]
pub(super) struct RestartInfo {
    phases: Vec<RestartPhase>,
    /// The time of the signal or event that is being handled.
    now: Time,
    /// When the last phase ended.
    ended: Option<Time>,
}

#[derive(Debug)]
struct RestartPhase {
    name: &'static str,
    begun: Time,
    rows: u64,
    bytes: u64,
}

impl RestartInfo {
    /// Tells the time at which the next phases begin or end.
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Ends the present phase and begins the next one.
    pub fn begin(&mut self, name: &'static str) {
        self.phases.push(RestartPhase { name, begun: self.now, rows: 0, bytes: 0 });
    }

    /// Adds rows and bytes to the present phase.
    pub fn add(&mut self, rows: u64, bytes: u64) {
        if let Some(phase) = self.phases.last_mut() {
            phase.rows += rows;
            phase.bytes += bytes;
        }
    }

    /// Ends the last phase.
    pub fn end(&mut self) {
        self.ended = Some(self.now);
    }

    /// The rows of the status table: phase, state, milliseconds, rows, bytes.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        let ends = self.phases.iter().skip(1).map(|phase| Some(phase.begun)).chain([self.ended]);
        let row = |(phase, ended): (&RestartPhase, Option<Time>)| {
            let state = if ended.is_some() { "DONE" } else { "RUNNING" };
            let end = ended.unwrap_or(self.now);
            vec![
                Value::Bytes(phase.name.into()),
                Value::Bytes(state.into()),
                Value::UInt(end.since(phase.begun).as_millis()),
                Value::UInt(phase.rows),
                Value::UInt(phase.bytes),
            ]
        };
        self.phases.iter().zip(ends).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_has_its_duration_and_its_work() {
        let mut info = RestartInfo::default();
        assert!(info.rows().is_empty());
        info.begin("read log");
        info.add(0, 4096);
        info.set_now(Time(5_000_000));
        info.begin("load checkpoint");
        info.add(7, 100);
        info.add(1, 50);
        info.set_now(Time(12_000_000));
        let row = |name: &str, state: &str, numbers: [u64; 3]| {
            let text = |text: &str| Value::Bytes(text.into());
            [vec![text(name), text(state)], numbers.map(Value::UInt).to_vec()].concat()
        };
        let first = row("read log", "DONE", [5, 0, 4096]);
        assert_eq!(info.rows(), [first.clone(), row("load checkpoint", "RUNNING", [7, 8, 150])]);
        info.end();
        info.set_now(Time(90_000_000));
        assert_eq!(info.rows(), [first, row("load checkpoint", "DONE", [7, 8, 150])]);
    }
}
