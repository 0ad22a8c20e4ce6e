//! The part of a data node in a backup of its cluster. A thread of the process copies the files
//! ([`BackupDesk`]). Main keeps the files meanwhile, and answers the session that directs the backup.
//!
//! The session may end at any time. A part from which nobody has heard for [`SILENCE_MAX`] is given up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use junctor_kernel::{Duration, Outbox, Time};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{CommitNumber, ConnectionId};
use junctor_model::value::Value;
use junctor_signals::Signal;
use junctor_signals::ask_node::BackupStep;

use super::block::MainBlock;

/// The holder of the backup lock of a part. No session has this id.
const HOLDER: ConnectionId = ConnectionId(0);
/// Time after which a part is given up that nobody asks about.
const SILENCE_MAX: Duration = Duration::from_millis(30_000);

/// The state of main about the part of its node.
#[derive(Debug, Default)]
pub(super) struct BackupPart {
    /// When somebody last asked about the part whose files are kept; `None` without one.
    heard: Option<Time>,
}

/// The part of the node, between main and the thread that copies. Neither holds the lock for longer than it
/// takes to read or write a few words.
#[derive(Clone, Debug, Default)]
pub struct BackupDesk(Arc<Desk>);

#[derive(Debug, Default)]
struct Desk {
    state: Mutex<DeskState>,
    changed: Condvar,
    copied_bytes: AtomicU64,
    total_bytes: AtomicU64,
    stored_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct DeskState {
    /// Whether a thread copies parts.
    has_copier: bool,
    /// Counts parts.
    last_number: u64,
    part: Option<Part>,
}

/// An order to the thread that copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartOrder {
    /// The number of the part on this node.
    pub number: u64,
    /// The store.
    pub store: Box<str>,
    /// The name of the backup.
    pub name: Box<str>,
}

#[derive(Debug)]
struct Part {
    order: PartOrder,
    is_taken: bool,
    has_ended: bool,
    newest: Option<CommitNumber>,
    until: Option<CommitNumber>,
    /// The last commit in the copy, or why there is none.
    result: Option<std::result::Result<CommitNumber, Box<str>>>,
}

impl Part {
    fn state(&self) -> &'static str {
        match (&self.result, self.until) {
            (Some(Ok(_)), _) => "COPIED",
            (Some(Err(_)), _) => "FAILED",
            (None, Some(_)) => "COPYING",
            (None, None) if self.newest.is_some() => "PINNED",
            (None, None) => "BEGINNING",
        }
    }
}

