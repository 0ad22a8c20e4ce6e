//! The sessions of the block as a thread group: settings, timer, slots of idle transactions, status tables.

use junctor_gateway::TurnContext;
use junctor_kernel::{Duration, Time};
use junctor_model::value::Value;
use junctor_signals::lock_wait::NoteLockWait;
use junctor_sql::{Engine, HighPriorityMode};

use super::block::SqlBlock;
use super::state::{AwaitedClient, CommandState, SessionRecord};
use crate::admission::{GroupSettings, Priority, ThreadGroup};

/// The token of the timer that runs while commands wait for slots.
pub(super) const GROUP_TIMER: u64 = 0x706f_6f6c;
/// Maximum number of sessions that one expiry of the timer checks for idle transactions.
const SESSIONS_PER_TIMER: usize = 1024;

/// The settings of one of the node's `groups` groups, from the system variables. Numbers of the node are
/// divided among the groups, and each gets at least one.
pub(super) fn group_settings(engine: &Engine, groups: usize) -> GroupSettings {
    let settings = engine.thread_pool();
    let share = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).div_ceil(groups.max(1)).max(1);
    GroupSettings {
        mode: settings.mode,
        slots: (settings.transactions > 0).then(|| share(settings.transactions)),
        slots_max: share(settings.threads_max),
        oversubscribe: settings.oversubscribe as usize,
        stall_limit: Duration::from_millis(settings.stall_limit_ms),
        idle_timeout: Duration::from_seconds(settings.idle_timeout_s),
        kickup: Duration::from_millis(settings.kickup_ms),
    }
}

impl SqlBlock {
    /// Applies changed system variables.
    pub(super) fn configure_group(&mut self, turn: &mut TurnContext<'_>) {
        self.group.configure(group_settings(&self.engine, self.sharing_groups()));
        self.admit_waiting(turn);
    }

    /// Number of groups among which the limits of the node are divided. A `work` thread has no clients of its
    /// own, so its group takes nothing from the others.
    pub(super) fn sharing_groups(&self) -> usize {
        if self.lending.is_borrower { self.groups } else { self.groups - usize::from(self.lending.count) }
    }

    pub(super) fn start_group_timer(&mut self, turn: &mut TurnContext<'_>) {
        if !self.is_group_timer_running && self.group.has_waiters() {
            self.is_group_timer_running = true;
            turn.start_timer(self.group.timer_interval(), GROUP_TIMER);
        }
    }

    pub(super) fn on_group_timer(&mut self, turn: &mut TurnContext<'_>) {
        self.is_group_timer_running = false;
        self.reclaim_slots(turn.turn_start);
        self.group.on_timer(turn.turn_start);
        self.admit_waiting(turn);
        self.start_group_timer(turn);
    }

    /// Takes the slots of transactions without locks whose clients have sent nothing for the stall limit.
    fn reclaim_slots(&mut self, now: Time) {
        let stall_limit = self.group.stall_limit();
        for _ in 0..self.timeout_sweep.len().min(SESSIONS_PER_TIMER) {
            let Some(connection) = self.timeout_sweep.next_session() else { return };
            let Some(record) = self.sessions.get_mut(&connection) else {
                if self.lending.lent.contains_key(&connection) {
                    self.timeout_sweep.visit_again(connection);
                }
                continue;
            };
            self.timeout_sweep.visit_again(connection);
            let is_idle = matches!(record.command, CommandState::Idle) && now.since(record.state_since) >= stall_limit;
            if is_idle && record.is_admitted && !record.is_extra && !record.session.holds_locks() {
                record.is_admitted = false;
                self.group.leave(record.admitted_at, record.state_since);
            }
        }
    }

    /// Lends the slot of a session whose statement waits for a row lock, and takes it back afterwards.
    /// Otherwise those that wait for locks would hold all slots, and the holders of the locks would wait for
    /// one.
    pub(super) fn on_note_lock_wait(&mut self, signal: &NoteLockWait, turn: &mut TurnContext<'_>) {
        let Some(connection) = self.engine.gateway.session_of(signal.operation) else { return };
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        if signal.waits && record.is_admitted && !record.is_extra && matches!(record.command, CommandState::Running) {
            record.lend_slot(&mut self.group);
            self.admit_waiting(turn);
        } else if !signal.waits {
            record.take_slot_back(&mut self.group);
        }
    }

    /// This block's row of `junctor_info.thread_pool_groups`.
    pub(super) fn thread_pool_group_rows(&self, now: Time) -> Vec<Vec<Value>> {
        let (in_use, waiting) = self.group.counts();
        let (slots, stall_slots) = self.group.slots();
        let running = self.sessions.values().filter(|record| record.is_running()).count();
        let number = |number: usize| Value::UInt(number as u64);
        vec![vec![
            Value::UInt(u64::from(self.own.instance)),
            number(self.sessions.len()),
            number(slots + stall_slots),
            number(in_use),
            number(running),
            number(in_use.saturating_sub(running)),
            number(waiting),
            Value::UInt(u64::from(self.group.is_stalled(now))),
        ]]
    }

