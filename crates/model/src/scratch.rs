//! Memory of a thread that evaluates expressions: strings that live until the next row, and the warnings of a
//! statement.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::error::{Error, ErrorCode, Result};
use crate::row_encoding::append_text;
use crate::session_call::SessionCalls;
use crate::temporal::{Parts, Temporal, TemporalKind, ValueRules, add_seconds};
use crate::user_value::UserValue;
use crate::value::{ChoiceRef, ChoiceText, Value, ValueRef};
use bumpalo::Bump;

/// Default of the maximum number of warnings that keep their text (`max_error_count`). Further warnings are
/// only counted.
pub const WARNINGS_KEPT_DEFAULT: u16 = 1024;
/// Maximum length of a string that a function builds, in bytes (`max_allowed_packet`). Beyond it, the
/// function returns NULL with warning 1301.
pub const STRING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Maximum memory for the strings of one row, in bytes.
const ROW_BYTES_MAX: usize = 8 * STRING_BYTES_MAX;
/// Maximum memory kept from row to row, in bytes. Memory beyond it is freed after each row.
const KEPT_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of sequences of random numbers that are continued.
const SEQUENCES_MAX: usize = 16;
/// Maximum number of results that [`Scratch::cached`] keeps.
const CACHED_MAX: usize = 8;
/// Maximum number of characters of a rejected value that a message shows.
const SHOWN_CHARACTERS_MAX: usize = 128;

/// A condition that is reported to the user but has not stopped the statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The error code, which maps to MySQL's number.
    pub code: ErrorCode,
    /// The text of the message, in MySQL's words.
    pub message: Box<str>,
}

/// A position in the list of warnings.
#[derive(Clone, Copy, Debug)]
pub struct WarningMark {
    count: u64,
    /// Number of warnings that keep their text.
    kept: usize,
}

/// Working memory for evaluation. Each thread has its own and resets it for every row.
#[derive(Debug)]
pub struct Scratch {
    arena: Bump,
    /// Whether the arena contains anything. A reset after a row without strings costs only this test.
    is_used: Cell<bool>,
    /// Free buffers for [`Scratch::build`]. There are as many as the deepest nesting of builds so far.
    buffers: RefCell<Vec<Vec<u8>>>,
    warnings: RefCell<Vec<Warning>>,
    warning_count: Cell<u64>,
    warnings_max: u16,
    last_insert_id: Cell<Option<u64>>,
    strict: bool,
    /// Values that [`Scratch::cached`] has made, the newest last.
    cache: RefCell<Vec<Cached>>,
    /// User variables that the statement has assigned, each once.
    assigned: RefCell<Vec<(Box<str>, UserValue)>>,
    /// The calls of the current row that the session carries out.
    session_calls: SessionCalls,
    /// Sequences of random numbers, the oldest first.
    random: RefCell<Vec<(SequenceKey, (u64, u64))>>,
    /// Number of calls of [`Scratch::count_draw`].
    draws: Cell<u64>,
    rules: Cell<ValueRules>,
    now_us: Cell<u64>,
}

/// Identifies a sequence of random numbers: an expression, and an execution of it.
pub type SequenceKey = (usize, u64);

/// A key and what was made for it.
type Cached = (Box<[u8]>, Arc<dyn Any + Send + Sync>);

impl Scratch {
    /// Creates empty memory. Warnings do not become errors until [`Self::set_strict`] is called.
    pub fn new() -> Scratch {
        Scratch {
            arena: limited_arena(),
            is_used: Cell::new(false),
            buffers: RefCell::default(),
            warnings: RefCell::default(),
            warning_count: Cell::default(),
            warnings_max: WARNINGS_KEPT_DEFAULT,
            last_insert_id: Cell::default(),
            strict: false,
            cache: RefCell::default(),
            assigned: RefCell::default(),
            session_calls: SessionCalls::default(),
            random: RefCell::default(),
            draws: Cell::default(),
            rules: Cell::new(ValueRules::DEFAULT),
            now_us: Cell::default(),
        }
    }

    /// Sets whether the statement writes under a strict `sql_mode`, which turns its warnings into errors.
    pub fn set_strict(&mut self, strict: bool) {
        self.strict = strict;
    }

    /// Sets the rules of the session for days and times.
    #[inline]
    pub fn set_value_rules(&self, rules: ValueRules) {
        self.rules.set(rules);
    }

