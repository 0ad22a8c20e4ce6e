//! Tells clients about the session's transaction (`session_track_transaction_info`), in MySQL's forms: eight
//! letters for its state, and the statements that would begin it elsewhere.

use super::context::StatementContext;
use super::session::Session;
use crate::mysql_catalog::variable::{IsolationChoice, find};
use crate::result::StateChange;
use junctor_model::value::Value;

/// What SET TRANSACTION and START TRANSACTION have chosen for one transaction; `None` for the session's
/// value.
type Choices = (Option<IsolationChoice>, Option<bool>);

/// The transaction of a session whose client wants to know it.
#[derive(Debug, Default)]
pub(crate) struct TransactionTracker {
    /// Whether the client also wants the characteristics.
    tells_characteristics: bool,
    /// Whether START TRANSACTION has begun the open transaction.
    is_explicit: bool,
    has_snapshot: bool,
    reads: bool,
    writes: bool,
    sends_rows: bool,
    /// The choices for the open transaction.
    choices: Choices,
    /// The choices that the client knows.
    told_choices: Choices,
    /// The state that the client knows.
    told_state: Option<[u8; 8]>,
    /// Whether START TRANSACTION, or the end of its transaction, has not been told.
    is_changed: bool,
}

impl TransactionTracker {
    /// A statement of the open transaction uses a table.
    pub fn note_use(&mut self, writes: bool) {
        self.reads |= !writes;
        self.writes |= writes;
    }

    /// A transaction begins.
    pub fn begin(&mut self, choices: Choices) {
        self.choices = choices;
    }

    /// START TRANSACTION has begun the transaction.
    pub fn begin_explicitly(&mut self, has_snapshot: bool) {
        (self.is_explicit, self.has_snapshot, self.is_changed) = (true, has_snapshot, true);
    }

    /// The transaction has ended.
    pub fn end(&mut self) {
        self.is_changed |= self.is_explicit;
        (self.is_explicit, self.has_snapshot) = (false, false);
        (self.reads, self.writes, self.sends_rows) = (false, false, false);
    }

    fn state(&self, is_open: bool, locks_tables: bool) -> [u8; 8] {
        let begun = match (is_open, self.is_explicit) {
            (false, _) => b'_',
            (true, true) => b'T',
            (true, false) => b'I',
        };
        let flag = |letter: u8, is_set: bool| if is_set { letter } else { b'_' };
        // All tables are transactional, and no statement is unsafe for replication.
        [
            begun,
            b'_',
            flag(b'R', is_open && self.reads),
            b'_',
            flag(b'W', is_open && self.writes),
            b'_',
            flag(b'S', is_open && self.sends_rows),
            flag(b'L', locks_tables),
        ]
    }

    /// The statements that would begin the same transaction.
    fn characteristics(&self, (isolation, read_only): Choices) -> String {
        let mut statements = Vec::new();
        if let Some(isolation) = isolation {
            statements.push(format!("SET TRANSACTION ISOLATION LEVEL {};", isolation.name().replace('-', " ")));
        }
        let access = read_only.map(|read_only| if read_only { "READ ONLY" } else { "READ WRITE" });
        match (self.is_explicit, access) {
            (true, access) => {
                let snapshot = if self.has_snapshot { " WITH CONSISTENT SNAPSHOT" } else { "" };
                let comma = if self.has_snapshot && access.is_some() { "," } else { "" };
                let access = access.map(|access| format!(" {access}")).unwrap_or_default();
                statements.push(format!("START TRANSACTION{snapshot}{comma}{access};"));
            }
            (false, Some(access)) => statements.push(format!("SET TRANSACTION {access};")),
            (false, None) => {}
        }
        statements.join(" ")
    }
}

impl Session {
    /// Begins or ends to track the transaction, as `session_track_transaction_info` says. The next OK packet
    /// then tells its state.
    pub(crate) fn track_transaction(&mut self) {
        let wanted = find("session_track_transaction_info").map(|id| self.variables.value(id));
        let tells_characteristics = match &wanted {
            Some(Value::Bytes(word)) if self.tracks_state && word == b"STATE" => false,
            Some(Value::Bytes(word)) if self.tracks_state && word == b"CHARACTERISTICS" => true,
            _ => return self.tracker = None,
        };
        let tracker = self.tracker.get_or_insert_default();
        tracker.tells_characteristics = tells_characteristics;
        tracker.is_changed = true;
    }
}

impl StatementContext<'_, '_> {
    /// Adds what the client does not know of the transaction to the changes of the next OK packet.
    #[cold]
    pub(super) fn tell_transaction(&mut self) {
        let session = &mut *self.session;
        let Some(tracker) = &mut session.tracker else { return };
        let state = tracker.state(session.is_open, session.table_locks.is_some());
        if tracker.told_state != Some(state) {
            tracker.told_state = Some(state);
            session.state_changes.push(StateChange::TransactionState(state));
        }
        let choices = if session.is_open { tracker.choices } else { session.variables.next_choices() };
        if tracker.tells_characteristics && (tracker.is_changed || tracker.told_choices != choices) {
            let text = tracker.characteristics(choices);
            session.state_changes.push(StateChange::TransactionCharacteristics(text.into()));
            tracker.is_changed = false;
        }
        tracker.told_choices = choices;
    }

    /// Notes that rows are sent, and tells the client about the transaction if the end of the rows can.
    #[cold]
    pub(super) fn tell_after_rows(&mut self) {
        if let Some(tracker) = &mut self.session.tracker {
            tracker.sends_rows = self.session.is_open;
        }
        if self.sink.ends_rows_with_changes() {
            self.tell_transaction();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characteristics_are_the_statements_that_begin_the_transaction() {
        let mut tracker = TransactionTracker::default();
        let serializable = Some(IsolationChoice::Serializable);
        assert_eq!(tracker.characteristics((None, None)), "");
        assert_eq!(tracker.characteristics((None, Some(true))), "SET TRANSACTION READ ONLY;");
        assert_eq!(
            tracker.characteristics((serializable, Some(false))),
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SET TRANSACTION READ WRITE;"
        );
        tracker.begin_explicitly(false);
        assert_eq!(tracker.characteristics((None, None)), "START TRANSACTION;");
        assert_eq!(
            tracker.characteristics((Some(IsolationChoice::ReadCommitted), Some(true))),
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ ONLY;"
        );
        tracker.begin_explicitly(true);
        assert_eq!(tracker.characteristics((None, None)), "START TRANSACTION WITH CONSISTENT SNAPSHOT;");
        assert_eq!(
            tracker.characteristics((None, Some(true))),
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY;"
        );
    }
}
