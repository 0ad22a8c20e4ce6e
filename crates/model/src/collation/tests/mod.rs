//! Tests of the collations: golden orders, properties of compare and keys, LIKE, names.

mod conformance;
mod east_asian_order;
mod encoding;
mod general_order;
mod language_order;
mod lookup;
mod peer;
mod pattern;
mod property;
mod text;
mod unicode_order;

use std::cmp::Ordering;

use super::CollationId;

fn key(collation: CollationId, text: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    collation.append_weight_key(text, &mut key);
    key
}

/// Asserts, for all pairs of texts, that texts within a class are equal, that classes ascend, and that keys
/// agree.
fn assert_classes_rise(collation: CollationId, classes: &[&[&str]]) {
    let texts: Vec<(usize, &str)> =
        classes.iter().enumerate().flat_map(|(class, texts)| texts.iter().map(move |&text| (class, text))).collect();
    for &(left_class, left) in &texts {
        for &(right_class, right) in &texts {
            let expected = left_class.cmp(&right_class);
            let (left_bytes, right_bytes) = (left.as_bytes(), right.as_bytes());
            assert_eq!(collation.compare(left_bytes, right_bytes), expected, "{collation}: {left:?}, {right:?}");
            let keys = key(collation, left_bytes).cmp(&key(collation, right_bytes));
            assert_eq!(keys, expected, "keys of {collation}: {left:?}, {right:?}");
            assert_eq!(collation.equal(left_bytes, right_bytes), expected == Ordering::Equal);
        }
    }
}
