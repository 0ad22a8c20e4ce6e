use proptest::prelude::*;

use super::*;
use crate::collation::CollationId;
use crate::id::{ColumnNumber, IndexId, TableId};
use crate::row::tests::table_and_row;
use crate::row::{RowFormat, RowView};
use crate::schema::{ColumnDefinition, IndexDefinition, IndexKind, TableDefinition};
use crate::types::DataType;
use crate::value::{Decimal, Value, ValueRef};

fn double(value: f64) -> String {
    let mut out = Vec::new();
    append_double(value, &mut out);
    String::from_utf8(out).unwrap()
}

fn text(value: ValueRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    append_text_value(value, &mut out);
    out
}

#[test]
fn only_a_timestamp_that_the_server_sets_is_marked_as_one() {
    let column = ColumnDefinition { nullable: true, ..ColumnDefinition::new("c", DataType::timestamp(3)) };
    assert_eq!(ResultColumn::of_definition(&column).flags, column_flag::BINARY);
    let created = ColumnDefinition { default_now: true, ..column.clone() };
    assert_eq!(ResultColumn::of_definition(&created).flags, column_flag::BINARY | column_flag::TIMESTAMP);
    let changed = ColumnDefinition { on_update_now: true, ..column };
    let of_change = column_flag::BINARY | column_flag::TIMESTAMP | column_flag::ON_UPDATE_NOW;
    assert_eq!(ResultColumn::of_definition(&changed).flags, of_change);
    let day = ColumnDefinition { default_now: true, ..ColumnDefinition::new("c", DataType::date_time(0)) };
    assert_eq!(ResultColumn::of_definition(&day).flags & column_flag::TIMESTAMP, 0);
}

#[test]
fn doubles_print_as_mysql_prints_them() {
    let cases = [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1.0 / 3.0, "0.3333333333333333"),
        (0.00001, "0.00001"),
        (1e14, "100000000000000"),
        (123456789012345.0, "123456789012345"),
        (1e15, "1e15"),
        (1.5e15, "1.5e15"),
        (1e20, "1e20"),
        (-1.25e20, "-1.25e20"),
        (123456789.5, "123456789.5"),
        (1e-14, "0.00000000000001"),
        (1e-15, "0.000000000000001"),
        (1e-16, "1e-16"),
        (1.25e-16, "1.25e-16"),
        (f64::MAX, "1.7976931348623157e308"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (5e-324, "5e-324"),
    ];
    for (value, expected) in cases {
        assert_eq!(double(value), expected);
    }
}

#[test]
fn values_of_the_text_protocol_are_length_encoded() {
    assert_eq!(text(ValueRef::Null), [0xFB]);
    assert_eq!(text(ValueRef::Int(-105)), b"\x04-105");
    assert_eq!(text(ValueRef::Int(i64::MIN)), b"\x14-9223372036854775808");
    assert_eq!(text(ValueRef::UInt(u64::MAX)), b"\x1418446744073709551615");
    assert_eq!(text(ValueRef::Double(2.5)), b"\x032.5");
    assert_eq!(text(ValueRef::Decimal(Decimal::Narrow { mantissa: -7, scale: 2 })), b"\x05-0.07");
    assert_eq!(text(ValueRef::Bytes(b"")), [0]);
    assert_eq!(text(ValueRef::Bytes(&[b'x'; 251]))[..4], [0xFC, 251, 0, b'x']);
    assert_eq!(text(ValueRef::Bytes(&vec![b'x'; 65_536]))[..5], [0xFD, 0, 0, 1, b'x']);
}

#[test]
fn a_double_with_fixed_decimals_prints_all_of_them() {
    let fixed = |value: f64, decimals: u8| {
        let mut out = Vec::new();
        append_text_column(ValueRef::Double(value), decimals, &mut out);
        out
    };
    assert_eq!(fixed(1.5, 2), b"\x041.50");
    assert_eq!(fixed(-2.0, 0), b"\x02-2");
    assert_eq!(fixed(0.1, DECIMALS_NOT_FIXED), b"\x030.1");
    assert_eq!(fixed(f64::MAX, 2)[..4], [0xFC, 56, 1, b'1']);
}

#[test]
fn a_text_row_is_a_whole_packet() {
    let int = column(DataType::integer(4, false));
    let name = column(DataType::varchar(9, CollationId::DEFAULT));
    let format = RowFormat::new(&[int.clone(), name.clone()]);
    let mut image = Vec::new();
    format.encode(&[ValueRef::Int(12), ValueRef::Bytes(b"ab")], &mut image).unwrap();
    let mut out = b"before".to_vec();
    let [int, name] = [&int, &name].map(ResultColumn::of_definition);
    RowPlan::new(&format, [(ColumnNumber(1), &name), (ColumnNumber(0), &int)])
        .expect("columns as they are stored")
        .append_text(RowView::new(&format, &image), &mut out);
    assert_eq!(out, b"before\x06\0\0\0\x02ab\x0212");
}

