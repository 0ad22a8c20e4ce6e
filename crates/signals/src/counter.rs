//! What blocks count, in plain words of their own: the table of all counters with their names and meanings, and the rows of
//! `junctor_info.counters`. All count from the start of the node and are never set back.

use junctor_kernel::{Address, LoadBoard};
use junctor_model::value::Value;

use crate::module::Module;

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name, unique within the module.
    pub name: &'static str,
    /// What is counted.
    pub meaning: &'static str,
}

/// The counters of one block.
pub trait Counted {
    /// What they are, in order.
    const COUNTERS: &'static [Counter];

    /// Their values, in that order.
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

        /// All counters by the module that counts them. `thread` is not a module: what is counted is the thread's, whatever
        /// modules run on it.
        pub const COUNTERS: &[(&str, &[Counter])] = &[$(($module, $name::COUNTERS),)*];
    };
}

counters! {
    ThreadCounters of "thread" {
        signals: "Signals and events that it handled, in turns that it made for other threads too.";
        turns: "Turns with at least one signal.";
        hand_overs: "Signals and events that came from other threads; of all threads together, the hand-overs of the node.";
        delegated_turns: "Turns that other threads ran for it while it slept or wrote to its sockets.";
        voluntary_switches: "Times that it gave its CPU away to wait, as the operating system counts them.";
        involuntary_switches: "Times that its CPU was taken from it, as the operating system counts them.";
    }
    RecvCounters of "recv" {
        signals: "Signals and events handled.";
        connections: "Connections accepted.";
        connections_refused: "Connections refused because there were too many.";
        bytes_received: "Bytes read from clients.";
        bytes_sent: "Bytes sent to clients.";
    }
    SqlCounters of "sql" {
        signals: "Signals and events handled.";
        sessions: "Sessions opened.";
        commands: "Commands of clients.";
        questions: "Statements of clients, text and prepared.";
        prepares: "Statements prepared.";
        executes: "Executions of prepared statements.";
        plans: "Statements planned anew, since no plan was kept for them.";
        selects: "SELECT statements.";
        inserts: "INSERT and REPLACE statements.";
        updates: "UPDATE statements.";
        deletes: "DELETE statements.";
        begins: "BEGIN and START TRANSACTION.";
        commits: "COMMIT statements.";
        rollbacks: "ROLLBACK statements, not those to savepoints.";
        admission_waits: "Commands that waited for a ticket of admission.";
    }
    TcCounters of "tc" {
        signals: "Signals and events handled.";
        statements: "Statements that write or lock.";
        commits: "Transactions committed, also those of a single statement.";
        aborts: "Transactions undone as a whole.";
        lock_waits: "Waits for locks of rows or ranges.";
        lock_wait_timeouts: "Waits given up because they took too long.";
        deadlocks: "Circles of waits, each broken by giving up one of them.";
    }
    LdmCounters of "ldm" {
        signals: "Signals and events handled.";
        reads: "Requests to read, each of one partition.";
        keys: "Primary keys looked up by reads.";
        ranges: "Ranges of an index begun by reads.";
        rows_scanned: "Rows looked at by reads in ranges and of whole partitions.";
        rows_answered: "Rows, entries and partial aggregates that reads were answered with.";
        writes: "Requests to write or lock, each of one partition.";
        rows_inserted: "Rows inserted, entries of unique indexes too.";
        rows_updated: "Rows updated.";
        rows_deleted: "Rows deleted, entries of unique indexes too.";
        rows_locked: "Rows locked by FOR UPDATE, FOR SHARE and the like.";
        lock_waits: "Writes that had to wait for a lock.";
        guard_waits: "Times that a write found readers inside its partition and went on later.";
        commits: "Transactions committed in its partitions.";
        aborts: "Transactions undone in its partitions.";
    }
    QueryCounters of "query" {
        signals: "Signals and events handled.";
        reads: "Requests to read, each of one partition.";
        keys: "Primary keys looked up.";
        ranges: "Ranges of an index begun.";
        rows_scanned: "Rows looked at in ranges and of whole partitions.";
        rows_answered: "Rows, entries and partial aggregates that reads were answered with.";
        guard_bounces: "Reads passed on to the owner because it was writing to the partition.";
        reads_passed_on: "Reads passed on to the owner because the partition was not open here.";
    }
    MainCounters of "main" {
        signals: "Signals and events handled.";
        schema_changes: "Changes of the schema asked for.";
        number_ranges: "Ranges of AUTO_INCREMENT numbers given out.";
    }
}

/// The rows of `junctor_info.counters` of one block; `thread` is the one that it runs on.
pub fn counter_rows<C: Counted>(counted: &C, own: Address, thread: u16) -> Vec<Vec<Value>> {
    rows(counted, Module::of(own.module).name(), own.instance, thread)
}

/// The rows of all threads.
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
    fn every_counter_has_a_name_of_its_own_and_a_sentence() {
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
    fn each_value_stands_beside_its_name() {
        let counted = QueryCounters { keys: 7, guard_bounces: 3, ..QueryCounters::default() };
        let rows = rows(&counted, "query", 2, 5);
        let value = |name: &str| {
            let row = rows.iter().find(|row| row[3] == Value::Bytes(name.into())).expect(name);
            assert_eq!(row[..3], [Value::UInt(5), Value::Bytes("query".into()), Value::UInt(2)]);
            row[4].clone()
        };
        assert_eq!([value("keys"), value("guard_bounces"), value("reads")], [7, 3, 0].map(Value::UInt));
    }
}
