//! What the logs of the server record: the audit log, the general log, the slow query log and the error log.
//! Blocks hand over entries and never wait. A thread outside of the data plane writes them. An entry that
//! finds no room is dropped and counted. Part of the closed list of invariant 2.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::log_table::LogTable;

/// Maximum number of entries that wait to be written.
const ENTRIES_MAX: usize = 8192;

/// Maximum number of bytes of text that wait to be written.
const BYTES_MAX: usize = 16 << 20;

/// Maximum length of one text. A longer one is cut.
pub const TEXT_BYTES_MAX: usize = 16 << 10;

/// A log that can be switched on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LogKind {
    /// Every command: `general_log`.
    General = 1,
    /// Statements that took long: `slow_query_log`.
    Slow = 2,
    /// Connections, and changes of the schema and of rights: `audit_log`.
    Audit = 4,
}

/// How serious a line of the error log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Somebody should look.
    Warning,
    /// Something happened.
    Note,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Microseconds since 1970-01-01 UTC.
    pub wall_clock_us: u64,
    /// The rest.
    pub event: LogEvent,
}

/// The client of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedClient {
    /// Number of the connection.
    pub connection: u32,
    /// User name; empty before the login.
    pub user: Box<str>,
    /// Its address.
    pub host: Box<str>,
}

impl LoggedClient {
    /// User and client as MySQL's logs have them: `user[user] @ host []`, or `user[user] @  [address]`.
    pub fn user_host(&self) -> String {
        let LoggedClient { user, host, .. } = self;
        match host.parse::<std::net::IpAddr>() {
            Ok(address) => format!("{user}[{user}] @  [{address}]"),
            Err(_) => format!("{user}[{user}] @ {host} []"),
        }
    }
}

/// The facts of the slow query log about a statement, without its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlowStatement {
    /// How long it took, in microseconds.
    pub took_us: u64,
    /// Number of rows of its answer.
    pub rows_sent: u64,
    /// LAST_INSERT_ID() after the statement.
    pub last_insert_id: u64,
    /// The database of the session; empty without one.
    pub database: Box<str>,
}

