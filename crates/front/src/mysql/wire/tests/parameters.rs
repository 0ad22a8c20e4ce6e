use super::hex;
use crate::mysql::wire::capability::Capabilities;
use crate::mysql::wire::command::Command;
use crate::mysql::wire::error::ProtocolError;
use crate::mysql::wire::parameter::{
    ColumnType, DateTimeValue, DateValue, ParameterBlock, ParameterType, ParameterValue, TimeValue, decode_parameters,
    encode_parameters,
};
use proptest::prelude::*;

/// The capabilities of a client without query attributes.
const PLAIN: Capabilities = Capabilities::SERVER.without(Capabilities::QUERY_ATTRIBUTES);

fn decode<'a>(
    block: &ParameterBlock<'a>,
    count: usize,
    types: &mut Vec<ParameterType>,
) -> Result<Vec<ParameterValue<'a>>, ProtocolError> {
    let mut values = Vec::new();
    decode_parameters(block, count, types, |_| None, &mut |index, value| {
        assert_eq!(index, values.len());
        values.push(value);
    })?;
    Ok(values)
}

fn plain(bytes: &[u8]) -> ParameterBlock<'_> {
    ParameterBlock { bytes, named: false }
}

#[test]
fn the_documented_execution_is_decoded() {
    let bytes = hex("17 01 00 00 00 00 01 00 00 00 00 01 0f 00 03 66 6f 6f");
    let Ok(Command::StmtExecute(execute)) = Command::parse(&bytes, PLAIN) else { panic!("an execution") };
    assert_eq!(execute.statement_id, 1);
    let values = decode(&execute.parameters, 1, &mut Vec::new());
    assert_eq!(values, Ok(vec![ParameterValue::Text(b"foo")]));
}

#[test]
fn every_type_is_decoded() {
    let date = DateValue { year: 2010, month: 10, day: 17 };
    let second = DateTimeValue { date, hour: 19, minute: 27, second: 30, microsecond: 0 };
    let instant = DateTimeValue { microsecond: 1, ..second };
    let time = TimeValue { negative: true, days: 120, hours: 19, minutes: 27, seconds: 30, microseconds: 0 };
    let midnight = DateTimeValue { date, ..DateTimeValue::default() };
    for (bound, value, expected) in [
        ("01 00", "ff", ParameterValue::Signed(-1)),
        ("01 80", "ff", ParameterValue::Unsigned(255)),
        ("02 00", "00 80", ParameterValue::Signed(-32_768)),
        ("02 80", "00 80", ParameterValue::Unsigned(32_768)),
        ("0d 80", "da 07", ParameterValue::Unsigned(2010)),
        ("03 00", "fe ff ff ff", ParameterValue::Signed(-2)),
        ("03 80", "fe ff ff ff", ParameterValue::Unsigned(0xffff_fffe)),
        ("09 00", "01 00 00 00", ParameterValue::Signed(1)),
        ("08 00", "ff ff ff ff ff ff ff ff", ParameterValue::Signed(-1)),
        ("08 80", "ff ff ff ff ff ff ff ff", ParameterValue::Unsigned(u64::MAX)),
        ("04 00", "33 33 23 41", ParameterValue::Float(10.2)),
        ("05 00", "66 66 66 66 66 66 24 40", ParameterValue::Double(10.2)),
        ("06 00", "", ParameterValue::Null),
        ("00 00", "01 31", ParameterValue::Decimal(b"1")),
        ("f6 00", "03 31 2e 35", ParameterValue::Decimal(b"1.5")),
        ("fe 00", "01 61", ParameterValue::Text(b"a")),
        ("fd 00", "00", ParameterValue::Text(b"")),
        ("f5 00", "02 7b 7d", ParameterValue::Text(b"{}")),
        ("fc 00", "02 00 ff", ParameterValue::Blob(&[0, 255])),
        ("10 00", "01 05", ParameterValue::Blob(&[5])),
        ("0a 00", "04 da 07 0a 11", ParameterValue::Date(date)),
        ("0a 00", "00", ParameterValue::Date(DateValue::default())),
        ("0c 00", "04 da 07 0a 11", ParameterValue::DateTime(midnight)),
        ("0c 00", "07 da 07 0a 11 13 1b 1e", ParameterValue::DateTime(second)),
        ("07 00", "0b da 07 0a 11 13 1b 1e 01 00 00 00", ParameterValue::DateTime(instant)),
        ("0b 00", "00", ParameterValue::Time(TimeValue::default())),
        ("0b 00", "08 01 78 00 00 00 13 1b 1e", ParameterValue::Time(time)),
        (
            "0b 00",
            "0c 01 78 00 00 00 13 1b 1e 01 00 00 00",
            ParameterValue::Time(TimeValue { microseconds: 1, ..time }),
        ),
    ] {
        let bytes = hex(&format!("00 01 {bound} {value}"));
        assert_eq!(decode(&plain(&bytes), 1, &mut Vec::new()), Ok(vec![expected]), "{bound} {value}");
        if let Some(cut) = bytes.len().checked_sub(1).filter(|_| !value.is_empty()) {
            assert!(decode(&plain(&bytes[..cut]), 1, &mut Vec::new()).is_err(), "{bound} {value}, cut");
        }
    }
}

