//! GET_LOCK and related functions, and the backup lock. A request is answered immediately, or when its lock
//! is free or its timeout expires. In a cluster, main of the node with the sequencer keeps the user-level
//! locks of all nodes, and gets the requests of their sessions from main of each node (`own_user_locks`).

use junctor_kernel::{Address, Context, Duration, Outbox, Time, WorldRequest};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ConnectionId;
use junctor_model::value::Value;
use junctor_signals::counter::{counter_rows, thread_counter_rows};
use junctor_signals::read_rows::OperationId;
use junctor_signals::read_status::{ReadStatus, ReadStatusReply, STATUS_ROWS_MAX, StatusTable};
use junctor_signals::use_user_lock::{CancelUserLock, ReleaseUserLocks, UseUserLock, UseUserLockReply, UserLockAction};
use junctor_signals::{Module, Signal, SqlSignal, crash_point};

use super::block::MainBlock;
use super::checkpoint::status_rows;
use super::own_user_locks::{UNSENT_MAX, no_keeper};
use super::user_locks::{LockOutcome, ReleaseOutcome, USER_LOCKS_MAX, Waiter};

/// Maximum number of requests that are answered at a time once all nodes are known.
const EARLY_PER_TURN_MAX: usize = 48;

/// Milliseconds between checks of deadlines.
const WAIT_TIMER_MS: u64 = 100;

/// A request that waits until every node has told which locks its sessions hold.
#[derive(Debug)]
pub(super) struct EarlyRequest {
    request: UseUserLock,
    since: Time,
}

impl EarlyRequest {
    /// Whether GET_LOCK has waited for as long as it may.
    fn is_over(&self, now: Time) -> bool {
        match self.request.action {
            UserLockAction::Get { wait_ms: Some(wait_ms), .. } => {
                self.since.plus(Duration::from_millis(wait_ms)) <= now
            }
            _ => false,
        }
    }

    fn is_late(&self, now: Time) -> bool {
        self.since.plus(UNSENT_MAX) <= now
    }
}

impl MainBlock {
    pub(super) fn on_use_user_lock(
        &mut self,
        request: UseUserLock,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let is_of_node = matches!(
            request.action,
            UserLockAction::Sleep { .. } | UserLockAction::LockForBackup | UserLockAction::UnlockForBackup
        );
        if self.member.is_some() && !is_of_node {
            if request.reply_to.module != Module::Main {
                return self.on_own_lock_request(request, context.turn_start, outbox);
            }
            let is_held = matches!(request.action, UserLockAction::Hold { .. });
            if !is_held && !self.knows_all_locks {
                return self.early_locks.push_back(EarlyRequest { request, since: context.turn_start });
            }
        }
        self.answer_user_lock(request, context.turn_start, outbox);
    }

    /// Answers the requests that came before every node had told which locks its sessions hold. If one of
    /// them does not come, the requests end as those that no node takes.
    pub(super) fn answer_early_locks(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let has_told = self.own_locks.has_told(self.reachable_schema_life());
        self.knows_all_locks |= has_told && self.knows_all_nodes();
        let knows_all = self.knows_all_locks;
        for _ in 0..EARLY_PER_TURN_MAX {
            let is_due = |early: &EarlyRequest| knows_all || early.is_over(now) || early.is_late(now);
            let Some(early) = self.early_locks.iter().position(is_due).and_then(|at| self.early_locks.remove(at))
            else {
                break;
            };
            let UseUserLock { operation, reply_to, .. } = early.request;
            match (knows_all, early.is_over(now)) {
                (true, _) => self.answer_user_lock(early.request, early.since, outbox),
                (false, true) => answer(operation, reply_to, Value::Int(0), outbox),
                (false, false) => refuse(operation, reply_to, no_keeper(), outbox),
            }
        }
    }

