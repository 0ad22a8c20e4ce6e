//! The AUTO_INCREMENT values that a sql block holds. It reserves them from the main block in ranges.

use hashbrown::HashMap;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::TableId;
use junctor_model::schema::{ColumnDefinition, Dictionary};
use junctor_model::value::Value;
use junctor_signals::read_status::ReadStatus;
use junctor_signals::reserve_auto_increment::ReturnedNumbers;

use crate::bind::NumberRules;
use crate::plan::AutoColumn;

/// The AUTO_INCREMENT values that this block holds, by table.
#[derive(Debug)]
pub(crate) struct AutoIncrementRanges {
    ranges: HashMap<TableId, AutoIncrementRange, foldhash::fast::FixedState>,
}

/// The values that are still held, by table.
fn in_order(ranges: impl Iterator<Item = (TableId, AutoIncrementRange)>) -> Box<[ReturnedNumbers]> {
    let held = ranges.filter(|(_, range)| range.next < range.end || range.explicit > 0);
    let mut held: Box<[_]> = held
        .map(|(table, range)| ReturnedNumbers {
            table,
            range: range.next.min(range.end)..range.end,
            explicit: range.explicit,
        })
        .collect();
    held.sort_unstable_by_key(|returned| returned.table);
    held
}

/// The values of one table, from `next` up to but not including `end`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AutoIncrementRange {
    next: u64,
    end: u64,
    /// The table's counter in the main block is known to be above this value.
    known: u64,
    /// The greatest explicit value.
    explicit: u64,
    /// The values of the rows that are being encoded, if SET insert_id has named the first one.
    forced: Option<ForcedNumbers>,
}

/// The values that a statement generates from that of the variable `insert_id` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForcedNumbers {
    first: u64,
    /// The next value; 0 if none has been generated.
    next: u64,
    /// As in MySQL, the table's own values follow from here on: behind as many values as the statement has
    /// rows. A statement whose rows are not known before never gets there.
    end: u64,
}

impl ForcedNumbers {
    /// Takes the next value; `None` if the table's own values follow.
    pub(super) fn take(&mut self, rules: NumberRules) -> Option<u64> {
        let number = match self.next {
            0 => self.first,
            next if next >= self.end => return None,
            next => next,
        };
        self.next = rules.after(number);
        Some(number)
    }

    /// A row has this explicit value. The values behind it follow it.
    pub(super) fn pass(&mut self, explicit: u64, rules: NumberRules) {
        if self.next != 0 && explicit >= self.next {
            self.next = rules.after(explicit);
        }
    }
}

/// The variable `insert_id`: the first value that the next INSERT generates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InsertId {
    /// The first value; 0 if the variable is not set.
    pub first: u64,
    /// The value after those that the current statement has generated; 0 if it has generated none.
    pub next: u64,
}

impl InsertId {
    /// The values of a statement that has so many rows, if it is known. `is_first` says whether no earlier
    /// rows of it are encoded: a statement may start again.
    fn forced(self, is_first: bool, rows: Option<u64>, rules: NumberRules) -> ForcedNumbers {
        let next = if is_first { 0 } else { self.next };
        let increment = u64::from(rules.increment.max(1));
        let end = rows.map_or(u64::MAX, |rows| self.first.saturating_add(rows.saturating_mul(increment)));
        ForcedNumbers { first: self.first, next, end }
    }

    /// The variable applies to one statement that generates values.
    #[inline]
    pub fn end_statement(&mut self) {
        if self.next != 0 {
            *self = InsertId::default();
        }
    }
}