#[test]
fn a_column_sent_as_another_type_has_no_copy_plan() {
    let text = |length| DataType::varchar(length, CollationId::DEFAULT);
    let integer = |bytes| DataType::integer(bytes, true);
    let types = [integer(1), integer(2), integer(3), integer(4), integer(8), DataType::double(), text(9)];
    for own in &types {
        let format = RowFormat::new(&[column(DataType::double()), column(own.clone())]);
        let mut result = ResultColumn::of_definition(&column(own.clone()));
        let double = ResultColumn::of_definition(&column(DataType::double()));
        let mut has_plan = |wire_type| {
            result.wire_type = wire_type;
            RowPlan::new(&format, [(ColumnNumber(0), &double), (ColumnNumber(1), &result)]).is_some()
        };
        for other in &types {
            assert_eq!(
                has_plan(ResultColumn::of_definition(&column(other.clone())).wire_type),
                own == other,
                "{own:?}"
            );
        }
        assert!(!has_plan(wire_type::NEWDECIMAL) && !has_plan(wire_type::NULL));
        assert_eq!(has_plan(wire_type::BLOB), *own == text(9));
    }
}

#[test]
fn a_binary_row_has_its_null_bits_from_bit_two() {
    let mut out = Vec::new();
    let row = begin_binary_row(8, &mut out);
    let values = [
        (ValueRef::Int(-1), wire_type::TINY),
        (ValueRef::Int(258), wire_type::SHORT),
        (ValueRef::Int(1), wire_type::INT24),
        (ValueRef::UInt(4_000_000_000), wire_type::LONG),
        (ValueRef::Null, wire_type::LONGLONG),
        (ValueRef::Double(1.0), wire_type::DOUBLE),
        (ValueRef::Null, wire_type::VAR_STRING),
        (ValueRef::Bytes(b"z"), wire_type::BLOB),
    ];
    for (ordinal, (value, wire_type)) in values.into_iter().enumerate() {
        row.append(ordinal, value, wire_type, &mut out);
    }
    row.end(&mut out);
    let mut expected = vec![24, 0, 0, 0, 0, 0b0100_0000, 0b0000_0001, 0xFF, 2, 1, 1, 0, 0, 0, 0x00, 0x28, 0x6B, 0xEE];
    expected.extend_from_slice(&1f64.to_le_bytes());
    expected.extend_from_slice(b"\x01z");
    assert_eq!(out, expected);
}

#[test]
fn binary_values_follow_the_wire_type_and_not_the_value() {
    let binary = |value: ValueRef<'_>, wire_type: u8| {
        let mut out = Vec::new();
        append_binary_value(value, wire_type, &mut out);
        out
    };
    assert_eq!(binary(ValueRef::Int(3), wire_type::DOUBLE), 3f64.to_le_bytes());
    assert_eq!(
        binary(ValueRef::Decimal(Decimal::Narrow { mantissa: 25, scale: 1 }), wire_type::NEWDECIMAL),
        b"\x032.5"
    );
    assert_eq!(binary(ValueRef::Int(-3), wire_type::VAR_STRING), b"\x02-3");
    assert_eq!(binary(ValueRef::UInt(u64::MAX), wire_type::LONGLONG), [0xFF; 8]);
}

#[test]
fn a_payload_of_sixteen_mebibytes_continues_in_further_packets() {
    for payload in [PACKET_PAYLOAD_MAX - 1, PACKET_PAYLOAD_MAX, PACKET_PAYLOAD_MAX + 1, 2 * PACKET_PAYLOAD_MAX + 5] {
        let bytes: Vec<u8> = (0..payload).map(|at| (at % 251) as u8).collect();
        let mut out = vec![9];
        let start = begin_packet(&mut out);
        out.extend_from_slice(&bytes);
        end_packet(&mut out, start);
        let mut rest = &out[1..];
        let mut joined = Vec::new();
        loop {
            let length = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
            joined.extend_from_slice(&rest[4..4 + length]);
            rest = &rest[4 + length..];
            if length < PACKET_PAYLOAD_MAX {
                break;
            }
        }
        assert!(rest.is_empty() && joined == bytes, "payload of {payload}");
    }
}