impl BackupDesk {
    fn lock(&self) -> MutexGuard<'_, DeskState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next part. A thread that calls this copies all parts of the node.
    pub fn next_part(&self) -> PartOrder {
        let mut state = self.lock();
        loop {
            state.has_copier = true;
            if let Some(part) = state.part.as_mut().filter(|part| !part.is_taken && !part.has_ended) {
                part.is_taken = true;
                return part.order.clone();
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The files are found. Waits until they are to be copied, and returns the number that the copy must
    /// include; `None` if the part has ended.
    pub fn await_copy(&self, number: u64, newest: CommitNumber) -> Option<CommitNumber> {
        let mut state = self.lock();
        loop {
            let part = state.part.as_mut().filter(|part| part.order.number == number && !part.has_ended)?;
            part.newest = Some(newest);
            if part.until.is_some() {
                return part.until;
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the part has ended, so that its copy is of no use.
    pub fn has_ended(&self, number: u64) -> bool {
        self.lock().part.as_ref().is_none_or(|part| part.order.number != number || part.has_ended)
    }

    /// Notes bytes: copied, to copy in all, and stored.
    pub fn note_progress(&self, copied: u64, total: u64, stored: u64) {
        self.0.copied_bytes.store(copied, Ordering::Relaxed);
        self.0.total_bytes.store(total, Ordering::Relaxed);
        self.0.stored_bytes.store(stored, Ordering::Relaxed);
    }

    /// The copy has ended: with the last commit that it includes, or with an error.
    pub fn finish(&self, number: u64, result: std::result::Result<CommitNumber, Box<str>>) {
        let mut state = self.lock();
        if let Some(part) = state.part.as_mut().filter(|part| part.order.number == number) {
            part.result.get_or_insert(result);
        }
    }

    fn begin(&self, store: Box<str>, name: Box<str>) -> std::result::Result<(), &'static str> {
        let mut state = self.lock();
        if !state.has_copier {
            return Err("it copies no files");
        }
        state.last_number += 1;
        let order = PartOrder { number: state.last_number, store, name };
        state.part = Some(Part { order, is_taken: false, has_ended: false, newest: None, until: None, result: None });
        self.note_progress(0, 0, 0);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Lets the part of this name go on to this number. The error says why it is of no use.
    fn copy(&self, name: &str, until: CommitNumber) -> std::result::Result<(), Box<str>> {
        let mut state = self.lock();
        let part = state.part.as_mut().filter(|part| &*part.order.name == name && !part.has_ended);
        let part = part.ok_or_else(|| format!("it has no part of backup '{name}'"))?;
        if let Some(Err(error)) = &part.result {
            return Err(error.clone());
        }
        part.until.get_or_insert(until);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Ends the part of this name, or any. The error says why it is incomplete.
    fn end(&self, name: Option<&str>, reason: &str) -> std::result::Result<(), Box<str>> {
        let mut state = self.lock();
        let is_named = |part: &&mut Part| name.is_none_or(|name| &*part.order.name == name) && !part.has_ended;
        let part = state.part.as_mut().filter(is_named);
        let part = part.ok_or_else(|| format!("it has no part of backup '{}'", name.unwrap_or_default()))?;
        part.has_ended = true;
        self.0.changed.notify_all();
        match part.result.get_or_insert_with(|| Err(reason.into())) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.clone()),
        }
    }

    /// The part failed after its end: the files were not kept.
    fn fail(&self, reason: &str) {
        if let Some(part) = &mut self.lock().part {
            part.result = Some(Err(reason.into()));
        }
    }

    /// The row of `junctor_info.backups`, without the node.
    fn row(&self) -> Option<Vec<Value>> {
        let state = self.lock();
        let part = state.part.as_ref()?;
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let number = |number: Option<CommitNumber>| number.map_or(Value::Null, |number| Value::UInt(number.0));
        let bytes = |bytes: &AtomicU64| Value::UInt(bytes.load(Ordering::Relaxed));
        let last = part.result.as_ref().and_then(|result| result.as_ref().ok().copied());
        let error = part.result.as_ref().and_then(|result| result.as_ref().err());
        Some(vec![
            text(&part.order.name),
            text(&part.order.store),
            text(part.state()),
            number(part.newest),
            number(last),
            bytes(&self.0.copied_bytes),
            bytes(&self.0.total_bytes),
            bytes(&self.0.stored_bytes),
            error.map_or(Value::Null, |error| text(error)),
        ])
    }
}

impl MainBlock {
    /// Takes a step of this node's part of a backup. Error 1296 says why the part is of no use, or not
    /// possible.
    pub(super) fn on_backup_step(&mut self, step: BackupStep, now: Time, outbox: &mut Outbox<Signal>) -> Result<()> {
        let node = self.own.node.0;
        let refuse = |why: &str| {
            let message = format!("Got temporary error: node {node} takes no part in a backup: {why}");
            Error::new(ErrorCode::TemporaryFailure, message)
        };
        let desk = self.configuration.supervision.backup.clone();
        match step {
            BackupStep::Begin { store, name } => {
                if self.backup_part.heard.is_some() {
                    return Err(refuse("it takes part in one already"));
                }
                if !self.has_all_on_disk() {
                    return Err(refuse("it has not all rows of its group in memory and on disk"));
                }
                desk.begin(store, name).map_err(refuse)?;
                self.lock_for_backup(HOLDER, outbox);
                self.backup_part.heard = Some(now);
            }
            BackupStep::Copy { name, until } => {
                desk.copy(&name, until).map_err(|error| refuse(&error))?;
                self.backup_part.heard = Some(now);
            }
            BackupStep::End { name } => {
                let complete = desk.end(Some(&name), "it was ended before its copy was complete");
                let kept = match self.backup_part.heard.take() {
                    Some(_) => self.unlock_for_backup(HOLDER, outbox),
                    None => Ok(()),
                };
                complete.map_err(|error| refuse(&error))?;
                kept.inspect_err(|error| desk.fail(&error.message))?;
            }
        }
        Ok(())
    }

    /// Whether this node serves, and its disk counts.
    fn has_all_on_disk(&self) -> bool {
        let record = self.own_record();
        self.configuration.log.is_some() && record.is_some_and(|record| record.is_serving() && record.is_durable)
    }

    /// Gives up a part that nobody asks about.
    pub(super) fn abandon_backup_part(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        if self.backup_part.heard.is_some_and(|heard| now.since(heard) >= SILENCE_MAX) {
            self.backup_part.heard = None;
            // The row of the part has the reason.
            let _ = self.configuration.supervision.backup.end(None, "the session that directs the backup is gone");
            self.configuration.supervision.backup.fail("the session that directs the backup is gone");
            let _ = self.unlock_for_backup(HOLDER, outbox);
        }
    }

    /// The rows of `junctor_info.backups` of this node.
    pub(super) fn backup_rows(&self) -> Vec<Vec<Value>> {
        let row = self.configuration.supervision.backup.row();
        row.map(|row| [vec![Value::UInt(self.own.node.0.into())], row].concat()).into_iter().collect()
    }
}
