use proptest::prelude::*;

use super::*;
use crate::result_type::Coercibility;

const ALL: [AggregateKind; 7] = [
    AggregateKind::CountRows,
    AggregateKind::Count,
    AggregateKind::CountDistinct,
    AggregateKind::Sum,
    AggregateKind::Average,
    AggregateKind::Minimum,
    AggregateKind::Maximum,
];

fn text_type() -> ResultType {
    ResultType::string(CollationId::UTF8MB4_GENERAL_CI, Coercibility::Implicit, 20)
}

/// The results of all kinds over the values, as text.
fn results(operand: ResultType, values: &[ValueRef<'_>]) -> Vec<String> {
    let scratch = Scratch::new();
    let text = |value: Value| match value {
        Value::Null => "NULL".to_owned(),
        value => {
            let mut out = Vec::new();
            crate::evaluate::append_text(value.as_ref(), &mut out);
            String::from_utf8(out).unwrap()
        }
    };
    let result = |kind| {
        let mut accumulator = Accumulator::new(kind, operand);
        values.iter().for_each(|value| accumulator.add(*value, &scratch).unwrap());
        text(accumulator.finish().unwrap())
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
fn no_rows_and_only_nulls_give_null_but_for_counts() {
    let operand = ResultType::integer(false, 11);
    assert_eq!(results(operand, &[]), ["0", "0", "0", "NULL", "NULL", "NULL", "NULL"]);
    assert_eq!(results(operand, &[ValueRef::Null]), ["1", "0", "0", "NULL", "NULL", "NULL", "NULL"]);
}

#[test]
fn strings_are_summed_as_doubles_and_compared_by_collation() {
    let values = ["b", "A", "a", "3x"].map(|text| ValueRef::Bytes(text.as_bytes()));
    assert_eq!(results(text_type(), &values), ["4", "4", "3", "3", "0.75", "3x", "b"]);
}

#[test]
fn quotients_are_summed_before_they_are_rounded() {
    let third = ValueRef::Decimal(Decimal { mantissa: 333_333_333, scale: 9 });
    let operand = ResultType::decimal(14, 4);
    assert_eq!(results(operand, &[third; 3]), ["3", "3", "1", "1.0000", "0.33333333", "0.333333333", "0.333333333"]);
}

#[test]
fn result_types_are_those_of_mysql() {
    let int = ResultType::integer(false, 11);
    let sum = AggregateKind::Sum.result_type(&int);
    assert_eq!((sum.kind, sum.precision(), sum.decimals, sum.nullable), (Kind::Decimal, 32, 0, true));
    let average = AggregateKind::Average.result_type(&int);
    assert_eq!((average.kind, average.precision(), average.decimals), (Kind::Decimal, 14, 4));
    assert_eq!(AggregateKind::Sum.result_type(&ResultType::integer(false, 20)).precision(), 41);
    let count = AggregateKind::Count.result_type(&int);
    assert_eq!((count.kind, count.length, count.nullable), (Kind::Int, 21, false));
    assert_eq!(AggregateKind::Average.result_type(&text_type()).kind, Kind::Double);
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
    let decimals = any::<i16>().prop_map(|value| Value::Decimal(Decimal { mantissa: value.into(), scale: 2 }));
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
            // Among equal strings, both keep the first one.
            prop_assert_eq!(merged, whole);
        }
    }

    #[test]
    fn broken_partial_states_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), tag in 1u8..6) {
        let mut bytes = bytes;
        bytes.insert(0, tag);
        for kind in ALL {
            for operand in [ResultType::integer(false, 11), ResultType::double(), text_type()] {
                let _ = Accumulator::new(kind, operand).merge_partial(&bytes);
            }
        }
    }
}
