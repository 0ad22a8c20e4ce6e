use proptest::prelude::*;

use super::*;
use junctor_model::value::Value;

pub(crate) fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::UInt),
        any::<f64>().prop_filter("SQL has no such number", |value| value.is_finite()).prop_map(Value::Double),
        (any::<i64>(), 0u8..=30)
            .prop_map(|(mantissa, scale)| Value::Decimal(Decimal { mantissa: mantissa.into(), scale })),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Bytes),
    ]
}

/// One parameter of a test.
#[derive(Clone, Debug)]
enum Given {
    /// One value; or a list if there are none or several.
    Values(Vec<Value>),
    /// A list of signed integers of any length.
    Integers(Vec<i64>),
}

fn given(length_max: usize) -> impl Strategy<Value = Vec<Given>> {
    let integer = prop_oneof![any::<i64>(), -3i64..3, prop::sample::select(vec![i64::MIN, i64::MAX])];
    let given = prop_oneof![
        2 => prop::collection::vec(value(), 0..5).prop_map(Given::Values),
        1 => prop::collection::vec(integer, 0..20).prop_map(Given::Integers),
    ];
    prop::collection::vec(given, 0..length_max)
}

fn encoded(parameters: &[Given]) -> Vec<u8> {
    let mut builder = ParametersBuilder::new();
    for given in parameters {
        match given {
            Given::Integers(integers) => builder.push_integers(integers.iter().copied()),
            Given::Values(values) => match &values[..] {
                [single] => builder.push(single.as_ref()),
                list => {
                    builder.begin_list();
                    list.iter().for_each(|value| builder.push(value.as_ref()));
                    builder.end_list();
                }
            },
        }
    }
    let mut bytes = Vec::new();
    builder.append_to(&mut bytes).unwrap();
    bytes
}

fn integers_of(bytes: &[[u8; 8]]) -> Vec<i64> {
    bytes.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
}

proptest! {
    #[test]
    fn parameters_and_lists_read_back(parameters in given(8)) {
        let bytes = encoded(&parameters);
        prop_assert!(Parameters::is_whole(&bytes));
        let view = Parameters::from_bytes(&bytes);
        prop_assert_eq!(view.count(), parameters.len());
        for (ordinal, given) in parameters.iter().enumerate() {
            let list = view.list(ordinal as u16);
            let integers: Option<Vec<i64>> = list.integers().map(integers_of);
            let values: Vec<_> = list.map(ValueRef::to_value).collect();
            let single = view.get(ordinal as u16).to_value();
            match given {
                Given::Integers(given) => {
                    prop_assert_eq!(values, given.iter().copied().map(Value::Int).collect::<Vec<_>>());
                    prop_assert_eq!((integers.as_ref(), single), (Some(given), Value::Null));
                }
                Given::Values(given) => {
                    prop_assert_eq!(&values, given);
                    let expected = if let [single] = &given[..] { single.clone() } else { Value::Null };
                    prop_assert_eq!((integers, single), (None, expected));
                }
            }
        }
    }

    #[test]
    fn broken_bytes_never_panic(
        parameters in given(5),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        keep in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encoded(&parameters);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - keep.index(bytes.len()) / 2);
        let is_whole = Parameters::is_whole(&bytes);
        let view = Parameters::from_bytes(&bytes);
        for ordinal in 0..10 {
            let _ = view.get(ordinal);
            let list = view.list(ordinal);
            prop_assert!(list.take(1_000_000).count() < 1_000_000);
            if let Some(integers) = list.integers() {
                let values: Vec<_> = list.map(ValueRef::to_value).collect();
                prop_assert_eq!(values, integers_of(integers).into_iter().map(Value::Int).collect::<Vec<_>>());
            }
            prop_assert!(!is_whole || list.count() == list.size_hint().1.unwrap_or(0));
        }
    }
}

#[test]
fn a_list_of_integers_that_says_more_than_it_holds_is_not_whole() {
    let mut bytes = encoded(&[Given::Integers(vec![1, 2, 3])]);
    // The count follows the tag byte.
    bytes[1] += 1;
    assert!(!Parameters::is_whole(&bytes));
    let list = Parameters::from_bytes(&bytes).list(0);
    assert_eq!((list.integers(), list.count()), (None, 3));
}

#[test]
fn a_builder_is_used_again_after_clear() {
    let mut builder = ParametersBuilder::new();
    builder.begin_list();
    builder.push(ValueRef::Int(1));
    builder.clear();
    builder.push(ValueRef::Int(2));
    let mut bytes = Vec::new();
    builder.append_to(&mut bytes).unwrap();
    let view = Parameters::from_bytes(&bytes);
    assert_eq!((view.count(), view.get(0), view.get(1)), (1, ValueRef::Int(2), ValueRef::Null));
}

#[test]
fn no_bytes_are_no_parameters() {
    assert_eq!(Parameters::from_bytes(&[]).count(), 0);
    assert!(Parameters::is_whole(&[]));
    assert_eq!(Parameters::NONE.get(0), ValueRef::Null);
}
