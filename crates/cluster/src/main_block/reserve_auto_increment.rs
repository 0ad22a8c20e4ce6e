//! Reserves consecutive ranges of AUTO_INCREMENT numbers.
//!
//! On a node with a log, main hands out only numbers below the *durable mark* of the table. A restart
//! continues at the mark, so no number returns, whether or not a row with the number was committed. Main
//! raises a mark by a chunk when half of the chunk is used. A reservation waits only when it passes the mark.
//!
//! When the node stops, sql gives back the numbers that no row has got. Main then writes *exact* marks, which
//! replace the marks that were raised ahead of need. After a clean stop, a table therefore continues with the
//! number after its last one.
//!
//! sql sends explicit values, and the number of ALTER TABLE ... AUTO_INCREMENT, as `beyond`. The counter is
//! raised above the value, and the reply waits until the mark is above the value too. An UPDATE does not
//! raise the counter, so it can store a number that the counter reaches later.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use junctor_kernel::{Outbox, require};
use junctor_model::error::Error;
use junctor_model::id::TableId;
use junctor_model::planted_bug::PlantedBug;
use junctor_model::schema::TableDefinition;
use junctor_model::stored_mark::CounterMark;
use junctor_model::value::Value;
use junctor_signals::append_records::{LogSpace, LogSpaceChanged};
use junctor_signals::read_status::ReadStatus;
use junctor_signals::reserve_auto_increment::{
    ReserveAutoIncrement, ReserveAutoIncrementReply, ReturnAutoIncrement, ReturnedNumbers,
};
use junctor_signals::{Signal, SqlSignal};

use super::block::MainBlock;

/// Maximum number of values by which a mark is raised ahead of need. A crash loses at most this many.
const CHUNK_MAX: u64 = 16_384;
/// A column can hold the numbers of at least this many chunks, so that crashes do not use them up.
const CHUNKS_PER_COLUMN_MIN: u64 = 64;
/// Maximum number of waiting reservations that one durable mark answers. The others wait for the next mark.
const ANSWERED_MAX: usize = 32;
/// Maximum number of exact marks of one batch.
const EXACT_MARKS_MAX: usize = 256;

/// The AUTO_INCREMENT counter of one table.
#[derive(Debug)]
pub(super) struct Counter {
    /// The next number.
    pub next: u64,
    /// Returned numbers below this one are not handed out again: rows have greater explicit numbers, or ALTER
    /// TABLE has set the next number.
    pub floor: u64,
    /// Numbers below this one may be handed out.
    pub durable: u64,
    /// The mark that is durable, or being written.
    pub requested: u64,
    /// Whether the log has marks of the counter. A temporary table needs none.
    pub is_logged: bool,
    /// Values by which the mark is raised ahead of need.
    pub chunk: u64,
    /// Reservations that wait for a durable mark, in the order of arrival.
    waiting: VecDeque<ReserveAutoIncrement>,
    /// Ranges that sql blocks have given back. Numbers above them are in use.
    returned: Vec<Range<u64>>,
}

impl Counter {
    /// A counter that starts at `first`. The mark is not written yet.
    pub fn new(table: &TableDefinition, first: u64) -> Counter {
        let chunk = chunk_of(table);
        // A restart without a mark continues at 1, so 1 needs none.
        Counter {
            next: first,
            floor: 1,
            durable: 1,
            requested: 1,
            chunk,
            is_logged: !table.is_temporary(),
            waiting: VecDeque::new(),
            returned: Vec::new(),
        }
    }

    /// A counter that continues at the mark in the log.
    pub fn restored(table: &TableDefinition, mark: u64) -> Counter {
        Counter { durable: mark, requested: mark, ..Counter::new(table, mark) }
    }

    /// Takes back numbers that no row has got. The counter falls as far as nothing above is in use.
    fn take_back(&mut self, range: Range<u64>) {
        self.returned.push(range);
        while let Some(last) = self.returned.iter().position(|range| range.end == self.next) {
            self.next = self.returned.swap_remove(last).start.max(self.floor).min(self.next);
        }
    }

    /// Numbers below this one are not handed out any more.
    pub fn raise_floor(&mut self, least: u64) {
        self.floor = self.floor.max(least);
        self.next = self.next.max(least);
    }

    /// The mark that the reservation needs.
    fn needed(&self, request: &ReserveAutoIncrement) -> u64 {
        self.next.max(request.beyond.saturating_add(1)).saturating_add(request.count)
    }

    /// Hands out numbers.
    fn reserve(&mut self, request: &ReserveAutoIncrement) -> (u64, u64) {
        let before = self.next;
        self.raise_floor(request.beyond.saturating_add(1));
        self.next = self.next.max(request.beyond.saturating_add(1));
        let first = self.next;
        // The counter stops at its maximum, so the largest number is never assigned.
        let count = request.count.min(u64::MAX - first);
        self.next += count;
        // The numbers above the returned ones are in use now.
        self.returned.clear();
        require!(self.next >= before, "AUTO_INCREMENT counters never decrease: table {:?}", request.table);
        (first, count)
    }
}