proptest! {
    #[test]
    fn integers_print_as_the_standard_library_prints_them(value in any::<i64>(), shift in 0u32..64) {
        let mut out = Vec::new();
        append_signed(value >> shift, &mut out);
        prop_assert_eq!(String::from_utf8(out).unwrap(), (value >> shift).to_string());
        let mut out = Vec::new();
        append_unsigned(value as u64 >> shift, &mut out);
        prop_assert_eq!(String::from_utf8(out).unwrap(), (value as u64 >> shift).to_string());
    }

    #[test]
    fn a_printed_double_reads_back_as_the_same_number(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        prop_assert_eq!(double(value).parse::<f64>().unwrap().to_bits(), bits);
    }
}

fn column(column_type: DataType) -> ColumnDefinition {
    ColumnDefinition::new("c", column_type)
}

fn index(id: u16, kind: IndexKind, columns: &[u16]) -> IndexDefinition {
    IndexDefinition::new(IndexId(id), "i", kind, columns.iter().copied().map(ColumnNumber).collect())
}

#[test]
fn columns_are_described_as_mysql_describes_them() {
    let collation = CollationId::UTF8MB4_GENERAL_CI;
    let mut id = column(DataType::integer(4, false));
    id.auto_increment = true;
    let mut pad = column(DataType::char(60, collation));
    pad.nullable = true;
    let columns = vec![
        id,
        column(DataType::integer(8, true)),
        pad,
        column(DataType::text_or_blob(2, CollationId::BINARY)),
        column(DataType::text_or_blob(4, collation)),
        column(DataType::double()),
    ];
    let indexes = vec![
        index(0, IndexKind::Primary { ordered: true }, &[0]),
        index(1, IndexKind::Unique { ordered: true, entries: TableId(2) }, &[1]),
        index(2, IndexKind::Ordered, &[2, 5]),
    ];
    let table = TableDefinition { collation, ..TableDefinition::new(TableId(1), ("d", "t"), columns, indexes) };
    let facts = |index: u16| {
        let column = ResultColumn::of_table(&table, ColumnNumber(index));
        assert_eq!((&*column.database, &*column.table, &*column.org_table), ("d", "t", "t"));
        (column.wire_type, column.flags, column.charset, column.length, column.decimals)
    };
    use column_flag::*;
    assert_eq!(facts(0), (3, NOT_NULL | PRIMARY_KEY | AUTO_INCREMENT | PART_KEY, 63, 11, 0));
    assert_eq!(facts(1), (8, NOT_NULL | UNIQUE_KEY | UNSIGNED | NO_DEFAULT_VALUE | PART_KEY, 63, 20, 0));
    assert_eq!(facts(2), (254, MULTIPLE_KEY | PART_KEY, 45, 240, 0));
    assert_eq!(facts(3), (252, NOT_NULL | BLOB | super::column_flag::BINARY | NO_DEFAULT_VALUE, 63, 65_535, 0));
    assert_eq!(facts(4), (252, NOT_NULL | BLOB | NO_DEFAULT_VALUE, 45, u32::MAX, 0));
    assert_eq!(facts(5), (5, NOT_NULL | NO_DEFAULT_VALUE | PART_KEY, 63, 22, 31));
}

proptest! {
    #[test]
    fn a_row_encoded_by_plan_equals_one_encoded_column_by_column((columns, values) in table_and_row(), order in any::<u64>()) {
        let format = RowFormat::new(&columns);
        let values: Vec<_> = values.iter().map(Value::as_ref).collect();
        let mut image = Vec::new();
        format.encode(&values, &mut image).unwrap();
        let row = RowView::new(&format, &image);
        // In table order from a random column on, so that runs occur, and with some columns twice.
        let count = columns.len();
        let chosen: Vec<usize> = (0..count + 2).map(|step| (step + order as usize % count) % count).collect();
        let results: Vec<_> = columns.iter().map(ResultColumn::of_definition).collect();
        let plan = RowPlan::new(&format, chosen.iter().map(|at| (ColumnNumber(*at as u16), &results[*at])));
        // The text of a TIMESTAMP depends on the session, so it has no plan.
        prop_assert_eq!(plan.is_none(), results.iter().any(|result| result.wire_type == wire_type::TIMESTAMP));
        let Some(plan) = plan else { return Ok(()) };
        let (mut text, mut expected_text) = (Vec::new(), Vec::new());
        plan.append_text(row, &mut text);
        let packet = begin_packet(&mut expected_text);
        chosen.iter().for_each(|at| append_text_value(values[*at], &mut expected_text));
        end_packet(&mut expected_text, packet);
        prop_assert_eq!(text, expected_text);
        let (mut binary, mut expected_binary) = (Vec::new(), Vec::new());
        plan.append_binary(row, &mut binary);
        let packet = begin_binary_row(chosen.len(), &mut expected_binary);
        for (ordinal, at) in chosen.iter().enumerate() {
            packet.append(ordinal, values[*at], results[*at].wire_type, &mut expected_binary);
        }
        packet.end(&mut expected_binary);
        prop_assert_eq!(binary, expected_binary);
    }
}

