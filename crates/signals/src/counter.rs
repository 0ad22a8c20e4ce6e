//! Counters of blocks: one table with their names and meanings, and the rows of `junctor_info.counters`. All
//! of them count from the start of the node and only rise.

use junctor_kernel::{Address, LoadBoard};
use junctor_model::value::Value;

use crate::module::Module;

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Unique within the module.
    pub name: &'static str,
    /// Description of the counted events, shown to users.
    pub meaning: &'static str,
}

/// The counters of one block.
pub trait Counted {
    /// Names and meanings.
    const COUNTERS: &'static [Counter];

    /// Values, in the order of `COUNTERS`.
    fn values(&self) -> Vec<u64>;
}

macro_rules! counters {
    ($($name:ident of $module:literal { $($counter:ident: $meaning:literal;)* })*) => {
        $(
            #[doc = concat!("What ", $module, " counts.")]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name {
                $(#[doc = $meaning] pub $counter: u64,)*
            }

            impl Counted for $name {
                const COUNTERS: &'static [Counter] =
                    &[$(Counter { name: stringify!($counter), meaning: $meaning },)*];

                fn values(&self) -> Vec<u64> {
                    vec![$(self.$counter),*]
                }
            }
        )*

        /// All counters by module. `thread` is not a module: its counters belong to a thread, whatever
        /// modules run on it.
        pub const COUNTERS: &[(&str, &[Counter])] = &[$(($module, $name::COUNTERS),)*];
    };
}

counters! {
    ThreadCounters of "thread" {
        signals: "Signals and events handled, including those of delegated turns.";
        turns: "Turns with at least one signal.";
        hand_overs: "Signals and events received from other threads.";
        delegated_turns: "Turns that other threads ran in its place while it slept or wrote to its sockets.";
        voluntary_switches: "Voluntary context switches, as counted by the operating system.";
        involuntary_switches: "Involuntary context switches, as counted by the operating system.";
    }
    RecvCounters of "recv" {
        signals: "Signals and events handled.";
        connections: "Connections accepted.";
        connections_refused: "Connections refused, because max_connections was reached or the node was recovering.";
        bytes_received: "Bytes read from clients.";
        bytes_sent: "Bytes sent to clients.";
    }
    SqlCounters of "sql" {
        signals: "Signals and events handled.";
        sessions: "Sessions opened.";
        commands: "Commands received from clients.";
        questions: "Statements received from clients, text and prepared.";
        prepares: "Statements prepared.";
        executes: "Executions of prepared statements.";
        plans: "Statements planned because no cached plan fitted.";
        selects: "SELECT statements.";
        inserts: "INSERT and REPLACE statements.";
        updates: "UPDATE statements.";
        deletes: "DELETE statements.";
        begins: "BEGIN and START TRANSACTION.";
        commits: "COMMIT statements.";
        rollbacks: "ROLLBACK statements, without ROLLBACK TO SAVEPOINT.";
        admission_waits: "Commands that waited for a slot of the thread pool.";
        sessions_lent: "Queries for which the session moved to a thread of the kind work.";
        metadata_lock_waits: "Statements that waited for a metadata lock.";
        temporary_files: "Temporary files created by queries whose rows exceeded their memory.";
        temporary_bytes: "Bytes that queries put into temporary files.";
    }
    TcCounters of "tc" {
        signals: "Signals and events handled.";
        statements: "Statements that write or lock.";
        commits: "Transactions committed, including those of a single statement.";
        aborts: "Transactions rolled back.";
        lock_waits: "Waits for row or range locks.";
        lock_wait_timeouts: "Waits that exceeded their limit.";
        deadlocks: "Deadlocks, each resolved by rolling back one transaction.";
    }
    LdmCounters of "ldm" {
        signals: "Signals and events handled.";
        reads: "Read requests, each for one partition.";
        keys: "Primary keys looked up by reads.";
        ranges: "Index ranges begun by reads.";
        rows_examined: "Rows examined by reads in ranges and whole partitions.";
        rows_returned: "Rows, entries and partial aggregates returned by reads.";
        writes: "Write and locking requests, each for one partition.";
        rows_inserted: "Rows inserted, including entries of unique indexes.";
        rows_updated: "Rows updated.";
        rows_deleted: "Rows deleted, including entries of unique indexes.";
        rows_locked: "Rows locked by locking reads.";
        lock_waits: "Writes that waited for a lock.";
        guard_waits: "Writes deferred because readers were inside the partition guard.";
        commits: "Transactions committed in its partitions.";
        aborts: "Transactions rolled back in its partitions.";
        log_bytes: "Bytes of log records formed.";
    }
    QueryCounters of "query" {
        signals: "Signals and events handled.";
        reads: "Read requests, each for one partition.";
        keys: "Primary keys looked up.";
        ranges: "Index ranges begun.";
        rows_examined: "Rows examined in ranges and whole partitions.";
        rows_returned: "Rows, entries and partial aggregates returned by reads.";
        guard_conflicts: "Reads passed to the owner because the partition guard was busy.";
        reads_forwarded: "Reads passed to the owner because the partition is not open here.";
    }
    MainCounters of "main" {
        signals: "Signals and events handled.";
        schema_changes: "Schema changes requested.";
        auto_increment_ranges: "AUTO_INCREMENT ranges reserved.";
    }
}

