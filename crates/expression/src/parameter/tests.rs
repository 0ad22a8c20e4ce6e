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

fn encoded(parameters: &[Vec<Value>]) -> Vec<u8> {
    let mut builder = ParametersBuilder::new();
    for values in parameters {
        match &values[..] {
            [single] => builder.push(single.as_ref()),
            list => {
                builder.begin_list();
                list.iter().for_each(|value| builder.push(value.as_ref()));
                builder.end_list();
            }
        }
    }
    let mut bytes = Vec::new();
    builder.append_to(&mut bytes).unwrap();
    bytes
}

proptest! {
    #[test]
    fn parameters_and_lists_read_back(parameters in prop::collection::vec(prop::collection::vec(value(), 0..5), 0..8)) {
        let bytes = encoded(&parameters);
        prop_assert!(Parameters::is_whole(&bytes));
        let view = Parameters::from_bytes(&bytes);
        prop_assert_eq!(view.count(), parameters.len());
        for (ordinal, values) in parameters.iter().enumerate() {
            let list: Vec<_> = view.list(ordinal as u16).map(ValueRef::to_value).collect();
            prop_assert_eq!(&list, values);
            let single = if let [single] = &values[..] { single.clone() } else { Value::Null };
            prop_assert_eq!(view.get(ordinal as u16).to_value(), single);
        }
    }

    #[test]
    fn broken_bytes_never_panic(
        parameters in prop::collection::vec(prop::collection::vec(value(), 0..5), 1..5),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        keep in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encoded(&parameters);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - keep.index(bytes.len()) / 2);
        let _ = Parameters::is_whole(&bytes);
        let view = Parameters::from_bytes(&bytes);
        for ordinal in 0..10 {
            let _ = view.get(ordinal);
            prop_assert!(view.list(ordinal).take(1_000_000).count() < 1_000_000);
        }
    }
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
