//! The texts of a GROUP_CONCAT over one group.

use junctor_expression::Scratch;
use junctor_model::collation::CharacterSet;
use junctor_model::error::{ErrorCode, Result};
use junctor_model::value::Value;

use super::sort;
use crate::bind::group_function::GroupFunction;
use crate::execute::memory::out_of_memory;

/// Estimated bytes of a text or of a value of ORDER BY, without its contents.
const VALUE_BYTES: usize = 48;

#[derive(Debug, Default)]
pub(super) struct ConcatState {
    /// The texts with the values of ORDER BY.
    texts: Vec<(Vec<Value>, Vec<u8>)>,
    /// Length of all texts and their separators, in bytes of the result's character set.
    length: u64,
}

impl ConcatState {
    /// Whether further rows do not change the result, because it is cut before them.
    pub fn is_complete(&self, function: &GroupFunction) -> bool {
        function.order.is_empty() && self.length > function.length_max
    }

    /// Adds the text of a row. Returns by how many bytes the state has grown.
    pub fn add(&mut self, function: &GroupFunction, keys: Vec<Value>, text: Vec<u8>) -> usize {
        let set = function.result.result.collation.character_set();
        let separator = if self.texts.is_empty() { 0 } else { set.byte_count(&function.separator) };
        self.length += (separator + set.byte_count(&text)) as u64;
        let grown = text.len() + VALUE_BYTES * (1 + keys.len());
        self.texts.push((keys, text));
        grown
    }

    /// The joined texts; NULL without texts. Error: 1041 if they have more than `bytes_max` bytes.
    pub fn finish(&mut self, function: &GroupFunction, scratch: &Scratch, bytes_max: usize) -> Result<Value> {
        if self.texts.is_empty() {
            return Ok(Value::Null);
        }
        self.texts.sort_by(|(left, _), (right, _)| {
            let pairs = function.order.iter().zip(left.iter().zip(right));
            let mut orders = pairs.map(|(key, (left, right))| sort::compare(key, left.as_ref(), right.as_ref()));
            orders.find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        });
        let set = function.result.result.collation.character_set();
        let separator_length = set.byte_count(&function.separator) as u64;
        let (mut joined, mut length) = (Vec::new(), 0);
        for (place, (_, text)) in self.texts.iter().enumerate() {
            if place > 0 {
                joined.extend_from_slice(&function.separator);
                length += separator_length;
            }
            joined.extend_from_slice(text);
            length += set.byte_count(text) as u64;
            let is_cut = length > function.length_max;
            if is_cut {
                cut(&mut joined, set, usize::try_from(function.length_max).unwrap_or(usize::MAX));
                let row = place + 1;
                scratch.warn(ErrorCode::CutGroupConcat, || format!("Row {row} was cut by GROUP_CONCAT()"))?;
            }
            if joined.len() > bytes_max {
                return Err(out_of_memory());
            }
            if is_cut {
                break;
            }
        }
        Ok(Value::Bytes(joined))
    }
}

/// Cuts a text to so many bytes of its character set, and never inside a character.
fn cut(text: &mut Vec<u8>, set: CharacterSet, length: usize) {
    if set.is_recoded() {
        text.truncate(set.prefix(text, length).len());
        return;
    }
    text.truncate(length);
    while set != CharacterSet::Binary && std::str::from_utf8(text).is_err_and(|error| error.error_len().is_none()) {
        text.pop();
    }
}

#[cfg(test)]
mod tests {
    use junctor_expression::{Coercibility, Expression, ResultType};
    use junctor_model::collation::CollationId;
    use junctor_model::id::ColumnNumber;
    use junctor_signals::program::SortKey;

    use super::*;
    use crate::bind::group_function::GroupFunctionKind;

    fn concat(length_max: u64, separator: &[u8], is_ordered: bool) -> GroupFunction {
        let result = ResultType::string(CollationId::DEFAULT, Coercibility::Implicit, 9);
        let result = Expression::column_of_type(ColumnNumber(0), result, "");
        let key = SortKey { value: result.clone(), descending: false, is_in_result: false };
        GroupFunction {
            kind: GroupFunctionKind::Concat,
            arguments: Vec::new(),
            distinct: false,
            order: if is_ordered { vec![key] } else { Vec::new() },
            separator: separator.to_vec(),
            length_max,
            result,
        }
    }

    #[test]
    fn rows_behind_the_cut_of_a_text_without_order_are_not_needed() {
        let function = concat(5, b",", false);
        let mut state = ConcatState::default();
        let needed = ["ab", "cd", "ef", "gh"].map(|text| {
            let is_needed = !state.is_complete(&function);
            state.add(&function, Vec::new(), text.into());
            is_needed
        });
        assert_eq!(needed, [true, true, true, false]);
        let finished = state.finish(&function, &Scratch::new(), 100).expect("it fits");
        assert_eq!(finished, Value::Bytes(b"ab,cd".to_vec()));
        let ordered = concat(1, b",", true);
        state.add(&ordered, vec![Value::Int(1)], b"long".to_vec());
        assert!(!state.is_complete(&ordered), "a later row may come first");
    }

    #[test]
    fn separators_count_for_the_memory_of_the_query() {
        let function = concat(u64::MAX, &[b'-'; 1000], false);
        let mut state = ConcatState::default();
        (0..10).for_each(|_| _ = state.add(&function, Vec::new(), b"x".to_vec()));
        let error = state.finish(&function, &Scratch::new(), 9000).expect_err("too long");
        assert_eq!(error.code, ErrorCode::OutOfResources);
        let finished = state.finish(&function, &Scratch::new(), 10_000).expect("it fits");
        assert!(matches!(finished, Value::Bytes(text) if text.len() == 9010));
        let function = concat(8000, &[b'-'; 1000], false);
        let finished = state.finish(&function, &Scratch::new(), 8000).expect("the cut text fits");
        assert!(matches!(finished, Value::Bytes(text) if text.len() == 8000));
    }
}
