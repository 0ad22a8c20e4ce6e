use proptest::prelude::*;

use super::*;
use crate::collation::CollationId;
use crate::temporal::{Parts, Temporal, TemporalKind};
use crate::types::{DataType, Form};
use crate::value::{Bit, Choice, Decimal, Value};

pub(crate) fn column(column_type: DataType, nullable: bool) -> ColumnDefinition {
    ColumnDefinition { nullable, ..ColumnDefinition::new("c", column_type) }
}

pub(crate) fn column_type() -> impl Strategy<Value = DataType> {
    let collation = CollationId::UTF8MB4_0900_AI_CI;
    prop_oneof![
        (prop::sample::select(vec![1u8, 2, 3, 4, 8]), any::<bool>())
            .prop_map(|(bytes, unsigned)| DataType::integer(bytes, unsigned)),
        Just(DataType::double()),
        Just(DataType::char(10, collation)),
        Just(DataType::varchar(1000, collation)),
        Just(DataType::text_or_blob(4, collation)),
        packed_type(),
        Just(DataType::json()),
        Just(DataType::geometry(crate::geometry::GeometryKind::Point, Some(0))),
    ]
}

/// Types whose values are [`Packed`].
pub(crate) fn packed_type() -> impl Strategy<Value = DataType> {
    let members = |count: usize| {
        let names = (0..count).map(|index| format!("m{index}").into_bytes().into()).collect();
        std::sync::Arc::new(crate::types::Members::new(names))
    };
    let collation = CollationId::UTF8MB4_0900_AI_CI;
    prop_oneof![
        Just(DataType::year()),
        Just(DataType::date()),
        (0u8..7).prop_map(DataType::time),
        (0u8..7).prop_map(DataType::date_time),
        (0u8..7).prop_map(DataType::timestamp),
        (1u8..=65, 0u8..=30).prop_map(|(precision, scale)| DataType::decimal(precision, scale.min(precision), false)),
        Just(DataType::float()),
        (1u8..=64).prop_map(DataType::bit),
        (1usize..300).prop_map(move |count| DataType::enumeration(members(count), collation)),
        (1usize..40).prop_map(move |count| DataType::set(members(count), collation)),
    ]
}

fn time_of_day() -> impl Strategy<Value = Parts> {
    (0u16..24, 0u8..60, 0u8..60, prop_oneof![Just(0u32), 0u32..1_000_000])
        .prop_map(|(hour, minute, second, microsecond)| Parts { hour, minute, second, microsecond, ..Parts::default() })
}

/// Temporal values of a kind with this many digits.
fn temporal(kind: TemporalKind, digits: u8) -> BoxedStrategy<Temporal> {
    let unit = 10u32.pow(u32::from(6 - digits));
    let of = move |parts: Parts| {
        Temporal::from_parts(kind, digits, &Parts { microsecond: parts.microsecond / unit * unit, ..parts })
    };
    let years = prop_oneof![0u16..10_000, Just(0u16), Just(9999u16), 1969u16..2040];
    match kind {
        TemporalKind::Year => prop_oneof![Just(0u16), 1901u16..=2155].prop_map(Temporal::year).boxed(),
        TemporalKind::Date => {
            (years, 0u8..13, 0u8..32).prop_map(|(year, month, day)| Temporal::date(year, month, day)).boxed()
        }
        TemporalKind::DateTime => (years, 0u8..13, 0u8..32, time_of_day())
            .prop_map(move |(year, month, day, time)| of(Parts { year, month, day, ..time }))
            .boxed(),
        TemporalKind::Time => (any::<bool>(), 0u16..838, time_of_day())
            .prop_map(move |(negative, hour, time)| {
                let negative = negative && !(time.has_no_time() && hour == 0);
                let time = of(Parts { negative, hour, ..time });
                if time.is_zero() { of(Parts::default()) } else { time }
            })
            .boxed(),
        TemporalKind::Timestamp => (any::<u32>(), 0u32..1_000_000)
            .prop_map(move |(seconds, microsecond)| {
                Temporal::instant(seconds.into(), microsecond / unit * unit, digits)
            })
            .boxed(),
    }
}