    /// The rules of the session for days and times.
    #[inline]
    pub fn value_rules(&self) -> ValueRules {
        self.rules.get()
    }

    /// Sets the time of the statement, in microseconds since 1970 in UTC.
    #[inline]
    pub fn set_now(&self, microseconds: u64) {
        self.now_us.set(microseconds);
    }

    /// The time of the statement in the time zone of the session, as DATETIME with this number of digits.
    pub fn now(&self, digits: u8) -> ValueRef<'static> {
        ValueRef::Temporal(self.rules.get().zone().date_time_at(self.now_us.get(), digits))
    }

    /// A TIME as DATETIME: that long after the midnight with which the day of the statement begins. `None`
    /// outside the years 0 to 9999.
    pub fn on_this_day(&self, time: Temporal) -> Option<Temporal> {
        let rules = self.rules.get();
        let today = match self.now_us.get() {
            0 => rules.today(),
            now => rules.at(now).today(),
        };
        let today = today.parts();
        let parts = time.parts();
        let seconds = i64::from(parts.hour) * 3600 + i64::from(parts.minute) * 60 + i64::from(parts.second);
        let is_split = parts.negative && parts.microsecond > 0;
        let microsecond = if is_split { 1_000_000 - parts.microsecond } else { parts.microsecond };
        let seconds = if parts.negative { -seconds - i64::from(is_split) } else { seconds };
        let moment = add_seconds(&Parts { microsecond, ..today }, seconds)?;
        Some(Temporal::from_parts(TemporalKind::DateTime, time.digits, &moment))
    }

    /// Whether warnings are errors.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Sets the maximum number of warnings that keep their text.
    #[inline]
    pub fn set_warnings_max(&mut self, warnings_max: u16) {
        self.warnings_max = warnings_max;
    }

    /// Frees the strings of the previous row.
    #[inline]
    pub fn reset(&mut self) {
        if self.is_used.get() {
            self.free_strings();
        }
    }

    #[inline(never)]
    fn free_strings(&mut self) {
        self.is_used.set(false);
        self.arena.reset();
        if self.arena.allocated_bytes() > KEPT_BYTES_MAX {
            self.arena = limited_arena();
        }
    }

    /// Number of warnings since the last [`Self::take_warnings`], including those without text.
    pub fn warning_count(&self) -> u64 {
        self.warning_count.get()
    }

    /// Removes and returns the warnings that kept their text, oldest first, and resets the count.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        self.warning_count.set(0);
        std::mem::take(self.warnings.get_mut())
    }

    /// The current end of the warnings, for [`Self::forget_warnings_after`].
    pub fn warning_mark(&self) -> WarningMark {
        WarningMark { count: self.warning_count.get(), kept: self.warnings.borrow().len() }
    }

    /// Discards the warnings after `mark`. A caller needs this if it will evaluate the same expressions
    /// again, which would otherwise warn twice.
    pub fn forget_warnings_after(&self, mark: WarningMark) {
        self.warning_count.set(mark.count);
        self.warnings.borrow_mut().truncate(mark.kept);
    }

    /// The value as expressions see it: an instant as DATETIME in the time zone of the session.
    #[inline(always)]
    pub fn in_session_zone<'v>(&self, value: ValueRef<'v>) -> ValueRef<'v> {
        match value {
            ValueRef::Temporal(instant) if instant.kind == TemporalKind::Timestamp => {
                ValueRef::Temporal(self.rules.get().zone().date_time_of(instant))
            }
            value => value,
        }
    }

    /// Whether the statement produced a warning or a value of LAST_INSERT_ID(expression).
    #[inline]
    pub fn has_diagnostics(&self) -> bool {
        self.warning_count.get() != 0 || self.last_insert_id.get().is_some()
    }

    /// Removes and returns the argument of the last LAST_INSERT_ID(expression) that was evaluated.
    pub fn take_last_insert_id(&mut self) -> Option<u64> {
        self.last_insert_id.take()
    }

    /// Records the argument of LAST_INSERT_ID(expression).
    pub fn note_last_insert_id(&self, value: u64) {
        self.last_insert_id.set(Some(value));
    }

    /// Records a warning. In strict mode it returns the same condition as an error instead.
    #[cold]
    pub fn warn(&self, code: ErrorCode, message: impl FnOnce() -> String) -> Result<()> {
        if self.strict {
            return Err(Error::new(code, message()));
        }
        self.note(code, message);
        Ok(())
    }

    /// Records a warning that does not become an error in strict mode.
    #[cold]
    pub fn note(&self, code: ErrorCode, message: impl FnOnce() -> String) {
        self.warning_count.set(self.warning_count.get() + 1);
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < usize::from(self.warnings_max) {
            warnings.push(Warning { code, message: message().into() });
        }
    }

    /// The value that `make` returns for this key. The last few are kept beyond the statement, so that a
    /// constant pattern is compiled once. Errors are those of `make`.
    pub fn cached<T: Any + Send + Sync>(&self, key: &[u8], make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let known = {
            let mut cache = self.cache.borrow_mut();
            let place = cache.iter().rposition(|(known, _)| **known == *key);
            place.and_then(|place| {
                let last = cache.len() - 1;
                cache.swap(place, last);
                Arc::clone(&cache[last].1).downcast::<T>().ok()
            })
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        let mut cache = self.cache.borrow_mut();
        if cache.len() == CACHED_MAX {
            cache.remove(0);
        }
        cache.push((key.into(), Arc::<T>::clone(&made)));
        Ok(made)
    }

    /// Assigns a user variable, whose name is in lower case.
    pub fn assign(&self, name: &str, value: UserValue) {
        let mut assigned = self.assigned.borrow_mut();
        match assigned.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, old)) => *old = value,
            None => assigned.push((name.into(), value)),
        }
    }

    /// The value that the statement has assigned to a user variable, in memory that lives until the next row.
    /// `None` if it has assigned none. Error: 1041 as [`Self::copy_until_next_row`].
    pub fn assigned(&self, name: &str) -> Result<Option<ValueRef<'_>>> {
        let assigned = self.assigned.borrow();
        let found = assigned.iter().find(|(known, _)| **known == *name);
        found.map(|(_, found)| self.keep_until_next_row(&found.value)).transpose()
    }

    /// Whether the statement has assigned user variables.
    #[inline]
    pub fn has_assigned(&mut self) -> bool {
        !self.assigned.get_mut().is_empty()
    }

    /// Removes and returns the user variables that the statement has assigned.
    pub fn take_assigned(&mut self) -> Vec<(Box<str>, UserValue)> {
        std::mem::take(self.assigned.get_mut())
    }

    /// A copy of the user variables that the statement has assigned.
    pub fn copy_assigned(&self) -> Vec<(Box<str>, UserValue)> {
        self.assigned.borrow().clone()
    }

    /// Takes back assignments: replaces the user variables that the statement has assigned.
    pub fn restore_assigned(&self, assigned: Vec<(Box<str>, UserValue)>) {
        *self.assigned.borrow_mut() = assigned;
    }

    /// The calls of the current row that the session carries out.
    pub fn session_calls(&self) -> &SessionCalls {
        &self.session_calls
    }

    /// The calls of the current row that the session carries out, to answer them.
    pub fn session_calls_mut(&mut self) -> &mut SessionCalls {
        &mut self.session_calls
    }

    /// The next state of a sequence of random numbers. A sequence that is not known begins with `first`.
    pub fn next_random(
        &self,
        key: SequenceKey,
        first: impl FnOnce() -> (u64, u64),
        next: impl FnOnce((u64, u64)) -> (u64, u64),
    ) -> (u64, u64) {
        let mut sequences = self.random.borrow_mut();
        if let Some((_, state)) = sequences.iter_mut().find(|(known, _)| *known == key) {
            *state = next(*state);
            return *state;
        }
        if sequences.len() == SEQUENCES_MAX {
            sequences.remove(0);
        }
        let state = next(first());
        sequences.push((key, state));
        state
    }

    /// The number of earlier calls by this thread.
    pub fn count_draw(&self) -> u64 {
        self.draws.replace(self.draws.get().wrapping_add(1))
    }

    /// Copies the bytes into memory that lives until the next row. Error: 1041 when the row's strings exceed
    /// the limit.
    pub fn copy_until_next_row(&self, bytes: &[u8]) -> Result<&[u8]> {
        self.is_used.set(true);
        match self.arena.try_alloc_slice_copy(bytes) {
            Ok(kept) => Ok(kept),
            Err(_) => Err(Error::new(ErrorCode::OutOfResources, "Out of memory; the strings of one row are too long")),
        }
    }

    /// The value, with its bytes copied into memory that lives until the next row. Error: 1041 as
    /// [`Self::copy_until_next_row`].
    pub(crate) fn keep_until_next_row(&self, value: &Value) -> Result<ValueRef<'_>> {
        Ok(match value {
            Value::Null => ValueRef::Null,
            Value::Int(value) => ValueRef::Int(*value),
            Value::UInt(value) => ValueRef::UInt(*value),
            Value::Double(value) => ValueRef::Double(*value),
            Value::Decimal(value) => ValueRef::Decimal(*value),
            Value::Bytes(bytes) => ValueRef::Bytes(self.copy_until_next_row(bytes)?),
            Value::Float(value) => ValueRef::Float(*value),
            Value::Temporal(value) => ValueRef::Temporal(*value),
            Value::Bit(value) => ValueRef::Bit(*value),
            Value::Choice(choice) => {
                let text = ChoiceText::Text(self.copy_until_next_row(&choice.text)?);
                ValueRef::Choice(ChoiceRef { number: choice.number, text })
            }
            Value::Json(document) => ValueRef::Json(self.copy_until_next_row(document)?),
        })
    }

    /// Returns the bytes that `build` appends to the given buffer, in memory that lives until the next row;
    /// `None` if `build` returns false. `build` may evaluate further expressions, which may themselves build
    /// strings.
    pub fn build(&self, build: impl FnOnce(&mut Vec<u8>) -> Result<bool>) -> Result<Option<&[u8]>> {
        // The buffer is removed from the pool, not borrowed, because `build` may call this function again.
        let mut buffer = self.buffers.borrow_mut().pop().unwrap_or_default();
        let outcome = build(&mut buffer);
        let kept = match outcome {
            Ok(true) => self.copy_until_next_row(&buffer).map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        buffer.clear();
        buffer.shrink_to(KEPT_BYTES_MAX);
        self.buffers.borrow_mut().push(buffer);
        kept
    }

    /// Like [`Self::build`], for a closure that cannot fail.
    pub fn build_text(&self, build: impl FnOnce(&mut Vec<u8>)) -> Result<&[u8]> {
        let kept = self.build(|buffer| {
            build(buffer);
            Ok(true)
        })?;
        Ok(kept.unwrap_or_default())
    }
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

/// The value as text; NULL is empty.
#[inline]
pub fn to_text<'r>(value: ValueRef<'r>, scratch: &'r Scratch) -> Result<&'r [u8]> {
    match value {
        ValueRef::Bytes(text) => Ok(text),
        ValueRef::Null => Ok(b""),
        number => scratch.build_text(|buffer| append_text(number, buffer)),
    }
}

/// The front of a rejected value for a message.
pub fn excerpt(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(SHOWN_CHARACTERS_MAX).collect()
}

fn limited_arena() -> Bump {
    let arena = Bump::new();
    arena.set_allocation_limit(Some(ROW_BYTES_MAX));
    arena
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::{DateRules, Zone};

    #[test]
    fn a_time_is_on_the_day_of_the_statement_in_the_zone_of_the_session() {
        let east = Zone::find("+2:00").expect("a zone");
        let scratch = Scratch::new();
        scratch.set_value_rules(ValueRules::new(DateRules::DEFAULT, east).at(1_700_000_000_000_000));
        let moment = |negative, hour, microsecond| {
            let parts = Parts { negative, hour, microsecond, ..Parts::default() };
            let moment = scratch.on_this_day(Temporal::from_parts(TemporalKind::Time, 6, &parts));
            let mut text = Vec::new();
            moment.expect("a moment").append_text(&mut text);
            String::from_utf8(text).expect("UTF-8")
        };
        assert_eq!(moment(false, 12, 0), "2023-11-15 12:00:00.000000");
        assert_eq!(moment(false, 36, 5), "2023-11-16 12:00:00.000005");
        assert_eq!(moment(true, 0, 250_000), "2023-11-14 23:59:59.750000");
        scratch.set_now(1_700_100_000_000_000);
        assert_eq!(moment(false, 0, 0), "2023-11-16 00:00:00.000000");
    }
}
