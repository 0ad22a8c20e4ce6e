//! The rows of `junctor_info.checkpoints`.

use junctor_kernel::Time;
use junctor_model::value::Value;
use junctor_signals::checkpoint::ReadLogUsageReply;

use super::round::{Checkpoints, Round, Step};

/// A round, as users see it.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundReport {
    pub generation: u64,
    pub state: &'static str,
    pub begin: u64,
    pub newest: u64,
    pub replay_from: u64,
    pub partitions: u64,
    pub files: u64,
    pub written_bytes: u64,
    pub left_bytes: u64,
    pub bytes_per_second: u64,
    pub duration_ms: u64,
    pub log_used_bytes: u64,
    pub log_limit_bytes: u64,
    pub error: Option<Box<str>>,
}

impl RoundReport {
    /// The present state of a round.
    pub fn new(round: &Round, checkpoints: &Checkpoints, now: Time) -> RoundReport {
        let (written_bytes, left_bytes) = checkpoints.progress();
        let ReadLogUsageReply { used_bytes: log_used_bytes, limit_bytes: log_limit_bytes, .. } =
            *checkpoints.log_usage();
        let state = match (&round.error, &round.step) {
            (Some(_), _) => "FAILED",
            (None, Step::Begin) => "BEGINNING",
            (None, Step::Write) => "WRITING",
            (None, Step::AwaitDurable) => "WAITING",
            (None, Step::MergeLists(_) | Step::WriteLists(_)) => "SWITCHING",
            // A round that is kept has given its manifest away.
            (None, Step::Switch { .. }) if round.manifest.is_some() => "SWITCHING",
            (None, Step::Switch { .. }) => "DONE",
        };
        RoundReport {
            generation: round.generation,
            state,
            begin: round.begin.0,
            newest: round.newest.0,
            replay_from: round.replay_from,
            partitions: round.partitions,
            files: round.new_files().count() as u64,
            written_bytes,
            left_bytes,
            bytes_per_second: checkpoints.controller.bytes_per_second(),
            duration_ms: now.since(round.began).as_millis(),
            log_used_bytes,
            log_limit_bytes,
            error: round.error.clone(),
        }
    }

    fn row(&self) -> Vec<Value> {
        let text = |text: &str| Value::Bytes(text.into());
        vec![
            Value::UInt(self.generation),
            text(self.state),
            Value::UInt(self.begin),
            Value::UInt(self.newest),
            Value::UInt(self.replay_from),
            Value::UInt(self.partitions),
            Value::UInt(self.files),
            Value::UInt(self.written_bytes),
            Value::UInt(self.left_bytes),
            Value::UInt(self.bytes_per_second),
            Value::UInt(self.duration_ms),
            Value::UInt(self.log_used_bytes),
            Value::UInt(self.log_limit_bytes),
            self.error.as_deref().map_or(Value::Null, text),
        ]
    }
}

/// The recent rounds, the oldest first; the last one may be running.
pub(in crate::main_block) fn status_rows(checkpoints: &Checkpoints, now: Time) -> Vec<Vec<Value>> {
    let running = checkpoints.round.as_ref().map(|round| RoundReport::new(round, checkpoints, now));
    checkpoints.reports.iter().chain(&running).map(RoundReport::row).collect()
}
