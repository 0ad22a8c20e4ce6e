//! Hot path: at most 30 instructions per number.
//!
//! COUNT, SUM, AVG, MIN and MAX. Aggregates run where the rows are stored. Each partition returns a partial
//! state, and the session merges them.
//!
//! A partial state is a tag byte and its content, with little-endian integers. Values are encoded as in
//! [`crate::parameter`].
//!
//! | tag | state | content |
//! |---|---|---|
//! | 1 | count | u64 |
//! | 2 | distinct values | u32 count, then for each value a u32 length and the bytes |
//! | 3 | exact sum | u64 count, value |
//! | 4 | double sum | u64 count, 8 bytes |
//! | 5 | minimum or maximum | value |
//! | 6 | any value, no row | |
//! | 7 | any value | value |

use std::cmp::Ordering;

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::json;
use junctor_model::value::{Decimal, Value, ValueRef};

use crate::decimal::{self, DECIMAL_SCALE_MAX};
use crate::distinct::DistinctSet;
use crate::evaluate::{compare_values, to_decimal, to_double};
use crate::parameter::{append_value, read_value};
use crate::result_type::{Kind, ResultType};
use crate::scratch::Scratch;

/// Maximum memory for the distinct values of one accumulator, in bytes. Error 1041 beyond it.
pub const DISTINCT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Estimated overhead of one entry of the set of distinct values, in bytes.
const DISTINCT_OVERHEAD_BYTES: usize = 24;

const TAG_COUNT: u8 = 1;
const TAG_DISTINCT: u8 = 2;
const TAG_EXACT: u8 = 3;
const TAG_DOUBLE: u8 = 4;
const TAG_EXTREME: u8 = 5;
const TAG_FIRST_NONE: u8 = 6;
const TAG_FIRST: u8 = 7;

/// An aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateKind {
    /// COUNT(*).
    CountRows,
    /// COUNT(e). NULLs do not count.
    Count,
    /// COUNT(DISTINCT e).
    CountDistinct,
    /// SUM(e).
    Sum,
    /// AVG(e). The field is the number of digits that the average of exact numbers adds after the decimal
    /// point (`div_precision_increment`).
    Average(u8),
    /// MIN(e).
    Minimum,
    /// MAX(e).
    Maximum,
    /// The value of the first row. Used for a column outside an aggregate if `sql_mode` lacks
    /// ONLY_FULL_GROUP_BY.
    AnyValue,
}

/// The running state of one aggregate over one group.
#[derive(Clone, Debug)]
pub struct Accumulator {
    kind: AggregateKind,
    operand: ResultType,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Count(u64),
    Distinct { keys: DistinctSet, bytes: usize },
    Exact { count: u64, sum: Decimal },
    Double { count: u64, sum: f64 },
    Extreme(Value),
    First(Option<Value>),
}

impl AggregateKind {
    /// Whether it adds numbers: SUM and AVG.
    pub fn takes_numbers(self) -> bool {
        matches!(self, AggregateKind::Sum | AggregateKind::Average(_))
    }

    /// The type of the result for an operand of type `operand`, which is ignored for COUNT(*).
    ///
    /// The precisions follow MySQL: SUM adds 22 digits. AVG adds the digits that [`AggregateKind::Average`]
    /// contains, after the decimal point.
    pub fn result_type(self, operand: &ResultType) -> ResultType {
        let exact = !is_inexact(operand);
        let operand_type = operand;
        let operand = &operand.as_number();
        let (precision, scale) = (operand.precision(), operand.scale());
        match self {
            AggregateKind::CountRows | AggregateKind::Count | AggregateKind::CountDistinct => {
                ResultType::integer(false, 21)
            }
            AggregateKind::Sum if exact => ResultType::decimal(precision + 22, scale).with_nullable(true),
            AggregateKind::Average(increment) if exact => {
                let scale = scale.saturating_add(increment).min(DECIMAL_SCALE_MAX);
                ResultType::unbounded_decimal(precision + u32::from(increment), scale).with_nullable(true)
            }
            AggregateKind::Sum | AggregateKind::Average(_) => ResultType::double().with_nullable(true),
            AggregateKind::Minimum | AggregateKind::Maximum | AggregateKind::AnyValue => {
                operand_type.with_nullable(true)
            }
        }
    }

