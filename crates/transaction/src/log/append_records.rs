//! Hot path: at most 60 instructions per buffer.
//!
//! Records arrive, and blocks await their durability.

use junctor_kernel::{Context, Duration, Outbox, WorldRequest, require};
use junctor_signals::append_records::{AppendRecords, AwaitDurable};
use junctor_signals::{Module, Signal};
use junctor_storage::log::{GROUP_BYTES_MAX, GroupKind, commit_blocks};

use super::block::{LogBlock, Pending};
use super::cycle::{GROUPS_PER_CYCLE_MAX, Phase, SYNC_TIMER};

/// Bytes of waiting records that begin a cycle although nobody awaits it.
pub(super) const CYCLE_BYTES: usize = 256 * 1024;

impl LogBlock {
    pub(super) fn on_append_records(
        &mut self,
        signal: AppendRecords,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let AppendRecords { from, stream, records_formed, bytes } = signal;
        if from.module == Module::Main {
            self.space.allow(commit_blocks(bytes.len()));
        }
        let stream = &mut self.streams[usize::from(stream)];
        require!(
            stream.received < records_formed && !bytes.is_empty(),
            "a stream delivers records once, in order: {records_formed}"
        );
        self.gathering.arrive(records_formed - stream.received, context.turn_start);
        stream.received = records_formed;
        self.cycle.bytes_waiting += bytes.len();
        stream.buffers.push_back(Pending { from, bytes, written: 0 });
        match self.cycle.phase {
            Phase::Idle if self.cycle.bytes_waiting >= CYCLE_BYTES => {
                self.begin_cycle(GroupKind::Data, context, outbox)
            }
            Phase::Idle => {
                self.start_sync_timer(outbox);
                self.begin_if_gathered(context, outbox);
                self.close_before_stop(context, outbox);
            }
            Phase::Collecting => self.collect(context, outbox),
            Phase::Stopped | Phase::Writing | Phase::Syncing | Phase::Failed => {}
        }
    }

    pub(super) fn on_await_durable(
        &mut self,
        signal: AwaitDurable,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let AwaitDurable { number, reply_to } = signal;
        require!(number <= self.shared.sequence.stable(), "a commit is stable before it is awaited: {number}");
        self.shared.formed.set_awaited(true);
        let before = self.waiting.insert(reply_to, number);
        require!(before.is_none(), "a block has one request under way: {reply_to}");
        self.answer_waiting(outbox);
        self.begin_if_gathered(context, outbox);
    }

    /// Begins a cycle later, for records that nobody awaits.
    pub(super) fn start_sync_timer(&mut self, outbox: &mut Outbox<Signal>) {
        if !self.cycle.sync_timer_runs {
            self.cycle.sync_timer_runs = true;
            let after = Duration::from_millis(self.configuration.sync_interval_ms);
            outbox.request(WorldRequest::StartTimer { after, token: SYNC_TIMER });
        }
    }
}

const _: () = assert!(CYCLE_BYTES < GROUPS_PER_CYCLE_MAX * GROUP_BYTES_MAX);
