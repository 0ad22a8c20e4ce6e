//! The statements that connections send.

use std::fmt::Write;

use crate::mysql::request::{push_execute, push_query};
use crate::random::Random;

/// Rows per range, as in sysbench.
const RANGE_ROWS: u64 = 100;
const LIST_KEYS: usize = 100;
const POINTS: u8 = 10;

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// One row by its key, as text.
    PointText,
    /// One row by its key, as a prepared statement.
    PointPrepared,
    /// 100 rows by their keys, as text.
    InList,
    /// 100 rows of a range of keys, as text.
    Range,
    /// An UPDATE of an indexed column by the key, as text.
    Update,
    /// sysbench's oltp_update_non_index: an UPDATE of a column without an index by the key, as text.
    UpdateNonIndex,
    /// The same UPDATE between BEGIN and COMMIT.
    UpdateTransaction,
    /// An INSERT of a row with an AUTO_INCREMENT key, as text. It makes the table longer.
    Insert,
    /// The transaction of sysbench's oltp_read_write, as text: 10 point selects, 4 ranges, 2 updates, DELETE
    /// and INSERT.
    ReadWrite,
}

/// Uniformly distributed keys of the table.
pub struct Keys {
    rows: u64,
    random: Random,
}

impl Keys {
    /// Keys from 1 to `rows`.
    pub fn new(rows: u64, random: Random) -> Keys {
        Keys { rows, random }
    }

    fn next(&mut self) -> u64 {
        1 + self.random.below(self.rows)
    }
}

/// The position of a connection within its operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    step: u8,
    /// The row that the operation deletes and inserts again.
    key: u64,
}

/// The statement that [`Work::PointPrepared`] prepares.
pub const PREPARED: &str = "SELECT c FROM sbtest1 WHERE id=?";

impl Work {
    /// All kinds.
    pub const ALL: [Work; 9] = [
        Work::PointText,
        Work::PointPrepared,
        Work::InList,
        Work::Range,
        Work::Update,
        Work::UpdateNonIndex,
        Work::UpdateTransaction,
        Work::Insert,
        Work::ReadWrite,
    ];

    /// Name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Work::PointText => "point-text",
            Work::PointPrepared => "point-prepared",
            Work::InList => "in-list",
            Work::Range => "range",
            Work::Update => "update",
            Work::UpdateNonIndex => "update-non-index",
            Work::UpdateTransaction => "update-transaction",
            Work::Insert => "insert",
            Work::ReadWrite => "read-write",
        }
    }

    /// Number of statements of an operation.
    pub fn statements(self) -> u8 {
        match self {
            Work::ReadWrite => POINTS + 10,
            Work::UpdateTransaction => 3,
            _ => 1,
        }
    }

    /// The kind with this name.
    pub fn of_name(name: &str) -> Option<Work> {
        Work::ALL.into_iter().find(|work| work.name() == name)
    }

    /// Whether a conflict with other connections can make the server refuse a statement.
    pub fn may_be_refused(self) -> bool {
        matches!(self, Work::Update | Work::UpdateNonIndex | Work::UpdateTransaction | Work::ReadWrite)
    }

    /// Replaces the contents of `request` by the next statement; `statement` is the id of the prepared
    /// statement. Returns whether its reply ends the operation.
    pub fn push_next(self, progress: &mut Progress, statement: u32, keys: &mut Keys, request: &mut Vec<u8>) -> bool {
        request.clear();
        let key = keys.next();
        match self {
            Work::PointText => push_text(request, format_args!("SELECT c FROM sbtest1 WHERE id={key}")),
            Work::PointPrepared => push_execute(request, statement, &[key as i64]),
            Work::InList => push_list(keys, request),
            Work::Range => {
                let last = key + RANGE_ROWS - 1;
                push_text(request, format_args!("SELECT c FROM sbtest1 WHERE id BETWEEN {key} AND {last}"));
            }
            Work::Update => push_text(request, format_args!("UPDATE sbtest1 SET k=k+1 WHERE id={key}")),
            Work::UpdateNonIndex => push_update(key, keys, request),
            Work::UpdateTransaction => {
                let step = progress.step;
                progress.step = (step + 1) % self.statements();
                match step {
                    0 => push_query(request, "BEGIN"),
                    1 => push_update(key, keys, request),
                    _ => push_query(request, "COMMIT"),
                }
                return progress.step == 0;
            }
            Work::Insert => {
                let k = keys.next();
                push_text(
                    request,
                    format_args!("INSERT INTO sbtest1 (k, c, pad) VALUES ({k}, '{key:0119}', '{key:059}')"),
                );
            }
            Work::ReadWrite => return push_step(progress, key, keys, request),
        }
        true
    }

    /// Replaces the contents of `request` by the ROLLBACK after a refusal. The operation then begins again.
    pub fn push_rollback(progress: &mut Progress, request: &mut Vec<u8>) {
        request.clear();
        *progress = Progress::default();
        push_query(request, "ROLLBACK");
    }
}