    /// The lower-case function name for error messages.
    pub fn name(self) -> &'static str {
        match self {
            AggregateKind::CountRows | AggregateKind::Count | AggregateKind::CountDistinct => "count",
            AggregateKind::Sum => "sum",
            AggregateKind::Average(_) => "avg",
            AggregateKind::Minimum => "min",
            AggregateKind::Maximum => "max",
            AggregateKind::AnyValue => "any_value",
        }
    }
}

impl Accumulator {
    /// The state of an empty group. `operand` is ignored for COUNT(*).
    pub fn new(kind: AggregateKind, operand: ResultType) -> Accumulator {
        let state = match kind {
            AggregateKind::CountRows | AggregateKind::Count => State::Count(0),
            AggregateKind::CountDistinct => State::Distinct { keys: DistinctSet::default(), bytes: 0 },
            AggregateKind::Sum | AggregateKind::Average(_) if is_inexact(&operand) => {
                State::Double { count: 0, sum: 0.0 }
            }
            AggregateKind::Sum | AggregateKind::Average(_) => {
                State::Exact { count: 0, sum: Decimal::Narrow { mantissa: 0, scale: operand.as_number().scale() } }
            }
            AggregateKind::Minimum | AggregateKind::Maximum => State::Extreme(Value::Null),
            AggregateKind::AnyValue => State::First(None),
        };
        Accumulator { kind, operand, state }
    }

    /// Resets the state to that of an empty group.
    pub fn clear(&mut self) {
        *self = Accumulator::new(self.kind, self.operand);
    }

    /// Adds the value of one row. All aggregates except COUNT(*) skip NULL.
    ///
    /// Errors: 1690 when an exact sum exceeds 81 digits, 1041 when the distinct values exceed
    /// [`DISTINCT_BYTES_MAX`], and in strict writes 1292 for a string that is not a number.
    #[inline]
    pub fn add(&mut self, value: ValueRef<'_>, scratch: &Scratch) -> Result<()> {
        if self.kind == AggregateKind::CountRows {
            let State::Count(count) = &mut self.state else { unreachable!("the state of COUNT(*) is a count") };
            *count += 1;
            return Ok(());
        }
        if let State::First(first) = &mut self.state {
            first.get_or_insert_with(|| value.to_value());
            return Ok(());
        }
        if value.is_null() {
            return Ok(());
        }
        match &mut self.state {
            State::First(_) => {}
            State::Count(count) => *count += 1,
            State::Exact { count, sum } => {
                *count += 1;
                add_exact(self.kind, sum, value, scratch)?;
            }
            State::Double { count, sum } => {
                *count += 1;
                *sum += to_double(value, scratch)?;
            }
            State::Extreme(best) => keep_extreme(self.kind, self.operand.collation, best, value),
            State::Distinct { keys, bytes } => {
                let collation = self.operand.collation;
                let key = scratch.build_text(|buffer| append_group_key(value, collation, buffer))?;
                insert_distinct(keys, bytes, key)?;
            }
        }
        Ok(())
    }

    /// Adds the exact sum of `count` values, which SUM and AVG of exact numbers have. Other states do not
    /// change.
    ///
    /// Error: 1690 when the sum exceeds 81 digits.
    pub fn add_sum(&mut self, more: u64, value: Decimal) -> Result<()> {
        if let State::Exact { count, sum } = &mut self.state {
            *sum = decimal::add(*sum, value).ok_or_else(|| sum_out_of_range(self.kind))?;
            *count += more;
        }
        Ok(())
    }

    /// Whether [`Self::remove`] can take back values: for counts and exact sums.
    pub fn is_reversible(&self) -> bool {
        matches!(self.state, State::Count(_) | State::Exact { .. })
    }

