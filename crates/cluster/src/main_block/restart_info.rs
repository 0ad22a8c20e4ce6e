//! The phases of the node's last start, for `junctor_info.restart_info`.

use std::sync::Arc;

use junctor_kernel::{NodeId, Time};
use junctor_model::value::Value;
use junctor_signals::restart_progress::{PhaseProgress, RestartPhase, RestartProgress};

/// The phases of the start, as main begins them.
#[derive(Debug)]
pub(super) struct RestartInfo {
    progress: Arc<RestartProgress>,
    /// The time of the signal or event that is being handled.
    now: Time,
}

impl RestartInfo {
    pub fn new(progress: Arc<RestartProgress>) -> RestartInfo {
        RestartInfo { progress, now: Time::default() }
    }

    /// Tells the time at which the next phases begin or end.
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Ends the present phase and begins the next one.
    pub fn begin(&self, phase: RestartPhase) {
        self.progress.begin(phase, self.now);
    }

    /// Adds bytes that the present phase has to read.
    pub fn add_total_bytes(&self, bytes: u64) {
        self.progress.add_total(0, bytes);
    }

    /// Ends the last phase.
    pub fn end(&self) {
        self.progress.end(self.now);
    }

    /// The rows of `restart_info`: phase, state, milliseconds, rows, bytes.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        self.progress.phases().map(|phase| self.row(phase)).collect()
    }

    /// The rows of `restarts`: the node, the columns of `restart_info`, all rows and bytes of the phase,
    /// which are NULL if unknown.
    pub fn rows_of(&self, node: NodeId) -> Vec<Vec<Value>> {
        let total = |count: u64| if count > 0 { Value::UInt(count) } else { Value::Null };
        let row = |phase: PhaseProgress| {
            let mut row = vec![Value::UInt(node.0.into())];
            row.extend(self.row(phase));
            row.extend([total(phase.total.rows), total(phase.total.bytes)]);
            row
        };
        self.progress.phases().map(row).collect()
    }

    fn row(&self, PhaseProgress { phase, begun, ended, done, .. }: PhaseProgress) -> Vec<Value> {
        let state = if ended.is_some() { "DONE" } else { "RUNNING" };
        let end = ended.unwrap_or(self.now);
        vec![
            Value::Bytes(phase.name().into()),
            Value::Bytes(state.into()),
            Value::UInt(end.since(begun).as_millis()),
            Value::UInt(done.rows),
            Value::UInt(done.bytes),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_has_its_duration_and_its_work() {
        let progress = Arc::new(RestartProgress::default());
        let mut info = RestartInfo::new(Arc::clone(&progress));
        assert!(info.rows().is_empty());
        info.begin(RestartPhase::ReadLog);
        progress.add(0, 4096);
        info.set_now(Time(5_000_000));
        info.begin(RestartPhase::LoadCheckpoint);
        progress.add(7, 100);
        progress.add(1, 50);
        progress.add_total(0, 600);
        info.set_now(Time(12_000_000));
        let row = |name: &str, state: &str, numbers: [u64; 3]| {
            let text = |text: &str| Value::Bytes(text.into());
            [vec![text(name), text(state)], numbers.map(Value::UInt).to_vec()].concat()
        };
        let first = row("read log", "DONE", [5, 0, 4096]);
        assert_eq!(info.rows(), [first.clone(), row("load checkpoint", "RUNNING", [7, 8, 150])]);
        let of_node = info.rows_of(NodeId(3));
        assert_eq!((&of_node[1][0], &of_node[1][1..6]), (&Value::UInt(3), &info.rows()[1][..]));
        assert_eq!(of_node[1][6..], [Value::Null, Value::UInt(600)]);
        info.end();
        info.set_now(Time(90_000_000));
        assert_eq!(info.rows(), [first, row("load checkpoint", "DONE", [7, 8, 150])]);
    }
}
