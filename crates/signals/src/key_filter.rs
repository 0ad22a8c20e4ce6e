//! Bloom filters of join keys: a join sends that of one side to the scan of the other, which leaves out rows
//! without a partner. A filter may accept a key that is not in it, and never rejects one that is.
//!
//! A filter is a power of two of 64-bit words, little-endian. A key has four bits in one of the words. Both
//! depend on the hash of the key in its form for joins ([`append_distinct_key`]). Nodes of different versions
//! exchange filters, so the hash and that form must not change without a new version of the link.

use junctor_expression::Expression;
use junctor_expression::aggregate::append_distinct_key;
use junctor_model::collation::CollationId;
use junctor_model::value::ValueRef;

/// Maximum number of bytes of a filter.
const FILTER_BYTES_MAX: usize = 256 * 1024;
/// Keys have at least this many bits of the filter each.
const KEY_BITS: usize = 10;
const WORD_BYTES: usize = size_of::<u64>();

/// The filter that a scan applies to its rows.
#[derive(Clone, Debug)]
pub struct KeyFilter {
    /// The value of a row that must be in the filter. NULL never is.
    pub value: Expression,
    /// The collation in which text is compared.
    pub collation: CollationId,
    /// The number of the parameter with the filter: bytes, or NULL to accept every row.
    pub parameter: u16,
}

layout! { KeyFilter { value, collation, parameter } }

/// A filter that is being made.
#[derive(Debug)]
pub struct KeyFilterBuilder {
    words: Vec<u64>,
}

impl KeyFilterBuilder {
    /// An empty filter for this many keys; `None` if there are too many to leave out rows.
    pub fn new(keys: usize) -> Option<KeyFilterBuilder> {
        let words = keys.checked_mul(KEY_BITS)?.div_ceil(u64::BITS as usize).max(1).checked_next_power_of_two()?;
        (words <= FILTER_BYTES_MAX / WORD_BYTES).then(|| KeyFilterBuilder { words: vec![0; words] })
    }

    /// Adds a value, which must not be NULL. `key` is working memory.
    pub fn add(&mut self, value: ValueRef<'_>, collation: CollationId, key: &mut Vec<u8>) {
        let hash = hash_of_value(value, collation, key);
        let place = word_of(hash, self.words.len());
        self.words[place] |= bits_of(hash);
    }

    /// The bytes of the filter.
    pub fn finish(self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Whether a value may be in a filter. Malformed filters have every value. `key` is working memory.
#[inline]
pub fn may_have(filter: &[u8], value: ValueRef<'_>, collation: CollationId, key: &mut Vec<u8>) -> bool {
    if value.is_null() {
        return false;
    }
    let (words, _) = filter.as_chunks::<WORD_BYTES>();
    if !words.len().is_power_of_two() {
        return true;
    }
    let hash = hash_of_value(value, collation, key);
    let bits = bits_of(hash);
    u64::from_le_bytes(words[word_of(hash, words.len())]) & bits == bits
}

fn hash_of_value(value: ValueRef<'_>, collation: CollationId, key: &mut Vec<u8>) -> u64 {
    key.clear();
    append_distinct_key(value, collation, key);
    hash_of(key)
}

/// The place of the word of a hash among a power of two.
#[inline]
fn word_of(hash: u64, words: usize) -> usize {
    (hash >> 32) as usize & (words - 1)
}

/// The bits of a hash in its word.
#[inline]
fn bits_of(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63) | 1 << (hash >> 18 & 63)
}

/// The hash of a key, all of whose bits depend on all bytes.
pub fn hash_of(key: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = key.len() as u64 ^ 0x51_7C_C1_B7_27_22_0A_95;
    for chunk in key.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let product = u128::from(hash ^ u64::from_le_bytes(word)).wrapping_mul(u128::from(FACTOR));
        hash = (product as u64) ^ (product >> 64) as u64 ^ hash.rotate_left(23);
    }
    hash ^ hash >> 29
}

#[cfg(test)]
mod tests {
    use junctor_model::decimal;
    use junctor_model::value::Value;
    use proptest::prelude::*;

    use super::*;

    fn filter_of(values: &[Value], collation: CollationId) -> Vec<u8> {
        let mut builder = KeyFilterBuilder::new(values.len()).expect("few keys");
        let mut key = Vec::new();
        values.iter().for_each(|value| builder.add(value.as_ref(), collation, &mut key));
        builder.finish()
    }

    fn has(filter: &[u8], value: &Value, collation: CollationId) -> bool {
        may_have(filter, value.as_ref(), collation, &mut Vec::new())
    }

    #[test]
    fn equal_numbers_of_other_types_are_found() {
        let decimal = |mantissa, scale| Value::Decimal(decimal::new(mantissa, scale));
        let filter = filter_of(&[decimal(500, 2), Value::Int(-3), Value::UInt(7)], CollationId::BINARY);
        for value in [Value::Int(5), Value::UInt(5), decimal(5, 0), decimal(-30, 1), Value::Int(7)] {
            assert!(has(&filter, &value, CollationId::BINARY), "{value:?}");
        }
    }

    #[test]
    fn text_is_found_as_its_collation_compares_it() {
        let text = |text: &str| Value::Bytes(text.into());
        let filter = filter_of(&[text("Müller"), text("b  ")], CollationId::UTF8MB4_GENERAL_CI);
        for value in ["MULLER", "müller ", "B"] {
            assert!(has(&filter, &text(value), CollationId::UTF8MB4_GENERAL_CI), "{value}");
        }
    }

    #[test]
    fn null_is_never_found_and_malformed_filters_have_everything() {
        let filter = filter_of(&[Value::Int(1)], CollationId::BINARY);
        assert!(!has(&filter, &Value::Null, CollationId::BINARY));
        assert!(has(&[], &Value::Int(1), CollationId::BINARY) && has(&[0; 24], &Value::Int(1), CollationId::BINARY));
    }

    #[test]
    fn most_other_keys_are_left_out_and_a_filter_has_a_bound() {
        let keys: Vec<Value> = (0..10_000).map(Value::Int).collect();
        let filter = filter_of(&keys, CollationId::BINARY);
        let found = (10_000..110_000).filter(|key| has(&filter, &Value::Int(*key), CollationId::BINARY)).count();
        assert!(found < 5_000, "{found} of 100000");
        assert!(KeyFilterBuilder::new(usize::MAX).is_none() && KeyFilterBuilder::new(10_000_000).is_none());
        assert_eq!(KeyFilterBuilder::new(0).expect("no keys").finish().len(), WORD_BYTES);
    }

    proptest! {
        #[test]
        fn no_key_is_rejected(
            numbers in prop::collection::vec(any::<i64>(), 0..200),
            texts in prop::collection::vec(".{0,6}", 0..50),
        ) {
            let mut keys: Vec<Value> = numbers.into_iter().map(Value::Int).collect();
            keys.extend(texts.into_iter().map(|text| Value::Bytes(text.into())));
            for number in [46, 45, 255] {
                let collation = CollationId::from_number(number).expect("a collation");
                let filter = filter_of(&keys, collation);
                for key in &keys {
                    prop_assert!(has(&filter, key, collation));
                }
            }
        }
    }
}