    /// Takes back the value of a row that was added, for a frame that moves. Other states than those of
    /// [`Self::is_reversible`] do not change.
    ///
    /// Error: 1690 when an exact sum exceeds 81 digits.
    pub fn remove(&mut self, value: ValueRef<'_>, scratch: &Scratch) -> Result<()> {
        match &mut self.state {
            State::Count(count) if self.kind == AggregateKind::CountRows || !value.is_null() => *count -= 1,
            State::Exact { count, sum } if !value.is_null() => {
                *count -= 1;
                let value = decimal::negate(to_decimal(value, scratch)?);
                *sum = decimal::add(*sum, value).ok_or_else(|| sum_out_of_range(self.kind))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Appends the partial state. The encoding is self-delimiting, so that several states can follow one
    /// another.
    pub fn append_partial(&self, out: &mut Vec<u8>) {
        match &self.state {
            State::Count(count) => {
                out.push(TAG_COUNT);
                out.extend_from_slice(&count.to_le_bytes());
            }
            State::Distinct { keys, .. } => {
                out.push(TAG_DISTINCT);
                out.extend_from_slice(&(keys.len() as u32).to_le_bytes());
                for key in keys.iter() {
                    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
                    out.extend_from_slice(key);
                }
            }
            State::Exact { count, sum } => {
                out.push(TAG_EXACT);
                out.extend_from_slice(&count.to_le_bytes());
                append_value(ValueRef::Decimal(*sum), out);
            }
            State::Double { count, sum } => {
                out.push(TAG_DOUBLE);
                out.extend_from_slice(&count.to_le_bytes());
                out.extend_from_slice(&sum.to_le_bytes());
            }
            State::Extreme(best) => {
                out.push(TAG_EXTREME);
                append_value(best.as_ref(), out);
            }
            State::First(None) => out.push(TAG_FIRST_NONE),
            State::First(Some(first)) => {
                out.push(TAG_FIRST);
                append_value(first.as_ref(), out);
            }
        }
    }

    /// Merges the partial state at the front of `bytes` and returns its length in bytes. An accumulator of
    /// the same kind and operand type must have written it.
    ///
    /// Errors: 1105 for malformed bytes, and the errors of [`Accumulator::add`].
    pub fn merge_partial(&mut self, bytes: &[u8]) -> Result<usize> {
        let before = bytes.len();
        let Some((tag, rest)) = bytes.split_first() else { return Err(malformed()) };
        let rest = match (&mut self.state, *tag) {
            (State::Count(count), TAG_COUNT) => {
                let (more, rest) = read_u64(rest)?;
                *count = count.saturating_add(more);
                rest
            }
            (State::Distinct { keys, bytes }, TAG_DISTINCT) => {
                let (count, mut rest) = read_u32(rest)?;
                for _ in 0..count {
                    let (length, after) = read_u32(rest)?;
                    let (key, after) = after.split_at_checked(length as usize).ok_or_else(malformed)?;
                    insert_distinct(keys, bytes, key)?;
                    rest = after;
                }
                rest
            }
            (State::Exact { count, sum }, TAG_EXACT) => {
                let (more, rest) = read_u64(rest)?;
                let Some((ValueRef::Decimal(value), rest)) = read_value(rest) else { return Err(malformed()) };
                *count = count.saturating_add(more);
                *sum = decimal::add(*sum, value).ok_or_else(|| sum_out_of_range(self.kind))?;
                rest
            }
            (State::Double { count, sum }, TAG_DOUBLE) => {
                let (more, rest) = read_u64(rest)?;
                let (value, rest) = read_u64(rest)?;
                *count = count.saturating_add(more);
                *sum += f64::from_bits(value);
                rest
            }
            (State::Extreme(best), TAG_EXTREME) => {
                let (value, rest) = read_value(rest).ok_or_else(malformed)?;
                if !value.is_null() {
                    keep_extreme(self.kind, self.operand.collation, best, value);
                }
                rest
            }
            (State::First(_), TAG_FIRST_NONE) => rest,
            (State::First(first), TAG_FIRST) => {
                let (value, rest) = read_value(rest).ok_or_else(malformed)?;
                first.get_or_insert_with(|| value.to_value());
                rest
            }
            _ => return Err(malformed()),
        };
        Ok(before - rest.len())
    }

    /// SUM or AVG of exact numbers. An average has the digits of a division, and both can have guard digits.
    fn exact_result(&self, count: u64, sum: Decimal) -> Result<Decimal> {
        if let AggregateKind::Average(increment) = self.kind {
            let count = decimal::from_integer(count.into());
            return decimal::divide_with_guard_digits(sum, count, increment).ok_or_else(|| sum_out_of_range(self.kind));
        }
        let scale = self.kind.result_type(&self.operand).decimals;
        // A sum of so many digits has fewer after the point.
        Ok(if sum.scale() < scale { decimal::with_scale(sum, scale).unwrap_or(sum) } else { sum })
    }

    /// The result over all rows added so far. An exact number may have guard digits, digits beyond the scale
    /// of [`AggregateKind::result_type`]. Error: 1690 when a sum of doubles overflows.
    pub fn finish(&self) -> Result<Value> {
        Ok(match &self.state {
            State::Count(count) => Value::Int(*count as i64),
            State::Distinct { keys, .. } => Value::Int(keys.len() as i64),
            State::Exact { count: 0, .. } | State::Double { count: 0, .. } => Value::Null,
            State::Exact { count, sum } => Value::Decimal(self.exact_result(*count, *sum)?),
            State::Double { count, sum } => {
                let is_average = matches!(self.kind, AggregateKind::Average(_));
                let result = if is_average { sum / *count as f64 } else { *sum };
                if !result.is_finite() {
                    let message = format!("DOUBLE value is out of range in '{}'", self.kind.name());
                    return Err(Error::new(ErrorCode::NumericOutOfRange, message));
                }
                Value::Double(result)
            }
            State::Extreme(best) => best.clone(),
            State::First(first) => first.clone().unwrap_or(Value::Null),
        })
    }
}

fn is_inexact(operand: &ResultType) -> bool {
    matches!(operand.as_number().kind, Kind::Double | Kind::Null)
}

#[inline]
fn add_exact(kind: AggregateKind, sum: &mut Decimal, value: ValueRef<'_>, scratch: &Scratch) -> Result<()> {
    // No overflow check: 2^63 rows of the largest BIGINT still sum to less than 10^38.
    if let (ValueRef::Int(value), Decimal::Narrow { mantissa, scale: 0 }) = (value, &mut *sum) {
        *mantissa += i128::from(value);
        return Ok(());
    }
    let value = to_decimal(value, scratch)?;
    *sum = decimal::add(*sum, value).ok_or_else(|| sum_out_of_range(kind))?;
    Ok(())
}

fn keep_extreme(kind: AggregateKind, collation: CollationId, best: &mut Value, value: ValueRef<'_>) {
    let wanted = if kind == AggregateKind::Minimum { Ordering::Less } else { Ordering::Greater };
    if !best.is_null() && compare_values(collation, value, best.as_ref()) != wanted {
        return;
    }
    match (best, value) {
        (Value::Bytes(kept), ValueRef::Bytes(bytes)) => {
            kept.clear();
            kept.extend_from_slice(bytes);
        }
        (best, value) => *best = value.to_value(),
    }
}

/// Appends bytes that are equal for equal values of one type or of different numeric types. Text is compared
/// in `collation`.
pub fn append_distinct_key(value: ValueRef<'_>, collation: CollationId, out: &mut Vec<u8>) {
    match value {
        ValueRef::Bytes(text) => collation.append_weight_key(text, out),
        ValueRef::Json(document) => json::append_sort_key(document, out),
        ValueRef::Choice(choice) => collation.append_weight_key(&choice.to_choice().text, out),
        other => append_value(canonical(other), out),
    }
}

/// As [`append_distinct_key`], for the values of one column. In an ENUM, the empty text of a value that was
/// no member is not the member ''.
pub fn append_group_key(value: ValueRef<'_>, collation: CollationId, out: &mut Vec<u8>) {
    if let ValueRef::Choice(choice) = value {
        out.push(u8::from(choice.number == 0));
    }
    append_distinct_key(value, collation, out);
}

/// The canonical form of a number, so that equal numbers of different types are one key of COUNT(DISTINCT).
fn canonical(value: ValueRef<'_>) -> ValueRef<'_> {
    match value {
        ValueRef::UInt(value) if i64::try_from(value).is_ok() => ValueRef::Int(value as i64),
        // Adding 0 turns -0 into 0.
        ValueRef::Double(value) => ValueRef::Double(value + 0.0),
        ValueRef::Float(value) => ValueRef::Float(value + 0.0),
        ValueRef::Decimal(value) => {
            let value = decimal::without_trailing_zeros(value);
            match value {
                Decimal::Narrow { mantissa, scale: 0 } if i64::try_from(mantissa).is_ok() => {
                    ValueRef::Int(mantissa as i64)
                }
                Decimal::Narrow { mantissa, scale: 0 } if u64::try_from(mantissa).is_ok() => {
                    ValueRef::UInt(mantissa as u64)
                }
                value => ValueRef::Decimal(value),
            }
        }
        other => other,
    }
}

fn insert_distinct(keys: &mut DistinctSet, bytes: &mut usize, key: &[u8]) -> Result<()> {
    if !keys.insert(key) {
        return Ok(());
    }
    *bytes += key.len() + DISTINCT_OVERHEAD_BYTES;
    if *bytes > DISTINCT_BYTES_MAX {
        let message = "Out of memory; the distinct values of an aggregate exceed the memory limit";
        return Err(Error::new(ErrorCode::OutOfResources, message));
    }
    Ok(())
}

fn read_u64(bytes: &[u8]) -> Result<(u64, &[u8])> {
    let (value, rest) = bytes.split_first_chunk().ok_or_else(malformed)?;
    Ok((u64::from_le_bytes(*value), rest))
}

fn read_u32(bytes: &[u8]) -> Result<(u32, &[u8])> {
    let (value, rest) = bytes.split_first_chunk().ok_or_else(malformed)?;
    Ok((u32::from_le_bytes(*value), rest))
}

#[cold]
fn malformed() -> Box<Error> {
    Error::new(ErrorCode::UnknownError, "Malformed partial state of an aggregate")
}

#[cold]
fn sum_out_of_range(kind: AggregateKind) -> Box<Error> {
    Error::new(ErrorCode::NumericOutOfRange, format!("DECIMAL value is out of range in '{}'", kind.name()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::result_type::Coercibility;

    const ALL: [AggregateKind; 7] = [
        AggregateKind::CountRows,
        AggregateKind::Count,
        AggregateKind::CountDistinct,
        AggregateKind::Sum,
        AggregateKind::Average(4),
        AggregateKind::Minimum,
        AggregateKind::Maximum,
    ];

    fn text_type() -> ResultType {
        ResultType::string(CollationId::UTF8MB4_GENERAL_CI, Coercibility::Implicit, 20)
    }

    #[test]
    fn sums_of_null_are_doubles() {
        for kind in [AggregateKind::Sum, AggregateKind::Average(4)] {
            assert_eq!(kind.result_type(&ResultType::null()).kind, Kind::Double);
        }
    }

    /// The results of all kinds over the values, as text.
    fn results(operand: ResultType, values: &[ValueRef<'_>]) -> Vec<String> {
        let scratch = Scratch::new();
        let text = |value: Value| match value {
            Value::Null => "NULL".to_owned(),
            value => {
                let mut out = Vec::new();
                junctor_model::row_encoding::append_text(value.as_ref(), &mut out);
                String::from_utf8(out).unwrap()
            }
        };
        let result = |kind| {
            let mut accumulator = Accumulator::new(kind, operand);
            values.iter().for_each(|value| accumulator.add(*value, &scratch).unwrap());
            text(match accumulator.finish().unwrap() {
                Value::Decimal(number) => {
                    let scale = kind.result_type(&operand).decimals;
                    Value::Decimal(decimal::with_scale(number, scale).unwrap())
                }
                value => value,
            })
        };
        ALL.into_iter().map(result).collect()
    }

    #[test]
    fn integers_are_summed_exactly_and_averaged_to_four_places() {
        let values = [1, 2, 2, 0].map(ValueRef::Int);
        let operand = ResultType::integer(false, 11);
        assert_eq!(results(operand, &values), ["4", "4", "3", "5", "1.2500", "0", "2"]);
        let big = [ValueRef::UInt(u64::MAX), ValueRef::UInt(u64::MAX), ValueRef::Null];
        assert_eq!(
            results(ResultType::integer(true, 20), &big),
            [
                "3",
                "2",
                "1",
                "36893488147419103230",
                "18446744073709551615.0000",
                "18446744073709551615",
                "18446744073709551615"
            ]
        );
    }

    #[test]
    fn without_rows_or_values_only_counts_are_not_null() {
        let operand = ResultType::integer(false, 11);
        assert_eq!(results(operand, &[]), ["0", "0", "0", "NULL", "NULL", "NULL", "NULL"]);
        assert_eq!(results(operand, &[ValueRef::Null]), ["1", "0", "0", "NULL", "NULL", "NULL", "NULL"]);
    }

    #[test]
    fn zero_with_a_sign_is_not_distinct_from_zero() {
        let scratch = Scratch::new();
        for values in [[0.0, -0.0].map(ValueRef::Float), [0.0, -0.0].map(ValueRef::Double)] {
            let mut accumulator = Accumulator::new(AggregateKind::CountDistinct, ResultType::double());
            values.iter().for_each(|value| accumulator.add(*value, &scratch).unwrap());
            assert_eq!(accumulator.finish(), Ok(Value::Int(1)), "{values:?}");
        }
    }

    #[test]
    fn strings_are_summed_as_doubles_and_compared_by_collation() {
        let values = ["b", "A", "a", "3x"].map(|text| ValueRef::Bytes(text.as_bytes()));
        assert_eq!(results(text_type(), &values), ["4", "4", "3", "3", "0.75", "3x", "b"]);
    }

    #[test]
    fn quotients_are_summed_before_they_are_rounded() {
        let third = ValueRef::Decimal(Decimal::Narrow { mantissa: 333_333_333, scale: 9 });
        let operand = ResultType::decimal(14, 4);
        assert_eq!(results(operand, &[third; 3]), ["3", "3", "1", "1.0000", "0.33333333", "0.3333", "0.3333"]);
    }

    #[test]
    fn sums_and_averages_have_guard_digits() {
        let scratch = Scratch::new();
        let finished = |kind, operand, value: Decimal| {
            let mut accumulator = Accumulator::new(kind, operand);
            for value in [value, value, decimal::from_integer(0)] {
                accumulator.add(ValueRef::Decimal(value), &scratch).unwrap();
            }
            accumulator.finish().unwrap()
        };
        let narrow = |mantissa, scale| Value::Decimal(Decimal::Narrow { mantissa, scale });
        let third = Decimal::Narrow { mantissa: 333_333_333, scale: 9 };
        assert_eq!(finished(AggregateKind::Sum, ResultType::decimal(14, 4), third), narrow(666_666_666, 9));
        let one = decimal::from_integer(1);
        let average = finished(AggregateKind::Average(4), ResultType::integer(false, 11), one);
        assert_eq!(average, narrow(666_666_666, 9));
        // Without room in the last group of nine digits, the average is cut.
        let small = Decimal::Narrow { mantissa: 1, scale: 5 };
        assert_eq!(finished(AggregateKind::Average(4), ResultType::decimal(20, 5), small), narrow(6_666, 9));
    }

    #[test]
    fn counts_and_exact_sums_take_back_values() {
        let scratch = Scratch::new();
        let operand = ResultType::decimal(10, 2);
        let value = |mantissa| ValueRef::Decimal(Decimal::Narrow { mantissa, scale: 2 });
        for (kind, expected) in [
            (AggregateKind::CountRows, Value::Int(1)),
            (AggregateKind::Count, Value::Int(1)),
            (AggregateKind::Sum, Value::Decimal(Decimal::Narrow { mantissa: 225, scale: 2 })),
            (AggregateKind::Average(4), Value::Decimal(Decimal::Narrow { mantissa: 2_250_000, scale: 6 })),
        ] {
            let mut accumulator = Accumulator::new(kind, operand);
            assert!(accumulator.is_reversible());
            for added in [value(150), ValueRef::Null, value(225)] {
                accumulator.add(added, &scratch).unwrap();
            }
            for removed in [value(150), ValueRef::Null] {
                accumulator.remove(removed, &scratch).unwrap();
            }
            assert_eq!(accumulator.finish(), Ok(expected), "{kind:?}");
        }
        assert!(!Accumulator::new(AggregateKind::Sum, ResultType::double()).is_reversible());
        assert!(!Accumulator::new(AggregateKind::Minimum, operand).is_reversible());
    }

    #[test]
    fn result_types_are_those_of_mysql() {
        let int = ResultType::integer(false, 11);
        let sum = AggregateKind::Sum.result_type(&int);
        assert_eq!((sum.kind, sum.precision(), sum.decimals, sum.nullable), (Kind::Decimal, 32, 0, true));
        let average = AggregateKind::Average(4).result_type(&int);
        assert_eq!((average.kind, average.precision(), average.decimals), (Kind::Decimal, 14, 4));
        assert_eq!(AggregateKind::Sum.result_type(&ResultType::integer(false, 20)).precision(), 41);
        let count = AggregateKind::Count.result_type(&int);
        assert_eq!((count.kind, count.length, count.nullable), (Kind::Int, 21, false));
        assert_eq!(AggregateKind::Average(4).result_type(&text_type()).kind, Kind::Double);
        assert_eq!(AggregateKind::Minimum.result_type(&text_type()), text_type().with_nullable(true));
    }

    #[test]
    fn a_partial_state_of_another_kind_is_refused() {
        let operand = ResultType::integer(false, 11);
        let mut bytes = Vec::new();
        Accumulator::new(AggregateKind::Sum, operand).append_partial(&mut bytes);
        for kind in [AggregateKind::Count, AggregateKind::CountDistinct, AggregateKind::Minimum] {
            assert!(Accumulator::new(kind, operand).merge_partial(&bytes).is_err());
        }
    }

    fn operand_and_values() -> impl Strategy<Value = (ResultType, Vec<Value>)> {
        let integers = any::<i32>().prop_map(|value| Value::Int((value >> 20).into()));
        let decimals =
            any::<i16>().prop_map(|value| Value::Decimal(Decimal::Narrow { mantissa: value.into(), scale: 2 }));
        // Sums of multiples of 1/4 are exact in any order.
        let doubles = any::<i16>().prop_map(|value| Value::Double(f64::from(value) / 4.0));
        let texts = "[abAB ]{0,3}".prop_map(|text| Value::Bytes(text.into_bytes()));
        let with_nulls = |value: BoxedStrategy<Value>| {
            prop::collection::vec(prop_oneof![5 => value, 1 => Just(Value::Null)], 0..30).boxed()
        };
        prop_oneof![
            (Just(ResultType::integer(false, 11)), with_nulls(integers.boxed())),
            (Just(ResultType::decimal(10, 2)), with_nulls(decimals.boxed())),
            (Just(ResultType::double()), with_nulls(doubles.boxed())),
            (Just(text_type()), with_nulls(texts.boxed())),
        ]
    }

    proptest! {
        #[test]
        fn merged_parts_give_the_result_of_the_whole((operand, values) in operand_and_values(), cut in any::<prop::sample::Index>()) {
            let scratch = Scratch::new();
            let cut = cut.index(values.len() + 1);
            for kind in ALL {
                let mut whole = Accumulator::new(kind, operand);
                let mut merged = Accumulator::new(kind, operand);
                let mut bytes = Vec::new();
                for part in [&values[..cut], &values[cut..]] {
                    let mut accumulator = Accumulator::new(kind, operand);
                    for value in part {
                        accumulator.add(value.as_ref(), &scratch).unwrap();
                        whole.add(value.as_ref(), &scratch).unwrap();
                    }
                    accumulator.append_partial(&mut bytes);
                }
                let first = merged.merge_partial(&bytes).unwrap();
                prop_assert_eq!(merged.merge_partial(&bytes[first..]).unwrap(), bytes.len() - first);
                let (merged, whole) = (merged.finish().unwrap(), whole.finish().unwrap());
                // Among equal strings, both results are the first one.
                prop_assert_eq!(merged, whole);
            }
        }

        #[test]
        fn malformed_partial_states_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), tag in 1u8..6) {
            let mut bytes = bytes;
            bytes.insert(0, tag);
            for kind in ALL {
                for operand in [ResultType::integer(false, 11), ResultType::double(), text_type()] {
                    let _ = Accumulator::new(kind, operand).merge_partial(&bytes);
                }
            }
        }
    }
}
