//! The log's part in checkpoints: it reads the numbers with which a round begins, frees the segments that a
//! complete checkpoint makes unnecessary, and reports how much of its space is in use.

use junctor_kernel::{Context, Outbox};
use junctor_signals::checkpoint::{BeginCheckpoint, BeginCheckpointReply, ReadLogUsage, ReadLogUsageReply, TrimLog};
use junctor_signals::{MainSignal, Signal, crash_point};
use junctor_storage::log::BLOCK_BYTES;

use super::block::LogBlock;

impl LogBlock {
    pub(super) fn on_begin_checkpoint(&mut self, signal: BeginCheckpoint, outbox: &mut Outbox<Signal>) {
        // Both are read in this turn. A position that is read later could lie behind the record of a commit
        // above `begin`.
        let begin = self.shared.sequence.stable();
        let replay_from = self.groups.replay_from(begin);
        let reply = BeginCheckpointReply { begin, replay_from };
        outbox.send(signal.reply_to, Signal::Main(MainSignal::BeginCheckpointReply(reply)));
    }

    pub(super) fn on_trim_log(&mut self, signal: TrimLog, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        outbox.crash_point(crash_point::CHECKPOINT_TRIM.before());
        self.segments.trim(signal.replay_from);
        self.segments.delete_surplus(outbox);
        self.space.trim(self.used_blocks());
        self.on_trimmed(context, outbox);
        outbox.crash_point(crash_point::CHECKPOINT_TRIM.after());
    }

    pub(super) fn on_read_log_usage(&mut self, signal: ReadLogUsage, outbox: &mut Outbox<Signal>) {
        let block_bytes = BLOCK_BYTES as u64;
        let reply = ReadLogUsageReply {
            used_bytes: self.space.used() * block_bytes,
            limit_bytes: self.space.limit().saturating_mul(block_bytes),
            reserved_bytes: self.space.reserved() * block_bytes,
            is_waited_for: self.space.is_waited_for(),
            written_bytes: (self.cycle.position - self.cycle.start_position) * block_bytes,
            sync_us: self.cycle.sync_us,
            sync_us_min: self.cycle.sync_us_min,
            syncs_us: self.cycle.syncs_us,
            syncs: self.cycle.syncs_total,
            records: (0..self.streams.len()).map(|stream| self.shared.formed.count(stream)).sum(),
        };
        outbox.send(signal.reply_to, Signal::Main(MainSignal::ReadLogUsageReply(reply)));
    }
}
