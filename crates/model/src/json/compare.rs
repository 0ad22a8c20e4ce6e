//! The order of documents.

use std::cmp::Ordering;

use super::Json;
use crate::decimal;
use crate::key::append_escaped;
use crate::temporal::TemporalKind;
use crate::value::Decimal;

/// MySQL's order of types: null, numbers, strings, objects, arrays, booleans, days, times, both, other bytes.
fn rank(value: &Json<'_>) -> u8 {
    match value {
        Json::Null => 0,
        Json::Int(_) | Json::UInt(_) | Json::Double(_) | Json::Decimal(_) => 1,
        Json::String(_) => 2,
        Json::Object(_) => 3,
        Json::Array(_) => 4,
        Json::Boolean(_) => 5,
        Json::Temporal(value) => match value.kind {
            TemporalKind::Date => 6,
            TemporalKind::Time => 7,
            _ => 8,
        },
        Json::Opaque { .. } => 9,
    }
}

/// The order of two documents. Values of different types are ordered by type.
pub fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let (left, right) = (Json::of(left), Json::of(right));
    let by_type = rank(&left).cmp(&rank(&right));
    by_type.then_with(|| match (left, right) {
        (Json::Boolean(left), Json::Boolean(right)) => left.cmp(&right),
        (Json::String(left), Json::String(right)) => left.cmp(right),
        (Json::Temporal(left), Json::Temporal(right)) => left.packed.cmp(&right.packed),
        (Json::Opaque { wire_type: left_type, bytes: left }, Json::Opaque { wire_type, bytes }) => {
            left_type.cmp(&wire_type).then_with(|| left.cmp(bytes))
        }
        (Json::Array(left), Json::Array(right)) => {
            let different = left.into_iter().zip(right).map(|(left, right)| compare(left, right));
            different.clone().find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Json::Object(left), Json::Object(right)) => left.len().cmp(&right.len()).then_with(|| {
            let pairs = left.into_iter().zip(right);
            let keys = pairs.clone().map(|((left, _), (right, _))| super::order_of_keys(left, right));
            let values = pairs.map(|((_, left), (_, right))| compare(left, right));
            keys.chain(values).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }),
        (left, right) => compare_numbers(&left, &right),
    })
}

/// The order of two numbers, exact unless one is a double.
fn compare_numbers(left: &Json<'_>, right: &Json<'_>) -> Ordering {
    match (exact(left), exact(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => double(left).partial_cmp(&double(right)).unwrap_or(Ordering::Equal),
    }
}

fn exact(value: &Json<'_>) -> Option<Decimal> {
    match value {
        Json::Int(value) => Some(decimal::from_integer((*value).into())),
        Json::UInt(value) => Some(decimal::from_integer((*value).into())),
        Json::Decimal(value) => Some(*value),
        _ => None,
    }
}

fn double(value: &Json<'_>) -> f64 {
    value.as_scalar().and_then(|value| value.to_double().ok()).unwrap_or(0.0)
}

/// Appends bytes with the order of the documents. Exact numbers that differ in more digits than a double
/// has are in their own order, and the double is equal to the nearest.
pub fn append_sort_key(document: &[u8], out: &mut Vec<u8>) {
    let value = Json::of(document);
    out.push(rank(&value));
    match value {
        Json::Null => {}
        Json::Boolean(value) => out.push(value.into()),
        Json::String(text) => append_escaped(text, out),
        Json::Opaque { wire_type, bytes } => {
            out.push(wire_type);
            append_escaped(bytes, out);
        }
        Json::Temporal(value) => out.extend_from_slice(&(value.packed as u64 ^ 1 << 63).to_be_bytes()),
        Json::Array(elements) => {
            for element in elements {
                out.push(1);
                append_sort_key(element, out);
            }
            out.push(0);
        }
        Json::Object(members) => {
            out.extend_from_slice(&(members.len() as u32).to_be_bytes());
            for (key, _) in members {
                out.extend_from_slice(&(key.len() as u32).to_be_bytes());
                out.extend_from_slice(key);
            }
            for (_, value) in members {
                append_sort_key(value, out);
            }
        }
        number => append_number(double(&number), exact(&number), out),
    }
}

/// Appends the nearest double, and the rest of an exact number.
fn append_number(nearest: f64, exact: Option<Decimal>, out: &mut Vec<u8>) {
    let bits = (nearest + 0.0).to_bits();
    let ordered = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
    out.extend_from_slice(&ordered.to_be_bytes());
    let of_double = |exact| decimal::subtract(exact, decimal::from_double(nearest, None)?);
    match exact.and_then(of_double) {
        Some(rest) if !rest.is_zero() => {
            out.push(if rest.is_negative() { 0 } else { 2 });
            append_number(rest.to_double(), Some(rest), out);
        }
        _ => out.push(1),
    }
}
