//! The thread that writes the logs of the server to their files.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use junctor_signals::journal::{Entry, Journal, LogEvent, LoggedClient, Severity, SlowStatement};

/// Maximum number of lines of the error log in a second. The others are counted.
const LINES_PER_SECOND: u32 = 50;

/// Maximum number of logins, refusals and ends of sessions in the audit log in a second. The others are
/// counted. Changes of schema, rights and settings are always written.
const AUDITED_LOGINS_PER_SECOND: u32 = 1000;

/// Others must not read the statements of clients.
const FILE_MODE: u32 = 0o640;

/// Time after which lines that wait in memory are written.
const FLUSH_AFTER: Duration = Duration::from_millis(200);

/// Where the logs go, and in which form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFiles {
    /// `log_error`; `None` is standard error.
    pub error: Option<PathBuf>,
    /// `general_log_file`; `None` is standard error, as in the next two.
    pub general: Option<PathBuf>,
    /// `slow_query_log_file`.
    pub slow: Option<PathBuf>,
    /// `audit_log_file`.
    pub audit: Option<PathBuf>,
    /// Whether error log and audit log have a JSON object in each line.
    pub is_json: bool,
}

/// Starts the thread. It ends when every holder of the journal has let go of it.
///
/// # Errors
/// No thread can be started.
pub fn start(files: LogFiles, journal: &Arc<Journal>, entries: Receiver<Entry>) -> std::io::Result<JoinHandle<()>> {
    let journal = Arc::downgrade(journal);
    let mut writer = JournalWriter::new(files);
    std::thread::Builder::new().name("logs".into()).spawn(move || {
        loop {
            match entries.recv_timeout(FLUSH_AFTER) {
                Ok(entry) => {
                    if let Some(journal) = journal.upgrade() {
                        journal.note_taken(&entry);
                        writer.report_dropped(entry.wall_clock_us, journal.dropped());
                    }
                    writer.write(&entry);
                }
                Err(RecvTimeoutError::Timeout) => writer.flush(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        writer.flush();
    })
}

/// A file that is opened at its first line.
struct LogFile {
    path: Option<PathBuf>,
    file: Option<BufWriter<File>>,
    /// Whether the last attempt to open or write failed. The failure is reported once.
    has_failed: bool,
}

impl LogFile {
    fn new(path: Option<PathBuf>) -> LogFile {
        LogFile { path, file: None, has_failed: false }
    }

    fn line(&mut self, line: &[u8]) {
        let Some(path) = &self.path else {
            // Nobody can be told that standard error is closed.
            let _ = std::io::stderr().write_all(line);
            return;
        };
        let opened = match self.file.take() {
            Some(file) => Ok(file),
            None => OpenOptions::new().create(true).append(true).mode(FILE_MODE).open(path).map(BufWriter::new),
        };
        match opened.and_then(|mut file| file.write_all(line).map(|()| file)) {
            Ok(file) => (self.file, self.has_failed) = (Some(file), false),
            Err(error) if !self.has_failed => {
                self.has_failed = true;
                eprintln!("level=warning cannot write to {}: {error}", path.display());
            }
            Err(_) => {}
        }
    }

    fn flush(&mut self) {
        if let Some(file) = &mut self.file
            && file.flush().is_err()
        {
            self.file = None;
        }
    }
}

struct JournalWriter {
    error: LogFile,
    general: LogFile,
    slow: LogFile,
    audit: LogFile,
    is_json: bool,
    dropped: u64,
    /// The lines of the error log.
    lines: Window,
    /// The logins of the audit log.
    logins: Window,
}

/// How many lines a log has had within a second.
#[derive(Default)]
struct Window {
    second: u64,
    lines: u32,
    left_out: u64,
}

impl Window {
    /// Counts a line. `None` if the second has too many; otherwise the number of lines that an earlier second
    /// has left out, once.
    fn admit(&mut self, now_us: u64, lines_max: u32) -> Option<u64> {
        let second = now_us / 1_000_000;
        let mut missing = 0;
        if self.second != second {
            (self.second, self.lines) = (second, 0);
            missing = std::mem::take(&mut self.left_out);
        }
        self.lines += 1;
        if self.lines > lines_max {
            self.left_out += 1;
            return None;
        }
        Some(missing)
    }
}

impl JournalWriter {
    fn new(files: LogFiles) -> JournalWriter {
        JournalWriter {
            error: LogFile::new(files.error),
            general: LogFile::new(files.general),
            slow: LogFile::new(files.slow),
            audit: LogFile::new(files.audit),
            is_json: files.is_json,
            dropped: 0,
            lines: Window::default(),
            logins: Window::default(),
        }
    }

    fn flush(&mut self) {
        for file in [&mut self.error, &mut self.general, &mut self.slow, &mut self.audit] {
            file.flush();
        }
    }

    fn report_dropped(&mut self, now_us: u64, dropped: u64) {
        if dropped > self.dropped {
            let text = format!("{} entries of logs were dropped, because too many waited", dropped - self.dropped);
            self.dropped = dropped;
            self.error_line(now_us, Severity::Warning, &text);
        }
    }

    fn write(&mut self, entry: &Entry) {
        let time = utc(entry.wall_clock_us);
        match &entry.event {
            LogEvent::Command(client, command, text) => {
                let line = format!("{time}\t{:>5} {command}\t", client.connection);
                self.general.line(&[line.as_bytes(), text, b"\n"].concat());
            }
            LogEvent::Slow(client, statement, text) => {
                let head = slow_head(&time, entry.wall_clock_us, client, statement);
                self.slow.line(&[head.as_bytes(), text, b";\n"].concat());
            }
            LogEvent::Audit(client, event, errno, text) => {
                if matches!(*event, "connect" | "refused" | "disconnect") {
                    let admitted = self.logins.admit(entry.wall_clock_us, AUDITED_LOGINS_PER_SECOND);
                    let Some(missing) = admitted else { return };
                    if missing > 0 {
                        let text = format!("{missing} logins, refusals and ends of sessions were left out");
                        let nobody = LoggedClient::default();
                        let line = audit_line(&time, &nobody, ("left_out", 0, text.as_bytes()), self.is_json);
                        self.audit.line(line.as_bytes());
                    }
                }
                let line = audit_line(&time, client, (event, *errno, text), self.is_json);
                self.audit.line(line.as_bytes());
            }
            LogEvent::Line(severity, text) => self.error_line(entry.wall_clock_us, *severity, text),
            LogEvent::Reopen => {
                self.flush();
                for file in [&mut self.error, &mut self.general, &mut self.slow, &mut self.audit] {
                    file.file = None;
                }
            }
        }
    }

    /// Writes a line of the error log, unless its second has too many.
    fn error_line(&mut self, now_us: u64, severity: Severity, text: &str) {
        let Some(missing) = self.lines.admit(now_us, LINES_PER_SECOND) else { return };
        let time = utc(now_us);
        if missing > 0 {
            let text =
                format!("{missing} lines were left out, because there were more than {LINES_PER_SECOND} in a second");
            self.error.line(error_text(&time, Severity::Warning, &text, self.is_json).as_bytes());
        }
        self.error.line(error_text(&time, severity, text, self.is_json).as_bytes());
        self.error.flush();
    }
}

/// The lines before the text of a statement, as in MySQL's log, so that its tools can read them. Rows are not
/// counted where they are read.
fn slow_head(time: &str, wall_clock_us: u64, client: &LoggedClient, statement: &SlowStatement) -> String {
    let SlowStatement { took_us, rows_sent, database, .. } = statement;
    let database = match database.is_empty() {
        true => String::new(),
        false => format!("use {};\n", one_line(database)),
    };
    format!(
        "# Time: {time}\n# User@Host: {}  Id: {:>5}\n# Query_time: {}.{:06}  Lock_time: 0.000000 \
         Rows_sent: {rows_sent}  Rows_examined: 0\n{database}SET timestamp={};\n",
        one_line(&client.user_host()),
        client.connection,
        took_us / 1_000_000,
        took_us % 1_000_000,
        wall_clock_us.saturating_sub(*took_us) / 1_000_000
    )
}

fn error_text(time: &str, severity: Severity, text: &str, is_json: bool) -> String {
    let severity = match severity {
        Severity::Warning => "Warning",
        Severity::Note => "Note",
    };
    match is_json {
        true => format!("{{\"time\":\"{time}\",\"level\":\"{severity}\",\"message\":{}}}\n", json_text(text)),
        false => format!("{time} 0 [{severity}] [Server] {}\n", one_line(text)),
    }
}

fn audit_line(time: &str, client: &LoggedClient, (event, errno, text): (&str, u16, &[u8]), is_json: bool) -> String {
    let LoggedClient { connection, user, host } = client;
    let text = String::from_utf8_lossy(text);
    match is_json {
        true => format!(
            "{{\"time\":\"{time}\",\"event\":\"{event}\",\"connection\":{connection},\"user\":{},\"host\":{},\
             \"error\":{errno},\"text\":{}}}\n",
            json_text(user),
            json_text(host),
            json_text(&text)
        ),
        false => format!(
            "{time} {event} connection={connection} user='{}' host='{}' error={errno} {}\n",
            one_line(user),
            one_line(host),
            one_line(&text)
        ),
    }
}

/// A text without line ends and other control characters, so that nobody can forge a line.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn json_text(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for letter in text.chars() {
        match letter {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            letter if letter.is_control() => json.push_str(&format!("\\u{:04x}", letter as u32)),
            letter => json.push(letter),
        }
    }
    json.push('"');
    json
}

/// A time as `2026-01-31T12:00:00.000000Z`.
fn utc(wall_clock_us: u64) -> String {
    let (seconds, microseconds) = (wall_clock_us / 1_000_000, wall_clock_us % 1_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 0000-03-01, so that the leap day ends a year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.{microseconds:06}Z", second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> LoggedClient {
        LoggedClient { connection: 7, user: "an'n\n".into(), host: "localhost".into() }
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(utc(951_782_400_000_001), "2000-02-29T00:00:00.000001Z");
        assert_eq!(utc(1_798_761_599_999_999), "2026-12-31T23:59:59.999999Z");
    }

    #[test]
    fn no_text_can_forge_a_line() {
        let text = b"DROP TABLE t\n2026-01-01T00:00:00Z connect";
        for is_json in [true, false] {
            let line = audit_line("T", &client(), ("schema", 1051, text), is_json);
            assert_eq!(line.matches('\n').count(), 1, "{line}");
        }
        let json = audit_line("T", &client(), ("schema", 1051, b"a\"\\\x01"), true);
        assert!(json.contains(r#""user":"an'n\n""#) && json.contains(r#""text":"a\"\\\u0001""#), "{json}");
    }

    #[test]
    fn files_are_appended_to_and_opened_again_and_the_error_log_has_few_lines_in_a_second() {
        let folder = std::env::temp_dir().join(format!("junctor-logs-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = |name: &str| Some(folder.join(name));
        let files = LogFiles {
            error: path("error"),
            general: path("general"),
            slow: path("slow"),
            audit: path("audit"),
            is_json: false,
        };
        let mut writer = JournalWriter::new(files);
        let entry = |event| Entry { wall_clock_us: 0, event };
        writer.write(&entry(LogEvent::Command(client(), "Query", b"SELECT 1"[..].into())));
        writer.flush();
        std::fs::rename(folder.join("general"), folder.join("general.1")).expect("a rotation");
        writer.write(&entry(LogEvent::Reopen));
        writer.write(&entry(LogEvent::Command(client(), "Query", b"SELECT 2"[..].into())));
        let slow = SlowStatement { took_us: 1_500_000, rows_sent: 7, database: "d".into(), ..Default::default() };
        writer
            .write(&Entry { wall_clock_us: 9_000_000, event: LogEvent::Slow(client(), slow, b"SELECT 3"[..].into()) });
        for _ in 0..1000 {
            writer.write(&entry(LogEvent::Line(Severity::Warning, "again".into())));
        }
        writer.error_line(2_000_000, Severity::Note, "later");
        let audit = |wall_clock_us, event| Entry {
            wall_clock_us,
            event: LogEvent::Audit(client(), event, 1045, Box::default()),
        };
        for _ in 0..3000 {
            writer.write(&audit(0, "refused"));
            writer.write(&audit(0, "rights"));
        }
        writer.write(&audit(2_000_000, "connect"));
        writer.flush();
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a log");
        assert!(read("general.1").ends_with("7 Query\tSELECT 1\n") && read("general").ends_with("7 Query\tSELECT 2\n"));
        let slow = "# Query_time: 1.500000  Lock_time: 0.000000 Rows_sent: 7  Rows_examined: 0\nuse d;\n\
                    SET timestamp=7;\nSELECT 3;\n";
        assert!(read("slow").ends_with(slow), "{}", read("slow"));
        let audit = read("audit");
        let count = |event: &str| audit.lines().filter(|line| line.contains(&format!("Z {event} "))).count();
        assert_eq!(["refused", "rights", "left_out", "connect"].map(count), [1000, 3000, 1, 1]);
        assert!(audit.contains("2000 logins, refusals and ends of sessions were left out"));
        let error = read("error");
        assert_eq!(error.lines().count(), LINES_PER_SECOND as usize + 2);
        assert!(error.contains("950 lines were left out"), "{error}");
        std::fs::remove_dir_all(folder).expect("the folder");
    }
}