impl AutoIncrementRanges {
    /// A block that holds no values.
    pub(crate) fn new() -> AutoIncrementRanges {
        AutoIncrementRanges {
            ranges: HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0x6e75_6d62_6572_7321)),
        }
    }

    /// Adds the `count` values from `first` on, which the main block has reserved. `beyond` is the greatest
    /// explicit value of the rows. Error: 1467 if fewer than `needed` were reserved.
    pub(super) fn add_reserved(
        &mut self,
        table: TableId,
        (first, count): (u64, u64),
        needed: u64,
        beyond: u64,
    ) -> Result<()> {
        if count < needed {
            return Err(numbers_exhausted());
        }
        self.of(table).add(first, count, beyond);
        Ok(())
    }

    /// Takes out the held values of tables that no longer exist or have another definition.
    pub(crate) fn take_outdated(&mut self, old: &Dictionary, new: &Dictionary) -> Box<[ReturnedNumbers]> {
        let version = |dictionary: &Dictionary, table| Some(dictionary.table(table)?.definition.version);
        let is_outdated = |table: TableId| version(old, table) != version(new, table);
        let outdated = self.ranges.extract_if(|table, _| is_outdated(*table));
        in_order(outdated)
    }

    /// Discards the held values of a table, so that the next values come from the table's counter.
    pub(crate) fn forget_held(&mut self, table: TableId) {
        let range = self.of(table);
        range.next = range.end;
    }

    /// Takes out all held values.
    pub(crate) fn take_held(&mut self) -> Box<[ReturnedNumbers]> {
        in_order(self.ranges.drain())
    }

    /// A row for each wanted table of which values are held: this block's part of
    /// `StatusTable::TableStatistics`.
    pub(crate) fn held_rows(&self, request: &ReadStatus) -> Vec<Vec<Value>> {
        let held = self.ranges.iter().filter(|(table, range)| range.next < range.end && request.wants(**table));
        let mut held: Vec<_> = held.collect();
        held.sort_unstable_by_key(|(table, _)| **table);
        let row = |(table, range): (&TableId, &AutoIncrementRange)| {
            let table = Value::UInt(u64::from(table.0));
            vec![Value::Null, table, Value::Null, Value::UInt(range.next), Value::UInt(range.end)]
        };
        held.into_iter().map(row).collect()
    }

    /// The next value that this block would assign; `None` if it has never held any for the table.
    pub(crate) fn next_of(&self, table: TableId) -> Option<u64> {
        self.ranges.get(&table).filter(|range| range.next > 0).map(|range| range.next)
    }

    /// Makes a table's next values those of the variable `insert_id`, which is set, while rows are encoded.
    /// `is_first` and `rows` are those of [`InsertId::forced`].
    #[cold]
    pub(super) fn begin_forced(
        &mut self,
        table: TableId,
        insert_id: InsertId,
        (is_first, rows): (bool, Option<u64>),
        rules: NumberRules,
    ) {
        self.of(table).forced = Some(insert_id.forced(is_first, rows, rules));
    }

    /// Ends what [`Self::begin_forced`] has begun, also after an error: as in MySQL, values that were
    /// generated are used up.
    #[inline]
    pub(super) fn end_forced(&mut self, table: TableId, insert_id: &mut InsertId) {
        if insert_id.first != 0
            && let Some(forced) = self.of(table).forced.take()
        {
            insert_id.next = forced.next;
        }
    }

    /// The values of a table.
    pub(super) fn of(&mut self, table: TableId) -> &mut AutoIncrementRange {
        self.ranges.entry(table).or_default()
    }
}

/// A request to the main block for values.
#[derive(Clone, Copy, Debug)]
pub(super) struct AutoIncrementRequest {
    /// Number of values that the rows need. The statement fails if fewer are available.
    pub needed: u64,
    /// Number of values to reserve, some of them for later statements. 0 only raises the counter.
    pub count: u64,
    /// The greatest explicit value. The counter must be above it afterwards.
    pub beyond: u64,
}

impl AutoIncrementRange {
    /// The request for rows that need `needed` generated values and have explicit values up to
    /// `explicit_max`. `None` if enough values are held and the counter is above `explicit_max`.
    pub(super) fn missing(&mut self, needed: u64, explicit_max: u64, prefetch: u64) -> Option<AutoIncrementRequest> {
        self.explicit = self.explicit.max(explicit_max);
        // A generated value must not repeat an explicit one, so the held values up to the explicit one are
        // dropped.
        if explicit_max >= self.next && explicit_max < self.end {
            self.next = explicit_max + 1;
        }
        if explicit_max <= self.known && self.end.saturating_sub(self.next) >= needed {
            return None;
        }
        // The last number may have been the last one before a gap that leads beyond the held values.
        let needed = if needed == 0 { 0 } else { needed.saturating_add(self.next.saturating_sub(self.end)) };
        let count = if needed == 0 { 0 } else { needed.max(prefetch) };
        Some(AutoIncrementRequest { needed, count, beyond: explicit_max })
    }

    /// Adds values that the main block has reserved.
    pub(super) fn add(&mut self, first: u64, count: u64, beyond: u64) {
        self.known = self.known.max(beyond).max(first.saturating_sub(1));
        if count == 0 {
            // All held values are at most the greatest explicit value, so they are dropped.
            if self.end <= beyond {
                self.next = self.end;
            }
            return;
        }
        let end = first.saturating_add(count);
        // If the new range continues the held one, use up the held values first.
        if first != self.end || self.next <= beyond {
            self.next = first;
        }
        self.end = end;
        self.known = self.known.max(end - 1);
    }
}