    /// This block's rows of `junctor_info.thread_pool_queues`, in the order of admission.
    pub(super) fn thread_pool_queue_rows(&self, now: Time, rows_max: usize) -> Vec<Vec<Value>> {
        let waiting = self.group.waiting().take(rows_max).enumerate();
        let row = |(position, waiting): (usize, crate::admission::Waiting)| {
            let priority: &[u8] = match waiting.priority {
                Priority::High => b"HIGH",
                Priority::Low => b"LOW",
            };
            vec![
                Value::UInt(u64::from(self.own.instance)),
                Value::UInt(position as u64),
                Value::Bytes(priority.to_vec()),
                Value::UInt(u64::from(waiting.connection.0)),
                Value::UInt(now.since(waiting.since).0 / 1000),
            ]
        };
        waiting.map(row).collect()
    }

    /// This block's row of `junctor_info.thread_pool_stats`.
    pub(super) fn thread_pool_statistics_rows(&self) -> Vec<Vec<Value>> {
        let statistics = self.group.statistics();
        let numbers = [
            u64::from(self.own.instance),
            self.group.slots().0 as u64,
            statistics.adjustments,
            statistics.stalls,
            statistics.stall_slots,
            statistics.dequeued_high,
            statistics.dequeued_low,
            statistics.kicked_up,
        ];
        vec![numbers.into_iter().map(Value::UInt).collect()]
    }

    /// This block's rows of `junctor_info.thread_pool_waits`.
    pub(super) fn thread_pool_wait_rows(&self) -> Vec<Vec<Value>> {
        let statistics = self.group.statistics();
        let row = |reason: &str, count: u64, microseconds: Value| {
            let instance = Value::UInt(u64::from(self.own.instance));
            vec![instance, Value::Bytes(reason.as_bytes().to_vec()), Value::UInt(count), microseconds]
        };
        let slots = statistics.dequeued_high + statistics.dequeued_low;
        vec![
            row("SLOT", slots, Value::UInt(statistics.waited_us)),
            row("ROW LOCK", statistics.loans, Value::Null),
            row("METADATA LOCK", self.engine.counters.metadata_lock_waits, Value::Null),
        ]
    }
}

impl SessionRecord {
    /// The priority of the next statement. A statement that has high priority because of its transaction uses
    /// a ticket.
    pub(super) fn priority(&mut self) -> Priority {
        if self.is_extra {
            return Priority::High;
        }
        match self.session.high_priority_mode() {
            HighPriorityMode::Transactions
                if self.high_priority_tickets > 0 && self.session.open_transaction().is_some() =>
            {
                self.high_priority_tickets -= 1;
                Priority::High
            }
            HighPriorityMode::Statements => Priority::High,
            HighPriorityMode::Transactions | HighPriorityMode::None => {
                self.high_priority_tickets = self.session.high_priority_tickets();
                Priority::Low
            }
        }
    }

    /// Whether the session keeps its slot between two statements.
    pub(super) fn keeps_slot(&self) -> bool {
        if self.is_extra {
            return true;
        }
        if self.session.high_priority_mode() != HighPriorityMode::Transactions {
            return false;
        }
        let is_between = matches!(self.command, CommandState::Idle) && !self.is_disconnected;
        self.session.holds_locks() || is_between && self.session.open_transaction().is_some()
    }

    /// Whether a step left its statement waiting for the data plane, so that nothing is due at its end.
    #[inline]
    pub(super) fn awaits_replies(&self) -> bool {
        matches!(self.command, CommandState::Running)
            && !self.is_ending
            && !self.is_disconnected
            && !self.session.waits_for_tables()
    }

    /// Lends the slot, because the statement waits.
    pub(super) fn lend_slot(&mut self, group: &mut ThreadGroup) {
        self.is_admitted = false;
        self.lends_slot = true;
        group.lend();
    }

    /// Takes the slot back if it is lent.
    #[inline]
    pub(super) fn take_slot_back(&mut self, group: &mut ThreadGroup) {
        if std::mem::take(&mut self.lends_slot) {
            self.is_admitted = true;
            group.take_back();
        }
    }

    /// Whether the statement waits for its client, which must read what it got or send a part of a file.
    #[inline]
    pub(super) fn awaits_client(&self) -> bool {
        self.awaited.is_some_and(|(awaited, since)| awaited != AwaitedClient::Command && since >= self.statement_start)
            && self.awaits_replies()
    }

    fn is_running(&self) -> bool {
        self.is_admitted
            && !self.is_extra
            && matches!(self.command, CommandState::Running | CommandState::BetweenStatements(_))
    }
}