pub(crate) fn value_of(column_type: &DataType, nullable: bool) -> BoxedStrategy<Value> {
    let unused_bits = column_type.as_integer().map_or(0, |(bytes, _)| 64 - 8 * u32::from(bytes));
    let value = match column_type.form() {
        Form::UInt => any::<u64>().prop_map(move |value| Value::UInt(value >> unused_bits)).boxed(),
        Form::Int => any::<i64>().prop_map(move |value| Value::Int(value >> unused_bits)).boxed(),
        Form::Double => any::<i64>().prop_map(|value| Value::Double(value as f64 / 3.0)).boxed(),
        Form::Bytes => prop_oneof![
            8 => prop::collection::vec(any::<u8>(), 0..40),
            1 => (0usize..90_000).prop_map(|length| vec![b'x'; length]),
        ]
        .prop_map(Value::Bytes)
        .boxed(),
        Form::Temporal(kind) => temporal(kind, column_type.scale()).prop_map(Value::Temporal).boxed(),
        Form::Geometry => (any::<i32>(), any::<i32>())
            .prop_map(|(x, y)| {
                let point = crate::geometry::Point { x: x.into(), y: y.into() };
                let mut value = Vec::new();
                let shape = crate::geometry::Shape::Point(point);
                crate::geometry::Geometry { system: 0, shape }.append(&mut value);
                Value::Bytes(value)
            })
            .boxed(),
        Form::Json => any::<i32>()
            .prop_map(|number| {
                let mut document = Vec::new();
                crate::json::append_value(ValueRef::Int(number.into()), &mut document);
                Value::Json(document.into())
            })
            .boxed(),
        Form::Float => any::<i32>().prop_map(|value| Value::Float(value as f32 / 3.0)).boxed(),
        Form::Decimal => {
            let (scale, precision) = (column_type.scale(), u32::from(column_type.precision()));
            let limit = 10i128.pow(precision.min(38));
            let mantissa = prop_oneof![1 - limit..limit, Just(0), Just(limit - 1), Just(1 - limit), -100i128..100];
            let narrow = mantissa.prop_map(move |mantissa| Decimal::Narrow { mantissa: mantissa % limit, scale });
            let most = move |negative| crate::decimal::largest(precision as u8, scale, negative);
            prop_oneof![4 => narrow, 1 => any::<bool>().prop_map(most)].prop_map(Value::Decimal).boxed()
        }
        Form::Bit => {
            let bits = column_type.wire().length;
            let number = any::<u64>().prop_map(move |number| number >> (64 - bits));
            number.prop_map(move |number| Value::Bit(Bit { number, bytes: bits.div_ceil(8) as u8 })).boxed()
        }
        Form::Enum | Form::Set => {
            let members = column_type.members().cloned().expect("members");
            let count = members.names().len() as u32;
            let is_enum = column_type.form() == Form::Enum;
            let numbers = if is_enum { 0..u64::from(count) + 1 } else { 0..1 << count };
            numbers
                .prop_map(move |number| {
                    let mut text = Vec::new();
                    match is_enum {
                        true => text.extend_from_slice(members.name(number)),
                        false => members.append_set(number, &mut text),
                    }
                    Value::Choice(Choice { number, text: text.into() })
                })
                .boxed()
        }
    };
    if nullable { prop_oneof![3 => value, 1 => Just(Value::Null)].boxed() } else { value }
}

pub(crate) fn table_and_row() -> impl Strategy<Value = (Vec<ColumnDefinition>, Vec<Value>)> {
    let added = prop::option::weighted(0.3, any::<u16>());
    prop::collection::vec((column_type(), any::<bool>(), added), 1..20).prop_flat_map(|shape| {
        let values =
            || shape.iter().map(|(column_type, nullable, _)| value_of(column_type, *nullable)).collect::<Vec<_>>();
        let (missing, values) = (values(), values());
        let is_missing = prop::collection::vec(any::<bool>(), shape.len());
        (Just(shape), missing, values, is_missing).prop_map(|(shape, missing, mut values, is_missing)| {
            let mut columns = Vec::new();
            for (position, (column_type, nullable, order)) in shape.into_iter().enumerate() {
                let mut column = column(column_type, nullable);
                if let Some(order) = order {
                    let value = missing[position].clone();
                    column.added = Some(Box::new(AddedColumn { order, value }));
                    if is_missing[position] {
                        values[position] = missing[position].clone();
                    }
                }
                columns.push(column);
            }
            (columns, values)
        })
    })
}