    /// Answers a request that has come at this time.
    pub(super) fn answer_user_lock(&mut self, request: UseUserLock, since: Time, outbox: &mut Outbox<Signal>) {
        let UseUserLock { operation, reply_to, connection, action } = request;
        let value = match action {
            UserLockAction::Get { name, wait_ms } => {
                let deadline = wait_ms.map(|wait_ms| since.plus(Duration::from_millis(wait_ms)));
                let waiter = Waiter { connection, operation, reply_to, deadline };
                match self.user_locks.get(&name, waiter, wait_ms != Some(0)) {
                    LockOutcome::Lock => Value::Int(1),
                    LockOutcome::Busy => Value::Int(0),
                    LockOutcome::Wait => return self.start_user_lock_timer(outbox),
                    LockOutcome::Deadlock => return refuse(operation, reply_to, deadlock(), outbox),
                    LockOutcome::Full => return refuse(operation, reply_to, too_many_locks(), outbox),
                }
            }
            UserLockAction::Sleep { wait_ms } => {
                let deadline = Some(since.plus(Duration::from_millis(wait_ms)));
                self.user_locks.sleep(Waiter { connection, operation, reply_to, deadline });
                return self.start_user_lock_timer(outbox);
            }
            UserLockAction::Release { name } => match self.user_locks.release(&name, connection) {
                ReleaseOutcome::Yes(next) => {
                    next.into_iter().for_each(|next| grant(next, outbox));
                    Value::Int(1)
                }
                ReleaseOutcome::NotOwn => Value::Int(0),
                ReleaseOutcome::Unknown => Value::Null,
            },
            UserLockAction::ReleaseAll => {
                let (count, granted) = self.user_locks.release_all(connection);
                granted.into_iter().for_each(|next| grant(next, outbox));
                Value::UInt(count)
            }
            UserLockAction::Hold { name, count } => return self.user_locks.hold(&name, connection, count),
            UserLockAction::IsFree { name } => Value::Int(i64::from(self.user_locks.holder(&name).is_none())),
            UserLockAction::IsUsed { name } => {
                self.user_locks.holder(&name).map_or(Value::Null, |holder| Value::UInt(u64::from(holder.0)))
            }
            UserLockAction::LockForBackup => {
                self.lock_for_backup(connection, outbox);
                Value::Int(1)
            }
            UserLockAction::UnlockForBackup => match self.unlock_for_backup(connection, outbox) {
                Ok(()) => Value::Int(1),
                Err(error) => return refuse(operation, reply_to, error, outbox),
            },
        };
        answer(operation, reply_to, value, outbox);
    }

    pub(super) fn on_cancel_user_lock(&mut self, signal: CancelUserLock, from: Address, outbox: &mut Outbox<Signal>) {
        if from.module != Module::Main && self.cancel_own_lock(signal.connection, outbox) {
            return;
        }
        let is_meant = |early: &EarlyRequest| early.request.connection == signal.connection;
        if let Some(early) = self.early_locks.iter().position(is_meant).and_then(|at| self.early_locks.remove(at)) {
            return refuse(early.request.operation, early.request.reply_to, Error::query_interrupted(), outbox);
        }
        if let Some(waiter) = self.user_locks.cancel(signal.connection) {
            let error = Error::query_interrupted();
            refuse(waiter.operation, waiter.reply_to, error, outbox);
        }
    }

    pub(super) fn on_release_user_locks(
        &mut self,
        signal: ReleaseUserLocks,
        from: Address,
        outbox: &mut Outbox<Signal>,
    ) {
        let connection = signal.connection;
        if from.module != Module::Main {
            // Nobody is left to learn of a revoked lock.
            let _ = self.unlock_for_backup(connection, outbox);
            if self.member.is_some() {
                return self.release_own_locks(connection, outbox);
            }
        }
        self.end_user_locks(connection, outbox);
    }

    /// Ends the locks and the waits of a session that is gone.
    fn end_user_locks(&mut self, connection: ConnectionId, outbox: &mut Outbox<Signal>) {
        self.early_locks.retain(|early| early.request.connection != connection);
        self.user_locks.cancel(connection);
        let (_, granted) = self.user_locks.release_all(connection);
        granted.into_iter().for_each(|next| grant(next, outbox));
    }

    /// Ends the locks of sessions whose nodes are lost.
    pub(super) fn leave_user_locks(&mut self, outbox: &mut Outbox<Signal>) {
        let lost: Vec<ConnectionId> =
            self.user_locks.connections().filter(|connection| self.is_session_lost(*connection)).collect();
        lost.into_iter().for_each(|connection| self.end_user_locks(connection, outbox));
        let mut early = std::mem::take(&mut self.early_locks);
        early.retain(|early| !self.is_session_lost(early.request.connection));
        self.early_locks = early;
    }

    pub(super) fn lock_for_backup(&mut self, connection: ConnectionId, outbox: &mut Outbox<Signal>) {
        let is_first = !self.backup_locks.is_held();
        if is_first {
            outbox.crash_point(crash_point::BACKUP_PIN.before());
        }
        self.backup_locks.lock(connection);
        if is_first {
            outbox.crash_point(crash_point::BACKUP_PIN.after());
        }
    }