fn push_step(progress: &mut Progress, key: u64, keys: &mut Keys, request: &mut Vec<u8>) -> bool {
    let step = progress.step;
    progress.step += 1;
    let last = key.saturating_add(RANGE_ROWS - 1);
    match step.checked_sub(POINTS) {
        None if step == 0 => push_query(request, "BEGIN"),
        None | Some(0) => push_text(request, format_args!("SELECT c FROM sbtest1 WHERE id={key}")),
        Some(1) => push_text(request, format_args!("SELECT c FROM sbtest1 WHERE id BETWEEN {key} AND {last}")),
        Some(2) => push_text(request, format_args!("SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN {key} AND {last}")),
        Some(3) => {
            push_text(request, format_args!("SELECT c FROM sbtest1 WHERE id BETWEEN {key} AND {last} ORDER BY c"));
        }
        Some(4) => push_text(
            request,
            format_args!("SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN {key} AND {last} ORDER BY c"),
        ),
        Some(5) => push_text(request, format_args!("UPDATE sbtest1 SET k=k+1 WHERE id={key}")),
        Some(6) => push_update(key, keys, request),
        Some(7) => {
            progress.key = key;
            push_text(request, format_args!("DELETE FROM sbtest1 WHERE id={key}"));
        }
        Some(8) => {
            let (id, k) = (progress.key, keys.next());
            push_text(
                request,
                format_args!("INSERT INTO sbtest1 (id, k, c, pad) VALUES ({id}, {k}, '{key:0119}', '{key:059}')"),
            );
        }
        Some(_) => {
            *progress = Progress::default();
            push_query(request, "COMMIT");
            return true;
        }
    }
    false
}

fn push_update(key: u64, keys: &mut Keys, request: &mut Vec<u8>) {
    let text = keys.random.below(100_000_000_000);
    push_text(request, format_args!("UPDATE sbtest1 SET c='{text:011}-{text:011}' WHERE id={key}"));
}

fn push_list(keys: &mut Keys, request: &mut Vec<u8>) {
    let mut text = String::from("SELECT id, k, c, pad FROM sbtest1 WHERE id IN (");
    for position in 0..LIST_KEYS {
        let separator = if position == 0 { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{}", keys.next());
    }
    text.push(')');
    push_query(request, &text);
}

fn push_text(request: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    push_query(request, &text.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(request: &[u8]) -> String {
        let length = u32::from_le_bytes([request[0], request[1], request[2], 0]) as usize;
        assert_eq!(request.len(), length + 4, "one whole packet");
        assert_eq!(request[4], 3, "a query");
        String::from_utf8(request[5..].to_vec()).expect("text")
    }

    #[test]
    fn a_transaction_has_the_statements_of_sysbench_and_leaves_as_many_rows() {
        let (mut progress, mut keys, mut request) = (Progress::default(), Keys::new(1000, Random::new(1)), Vec::new());
        let mut texts = Vec::new();
        loop {
            let ends = Work::ReadWrite.push_next(&mut progress, 0, &mut keys, &mut request);
            texts.push(text_of(&request));
            if ends {
                break;
            }
        }
        assert_eq!(progress, Progress::default());
        assert_eq!(texts.len(), usize::from(Work::ReadWrite.statements()));
        let count = |start: &str| texts.iter().filter(|text| text.starts_with(start)).count();
        assert_eq!([count("BEGIN"), count("SELECT c FROM sbtest1 WHERE id="), count("COMMIT")], [1, 10, 1]);
        assert_eq!([count("SELECT"), count("UPDATE"), texts.len()], [14, 2, 20]);
        let id_after = |text: &str, mark: &str| -> u64 {
            let rest = text.split(mark).nth(1).expect("the mark");
            rest.split(',').next().and_then(|id| id.parse().ok()).expect("an id")
        };
        assert_eq!(id_after(&texts[17], "WHERE id="), id_after(&texts[18], "VALUES ("));
    }

    #[test]
    fn an_update_in_a_transaction_has_three_statements() {
        let (mut progress, mut keys, mut request) = (Progress::default(), Keys::new(1000, Random::new(1)), Vec::new());
        for _ in 0..2 {
            for (start, ends) in [("BEGIN", false), ("UPDATE sbtest1 SET c=", false), ("COMMIT", true)] {
                assert_eq!(Work::UpdateTransaction.push_next(&mut progress, 0, &mut keys, &mut request), ends);
                assert!(text_of(&request).starts_with(start));
            }
        }
    }

    #[test]
    fn a_refused_transaction_begins_again() {
        let (mut progress, mut keys, mut request) = (Progress::default(), Keys::new(1000, Random::new(1)), Vec::new());
        for _ in 0..5 {
            Work::ReadWrite.push_next(&mut progress, 0, &mut keys, &mut request);
        }
        Work::push_rollback(&mut progress, &mut request);
        assert_eq!(text_of(&request), "ROLLBACK");
        Work::ReadWrite.push_next(&mut progress, 0, &mut keys, &mut request);
        assert_eq!(text_of(&request), "BEGIN");
    }

    #[test]
    fn every_work_is_found_by_its_name() {
        for work in Work::ALL {
            assert_eq!(Work::of_name(work.name()), Some(work));
        }
        assert_eq!(Work::of_name("scan"), None);
    }
}