#[test]
fn types_stay_bound_until_new_ones_are_sent() {
    let mut types = Vec::new();
    let first = hex("00 01 03 00 05 00 00 00");
    assert_eq!(decode(&plain(&first), 1, &mut types), Ok(vec![ParameterValue::Signed(5)]));
    let again = hex("00 00 06 00 00 00");
    assert_eq!(decode(&plain(&again), 1, &mut types), Ok(vec![ParameterValue::Signed(6)]));
    let other = hex("00 01 01 80 ff");
    assert_eq!(decode(&plain(&other), 1, &mut types), Ok(vec![ParameterValue::Unsigned(255)]));
    let again = hex("00 00 06");
    assert_eq!(decode(&plain(&again), 1, &mut types), Ok(vec![ParameterValue::Unsigned(6)]));
}

#[test]
fn types_sent_again_may_change_one_parameter_or_its_sign() {
    let mut types = Vec::new();
    let (signed, unsigned) = (ParameterValue::Signed(-1), ParameterValue::Unsigned(255));
    for (sent, expected) in [
        ("00 01 01 00 01 00 ff ff", [signed, signed]),
        ("00 01 01 00 01 00 ff ff", [signed, signed]),
        ("00 01 01 00 01 80 ff ff", [signed, unsigned]),
        ("00 01 01 80 01 80 ff ff", [unsigned, unsigned]),
        ("00 01 01 80 fd 00 ff 01 61", [unsigned, ParameterValue::Text(b"a")]),
        ("00 00 ff 01 62", [unsigned, ParameterValue::Text(b"b")]),
    ] {
        assert_eq!(decode(&plain(&hex(sent)), 2, &mut types).unwrap(), expected, "{sent}");
    }
    // The second type is cut off.
    assert!(decode(&plain(&hex("00 01 01 80 fd")), 2, &mut types).is_err());
}

#[test]
fn an_execution_without_types_needs_an_earlier_one() {
    let bytes = hex("00 00 06 00 00 00");
    let expected = Err(ProtocolError::Malformed { field: "new_types" });
    assert_eq!(decode(&plain(&bytes), 1, &mut Vec::new()), expected);
}

#[test]
fn nulls_and_long_data_have_no_bytes_in_the_block() {
    let bytes = hex("02 01 fe 00 03 00 fc 00 01 78");
    let mut values = Vec::new();
    let long_data = |index| (index == 2).then_some(&b"long"[..]);
    decode_parameters(&plain(&bytes), 3, &mut Vec::new(), long_data, &mut |_, value| values.push(value)).unwrap();
    assert_eq!(values, [ParameterValue::Text(b"x"), ParameterValue::Null, ParameterValue::Blob(b"long")]);
}