/// The chunk for the AUTO_INCREMENT column of a table.
fn chunk_of(table: &TableDefinition) -> u64 {
    let column = table.auto_increment_column().map(|column| &table.columns[usize::from(column.0)]);
    let number_max = match column.and_then(|column| column.column_type.as_integer()) {
        Some((bytes, unsigned)) => u64::MAX >> (64 - u32::from(bytes.clamp(1, 8)) * 8 + u32::from(!unsigned)),
        None => u64::MAX,
    };
    (number_max / CHUNKS_PER_COLUMN_MIN).clamp(1, CHUNK_MAX)
}

impl MainBlock {
    pub(super) fn on_reserve_auto_increment(&mut self, request: ReserveAutoIncrement, outbox: &mut Outbox<Signal>) {
        self.counted.auto_increment_ranges += 1;
        let table = request.table;
        let refusal = self.log_refusal();
        match self.counters.get_mut(&table) {
            None => refuse(request, Error::table_definition_changed(), outbox),
            Some(counter) if refusal.is_some() && counter.is_logged && counter.needed(&request) > counter.durable => {
                refuse(request, refusal.unwrap_or_else(Error::disk_full), outbox);
            }
            Some(counter) => {
                counter.waiting.push_back(request);
                self.answer_reservations(table, outbox);
            }
        }
    }

    /// Each wanted counter that has a next number above 1: its part of `StatusTable::TableStatistics`.
    pub(super) fn auto_increment_rows(&self, request: &ReadStatus) -> Vec<Vec<Value>> {
        let used = self.counters.iter().filter(|(table, counter)| counter.next > 1 && request.wants(**table));
        let row = |(table, counter): (&TableId, &Counter)| {
            vec![Value::Null, Value::UInt(u64::from(table.0)), Value::Null, Value::UInt(counter.next)]
        };
        used.map(row).collect()
    }

    pub(super) fn on_return_auto_increment(&mut self, signal: ReturnAutoIncrement, outbox: &mut Outbox<Signal>) {
        let successor = self.running.as_ref().and_then(|change| change.successor);
        for ReturnedNumbers { table, range, explicit } in signal.numbers {
            let table = successor.filter(|(old, _)| *old == table).map_or(table, |(_, new)| new);
            // A dropped table has no counter.
            if let Some(counter) = self.counters.get_mut(&table) {
                if !range.is_empty() {
                    counter.take_back(range);
                }
                counter.raise_floor(explicit.saturating_add(1));
            }
        }
        if signal.is_stop {
            self.begin_exact_marks(outbox);
        }
    }

    /// Writes exact marks from now on, because the node stops.
    pub(super) fn begin_exact_marks(&mut self, outbox: &mut Outbox<Signal>) {
        // In a cluster, exact marks would have to reach other nodes that stop as well.
        if self.member.is_some() {
            return;
        }
        self.are_marks_exact = true;
        self.write_records(outbox);
    }

    /// Adds exact marks for counters that are below their marks. While a batch is under way, nothing is
    /// lowered: its marks would count as durable again.
    pub(super) fn lower_marks(&mut self) {
        // The last space of the log is for records that others wait for.
        if self.log_space != LogSpace::Free || !self.records.is_enabled() {
            return;
        }
        let is_ahead = |counter: &Counter| {
            counter.is_logged && counter.durable > counter.next && counter.requested == counter.durable
        };
        let ahead = self.counters.iter_mut().filter(|(_, counter)| is_ahead(counter));
        for (table, counter) in ahead.take(EXACT_MARKS_MAX) {
            // Numbers from here on wait for a higher mark.
            counter.durable = counter.next;
            counter.requested = counter.next;
            self.records.add_mark(CounterMark { table: *table, mark: counter.next, is_exact: true });
        }
    }

    /// Refuses the reservations that wait for the log when its device becomes full.
    pub(super) fn on_log_space_changed(&mut self, signal: LogSpaceChanged, outbox: &mut Outbox<Signal>) {
        self.log_space = signal.space;
        // The records that others wait for have their space below the limit.
        if self.log_space == LogSpace::DeviceFull {
            let waiting = self.counters.values_mut().flat_map(|counter| counter.waiting.drain(..));
            waiting.for_each(|request| refuse(request, Error::disk_full(), outbox));
        }
    }