fn encode(format: &RowFormat, values: &[Value]) -> Vec<u8> {
    let values: Vec<_> = values.iter().map(Value::as_ref).collect();
    let mut image = Vec::new();
    format.encode(&values, &mut image).unwrap();
    image
}

proptest! {
    #[test]
    fn an_encoded_row_decodes_to_the_same_values((columns, values) in table_and_row()) {
        let format = RowFormat::new(&columns);
        let image = encode(&format, &values);
        prop_assert!(check_image(&format, &image));
        let view = RowView::new(&format, &image);
        for (index, value) in values.iter().enumerate() {
            prop_assert_eq!(view.column(ColumnNumber(index as u16)), value.as_ref());
            prop_assert_eq!(view.is_null(ColumnNumber(index as u16)), value.is_null());
        }
    }

    #[test]
    fn a_row_from_before_its_added_columns_is_the_image_of_their_first_values((columns, mut values) in table_and_row()) {
        let is_old = |column: &ColumnDefinition| column.added.is_none();
        let old_columns: Vec<_> = columns.iter().filter(|column| is_old(column)).cloned().collect();
        let old_values: Vec<_> =
            columns.iter().zip(&values).filter(|(column, _)| is_old(column)).map(|(_, value)| value.clone()).collect();
        for (column, value) in columns.iter().zip(&mut values) {
            if let Some(added) = &column.added {
                *value = added.value.clone();
            }
        }
        prop_assert_eq!(encode(&RowFormat::new(&old_columns), &old_values), encode(&RowFormat::new(&columns), &values));
    }

    #[test]
    fn a_modified_image_that_passes_the_check_can_be_read(
        (columns, values) in table_and_row(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        do_cut in any::<bool>(),
    ) {
        let format = RowFormat::new(&columns);
        let mut image = encode(&format, &values);
        for (at, byte) in changes {
            let at = at.index(image.len().min(64));
            image[at] = byte;
        }
        if do_cut {
            image.truncate(cut.index(image.len()));
        }
        if check_image(&format, &image) {
            let view = RowView::new(&format, &image);
            let read: Vec<_> = (0..columns.len()).map(|index| view.column(ColumnNumber(index as u16)).to_value()).collect();
            prop_assert_eq!(encode(&format, &read), image);
        }
    }
}

#[test]
fn added_columns_follow_the_variable_data_in_the_order_of_their_additions() {
    let added = |column: ColumnDefinition, order, value| {
        let added = Some(Box::new(AddedColumn { order, value }));
        ColumnDefinition { added, ..column }
    };
    let columns = [
        added(column(DataType::integer(2, false), true), 7, Value::Int(5)),
        column(DataType::varchar(9, CollationId::BINARY), false),
        added(column(DataType::varchar(9, CollationId::BINARY), true), 3, Value::Null),
    ];
    let format = RowFormat::new(&columns);
    let image = |first, last| encode(&format, &[first, Value::Bytes(b"a".to_vec()), last]);
    assert_eq!(image(Value::Int(5), Value::Null), [0, 2, 0, 1, b'a']);
    assert_eq!(image(Value::Int(5), Value::Bytes(b"b".to_vec())), [0, 2, 0, 1, b'a', 1, b'b']);
    assert_eq!(image(Value::Int(-2), Value::Null), [0, 2, 0, 1, b'a', 0xFB, 2, 0xFE, 0xFF]);
    assert_eq!(image(Value::Null, Value::Null), [0, 2, 0, 1, b'a', 0xFB, 0xFB]);
    for wrong in [
        // A last value that rows do without.
        &[0, 2, 0, 1, b'a', 0xFB][..],
        &[0, 2, 0, 1, b'a', 0xFB, 2, 5, 0],
        // Another width, a length beyond the end, one value too many.
        &[0, 2, 0, 1, b'a', 0xFB, 1, 6],
        &[0, 2, 0, 1, b'a', 2, b'b'],
        &[0, 2, 0, 1, b'a', 0xFB, 2, 6, 0, 0xFB],
    ] {
        assert!(!check_image(&format, wrong), "{wrong:?}");
    }
    assert_eq!(format.added_extent(&image(Value::Int(-2), Value::Null)), 5..9);
}

#[test]
fn an_image_has_no_value_of_an_unstored_column() {
    let added = |expression, order| ColumnDefinition {
        added: Some(Box::new(AddedColumn { order, value: Value::Null })),
        expression,
        ..column(DataType::integer(2, false), true)
    };
    let expression = crate::schema::ColumnExpression { text: "1".into(), kind: crate::schema::ExpressionKind::Virtual };
    let columns = [column(DataType::integer(1, false), false), added(Some(expression), 0), added(None, 1)];
    let format = RowFormat::new(&columns);
    let unstored = [0, 1, 2].map(|number| format.unstored_column(ColumnNumber(number)).is_some());
    assert_eq!(unstored, [false, true, false]);
    for value in [Value::Null, Value::Int(5), Value::Bytes(b"x".to_vec())] {
        assert_eq!(encode(&format, &[Value::Int(7), value.clone(), Value::Null]), [0, 7]);
        let image = encode(&format, &[Value::Int(7), value, Value::Int(1)]);
        assert_eq!(image, [0, 7, 0xFB, 2, 1, 0]);
        assert!(check_image(&format, &image));
    }
    assert!(!check_image(&format, &[0, 7, 2, 5, 0]));
    assert!(!check_image(&format, &[0, 7, 2, 5, 0, 2, 1, 0]));
}

#[test]
fn a_value_that_does_not_fit_is_refused_without_output() {
    let columns = [column(DataType::integer(1, true), false)];
    let format = RowFormat::new(&columns);
    let mut out = vec![7];
    let code = |value: ValueRef<'_>, out: &mut Vec<u8>| format.encode(&[value], out).unwrap_err().code;
    assert_eq!(code(ValueRef::Null, &mut out), ErrorCode::ColumnNotNull);
    assert_eq!(code(ValueRef::Int(-1), &mut out), ErrorCode::UnknownError);
    assert_eq!(code(ValueRef::UInt(256), &mut out), ErrorCode::UnknownError);
    assert_eq!(code(ValueRef::Bytes(b"1"), &mut out), ErrorCode::UnknownError);
    assert_eq!(format.encode(&[], &mut out).unwrap_err().code, ErrorCode::ColumnCountMismatch);
    assert_eq!(out, [7]);
}

#[test]
fn a_row_over_the_limit_is_error_1118() {
    let columns = [column(DataType::text_or_blob(4, CollationId::BINARY), false)];
    let format = RowFormat::new(&columns);
    let long = vec![0; limit::ROW_BYTES_MAX];
    let error = format.encode(&[ValueRef::Bytes(&long)], &mut Vec::new()).unwrap_err();
    assert_eq!(error.code.errno(), 1118);
}

#[test]
fn the_image_of_a_small_table_is_the_documented_one() {
    let columns = [
        column(DataType::integer(4, false), false),
        column(DataType::varchar(9, CollationId::BINARY), true),
        column(DataType::integer(2, true), true),
        column(DataType::varchar(9, CollationId::BINARY), true),
    ];
    let format = RowFormat::new(&columns);
    let image =
        encode(&format, &[Value::Int(-2), Value::Bytes(b"ab".to_vec()), Value::Null, Value::Bytes(b"c".to_vec())]);
    assert_eq!(image, [0, 0b010, 0xFE, 0xFF, 0xFF, 0xFF, 0, 0, 3, 0, 5, 0, 2, b'a', b'b', 1, b'c']);
    assert_eq!(format.var_extent(&image, 1, 1), 15..17);
    assert_eq!((format.column_count(), format.var_column_count(), format.header_bytes(true)), (4, 2, 16));
}
