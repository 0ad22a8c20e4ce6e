//! Reservations of blocks, and what other blocks learn about the space of the log.

use std::sync::atomic::Ordering;

use junctor_kernel::{Context, Outbox};
use junctor_signals::append_records::{LogSpace, LogSpaceChanged, ReserveLogSpace, ReserveLogSpaceReply, SpaceGrant};
use junctor_signals::{MainSignal, Module, Signal, TcSignal};
use junctor_storage::log::GroupKind;

use super::block::LogBlock;
use super::cycle::Phase;

/// Share of the log's limit, in per cent, above which new writes wait for a checkpoint. The rest is for the
/// transactions that have begun, and for groups without records.
const LIMITED_PERCENT: u64 = 85;
/// Share from which they go on.
const FREE_PERCENT: u64 = 75;

impl LogBlock {
    pub(super) fn on_reserve_log_space(
        &mut self,
        signal: ReserveLogSpace,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let holder = self.configuration.writers.iter().position(|writer| *writer == signal.reply_to);
        let Some(holder) = holder.filter(|_| signal.reply_to.module == Module::Tc) else {
            junctor_kernel::invariant::fail("every tc is a writer of the log", format_args!("{}", signal.reply_to))
        };
        self.space.exchange(holder as u16, signal.exchange);
        self.grant_blocks_or_sync(context, outbox);
        if self.space.is_waited_for() && self.cycle.phase == Phase::Idle {
            self.report_space(self.space_below_limit(), outbox);
        }
    }

    /// Grants the blocks that every tc keeps in advance, at the start.
    pub(super) fn grant_first_blocks(&mut self, outbox: &mut Outbox<Signal>) {
        for index in 0..self.configuration.writers.len() {
            if self.configuration.writers[index].module == Module::Tc {
                let grant = self.space.first_grant();
                self.send_grant(index as u16, grant, outbox);
            }
        }
    }

    /// Grants what there is room for.
    pub(super) fn grant_blocks(&mut self, outbox: &mut Outbox<Signal>) {
        while let Some((holder, grant)) = self.space.next_grant() {
            self.send_grant(holder, grant, outbox);
        }
    }

    /// As `grant_blocks`. If a request waits for blocks that are spent, makes their commits durable.
    pub(super) fn grant_blocks_or_sync(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.grant_blocks(outbox);
        if self.cycle.phase != Phase::Idle || !self.space.needs_cycle() {
            return;
        }
        if self.durable < self.shared.sequence.stable() {
            return self.begin_cycle(GroupKind::Data, context, outbox);
        }
        self.space.begin_cycle();
        self.space.end_cycle();
        self.grant_blocks(outbox);
    }

    fn send_grant(&self, holder: u16, grant: SpaceGrant, outbox: &mut Outbox<Signal>) {
        let reply = ReserveLogSpaceReply { grant };
        let to = self.configuration.writers[usize::from(holder)];
        outbox.send(to, Signal::Tc(TcSignal::ReserveLogSpaceReply(reply)));
    }

    /// Blocks from the first segment that recovery would read to the end of the log.
    pub(super) fn used_blocks(&self) -> u64 {
        self.cycle.position.saturating_sub(self.segments.first_position())
    }

    /// The room that the log has below its limit. While a commit waits, new writes wait too.
    pub(super) fn space_below_limit(&self) -> LogSpace {
        let percent = match self.cycle.reported {
            LogSpace::Limited | LogSpace::Exhausted => FREE_PERCENT,
            LogSpace::Free | LogSpace::DeviceFull => LIMITED_PERCENT,
        };
        let is_limited = self.space.used() > self.space.limit() / 100 * percent || self.space.is_waited_for();
        match (self.space.is_exhausted(), is_limited) {
            (true, _) => LogSpace::Exhausted,
            (false, true) => LogSpace::Limited,
            (false, false) => LogSpace::Free,
        }
    }

    /// Lets writes go on if a checkpoint has freed enough of the log.
    pub(super) fn on_trimmed(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.grant_blocks_or_sync(context, outbox);
        if self.cycle.reported != LogSpace::DeviceFull {
            self.report_space(self.space_below_limit(), outbox);
        }
        if self.cycle.phase == Phase::Idle {
            self.start_close_timer(outbox);
        }
    }

    /// Reports the room that the log has to the blocks that write, unless they know it.
    pub(super) fn report_space(&mut self, space: LogSpace, outbox: &mut Outbox<Signal>) {
        if self.cycle.reported == space {
            return;
        }
        self.cycle.reported = space;
        self.shared.waits_for_room.store(space == LogSpace::DeviceFull, Ordering::Relaxed);
        for to in &self.configuration.writers {
            let changed = LogSpaceChanged { space };
            let signal = match to.module == Module::Tc {
                true => Signal::Tc(TcSignal::LogSpaceChanged(changed)),
                false => Signal::Main(MainSignal::LogSpaceChanged(changed)),
            };
            outbox.send(*to, signal);
        }
    }
}
