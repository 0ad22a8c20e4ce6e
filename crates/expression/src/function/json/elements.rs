//! The elements of an array for a multi-valued index, and the elements that a condition seeks there.
//!
//! An element is the text of a value of the index's type. Values that are equal in documents have equal
//! texts, or else [`sought_elements`] does not answer for them. A row that satisfies the condition is
//! therefore found by the elements sought. Others may be found, too, and the condition is tested again.

use junctor_model::collation::CollationId;
use junctor_model::decimal;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::json::Json;
use junctor_model::key_list::{ELEMENT_BYTES_MAX, Elements, append_element};
use junctor_model::row_encoding::append_text_in;
use junctor_model::scratch::Scratch;
use junctor_model::value::{Value, ValueRef};

use super::super::{Call, TypedCall};
use super::value::fitted;
use crate::program::Expression;
use crate::result_type::{Coercibility, Kind, ResultType};

/// Maximum number of different elements of a row.
const ELEMENTS_MAX: usize = 8192;
/// Maximum number of bytes of a list.
const LIST_BYTES_MAX: usize = u16::MAX as usize;
/// Doubles from here on are equal to several integers.
const EXACT_DOUBLES_END: f64 = (1u64 << 53) as f64;
/// Number of digits that a double always has.
const DOUBLE_DIGITS: u32 = 15;

/// The elements of an index that a condition seeks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sought {
    /// A row that satisfies the condition has one of these elements; none does if there is none.
    Elements(Vec<Vec<u8>>),
    /// The elements do not decide the condition.
    Unknown,
}

/// The argument after the first one is NULL of the type of the elements.
pub(super) fn resolve(_: &'static str, mut arguments: Vec<Expression>) -> Result<TypedCall> {
    let of_elements = ResultType { nullable: true, ..arguments[1].result };
    arguments[1] = Expression::constant_of_type(Value::Null, of_elements);
    let result = ResultType::string(CollationId::BINARY, Coercibility::Implicit, LIST_BYTES_MAX as u32);
    Ok(TypedCall { arguments, result: result.with_nullable(true) })
}

/// The list of an array or of one scalar; NULL for NULL.
///
/// # Errors
/// 1235 for an object or a truth value, 3751, 3752, 3903, 3904, 3907 and 3908 for an element that the index
/// cannot have, 3905 and 3906 for too many.
pub(super) fn elements(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(document) = call.document(0)? else { return Ok(ValueRef::Null) };
    let of_elements = &call.arguments[1].result;
    let refused = |misfit: Misfit| misfit.error(&call);
    let mut texts: Vec<Vec<u8>> = Vec::new();
    match Json::of(document) {
        Json::Array(elements) => {
            for element in elements {
                texts.push(text_of(element, of_elements, call.scratch())?.map_err(refused)?);
            }
        }
        Json::Object(_) => return Err(Error::not_supported("CAST-ing JSON OBJECT type to array")),
        Json::Boolean(_) => return Err(Error::not_supported("CAST-ing JSON BOOLEAN type to array")),
        _ => texts.push(text_of(document, of_elements, call.scratch())?.map_err(refused)?),
    }
    texts.sort_unstable();
    texts.dedup();
    if texts.len() > ELEMENTS_MAX {
        return Err(refused(Misfit::Count(texts.len() - ELEMENTS_MAX)));
    }
    let mut list = Vec::new();
    texts.iter().for_each(|text| append_element(text, &mut list));
    if list.len() > LIST_BYTES_MAX {
        return Err(refused(Misfit::Bytes(list.len() - LIST_BYTES_MAX)));
    }
    call.build(|out| out.extend_from_slice(&list))
}

/// The element that is equal to a value, which is no document; NULL if the index has none.
pub(super) fn element(call: Call<'_>) -> Result<ValueRef<'_>> {
    if call.rounded(0)?.is_null() {
        return Ok(ValueRef::Null);
    }
    let value = call.member(0)?;
    match text_of(value, &call.arguments[1].result, call.scratch())? {
        Ok(text) => call.build(|out| out.extend_from_slice(&text)),
        Err(_) => Ok(ValueRef::Null),
    }
}

/// Whether a list has an element; NULL for NULL.
pub(super) fn has(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(list), Some(element)) = (call.text(0)?, call.text(1)?) else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Int(Elements::of(list).any(|own| own == element).into()))
}