impl AutoIncrementRange {
    /// The values of the rows that are being encoded, if SET insert_id has named the first one.
    #[inline]
    pub(super) fn forced(&self) -> Option<ForcedNumbers> {
        self.forced
    }

    /// A row has this explicit value. It has no meaning for the table's own values.
    #[cold]
    pub(super) fn pass(&mut self, explicit: u64, rules: NumberRules) {
        if let Some(forced) = &mut self.forced {
            forced.pass(explicit, rules);
        }
    }

    /// Goes back to the values before a row that is not inserted.
    #[cold]
    pub(super) fn give_back(&mut self, forced: Option<ForcedNumbers>) {
        self.forced = forced;
    }
}

/// Takes the next value. Error: 1467 if it exceeds the column's maximum or none is left.
pub(super) fn next_number(range: &mut AutoIncrementRange, auto: Option<AutoColumn>) -> Result<u64> {
    let number_max = auto.map_or(u64::MAX, |auto| auto.number_max);
    let rules = auto.map_or_else(NumberRules::default, |auto| auto.rules);
    if let (Some(forced), Some(_)) = (&mut range.forced, auto)
        && let Some(number) = forced.take(rules)
    {
        return if number > number_max { Err(numbers_exhausted()) } else { Ok(number) };
    }
    let number = rules.aligned(range.next);
    if number >= range.end || number > number_max {
        return Err(numbers_exhausted());
    }
    range.next = number.saturating_add(u64::from(rules.increment));
    Ok(number)
}

/// The number of an AUTO_INCREMENT column. `generated` is the number that the row has got; the hidden key
/// beside a visible column takes it, too.
pub(super) fn number_of_column(
    (column, auto): (&ColumnDefinition, Option<AutoColumn>),
    range: &mut AutoIncrementRange,
    generated: &mut Option<u64>,
) -> Result<u64> {
    if column.hidden && auto.is_some_and(|auto| auto.hidden_key.is_some()) {
        // A value of the variable `insert_id` may be that of an earlier row.
        let generated = generated.filter(|_| range.forced.is_none());
        return generated.map_or_else(|| next_number(range, None), Ok);
    }
    let number = next_number(range, auto)?;
    *generated = Some(number);
    Ok(number)
}

/// The count of numbers from which so many rows get theirs, wherever the first one is.
pub(super) fn numbers_of_rows(rows: u64, rules: NumberRules) -> u64 {
    match rules.increment {
        0 | 1 => rows,
        increment => rows.saturating_add(u64::from(rows > 0)).saturating_mul(increment.into()),
    }
}

/// Error 1467.
pub(super) fn numbers_exhausted() -> Box<Error> {
    Error::new(ErrorCode::AutoIncrementExhausted, "Failed to read auto-increment value from storage engine")
}

#[cfg(test)]
mod tests {
    use junctor_model::id::ColumnNumber;

    use super::*;

    fn take(range: &mut AutoIncrementRange) -> u64 {
        next_number(range, None).expect("there are numbers")
    }

    #[test]
    fn held_values_are_taken_out_once() {
        let mut ranges = AutoIncrementRanges::new();
        ranges.add_reserved(TableId(9), (5, 3), 1, 0).expect("enough");
        ranges.add_reserved(TableId(2), (1, 2), 1, 0).expect("enough");
        ranges.add_reserved(TableId(3), (1, 1), 1, 0).expect("enough");
        take(ranges.of(TableId(9)));
        take(ranges.of(TableId(3)));
        let returned = |table, range| ReturnedNumbers { table: TableId(table), range, explicit: 0 };
        assert_eq!(*ranges.take_held(), [returned(2, 1..3), returned(9, 6..8)]);
        assert!(ranges.take_held().is_empty());
        let request = ranges.of(TableId(9)).missing(0, 6, 32).expect("main may be at 6 again");
        assert_eq!((request.count, request.beyond), (0, 6));
    }

    #[test]
    fn numbers_are_reserved_in_advance_and_are_consecutive() {
        let mut range = AutoIncrementRange::default();
        let asked = range.missing(1, 0, 32).expect("none are at hand");
        assert_eq!((asked.needed, asked.count, asked.beyond), (1, 32, 0));
        range.add(1, 32, 0);
        for number in 1..=32 {
            assert!(range.missing(1, 0, 32).is_none());
            assert_eq!(take(&mut range), number);
        }
        let asked = range.missing(100, 0, 32).expect("all are used");
        assert_eq!(asked.count, 100);
        range.add(33, 100, 0);
        assert_eq!(take(&mut range), 33);
    }

