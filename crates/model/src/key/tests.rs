use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::collation::CollationId;
use crate::value::Value;

fn key(column_type: ColumnType, nullable: bool, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    append_value(column_type, nullable, value.as_ref(), &mut out);
    out
}

/// The order of SQL: NULL first, numbers by value, strings by collation.
fn order(column_type: ColumnType, left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (Value::UInt(left), Value::UInt(right)) => left.cmp(right),
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right).unwrap(),
        (Value::Bytes(left), Value::Bytes(right)) => column_type.collation().unwrap().compare(left, right),
        (left, right) => right.is_null().cmp(&left.is_null()),
    }
}

fn double() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("SQL has no such number", |value| value.is_finite()),
        prop::sample::select(vec![0.0, -0.0, 1.0, -1.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, -5e-324]),
    ]
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[a-cA-C é\u{0}\u{1}ß\u{ff}]{0,6}".prop_map(String::into_bytes),
        prop::collection::vec(prop::sample::select(vec![0u8, 1, 0x20, b'a', b'b', 0xFE, 0xFF]), 0..6),
    ]
}

fn type_and_values() -> impl Strategy<Value = (ColumnType, bool, Vec<Value>)> {
    let integers = (prop::sample::select(vec![1u8, 2, 3, 4, 8]), any::<bool>()).prop_flat_map(|(bytes, unsigned)| {
        let shift = 64 - 8 * u32::from(bytes);
        let value = prop_oneof![any::<u64>(), 0u64..300, (0u64..300).prop_map(|value| 0u64.wrapping_sub(value))];
        let value = value.prop_map(move |value| match unsigned {
            true => Value::UInt((value << shift) >> shift),
            false => Value::Int(((value << shift) as i64) >> shift),
        });
        (Just(ColumnType::Integer { bytes, unsigned }), prop::collection::vec(value, 3))
    });
    let doubles = (Just(ColumnType::Double), prop::collection::vec(double().prop_map(Value::Double), 3));
    let texts = (prop::sample::select(CollationId::ALL.to_vec()), prop::collection::vec(text(), 3)).prop_map(
        |(collation, texts)| {
            (ColumnType::VarChar { length: 9, collation }, texts.into_iter().map(Value::Bytes).collect::<Vec<_>>())
        },
    );
    (prop_oneof![integers, doubles, texts], any::<bool>()).prop_map(|((column_type, mut values), nullable)| {
        if nullable {
            values.push(Value::Null);
        }
        (column_type, nullable, values)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_order_of_keys_is_the_order_of_values((column_type, nullable, values) in type_and_values()) {
        for left in &values {
            for right in &values {
                let keys = key(column_type, nullable, left).cmp(&key(column_type, nullable, right));
                prop_assert_eq!(keys, order(column_type, left, right), "{:?} and {:?} as {:?}", left, right, column_type);
            }
        }
    }

    #[test]
    fn no_key_is_a_prefix_of_another((column_type, nullable, values) in type_and_values()) {
        for left in &values {
            for right in &values {
                let (left, right) = (key(column_type, nullable, left), key(column_type, nullable, right));
                prop_assert!(left == right || !right.starts_with(&left));
            }
        }
    }
}

#[test]
fn the_keys_of_integers_are_those_of_their_values() {
    fn check<const BYTES: usize>(values: &[i64]) {
        for unsigned in [false, true] {
            let bits = BYTES as u32 * 8;
            let range = match unsigned {
                true => 0..=(1i128 << bits) - 1,
                false => -(1i128 << (bits - 1))..=(1i128 << (bits - 1)) - 1,
            };
            let column_type = ColumnType::Integer { bytes: BYTES as u8, unsigned };
            for value in values {
                let expected =
                    range.contains(&i128::from(*value)).then(|| key(column_type, false, &Value::Int(*value)));
                let found = IntegerKeys::new(BYTES as u8, unsigned).key::<BYTES>(*value).map(|key| key.to_vec());
                assert_eq!(found, expected, "{value} as {column_type:?}");
            }
        }
    }
    // Values around the limits of every width, signed or not, including the words that wrap.
    let ends = (0..64).flat_map(|bit| [1i64 << bit, (1i64 << bit).wrapping_neg()]);
    let values: Vec<i64> = ends.flat_map(|end| (-2..=2).map(move |step| end.wrapping_add(step))).collect();
    assert!(values.contains(&i64::MIN) && values.contains(&i64::MAX) && values.contains(&0));
    check::<1>(&values);
    check::<2>(&values);
    check::<3>(&values);
    check::<4>(&values);
    check::<8>(&values);
}

#[test]
fn keys_have_the_documented_bytes() {
    let int = ColumnType::Integer { bytes: 4, unsigned: false };
    let medium = ColumnType::Integer { bytes: 3, unsigned: false };
    let binary = ColumnType::VarChar { length: 9, collation: CollationId::BINARY };
    assert_eq!(key(int, false, &Value::Int(1)), [0x80, 0, 0, 1]);
    assert_eq!(key(int, true, &Value::Int(-1)), [1, 0x7F, 0xFF, 0xFF, 0xFF]);
    assert_eq!(key(int, true, &Value::Null), [0]);
    assert_eq!(key(medium, false, &Value::Int(-1)), [0x7F, 0xFF, 0xFF]);
    assert_eq!(key(ColumnType::Double, false, &Value::Double(-0.0)), [0x80, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(key(binary, false, &Value::Bytes(b"a\0\0b".to_vec())), b"a\0\xFF\0\xFFb\0\0");
    assert_eq!(key(binary, false, &Value::Bytes(vec![])), [0, 0]);
}

#[test]
fn a_number_out_of_range_takes_the_key_of_the_nearest_in_range() {
    let tiny = ColumnType::Integer { bytes: 1, unsigned: false };
    let int_unsigned = ColumnType::Integer { bytes: 4, unsigned: true };
    assert_eq!(key(tiny, false, &Value::Int(1000)), key(tiny, false, &Value::Int(127)));
    assert_eq!(key(tiny, false, &Value::UInt(u64::MAX)), key(tiny, false, &Value::Int(127)));
    assert_eq!(key(tiny, false, &Value::Int(-1000)), key(tiny, false, &Value::Int(-128)));
    assert_eq!(key(int_unsigned, false, &Value::Int(-1)), key(int_unsigned, false, &Value::UInt(0)));
    assert_eq!(key(int_unsigned, false, &Value::Double(1e30)), key(int_unsigned, false, &Value::UInt(u64::MAX)));
}
