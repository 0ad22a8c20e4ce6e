//! The virtual tables whose rows are made from those that blocks report.

use std::fmt::Display;

use junctor_model::id::{IndexId, TableId};
use junctor_model::schema::{Dictionary, TableDefinition, TableKind};
use junctor_model::value::Value;
use junctor_signals::read_status::StatusTable;

use super::create_text::ENGINE;
use super::layout::bytes;
use super::performance_layout::{METADATA_LOCKS, THREADS};
use super::sys_schema::PROCESSES;

/// Makes a row from one that a block has reported; `None` if it has none.
type MakeRow = fn(&Dictionary, Vec<Value>) -> Option<Vec<Value>>;

/// A table of `information_schema`, `performance_schema` or `sys` whose rows blocks report, and what becomes
/// of each of their rows. Names of tables ignore case.
pub fn reported_rows(database: &str, table: &str) -> Option<(StatusTable, Option<MakeRow>)> {
    let table = table.to_ascii_lowercase();
    Some(match (database, &*table) {
        ("information_schema", "processlist") => (StatusTable::Processes, None),
        ("performance_schema", "processlist") => (StatusTable::Processes, Some(process)),
        ("performance_schema", "threads") => (StatusTable::Processes, Some(thread)),
        ("performance_schema", "metadata_locks") => (StatusTable::MetadataLocks, Some(metadata_lock)),
        ("performance_schema", "data_locks") => (StatusTable::Locks, Some(data_lock)),
        ("performance_schema", "data_lock_waits") => (StatusTable::LockWaits, Some(data_lock_wait)),
        ("sys", "processlist" | "session" | "x$processlist" | "x$session") => {
            (StatusTable::Processes, Some(sys_process))
        }
        _ => return None,
    })
}

/// Sets values of a row of NULLs by the positions of their columns.
fn row<const N: usize>(columns: usize, values: [(usize, Value); N]) -> Vec<Value> {
    let mut row = vec![Value::Null; columns];
    for (place, value) in values {
        row[place] = value;
    }
    row
}

fn process(_: &Dictionary, mut process: Vec<Value>) -> Option<Vec<Value>> {
    process.push(bytes("PRIMARY"));
    Some(process)
}

/// The row of `threads` for a session. A session is no thread here, so its number is that of the connection.
fn thread(_: &Dictionary, process: Vec<Value>) -> Option<Vec<Value>> {
    let [id, user, host, database, command, time, state, info] = <[Value; 8]>::try_from(process).ok()?;
    Some(row(
        THREADS.len(),
        [
            (0, id.clone()),
            (1, bytes("thread/sql/one_connection")),
            (2, bytes("FOREGROUND")),
            (3, id),
            (4, user),
            (5, host_of(host)),
            (6, database),
            (7, command),
            (8, time),
            (9, state),
            (10, info),
            (13, bytes("NO")),
            (14, bytes("NO")),
            (18, bytes("PRIMARY")),
            (19, Value::UInt(0)),
            (20, Value::UInt(0)),
            (21, Value::UInt(0)),
            (22, Value::UInt(0)),
            (23, bytes("NO")),
        ],
    ))
}

/// The host without the port.
fn host_of(host: Value) -> Value {
    match host {
        Value::Bytes(mut host) => {
            if let Some(end) = host.iter().rposition(|byte| *byte == b':')
                && host[end + 1..].iter().all(u8::is_ascii_digit)
            {
                host.truncate(end);
            }
            Value::Bytes(host)
        }
        other => other,
    }
}

/// The row of `sys.processlist` for a session. Figures that are not kept are NULL.
fn sys_process(_: &Dictionary, process: Vec<Value>) -> Option<Vec<Value>> {
    let [id, user, host, database, command, time, state, info] = <[Value; 8]>::try_from(process).ok()?;
    let account = match (&user, &host_of(host)) {
        (Value::Bytes(user), Value::Bytes(host)) => {
            Value::Bytes([user.as_slice(), b"@".as_slice(), host.as_slice()].concat())
        }
        _ => user,
    };
    let state = if state == bytes("") { Value::Null } else { state };
    Some(row(
        PROCESSES.len(),
        [
            (0, id.clone()),
            (1, id),
            (2, account),
            (3, database),
            (4, command),
            (5, state),
            (6, time),
            (7, info),
            (8, bytes("PRIMARY")),
        ],
    ))
}

fn metadata_lock(_: &Dictionary, lock: Vec<Value>) -> Option<Vec<Value>> {
    let [_, connection, table, database, name, mode, state, _] = <[Value; 8]>::try_from(lock).ok()?;
    let kind = match &mode {
        Value::Bytes(mode) if mode == b"READ" => "SHARED_READ",
        Value::Bytes(mode) if mode == b"WRITE" => "SHARED_WRITE",
        _ => "EXCLUSIVE",
    };
    let status = if state == bytes("GRANTED") { "GRANTED" } else { "PENDING" };
    Some(row(
        METADATA_LOCKS.len(),
        [
            (0, bytes("TABLE")),
            (1, database),
            (2, name),
            (4, table),
            (5, bytes(kind)),
            (6, bytes("TRANSACTION")),
            (7, bytes(status)),
            (9, connection),
        ],
    ))
}

/// The number in a column; 0 for another value.
fn number(value: &Value) -> u64 {
    match value {
        Value::UInt(number) => *number,
        _ => 0,
    }
}

