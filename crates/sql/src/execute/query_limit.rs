//! Time limits of queries: `max_execution_time` and the hint MAX_EXECUTION_TIME. A query that reaches its
//! limit is stopped like one that KILL QUERY stops, and fails with error 3024.

use std::collections::BTreeSet;

use junctor_gateway::TurnContext;
use junctor_gateway::threads::{Duration, Time};
use junctor_model::id::ConnectionId;

use super::context::StatementContext;
use super::engine::Engine;
use super::session::Session;
use crate::plan::Plan;
use crate::result::{Progress, ResultSink};

/// The token of the timer that stops queries.
pub const QUERY_LIMIT_TIMER: u64 = 0x7175_6572_7921;
/// Maximum time until the next look, in milliseconds. A later limit may be that of a query that has ended.
const LOOK_MS: u64 = 1000;
/// The least time by which a timer must be earlier than the one that runs, in nanoseconds. Timers cannot be
/// cancelled, so it bounds their number.
const GRAIN_NS: u64 = 10_000_000;
/// The time until a session is looked at again that cannot be stopped now, in milliseconds.
const AGAIN_MS: u64 = 100;

/// The deadline of a query without limit.
const UNLIMITED: Time = Time(u64::MAX);

/// The sessions of an sql block whose queries have limits: at most one entry for each.
#[derive(Debug, Default)]
pub(crate) struct QueryLimits {
    /// When to look at which session.
    entries: BTreeSet<(Time, ConnectionId)>,
    /// When the timer expires; `None` if none runs.
    timer_at: Option<Time>,
}

impl QueryLimits {
    fn start_timer(&mut self, turn: &mut TurnContext<'_>) {
        let Some((first, _)) = self.entries.first() else { return };
        let wait = first.since(turn.turn_start).min(Duration::from_millis(LOOK_MS));
        let at = Time(turn.turn_start.0 + wait.0);
        if self.timer_at.is_none_or(|timer| at.0.saturating_add(GRAIN_NS) <= timer.0) {
            self.timer_at = Some(at);
            turn.start_timer(wait, QUERY_LIMIT_TIMER);
        }
    }
}

impl Plan {
    /// Whether `max_execution_time` applies to the statement.
    fn has_time_limit(&self) -> bool {
        match self {
            Plan::Compute(plan) => !plan.is_shown,
            Plan::Tree(plan) => !plan.is_shown,
            _ => matches!(self, Plan::Select(_) | Plan::Into(_)),
        }
    }
}

impl StatementContext<'_, '_> {
    /// Limits the time of a query that starts, by its hint or else by the variable. A query that starts again
    /// keeps its limit.
    #[cold]
    pub(crate) fn limit_query(&mut self, plan: &Plan) {
        if self.session.query_deadline.is_some() || !plan.unhinted().has_time_limit() {
            return;
        }
        let of_hint = match plan {
            Plan::Hinted(hinted) => hinted.execution_time_max_ms,
            _ => None,
        };
        let limit_ms = of_hint.unwrap_or(self.session.variables.execution_time_max_ms);
        if limit_ms == 0 {
            self.session.query_deadline = Some(UNLIMITED);
            return;
        }
        let deadline = Time(self.turn.turn_start.0 + u64::from(limit_ms) * 1_000_000);
        self.session.query_deadline = Some(deadline);
        let QueryLimits { entries, .. } = &mut self.engine.query_limits;
        let connection = self.session.connection;
        match self.session.limit_entry {
            Some(entry) if entry <= deadline => {}
            old => {
                if let Some(entry) = old {
                    entries.remove(&(entry, connection));
                }
                entries.insert((deadline, connection));
                self.session.limit_entry = Some(deadline);
            }
        }
        self.engine.query_limits.start_timer(self.turn);
    }
}

impl Engine {
    /// Whether the timer that has expired is the one that counts: another one, which was started for a later
    /// time, may expire meanwhile.
    pub fn limit_timer_expires(&mut self, now: Time) -> bool {
        let expires = self.query_limits.timer_at.is_some_and(|timer| timer <= now);
        if expires {
            self.query_limits.timer_at = None;
        }
        expires
    }

    /// Takes the next session to look at, because the query that had a limit may have reached it. The caller
    /// hands the session to [`Engine::look_at_limit`].
    pub fn next_limited(&mut self, now: Time) -> Option<ConnectionId> {
        let (entry, _) = self.query_limits.entries.first()?;
        if *entry > now {
            return None;
        }
        self.query_limits.entries.pop_first().map(|(_, connection)| connection)
    }

    /// Whether the query of a session has reached its limit, and can be stopped. `can_stop` is `None` if the
    /// session is idle.
    pub fn look_at_limit(&mut self, session: &mut Session, can_stop: Option<bool>, now: Time) -> bool {
        self.forget_limit(session);
        let next = match (session.query_deadline, can_stop) {
            (None | Some(UNLIMITED), _) | (_, None) => return false,
            (Some(deadline), _) if deadline > now => deadline,
            (Some(_), Some(true)) => return true,
            (Some(_), Some(false)) => Time(now.0 + AGAIN_MS * 1_000_000),
        };
        self.look_again(session, next);
        false
    }

    fn look_again(&mut self, session: &mut Session, at: Time) {
        self.query_limits.entries.insert((at, session.connection));
        session.limit_entry = Some(at);
    }

    /// Watches the limit of a query that came from another block.
    pub(crate) fn renew_limit(&mut self, session: &mut Session, turn: &mut TurnContext<'_>) {
        if let Some(deadline) = session.query_deadline.filter(|deadline| *deadline != UNLIMITED) {
            self.look_again(session, deadline);
            self.query_limits.start_timer(turn);
        }
    }

    /// Starts the timer again after it has expired.
    pub fn restart_limit_timer(&mut self, turn: &mut TurnContext<'_>) {
        self.query_limits.start_timer(turn);
    }

    /// The session is not looked at any more.
    pub(crate) fn forget_limit(&mut self, session: &mut Session) {
        if let Some(entry) = session.limit_entry.take() {
            self.query_limits.entries.remove(&(entry, session.connection));
        }
    }

    /// Stops the query of a session that has reached its limit: it fails with error 3024.
    pub fn stop_limited(
        &mut self,
        session: &mut Session,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let now = turn.turn_start;
        let mut context = self.context(session, turn, sink);
        let progress = context.stop_query();
        let progress = context.finish_step(progress);
        if progress == Progress::Waiting {
            // The awaited reply may be on its way, so that nothing was stopped and the statement goes on.
            self.look_again(session, Time(now.0 + AGAIN_MS * 1_000_000));
        }
        progress
    }
}