#[test]
fn the_null_bitmap_has_a_bit_for_each_parameter() {
    let mut bytes = hex("00 01 01");
    for _ in 0..9 {
        bytes.extend_from_slice(&[3, 0]);
    }
    bytes.splice(0..3, hex("ff 01 01"));
    let nulls = vec![ParameterValue::Null; 9];
    assert_eq!(decode(&plain(&bytes), 9, &mut Vec::new()), Ok(nulls));
}

#[test]
fn no_parameters_need_no_block() {
    assert_eq!(decode(&plain(&[]), 0, &mut Vec::new()), Ok(vec![]));
    assert!(decode(&plain(&[]), 1, &mut Vec::new()).is_err());
}

#[test]
fn attributes_after_the_parameters_are_ignored() {
    let bytes = hex("02 00 01 03 00 00 fe 00 01 6b 07 00 00 00 01 76");
    let mut types = Vec::new();
    let block = ParameterBlock { bytes: &bytes, named: true };
    assert_eq!(decode(&block, 1, &mut types), Ok(vec![ParameterValue::Signed(7)]));
    assert_eq!(types.len(), 1);
    assert!(decode(&block, 3, &mut types).is_err(), "fewer values than parameters");
}

#[test]
fn a_false_count_allocates_no_memory() {
    let mut types = Vec::new();
    let mut bytes = vec![0; 8192];
    bytes.push(1);
    assert!(decode(&plain(&bytes), 65_535, &mut types).is_err());
    assert_eq!(types.capacity(), 0);
}

fn parameter() -> impl Strategy<Value = (ParameterType, ParameterValue<'static>)> {
    let typed = |column_type, unsigned| ParameterType { column_type, unsigned };
    prop_oneof![
        any::<bool>().prop_map(move |unsigned| (typed(ColumnType::Long, unsigned), ParameterValue::Null)),
        any::<i8>().prop_map(move |v| (typed(ColumnType::Tiny, false), ParameterValue::Signed(v.into()))),
        any::<u16>().prop_map(move |v| (typed(ColumnType::Short, true), ParameterValue::Unsigned(v.into()))),
        any::<i32>().prop_map(move |v| (typed(ColumnType::Long, false), ParameterValue::Signed(v.into()))),
        any::<u64>().prop_map(move |v| (typed(ColumnType::LongLong, true), ParameterValue::Unsigned(v))),
        any::<i64>().prop_map(move |v| (typed(ColumnType::LongLong, false), ParameterValue::Signed(v))),
        (-1e30_f64..1e30).prop_map(move |v| (typed(ColumnType::Double, false), ParameterValue::Double(v))),
        (0_usize..300).prop_map(move |length| {
            (typed(ColumnType::VarString, false), ParameterValue::Text(&[b'x'; 300][..length]))
        }),
        any::<(u16, u8, u8, u8, u32)>().prop_map(move |(year, month, day, hour, microsecond)| {
            let date = DateValue { year, month, day };
            let value = DateTimeValue { date, hour, minute: day, second: month, microsecond };
            (typed(ColumnType::DateTime, false), ParameterValue::DateTime(value))
        }),
        any::<(bool, u32, u8, u8, u8, u32)>().prop_map(
            move |(negative, days, hours, minutes, seconds, microseconds)| {
                let value = TimeValue { negative, days, hours, minutes, seconds, microseconds };
                (typed(ColumnType::Time, false), ParameterValue::Time(value))
            }
        ),
    ]
}

proptest! {
    #[test]
    fn parameters_decode_to_themselves(parameters in prop::collection::vec(parameter(), 1..40)) {
        let mut types = Vec::new();
        let expected: Vec<_> = parameters.iter().map(|(_, value)| *value).collect();
        for send_types in [true, false] {
            let mut bytes = Vec::new();
            encode_parameters(&parameters, send_types, &mut bytes);
            prop_assert_eq!(decode(&plain(&bytes), parameters.len(), &mut types).unwrap(), expected.clone());
        }
    }
}