/// What happened. Texts have no passwords.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// A command, for the general log.
    Command(LoggedClient, &'static str, Box<[u8]>),
    /// A statement that took long, for the slow query log.
    Slow(LoggedClient, SlowStatement, Box<[u8]>),
    /// An event for the audit log: its name, its error number (0 without one), and its text.
    Audit(LoggedClient, &'static str, u16, Box<[u8]>),
    /// A line of the error log.
    Line(Severity, Box<str>),
    /// FLUSH LOGS: the files are opened again.
    Reopen,
}

/// Takes entries for the logs.
#[derive(Debug, Default)]
pub struct Journal {
    /// The bits of the [`LogKind`]s that are on.
    switches: AtomicUsize,
    sender: Option<SyncSender<Entry>>,
    waiting_bytes: AtomicUsize,
    dropped: AtomicU64,
    /// Whether `log_output` lacks FILE, and has TABLE.
    without_files: AtomicBool,
    with_tables: AtomicBool,
    /// The entries of `mysql.general_log`.
    pub general: LogTable,
    /// The entries of `mysql.slow_log`.
    pub slow: LogTable,
}

impl Journal {
    /// A journal, and the other end of its queue. All logs are off.
    pub fn new() -> (Journal, Receiver<Entry>) {
        let (sender, receiver) = sync_channel(ENTRIES_MAX);
        (Journal { sender: Some(sender), ..Journal::default() }, receiver)
    }

    /// Whether a log is on.
    #[inline]
    pub fn is_on(&self, kind: LogKind) -> bool {
        self.switches.load(Ordering::Relaxed) & kind as usize != 0
    }

    /// Whether a log that records statements is on.
    #[inline]
    pub fn records_statements(&self) -> bool {
        self.switches.load(Ordering::Relaxed) != 0
    }

    /// Switches a log.
    pub fn switch(&self, kind: LogKind, is_on: bool) {
        match is_on {
            true => self.switches.fetch_or(kind as usize, Ordering::Relaxed),
            false => self.switches.fetch_and(!(kind as usize), Ordering::Relaxed),
        };
    }

    /// Sets where the general log and the slow query log go.
    pub fn set_outputs(&self, files: bool, tables: bool) {
        self.without_files.store(!files, Ordering::Relaxed);
        self.with_tables.store(tables, Ordering::Relaxed);
    }

    /// Takes an entry. Drops it if too many wait for the files.
    pub fn write(&self, wall_clock_us: u64, event: LogEvent) {
        let table = match &event {
            LogEvent::Command(..) => Some(&self.general),
            LogEvent::Slow(..) => Some(&self.slow),
            LogEvent::Audit(..) | LogEvent::Line(..) | LogEvent::Reopen => None,
        };
        if let Some(table) = table {
            if self.with_tables.load(Ordering::Relaxed) {
                table.push(Entry { wall_clock_us, event: event.clone() });
            }
            if self.without_files.load(Ordering::Relaxed) {
                return;
            }
        }
        self.send(wall_clock_us, event);
    }

    fn send(&self, wall_clock_us: u64, event: LogEvent) {
        let Some(sender) = &self.sender else { return };
        let bytes = event.bytes();
        let waiting = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        if waiting + bytes > BYTES_MAX || sender.try_send(Entry { wall_clock_us, event }).is_err() {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that the writer has taken an entry.
    pub fn note_taken(&self, entry: &Entry) {
        self.waiting_bytes.fetch_sub(entry.event.bytes(), Ordering::Relaxed);
    }

    /// Entries dropped since the start, because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl LogEvent {
    /// Bytes of its text.
    pub fn bytes(&self) -> usize {
        match self {
            LogEvent::Command(_, _, text) | LogEvent::Slow(_, _, text) | LogEvent::Audit(_, _, _, text) => text.len(),
            LogEvent::Line(_, text) => text.len(),
            LogEvent::Reopen => 0,
        }
    }
}

/// A text, cut to the maximum length.
pub fn cut(text: &[u8]) -> Box<[u8]> {
    text[..text.len().min(TEXT_BYTES_MAX)].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_nobody_empties_drops_and_counts() {
        let (journal, receiver) = Journal::new();
        let text = vec![b'x'; TEXT_BYTES_MAX];
        let entry = || LogEvent::Command(LoggedClient::default(), "Query", cut(&text));
        let fitting = BYTES_MAX / TEXT_BYTES_MAX;
        for _ in 0..fitting + 10 {
            journal.write(0, entry());
        }
        assert_eq!(journal.dropped(), 10);
        let first = receiver.try_recv().expect("an entry");
        journal.note_taken(&first);
        journal.write(0, entry());
        assert_eq!(journal.dropped(), 10, "there is room again");
        for _ in 0..ENTRIES_MAX {
            journal.write(0, LogEvent::Reopen);
        }
        assert_eq!(journal.dropped(), 10 + fitting as u64, "the number of entries is bounded, too");
    }

    #[test]
    fn outputs_are_files_and_tables_and_concern_two_logs() {
        let (journal, receiver) = Journal::new();
        let all = || {
            journal.write(1, LogEvent::Command(LoggedClient::default(), "Query", Box::default()));
            journal.write(2, LogEvent::Slow(LoggedClient::default(), SlowStatement::default(), Box::default()));
            journal.write(3, LogEvent::Line(Severity::Note, "".into()));
            let sent: Vec<u64> = receiver.try_iter().map(|entry| entry.wall_clock_us).collect();
            (sent, journal.general.entries().len(), journal.slow.entries().len())
        };
        assert_eq!(all(), (vec![1, 2, 3], 0, 0), "files by default");
        journal.set_outputs(true, true);
        assert_eq!(all(), (vec![1, 2, 3], 1, 1));
        journal.set_outputs(false, true);
        assert_eq!(all(), (vec![3], 2, 2));
        journal.set_outputs(false, false);
        assert_eq!(all(), (vec![3], 2, 2));
    }

    #[test]
    fn clients_are_written_as_in_the_logs_of_mysql() {
        let of = |host: &str| LoggedClient { connection: 1, user: "u".into(), host: host.into() }.user_host();
        assert_eq!((of("localhost"), of("::1")), ("u[u] @ localhost []".into(), "u[u] @  [::1]".into()));
    }

    #[test]
    fn logs_are_switched_one_by_one() {
        let journal = Journal::default();
        assert!(!journal.records_statements());
        journal.switch(LogKind::Slow, true);
        journal.switch(LogKind::Audit, true);
        journal.switch(LogKind::Slow, false);
        assert!(journal.is_on(LogKind::Audit) && !journal.is_on(LogKind::Slow) && !journal.is_on(LogKind::General));
    }
}