    /// The rows of `junctor_info.logspaces`.
    pub(super) fn log_space_rows(&self) -> Vec<Vec<Value>> {
        if !self.records.is_enabled() {
            return Vec::new();
        }
        let state = match self.log_space {
            LogSpace::Free => "FREE",
            LogSpace::Limited => "LIMITED",
            LogSpace::Exhausted => "EXHAUSTED",
            LogSpace::DeviceFull => "DEVICE FULL",
        };
        let usage = self.checkpoints.log_usage();
        let text = |text: &str| Value::Bytes(text.into());
        let mut row = vec![text("REDO"), text(state)];
        let bytes = [usage.used_bytes, usage.limit_bytes, usage.reserved_bytes, usage.written_bytes];
        row.extend(bytes.map(Value::UInt));
        row.extend([u64::from(usage.is_waited_for), usage.syncs, usage.records].map(Value::UInt));
        vec![row]
    }

    /// Why main may write no more records. Main writes little: it does not wait for a checkpoint as long as
    /// the log has a reserve.
    pub(super) fn log_refusal(&self) -> Option<Box<Error>> {
        match self.log_space {
            LogSpace::Free | LogSpace::Limited => None,
            LogSpace::Exhausted => Some(Error::log_overloaded()),
            LogSpace::DeviceFull => Some(Error::disk_full()),
        }
    }

    /// Answers the waiting reservations of a table as far as the durable mark allows, and raises the mark if
    /// it is needed soon.
    fn answer_reservations(&mut self, table: TableId, outbox: &mut Outbox<Signal>) {
        let Some(counter) = self.counters.get_mut(&table) else { return };
        let is_enabled = self.records.is_enabled() && counter.is_logged;
        let is_limited = is_enabled && !PlantedBug::CounterBeyondMark.is_planted();
        for _ in 0..ANSWERED_MAX {
            let Some(request) = counter.waiting.front() else { break };
            if is_limited && counter.needed(request) > counter.durable {
                break;
            }
            let Some(request) = counter.waiting.pop_front() else { break };
            let (first, count) = counter.reserve(&request);
            require!(
                !is_limited || counter.next <= counter.durable,
                "numbers below the mark are handed out: {table:?}"
            );
            let reply = ReserveAutoIncrementReply { operation: request.operation, first, count, error: None };
            outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReserveAutoIncrementReply(reply)));
        }
        // A mark that is being written answers what it can before the next one is asked for.
        if !is_enabled || counter.requested > counter.durable {
            return;
        }
        let needed = match counter.waiting.front() {
            Some(_) => counter.waiting.iter().fold(counter.next, |next, request| {
                next.max(request.beyond.saturating_add(1)).saturating_add(request.count)
            }),
            // Without users, nothing is needed soon.
            None if self.are_marks_exact => return,
            None if counter.durable < u64::MAX && counter.durable.saturating_sub(counter.next) < counter.chunk / 2 => {
                counter.next
            }
            None => return,
        };
        let ahead = if self.are_marks_exact { 0 } else { counter.chunk };
        let mark = needed.saturating_add(ahead).max(counter.durable);
        counter.requested = mark;
        self.records.add_mark(CounterMark { table, mark, is_exact: false });
        self.write_records(outbox);
    }

    /// Adds a mark for the counter of each new table whose first number the user has chosen. Such a counter
    /// is above its mark.
    pub(super) fn add_first_marks(&mut self) {
        for (table, counter) in
            self.counters.iter_mut().filter(|(_, counter)| counter.is_logged && counter.next > counter.requested)
        {
            counter.requested = counter.next;
            self.records.add_mark(CounterMark { table: *table, mark: counter.next, is_exact: false });
        }
    }

    /// Raises the durable marks of the counters to marks that have become durable.
    pub(super) fn raise_durable_marks(&mut self, marks: &BTreeMap<TableId, CounterMark>, outbox: &mut Outbox<Signal>) {
        for (table, CounterMark { mark, .. }) in marks {
            // A dropped table has no counter.
            let Some(counter) = self.counters.get_mut(table) else { continue };
            require!(counter.durable <= *mark, "marks never decrease: table {table:?}");
            counter.durable = *mark;
            counter.requested = counter.requested.max(*mark);
            // A table that nobody inserts into needs no higher mark.
            if !counter.waiting.is_empty() {
                self.answer_reservations(*table, outbox);
            }
        }
    }

    /// Removes the counters of tables that do not exist, and refuses the reservations that wait for them.
    pub(super) fn remove_counters(&mut self, outbox: &mut Outbox<Signal>) {
        let dictionary = &self.catalog.dictionary;
        for (_, counter) in self.counters.extract_if(.., |table, _| dictionary.table(*table).is_none()) {
            counter.waiting.into_iter().for_each(|request| refuse(request, Error::table_definition_changed(), outbox));
        }
    }
}

fn refuse(request: ReserveAutoIncrement, error: Box<Error>, outbox: &mut Outbox<Signal>) {
    let error = Some(error);
    let reply = ReserveAutoIncrementReply { operation: request.operation, first: 0, count: 0, error };
    outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReserveAutoIncrementReply(reply)));
}