/// A table column that has this type, as clients see it.
fn result_of(data_type: DataType) -> ResultColumn {
    ResultColumn::of_definition(&ColumnDefinition::new("c", data_type))
}

#[test]
fn a_zero_filled_number_has_its_zeros_as_text_and_a_decimal_also_in_binary_rows() {
    let decimal = result_of(DataType::decimal(8, 2, true).zero_filled());
    let value = ValueRef::Decimal(crate::decimal::new(1250, 2));
    let mut out = Vec::new();
    append_result_text(value, &decimal, &mut out);
    assert_eq!(out, b"\x09000012.50");
    let binary = |value, column: &ResultColumn| {
        let mut out = Vec::new();
        let row = begin_binary_row(1, &mut out);
        let start = out.len();
        row.append_result(0, value, column, &mut out);
        out.split_off(start)
    };
    assert_eq!(binary(value, &decimal), b"\x09000012.50");
    assert_eq!(binary(value, &result_of(DataType::decimal(8, 2, true))), b"\x0512.50");
    let float = result_of(DataType::float().zero_filled());
    out.clear();
    append_result_text(ValueRef::Float(1.5), &float, &mut out);
    assert_eq!(out, b"\x0c0000000001.5");
    assert_eq!(binary(ValueRef::Float(1.5), &float), 1.5f32.to_le_bytes());
    // An expression with the flags of the column is no column.
    out.clear();
    append_result_text(value, &ResultColumn { org_name: "".into(), ..decimal }, &mut out);
    assert_eq!(out, b"\x0512.50");
}

/// The text and the binary row of one value, as the plan of the row makes it and as the value makes it.
fn check_plan(data_type: DataType, value: ValueRef<'_>) {
    for columns in [vec![column(data_type.clone())], vec![column(DataType::integer(8, false)), column(data_type)]] {
        let (format, last) = (RowFormat::new(&columns), columns.len() - 1);
        let values = [vec![ValueRef::Int(7); last], vec![value]].concat();
        let mut image = Vec::new();
        format.encode(&values, &mut image).expect("the value is one of the type");
        let (row, result) = (RowView::new(&format, &image), ResultColumn::of_definition(&columns[last]));
        let plan = RowPlan::new(&format, [(ColumnNumber(last as u16), &result)]).expect("a plain column");
        let (mut planned, mut expected) = (Vec::new(), Vec::new());
        plan.append_text(row, &mut planned);
        let packet = begin_packet(&mut expected);
        append_text_value(value, &mut expected);
        end_packet(&mut expected, packet);
        assert_eq!(planned, expected, "{value:?}");
        planned.clear();
        expected.clear();
        plan.append_binary(row, &mut planned);
        let packet = begin_binary_row(1, &mut expected);
        packet.append(0, value, result.wire_type, &mut expected);
        packet.end(&mut expected);
        assert_eq!(planned, expected, "{value:?}");
    }
}

#[test]
fn decimals_of_every_width_and_scale_print_as_their_values() {
    for precision in 1..=20u8 {
        for scale in 0..=precision {
            let powers = (0..=u32::from(precision)).flat_map(|digits| [10i128.pow(digits) - 1, 10i128.pow(digits)]);
            for magnitude in powers.filter(|magnitude| *magnitude < 10i128.pow(precision.into())) {
                for mantissa in [magnitude, -magnitude, magnitude / 3, -magnitude / 7] {
                    let value = ValueRef::Decimal(Decimal::Narrow { mantissa, scale });
                    check_plan(DataType::decimal(precision, scale, false), value);
                }
            }
        }
    }
}

#[test]
fn days_and_moments_print_as_their_values() {
    use crate::temporal::{Parts, Temporal, TemporalKind};
    for (year, month, day) in [(0, 0, 0), (1, 1, 1), (1999, 12, 31), (2024, 2, 29), (9999, 12, 31), (2024, 0, 0)] {
        check_plan(DataType::date(), ValueRef::Temporal(Temporal::date(year, month, day)));
        for (hour, minute, second) in [(0, 0, 0), (23, 59, 59), (0, 0, 1), (12, 0, 0)] {
            let parts = Parts { year, month, day, hour, minute, second, ..Parts::default() };
            let value = Temporal::from_parts(TemporalKind::DateTime, 0, &parts);
            check_plan(DataType::date_time(0), ValueRef::Temporal(value));
        }
    }
}
