//! GET_LOCK and related functions, and the backup lock. A request is answered immediately, or when its lock
//! is free or its timeout expires.

use junctor_kernel::{Address, Context, Duration, Outbox, WorldRequest};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ConnectionId;
use junctor_model::value::Value;
use junctor_signals::counter::{counter_rows, thread_counter_rows};
use junctor_signals::read_rows::OperationId;
use junctor_signals::read_status::{ReadStatus, ReadStatusReply, STATUS_ROWS_MAX, StatusTable};
use junctor_signals::use_user_lock::{CancelUserLock, ReleaseUserLocks, UseUserLock, UseUserLockReply, UserLockAction};
use junctor_signals::{Signal, SqlSignal, crash_point};

use super::block::MainBlock;
use super::checkpoint::status_rows;
use super::user_locks::{LockOutcome, ReleaseOutcome, USER_LOCKS_MAX, Waiter};

/// Milliseconds between checks of deadlines.
const WAIT_TIMER_MS: u64 = 100;

impl MainBlock {
    pub(super) fn on_use_user_lock(
        &mut self,
        request: UseUserLock,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let UseUserLock { operation, reply_to, connection, action } = request;
        if self.member.is_some() && !matches!(action, UserLockAction::Sleep { .. }) {
            // The sessions of other nodes would not see the lock.
            return refuse(operation, reply_to, Error::not_supported("user-level locks in a cluster"), outbox);
        }
        let value = match action {
            UserLockAction::Get { name, wait_ms } => {
                let deadline = wait_ms.map(|wait_ms| context.turn_start.plus(Duration::from_millis(wait_ms)));
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
                let deadline = Some(context.turn_start.plus(Duration::from_millis(wait_ms)));
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

    pub(super) fn on_cancel_user_lock(&mut self, signal: CancelUserLock, outbox: &mut Outbox<Signal>) {
        if let Some(waiter) = self.user_locks.cancel(signal.connection) {
            let error = Error::query_interrupted();
            refuse(waiter.operation, waiter.reply_to, error, outbox);
        }
    }

    pub(super) fn on_release_user_locks(&mut self, signal: ReleaseUserLocks, outbox: &mut Outbox<Signal>) {
        let (_, granted) = self.user_locks.release_all(signal.connection);
        granted.into_iter().for_each(|next| grant(next, outbox));
        // Nobody is left to learn of a revoked lock.
        let _ = self.unlock_for_backup(signal.connection, outbox);
    }

    fn lock_for_backup(&mut self, connection: ConnectionId, outbox: &mut Outbox<Signal>) {
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
    fn unlock_for_backup(&mut self, connection: ConnectionId, outbox: &mut Outbox<Signal>) -> Result<()> {
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
            | StatusTable::Events => return self.ask_all(&request, context, outbox),
            StatusTable::LogSpaces => self.log_space_rows(),
            StatusTable::Checkpoints => status_rows(&self.checkpoints, context.turn_start),
            StatusTable::RestartInfo => self.restart_info.rows(),
            StatusTable::NodeGroups => self.group_rows(),
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

fn answer(operation: OperationId, to: Address, value: Value, outbox: &mut Outbox<Signal>) {
    let reply = UseUserLockReply { operation, value, error: None };
    outbox.send(to, Signal::Sql(SqlSignal::UseUserLockReply(reply)));
}

fn refuse(operation: OperationId, to: Address, error: Box<Error>, outbox: &mut Outbox<Signal>) {
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