/// The elements of an index that the scalar elements of a document, or itself, can be equal to. `of_elements`
/// is the type of the index's elements. Errors: those of the memory of the expression.
pub fn sought_elements(document: &[u8], of_elements: &ResultType, scratch: &Scratch) -> Result<Sought> {
    let mut texts = Vec::new();
    let mut add = |value: &[u8]| {
        let is_known = match Json::of(value) {
            // No row with the index has these among its elements.
            Json::Null | Json::Array(_) | Json::Object(_) => return Ok(true),
            json => is_comparable(json, of_elements),
        };
        if is_known && let Ok(text) = text_of(value, of_elements, scratch)? {
            texts.push(text);
        }
        Ok::<bool, Box<Error>>(is_known)
    };
    match Json::of(document) {
        Json::Array(elements) => {
            for element in elements {
                if !add(element)? {
                    return Ok(Sought::Unknown);
                }
            }
        }
        _ if !add(document)? => return Ok(Sought::Unknown),
        _ => {}
    }
    texts.sort_unstable();
    texts.dedup();
    Ok(Sought::Elements(texts))
}

/// Whether all values that are equal to this one have the same text in the index.
fn is_comparable(json: Json<'_>, of_elements: &ResultType) -> bool {
    let is_exact = matches!(of_elements.kind, Kind::Int | Kind::UInt | Kind::Decimal);
    let scale = if of_elements.kind == Kind::Decimal { of_elements.decimals } else { 0 };
    match json {
        Json::String(_) => true,
        Json::Int(_) | Json::UInt(_) => is_exact,
        // A decimal of fewer digits is that of the double nearest to it.
        Json::Decimal(number) => is_exact && decimal::digits(number) <= DOUBLE_DIGITS,
        // No other decimal of so few digits is equal to the double.
        Json::Double(number) => {
            let exact = decimal::from_double(number, None).map(decimal::without_trailing_zeros);
            let has_few = |exact| {
                let at_scale = decimal::with_scale(exact, scale);
                at_scale.is_some_and(|at_scale| at_scale == exact && decimal::digits(at_scale) <= DOUBLE_DIGITS)
            };
            is_exact && number.abs() < EXACT_DOUBLES_END && exact.is_some_and(has_few)
        }
        Json::Temporal(_) => of_elements.kind.temporal().is_some(),
        Json::Opaque { .. } => of_elements.is_bytes(),
        Json::Null | Json::Boolean(_) | Json::Array(_) | Json::Object(_) => false,
    }
}

/// Why the index cannot have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Misfit {
    /// It is none of the type.
    Invalid,
    /// A number outside the range of the type.
    OutOfRange,
    /// A double whose digits the type has not.
    Inexact,
    /// No day or time.
    Truncated,
    /// A text with too many characters.
    TooLong,
    /// An array or object.
    Nested,
    /// This many elements too many.
    Count(usize),
    /// This many bytes too many.
    Bytes(usize),
}

impl Misfit {
    #[cold]
    fn error(self, call: &Call<'_>) -> Box<Error> {
        let name = call.arguments.get(2).and_then(Expression::as_constant);
        let index = match name {
            Some(Value::Bytes(name)) => String::from_utf8_lossy(name),
            _ => "functional_index".into(),
        };
        let (code, text) = match self {
            Misfit::Invalid => {
                (ErrorCode::MultiValuedInvalid, format!("Invalid JSON value for CAST for functional index '{index}'."))
            }
            Misfit::Inexact => (
                ErrorCode::MultiValuedOutOfRange,
                format!("Out of range JSON value for CAST for functional index '{index}'."),
            ),
            Misfit::OutOfRange => (
                ErrorCode::FunctionalIndexOutOfRange,
                format!("Value is out of range for functional index '{index}' at row 1"),
            ),
            Misfit::Truncated => {
                (ErrorCode::FunctionalIndexTruncated, format!("Data truncated for functional index '{index}' at row 1"))
            }
            Misfit::TooLong => {
                (ErrorCode::FunctionalIndexTooLong, format!("Data too long for functional index '{index}'."))
            }
            Misfit::Nested => (
                ErrorCode::MultiValuedNested,
                format!("Cannot store an array or an object in a scalar key part of the index '{index}'."),
            ),
            Misfit::Count(more) => (
                ErrorCode::MultiValuedKeys,
                format!(
                    "Exceeded max number of values per record for multi-valued index '{index}' by {more} value(s)."
                ),
            ),
            Misfit::Bytes(more) => (
                ErrorCode::MultiValuedBytes,
                format!(
                    "Exceeded max total length of values per record for multi-valued index '{index}' by {more} bytes."
                ),
            ),
        };
        Error::new(code, text)
    }
}

