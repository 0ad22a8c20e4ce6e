use proptest::prelude::*;

use super::*;
use crate::collation::CollationId;
use crate::value::Value;

pub(crate) fn column(column_type: ColumnType, nullable: bool) -> ColumnDefinition {
    ColumnDefinition {
        name: "c".into(),
        column_type,
        nullable,
        default: None,
        auto_increment: false,
        hidden: false,
        comment: "".into(),
        display_width: None,
    }
}

fn column_type() -> impl Strategy<Value = ColumnType> {
    let collation = CollationId::UTF8MB4_0900_AI_CI;
    prop_oneof![
        (prop::sample::select(vec![1u8, 2, 3, 4, 8]), any::<bool>())
            .prop_map(|(bytes, unsigned)| ColumnType::Integer { bytes, unsigned }),
        Just(ColumnType::Double),
        Just(ColumnType::Char { length: 10, collation }),
        Just(ColumnType::VarChar { length: 1000, collation }),
        Just(ColumnType::Text { length_bytes: 4, collation }),
    ]
}

fn value_of(column_type: ColumnType, nullable: bool) -> BoxedStrategy<Value> {
    let value = match column_type {
        ColumnType::Integer { bytes, unsigned: true } => {
            any::<u64>().prop_map(move |value| Value::UInt(value >> (64 - 8 * u32::from(bytes)))).boxed()
        }
        ColumnType::Integer { bytes, unsigned: false } => {
            any::<i64>().prop_map(move |value| Value::Int(value >> (64 - 8 * u32::from(bytes)))).boxed()
        }
        ColumnType::Double => any::<i64>().prop_map(|value| Value::Double(value as f64 / 3.0)).boxed(),
        _ => prop_oneof![
            8 => prop::collection::vec(any::<u8>(), 0..40),
            1 => (0usize..90_000).prop_map(|length| vec![b'x'; length]),
        ]
        .prop_map(Value::Bytes)
        .boxed(),
    };
    if nullable { prop_oneof![3 => value, 1 => Just(Value::Null)].boxed() } else { value }
}

pub(crate) fn table_and_row() -> impl Strategy<Value = (Vec<ColumnDefinition>, Vec<Value>)> {
    prop::collection::vec((column_type(), any::<bool>()), 1..20).prop_flat_map(|shape| {
        let columns: Vec<_> = shape.iter().map(|(column_type, nullable)| column(*column_type, *nullable)).collect();
        let values: Vec<_> = shape.iter().map(|(column_type, nullable)| value_of(*column_type, *nullable)).collect();
        (Just(columns), values)
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
    fn a_row_reads_back_as_it_was_encoded((columns, values) in table_and_row()) {
        let format = RowFormat::new(&columns);
        let image = encode(&format, &values);
        prop_assert!(check_image(&format, &image));
        let view = RowView::new(&format, &image);
        for (index, value) in values.iter().enumerate() {
            prop_assert_eq!(view.column(ColumnIndex(index as u16)), value.as_ref());
            prop_assert_eq!(view.is_null(ColumnIndex(index as u16)), value.is_null());
        }
    }

    #[test]
    fn an_image_that_passes_the_check_can_be_read_whatever_was_changed(
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
            let read: Vec<_> = (0..columns.len()).map(|index| view.column(ColumnIndex(index as u16)).to_value()).collect();
            prop_assert_eq!(encode(&format, &read), image);
        }
    }
}

#[test]
fn a_value_that_does_not_fit_is_refused_and_leaves_the_output_alone() {
    let columns = [column(ColumnType::Integer { bytes: 1, unsigned: true }, false)];
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
    let columns = [column(ColumnType::Text { length_bytes: 4, collation: CollationId::BINARY }, false)];
    let format = RowFormat::new(&columns);
    let long = vec![0; limit::ROW_BYTES_MAX];
    let error = format.encode(&[ValueRef::Bytes(&long)], &mut Vec::new()).unwrap_err();
    assert_eq!(error.code.errno(), 1118);
}

#[test]
fn the_image_of_a_small_table_is_the_documented_one() {
    let columns = [
        column(ColumnType::Integer { bytes: 4, unsigned: false }, false),
        column(ColumnType::VarChar { length: 9, collation: CollationId::BINARY }, true),
        column(ColumnType::Integer { bytes: 2, unsigned: true }, true),
        column(ColumnType::VarChar { length: 9, collation: CollationId::BINARY }, true),
    ];
    let format = RowFormat::new(&columns);
    let image =
        encode(&format, &[Value::Int(-2), Value::Bytes(b"ab".to_vec()), Value::Null, Value::Bytes(b"c".to_vec())]);
    assert_eq!(image, [0, 0b010, 0xFE, 0xFF, 0xFF, 0xFF, 0, 0, 3, 0, 5, 0, 2, b'a', b'b', 1, b'c']);
    assert_eq!(format.var_extent(&image, 1, 1), 15..17);
    assert_eq!((format.column_count(), format.var_column_count(), format.header_bytes(true)), (4, 2, 16));
}
