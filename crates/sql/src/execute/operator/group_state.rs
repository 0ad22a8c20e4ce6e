//! The running state of one aggregate over one group.

use junctor_expression::aggregate::{Accumulator, AggregateKind};
use junctor_expression::{Parameters, Scratch};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::json::{Json, append_array, append_object, is_valid};
use junctor_model::scratch::to_text;
use junctor_model::value::{Value, ValueRef};

use super::append_group_key;
use super::concat_state::ConcatState;
use super::key_table::KeyTable;
use crate::bind::group_function::{GroupFunction, GroupFunctionKind};

/// The state of an aggregate.
#[derive(Debug)]
pub(super) struct GroupState {
    state: State,
    /// The values so far of an aggregate with DISTINCT.
    distinct: Option<KeyTable>,
    memory: usize,
}

#[derive(Debug)]
enum State {
    Plain(Box<Accumulator>),
    Bits(u64),
    /// Number of values, mean, and sum of the squared differences from the mean.
    Variance(u64, f64, f64),
    Texts(ConcatState),
    /// Documents of one element or member.
    Documents(Vec<Box<[u8]>>),
}

impl GroupState {
    pub fn new(function: &GroupFunction) -> GroupState {
        let operand = function.arguments.first().map(|argument| argument.result);
        let state = match function.kind {
            GroupFunctionKind::Plain(kind) => {
                let operand = operand.unwrap_or_else(junctor_expression::ResultType::null);
                State::Plain(Box::new(Accumulator::new(kind, operand)))
            }
            GroupFunctionKind::BitAnd => State::Bits(u64::MAX),
            GroupFunctionKind::BitOr | GroupFunctionKind::BitXor => State::Bits(0),
            GroupFunctionKind::Variance { .. } => State::Variance(0, 0.0, 0.0),
            GroupFunctionKind::Concat => State::Texts(ConcatState::default()),
            GroupFunctionKind::JsonArray | GroupFunctionKind::JsonObject => State::Documents(Vec::new()),
        };
        GroupState { state, distinct: function.distinct.then(KeyTable::default), memory: 0 }
    }

    /// Adds a row. Returns by how many bytes the state has grown.
    pub fn add(&mut self, function: &GroupFunction, row: Parameters<'_>, scratch: &mut Scratch) -> Result<usize> {
        scratch.reset();
        let scratch: &Scratch = scratch;
        let before = self.memory;
        let is_plain_count = function.kind == GroupFunctionKind::Plain(AggregateKind::CountRows);
        let first = match function.arguments.first() {
            Some(argument) => argument.evaluate_unrounded(None, row, scratch)?,
            None => ValueRef::Null,
        };
        let is_any = function.kind == GroupFunctionKind::Plain(AggregateKind::AnyValue);
        for argument in function.arguments.iter().skip(1) {
            if argument.evaluate(None, row, scratch)?.is_null() {
                return Ok(0);
            }
        }
        if first.is_null() && !is_plain_count && !is_any {
            return Ok(0);
        }
        if let State::Texts(texts) = &self.state
            && texts.is_complete(function)
        {
            return Ok(0);
        }
        if let Some(distinct) = &mut self.distinct {
            let mut key = Vec::new();
            for argument in &function.arguments {
                append_group_key(argument.evaluate(None, row, scratch)?, argument.result.collation, &mut key);
            }
            let held = distinct.memory();
            if !distinct.insert(&key, 0).1 {
                return Ok(0);
            }
            self.memory += distinct.memory() - held;
        }
        match &mut self.state {
            State::Plain(accumulator) => {
                accumulator.add(first, scratch)?;
                // Distinct values and extremes hold values.
                self.memory += match function.kind {
                    GroupFunctionKind::Plain(AggregateKind::CountDistinct) => 24,
                    _ => 0,
                };
            }
            State::Bits(bits) => {
                let ValueRef::Int(number) = first else { return Ok(0) };
                let number = number as u64;
                match function.kind {
                    GroupFunctionKind::BitAnd => *bits &= number,
                    GroupFunctionKind::BitOr => *bits |= number,
                    _ => *bits ^= number,
                }
            }
            State::Variance(count, mean, squares) => {
                let ValueRef::Double(value) = first else { return Ok(0) };
                *count += 1;
                let delta = value - *mean;
                *mean += delta / *count as f64;
                *squares += delta * (value - *mean);
            }
            State::Documents(documents) => {
                if let ValueRef::Json(document) = first {
                    self.memory += document.len() + size_of::<Box<[u8]>>();
                    documents.push(document.into());
                }
            }
            State::Texts(texts) => {
                let mut keys = Vec::with_capacity(function.order.len());
                for key in &function.order {
                    keys.push(key.value.evaluate(None, row, scratch)?.to_value());
                }
                self.memory += texts.add(function, keys, to_text(first, scratch)?.to_vec());
            }
        }
        Ok(self.memory - before)
    }