/// The text of a value in the type of the elements.
fn text_of(
    document: &[u8],
    of_elements: &ResultType,
    scratch: &Scratch,
) -> Result<std::result::Result<Vec<u8>, Misfit>> {
    let json = Json::of(document);
    match json {
        Json::Null => return Ok(Err(Misfit::Invalid)),
        Json::Array(_) | Json::Object(_) => return Ok(Err(Misfit::Nested)),
        Json::Opaque { bytes, .. } => {
            return Ok(match of_elements.is_bytes() {
                true if bytes.len() <= of_elements.length as usize => Ok(bytes.to_vec()),
                true => Err(Misfit::TooLong),
                false => Err(Misfit::Invalid),
            });
        }
        Json::Double(number) if of_elements.kind != Kind::String && number.abs() >= EXACT_DOUBLES_END => {
            return Ok(Err(Misfit::Inexact));
        }
        _ => {}
    }
    let fitted = fitted(document, of_elements, scratch)?;
    Ok(match (fitted, json) {
        (Ok(ValueRef::Bytes(text)), _) if text.len() > ELEMENT_BYTES_MAX => Err(Misfit::TooLong),
        (Ok(ValueRef::Bytes(text)), _) => Ok(text.to_vec()),
        (Ok(value), _) => {
            let mut text = Vec::new();
            append_text_in(value, of_elements.decimals, 0, &mut text);
            Ok(text)
        }
        (Err(_), _) if of_elements.kind == Kind::String => Err(Misfit::TooLong),
        (Err(_), _) if of_elements.kind.temporal().is_some() => Err(Misfit::Truncated),
        (Err(super::value::Misfit::Text(_)), _) | (Err(_), Json::Temporal(_)) => Err(Misfit::Invalid),
        (Err(_), _) => Err(Misfit::OutOfRange),
    })
}

#[cfg(test)]
mod tests {
    use junctor_model::json::compare;
    use proptest::prelude::*;

    use super::*;

    fn types() -> Vec<ResultType> {
        let text = |collation, length| ResultType::string(collation, Coercibility::Implicit, length);
        vec![
            ResultType::integer(false, 21),
            ResultType::integer(true, 21),
            ResultType::decimal(12, 2),
            text(CollationId::DEFAULT, 8),
            text(CollationId::BINARY, 8),
        ]
    }

    fn document(json: Json<'_>) -> Vec<u8> {
        let mut document = Vec::new();
        json.append(&mut document);
        document
    }

    fn any_scalar() -> impl Strategy<Value = Vec<u8>> {
        let whole = prop_oneof![-3i64..4, Just(i64::MAX), Just(1 << 53), Just((1 << 53) + 1), Just(-(1 << 60))];
        let scaled = (whole.clone(), 0u8..4);
        prop_oneof![
            whole.clone().prop_map(|number| document(Json::Int(number))),
            whole.clone().prop_map(|number| document(Json::UInt(number as u64))),
            scaled
                .clone()
                .prop_map(|(number, scale)| { document(Json::Double(number as f64 / 10f64.powi(scale.into()))) }),
            scaled.prop_map(|(number, scale)| document(Json::Decimal(decimal::new(number.into(), scale)))),
            "[0-3a. ]{0,3}".prop_map(|text| document(Json::String(text.as_bytes()))),
            any::<bool>().prop_map(|truth| document(Json::Boolean(truth))),
            "[ab]{0,2}".prop_map(|text| document(Json::Opaque { wire_type: 15, bytes: text.as_bytes() })),
        ]
    }

    proptest! {
        #[test]
        fn an_element_that_is_equal_to_a_sought_value_is_found(stored in any_scalar(), sought in any_scalar()) {
            let scratch = Scratch::new();
            for of_elements in types() {
                let Ok(element) = text_of(&stored, &of_elements, &scratch).unwrap() else { continue };
                let Sought::Elements(elements) = sought_elements(&sought, &of_elements, &scratch).unwrap() else {
                    continue;
                };
                if compare(&stored, &sought).is_eq() {
                    prop_assert!(elements.contains(&element), "{of_elements:?}");
                }
            }
        }
    }
}