    #[test]
    fn numbers_at_a_distance_go_on_after_the_end_of_the_held_values() {
        let rules = NumberRules { keeps_zero: false, increment: 10, offset: 5 };
        assert_eq!([1, 5, 6, 15, 16].map(|least| rules.aligned(least)), [5, 5, 15, 15, 25]);
        // An offset above the distance has no effect.
        assert_eq!(NumberRules { offset: 11, ..rules }.aligned(1), 10);
        let auto =
            AutoColumn { index: ColumnNumber(0), is_hidden: false, number_max: u64::MAX, hidden_key: None, rules };
        let mut range = AutoIncrementRange::default();
        let mut first = 1;
        let mut numbers = Vec::new();
        for _ in 0..3 {
            let needed = numbers_of_rows(2, rules);
            while let Some(asked) = range.missing(needed, 0, 1) {
                range.add(first, asked.count, 0);
                first += asked.count;
            }
            numbers.extend([(); 2].map(|()| next_number(&mut range, Some(auto)).expect("there are numbers")));
        }
        assert_eq!(numbers, [5, 15, 25, 35, 45, 55]);
    }

    #[test]
    fn values_from_insert_id_on_follow_explicit_ones_and_end_behind_the_number_of_rows() {
        let rules = NumberRules { keeps_zero: false, increment: 10, offset: 5 };
        assert_eq!([1, 4, 5, 44, 45, u64::MAX].map(|number| rules.after(number)), [5, 5, 15, 45, 55, u64::MAX]);
        assert_eq!(NumberRules::default().after(7), 8);
        let insert_id = InsertId { first: 44, next: 0 };
        let mut forced = insert_id.forced(true, Some(3), rules);
        forced.pass(100, rules);
        assert_eq!(forced.take(rules), Some(44), "an explicit value before the first does not move it");
        forced.pass(50, rules);
        assert_eq!(forced.take(rules), Some(55));
        forced.pass(64, rules);
        assert_eq!(forced.take(rules), Some(65), "a value below the next one does not move it");
        forced.pass(74, rules);
        assert_eq!(forced.take(rules), None, "the values of three rows end before 74");
        let mut of_query = InsertId { next: 55, ..insert_id }.forced(false, None, rules);
        of_query.pass(1000, rules);
        assert_eq!(of_query.take(rules), Some(1005));
    }

    #[test]
    fn a_remainder_is_kept_if_the_next_range_continues_it() {
        let mut range = AutoIncrementRange { next: 5, end: 8, known: 7, ..AutoIncrementRange::default() };
        range.add(8, 10, 0);
        assert_eq!((take(&mut range), range.end), (5, 18));
        let mut apart = AutoIncrementRange { next: 5, end: 8, known: 7, ..AutoIncrementRange::default() };
        apart.add(100, 10, 0);
        assert_eq!((take(&mut apart), apart.end), (100, 110));
    }

    #[test]
    fn an_explicit_number_is_never_generated_again() {
        let mut range = AutoIncrementRange { next: 5, end: 20, known: 19, ..AutoIncrementRange::default() };
        assert!(range.missing(0, 10, 32).is_none(), "it is among the numbers at hand");
        assert_eq!(take(&mut range), 11);
        assert!(range.missing(1, 3, 32).is_none(), "it is below them");
        let asked = range.missing(0, 500, 32).expect("the counter does not know it");
        assert_eq!((asked.count, asked.beyond), (0, 500));
        range.add(501, 0, 500);
        assert!(range.missing(0, 500, 32).is_none());
        let asked = range.missing(1, 0, 32).expect("the numbers at hand are below the row's");
        range.add(501, asked.count, asked.beyond);
        assert_eq!(take(&mut range), 501);
    }

    #[test]
    fn exhausted_numbers_are_an_error_without_further_requests() {
        let mut range = AutoIncrementRange::default();
        range.add(u64::MAX, 0, u64::MAX);
        assert!(range.missing(0, u64::MAX, 32).is_none());
        let error = next_number(&mut range, None).expect_err("there is none left");
        assert_eq!(error.code, ErrorCode::AutoIncrementExhausted);
        let mut tiny = AutoIncrementRange { next: 128, end: 160, known: 159, ..AutoIncrementRange::default() };
        let auto = AutoColumn {
            index: ColumnNumber(0),
            is_hidden: false,
            number_max: 127,
            hidden_key: None,
            rules: NumberRules::default(),
        };
        assert!(next_number(&mut tiny, Some(auto)).is_err());
    }
}