    /// Releases the backup lock of a session. If no other session holds one, trims the log and deletes files.
    pub(super) fn unlock_for_backup(&mut self, connection: ConnectionId, outbox: &mut Outbox<Signal>) -> Result<()> {
        let was_held = self.backup_locks.is_held();
        let unlocked = self.backup_locks.unlock(connection);
        if was_held && !self.backup_locks.is_held() {
            outbox.crash_point(crash_point::BACKUP_UNPIN.before());
            self.free_superseded(outbox);
            outbox.crash_point(crash_point::BACKUP_UNPIN.after());
        }
        unlocked
    }

    /// Replies with the rows of a status table of main, such as `junctor_info.user_locks`, or with the
    /// counters of main and of all threads.
    pub(super) fn on_read_status(
        &mut self,
        request: ReadStatus,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let row = |(name, connection, count): (&str, ConnectionId, u64)| {
            let state = if count > 0 { "GRANTED" } else { "WAITING" };
            vec![text(name), Value::UInt(u64::from(connection.0)), text(state), Value::UInt(count)]
        };
        let rows = match request.table {
            StatusTable::Nodes
            | StatusTable::Links
            | StatusTable::Arbitration
            | StatusTable::Restarts
            | StatusTable::ReplicationLag
            | StatusTable::Events
            | StatusTable::Backups
            | StatusTable::Processes => return self.ask_all(&request, context, outbox),
            StatusTable::LogSpaces => self.log_space_rows(),
            StatusTable::Checkpoints => status_rows(&self.checkpoints, context.turn_start),
            StatusTable::RestartInfo => self.restart_info.rows(),
            StatusTable::NodeGroups => self.group_rows(),
            StatusTable::UserLocks if !self.runs_schema_changes() => {
                self.own_locks.entries().take(STATUS_ROWS_MAX).map(row).collect()
            }
            StatusTable::UserLocks => self.user_locks.entries().take(STATUS_ROWS_MAX).map(row).collect(),
            StatusTable::TableStatistics => self.auto_increment_rows(&request),
            StatusTable::Counters => {
                let mut rows = thread_counter_rows(context.loads);
                rows.extend(counter_rows(&self.counted, self.own, context.thread()));
                rows
            }
            _ => Vec::new(),
        };
        let reply = ReadStatusReply { operation: request.operation, rows };
        outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
    }

    fn start_user_lock_timer(&mut self, outbox: &mut Outbox<Signal>) {
        if !self.user_lock_timer_runs && self.user_locks.has_waiters() {
            self.user_lock_timer_runs = true;
            let after = Duration::from_millis(WAIT_TIMER_MS);
            outbox.request(WorldRequest::StartTimer { after, token: USER_LOCK_TIMER });
        }
    }

    pub(super) fn on_user_lock_timer(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.user_lock_timer_runs = false;
        for waiter in self.user_locks.take_overdue(context.turn_start) {
            answer(waiter.operation, waiter.reply_to, Value::Int(0), outbox);
        }
        self.start_user_lock_timer(outbox);
    }

    /// The number of locks held, and of waiting sessions, for checkers.
    pub fn user_locks_held(&self) -> (usize, usize) {
        self.user_locks.counts()
    }
}

/// Token of the timer for user-level locks.
pub(super) const USER_LOCK_TIMER: u64 = 1;

fn grant(waiter: Waiter, outbox: &mut Outbox<Signal>) {
    answer(waiter.operation, waiter.reply_to, Value::Int(1), outbox);
}

pub(super) fn answer(operation: OperationId, to: Address, value: Value, outbox: &mut Outbox<Signal>) {
    let reply = UseUserLockReply { operation, value, error: None };
    outbox.send(to, Signal::Sql(SqlSignal::UseUserLockReply(reply)));
}

pub(super) fn refuse(operation: OperationId, to: Address, error: Box<Error>, outbox: &mut Outbox<Signal>) {
    let reply = UseUserLockReply { operation, value: Value::Null, error: Some(error) };
    outbox.send(to, Signal::Sql(SqlSignal::UseUserLockReply(reply)));
}

fn deadlock() -> Box<Error> {
    let message = "Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and \
                   restarting lock acquisition.";
    Error::new(ErrorCode::UserLockDeadlock, message)
}

fn too_many_locks() -> Box<Error> {
    Error::new(ErrorCode::OutOfResources, format!("Out of resources: more than {USER_LOCKS_MAX} user-level locks"))
}