/// The counter rows of one block; `thread` is the thread that runs it.
pub fn counter_rows<C: Counted>(counted: &C, own: Address, thread: u16) -> Vec<Vec<Value>> {
    rows(counted, Module::of(own.module).name(), own.instance, thread)
}

/// The counter rows of all threads.
pub fn thread_counter_rows(loads: &LoadBoard) -> Vec<Vec<Value>> {
    let loads = (0..loads.len() as u16).filter_map(|thread| Some((thread, loads.thread(thread)?.total)));
    let of_thread = |(thread, total): (u16, junctor_kernel::Usage)| {
        let counted = ThreadCounters {
            signals: total.signals,
            turns: total.turns,
            hand_overs: total.hand_overs,
            delegated_turns: total.delegated_turns,
            voluntary_switches: total.voluntary_switches,
            involuntary_switches: total.involuntary_switches,
        };
        rows(&counted, "thread", thread, thread)
    };
    loads.flat_map(of_thread).collect()
}

fn rows<C: Counted>(counted: &C, module: &str, instance: u16, thread: u16) -> Vec<Vec<Value>> {
    let row = |(counter, value): (&Counter, u64)| {
        vec![
            Value::UInt(u64::from(thread)),
            Value::Bytes(module.into()),
            Value::UInt(u64::from(instance)),
            Value::Bytes(counter.name.into()),
            Value::UInt(value),
            Value::Bytes(counter.meaning.into()),
        ]
    };
    C::COUNTERS.iter().zip(counted.values()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_counter_has_a_unique_name_and_a_description() {
        let mut names = BTreeSet::new();
        for (module, counters) in COUNTERS {
            for counter in *counters {
                assert!(names.insert((module, counter.name)), "{module} {}", counter.name);
                assert!(counter.meaning.ends_with('.') && !counter.meaning.contains('|'), "{}", counter.meaning);
            }
        }
        assert!(names.len() > 50);
    }

    #[test]
    fn each_value_is_next_to_its_name() {
        let counted = QueryCounters { keys: 7, guard_conflicts: 3, ..QueryCounters::default() };
        let rows = rows(&counted, "query", 2, 5);
        let value = |name: &str| {
            let row = rows.iter().find(|row| row[3] == Value::Bytes(name.into())).expect(name);
            assert_eq!(row[..3], [Value::UInt(5), Value::Bytes("query".into()), Value::UInt(2)]);
            row[4].clone()
        };
        assert_eq!([value("keys"), value("guard_conflicts"), value("reads")], [7, 3, 0].map(Value::UInt));
    }
}