/// The table of a lock, and its index. The entries of a unique index are locked in a table of their own.
fn locked<'d>(
    dictionary: &'d Dictionary,
    table: &Value,
    index: Option<IndexId>,
) -> Option<(&'d TableDefinition, &'d str)> {
    let definition = |id: TableId| dictionary.table(id).map(|layout| &layout.definition);
    let id = TableId(u32::try_from(number(table)).ok()?);
    let found = definition(id)?;
    let (base, index) = match found.kind {
        TableKind::UniqueEntries { base, index } => (definition(base)?, Some(index)),
        _ => (found, index),
    };
    let name = base.indexes.iter().find(|known| Some(known.id) == index).map_or("PRIMARY", |known| &known.name);
    Some((base, name))
}

/// The name of a lock: of the same row, or of the ranges of the same partition, for the same transaction.
fn lock_id(transaction: &Value, [instance, table, partition, row]: [&Value; 4]) -> Value {
    let place: &dyn Display = match row {
        Value::UInt(row) => row,
        _ => &"range",
    };
    let [transaction, instance, table, partition] = [transaction, instance, table, partition].map(number);
    bytes(format!("{transaction}:{instance}:{table}:{partition}:{place}"))
}

fn data_lock(dictionary: &Dictionary, lock: Vec<Value>) -> Option<Vec<Value>> {
    let [instance, table, partition, row_id, transaction, mode, state, index, range] =
        <[Value; 9]>::try_from(lock).ok()?;
    let id = lock_id(&transaction, [&instance, &table, &partition, &row_id]);
    let index = matches!(index, Value::UInt(_)).then(|| IndexId(number(&index) as _));
    // The table may have been dropped meanwhile.
    let (definition, index) = locked(dictionary, &table, index)?;
    let mode = if mode == bytes("SHARED") { "S" } else { "X" };
    let mode = if row_id == Value::Null { mode.to_owned() } else { format!("{mode},REC_NOT_GAP") };
    let data = match (&row_id, range) {
        (Value::UInt(row), _) => bytes(row.to_string()),
        (_, range) => range,
    };
    let part = definition.has_partition_clause.then(|| bytes(format!("p{}", number(&partition))));
    Some(vec![
        bytes(ENGINE),
        id,
        transaction,
        Value::Null,
        Value::Null,
        bytes(&definition.database),
        bytes(&definition.name),
        part.unwrap_or(Value::Null),
        Value::Null,
        bytes(index),
        Value::UInt(0),
        bytes("RECORD"),
        bytes(mode),
        state,
        data,
    ])
}

fn data_lock_wait(_: &Dictionary, wait: Vec<Value>) -> Option<Vec<Value>> {
    let [waiting, blocking, _, instance, table, partition, row_id, _] = <[Value; 8]>::try_from(wait).ok()?;
    let place = [&instance, &table, &partition, &row_id];
    let [wanted, held] = [&waiting, &blocking].map(|transaction| lock_id(transaction, place));
    let mut row = vec![bytes(ENGINE)];
    for (id, transaction) in [(wanted, waiting), (held, blocking)] {
        row.extend([id, transaction, Value::Null, Value::Null, Value::UInt(0)]);
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::super::performance_layout::{DATA_LOCK_WAITS, DATA_LOCKS};
    use super::super::schema_layout::PROCESSLIST;
    use super::*;

    fn process_row() -> Vec<Value> {
        let texts = ["root", "10.0.0.1:5000", "d", "Query"].map(bytes);
        let mut row = vec![Value::UInt(7)];
        row.extend(texts);
        row.extend([Value::Int(3), bytes(""), bytes("SELECT 1")]);
        row
    }

    #[test]
    fn the_rows_of_sessions_have_the_columns_of_every_table() {
        assert_eq!(process_row().len(), PROCESSLIST.len());
        let dictionary = Dictionary::default();
        let row = thread(&dictionary, process_row()).expect("a row");
        assert_eq!(row.len(), THREADS.len());
        assert_eq!((&row[3], &row[5], &row[10]), (&Value::UInt(7), &bytes("10.0.0.1"), &bytes("SELECT 1")));
        let row = sys_process(&dictionary, process_row()).expect("a row");
        assert_eq!((&row[2], &row[5]), (&bytes("root@10.0.0.1"), &Value::Null));
        assert_eq!(process(&dictionary, process_row()).expect("a row").len(), PROCESSLIST.len() + 1);
    }

    #[test]
    fn a_wait_names_the_locks_of_both_transactions() {
        let wait = [9, 8, 0, 1, 5, 2].map(Value::UInt).into_iter().chain([Value::UInt(77), Value::UInt(4)]).collect();
        let row = data_lock_wait(&Dictionary::default(), wait).expect("a row");
        assert_eq!(row.len(), DATA_LOCK_WAITS.len());
        assert_eq!((&row[1], &row[6]), (&bytes("9:1:5:2:77"), &bytes("8:1:5:2:77")));
        // The table is gone.
        let lock = [1, 5, 2, 77, 9].map(Value::UInt).into_iter();
        let lock = lock.chain([bytes("SHARED"), bytes("GRANTED"), Value::Null, Value::Null]).collect();
        assert_eq!(data_lock(&Dictionary::default(), lock), None);
        assert_eq!(DATA_LOCKS.len(), 15);
    }
}