    /// Whether [`Self::remove`] can take back rows.
    pub fn is_reversible(&self) -> bool {
        matches!(&self.state, State::Plain(accumulator) if accumulator.is_reversible())
    }

    /// Takes back a row that was added.
    pub fn remove(&mut self, function: &GroupFunction, row: Parameters<'_>, scratch: &mut Scratch) -> Result<()> {
        scratch.reset();
        let value = match function.arguments.first() {
            Some(argument) => argument.evaluate_unrounded(None, row, scratch)?,
            None => ValueRef::Null,
        };
        match &mut self.state {
            State::Plain(accumulator) => accumulator.remove(value, scratch),
            _ => Ok(()),
        }
    }

    /// Adds the partial state that a partition has made of its rows.
    pub fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        match (&mut self.state, partial) {
            (State::Plain(accumulator), ValueRef::Bytes(partial)) => accumulator.merge_partial(partial).map(|_| ()),
            _ => Err(Error::broken_reply()),
        }
    }

    /// The result. Error: 1041 if a text has more than `bytes_max` bytes.
    pub fn finish(&mut self, function: &GroupFunction, scratch: &Scratch, bytes_max: usize) -> Result<Value> {
        Ok(match &mut self.state {
            State::Plain(accumulator) => accumulator.finish()?,
            State::Bits(bits) => Value::UInt(*bits),
            State::Variance(count, _, squares) => {
                let GroupFunctionKind::Variance { is_sample, is_deviation } = function.kind else {
                    return Ok(Value::Null);
                };
                let divisor = count.saturating_sub(u64::from(is_sample));
                if divisor == 0 {
                    return Ok(Value::Null);
                }
                let variance = *squares / divisor as f64;
                Value::Double(if is_deviation { variance.sqrt() } else { variance })
            }
            State::Documents(documents) => joined(documents)?,
            State::Texts(texts) => texts.finish(function, scratch, bytes_max)?,
        })
    }
}

/// The array or object of all elements or members; NULL without documents. Error: 3157 if it is nested too
/// deeply.
fn joined(documents: &[Box<[u8]>]) -> Result<Value> {
    let mut joined = Vec::new();
    match documents.first().map(|first| Json::of(first)) {
        None => return Ok(Value::Null),
        Some(Json::Object(_)) => {
            let members = documents.iter().flat_map(|document| match Json::of(document) {
                Json::Object(members) => members.into_iter().next(),
                _ => None,
            });
            append_object(members.collect(), &mut joined);
        }
        Some(_) => {
            let elements = documents.iter().flat_map(|document| match Json::of(document) {
                Json::Array(elements) => elements.into_iter().next(),
                _ => None,
            });
            append_array(elements, &mut joined);
        }
    }
    match is_valid(&joined) {
        true => Ok(Value::Json(joined.into())),
        false => Err(Error::new(ErrorCode::JsonTooDeep, "The JSON document exceeds the maximum depth.")),
    }
}
