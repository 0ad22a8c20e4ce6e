//! The refresh of statistics: samples of tables that queries use, once they have changed. Each sql block
//! looks once a second, as long as it has sessions; one of the node's blocks reads a sample at a time.

use junctor_gateway::TurnContext;
use junctor_signals::inbox::{ContinueWork, Signal, SqlSignal};
use junctor_sql::BACKGROUND_CONNECTION;

use super::block::SqlBlock;
use super::ttl_purge::BackgroundStatement;

/// The number of the deferred work that reads the next sample.
pub(super) const REFRESH_WORK: u32 = 0x7265_6672;

/// Whether the session of background work reads a sample.
#[derive(Debug, Default)]
pub(super) struct StatisticsRefresh {
    is_running: bool,
}

impl StatisticsRefresh {
    /// Notes that the session has ended. Returns whether it has read a sample.
    pub fn end(&mut self) -> bool {
        std::mem::take(&mut self.is_running)
    }
}

impl SqlBlock {
    /// Forgets plans that old statistics have decided. Reads the next sample in a turn of its own, if one is
    /// due.
    pub(super) fn watch_statistics(&mut self, turn: &mut TurnContext<'_>) {
        self.engine.forget_by_statistics();
        if self.engine.wants_refresh() && !self.sessions.contains_key(&BACKGROUND_CONNECTION) {
            turn.outbox.send(self.own, Signal::Sql(SqlSignal::ContinueWork(ContinueWork { work: REFRESH_WORK })));
        }
    }

    /// Reads the next sample.
    pub(super) fn refresh_statistics(&mut self, turn: &mut TurnContext<'_>) {
        if self.engine.is_stopping || self.sessions.contains_key(&BACKGROUND_CONNECTION) {
            return;
        }
        let Some((table, rows)) = self.engine.begin_refresh(turn.wall_clock_us) else { return };
        self.refresh.is_running = true;
        let run: BackgroundStatement<'_> =
            &mut |engine, session, turn, sink| engine.refresh_statistics(session, (table, rows), turn, sink);
        if !self.run_in_background(run, turn) && self.refresh.end() {
            self.engine.end_refresh();
        }
    }
}
